/*
 * firsts.h - the partitions of a claim that were never met, and where each begins in it.
 *
 * A record that is far from its neighbours says nothing about its partition: another of the same claim may be older.
 * Found for all partitions at once, in n log n: a claim may hold a hundred thousand partitions with a record each.
 */
#ifndef SINKONCE_STORE_FIRSTS_H
#define SINKONCE_STORE_FIRSTS_H

#include "machine_state.h"

struct firsts {
    /* owned; of each partition the oldest record, borrowed from the claim, in the order of the partitions */
    const struct record **at;
    size_t count;
};

/* False: no memory; nothing is owned then. */
MUST_CHECK bool firsts_find(const struct machine *machine, const struct claim *claim,
                            struct firsts *ret_firsts);
/* The oldest of KEY's partition, which is one of them. */
int64_t firsts_lowest(const struct firsts *firsts, const struct record_key *key);
void firsts_deinit(struct firsts *firsts); /* all zero is fine */

#endif
