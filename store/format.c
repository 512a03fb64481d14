/*
 * format.c - the bytes on disk, written and read back with every check (the table is in format.h).
 */
#include "format.h"

#include <assert.h>
#include <endian.h>

/* ---- writing: the room is ours, so that too little of it is our bug -------------------------------------------- */

struct writer {
    uint8_t *at; /* borrowed */
    size_t room, used;
};

static inline void put_bytes(struct writer *writer, const void *bytes, size_t byte_count)
{
    assert(byte_count <= writer->room - writer->used);
    if (byte_count > 0)
        memcpy(writer->at + writer->used, bytes, byte_count);
    writer->used += byte_count;
}

static inline void put_number(struct writer *writer, uint64_t number, size_t byte_count)
{
    uint64_t bytes = htobe64(number);
    put_bytes(writer, (const uint8_t *)&bytes + (sizeof bytes - byte_count), byte_count);
}

static void put_u8(struct writer *writer, unsigned number)
{
    put_number(writer, number, 1);
}

static void put_u16(struct writer *writer, unsigned number)
{
    put_number(writer, number, 2);
}

static void put_u32(struct writer *writer, uint32_t number)
{
    put_number(writer, number, 4);
}

static void put_u64(struct writer *writer, uint64_t number)
{
    put_number(writer, number, 8);
}

static void put_offset(struct writer *writer, int64_t offset)
{
    put_number(writer, (uint64_t)offset, 8);
}

static void put_short_text(struct writer *writer, const char *text)
{
    size_t byte_count = strlen(text);
    assert(byte_count <= UINT8_MAX);
    put_u8(writer, (unsigned)byte_count);
    put_bytes(writer, text, byte_count);
}

static struct writer writer_of(struct value *value)
{
    return (struct writer){ value->bytes, sizeof value->bytes, 0 };
}

/* ---- reading: the bytes are outside bytes ----------------------------------------------------------------------- */

struct reader {
    const uint8_t *at; /* borrowed */
    size_t left;
    bool is_bad;
};

static struct reader reader_of(struct slice bytes)
{
    return (struct reader){ (const uint8_t *)bytes.at, bytes.byte_count, false };
}

static inline const uint8_t *take_bytes(struct reader *reader, size_t byte_count)
{
    if (reader->is_bad || byte_count > reader->left) {
        reader->is_bad = true;
        return NULL;
    }
    const uint8_t *at = reader->at;
    reader->at += byte_count;
    reader->left -= byte_count;
    return at;
}

static inline uint64_t take_number(struct reader *reader, size_t byte_count)
{
    const uint8_t *at = take_bytes(reader, byte_count);
    uint64_t number = 0;
    if (at == NULL)
        return 0;
    memcpy((uint8_t *)&number + (sizeof number - byte_count), at, byte_count);
    return be64toh(number);
}

static unsigned take_u8(struct reader *reader)
{
    return (unsigned)take_number(reader, 1);
}

static unsigned take_u16(struct reader *reader)
{
    return (unsigned)take_number(reader, 2);
}

static uint32_t take_u32(struct reader *reader)
{
    return (uint32_t)take_number(reader, 4);
}

static uint64_t take_u64(struct reader *reader)
{
    return take_number(reader, 8);
}

/* An offset, or -1 where there is none. */
static int64_t take_offset(struct reader *reader, int64_t lowest)
{
    uint64_t number = take_number(reader, 8);
    if ((int64_t)number < lowest)
        reader->is_bad = true;
    return (int64_t)number;
}

/* No number of ours comes near the highest: whoever goes from one to the next need not fear to begin anew. */
static uint64_t take_id(struct reader *reader)
{
    return (uint64_t)take_offset(reader, 0);
}

static void take_text(struct reader *reader, size_t byte_count, char text[], size_t room)
{
    const uint8_t *at = byte_count < room ? take_bytes(reader, byte_count) : NULL;
    text[0] = '\0';
    if (at == NULL || memchr(at, '\0', byte_count) != NULL) {
        reader->is_bad = true;
        return;
    }
    memcpy(text, at, byte_count);
    text[byte_count] = '\0';
}

