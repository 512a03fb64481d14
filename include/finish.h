/*
 * finish.h - the ways an exchange ends, as an enumeration and a table; the rows stand in tbl/finish.h.
 */
#ifndef SINKONCE_FINISH_H
#define SINKONCE_FINISH_H

enum finish {
    FINISH_NONE,
#define FINISH(NAME, label, status, outcome, words) FINISH_##NAME,
#include "tbl/finish.h"
    FINISH_COUNT
};

struct finish_row {
    const char *label;
    int status;
    const char *outcome; /* NULL: none */
    const char *words;
    const char *line; /* the body of an answer that says no more: label and words as JSON, with a line end */
};

extern const struct finish_row finish_rows[FINISH_COUNT]; /* proxy/finish.c */

#endif
