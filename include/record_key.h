/*
 * record_key.h - which record of which Kafka partition, and how to know it again.
 *
 * The scope (connector -> target) is not part of the key: one ledger holds one scope.
 */
#ifndef SINKONCE_RECORD_KEY_H
#define SINKONCE_RECORD_KEY_H

#include <stdint.h>
#include "slice.h"

/* Kafka's own rule for topic names (org.apache.kafka.common.internals.Topic). */
enum { TOPIC_BYTES_MAX = 249 };

/* TOPIC is 1 to 249 bytes of [a-zA-Z0-9._-], neither "." nor ".."; partition and offset are not negative. */
struct record_key {
    struct slice topic; /* borrowed: whoever made the key says from where and how long */
    int32_t partition;
    int64_t offset;
};

/* What tells a record from another one at the same coordinates: 0 = nothing known; else bit 0 set: a Kafka
 * timestamp, bit 0 clear: a hash of the record's bytes.  Marks of different kinds never contradict. */
typedef uint32_t record_mark;
enum { MARK_NONE = 0 };

/* The upper bits do not fit: two timestamps that are 2^31 ms apart, 25 days, or a multiple of it, read as one. */
static inline record_mark mark_of_timestamp(uint64_t timestamp_ms)
{
    return (record_mark)(timestamp_ms << 1) | 1u;
}

/* Why 2: a hash whose bits are all zero must not read as "nothing known". */
static inline record_mark mark_of_hash(uint64_t hash)
{
    record_mark mark = (record_mark)hash & ~1u;
    return mark == MARK_NONE ? 2u : mark;
}

static inline bool marks_contradict(record_mark a, record_mark b)
{
    return a != MARK_NONE && b != MARK_NONE && ((a ^ b) & 1u) == 0 && a != b;
}

struct record {
    struct record_key key;
    record_mark mark;
};

/* True for a name that Kafka itself would accept. */
static inline bool topic_is_legal(struct slice topic)
{
    if (topic.byte_count == 0 || topic.byte_count > TOPIC_BYTES_MAX)
        return false;
    for (size_t i = 0; i < topic.byte_count; i++) {
        char c = topic.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return false;
    }
    return !slice_equals_text(topic, ".") && !slice_equals_text(topic, "..");
}

#endif