static bool is_read(const struct reader *reader)
{
    return !reader->is_bad && reader->left == 0;
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static struct writer key_begin(struct key *key, enum table table)
{
    struct writer writer = { key->bytes, sizeof key->bytes, 0 };
    put_u8(&writer, table);
    return writer;
}

struct key key_meta(enum meta_name name)
{
    struct key key;
    struct writer writer = key_begin(&key, TABLE_META);
    put_u8(&writer, name);
    key.byte_count = writer.used;
    return key;
}

struct key key_part(struct slice topic, int32_t partition)
{
    struct key key;
    struct writer writer = key_begin(&key, TABLE_PART);
    put_bytes(&writer, topic.at, topic.byte_count);
    put_u8(&writer, 0); /* no topic has it: "a" and its neighbours stand before "ab" */
    put_u32(&writer, (uint32_t)partition);
    key.byte_count = writer.used;
    return key;
}

struct key key_pair(enum table table, uint32_t pid, uint64_t number)
{
    struct key key;
    struct writer writer = key_begin(&key, table);
    put_u32(&writer, pid);
    put_u64(&writer, number);
    key.byte_count = writer.used;
    return key;
}

struct key key_number(enum table table, uint64_t number)
{
    struct key key;
    struct writer writer = key_begin(&key, table);
    put_u64(&writer, number);
    key.byte_count = writer.used;
    return key;
}

bool key_is_of(struct slice key, enum table table)
{
    return key.byte_count > 0 && (uint8_t)key.at[0] == table;
}

bool key_read_part(struct slice key, struct slice *ret_topic, int32_t *ret_partition)
{
    if (!key_is_of(key, TABLE_PART) || key.byte_count < 1 + 1 + 1 + 4)
        return false;
    struct slice topic = slice_of(key.at + 1, key.byte_count - 6);
    struct reader reader = reader_of(slice_of(key.at + 1 + topic.byte_count, 5));
    unsigned end = take_u8(&reader);
    uint32_t partition = take_u32(&reader);
    *ret_topic = topic;
    *ret_partition = (int32_t)partition;
    return end == 0 && partition <= INT32_MAX && topic_is_legal(topic);
}

bool key_read_pair(struct slice key, enum table table, uint32_t *ret_pid, uint64_t *ret_number)
{
    struct reader reader = reader_of(key);
    unsigned first = take_u8(&reader);
    *ret_pid = take_u32(&reader);
    *ret_number = take_id(&reader);
    return is_read(&reader) && first == (unsigned)table;
}

bool key_read_number(struct slice key, enum table table, uint64_t *ret_number)
{
    struct reader reader = reader_of(key);
    unsigned first = take_u8(&reader);
    *ret_number = take_id(&reader);
    return is_read(&reader) && first == (unsigned)table;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

void store_row_write(const struct store_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, row->format);
    put_bytes(&writer, row->id, STORE_ID_CHARS);
    put_u64(&writer, row->created_ms);
    put_u64(&writer, row->boot_count);
    put_bytes(&writer, row->scope, strlen(row->scope));
    ret_value->byte_count = writer.used;
}

bool store_row_read(struct slice value, struct store_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->format = take_u32(&reader);
    if (!reader.is_bad && ret_row->format != FORMAT_VERSION)
        return true; /* what follows is another format's: the caller refuses by the number */
    take_text(&reader, STORE_ID_CHARS, ret_row->id, sizeof ret_row->id);
    ret_row->created_ms = take_u64(&reader);
    ret_row->boot_count = take_u64(&reader);
    take_text(&reader, reader.left, ret_row->scope, sizeof ret_row->scope);
    return is_read(&reader);
}

bool target_row_read(struct slice value, struct store_row *ret_row)
{
    struct reader reader = reader_of(value);
    take_text(&reader, reader.left, ret_row->target, sizeof ret_row->target);
    return is_read(&reader) && ret_row->target[0] != '\0';
}

void counters_row_write(const struct counters_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, row->next_pid);
    put_u64(&writer, row->next_doubt_id);
    put_u64(&writer, row->next_event_id);
    put_u64(&writer, row->next_conflict_id);
    put_u64(&writer, row->next_replay_id);
    put_u64(&writer, row->ring_first);
    put_u64(&writer, row->ring_next);
    put_u64(&writer, row->probe_count);
    ret_value->byte_count = writer.used;
}

bool counters_row_read(struct slice value, struct counters_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->next_pid = take_u32(&reader);
    ret_row->next_doubt_id = take_id(&reader);
    ret_row->next_event_id = take_id(&reader);
    ret_row->next_conflict_id = take_id(&reader);
    ret_row->next_replay_id = take_id(&reader);
    ret_row->ring_first = take_id(&reader);
    ret_row->ring_next = take_id(&reader);
    ret_row->probe_count = take_u64(&reader);
    return is_read(&reader) && ret_row->next_pid > 0 && ret_row->ring_first <= ret_row->ring_next;
}

