/*
 * upstream.h - requests to the target: libcurl's multi interface on a loop's event base.
 *
 *     upstream_send(flight) --> queue (own in-flight limit) --> prereq guard --> target
 *                           <-- flight->done() in a later turn of the loop, exactly once
 *
 * No file but upstream*.c names libcurl.  They decide nothing: outcome.h classifies what was seen.
 * Threads: [loop] throughout, but for upstream_global_init().
 */
#ifndef SINKONCE_UPSTREAM_H
#define SINKONCE_UPSTREAM_H

#include <event2/event.h>
#include <stdatomic.h>
#include "credentials.h"
#include "http1.h"
#include "outcome.h"
#include "settings.h"

struct upstream;
struct resolver;

/* Why an attempt ended without a whole answer; NONE: it did not. */
enum attempt_error {
    ATTEMPT_ERROR_NONE,    /* with ATTEMPT_NOT_SENT: the connection had gone, no memory for another */
    ATTEMPT_ERROR_STOPPED, /* flight.stop was true in time */
    ATTEMPT_ERROR_DNS,
    ATTEMPT_ERROR_CONNECT,
    ATTEMPT_ERROR_TLS,
    ATTEMPT_ERROR_QUEUE, /* no connection became free in time */
    ATTEMPT_ERROR_TIMEOUT,
    ATTEMPT_ERROR_CLOSED,    /* closed or reset */
    ATTEMPT_ERROR_GUARD,     /* the library wanted to send it again and was stopped */
    ATTEMPT_ERROR_PROTOCOL,  /* not an HTTP answer, or its framing contradicts itself */
    ATTEMPT_ERROR_TOO_LARGE, /* the body is above the setting; the head was complete */
};

/* One request to the target and its answer.  The caller's memory, lent from upstream_send() until done(). */
struct flight {
    struct slice method;              /* borrowed; validated token */
    struct slice target;              /* borrowed; origin form, appended to the base path of the setting */
    const struct http1_field *fields; /* borrowed: in order, without Host and hop-by-hop fields */
    size_t field_count;
    struct slice host;         /* borrowed: Host to send; empty: the target's own authority */
    const struct slice *parts; /* borrowed: the body in pieces */
    size_t part_count;
    size_t body_bytes;
    bool has_body; /* false: neither body nor Content-Length is sent */
    bool is_head_request;
    /* Borrowed, any thread's; NULL: none.  Where it is true up to the last moment before a byte can leave: NOT_SENT. */
    const atomic_bool *stop;
    void (*done)(struct flight *flight);
    /* results, valid from done() on; owned by the flight until flight_deinit() */
    struct attempt attempt;
    enum attempt_class attempt_class;
    enum attempt_error error;
    char detail[96];                /* words of the library or ours, for logs and the doubt */
    char *head_bytes;               /* owned: the final head as it came, for response's slices */
    struct http1_response response; /* only with ATTEMPT_KNOWN */
    char *answer;                   /* owned: body as received, transfer coding removed */
    size_t answer_bytes;
    bool is_answer_damaged;                /* the body ended early, or is above the limit */
    uint64_t queued_ns, sent_ns, ended_ns; /* monotonic; sent_ns 0: never */
    /* upstream's */
    struct upstream *upstream;
    void *transfer;
    struct flight *next;
};

static inline bool flight_is_stopped(const struct flight *flight)
{
    return flight->stop != NULL && atomic_load_explicit(flight->stop, memory_order_relaxed);
}

/* It has ended.  True: nothing was sent, and it may be sent once more at once. */
static inline bool flight_may_go_again(const struct flight *flight)
{
    return flight->attempt_class == ATTEMPT_NOT_SENT && flight->error != ATTEMPT_ERROR_QUEUE &&
           flight->error != ATTEMPT_ERROR_STOPPED;
}

void upstream_global_init(void); /* [main] once, before threads */
/* RESOLVER is shared by all loops and outlives them; it may be NULL when the host (or the proxy's) is an address.
 * CONNECTIONS_MAX is this loop's share.  NULL: no memory, no descriptor. */
MUST_CHECK struct upstream *upstream_new(struct event_base *base, const struct settings *settings,
                                         struct resolver *resolver, unsigned connections_max);
/* From now on connect with these, which it holds.  What runs goes on; no connection from before is used again.  Not from
 * inside a done(). */
void upstream_credentials_set(struct upstream *upstream, struct credentials *credentials);
/* Ends what is still running: no done() is called any more.  Not from inside a done(). */
void upstream_free(struct upstream *upstream);
/* Sets all results first, so that a flight which was not sent can be sent again once it has been released with
 * flight_deinit().  Waits at most SINKONCE_CONNECT_TIMEOUT for an address and a place among CONNECTIONS_MAX. */
void upstream_send(struct upstream *upstream, struct flight *flight);
void flight_deinit(struct flight *flight);
const char *attempt_error_name(enum attempt_error error);

#endif
