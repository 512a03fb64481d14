/*
 * rows_mem.h - rows.h in memory, for the machine's tests: a sorted array, and copies of it to go back to.
 */
#ifndef SINKONCE_TESTS_ROWS_MEM_H
#define SINKONCE_TESTS_ROWS_MEM_H

#include "rows.h"

struct rows *rows_mem_new(void);
struct rows *rows_mem_copy(const struct rows *rows); /* neither changed nor failed, whatever ROWS is */
void rows_mem_free(struct rows *rows);
size_t rows_mem_count(const struct rows *rows);
/* From now on the COUNTth change fails the transaction with STATUS. */
void rows_mem_fail_at(struct rows *rows, size_t count, enum rows_status status);
/* Flip one bit of one value, or cut it short; WHICH chooses. */
void rows_mem_damage(struct rows *rows, unsigned *which);
void rows_mem_begin(struct rows *rows); /* a new transaction: neither changed nor failed */

#endif
