/*
 * replays.h - replay windows: where, and until when, applied records may be sent again, once each.
 *
 * Windows over one partition never overlap, so that a record lies in one of them at most.
 */
#ifndef SINKONCE_STORE_REPLAYS_H
#define SINKONCE_STORE_REPLAYS_H

#include "machine_state.h"

struct replay_piece {
    int64_t last; /* up to here nothing changes */
    uint64_t id;  /* the window under which it may be sent again; 0: it may not, or is not applied */
};
/* What is true of OFFSET, and up to where; looks no further than LIMIT. */
struct replay_piece replays_piece_at(struct machine *machine, const struct partition *partition,
                                     int64_t offset, int64_t limit);
/* FIRST to LAST have been sent again under window ID and are applied; a window that is closed by now does not care. */
void replays_sent(struct machine *machine, uint64_t id, int64_t first, int64_t last);
/* FIRST to LAST have been applied for the first time: no window that is open now sends them again. */
void replays_first(struct machine *machine, const struct partition *partition, int64_t first, int64_t last);

/* A batch begins: close the windows whose time is over, if it may write. */
void replays_expire(struct machine *machine);
/* Another topic under the old name: what was to be sent again is of the old one. */
void replays_close_all(struct machine *machine, const struct partition *partition, const char *why);

void replays_save(struct machine *machine, const struct replay *replay);
void replays_load(struct machine *machine);
void replays_forget(struct machine *machine);

#endif
