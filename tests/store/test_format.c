/*
 * test_format.c - the bytes on disk: what is written is read back, and what cannot be is refused.
 */
#include "format.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static struct value value;

/* Every shorter form of a value must be refused; the row is ROW's, and READ is its reader. */
#define ASSERT_CUTS_ARE_REFUSED(read)                                                                        \
    do {                                                                                                     \
        size_t whole = value.byte_count;                                                                     \
        for (size_t cut = 0; cut < whole; cut++) {                                                           \
            value.byte_count = cut;                                                                          \
            assert_false(read);                                                                              \
        }                                                                                                    \
        value.byte_count = whole;                                                                            \
    } while (0)

static void test_keys_are_in_the_order_of_their_numbers(void **state)
{
    static const uint64_t numbers[] = { 0, 1, 255, 256, 65535, 1ull << 32, INT64_MAX };
    (void)state;
    for (size_t i = 1; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct key lower = key_pair(TABLE_RUNS, 7, numbers[i - 1]),
                   higher = key_pair(TABLE_RUNS, 7, numbers[i]);
        assert_int_equal(lower.byte_count, higher.byte_count);
        assert_true(memcmp(lower.bytes, higher.bytes, lower.byte_count) < 0);
    }
    struct key end_of_7 = key_pair(TABLE_RUNS, 7, UINT64_MAX), begin_of_8 = key_pair(TABLE_RUNS, 8, 0);
    assert_true(memcmp(end_of_7.bytes, begin_of_8.bytes, end_of_7.byte_count) < 0);
}

static void test_L12_the_longest_topic_makes_a_key_that_the_database_takes(void **state)
{
    char topic[TOPIC_BYTES_MAX];
    struct slice found;
    int32_t partition;
    (void)state;
    memset(topic, 'x', sizeof topic);
    struct key key = key_part(slice_of(topic, sizeof topic), INT32_MAX);
    assert_true(key.byte_count <= 511);
    assert_true(key_read_part(key_slice(&key), &found, &partition));
    assert_int_equal(found.byte_count, TOPIC_BYTES_MAX);
    assert_int_equal(partition, INT32_MAX);
}

static void test_a_key_of_another_table_is_refused(void **state)
{
    struct key key = key_pair(TABLE_RUNS, 7, 9);
    uint32_t pid;
    uint64_t number;
    struct slice topic;
    int32_t partition;
    (void)state;
    assert_true(key_read_pair(key_slice(&key), TABLE_RUNS, &pid, &number));
    assert_int_equal(pid, 7);
    assert_int_equal(number, 9);
    assert_false(key_read_pair(key_slice(&key), TABLE_FULL, &pid, &number));
    assert_false(key_read_number(key_slice(&key), TABLE_RUNS, &number));
    assert_false(key_read_part(key_slice(&key), &topic, &partition));
    assert_false(key_read_pair(slice_of(NULL, 0), TABLE_RUNS, &pid, &number));
}

static void test_a_topic_that_kafka_would_refuse_is_refused(void **state)
{
    struct slice topic;
    int32_t partition;
    (void)state;
    struct key key = key_part(slice_of_text("a/b"), 1);
    assert_false(key_read_part(key_slice(&key), &topic, &partition));
    key = key_part(slice_of_text("a"), -1);
    assert_false(key_read_part(key_slice(&key), &topic, &partition));
}

static void test_the_store_row_comes_back(void **state)
{
    struct store_row
        row = { FORMAT_VERSION, "0123456789abcdef0123456789abcdef", 1700000000000, 12, "a->b", "" },
        read;
    (void)state;
    store_row_write(&row, &value);
    assert_true(store_row_read(value_slice(&value), &read));
    assert_string_equal(read.id, row.id);
    assert_string_equal(read.scope, "a->b");
    assert_int_equal(read.boot_count, 12);
    assert_int_equal(read.created_ms, row.created_ms);
    value.byte_count = 4 + STORE_ID_CHARS + 15;
    assert_false(store_row_read(value_slice(&value), &read));
}

