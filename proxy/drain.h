/*
 * drain.h - how the program comes to rest: for good at a signal, for a while when an operator wants it.
 *
 *     RUNNING --SIGTERM--> DELAY --SINKONCE_DRAIN_DELAY--> DRAINING --nothing is in flight--> OVER
 *                          not ready any more              the connectors' port is closed
 *
 * When SINKONCE_DRAIN_TIMEOUT is over, or at a second signal, the process exits at once: nothing is written only at the
 * end, and what is in flight then will be in doubt.  When it is OVER, last_wait.h holds the ledger to the same time.  An
 * operator's drain closes the port while RUNNING, and opens it again.
 * Threads: [main].
 */
#ifndef SINKONCE_DRAIN_H
#define SINKONCE_DRAIN_H

#include "doors.h"

enum life { LIFE_RUNNING, LIFE_DELAY, LIFE_DRAINING, LIFE_OVER };

/* The first four are borrowed; the rest is zero at first. */
struct drain {
    const struct program *program;
    struct program_state *state; /* is told: is_stopping, is_draining, is_ready */
    const struct loops *loops;
    struct doors *doors;
    enum life life;
    uint64_t life_until_ns;          /* of DELAY and DRAINING */
    uint64_t quiet_since_ns;         /* nothing in flight since; 0: something is */
    struct listen_address reopen_at; /* owned: where to listen again; text NULL: not drained by an operator */
};

void drain_deinit(struct drain *drain);
/* A signal asks for the end. */
void drain_stop(struct drain *drain);
/* A few times a second.  True, once: the end has come. */
MUST_CHECK bool drain_tick(struct drain *drain, uint64_t now_ns);
/* An operator drains, or resumes.  False: RET_WHY is a sentence, and nothing is changed but what it says. */
MUST_CHECK bool drain_set(struct drain *drain, bool is_draining, char ret_why[], size_t why_bytes_max);

#endif
