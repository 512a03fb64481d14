/*
 * finish.c - the table behind finish.h.
 */
#include "finish.h"
#include <stddef.h>

#define LINE(label, words) "{\"error\":\"" label "\",\"detail\":\"" words "\"}\n"

const struct finish_row finish_rows[FINISH_COUNT] = {
    [FINISH_NONE] = { "none", 0, NULL, "", "" },
#define FINISH(NAME, label, status, outcome, words)                                                          \
    [FINISH_##NAME] = { label, status, outcome, words, LINE(label, words) },
#include "tbl/finish.h"
};
