/*
 * test_planted.c - rows that are wrong in one place each: whoever meets them says so, and takes none of them for true.
 *
 *     found when                         then
 *     the ledger is loaded               it is refused
 *     it is verified                     a line names the table, or the partition
 *     something needs the row            the transaction fails, and nothing is answered from it
 */
#include "busy.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "dump.h"
#include "verify.h"

enum { ROW_BYTES_MAX = 16384 };

struct row {
    char key[512], value[ROW_BYTES_MAX];
    size_t key_bytes, value_bytes;
};

static struct rows *rows; /* owned: the ledger that is damaged */

static int setup(void **state)
{
    (void)state;
    rows = busy_ledger();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rows_mem_free(rows);
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

static struct slice row_key(const struct row *row)
{
    return slice_of(row->key, row->key_bytes);
}

/* The row NTH of its table, from 0 on. */
static struct row row_of(enum table table, size_t nth)
{
    struct row row = { .key = { (char)table }, .key_bytes = 1 };
    struct slice key, value;
    for (size_t i = 0; i <= nth; i++) {
        assert_true(rows_seek(rows, slice_of(row.key, row.key_bytes), &key, &value));
        assert_int_equal((uint8_t)key.at[0], table);
        memcpy(row.key, key.at, key.byte_count);
        row.key[key.byte_count] = '\0'; /* the least key behind it */
        row.key_bytes = key.byte_count + 1;
    }
    row.key_bytes--;
    memcpy(row.value, value.at, value.byte_count);
    row.value_bytes = value.byte_count;
    return row;
}

static void put_row(const struct row *row)
{
    rows_put(rows, row_key(row), slice_of(row->value, row->value_bytes));
}

static void plant(const struct key *key, const void *value, size_t byte_count)
{
    rows_put(rows, key_slice(key), slice_of(value, byte_count));
}

static void plant_value(const struct key *key, const struct value *value)
{
    rows_put(rows, key_slice(key), value_slice(value));
}

/* ---- what is read when a ledger is loaded ------------------------------------------------------------------------- */

static bool is_refused(void)
{
    struct machine *machine = busy_begin(rows, 2);
    if (machine == NULL)
        return true;
    machine_end(machine);
    machine_free(machine);
    return false;
}

static void test_numbers_that_cannot_be_are_refused_when_the_ledger_is_loaded(void **state)
{
    static const struct {
        enum table table;
        size_t nth, at;
        uint8_t byte;
        const char *words;
    } changes[] = {
        { TABLE_META, 0, 0, 0x00, NULL }, /* a control: nothing is changed by it */
        { TABLE_META, 0, 4, 0x80, "the next doubt is above all numbers" },
        { TABLE_META, 0, 12, 0x80, "so is the next event" },
        { TABLE_META, 0, 20, 0x80, "the next conflict" },
        { TABLE_META, 0, 28, 0x80, "the next window" },
        { TABLE_META, 0, 36, 0x80, "the first answer that is kept" },
        { TABLE_META, 0, 36, 0x01, "it stands behind the next one" },
        { TABLE_META, 0, 44, 0x80, "the next answer" },
        { TABLE_PART, 0, 0, 0x70, "a history that was never begun" },
        { TABLE_PART, 0, 8, 0x80, "an offset below -1 was seen first" },
        { TABLE_PART, 0, 16, 0x80, "the lowest offset is below -1" },
        { TABLE_PART, 0, 16, 0x7f, "the lowest offset is above the highest" },
        { TABLE_PART, 0, 24, 0x80, "the highest offset is below -1" },
        { TABLE_OPEN, 0, 0, 0x7f, "an open range is longer than any" },
        { TABLE_OPEN, 0, 8, 0, "a state that there is not" },
        { TABLE_OPEN, 0, 8, 3, "another one" },
        { TABLE_OPEN, 0, 9, DOUBT_COUNT, "a cause that there is not" },
        { TABLE_OPEN, 0, 54, 2, "contexts are there or not" },
        { TABLE_OPEN, 0, 55, 96, "a detail that is too long" },
        { TABLE_REPLAYS, 0, 0, 0x70, "the set of a window is a history that was never begun" },
        { TABLE_REPLAYS, 0, 4, 0x80, "a window over a partition below 0" },
        { TABLE_REPLAYS, 0, 8, 0x7f, "a window that ends before it begins" },
        { TABLE_REPLAYS, 0, 16, 0x80, "a window that ends below 0" },
        { TABLE_REPLAYS, 0, 40, 0x7f, "the lowest that it has sent is above the highest" },
        { TABLE_REPLAYS, 0, 72, '/', "a topic that no broker takes" },
        { TABLE_REPLAYS, 0, 72, 'x', "a topic that was never met" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct row good = row_of(changes[i].table, changes[i].nth), bad = good;
        assert_true(changes[i].at < good.value_bytes);
        bad.value[changes[i].at] = (char)changes[i].byte;
        put_row(&bad);
        if (is_refused() != (changes[i].words != NULL))
            fail_msg("not noticed: %s", changes[i].words);
        rows_mem_begin(rows);
        put_row(&good);
    }
}

static void test_values_that_are_cut_are_refused_when_the_ledger_is_loaded(void **state)
{
    static const enum table tables[] = { TABLE_META, TABLE_PART, TABLE_OPEN, TABLE_REPLAYS };
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct row good = row_of(tables[i], 0), bad = good;
        bad.value_bytes = 20;
        put_row(&bad);
        assert_true(is_refused());
        rows_mem_begin(rows);
        put_row(&good);
    }
    assert_false(is_refused());
}

/* Of a table of its own: the row is there, and its name cannot be read. */
static void test_keys_that_cannot_be_read_are_refused_when_the_ledger_is_loaded(void **state)
{
    static const struct {
        const char *bytes;
        size_t byte_count;
    } keys[] = {
        { "\x02", 1 },
        { "\x02orders\0\xff\0\0\0", 12 },         /* partition below 0 */
        { "\x02orders\x01\0\0\0\0", 12 },         /* nothing between topic and number */
        { "\x02or/ers\0\0\0\0\0", 12 },           /* no topic */
        { "\x05\0\0\0\1\0", 6 },                  /* a key that ends early */
        { "\x05\0\0\x70\1\0\0\0\0\0\0\0\1", 13 }, /* a history that nobody has */
        { "\x0b\0\0\0\0\0\0\0\x09z", 10 },        /* a key that goes on */
        { "\x0d\0\0\0\0\0\0\0\x09z", 10 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct slice key = slice_of(keys[i].bytes, keys[i].byte_count);
        struct row good =
            row_of((enum table)(uint8_t)key.at[0] == TABLE_CONFLICTS ? TABLE_REPLAYS
                                                                     : (enum table)(uint8_t)key.at[0],
                   0);
        rows_put(rows, key, slice_of(good.value, good.value_bytes));
        if (!is_refused())
            fail_msg("key %zu is not noticed", i);
        rows_mem_begin(rows);
        rows_delete(rows, key);
    }
    assert_false(is_refused());
}

static void test_open_ranges_that_overlap_are_refused_when_the_ledger_is_loaded(void **state)
{
    struct row row = row_of(TABLE_OPEN, 0);
    (void)state;
    assert_true(row.key[12] != (char)0xff);
    row.key[12]++; /* begins within the range that it is a copy of */
    put_row(&row);
    assert_true(is_refused());
}

/* ---- conflicts ---------------------------------------------------------------------------------------------------- */

static struct part_row name_conflict(uint64_t id)
{
    struct part_row part;
    struct key key = key_part(slice_of_text("orders"), 0);
    struct slice stored;
    struct value value;
    assert_true(rows_get(rows, key_slice(&key), &stored));
    assert_true(part_row_read(stored, &part));
    part.conflict_id = id;
    part_row_write(&part, &value);
    plant_value(&key, &value);
    return part;
}

static void plant_conflict(uint64_t id, const struct conflict_row *row, uint32_t pid)
{
    struct key key = key_number(TABLE_CONFLICTS, id);
    struct value value;
    conflict_row_write(row, pid, &value);
    plant_value(&key, &value);
}

static void test_conflicts_that_are_not_those_of_their_partition_are_refused(void **state)
{
    struct conflict_row good = { .topic = "orders", .offset = 7, .count = 1 }, bad = good;
    (void)state;
    uint32_t pid = name_conflict(1).pid;
    plant_conflict(1, &good, pid);
    assert_false(is_refused());
    plant_conflict(2, &good, pid); /* the partition names another one */
    assert_true(is_refused());
    rows_mem_begin(rows);
    struct key second = key_number(TABLE_CONFLICTS, 2);
    rows_delete(rows, key_slice(&second));
    plant_conflict(1, &good, pid + 1); /* of another history */
    assert_true(is_refused());
    rows_mem_begin(rows);
    strcpy(bad.topic, "refunds"); /* never met */
    plant_conflict(1, &bad, pid);
    assert_true(is_refused());
    rows_mem_begin(rows);
    bad = good;
    bad.is_first_sight = bad.is_tail = true; /* of two kinds */
    plant_conflict(1, &bad, pid);
    assert_true(is_refused());
    rows_mem_begin(rows);
    bad = good;
    bad.partition = -1;
    plant_conflict(1, &bad, pid);
    assert_true(is_refused());
    rows_mem_begin(rows);
    plant_conflict(1, &good, 0);
    assert_true(is_refused());
}

/* Behind the highest number the walk would begin anew. */
static void test_a_number_above_all_others_ends_no_walk_in_a_circle(void **state)
{
    struct conflict_row good = { .topic = "orders", .offset = 7, .count = 1 };
    (void)state;
    plant_conflict(UINT64_MAX, &good, name_conflict(UINT64_MAX).pid);
    assert_true(is_refused());
}

/* ---- what verifying finds ----------------------------------------------------------------------------------------- */

struct findings {
    char text[64 * 1024];
    size_t byte_count, line_count;
};

static struct findings findings;

static bool keep_finding(void *context, struct slice line)
{
    struct findings *kept = context;
    kept->line_count++;
    if (line.byte_count + 2 > sizeof kept->text - kept->byte_count)
        return false;
    memcpy(kept->text + kept->byte_count, line.at, line.byte_count);
    kept->byte_count += line.byte_count;
    kept->text[kept->byte_count++] = '\n';
    kept->text[kept->byte_count] = '\0';
    return true;
}

static uint64_t count_findings(void)
{
    struct machine *machine = busy_begin(rows, 2);
    findings = (struct findings){ .byte_count = 0 };
    assert_non_null(machine);
    uint64_t count = verify(machine, keep_finding, &findings);
    machine_end(machine);
    machine_free(machine);
    rows_mem_begin(rows);
    return count;
}

static void assert_found(const char *line)
{
    assert_true(count_findings() > 0);
    if (strstr(findings.text, line) == NULL)
        fail_msg("not found: %s\nbut: %s", line, findings.text);
}

static void drop_key(struct key key)
{
    rows_delete(rows, key_slice(&key));
}

static void test_verify_names_the_table_of_a_row_that_cannot_be_read(void **state)
{
    static const struct {
        enum table table;
        const char *words;
    } tables[] = {
        { TABLE_RUNS, "a row of runs cannot be read" },
        { TABLE_FULL, "a row of full cannot be read" },
        { TABLE_MARKS, "a row of marks cannot be read" },
        { TABLE_SAMPLES, "a row of samples cannot be read" },
        { TABLE_REPLIES, "a row of replies cannot be read" },
        { TABLE_PAST, "a row of past cannot be read" },
    };
    (void)state;
    assert_int_equal(count_findings(), 0);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct key key = key_pair(tables[i].table, 1, 9999);
        plant(&key, "?", 1);
        assert_found(tables[i].words);
        drop_key(key);
    }
    struct key key = key_pair(TABLE_CONTEXTS, 1, 9999);
    static const char long_context[RECORD_CONTEXT_BYTES_MAX + 1];
    plant(&key, long_context, sizeof long_context);
    assert_found("a row of contexts cannot be read");
    drop_key(key);
    key = key_number(TABLE_RING, 9999);
    plant(&key, "?", 1);
    assert_found("a row of ring cannot be read");
    drop_key(key);
    key = key_number(TABLE_EVENTS, 9999);
    plant(&key, "?", 1);
    assert_found("a row of events cannot be read");
    drop_key(key);
    assert_int_equal(count_findings(), 0);
}

static void test_verify_names_the_table_of_a_key_that_cannot_be_read(void **state)
{
    static const struct {
        const char *key;
        size_t key_bytes;
        const char *words;
    } keys[] = {
        { "\x0b", 1, "a row of conflicts cannot be read" },
        { "\x0d", 1, "a row of replays cannot be read" },
        { "\x0a", 1, "a row of events cannot be read" },
        { "\x03", 1, "a row of runs cannot be read" },
        { "\x08\0", 2, "a row of replies cannot be read" },
        { "\0x", 2, "a row of table 0, which does not exist" },
        { "\x0fx", 2, "a row of table 15, which does not exist" },
        { "\xff", 1, "a row of table 255, which does not exist" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct slice key = slice_of(keys[i].key, keys[i].key_bytes);
        rows_put(rows, key, slice_of("", 0));
        assert_found(keys[i].words);
        rows_delete(rows, key);
    }
}

static void test_verify_finds_rows_of_histories_that_nobody_has(void **state)
{
    struct value value;
    struct key key = key_pair(TABLE_SAMPLES, 4000, 0);
    (void)state;
    sample_write(5, 7, &value);
    plant_value(&key, &value);
    assert_found("a row of samples belongs to history 4000, which nobody has");
    drop_key(key);
    struct past_row past = { .topic = "orders" };
    past_row_write(&past, &value);
    key = key_pair(TABLE_PAST, 4000, 0); /* names a history that was never begun */
    plant_value(&key, &value);
    assert_found("a row of past belongs to history 4000, which nobody has");
    drop_key(key);
    key = key_pair(TABLE_SAMPLES, 1, 3); /* of another chunk than its key says */
    sample_write(5, 7, &value);
    plant_value(&key, &value);
    assert_found("a row of samples cannot be read");
}

static void test_verify_counts_every_finding_and_tells_the_first_thousand(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1200; i++) {
        struct key key = key_pair(TABLE_MARKS, 1, 100000 + i);
        plant(&key, "?", 1);
    }
    assert_int_equal(count_findings(), 1200);
    assert_int_equal(findings.line_count, 1000);
}

static void test_verify_compares_each_set_with_what_is_said_of_it(void **state)
{
    struct value value;
    struct key key = key_part(slice_of_text("orders"), 0);
    struct part_row part = name_conflict(0);
    (void)state;
    part.applied_count++;
    part.interval_count++;
    part.highest++;
    part_row_write(&part, &value);
    plant_value(&key, &value);
    assert_found("and 1");
    assert_non_null(strstr(findings.text, "orders/0: applied from"));
    assert_non_null(strstr(findings.text, "intervals, and"));
    part = name_conflict(3);
    assert_found("orders/0: waits for a decision that is not there");
}

static void test_verify_finds_open_records_that_are_applied_or_never_had_a_number(void **state)
{
    struct row row = row_of(TABLE_OPEN, 0);
    (void)state;
    row.value[18] = 0x70; /* its number, far above those that were given */
    put_row(&row);
    assert_found("has a number that was never given");
    memset(row.value + 18, 0, 8);
    row.value[8] = OPEN_IN_DOUBT;
    put_row(&row);
    assert_found("has a number that was never given");
}

/* ---- what needs the row ------------------------------------------------------------------------------------------- */

/* True: the transaction failed. */
static bool is_spoilt_by(void (*act)(struct machine *machine))
{
    struct machine *machine = busy_begin(rows, 2);
    assert_non_null(machine);
    act(machine);
    bool is_spoilt = rows_status(rows) == ROWS_FAILED;
    machine_end(machine);
    machine_free(machine);
    rows_mem_begin(rows);
    return is_spoilt;
}

static bool drop_line(void *context, struct slice line)
{
    (void)context;
    return line.byte_count > 0;
}

static void export_all(struct machine *machine)
{
    struct store_row row = { .format = FORMAT_VERSION };
    bool is_whole = dump(machine, &row, drop_line, NULL);
    assert_int_equal(is_whole, rows_status(rows) == ROWS_OK);
}

static void forget_all(struct machine *machine)
{
    busy_change(machine, DO_FORGET, -1, -1);
}

static void forget_some(struct machine *machine)
{
    busy_change(machine, DO_FORGET, 10, 90000);
}

static void ask(struct machine *machine, enum question_kind kind)
{
    struct question question = {
        .kind = kind, .topic = "orders", .row_count_max = 1000, .after_offset = -1, .last = 100000
    };
    machine_ask(machine, &question);
    free(question.ret.any);
}

static void ask_events(struct machine *machine)
{
    ask(machine, ASK_EVENTS);
}

static void ask_probes(struct machine *machine)
{
    ask(machine, ASK_PROBES);
}

static void deliver_again(struct machine *machine)
{
    busy_offer(machine, 0, 120050, 1, OUTCOME_APPLIED); /* in no window */
}

static void keep_answers(struct machine *machine)
{
    for (int64_t i = 0; i < 20; i++)
        busy_offer(machine, 0, 9000000 + 10 * i, 1, OUTCOME_APPLIED);
}

static void test_an_export_stops_at_a_row_that_cannot_be_read(void **state)
{
    static const enum table tables[] = { TABLE_RUNS, TABLE_MARKS, TABLE_SAMPLES };
    (void)state;
    assert_false(is_spoilt_by(export_all));
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct row good = row_of(tables[i], 0), bad = good;
        bad.value_bytes = 3;
        put_row(&bad);
        assert_true(is_spoilt_by(export_all));
        put_row(&good);
    }
    struct key full = key_pair(TABLE_FULL, 1, 0);
    plant(&full, "?", 1);
    assert_true(is_spoilt_by(export_all));
    drop_key(full);
    struct row context = row_of(TABLE_CONTEXTS, 0);
    context.value_bytes = RECORD_CONTEXT_BYTES_MAX + 1;
    put_row(&context);
    assert_true(is_spoilt_by(export_all));
    assert_true(is_spoilt_by(ask_probes));
}

