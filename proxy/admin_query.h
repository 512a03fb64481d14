/*
 * admin_query.h - the parameters of a listing: "?topic=orders&limit=10" into values, or a sentence that says what is wrong.
 *
 * A decider.  Source: WHATWG URL standard, application/x-www-form-urlencoded parsing, but strict: no parameter twice,
 * none that the listing does not know.
 */
#ifndef SINKONCE_ADMIN_QUERY_H
#define SINKONCE_ADMIN_QUERY_H

#include <stdint.h>
#include "record_key.h"

enum { QUERY_LIMIT_MAX = 1000 };

enum {
    QUERY_TOPIC = 1 << 0,
    QUERY_PARTITION = 1 << 1,
    QUERY_OFFSET = 1 << 2,
    QUERY_AFTER = 1 << 3,
    QUERY_LIMIT = 1 << 4,
    QUERY_FROM = 1 << 5,
    QUERY_AFTER_PARTITION = 1 << 6, /* "after" as TOPIC/PARTITION */
};

struct admin_query {
    unsigned given; /* which of the above stood there */
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t offset; /* of "offset" or "from" */
    uint64_t after, limit;
    char after_topic[TOPIC_BYTES_MAX + 1];
    int32_t after_partition;
};

/* KNOWN are the parameters that may stand in QUERY.  False: RET_WHY is the sentence. */
MUST_CHECK bool admin_query_read(struct slice query, unsigned known, struct admin_query *ret_query,
                                 char ret_why[], size_t why_bytes_max);
/* Does NAME stand in QUERY, with or without a value? */
bool admin_query_has(struct slice query, const char *name);

#endif