static void test_the_name_of_the_target_is_whole_or_refused(void **state)
{
    static char long_name[TARGET_BYTES_MAX + 1];
    struct store_row read;
    (void)state;
    assert_true(target_row_read(slice_of_text("https://a.example/x"), &read));
    assert_string_equal(read.target, "https://a.example/x");
    assert_false(target_row_read(slice_of_text(""), &read));
    assert_false(target_row_read(slice_of("a\0b", 3), &read));
    memset(long_name, 'a', sizeof long_name);
    assert_true(target_row_read(slice_of(long_name, TARGET_BYTES_MAX), &read));
    assert_false(target_row_read(slice_of(long_name, sizeof long_name), &read));
    assert_string_equal(read.target, "");
}

static void test_L15_another_format_is_known_by_its_number_alone(void **state)
{
    static const char bytes[] = { 0, 0, 0, 9, 'x' };
    struct store_row read;
    (void)state;
    assert_true(store_row_read(slice_of(bytes, sizeof bytes), &read));
    assert_int_equal(read.format, 9);
}

static void test_a_partition_row_comes_back_and_is_checked(void **state)
{
    struct part_row row = { 1, 2, 30, 3, 40, 12, 2, 5, 6, 7, 8 }, read;
    (void)state;
    part_row_write(&row, &value);
    assert_true(part_row_read(value_slice(&value), &read));
    assert_memory_equal(&row, &read, sizeof row);
    ASSERT_CUTS_ARE_REFUSED(part_row_read(value_slice(&value), &read));
    row.lowest = 41; /* above the highest */
    part_row_write(&row, &value);
    assert_false(part_row_read(value_slice(&value), &read));
    row.lowest = -1; /* empty, and not */
    part_row_write(&row, &value);
    assert_false(part_row_read(value_slice(&value), &read));
}

static void test_an_interval_row_comes_back_and_is_checked(void **state)
{
    struct full_row row = { 9, 5 * 65536 + 17, 4 }, read;
    (void)state;
    full_row_write(&row, &value);
    assert_true(full_row_read(value_slice(&value), 5, &read));
    assert_int_equal(read.last, 9);
    assert_int_equal(read.from, row.from);
    assert_int_equal(read.gap_count, 4);
    assert_false(full_row_read(value_slice(&value), 6, &read));  /* begins before its key */
    assert_false(full_row_read(value_slice(&value), 10, &read)); /* ends before it begins */
    ASSERT_CUTS_ARE_REFUSED(full_row_read(value_slice(&value), 5, &read));
}

static void test_an_open_row_comes_back_with_and_without_marks(void **state)
{
    static record_mark marks[OPEN_RECORDS_MAX], read_marks[OPEN_RECORDS_MAX];
    struct open_row read, row = { .last = 100 + OPEN_RECORDS_MAX - 1,
                                  .state = OPEN_IN_DOUBT,
                                  .cause = DOUBT_STATUS,
                                  .claim_id = 1,
                                  .id = 2,
                                  .boot = 3,
                                  .since_ms = 4,
                                  .attempts = 5 };
    bool has_marks;
    (void)state;
    memset(row.detail, 'd', DETAIL_BYTES_MAX);
    for (uint32_t i = 0; i < OPEN_RECORDS_MAX; i++)
        marks[i] = i * 3 + 1;
    open_row_write(&row, 100, marks, &value);
    assert_true(open_row_read(value_slice(&value), 100, &read, &has_marks, read_marks));
    assert_true(has_marks);
    assert_memory_equal(marks, read_marks, sizeof marks);
    assert_string_equal(read.detail, row.detail);
    assert_int_equal(read.cause, DOUBT_STATUS);
    assert_int_equal(read.attempts, 5);
    open_row_write(&row, 100, NULL, &value);
    assert_true(open_row_read(value_slice(&value), 100, &read, &has_marks, read_marks));
    assert_false(has_marks);
    ASSERT_CUTS_ARE_REFUSED(open_row_read(value_slice(&value), 100, &read, &has_marks, read_marks));
    assert_false(open_row_read(value_slice(&value), 99, &read, &has_marks, read_marks)); /* one too long */
    value.bytes[8] = 7;                                                                  /* no such state */
    assert_false(open_row_read(value_slice(&value), 100, &read, &has_marks, read_marks));
}

