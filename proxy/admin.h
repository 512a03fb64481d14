/*
 * admin.h - health, metrics, questions and changes on the admin port.
 *
 * Works on requests that conn.h has made whole and answers them with conn_reply(), at once or after the ledger has
 * answered.  Reads are open; changes pass one gate.  Threads: [main] throughout.
 */
#ifndef SINKONCE_ADMIN_H
#define SINKONCE_ADMIN_H

#include "conn.h"
#include "credentials.h"
#include "settings.h"
#include "store.h"

/* What the admin port tells about the rest of the program. */
struct program_state {
    bool is_started, is_ready, is_draining; /* [main] */
    bool is_stopping;                       /* for good; then it drains, too */
    bool is_reload_refused;                 /* the last SIGHUP changed nothing: a file is wrong */
    size_t reload_late_count; /* event loops that stand still, and have not taken what it changed */
    uint64_t started_ms;      /* Unix time */
    enum mode mode;           /* the setting, or what an operator has changed it to */
    const char *ledger_fades; /* how the data folder forgets by itself (serve_ledger.h); NULL: it does not */
};

/* What the admin port may have done to the rest of the program.  Each changes the program's state accordingly. */
struct program_controls {
    void *context;
    void (*mode_set)(void *context, enum mode mode);
    /* Stop accepting, or accept again.  False: RET_WHY is a sentence, and nothing is changed. */
    bool (*drain_set)(void *context, bool is_draining, char ret_why[], size_t why_bytes_max);
};

/* All borrowed, and outliving the admin. */
struct admin_parts {
    const struct settings *settings;
    struct store *store;
    struct store_port *port; /* the main thread's own */
    const struct program_state *state;
    const struct program_controls *controls;
};

struct admin;
MUST_CHECK struct admin *admin_new(const struct admin_parts *parts);
void admin_free(struct admin *admin);
/* From now on: this token and these certificates, which it holds. */
void admin_credentials_set(struct admin *admin, struct credentials *credentials);
/* Keep DETAIL as an event of the kind that changes have, without anybody who waits for it. */
void admin_event_note(struct admin *admin, const char *detail);
struct conn_service *admin_service(struct admin *admin); /* for the listener */
/* For the listener of health_socket.h: probes, without TLS. */
struct conn_service *admin_health_service(struct admin *admin);
/* Questions that the store still holds: the admin must not be freed before there are none. */
size_t admin_open_count(const struct admin *admin);
/* To be called a few times a minute at least: some warnings are about the last minutes. */
void admin_tick(struct admin *admin, uint64_t now_ns);

#endif
