/*
 * prober.h - asks the target about records in doubt, and resolves those of which it gives a clear answer.
 *
 *     doubts --ASK_PROBES--> known --delay--> due --> HTTP --> judge --DO_RESOLVE--> held requests wake by themselves
 *                              ^                                 |
 *                              +---- 1 s, 2 s, ... 60 s ---------+ anything but a clear answer: it keeps holding
 *
 * Bounded: PROBES_AT_ONCE requests, PROBES_KNOWN_MAX records in memory; what does not fit waits for its turn.
 * Threads: [main] throughout.
 */
#ifndef SINKONCE_PROBER_H
#define SINKONCE_PROBER_H

#include <event2/event.h>
#include "credentials.h"
#include "resolver.h"
#include "settings.h"

struct prober;

/* All borrowed, and outliving the prober; PORT is the main thread's.  NULL: no memory, no descriptor. */
MUST_CHECK struct prober *prober_new(struct event_base *base, const struct settings *settings,
                                     struct credentials *credentials, struct store *store,
                                     struct store_port *port, struct resolver *resolver);
/* Probes that begin from now on use CREDENTIALS, which it holds. */
void prober_credentials_set(struct prober *prober, struct credentials *credentials);
/* Ask nothing more; what is on its way to the target is dropped, and no answer to it will count. */
void prober_stop(struct prober *prober); /* NULL is fine */
/* Questions that the store still holds: the prober must not be freed before there are none. */
size_t prober_open_count(const struct prober *prober);
void prober_free(struct prober *prober); /* NULL is fine */

#endif
