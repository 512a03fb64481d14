/*
 * metrics.c - counters, gauges and histograms that any thread may feed.
 *
 * Every thread adds to a shard of its own, so that two loops never fight over a cache line; who reads adds the shards
 * up.  A reading is no snapshot: each number is right, two of them may be a few requests apart.  Gauges are set as well
 * as added to and therefore stand once.
 */
#include "metrics.h"
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include "record_key.h"

/* Loops, ledger, resolver and main thread of a usual machine; more threads share, which costs time, not truth. */
enum { SHARD_COUNT = 16, CODE_COUNT = METRICS_CODE_MAX - METRICS_CODE_MIN + 1, CACHE_LINE_BYTES = 64 };

struct histogram_cells {
    _Atomic uint64_t buckets[HISTOGRAM_BOUNDS_MAX + 1];
    _Atomic uint64_t sum;
};

/* Mostly cells of codes that nobody ever sends: pages that are never touched and take no memory. */
struct shard {
    _Alignas(CACHE_LINE_BYTES) _Atomic uint64_t counters[COUNTER_COUNT];
    struct histogram_cells histograms[HISTOGRAM_COUNT];
    _Atomic uint64_t target_responses[CODE_COUNT];
    _Atomic uint64_t requests[METRICS_METHODS_MAX][CODE_COUNT];
    _Atomic uint64_t by_topic[METRICS_TOPIC_COUNT][TOPIC_COUNTER_COUNT];
};

/* A name is written once, before its number is given away, and never again: whoever sees the count sees the names. */
static char topic_names[METRICS_TOPIC_COUNT][TOPIC_BYTES_MAX + 1];
static size_t topic_bytes[METRICS_TOPIC_COUNT];
static _Atomic unsigned topic_count = 1;
static pthread_mutex_t topic_lock = PTHREAD_MUTEX_INITIALIZER; /* of those who add a name */
static _Thread_local unsigned last_topic; /* most requests hold one topic, and it stays */

static struct shard shards[SHARD_COUNT];
static _Atomic int64_t gauges[GAUGE_COUNT];
static _Atomic unsigned thread_count;
static _Thread_local struct shard *own_shard;

#define SECOND 1000000000u
static const struct histogram_unit unit_seconds = {
    /* half a millisecond to a minute, in nanoseconds */
    .bounds = { 500000, 1000000, 2500000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000,
                500000000, 1 * (uint64_t)SECOND, 5 * (uint64_t)SECOND / 2, 5 * (uint64_t)SECOND,
                10 * (uint64_t)SECOND, 30 * (uint64_t)SECOND, 60 * (uint64_t)SECOND },
    .bound_count = 16,
    .per_unit = SECOND,
};
static const struct histogram_unit unit_records = {
    .bounds = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000 },
    .bound_count = 13,
    .per_unit = 1,
};

static const struct histogram_unit *const units[HISTOGRAM_COUNT] = {
#define HISTOGRAM(NAME, metric, unit, words) [HISTOGRAM_##NAME] = &unit_##unit,
#include "tbl/counters.h"
};

static struct shard *shard_get(void)
{
    if (own_shard == NULL) {
        unsigned number = atomic_fetch_add_explicit(&thread_count, 1, memory_order_relaxed);
        own_shard = &shards[number % SHARD_COUNT];
    }
    return own_shard;
}

static void cell_add(_Atomic uint64_t *cell, uint64_t count)
{
    atomic_fetch_add_explicit(cell, count, memory_order_relaxed);
}

static uint64_t cell_get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

void metrics_add(enum counter counter, uint64_t count)
{
    assert(counter < COUNTER_COUNT);
    if ((unsigned)counter < TOPIC_COUNTER_COUNT)
        metrics_add_topic(counter, METRICS_TOPIC_NONE, count);
    else
        cell_add(&shard_get()->counters[counter], count);
}

uint64_t metrics_counter(enum counter counter)
{
    uint64_t sum = 0;
    assert(counter < COUNTER_COUNT);
    if ((unsigned)counter >= TOPIC_COUNTER_COUNT) {
        for (size_t i = 0; i < SHARD_COUNT; i++)
            sum += cell_get(&shards[i].counters[counter]);
        return sum;
    }
    for (unsigned topic = 0; topic < metrics_topic_count(); topic++)
        sum += metrics_topic_counter(counter, topic);
    return sum + metrics_topic_counter(counter, METRICS_TOPIC_OTHER);
}

/* ---- topics ------------------------------------------------------------------------------------------------------ */

/* Among those from FROM to COUNT; 0: not there. */
static unsigned topic_find(struct slice topic, unsigned from, unsigned count)
{
    for (unsigned i = from; i < count; i++) {
        if (topic_bytes[i] == topic.byte_count && memcmp(topic_names[i], topic.at, topic.byte_count) == 0)
            return i;
    }
    return 0;
}

/* NEW from the loop's view: somebody else may have added it since. */
static unsigned topic_add(struct slice topic)
{
    pthread_mutex_lock(&topic_lock);
    unsigned count = atomic_load_explicit(&topic_count, memory_order_relaxed);
    unsigned found = topic_find(topic, 1, count);
    if (found == 0 && count <= METRICS_TOPICS_MAX) {
        memcpy(topic_names[count], topic.at, topic.byte_count);
        topic_bytes[count] = topic.byte_count;
        found = count;
        atomic_store_explicit(&topic_count, count + 1, memory_order_release);
    }
    pthread_mutex_unlock(&topic_lock);
    return found == 0 ? METRICS_TOPIC_OTHER : found;
}