void part_row_write(const struct part_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, row->pid);
    put_u32(&writer, row->generation);
    put_offset(&writer, row->seen_first);
    put_offset(&writer, row->lowest);
    put_offset(&writer, row->highest);
    put_u64(&writer, row->applied_count);
    put_u64(&writer, row->interval_count);
    put_u64(&writer, row->folded_to);
    put_u64(&writer, row->swept_to);
    put_u64(&writer, row->last_ms);
    put_u64(&writer, row->conflict_id);
    ret_value->byte_count = writer.used;
}

bool part_row_read(struct slice value, struct part_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->pid = take_u32(&reader);
    ret_row->generation = take_u32(&reader);
    ret_row->seen_first = take_offset(&reader, -1);
    ret_row->lowest = take_offset(&reader, -1);
    ret_row->highest = take_offset(&reader, -1);
    ret_row->applied_count = take_u64(&reader);
    ret_row->interval_count = take_u64(&reader);
    ret_row->folded_to = take_u64(&reader);
    ret_row->swept_to = take_u64(&reader);
    ret_row->last_ms = take_u64(&reader);
    ret_row->conflict_id = take_u64(&reader);
    bool is_empty = ret_row->highest == -1;
    return is_read(&reader) && ret_row->pid > 0 && ret_row->lowest <= ret_row->highest &&
           is_empty == (ret_row->lowest == -1) && is_empty == (ret_row->seen_first == -1) &&
           is_empty == (ret_row->applied_count == 0);
}

void full_row_write(const struct full_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u64(&writer, row->last);
    put_offset(&writer, row->from);
    put_u64(&writer, row->gap_count);
    ret_value->byte_count = writer.used;
}

bool full_row_read(struct slice value, uint64_t first, struct full_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->last = take_u64(&reader);
    ret_row->from = take_offset(&reader, 0);
    ret_row->gap_count = take_u64(&reader);
    return is_read(&reader) && first <= ret_row->last && ret_row->last <= (uint64_t)INT64_MAX >> 16 &&
           (uint64_t)ret_row->from >> 16 == first;
}

void open_row_write(const struct open_row *row, int64_t first, const record_mark marks[],
                    struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    int64_t count = row->last - first + 1;
    assert(count >= 1 && count <= OPEN_RECORDS_MAX);
    put_offset(&writer, row->last);
    put_u8(&writer, row->state);
    put_u8(&writer, row->cause);
    put_u64(&writer, row->claim_id);
    put_u64(&writer, row->id);
    put_u64(&writer, row->boot);
    put_u64(&writer, row->since_ms);
    put_u32(&writer, row->attempts);
    put_u64(&writer, row->replay_id);
    put_u8(&writer, row->has_contexts);
    put_short_text(&writer, row->detail);
    for (int64_t i = 0; marks != NULL && i < count; i++)
        put_u32(&writer, marks[i]);
    ret_value->byte_count = writer.used;
}

bool open_row_read(struct slice value, int64_t first, struct open_row *ret_row, bool *ret_has_marks,
                   record_mark ret_marks[])
{
    struct reader reader = reader_of(value);
    ret_row->last = take_offset(&reader, 0);
    unsigned state = take_u8(&reader), cause = take_u8(&reader);
    ret_row->claim_id = take_u64(&reader);
    ret_row->id = take_u64(&reader);
    ret_row->boot = take_u64(&reader);
    ret_row->since_ms = take_u64(&reader);
    ret_row->attempts = take_u32(&reader);
    ret_row->replay_id = take_u64(&reader);
    unsigned has_contexts = take_u8(&reader);
    take_text(&reader, take_u8(&reader), ret_row->detail, sizeof ret_row->detail);
    if (reader.is_bad || first < 0 || ret_row->last < first || ret_row->last - first >= OPEN_RECORDS_MAX ||
        (state != OPEN_INTENT && state != OPEN_IN_DOUBT) || cause >= DOUBT_COUNT || has_contexts > 1)
        return false;
    ret_row->state = (enum open_state)state;
    ret_row->cause = (enum doubt_cause)cause;
    ret_row->has_contexts = has_contexts == 1;
    *ret_has_marks = reader.left > 0;
    for (int64_t i = 0; *ret_has_marks && i <= ret_row->last - first; i++)
        ret_marks[i] = take_u32(&reader);
    return is_read(&reader);
}