static void test_an_answer_comes_back(void **state)
{
    uint8_t bytes[64];
    struct reply_row read, row = { 77, { 201, slice_of_text("text/plain"), slice_of_text("hello") } };
    (void)state;
    size_t byte_count = reply_row_write(&row, bytes);
    assert_true(reply_row_read(slice_of((const char *)bytes, byte_count), &read));
    assert_int_equal(read.sequence, 77);
    assert_int_equal(read.reply.status, 201);
    assert_true(slice_equals_text(read.reply.content_type, "text/plain"));
    assert_true(slice_equals_text(read.reply.body, "hello"));
    assert_false(reply_row_read(slice_of((const char *)bytes, 11), &read));
    bytes[8] = 0xFF; /* a status that is none */
    assert_false(reply_row_read(slice_of((const char *)bytes, byte_count), &read));
}

static void test_an_event_comes_back(void **state)
{
    struct event_row read, row = { .id = 5,
                                   .time_ms = 6,
                                   .kind = EVENT_RESOLVED,
                                   .topic = "orders",
                                   .partition = -1,
                                   .first = -1,
                                   .last = 9,
                                   .detail = "because" };
    (void)state;
    event_row_write(&row, &value);
    assert_true(event_row_read(5, value_slice(&value), &read));
    assert_string_equal(read.topic, "orders");
    assert_string_equal(read.detail, "because");
    assert_int_equal(read.partition, -1);
    assert_int_equal(read.first, -1);
    assert_int_equal(read.kind, EVENT_RESOLVED);
    ASSERT_CUTS_ARE_REFUSED(event_row_read(5, value_slice(&value), &read));
}

static void test_a_conflict_comes_back(void **state)
{
    struct conflict_row read, row = { .id = 5,
                                      .topic = "orders",
                                      .partition = 3,
                                      .offset = 9,
                                      .stored = 1,
                                      .seen = 3,
                                      .since_ms = 4,
                                      .count = 6,
                                      .is_first_sight = true };
    uint32_t pid;
    (void)state;
    conflict_row_write(&row, 12, &value);
    assert_true(conflict_row_read(5, value_slice(&value), &read, &pid));
    assert_int_equal(pid, 12);
    assert_string_equal(read.topic, "orders");
    assert_int_equal(read.seen, 3);
    assert_true(read.is_first_sight);
    value.byte_count = 30;
    assert_false(conflict_row_read(5, value_slice(&value), &read, &pid));
}

static void test_a_window_row_comes_back_and_is_checked(void **state)
{
    struct replay_row row = { .id = 7,
                              .topic = "orders",
                              .partition = 3,
                              .first = 10,
                              .last = INT64_MAX,
                              .opened_ms = 1,
                              .until_ms = UINT64_MAX },
                      read;
    struct part_row sent = { .pid = 9, .lowest = 11, .highest = 20, .applied_count = 4, .interval_count = 2 },
                    read_sent;
    (void)state;
    for (row.replayed_count = 0; row.replayed_count < 4; row.replayed_count++) {
        replay_row_write(&row, &sent, &value);
        assert_true(replay_row_read(7, value_slice(&value), &read, &read_sent));
        assert_int_equal(read.replayed_count, row.replayed_count);
        assert_string_equal(read.topic, "orders");
    }
    row.replayed_count = 5; /* more than there are */
    replay_row_write(&row, &sent, &value);
    assert_false(replay_row_read(7, value_slice(&value), &read, &read_sent));
    row.replayed_count = 4;
    replay_row_write(&row, &sent, &value);
    assert_true(replay_row_read(7, value_slice(&value), &read, &read_sent));
    assert_string_equal(read.topic, "orders");
    assert_int_equal(read.partition, 3);
    assert_true(read.first == row.first && read.last == row.last && read.until_ms == row.until_ms);
    assert_int_equal(read.replayed_count, 4);
    assert_int_equal(read_sent.pid, 9);
    assert_true(read_sent.lowest == 11 && read_sent.highest == 20 && read_sent.interval_count == 2);
    value.byte_count -= strlen("orders"); /* what is left has no topic */
    assert_false(replay_row_read(7, value_slice(&value), &read, &read_sent));
    ASSERT_CUTS_ARE_REFUSED(replay_row_read(7, value_slice(&value), &read, &read_sent));
    sent.highest = -1; /* empty, and not */
    replay_row_write(&row, &sent, &value);
    assert_false(replay_row_read(7, value_slice(&value), &read, &read_sent));
    sent.highest = 20;
    row.last = 9; /* before its first */
    replay_row_write(&row, &sent, &value);
    assert_false(replay_row_read(7, value_slice(&value), &read, &read_sent));
}

