/*
 * metrics_process.h - what the kernel knows of this process, for the process_* metrics.
 */
#ifndef SINKONCE_METRICS_PROCESS_H
#define SINKONCE_METRICS_PROCESS_H

#include <stdint.h>

/* A figure that the kernel does not give (no /proc) is 0. */
struct process_figures {
    uint64_t cpu_ns;
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds;
    double start_seconds; /* Unix time */
};
void process_figures_get(struct process_figures *ret_figures); /* [any] */

#endif