bool marks_is_block(struct slice value)
{
    return value.byte_count == MARK_BLOCK_BYTES;
}

record_mark marks_get(const char block[MARK_BLOCK_BYTES], size_t index)
{
    uint32_t number;
    assert(index < MARK_BLOCK_OFFSETS);
    memcpy(&number, &block[index * sizeof number], sizeof number);
    return be32toh(number);
}

void marks_set(char block[MARK_BLOCK_BYTES], size_t index, record_mark mark)
{
    uint32_t number = htobe32(mark);
    assert(index < MARK_BLOCK_OFFSETS);
    memcpy(&block[index * sizeof number], &number, sizeof number);
}

void sample_write(int64_t offset, record_mark mark, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_offset(&writer, offset);
    put_u32(&writer, mark);
    ret_value->byte_count = writer.used;
}

bool sample_read(struct slice value, int64_t *ret_offset, record_mark *ret_mark)
{
    struct reader reader = reader_of(value);
    *ret_offset = take_offset(&reader, 0);
    *ret_mark = take_u32(&reader);
    return is_read(&reader);
}

size_t reply_row_write(const struct reply_row *row, uint8_t bytes[])
{
    struct slice type = row->reply.content_type, body = row->reply.body;
    struct writer writer = { bytes, REPLY_HEAD_BYTES + type.byte_count + body.byte_count, 0 };
    assert(type.byte_count <= REPLY_TYPE_BYTES_MAX);
    put_u64(&writer, row->sequence);
    put_u16(&writer, (unsigned)row->reply.status);
    put_u16(&writer, (unsigned)type.byte_count);
    put_bytes(&writer, type.at, type.byte_count);
    put_bytes(&writer, body.at, body.byte_count);
    return writer.used;
}

bool reply_row_read(struct slice value, struct reply_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->sequence = take_u64(&reader);
    ret_row->reply.status = (int)take_u16(&reader);
    size_t type_bytes = take_u16(&reader);
    const uint8_t *type = take_bytes(&reader, type_bytes);
    if (reader.is_bad || type_bytes > REPLY_TYPE_BYTES_MAX || ret_row->reply.status < 100 ||
        ret_row->reply.status > 599)
        return false;
    ret_row->reply.content_type = slice_of((const char *)type, type_bytes);
    ret_row->reply.body = slice_of((const char *)reader.at, reader.left);
    return true;
}

void ring_write(uint32_t pid, int64_t offset, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, pid);
    put_offset(&writer, offset);
    ret_value->byte_count = writer.used;
}

bool ring_read(struct slice value, uint32_t *ret_pid, int64_t *ret_offset)
{
    struct reader reader = reader_of(value);
    *ret_pid = take_u32(&reader);
    *ret_offset = take_offset(&reader, 0);
    return is_read(&reader);
}

void event_row_write(const struct event_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u64(&writer, row->time_ms);
    put_u8(&writer, row->kind);
    put_u32(&writer, (uint32_t)row->partition);
    put_offset(&writer, row->first);
    put_offset(&writer, row->last);
    put_short_text(&writer, row->topic);
    put_short_text(&writer, row->detail);
    ret_value->byte_count = writer.used;
}

bool event_row_read(uint64_t id, struct slice value, struct event_row *ret_row)
{
    struct reader reader = reader_of(value);
    ret_row->id = id;
    ret_row->time_ms = take_u64(&reader);
    unsigned kind = take_u8(&reader);
    ret_row->partition = (int32_t)take_u32(&reader);
    ret_row->first = take_offset(&reader, -1);
    ret_row->last = take_offset(&reader, -1);
    take_text(&reader, take_u8(&reader), ret_row->topic, sizeof ret_row->topic);
    take_text(&reader, take_u8(&reader), ret_row->detail, sizeof ret_row->detail);
    ret_row->kind = (enum event_kind)kind;
    return is_read(&reader) && kind < EVENT_KIND_COUNT;
}

void conflict_row_write(const struct conflict_row *row, uint32_t pid, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, pid);
    put_u32(&writer, (uint32_t)row->partition);
    put_offset(&writer, row->offset);
    put_u32(&writer, row->stored);
    put_u32(&writer, row->seen);
    put_u64(&writer, row->since_ms);
    put_u64(&writer, row->count);
    put_u8(&writer, (row->is_first_sight ? 1u : 0u) | (row->is_tail ? 2u : 0u));
    put_bytes(&writer, row->topic, strlen(row->topic));
    ret_value->byte_count = writer.used;
}

