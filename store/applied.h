/*
 * applied.h - which offsets of a partition are applied: exact near its end, folded far behind it.
 *
 * Chunks of 65,536 offsets that are full join into long FULL rows; the ragged ones are RUNS rows, of which the last
 * used are kept in memory and written once per batch.
 */
#ifndef SINKONCE_STORE_APPLIED_H
#define SINKONCE_STORE_APPLIED_H

#include "machine_state.h"

struct applied_piece {
    int64_t last; /* up to here nothing changes */
    bool is_applied;
    bool is_folded;     /* applied as far as one can tell: in folded ground that has gaps */
    uint64_t gap_count; /* of that whole ground */
};
/* What is true of OFFSET, and up to where; looks no further than LIMIT. */
struct applied_piece applied_piece_at(struct machine *machine, const struct partition *partition,
                                      int64_t offset, int64_t limit);
/* FIRST to LAST are applied now; some may have been before. */
void applied_add(struct machine *machine, struct partition *partition, int64_t first, int64_t last);

/* What was open up to LAST is not applied, and open no more: it may be delivered again, however far behind it lies, and is
 * never taken for a gap of folded ground. */
void applied_set_free(struct machine *machine, struct partition *partition, int64_t last);

/* The first applied offset at OFFSET or behind it, up to LIMIT; false: none. */
MUST_CHECK bool applied_next(struct machine *machine, const struct partition *partition, int64_t offset,
                             int64_t limit, int64_t *ret_offset);
/* How many of FIRST to LAST are applied, as applied_remove() would count them. */
uint64_t applied_count_in(struct machine *machine, const struct partition *partition, int64_t first,
                          int64_t last);
/* FIRST to LAST are unknown again; returns how many were applied.  Of folded ground that is cut, the gaps are divided
 * by length: where they were is not known. */
uint64_t applied_remove(struct machine *machine, struct partition *partition, int64_t first, int64_t last);
/* All of the set goes: the rows that PID has.  Returns how many. */
size_t applied_drop(struct machine *machine, uint32_t pid);
/* Put back what was written down elsewhere, ascending and where nothing is applied.  GAP_COUNT above 0: folded ground,
 * which ends with a chunk. */
void applied_restore(struct machine *machine, struct partition *partition, int64_t first, int64_t last,
                     uint64_t gap_count);

void applied_flush(struct machine *machine);  /* write what is newer than its row */
void applied_forget(struct machine *machine); /* drop the cache, newer or not */

#endif
