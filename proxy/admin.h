/*
 * admin.h - health, metrics, questions and changes on the admin port.
 *
 * Works on requests that conn.h has made whole and answers them with conn_reply(), at once or after the ledger has
 * answered.  Reads are open; changes pass one gate.  Threads: [main] throughout.
 */
#ifndef SINKONCE_ADMIN_H
#define SINKONCE_ADMIN_H

#include "conn.h"
#include "settings.h"
#include "store.h"

/* What the admin port tells about the rest of the program. */
struct program_state {
    bool is_started, is_ready, is_draining; /* [main] */
    uint64_t started_ms;                    /* Unix time */
};

struct admin;
/* PORT is the main thread's own port of the store; both outlive the admin. */
MUST_CHECK struct admin *admin_new(struct event_base *base, const struct settings *settings,
                                   struct store *store, struct store_port *port,
                                   const struct program_state *state);
void admin_free(struct admin *admin);
struct conn_service *admin_service(struct admin *admin); /* for the listener */
/* Questions that the store still holds: the admin must not be freed before there are none. */
size_t admin_open_count(const struct admin *admin);

#endif
