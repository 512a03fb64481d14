/*
 * identify_json.h - locators whose values stand in the JSON text of one record.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_JSON_H
#define SINKONCE_IDENTIFY_JSON_H

#include "identify_rules.h"
#include "identify_value.h"

/* What the scan of one record found.  Made once, used for record after record. */
struct json_view {
    bool is_read; /* false: not a JSON object, so nothing is there */
    struct json_want wants[JSON_WANTS_MAX];
    struct json_search search; /* for these wants: do not copy a view */
};

void json_view_init(struct json_view *view, const struct rule_set *rules);

/* Read the value that BYTES begin with; only an object is looked into.  *RET_END is behind it, as for json_scan(). */
MUST_CHECK enum json_status json_view_read(struct json_view *view, const char bytes[], size_t byte_count,
                                           size_t *ret_end);

/* Read BYTES, which must hold one JSON object and white space to be read at all. */
void json_view_read_alone(struct json_view *view, const char bytes[], size_t byte_count);

/* Strings come unescaped, numbers as they stand.  null is LOOK_ABSENT, a name that stands twice LOOK_BROKEN, and so is
 * any other kind of value. */
MUST_CHECK enum look json_look(const struct json_view *view, size_t want, struct value *ret_value);

/* The same for one want outside a view. */
MUST_CHECK enum look json_want_look(const struct json_want *want, struct value *ret_value);

bool json_has_telltale(const struct json_view *view, const struct telltale *telltale);

#endif
