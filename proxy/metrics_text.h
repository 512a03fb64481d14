/*
 * metrics_text.h - the exposition of all metrics in Prometheus' text format 0.0.4, or in OpenMetrics 1.0.
 */
#ifndef SINKONCE_METRICS_TEXT_H
#define SINKONCE_METRICS_TEXT_H

#include "credentials.h"
#include "settings.h"
#include "store.h"

struct metrics_view {
    const struct store *store;             /* borrowed */
    const struct credentials *credentials; /* borrowed; NULL: no certificates to tell of */
    enum mode mode;
    bool is_open_metrics;
    bool has_partitions;
    const struct partition_row *partitions; /* borrowed */
    size_t partition_count;                 /* at most 10,000 are told apart */
};

/* [any] Owned by the caller, zero-terminated; NULL: no memory. */
MUST_CHECK char *metrics_text(const struct metrics_view *view, size_t *ret_bytes);

#endif
