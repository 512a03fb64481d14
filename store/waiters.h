/*
 * waiters.h - claims that wait for a flight or a doubt to end.  A waiter holds nothing, so that no circle can close; but
 * a later claim that would overtake it in a partition queues up behind it.
 */
#ifndef SINKONCE_STORE_WAITERS_H
#define SINKONCE_STORE_WAITERS_H

#include "machine_state.h"

/* RANGE NULL: it is free, but behind another waiter.  NULL: no memory. */
MUST_CHECK struct waiter *waiters_add(struct machine *machine, struct claim *claim, struct open_range *range);
/* RANGE changes or goes: those that wait for it are to be judged again. */
void waiters_wake(struct machine *machine, struct open_range *range);
/* A waiter that was judged again and is still hindered, by RANGE, or (NULL) by an earlier waiter. */
void waiters_wait_on(struct machine *machine, struct waiter *waiter, struct open_range *range);
/* Frees WAITER; its claim is untouched. */
void waiters_remove(struct machine *machine, struct waiter *waiter);

#endif