unsigned metrics_topic(struct slice topic)
{
    unsigned count = metrics_topic_count();
    if (topic.byte_count == 0 || topic.byte_count > TOPIC_BYTES_MAX)
        return METRICS_TOPIC_NONE;
    unsigned found = topic_find(topic, last_topic, last_topic + 1);
    if (found == 0)
        found = topic_find(topic, 1, count);
    if (found == 0)
        found = count > METRICS_TOPICS_MAX ? METRICS_TOPIC_OTHER : topic_add(topic);
    if (found != METRICS_TOPIC_OTHER)
        last_topic = found;
    return found;
}

void metrics_add_topic(enum counter counter, unsigned topic, uint64_t count)
{
    assert((unsigned)counter < TOPIC_COUNTER_COUNT && topic < METRICS_TOPIC_COUNT);
    cell_add(&shard_get()->by_topic[topic][counter], count);
}

uint64_t metrics_topic_counter(enum counter counter, unsigned topic)
{
    uint64_t sum = 0;
    assert((unsigned)counter < TOPIC_COUNTER_COUNT && topic < METRICS_TOPIC_COUNT);
    for (size_t i = 0; i < SHARD_COUNT; i++)
        sum += cell_get(&shards[i].by_topic[topic][counter]);
    return sum;
}

unsigned metrics_topic_count(void)
{
    return atomic_load_explicit(&topic_count, memory_order_acquire);
}

const char *metrics_topic_name(unsigned topic)
{
    assert(topic < METRICS_TOPIC_COUNT);
    return topic == METRICS_TOPIC_OTHER ? "_other" : topic_names[topic];
}

/* ---- gauges, histograms, requests ---------------------------------------------------------------------------------- */

void metrics_gauge_add(enum gauge gauge, int64_t change)
{
    assert(gauge < GAUGE_COUNT);
    atomic_fetch_add_explicit(&gauges[gauge], change, memory_order_relaxed);
}

void metrics_gauge_set(enum gauge gauge, int64_t value)
{
    assert(gauge < GAUGE_COUNT);
    atomic_store_explicit(&gauges[gauge], value, memory_order_relaxed);
}

int64_t metrics_gauge(enum gauge gauge)
{
    assert(gauge < GAUGE_COUNT);
    return atomic_load_explicit(&gauges[gauge], memory_order_relaxed);
}

void metrics_observe(enum histogram histogram, uint64_t value)
{
    assert(histogram < HISTOGRAM_COUNT);
    const struct histogram_unit *unit = units[histogram];
    struct histogram_cells *cells = &shard_get()->histograms[histogram];
    size_t bucket = 0;
    while (bucket < unit->bound_count && value > unit->bounds[bucket])
        bucket++;
    cell_add(&cells->buckets[bucket], 1);
    cell_add(&cells->sum, value);
}

void metrics_request(int method, int code)
{
    assert(method >= 0 && method < METRICS_METHODS_MAX);
    assert(code >= METRICS_CODE_MIN && code <= METRICS_CODE_MAX);
    cell_add(&shard_get()->requests[method][code - METRICS_CODE_MIN], 1);
}

void metrics_target_response(int code)
{
    if (code < METRICS_CODE_MIN || code > METRICS_CODE_MAX)
        code = METRICS_CODE_MAX;
    cell_add(&shard_get()->target_responses[code - METRICS_CODE_MIN], 1);
}

const struct histogram_unit *metrics_histogram_unit(enum histogram histogram)
{
    assert(histogram < HISTOGRAM_COUNT);
    return units[histogram];
}

void metrics_histogram_get(enum histogram histogram, struct histogram_reading *ret_reading)
{
    assert(histogram < HISTOGRAM_COUNT);
    *ret_reading = (struct histogram_reading){ .count = 0 };
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        const struct histogram_cells *cells = &shards[i].histograms[histogram];
        for (size_t b = 0; b <= units[histogram]->bound_count; b++)
            ret_reading->buckets[b] += cell_get(&cells->buckets[b]);
        ret_reading->sum += cell_get(&cells->sum);
    }
    /* counted from the buckets that were read, so that +Inf and _count of one exposition always agree */
    for (size_t b = 0; b <= units[histogram]->bound_count; b++)
        ret_reading->count += ret_reading->buckets[b];
}

uint64_t metrics_request_count(int method, int code)
{
    uint64_t sum = 0;
    assert(method >= 0 && method < METRICS_METHODS_MAX);
    assert(code >= METRICS_CODE_MIN && code <= METRICS_CODE_MAX);
    for (size_t i = 0; i < SHARD_COUNT; i++)
        sum += cell_get(&shards[i].requests[method][code - METRICS_CODE_MIN]);
    return sum;
}

uint64_t metrics_target_response_count(int code)
{
    uint64_t sum = 0;
    assert(code >= METRICS_CODE_MIN && code <= METRICS_CODE_MAX);
    for (size_t i = 0; i < SHARD_COUNT; i++)
        sum += cell_get(&shards[i].target_responses[code - METRICS_CODE_MIN]);
    return sum;
}
