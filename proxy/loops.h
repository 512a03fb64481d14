/*
 * loops.h - all event loops of the program together.
 *
 * Threads: [main].
 */
#ifndef SINKONCE_LOOPS_H
#define SINKONCE_LOOPS_H

#include "loop.h"

enum { LOOPS_MAX = 64 };

/* All zero at first. */
struct loops {
    struct loop *at[LOOPS_MAX]; /* owned */
    size_t count;
};

/* As many as PROGRAM's settings say, but not more than connections to the target, which they share.  False: no memory, no
 * thread; those that are there stay. */
MUST_CHECK bool loops_start(struct loops *loops, struct program *program);
void loops_free(struct loops *loops); /* as loop_free() */

/* The loop with the fewest connections; there is one. */
struct loop *loops_least_loaded(const struct loops *loops);

void loops_drain(const struct loops *loops);
/* False: no memory, some still drain; it may be asked again. */
MUST_CHECK bool loops_resume(const struct loops *loops);

#endif
