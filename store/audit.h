/*
 * audit.h - what a person will want to know later: events, and conflicts that wait for a decision.
 */
#ifndef SINKONCE_STORE_AUDIT_H
#define SINKONCE_STORE_AUDIT_H

#include "machine_state.h"

/* PARTITION is NULL for an event that concerns none.  DETAIL is cut to what a row holds. */
void audit_event(struct machine *machine, enum event_kind kind, const struct partition *partition,
                 int64_t first, int64_t last, const char *detail);
/* Of a whole topic: the row's partition and offsets are -1. */
void audit_topic_event(struct machine *machine, enum event_kind kind, const char *topic, const char *detail);
/* The partition waits for a decision from now on.  WHAT: offset, marks, is_first_sight and is_tail are the caller's; the
 * rest is filled in.  No memory: the transaction is spoilt. */
void audit_conflict(struct machine *machine, struct partition *partition, const struct conflict_row *what);
/* The decision is there: the row goes, the partition is open again. */
void audit_close_conflict(struct machine *machine, struct partition *partition);
/* Put back what was written down elsewhere. */
void audit_restore_conflict(struct machine *machine, struct partition *partition,
                            const struct conflict_row *row);
void audit_load_conflicts(struct machine *machine);

#endif
