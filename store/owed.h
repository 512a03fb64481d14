/*
 * owed.h - what the ledger still owes after commits that failed, until one succeeds.
 *
 *     releases      claims of a failed batch: nothing was sent, but their INTENT may be on disk
 *     settlements   outcomes that are known and not yet written, with memory of their own
 */
#ifndef SINKONCE_STORE_OWED_H
#define SINKONCE_STORE_OWED_H

#include "machine.h"
#include "store.h"

struct kept;

/* All zero at first. */
struct owed {
    uint64_t *releases; /* owned: claim ids */
    size_t release_count, release_room;
    struct kept *first_kept, *last_kept; /* owned, in the order of their posting */
};

/* Room for COUNT more releases, before the claims are judged: a failed batch must not meet a lack of memory.
 * False: no memory. */
MUST_CHECK bool owed_make_room(struct owed *owed, size_t count);
void owed_release(struct owed *owed, uint64_t claim_id); /* room was made */
/* Copies all of SETTLEMENT.  False: no memory, and the caller still has it to write. */
MUST_CHECK bool owed_keep(struct owed *owed, const struct settlement *settlement);
bool owed_is_empty(const struct owed *owed);
/* Inside a batch: everything that is owed, in its order.  It stays owed until owed_clear(). */
void owed_pay(const struct owed *owed, struct machine *machine);
void owed_clear(struct owed *owed); /* the commit succeeded, or there will be none; also frees */

#endif
