/*
 * upstream_idle.c - a small set-associative table; the oldest entry of a set makes room.
 */
#include "upstream_idle.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "clock.h"

bool idle_table_init(struct idle_table *table, unsigned connections_max)
{
    /* Four times the room that the connections need: closed ones stay until they are the oldest of their set. */
    table->set_bits = 1;
    while (((size_t)IDLE_WAYS << table->set_bits) < (size_t)connections_max * 4)
        table->set_bits++;
    table->entries = calloc((size_t)IDLE_WAYS << table->set_bits, sizeof *table->entries);
    return table->entries != NULL;
}

void idle_table_clear(struct idle_table *table)
{
    memset(table->entries, 0, ((size_t)IDLE_WAYS << table->set_bits) * sizeof *table->entries);
}

void idle_table_deinit(struct idle_table *table)
{
    free(table->entries);
    table->entries = NULL;
}

static struct idle_entry *set_of(const struct idle_table *table, int local_port)
{
    /* Fibonacci hashing: Linux gives ports of one parity to connect(), low bits would leave half of the sets empty. */
    uint32_t hash = (uint32_t)local_port * 2654435769u;
    return &table->entries[(size_t)(hash >> (32 - table->set_bits)) * IDLE_WAYS];
}

void idle_table_note(struct idle_table *table, int local_port, int fd, uint32_t limit_ms, uint64_t now_ns)
{
    struct idle_entry *set = set_of(table, local_port);
    struct idle_entry *place = &set[0];
    assert(local_port > 0 && local_port <= UINT16_MAX);
    for (size_t i = 0; i < IDLE_WAYS; i++) {
        if (set[i].local_port == local_port) {
            place = &set[i];
            break;
        }
        if (set[i].used_ns < place->used_ns)
            place = &set[i];
    }
    *place = (struct idle_entry){ (uint16_t)local_port, fd, limit_ms, now_ns };
}

const struct idle_entry *idle_table_fresh(const struct idle_table *table, int local_port, uint64_t now_ns)
{
    const struct idle_entry *set = set_of(table, local_port);
    for (size_t i = 0; i < IDLE_WAYS; i++)
        if (set[i].local_port == local_port)
            return now_ns - set[i].used_ns < (uint64_t)set[i].limit_ms * NS_PER_MS ? &set[i] : NULL;
    return NULL;
}

static int64_t digits_value(const char *at, size_t byte_count)
{
    int64_t value = 0;
    size_t i = 0;
    for (; i < byte_count && at[i] >= '0' && at[i] <= '9' && value < UINT32_MAX; i++)
        value = value * 10 + (at[i] - '0');
    return i == 0 ? IDLE_TIMEOUT_NONE : value;
}

int64_t idle_timeout_seconds(struct slice keep_alive)
{
    static const char name[] = "timeout=";
    const size_t name_bytes = sizeof name - 1;
    for (size_t i = 0; i + name_bytes < keep_alive.byte_count; i++) {
        bool is_start = i == 0 || keep_alive.at[i - 1] == ',' || keep_alive.at[i - 1] == ' ' ||
                        keep_alive.at[i - 1] == '\t';
        if (is_start && strncasecmp(keep_alive.at + i, name, name_bytes) == 0)
            return digits_value(keep_alive.at + i + name_bytes, keep_alive.byte_count - i - name_bytes);
    }
    return IDLE_TIMEOUT_NONE;
}

uint32_t idle_limit_ms(uint64_t setting_ms, int64_t target_seconds)
{
    /* A tenth off the target's word: its clock started a trip earlier, and a request needs one to arrive. */
    if (target_seconds != IDLE_TIMEOUT_NONE && (uint64_t)target_seconds * 900 < setting_ms)
        setting_ms = (uint64_t)target_seconds * 900;
    return setting_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)setting_ms;
}
