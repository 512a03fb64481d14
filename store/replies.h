/*
 * replies.h - the target's answers to single records, kept to be given again: the last N, the oldest go first.
 */
#ifndef SINKONCE_STORE_REPLIES_H
#define SINKONCE_STORE_REPLIES_H

#include "machine_state.h"

void replies_keep(struct machine *machine, const struct partition *partition, int64_t offset,
                  const struct stored_reply *reply);
/* Delete some of the oldest answers, when there are more than the setting; while room is short (machine_room()), of
 * however many there are. */
void replies_evict(struct machine *machine);
/* Fills CLAIM's ret_reply when the answer is kept. */
void replies_give(struct machine *machine, const struct partition *partition, int64_t offset,
                  struct claim *claim);

#endif
