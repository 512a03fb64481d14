/*
 * metrics_text.h - the exposition of all metrics in Prometheus' text format 0.0.4.
 */
#ifndef SINKONCE_METRICS_TEXT_H
#define SINKONCE_METRICS_TEXT_H

#include "settings.h"
#include "store.h"

/* [any] Owned by the caller, zero-terminated; NULL: no memory. */
MUST_CHECK char *metrics_text(const struct store *store, const struct settings *settings, size_t *ret_bytes);

#endif
