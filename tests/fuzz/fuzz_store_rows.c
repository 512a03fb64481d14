/*
 * fuzz_store_rows.c - any bytes as a row of the ledger: refused, or read as something that is written as the same bytes.
 *
 * The first byte chooses the table, the next eight are the number in the row's key.
 */
#include "format.h"
#include "fuzz.h"

enum { HEADER_BYTES = 9, REPLY_BYTES = REPLY_HEAD_BYTES + 8192 };

static void assert_same(struct slice bytes, const struct value *again)
{
    assert(slice_equals(bytes, value_slice(again)));
}

static void check_meta(struct slice bytes)
{
    struct store_row row;
    struct counters_row counters;
    struct value again;
    if (store_row_read(bytes, &row) &&
        row.format == FORMAT_VERSION) { /* of another one only the number is read */
        store_row_write(&row, &again);
        assert_same(bytes, &again);
    }
    if (counters_row_read(bytes, &counters)) {
        counters_row_write(&counters, &again);
        assert_same(bytes, &again);
    }
}

static void check_part(struct slice bytes)
{
    struct part_row row;
    struct value again;
    if (!part_row_read(bytes, &row))
        return;
    assert(row.lowest >= -1 && row.lowest <= row.highest && row.seen_first >= -1);
    part_row_write(&row, &again);
    assert_same(bytes, &again);
}

static void check_full(struct slice bytes, uint64_t first)
{
    struct full_row row;
    struct value again;
    if (!full_row_read(bytes, first, &row))
        return;
    assert(row.last >= first && row.from >= 0);
    full_row_write(&row, &again);
    assert_same(bytes, &again);
}

static void check_open(struct slice bytes, int64_t first)
{
    struct open_row row;
    struct value again;
    bool has_marks;
    record_mark marks[OPEN_RECORDS_MAX];
    if (!open_row_read(bytes, first, &row, &has_marks, marks))
        return;
    assert(row.last >= first && row.last - first < OPEN_RECORDS_MAX && first >= 0);
    open_row_write(&row, first, has_marks ? marks : NULL, &again);
    assert_same(bytes, &again);
}

static void check_marks(struct slice bytes)
{
    struct value again;
    int64_t offset;
    record_mark mark;
    if (marks_is_block(bytes))
        assert(bytes.byte_count == MARK_BLOCK_BYTES);
    if (!sample_read(bytes, &offset, &mark))
        return;
    sample_write(offset, mark, &again);
    assert_same(bytes, &again);
}

static void check_reply(struct slice bytes)
{
    struct reply_row row;
    uint8_t again[REPLY_BYTES];
    if (bytes.byte_count > sizeof again || !reply_row_read(bytes, &row))
        return;
    assert_inside(row.reply.content_type, bytes.at, bytes.byte_count);
    assert_inside(row.reply.body, bytes.at, bytes.byte_count);
    size_t byte_count = reply_row_write(&row, again);
    assert(slice_equals(bytes, slice_of((const char *)again, byte_count)));
}

static void check_ring(struct slice bytes)
{
    struct value again;
    uint32_t pid;
    int64_t offset;
    if (!ring_read(bytes, &pid, &offset))
        return;
    assert(offset >= 0);
    ring_write(pid, offset, &again);
    assert_same(bytes, &again);
}

static void check_told(struct slice bytes, uint64_t id)
{
    struct event_row event;
    struct conflict_row conflict;
    struct value again;
    uint32_t pid;
    if (event_row_read(id, bytes, &event)) {
        assert(strlen(event.topic) <= TOPIC_BYTES_MAX && event.kind < EVENT_KIND_COUNT);
        event_row_write(&event, &again);
        assert_same(bytes, &again);
    }
    if (conflict_row_read(id, bytes, &conflict, &pid)) {
        assert(strlen(conflict.topic) <= TOPIC_BYTES_MAX && conflict.offset >= 0);
        conflict_row_write(&conflict, pid, &again);
        assert_same(bytes, &again);
    }
}

static void check_windows(struct slice bytes, uint64_t id)
{
    struct replay_row replay;
    struct past_row past;
    struct part_row sent = { 0 };
    struct value again;
    if (replay_row_read(id, bytes, &replay, &sent)) {
        assert(replay.first >= 0 && replay.first <= replay.last);
        replay_row_write(&replay, &sent, &again);
        assert_same(bytes, &again);
    }
    if (past_row_read(bytes, &past)) {
        past_row_write(&past, &again);
        assert_same(bytes, &again);
    }
}

/* A key that reads as one of its table is the one that its parts make. */
static void check_key(struct slice key)
{
    struct slice topic;
    int32_t partition;
    uint32_t pid;
    uint64_t number;
    if (key_read_part(key, &topic, &partition)) {
        struct key again = key_part(topic, partition);
        assert(slice_equals(key, key_slice(&again)));
    }
    for (enum table table = TABLE_META; table <= TABLE_PAST; table++) {
        if (key_read_pair(key, table, &pid, &number)) {
            struct key again = key_pair(table, pid, number);
            assert(key_is_of(key, table) && slice_equals(key, key_slice(&again)));
        }
        if (key_read_number(key, table, &number)) {
            struct key again = key_number(table, number);
            assert(key_is_of(key, table) && slice_equals(key, key_slice(&again)));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    uint64_t number = 0;
    if (input_bytes < HEADER_BYTES)
        return 0;
    for (size_t i = 1; i < HEADER_BYTES; i++)
        number = number << 8 | input[i];
    struct slice bytes = slice_of((const char *)input + HEADER_BYTES, input_bytes - HEADER_BYTES);
    switch (input[0] % 10) {
    case 0:
        check_meta(bytes);
        break;
    case 1:
        check_part(bytes);
        break;
    case 2:
        check_full(bytes, number);
        break;
    case 3:
        check_open(bytes, (int64_t)(number & INT64_MAX));
        break;
    case 4:
        check_marks(bytes);
        break;
    case 5:
        check_reply(bytes);
        break;
    case 6:
        check_ring(bytes);
        break;
    case 7:
        check_told(bytes, number);
        break;
    case 8:
        check_windows(bytes, number);
        break;
    default:
        check_key(bytes);
    }
    return 0;
}
