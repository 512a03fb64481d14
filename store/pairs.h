/*
 * pairs.h - many rows at once: those of one table and pid, or of one table, by their numbers.
 *
 * A key that belongs to the table and cannot be read fails the transaction: what lies behind it must not be taken for
 * absent.
 */
#ifndef SINKONCE_STORE_PAIRS_H
#define SINKONCE_STORE_PAIRS_H

#include "format.h"
#include "rows.h"

/* The first row from NUMBER on; false: none.  *RET_VALUE lives until the next change. */
MUST_CHECK bool pairs_next(struct rows *rows, enum table table, uint32_t pid, uint64_t number,
                           uint64_t *ret_number, struct slice *ret_value);
/* The last row up to NUMBER; false: none. */
MUST_CHECK bool pairs_before(struct rows *rows, enum table table, uint32_t pid, uint64_t number,
                             uint64_t *ret_number, struct slice *ret_value);
/* The first row from NUMBER on of a table whose keys are numbers alone. */
MUST_CHECK bool numbers_next(struct rows *rows, enum table table, uint64_t number, uint64_t *ret_number,
                             struct slice *ret_value);
/* All rows from FIRST to LAST go. */
void pairs_delete(struct rows *rows, enum table table, uint32_t pid, uint64_t first, uint64_t last);
/* All rows of PID go, as long as ROWS_LEFT lasts, from which they are taken.  False: some are left. */
MUST_CHECK bool pairs_drop(struct rows *rows, enum table table, uint32_t pid, size_t *rows_left);

#endif