bool conflict_row_read(uint64_t id, struct slice value, struct conflict_row *ret_row, uint32_t *ret_pid)
{
    struct reader reader = reader_of(value);
    ret_row->id = id;
    *ret_pid = take_u32(&reader);
    ret_row->partition = (int32_t)take_u32(&reader);
    ret_row->offset = take_offset(&reader, 0);
    ret_row->stored = take_u32(&reader);
    ret_row->seen = take_u32(&reader);
    ret_row->since_ms = take_u64(&reader);
    ret_row->count = take_u64(&reader);
    unsigned flags = take_u8(&reader);
    take_text(&reader, reader.left, ret_row->topic, sizeof ret_row->topic);
    ret_row->is_first_sight = (flags & 1) != 0;
    ret_row->is_tail = (flags & 2) != 0;
    return is_read(&reader) && flags <= 2 && *ret_pid > 0 && ret_row->partition >= 0;
}

void replay_row_write(const struct replay_row *row, const struct part_row *sent, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, sent->pid);
    put_u32(&writer, (uint32_t)row->partition);
    put_offset(&writer, row->first);
    put_offset(&writer, row->last);
    put_u64(&writer, row->opened_ms);
    put_u64(&writer, row->until_ms);
    put_offset(&writer, sent->lowest);
    put_offset(&writer, sent->highest);
    put_u64(&writer, sent->applied_count);
    put_u64(&writer, sent->interval_count);
    if (row->replayed_count != sent->applied_count) {
        put_u8(&writer, 0); /* no topic begins so */
        put_u64(&writer, row->replayed_count);
    }
    put_bytes(&writer, row->topic, strlen(row->topic));
    ret_value->byte_count = writer.used;
}

/* Where it is left out, all were sent again. */
static uint64_t take_replayed_count(struct reader *reader, uint64_t sent_count)
{
    if (reader->is_bad || reader->left == 0 || reader->at[0] != 0)
        return sent_count;
    (void)take_u8(reader);
    uint64_t count = take_u64(reader);
    reader->is_bad = reader->is_bad || count >= sent_count;
    return count;
}

bool replay_row_read(uint64_t id, struct slice value, struct replay_row *ret_row, struct part_row *ret_sent)
{
    struct reader reader = reader_of(value);
    *ret_sent = (struct part_row){ .pid = take_u32(&reader) };
    uint32_t partition = take_u32(&reader);
    ret_row->id = id;
    ret_row->partition = (int32_t)partition;
    ret_row->first = take_offset(&reader, 0);
    ret_row->last = take_offset(&reader, 0);
    ret_row->opened_ms = take_u64(&reader);
    ret_row->until_ms = take_u64(&reader);
    ret_sent->lowest = ret_sent->seen_first = take_offset(&reader, -1);
    ret_sent->highest = take_offset(&reader, -1);
    ret_sent->applied_count = take_u64(&reader);
    ret_sent->interval_count = take_u64(&reader);
    ret_row->replayed_count = take_replayed_count(&reader, ret_sent->applied_count);
    take_text(&reader, reader.left, ret_row->topic, sizeof ret_row->topic);
    bool is_empty = ret_sent->highest == -1;
    return is_read(&reader) && ret_sent->pid > 0 && partition <= INT32_MAX &&
           ret_row->first <= ret_row->last && is_empty == (ret_sent->lowest == -1) &&
           is_empty == (ret_sent->applied_count == 0) && ret_sent->lowest <= ret_sent->highest &&
           topic_is_legal(slice_of_text(ret_row->topic));
}

void past_row_write(const struct past_row *row, struct value *ret_value)
{
    struct writer writer = writer_of(ret_value);
    put_u32(&writer, (uint32_t)row->partition);
    put_u32(&writer, row->generation);
    put_bytes(&writer, row->topic, strlen(row->topic));
    ret_value->byte_count = writer.used;
}

bool past_row_read(struct slice value, struct past_row *ret_row)
{
    struct reader reader = reader_of(value);
    uint32_t partition = take_u32(&reader);
    ret_row->partition = (int32_t)partition;
    ret_row->generation = take_u32(&reader);
    take_text(&reader, reader.left, ret_row->topic, sizeof ret_row->topic);
    return is_read(&reader) && partition <= INT32_MAX;
}
