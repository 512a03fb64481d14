/*
 * conn.h - connections of connectors and operators: bytes in, whole requests out, replies back.
 *
 *     accepted fd (--> TLS) --> head --> body --> on_request() ... conn_reply() --> written --> next head
 *
 * Hides bufferevents: conn*.c alone name them.  Strict codec (http1.h), absolute deadlines, caps; while a request is being
 * worked on nothing is read, so that pipelined requests wait in order.  A connector that leaves meanwhile is noticed when
 * its answer is written; its exchange runs on.
 * Threads: [loop] the one that the connection was given to.
 */
#ifndef SINKONCE_CONN_H
#define SINKONCE_CONN_H

#include <event2/event.h>
#include "request.h"
#include "tls.h"

struct conn;

enum { CONN_FIELDS_MAX = HTTP1_FIELDS_MAX + 8 };

/* Who works on the requests: the data port or the admin port. */
struct conn_service {
    void *context;
    size_t head_bytes_max;
    struct body_pool *bodies; /* borrowed; NULL: bodies have no limit together */
    char retry_after[24];     /* Retry-After of a 503: seconds */
    uint64_t body_bytes_max;
    uint64_t head_timeout_ms, body_timeout_ms, idle_timeout_ms, write_timeout_ms;
    const struct tls *tls; /* borrowed: of the connections that come from now on; NULL: no TLS */
    bool is_draining;      /* replies say Connection: close, idle connections are closed */
    struct conn *first;    /* conn.c's: all open connections */
    size_t conn_count;     /* conn.c's */
    /* A whole head, before any of its body is read.  FINISH_NONE: go on; else it is refused and the connection closed.
     * May be NULL. */
    enum finish (*on_head)(void *context, const struct http1_head *head);
    /* A whole request.  REQUEST is moved in: the service frees it.  Answered by one conn_reply(), perhaps from in here. */
    void (*on_request)(void *context, struct conn *conn, struct request **request);
    /* The connection is about to be freed while its request is unanswered: forget CONN. */
    void (*on_gone)(void *context, void *exchange);
    /* A request ended before it was whole: already answered.  For counters and logs. */
    void (*on_refused)(void *context, const char *peer, enum finish why);
    /* A TLS handshake failed; the connection is about to be freed. */
    void (*on_handshake_failed)(void *context, const char *peer, enum tls_failure failure, const char *words);
    /* The connector left in the middle of its request, or of our answer. */
    void (*on_abort)(void *context, const char *peer, bool is_reading);
    void (*on_closed)(void *context); /* the last word of a connection */
};

/* What goes back.  Everything is copied or taken before conn_reply() returns. */
struct reply {
    int status;
    const struct http1_field *fields; /* borrowed; without Content-Length, Connection, Date and hop-by-hop */
    size_t field_count;
    struct slice body;     /* borrowed, unless BODY_OWNED */
    char *body_owned;      /* taken (free() later) when not NULL; BODY then is it */
    bool is_body_left_out; /* answer to HEAD, 204, 304 */
    bool has_length;       /* with is_body_left_out: say Content-Length LENGTH all the same */
    uint64_t length;
    bool is_closing; /* Connection: close, whatever the request said */
    bool has_date;   /* fields hold one */
};

/* FD is taken, closed on failure.  False: no memory. */
MUST_CHECK bool conn_new(struct event_base *base, int fd, struct conn_service *service, const char *peer,
                         bool is_trusted_peer);
/* The exchange that works on the present request, for on_gone(); NULL: none. */
void conn_exchange_set(struct conn *conn, void *exchange);
void conn_reply(struct conn *conn, const struct reply *reply);
/* Close what is past its deadline; to be called a few times a second. */
void conn_sweep(struct conn_service *service, uint64_t now_ns);
/* Make room: close the connection without a whole request whose time is over first.  False: there is none. */
bool conn_drop_idlest(struct conn_service *service);
/* From now on: close every connection of SERVICE that is idle, the others after their reply. */
void conn_drain_all(struct conn_service *service);
/* Free all, whatever they are doing; on_gone() is told of unanswered requests. */
void conn_free_all(struct conn_service *service);

#endif
