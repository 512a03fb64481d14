/*
 * marks.h - identity marks of applied records: dense for the last offsets of a partition, one per chunk for ever.
 *
 * The block of the offset that was applied first stays for ever too: a topic that was deleted and created again
 * begins with other records there.
 */
#ifndef SINKONCE_STORE_MARKS_H
#define SINKONCE_STORE_MARKS_H

#include "machine_state.h"

/* Does a mark that we keep contradict one of RECORDS?  They are neighbours.  Then *RET_INDEX says which one first. */
bool marks_find_contradiction(struct machine *machine, const struct partition *partition,
                              const struct record records[], size_t count, size_t *ret_index,
                              record_mark *ret_stored);
/* FIRST and its neighbours are applied (applied_add() was called) and have these marks. */
void marks_put(struct machine *machine, struct partition *partition, int64_t first, const record_mark marks[],
               size_t count);
/* FIRST to LAST are unknown again (applied_remove() was called): nothing is compared with them any more. */
void marks_remove(struct machine *machine, struct partition *partition, int64_t first, int64_t last);
/* Write the blocks that this batch has changed, before it ends or other files change their rows. */
void marks_flush(struct machine *machine);
/* A person said that this record is the one that it claims to be. */
void marks_overwrite(struct machine *machine, const struct partition *partition, int64_t offset,
                     record_mark mark);

#endif
