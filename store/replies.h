/*
 * replies.h - the target's answers to single records, kept to be given again: the last N, the oldest go first.
 */
#ifndef SINKONCE_STORE_REPLIES_H
#define SINKONCE_STORE_REPLIES_H

#include "machine_state.h"

void replies_keep(struct machine *machine, const struct partition *partition, int64_t offset,
                  const struct stored_reply *reply);
/* The oldest few of those that are too many; while room is short each is. */
void replies_evict(struct machine *machine);
/* Fills CLAIM's ret_reply when the answer is kept. */
void replies_give(struct machine *machine, const struct partition *partition, int64_t offset,
                  struct claim *claim);

#endif
