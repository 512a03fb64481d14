/*
 * request.h - one request: its memory while it comes in, and what the connection hands over once it is whole.
 *
 * Threads: [loop] whoever has the request; the pool is shared by all.
 */
#ifndef SINKONCE_REQUEST_H
#define SINKONCE_REQUEST_H

#include <stdatomic.h>
#include <stdint.h>
#include "finish.h"
#include "http1.h"

enum {
    REQUEST_PEER_BYTES = 64,
    REQUEST_BODY_ROOM_FIRST = 64 * 1024 /* a Content-Length is not trusted further than this at first */
};

/* Memory for the bodies of all requests that are here, whole or not, for what stands beside them, and for answers that
 * their connectors have not read yet; shared by all loops. */
struct body_pool {
    atomic_size_t taken_bytes;
    size_t bytes_max;
};

/* BYTE_COUNT is here already, room or not: it keeps out what comes next.  NULL: nothing is counted. */
void body_pool_add(struct body_pool *pool, size_t byte_count);
void body_pool_give_back(struct body_pool *pool, size_t byte_count);
bool body_pool_is_full(const struct body_pool *pool);

struct request {
    struct http1_head head; /* its slices point into BYTES */
    char *bytes;            /* owned: the head as it came */
    size_t byte_count;
    char *body;                    /* owned, contiguous; NULL when empty */
    size_t body_bytes, body_room;  /* what has come, and what BODY has room for */
    struct body_pool *pool;        /* borrowed; NULL: its body is not counted */
    size_t pool_bytes;             /* what it took from there, given back by request_free() */
    uint64_t started_ns;           /* monotonic: when the first byte of it was seen */
    uint64_t whole_ns;             /* monotonic: when it was whole */
    bool is_trusted_peer;          /* loopback or Unix socket */
    char peer[REQUEST_PEER_BYTES]; /* address of the connector, for logs */
};

/* Only these methods can hold records; all others are passed on untouched. */
static inline bool request_is_write(const struct request *request)
{
    enum http1_method method = request->head.method;
    return method == HTTP1_POST || method == HTTP1_PUT || method == HTTP1_PATCH || method == HTTP1_DELETE;
}

/* For Splunk's Event Collector?  A base path may stand before its own. */
static inline bool request_is_collector(const struct request *request)
{
    static const char collector[] = "/services/collector";
    const struct slice path = request->head.path;
    return path.byte_count > 0 && memmem(path.at, path.byte_count, collector, sizeof collector - 1) != NULL;
}

/* Nothing of it is here yet, and its head means nothing.  PEER is copied, POOL borrowed; NULL: no memory. */
MUST_CHECK struct request *request_new(struct body_pool *pool, const char peer[REQUEST_PEER_BYTES],
                                       bool is_trusted_peer);
void request_free(struct request *request); /* NULL is fine */
/* The head was read from BYTES: keep a copy, into which it points from now on.  False: no memory; it still points into
 * BYTES. */
MUST_CHECK bool request_head_keep(struct request *request, const char bytes[]);
/* Take BYTE_COUNT for the body of REQUEST, or for what stands beside it, from its pool.  False: the others that are here
 * leave no room for it; a request that is alone gets what it needs, for it would else be refused each time it comes. */
MUST_CHECK bool request_room_take(struct request *request, size_t byte_count);
/* Room for MORE_BYTES behind the body, growing by doubling up to ROOM_MAX, which must hold them.  FINISH_NONE, or why
 * there is none: FINISH_BUSY, FINISH_NO_MEMORY. */
MUST_CHECK enum finish request_body_grow(struct request *request, size_t more_bytes, size_t room_max);

#endif