static void test_an_ended_history_comes_back(void **state)
{
    struct past_row row = { "orders", 3, 2 }, read;
    (void)state;
    past_row_write(&row, &value);
    assert_true(past_row_read(value_slice(&value), &read));
    assert_string_equal(read.topic, "orders");
    assert_int_equal(read.partition, 3);
    assert_int_equal(read.generation, 2);
    value.byte_count = 7;
    assert_false(past_row_read(value_slice(&value), &read));
}

static void test_an_open_row_says_whether_it_is_sent_again_and_has_contexts(void **state)
{
    struct open_row row = { .last = 12, .state = OPEN_INTENT, .replay_id = 77, .has_contexts = true }, read;
    record_mark marks[OPEN_RECORDS_MAX];
    bool has_marks;
    (void)state;
    open_row_write(&row, 10, NULL, &value);
    assert_true(open_row_read(value_slice(&value), 10, &read, &has_marks, marks));
    assert_int_equal(read.replay_id, 77);
    assert_true(read.has_contexts);
    value.bytes[8 + 1 + 1 + 4 * 8 + 4 + 8] = 2; /* neither yes nor no */
    assert_false(open_row_read(value_slice(&value), 10, &read, &has_marks, marks));
}

static void test_a_conflict_is_of_one_kind(void **state)
{
    struct conflict_row row = { .id = 4, .topic = "orders", .partition = 1, .offset = 8, .is_tail = true },
                        read;
    uint32_t pid;
    (void)state;
    conflict_row_write(&row, 5, &value);
    assert_true(conflict_row_read(4, value_slice(&value), &read, &pid));
    assert_true(read.is_tail && !read.is_first_sight);
    row.is_first_sight = true;
    conflict_row_write(&row, 5, &value);
    assert_false(conflict_row_read(4, value_slice(&value), &read, &pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_in_the_order_of_their_numbers),
        cmocka_unit_test(test_L12_the_longest_topic_makes_a_key_that_the_database_takes),
        cmocka_unit_test(test_a_key_of_another_table_is_refused),
        cmocka_unit_test(test_a_topic_that_kafka_would_refuse_is_refused),
        cmocka_unit_test(test_the_store_row_comes_back),
        cmocka_unit_test(test_the_name_of_the_target_is_whole_or_refused),
        cmocka_unit_test(test_L15_another_format_is_known_by_its_number_alone),
        cmocka_unit_test(test_a_partition_row_comes_back_and_is_checked),
        cmocka_unit_test(test_an_interval_row_comes_back_and_is_checked),
        cmocka_unit_test(test_an_open_row_comes_back_with_and_without_marks),
        cmocka_unit_test(test_an_answer_comes_back),
        cmocka_unit_test(test_an_event_comes_back),
        cmocka_unit_test(test_a_conflict_comes_back),
        cmocka_unit_test(test_a_window_row_comes_back_and_is_checked),
        cmocka_unit_test(test_an_ended_history_comes_back),
        cmocka_unit_test(test_an_open_row_says_whether_it_is_sent_again_and_has_contexts),
        cmocka_unit_test(test_a_conflict_is_of_one_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
