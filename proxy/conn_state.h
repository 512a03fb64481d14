/*
 * conn_state.h - one connection in memory, and what its files want of each other; for conn*.c only.
 *
 *     conn.c         its states and their deadlines, what libevent tells, all connections of a service
 *     conn_read.c    bytes of the peer --> a whole request for the service, or a refusal
 *     conn_write.c   a reply or a refusal --> bytes to the peer; the last of them
 *
 * Only conn_move() changes the state, and only conn.c frees: whoever finds that it cannot go on gives up, since a caller
 * further up may still hold the connection.
 */
#ifndef SINKONCE_CONN_STATE_H
#define SINKONCE_CONN_STATE_H

#include "conn.h"

struct bufferevent;

enum conn_state {
    CONN_HANDSHAKE,
    CONN_IDLE,
    CONN_HEAD,
    CONN_BODY,
    CONN_WORKING,
    CONN_WRITING,
    CONN_LINGERING,
    CONN_STATES
};

struct conn {
    struct conn_service *service;    /* borrowed */
    struct conn *next, *previous;    /* the service's list */
    struct bufferevent *bufferevent; /* owned */
    struct ssl_st *session;          /* the bufferevent's; NULL: no TLS */
    struct event *turn;              /* owned: goes on in a turn of its own, never from inside conn_reply() */
    struct request *request;         /* owned until on_request() */
    void *exchange;                  /* borrowed: who works on the present request */
    struct http1_chunks chunks;
    uint64_t deadline_ns; /* of the present state; 0: none; CONN_GIVEN_UP */
    uint64_t lingered_bytes;
    size_t held_bytes; /* of the reply, taken from the service's pool until it has left */
    enum conn_state state;
    bool is_trusted_peer;
    bool is_closing;     /* after the present reply */
    bool is_half_closed; /* the peer sends nothing more */
    bool is_broken;      /* nothing more can be written */
    bool is_reading_paused;
    bool is_advancing; /* conn_advance() is on the stack */
    char peer[REQUEST_PEER_BYTES];
};

/* To NEXT, which the present state may become; its deadline begins. */
void conn_move(struct conn *conn, enum conn_state next);

enum { CONN_GIVEN_UP = 1 }; /* a deadline that is long past */
/* The socket is broken, or memory is short: the next sweep frees CONN. */
static inline void conn_give_up(struct conn *conn)
{
    conn->deadline_ns = CONN_GIVEN_UP;
}

/* ---- conn_read.c: the bytes that are here ------------------------------------------------------------------------ */

/* In HEAD, and in BODY.  True: something happened, the state tells what; false: more bytes are needed. */
bool conn_read_head(struct conn *conn);
bool conn_read_body(struct conn *conn);
/* After each reading: take in no more than is good while nothing is done with it, and go on once there is room. */
void conn_read_bound(struct conn *conn);

/* ---- conn_write.c ------------------------------------------------------------------------------------------------ */

/* Write "100 Continue": the peer holds the body back. */
void conn_write_continue(struct conn *conn);
/* In HEAD or BODY: answer WHY and close, since the bytes after it cannot be trusted to be a request. */
void conn_refuse(struct conn *conn, enum finish why);
/* The reply has left: the next request, or the end. */
void conn_written(struct conn *conn);
/* Nothing of the reply is held any more. */
void conn_output_release(struct conn *conn);
/* The end: nothing more is written; what still comes is thrown away for a while, or the peer could lose the last reply. */
void conn_linger(struct conn *conn);

#endif
