/*
 * request.h - one whole request as the connection hands it over.
 */
#ifndef SINKONCE_REQUEST_H
#define SINKONCE_REQUEST_H

#include <stdint.h>
#include "http1.h"

struct request {
    struct http1_head head; /* its slices point into BYTES */
    char *bytes;            /* owned: the head as it came */
    size_t byte_count;
    char *body;             /* owned, contiguous; NULL when empty */
    size_t body_bytes;
    uint64_t started_ns;    /* monotonic: when the first byte of it was seen */
    uint64_t whole_ns;      /* monotonic: when it was whole */
    bool is_trusted_peer;   /* loopback or Unix socket */
    char peer[64];          /* address of the connector, for logs */
};

#endif