/* What lies behind it must not be taken for absent. */
static void test_a_key_that_cannot_be_read_hides_nothing_behind_it(void **state)
{
    static const char runs[] = "\x03\0\0\0\1\0\0\0\0\0\0\1", event[] = "\x0a\0\0\0\0\0\0\1";
    (void)state;
    assert_false(is_spoilt_by(ask_events));
    rows_put(rows, slice_of(event, sizeof event - 1), slice_of("", 0));
    assert_true(is_spoilt_by(ask_events));
    assert_false(is_spoilt_by(forget_all));
    rows_mem_free(rows);
    rows = busy_ledger();
    rows_put(rows, slice_of(runs, sizeof runs - 1), slice_of("", 0));
    assert_true(is_spoilt_by(forget_all));
}

static void test_what_cannot_be_read_is_not_forgotten_silently(void **state)
{
    struct key past = key_pair(TABLE_PAST, 1, 0);
    (void)state;
    assert_false(is_spoilt_by(forget_some));
    plant(&past, "?", 1);
    assert_true(is_spoilt_by(forget_all));
    drop_key(past);
    struct row sample = row_of(TABLE_SAMPLES, 0);
    sample.value_bytes = 3;
    put_row(&sample);
    assert_true(is_spoilt_by(forget_some));
}

