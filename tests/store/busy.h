/*
 * busy.h - a ledger in memory that has seen something of everything: for tests that damage it.
 */
#ifndef SINKONCE_TESTS_BUSY_H
#define SINKONCE_TESTS_BUSY_H

#include "machine.h"
#include "rows_mem.h"

/* Rows of every table.  The caller's: rows_mem_free(). */
struct rows *busy_ledger(void);
/* A machine inside a batch over ROWS; NULL: they are refused, as store_open() would say. */
struct machine *busy_begin(struct rows *rows, uint64_t boot);
/* Claims around FROM that become applied, doubtful, free, or stay in flight. */
void busy_work(struct machine *machine, int64_t from);
void busy_offer(struct machine *machine, int32_t partition, int64_t first, size_t count,
                enum outcome outcome);
/* Questions and changes of every kind. */
void busy_change(struct machine *machine, enum question_kind kind, int64_t first, int64_t last);
void busy_ask_everything(struct machine *machine);

#endif
