/*
 * target_bulk.h - bulk requests of the counting target: their actions, and the answer with an item for each.
 *
 * An action is a line {"index":{…}}, or create, update or delete, and, but for delete, a line with its source.
 */
#ifndef TARGET_BULK_H
#define TARGET_BULK_H

#include "target_request.h"

#include <stdio.h>

struct target_action {
    struct target_text name;   /* index, create, update, delete */
    struct target_text line;   /* the action line, without its end */
    struct target_text source; /* the source line, without its end; delete: the action line again */
};

/* A POST or PUT to a path that ends with _bulk. */
bool target_is_bulk(const struct target_request *request);

/* The next action at or after *AT; false at END, and at what is no action. */
bool target_action_next(const char **at, const char *end, struct target_action *ret_action);
size_t target_action_count(const struct target_request *request);

/* The value that follows "NAME": in TEXT, without its quotes; empty when there is none. */
struct target_text target_field_find(struct target_text text, const char *quoted_name);

/* Print the answer in which the first APPLIED actions have taken effect and the others met a full queue (429). */
void target_bulk_print(const struct target_request *request, size_t applied, FILE *out);

#endif
