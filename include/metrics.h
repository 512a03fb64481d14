/*
 * metrics.h - the program's counters and histograms: one table, relaxed atomics, any thread.
 *
 * Nothing here knows HTTP or the ledger; metrics_text.h writes the exposition.
 */
#ifndef SINKONCE_METRICS_H
#define SINKONCE_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include "slice.h"

enum counter {
#define COUNTER(NAME, metric, labels, words) COUNTER_##NAME,
#include "tbl/counters.h"
    COUNTER_COUNT
};

enum gauge {
#define GAUGE(NAME, metric, per_unit, words) GAUGE_##NAME,
#include "tbl/counters.h"
    GAUGE_COUNT
};

enum histogram {
#define HISTOGRAM(NAME, metric, unit, words) HISTOGRAM_##NAME,
#include "tbl/counters.h"
    HISTOGRAM_COUNT
};

enum { METRICS_METHODS_MAX = 8, METRICS_CODE_MIN = 100, METRICS_CODE_MAX = 599, HISTOGRAM_BOUNDS_MAX = 16 };

/* What a histogram counts in: its bounds, ascending, and how many of them make one exported unit. */
struct histogram_unit {
    uint64_t bounds[HISTOGRAM_BOUNDS_MAX];
    size_t bound_count;
    uint64_t per_unit; /* 1,000,000,000 for seconds that are observed in nanoseconds */
};

/* One look at a histogram.  buckets[i] holds what was at most bounds[i] and above the bound before it; the last one,
 * buckets[bound_count], the rest. */
struct histogram_reading {
    uint64_t buckets[HISTOGRAM_BOUNDS_MAX + 1];
    uint64_t count; /* of all buckets */
    uint64_t sum;   /* of the values observed */
};

void metrics_add(enum counter counter, uint64_t count);           /* [any] */
uint64_t metrics_counter(enum counter counter);                   /* [any] */
void metrics_gauge_add(enum gauge gauge, int64_t change);         /* [any] */
void metrics_gauge_set(enum gauge gauge, int64_t value);          /* [any] */
int64_t metrics_gauge(enum gauge gauge);                          /* [any] */
/* [any] One observation; VALUE is in nanoseconds for histograms whose unit is seconds, else plain. */
void metrics_observe(enum histogram histogram, uint64_t value);
/* [any] One answered request: METHOD is one of ours (0 to METRICS_METHODS_MAX - 1), CODE 100 to 599. */
void metrics_request(int method, int code);
/* [any] One answer of the target; a CODE outside 100 to 599 is the target's fault and counts as 599. */
void metrics_target_response(int code);

/* [any] For the exposition. */
const struct histogram_unit *metrics_histogram_unit(enum histogram histogram);
void metrics_histogram_get(enum histogram histogram, struct histogram_reading *ret_reading);
uint64_t metrics_request_count(int method, int code);
uint64_t metrics_target_response_count(int code);

#endif
