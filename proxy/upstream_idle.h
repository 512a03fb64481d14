/*
 * upstream_idle.h - when each connection to the target was used last, by its local port.
 *
 * libcurl's own limit counts whole seconds; SINKONCE_TARGET_IDLE may be 500ms, and a target may name a shorter time.
 * A decider: no clock, no socket.  A connection that is not in the table counts as too old, so that forgetting one
 * costs a connect and never a doubt.
 */
#ifndef SINKONCE_UPSTREAM_IDLE_H
#define SINKONCE_UPSTREAM_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "slice.h"

struct idle_entry {
    uint16_t local_port; /* 0: free */
    int fd;              /* valid as long as its connection is */
    uint32_t limit_ms;
    uint64_t used_ns;
};
struct idle_table {
    struct idle_entry *entries; /* owned */
    unsigned set_bits;          /* 2^set_bits sets of IDLE_WAYS entries */
};

enum { IDLE_WAYS = 8, IDLE_TIMEOUT_NONE = -1 };

MUST_CHECK bool idle_table_init(struct idle_table *table, unsigned connections_max);
void idle_table_deinit(struct idle_table *table);
void idle_table_clear(struct idle_table *table); /* forget all */
void idle_table_note(struct idle_table *table, int local_port, int fd, uint32_t limit_ms, uint64_t now_ns);
/* The connection's entry, or NULL when it is unknown or has been idle for too long. */
const struct idle_entry *idle_table_fresh(const struct idle_table *table, int local_port, uint64_t now_ns);

/* The seconds of "timeout" in a Keep-Alive field ("timeout=5, max=100"), or IDLE_TIMEOUT_NONE. */
int64_t idle_timeout_seconds(struct slice keep_alive);
/* How long a connection may lie idle by our setting and what the target said. */
uint32_t idle_limit_ms(uint64_t setting_ms, int64_t target_seconds);

#endif
