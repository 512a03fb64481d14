/*
 * request.h - one whole request as the connection hands it over.
 */
#ifndef SINKONCE_REQUEST_H
#define SINKONCE_REQUEST_H

#include <stdatomic.h>
#include <stdint.h>
#include "http1.h"

/* Memory for the bodies of all requests that are here, whole or not; shared by all loops. */
struct body_pool {
    atomic_size_t taken_bytes;
    size_t bytes_max;
};

struct request {
    struct http1_head head; /* its slices point into BYTES */
    char *bytes;            /* owned: the head as it came */
    size_t byte_count;
    char *body; /* owned, contiguous; NULL when empty */
    size_t body_bytes;
    struct body_pool *pool; /* borrowed; NULL: its body is not counted */
    size_t pool_bytes;      /* what it took from there, given back by request_free() */
    uint64_t started_ns;    /* monotonic: when the first byte of it was seen */
    uint64_t whole_ns;      /* monotonic: when it was whole */
    bool is_trusted_peer;   /* loopback or Unix socket */
    char peer[64];          /* address of the connector, for logs */
};

/* Only these methods can hold records; all others are passed on untouched. */
static inline bool request_is_write(const struct request *request)
{
    enum http1_method method = request->head.method;
    return method == HTTP1_POST || method == HTTP1_PUT || method == HTTP1_PATCH || method == HTTP1_DELETE;
}

#endif
