/*
 * finish.c - the table behind finish.h.
 */
#include "finish.h"
#include <stddef.h>

const struct finish_row finish_rows[FINISH_COUNT] = {
    [FINISH_NONE] = { "none", 0, NULL, "" },
#define FINISH(NAME, label, status, outcome, words) [FINISH_##NAME] = { label, status, outcome, words },
#include "tbl/finish.h"
};
