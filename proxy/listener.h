/*
 * listener.h - listening sockets, and accepted connections for whoever asked.
 *
 * Accepts on the main thread; a shortage of descriptors pauses it instead of spinning, and one that outlasts a pause
 * of 100 ms ends the connection that waits longest, one a pause.  Threads: [main].
 */
#ifndef SINKONCE_LISTENER_H
#define SINKONCE_LISTENER_H

#include <event2/event.h>
#include "settings.h"

struct listener;

/* FD is the callee's.  PEER is "ADDRESS:PORT" or "unix". */
typedef void listener_accepted_fn(void *context, int fd, const char *peer, bool is_trusted_peer);

/* NULL: RET_WHY says what went wrong, e.g. "127.0.0.1:8650: Address already in use". */
MUST_CHECK struct listener *listener_new(struct event_base *base, const struct listen_address *address,
                                         listener_accepted_fn *accepted, void *context, char ret_why[],
                                         size_t why_bytes_max);
/* The address as bound, "127.0.0.1:34567": the port is a real one where the setting said 0. */
const char *listener_address(const struct listener *listener);
/* Accept what is queued, then close.  NULL is fine. */
void listener_free(struct listener *listener);

#endif
