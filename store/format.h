/*
 * format.h - the bytes on disk.
 *
 * All rows stand in one ordered map; the first byte of a key is its table.  Numbers are big-endian, so that the
 * order of the bytes is the order of the numbers.  pid names one history of one partition of one topic.
 *
 *     table      key                           value
 *     META       name u8 = 0                   format u32, store id 32, created_ms u64, boots u64, scope bytes
 *     META       name u8 = 1                   counters: struct counters_row, in its order
 *     META       name u8 = 2                   name of the target; absent as long as none was told
 *     PART       topic bytes, 0, partition u32 struct part_row, in its order
 *     RUNS       pid u32, chunk u64            the applied set of 65,536 offsets (chunk.c)
 *     FULL       pid u32, first chunk u64      last chunk u64, from u64, gap count u64
 *     OPEN       pid u32, first offset u64     last u64, state u8, cause u8, claim id u64, id u64, boot u64,
 *                                              since_ms u64, attempts u32, replay id u64, has contexts u8,
 *                                              detail length u8, detail,
 *                                              then nothing or one mark u32 for each offset
 *     MARKS      pid u32, block u64            256 marks u32
 *     SAMPLES    pid u32, chunk u64            offset u64, mark u32
 *     REPLIES    pid u32, offset u64           sequence u64, status u16, type length u16, type, body
 *     RING       sequence u64                  pid u32, offset u64
 *     EVENTS     id u64                        time_ms u64, kind u8, partition u32, first u64, last u64,
 *                                              topic length u8, topic, detail length u8, detail
 *     CONFLICTS  id u64                        pid u32, partition u32, offset u64, stored u32, seen u32, since_ms u64,
 *                                              count u64, flags u8 (1: first sight, 2: tail), topic bytes
 *     CONTEXTS   pid u32, offset u64           what a probe must know of an open record
 *     REPLAYS    id u64                        pid u32, partition u32, first u64, last u64, opened_ms u64,
 *                                              until_ms u64, lowest u64, highest u64, count u64, intervals u64,
 *                                              nothing or 0 u8 and of the count those that were sent again u64,
 *                                              topic bytes
 *     PAST       old pid u32, 0 u64            partition u32, generation u32, topic bytes
 *
 * On the disk a sum follows each value, but that of META 0: u32, the lower half of XXH3 over the value, seeded with XXH3
 * over the key (rows_lmdb.c).
 *
 * The pid of a REPLAYS row is one of its own: the set of what has been sent again stands under it in RUNS and FULL.
 * PAST names the histories that a new topic has ended; their rows stay until the partition is forgotten as a whole.
 *
 * FULL says: every offset of these chunks from FROM on is applied, or so old that it is taken as applied (gap count
 * of them never were).  Offsets of the first chunk below FROM are in RUNS, exactly.
 *
 * Everything that is read is checked: a value that cannot be is refused, never trusted and never asserted.
 */
#ifndef SINKONCE_STORE_FORMAT_H
#define SINKONCE_STORE_FORMAT_H

#include "store.h"

/* 2: contexts, replay windows, ended histories, tails of conflicts.  3: a sum behind each value. */
enum { FORMAT_VERSION = 3 };

enum table {
    TABLE_META = 1,
    TABLE_PART,
    TABLE_RUNS,
    TABLE_FULL,
    TABLE_OPEN,
    TABLE_MARKS,
    TABLE_SAMPLES,
    TABLE_REPLIES,
    TABLE_RING,
    TABLE_EVENTS,
    TABLE_CONFLICTS,
    TABLE_CONTEXTS,
    TABLE_REPLAYS,
    TABLE_PAST,
};

enum {
    STORE_ID_CHARS = 32,
    SCOPE_BYTES_MAX = 255,
    TARGET_BYTES_MAX = 2048,
    DETAIL_BYTES_MAX = 95,
    MARK_BLOCK_OFFSETS = 256,
    MARK_BLOCK_BYTES = 4 * MARK_BLOCK_OFFSETS,
    OPEN_RECORDS_MAX = 1024, /* offsets of one OPEN row: longer runs take several */
    KEY_BYTES_MAX = 1 + TOPIC_BYTES_MAX + 1 + 4,
    /* of all but chunks and replies; an OPEN row is the longest, with 56 bytes beside its detail and marks */
    VALUE_BYTES_MAX = 160 + DETAIL_BYTES_MAX + 4 * OPEN_RECORDS_MAX,
    REPLY_HEAD_BYTES = 8 + 2 + 2,
    REPLY_TYPE_BYTES_MAX = 255,
};

/* Room for any key, and for any value but chunks and replies.  The caller's memory. */
struct key {
    uint8_t bytes[KEY_BYTES_MAX + 1]; /* one more: to name the least key behind a row */
    size_t byte_count;
};
struct value {
    uint8_t bytes[VALUE_BYTES_MAX];
    size_t byte_count;
};
static inline struct slice key_slice(const struct key *key)
{
    return slice_of((const char *)key->bytes, key->byte_count);
}
static inline struct slice value_slice(const struct value *value)
{
    return slice_of((const char *)value->bytes, value->byte_count);
}