static bool has_row(struct key key)
{
    struct slice value;
    return rows_get(rows, key_slice(&key), &value);
}

static void test_the_ended_histories_of_others_are_not_forgotten(void **state)
{
    static const struct past_row histories[] = { { .topic = "refunds" },
                                                 { .topic = "orders", .partition = 9 },
                                                 { .topic = "orders" } };
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct key key = key_pair(TABLE_PAST, 100 + i, 0);
        struct value value;
        past_row_write(&histories[i], &value);
        plant_value(&key, &value);
    }
    assert_false(is_spoilt_by(forget_all));
    assert_true(has_row(key_pair(TABLE_PAST, 100, 0)));
    assert_true(has_row(key_pair(TABLE_PAST, 101, 0)));
    assert_false(has_row(key_pair(TABLE_PAST, 102, 0)));
    rows_mem_free(rows);
    rows = busy_ledger();
    rows_put(rows, slice_of("\x0e\0\0\0\x65!", 6), slice_of("", 0));
    assert_true(is_spoilt_by(forget_all));
}

static void test_an_answer_that_cannot_be_read_is_not_given_and_not_dropped(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) { /* all that are kept */
        struct row reply = row_of(TABLE_REPLIES, i);
        reply.value[8] = reply.value[9] = 0; /* status 0 */
        put_row(&reply);
    }
    assert_true(is_spoilt_by(keep_answers));
    rows_mem_free(rows);
    rows = busy_ledger();
    struct key key = key_pair(TABLE_REPLIES, 1, 120050);
    plant(&key, "?", 1);
    assert_true(is_spoilt_by(deliver_again));
}

