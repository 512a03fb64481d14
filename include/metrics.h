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

/* The first of them, told apart by topic. */
enum topic_counter {
#define TOPIC_COUNTER(NAME, metric, words) TOPIC_##NAME,
#include "tbl/counters.h"
    TOPIC_COUNTER_COUNT
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

/* Topics that are told apart: 0 is "", of what has none; the last one takes all that came too late. */
enum { METRICS_TOPICS_MAX = 100, METRICS_TOPIC_NONE = 0, METRICS_TOPIC_OTHER = METRICS_TOPICS_MAX + 1,
       METRICS_TOPIC_COUNT };

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

void metrics_add(enum counter counter, uint64_t count);           /* [any] of a topic counter: without a topic */
uint64_t metrics_counter(enum counter counter);                   /* [any] of a topic counter: all topics together */
/* [any] The number of TOPIC, given at its first use and never changed; METRICS_TOPIC_OTHER when there are too many. */
unsigned metrics_topic(struct slice topic);
/* [any] COUNTER is a topic counter. */
void metrics_add_topic(enum counter counter, unsigned topic, uint64_t count);
uint64_t metrics_topic_counter(enum counter counter, unsigned topic); /* [any] */
/* [any] How many numbers are given, NONE included and OTHER not. */
unsigned metrics_topic_count(void);
const char *metrics_topic_name(unsigned topic); /* [any] "", a topic, or "_other" */
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
