/*
 * waiters.h - claims that wait for a flight or a doubt to end.  A waiter holds nothing, so nobody waits for it.
 */
#ifndef SINKONCE_STORE_WAITERS_H
#define SINKONCE_STORE_WAITERS_H

#include "machine_state.h"

/* False: no memory. */
MUST_CHECK bool waiters_add(struct machine *machine, struct claim *claim, struct open_range *range);
/* RANGE changes or goes: those that wait for it are to be judged again. */
void waiters_wake(struct machine *machine, struct open_range *range);
/* A waiter that was judged again and is still hindered, by RANGE. */
void waiters_wait_on(struct machine *machine, struct waiter *waiter, struct open_range *range);
void waiters_remove(struct machine *machine,
                    struct waiter *waiter); /* and frees it; its claim is untouched */

#endif
