/*
 * cli_print.h - JSON answers for people: a table of rows, or a list of names and values.
 *
 * What others wrote into an answer cannot move the cursor or change colours: control characters are shown as "?".
 */
#ifndef SINKONCE_CLI_PRINT_H
#define SINKONCE_CLI_PRINT_H

#include <jansson.h>
#include <stdio.h>
#include "slice.h"

struct cli_column {
    const char *title;
    const char *member; /* of a row */
    bool is_right;      /* numbers */
};

/* The last column may be as long as it likes; the others are as wide as their widest cell. */
void cli_print_table(const json_t *rows, const struct cli_column columns[], size_t column_count,
                     bool has_titles, FILE *out);
/* One line for each member, objects and lists indented below their name. */
void cli_print_members(json_t *object, FILE *out);
/* Text on one line, or on as many as it has. */
void cli_print_text(const char *text, FILE *out);
void cli_print_lines(const char *text, FILE *out);

#endif
