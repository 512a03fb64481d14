/*
 * partitions.h - the partitions that the ledger has met, by topic and number.
 */
#ifndef SINKONCE_STORE_PARTITIONS_H
#define SINKONCE_STORE_PARTITIONS_H

#include "machine_state.h"

/* NULL: never met. */
struct partition *partitions_find(const struct machine *machine, struct slice topic, int32_t number);
/* A new one with an empty history.  NULL: no memory, and the transaction is spoilt. */
MUST_CHECK struct partition *partitions_add(struct machine *machine, struct slice topic, int32_t number);
/* Is there room for COUNT more? */
bool partitions_have_room(const struct machine *machine, size_t count);
/* Its row is written at the end of the batch. */
void partitions_touch(struct machine *machine, struct partition *partition);
void partitions_untouch(struct machine *machine, struct partition *partition); /* its row is gone */
/* An empty history under a new pid; what the old pid has on disk stays there, and PAST names it. */
void partitions_renew(struct machine *machine, struct partition *partition);
/* It leaves, with its row, and is as if never met; nothing of it may be open, undecided or in a window.  Its memory stays
 * until the next sweep. */
void partitions_drop(struct machine *machine, struct partition *partition);
/* The memory of those that have left is freed: a pass over all, so once for many. */
void partitions_sweep(struct machine *machine);
/* All machine->partition_count of them, ascending by topic and number; valid until one is added or swept. */
struct partition *const *partitions_by_name(struct machine *machine);
/* Where among them the first stands that comes behind this place; NUMBER -1: the first of TOPIC or behind it. */
size_t partitions_behind(struct machine *machine, const char *topic, int32_t number);
/* After PARTITION in no useful order; NULL: the first, and the end. */
struct partition *partitions_next(const struct machine *machine, const struct partition *partition);

void partitions_load(struct machine *machine);
void partitions_flush(struct machine *machine);
void partitions_forget(struct machine *machine);

#endif
