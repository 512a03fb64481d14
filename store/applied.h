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
    bool is_folded; /* applied as far as one can tell: in folded ground that has gaps */
};
/* What is true of OFFSET, and up to where; looks no further than LIMIT. */
struct applied_piece applied_piece_at(struct machine *machine, const struct partition *partition,
                                      int64_t offset, int64_t limit);
/* FIRST to LAST are applied now; some may have been before. */
void applied_add(struct machine *machine, struct partition *partition, int64_t first, int64_t last);

void applied_flush(struct machine *machine);  /* write what is newer than its row */
void applied_forget(struct machine *machine); /* drop the cache, newer or not */

#endif