enum meta_name { META_STORE = 0, META_COUNTERS = 1, META_TARGET = 2 };
struct key key_meta(enum meta_name name);
struct key key_part(struct slice topic, int32_t partition);
struct key key_pair(enum table table, uint32_t pid, uint64_t number);
struct key key_number(enum table table, uint64_t number);
/* False: a row of another table, or damaged.  No number that is read is above INT64_MAX. */
MUST_CHECK bool key_read_part(struct slice key, struct slice *ret_topic, int32_t *ret_partition);
MUST_CHECK bool key_read_pair(struct slice key, enum table table, uint32_t *ret_pid, uint64_t *ret_number);
MUST_CHECK bool key_read_number(struct slice key, enum table table, uint64_t *ret_number);
bool key_is_of(struct slice key, enum table table);

struct store_row {
    uint32_t format;
    char id[STORE_ID_CHARS + 1];
    uint64_t created_ms, boot_count;
    char scope[SCOPE_BYTES_MAX + 1];
    char target[TARGET_BYTES_MAX + 1]; /* in a row of its own; "": none */
};
struct counters_row {
    uint32_t next_pid;
    uint64_t next_doubt_id, next_event_id, next_conflict_id, next_replay_id;
    uint64_t ring_first, ring_next; /* sequences of the replies that are kept */
    uint64_t probe_count;           /* goes up when the disk is tried after a failure */
};
struct part_row {
    uint32_t pid, generation;
    int64_t seen_first;      /* the offset that was applied first: its marks stay for ever; -1: none */
    int64_t lowest, highest; /* -1: none */
    uint64_t applied_count, interval_count;
    uint64_t folded_to; /* chunks below have been folded; those that came later are exact */
    uint64_t swept_to;  /* blocks of marks below have been deleted, but that of seen_first */
    uint64_t last_ms;
    uint64_t conflict_id; /* 0: none undecided */
};
struct full_row {
    uint64_t last;
    int64_t from;
    uint64_t gap_count;
};
enum open_state { OPEN_INTENT = 1, OPEN_IN_DOUBT = 2 };
struct open_row {
    int64_t last;
    enum open_state state;
    enum doubt_cause cause;
    uint64_t claim_id, id, boot, since_ms;
    uint32_t attempts;
    uint64_t replay_id; /* applied before, and sent again under this window; 0: none */
    bool has_contexts;  /* some of its offsets have a CONTEXTS row */
    char detail[DETAIL_BYTES_MAX + 1];
};
/* An ended history. */
struct past_row {
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    uint32_t generation;
};
struct reply_row {
    uint64_t sequence;
    struct stored_reply reply; /* borrowed from the value */
};

void store_row_write(const struct store_row *row, struct value *ret_value);
MUST_CHECK bool store_row_read(struct slice value, struct store_row *ret_row); /* all but the target */
/* The target alone; what is written is its bytes. */
MUST_CHECK bool target_row_read(struct slice value, struct store_row *ret_row);
void counters_row_write(const struct counters_row *row, struct value *ret_value);
MUST_CHECK bool counters_row_read(struct slice value, struct counters_row *ret_row);
void part_row_write(const struct part_row *row, struct value *ret_value);
MUST_CHECK bool part_row_read(struct slice value, struct part_row *ret_row);
void full_row_write(const struct full_row *row, struct value *ret_value);
MUST_CHECK bool full_row_read(struct slice value, uint64_t first, struct full_row *ret_row);
/* MARKS is NULL, or one for each offset from FIRST to the row's last, at most OPEN_RECORDS_MAX. */
void open_row_write(const struct open_row *row, int64_t first, const record_mark marks[],
                    struct value *ret_value);
/* RET_MARKS has OPEN_RECORDS_MAX cells; RET_HAS_MARKS says whether they were filled. */
MUST_CHECK bool open_row_read(struct slice value, int64_t first, struct open_row *ret_row,
                              bool *ret_has_marks, record_mark ret_marks[]);
/* A block of marks stays as it is on disk: of its many numbers few are looked at. */
MUST_CHECK bool marks_is_block(struct slice value);
record_mark marks_get(const char block[MARK_BLOCK_BYTES], size_t index);
void marks_set(char block[MARK_BLOCK_BYTES], size_t index, record_mark mark);
void sample_write(int64_t offset, record_mark mark, struct value *ret_value);
MUST_CHECK bool sample_read(struct slice value, int64_t *ret_offset, record_mark *ret_mark);
/* BYTES has room for REPLY_HEAD_BYTES, the type and the body; returns what was written. */
size_t reply_row_write(const struct reply_row *row, uint8_t bytes[]);
MUST_CHECK bool reply_row_read(struct slice value, struct reply_row *ret_row);
void ring_write(uint32_t pid, int64_t offset, struct value *ret_value);
MUST_CHECK bool ring_read(struct slice value, uint32_t *ret_pid, int64_t *ret_offset);
void event_row_write(const struct event_row *row, struct value *ret_value);
MUST_CHECK bool event_row_read(uint64_t id, struct slice value, struct event_row *ret_row);
void conflict_row_write(const struct conflict_row *row, uint32_t pid, struct value *ret_value);
MUST_CHECK bool conflict_row_read(uint64_t id, struct slice value, struct conflict_row *ret_row,
                                  uint32_t *ret_pid);
/* SENT is the set of what has been sent again: its pid, bounds and counts are kept. */
void replay_row_write(const struct replay_row *row, const struct part_row *sent, struct value *ret_value);
MUST_CHECK bool replay_row_read(uint64_t id, struct slice value, struct replay_row *ret_row,
                                struct part_row *ret_sent);
void past_row_write(const struct past_row *row, struct value *ret_value);
MUST_CHECK bool past_row_read(struct slice value, struct past_row *ret_row);

#endif