static void test_an_event_that_cannot_be_read_is_not_told(void **state)
{
    struct row event = row_of(TABLE_EVENTS, 0);
    (void)state;
    assert_false(is_spoilt_by(ask_events));
    event.value[8] = EVENT_KIND_COUNT;
    put_row(&event);
    assert_true(is_spoilt_by(ask_events));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_numbers_that_cannot_be_are_refused_when_the_ledger_is_loaded),
        TEST(test_values_that_are_cut_are_refused_when_the_ledger_is_loaded),
        TEST(test_keys_that_cannot_be_read_are_refused_when_the_ledger_is_loaded),
        TEST(test_open_ranges_that_overlap_are_refused_when_the_ledger_is_loaded),
        TEST(test_conflicts_that_are_not_those_of_their_partition_are_refused),
        TEST(test_a_number_above_all_others_ends_no_walk_in_a_circle),
        TEST(test_verify_names_the_table_of_a_row_that_cannot_be_read),
        TEST(test_verify_names_the_table_of_a_key_that_cannot_be_read),
        TEST(test_verify_finds_rows_of_histories_that_nobody_has),
        TEST(test_verify_counts_every_finding_and_tells_the_first_thousand),
        TEST(test_verify_compares_each_set_with_what_is_said_of_it),
        TEST(test_verify_finds_open_records_that_are_applied_or_never_had_a_number),
        TEST(test_an_export_stops_at_a_row_that_cannot_be_read),
        TEST(test_a_key_that_cannot_be_read_hides_nothing_behind_it),
        TEST(test_what_cannot_be_read_is_not_forgotten_silently),
        TEST(test_the_ended_histories_of_others_are_not_forgotten),
        TEST(test_an_answer_that_cannot_be_read_is_not_given_and_not_dropped),
        TEST(test_an_event_that_cannot_be_read_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
