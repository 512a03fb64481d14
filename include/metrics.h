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
#define GAUGE(NAME, metric, words) GAUGE_##NAME,
#include "tbl/counters.h"
    GAUGE_COUNT
};

enum histogram {
#define HISTOGRAM(NAME, metric, unit, words) HISTOGRAM_##NAME,
#include "tbl/counters.h"
    HISTOGRAM_COUNT
};

void metrics_add(enum counter counter, uint64_t count);           /* [any] */
uint64_t metrics_counter(enum counter counter);                   /* [any] */
void metrics_gauge_add(enum gauge gauge, int64_t change);         /* [any] */
void metrics_gauge_set(enum gauge gauge, int64_t value);          /* [any] */
int64_t metrics_gauge(enum gauge gauge);                          /* [any] */
/* [any] One observation; VALUE is in nanoseconds for histograms whose unit is seconds, else plain. */
void metrics_observe(enum histogram histogram, uint64_t value);
/* [any] One answered request: METHOD is one of ours, CODE 100 to 599. */
void metrics_request(int method, int code);
/* [any] One answer of the target. */
void metrics_target_response(int code);

#endif
