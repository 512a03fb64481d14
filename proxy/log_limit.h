/*
 * log_limit.h - how often an event may be written: once per 10 s for each name.
 *
 * A decider: the time comes in, the caller holds the lock.
 */
#ifndef SINKONCE_LOG_LIMIT_H
#define SINKONCE_LOG_LIMIT_H

#include "slice.h"
#include <stdint.h>

/* Of each name that is limited, of which there are about 20; a name that finds no room is simply not limited. */
enum { LOG_LIMIT_EVENTS_MAX = 64, LOG_LIMIT_PERIOD_MS = 10000 };

struct log_limit {
    struct log_limit_row {
        const char *event; /* borrowed: a string constant */
        uint64_t written_ms;
        uint64_t suppressed_count;
    } rows[LOG_LIMIT_EVENTS_MAX];
    size_t row_count;
};

/* May EVENT be written at NOW_MS, of a clock that never goes back?  If so, RET_SUPPRESSED_COUNT says how many were
 * held back since it was last written. */
MUST_CHECK bool log_limit_take(struct log_limit *limit, const char *event, uint64_t now_ms,
                               uint64_t *ret_suppressed_count);

#endif
