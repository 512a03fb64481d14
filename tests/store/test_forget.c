/*
 * test_forget.c - a topic of many partitions is forgotten in steps, on rows in memory: what may come between two of them,
 * and what is there when they end too early.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "forget_orders.h"
#include "pairs.h"
#include "walk.h"

enum { PARTITIONS = 1000, STEP_PARTITIONS_MAX = 200, ANSWERS = 3000 };

static void fill(void)
{
    walk_begin(MACHINE_OPEN);
    for (int32_t i = 0; i < PARTITIONS; i++)
        assert_int_equal(walk_offer("orders", i, 0, OUTCOME_APPLIED, ""), VERDICT_NEW);
    walk_commit();
}

static size_t partition_count(void)
{
    return (size_t)walk_figures().partition_count;
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static void assert_forgotten(const struct question *question, uint64_t count)
{
    assert_int_equal(question->ret_status, QUESTION_OK);
    assert_int_equal(question->ret_count, count);
    assert_int_equal(question->ret_done_count, count);
}

/* The rows that a partition has beside its own. */
static size_t history_row_count(uint32_t pid)
{
    static const enum table tables[] = { TABLE_RUNS, TABLE_FULL, TABLE_MARKS, TABLE_SAMPLES, TABLE_REPLIES };
    size_t count = 0;
    struct slice value;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (uint64_t at = 0; pairs_next(walk.rows, tables[i], pid, at, &at, &value); at++)
            count++;
    return count;
}

/* The list holds all partitions that are left, in their order: FIRST to LAST, one after the other. */
static void assert_listed(int32_t first, int32_t last)
{
    struct question question = { .kind = ASK_PARTITIONS, .row_count_max = 10000 };
    walk_begin(MACHINE_READ);
    machine_ask(walk.machine, &question);
    walk_commit();
    assert_int_equal(question.ret_count, partition_count());
    assert_int_equal(question.ret_row_count, (size_t)(last - first) + 1);
    for (size_t i = 0; i < question.ret_row_count; i++)
        assert_int_equal(question.ret.partitions[i].partition, first + (int32_t)i);
    free(question.ret.any);
}

static void assert_events(const char *const details[], size_t count)
{
    walk_assert_events(EVENT_FORGOTTEN, "orders", details, count);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_a_topic_goes_in_steps_and_others_are_served_between_them(void **state)
{
    static const char *const details[] = { "begun, 1000 applied records in 1000 partitions: from a test",
                                           "1000 applied records in 1000 of 1000 partitions: from a test" };
    struct question question = forget_all_orders(PARTITIONS);
    int64_t offset = 0;
    (void)state;
    fill();
    assert_true(history_row_count(1) > 0);
    assert_int_equal(walk_deliver("parcels", 0, offset++), VERDICT_NEW);
    for (size_t before = partition_count(); walk_step(&question); before = partition_count()) {
        assert_in_range(before - partition_count(), 1, STEP_PARTITIONS_MAX);
        assert_int_equal(walk_deliver("parcels", 0, offset++), VERDICT_NEW);
    }
    assert_forgotten(&question, PARTITIONS);
    assert_int_equal(partition_count(), 1);
    for (uint32_t pid = 1; pid <= PARTITIONS; pid++)
        assert_int_equal(history_row_count(pid), 0);
    assert_int_equal(walk_deliver("parcels", 0, 0), VERDICT_APPLIED);
    assert_events(details, 2);
}

static void
test_what_begins_anew_behind_a_step_is_not_forgotten_and_what_is_ahead_is_a_duplicate(void **state)
{
    struct question question = forget_all_orders(PARTITIONS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    assert_listed(PARTITIONS - (int32_t)partition_count(), PARTITIONS - 1);
    assert_true(walk_step(&question));
    struct question one = forget_all_orders(1);
    one.partition = PARTITIONS - (int32_t)partition_count() - 1; /* the last that has gone */
    assert_int_equal(walk_to_the_end(&one), 1);
    assert_int_equal(one.ret_status, QUESTION_NOT_FOUND);
    assert_int_equal(walk_deliver("orders", PARTITIONS, 0), VERDICT_NEW); /* one that nobody counted */
    assert_listed(PARTITIONS + 1 - (int32_t)partition_count(), PARTITIONS);
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_NEW);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 1, 0), VERDICT_APPLIED);
    one.partition = PARTITIONS - 2; /* by another person, and then it comes again */
    assert_int_equal(walk_to_the_end(&one), 1);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 2, 0), VERDICT_NEW);
    walk_to_the_end(&question);
    assert_forgotten(&question, PARTITIONS - 1);
    assert_int_equal(partition_count(), 3);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 2, 0), VERDICT_APPLIED);
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_APPLIED);
    assert_int_equal(walk_deliver("orders", PARTITIONS, 0), VERDICT_APPLIED);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 1, 0), VERDICT_NEW);
}

/* A partition that a flight holds stays, under its pid. */
static void test_a_partition_has_one_turn_although_it_stays(void **state)
{
    struct question question = forget_all_orders(PARTITIONS);
    const struct record record = { { slice_of_text("orders"), 0, 7 }, MARK_NONE };
    enum verdict verdict;
    struct claim claim = { .records = &record, .record_count = 1, .ret_verdicts = &verdict };
    (void)state;
    fill();
    walk_begin(MACHINE_OPEN);
    machine_claim(walk.machine, &claim);
    walk_commit();
    assert_true(walk_step(&question));
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_NEW);
    walk_to_the_end(&question);
    assert_forgotten(&question, PARTITIONS);
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_APPLIED);
}

static void test_what_has_changed_since_it_was_counted_stops_it_and_stays(void **state)
{
    static const char *const details[] = {
        "begun, 1000 applied records in 1000 partitions: from a test",
        "998 applied records in 998 of 1000 partitions, the next one has changed: from a test",
        "2 applied records: from a test",
        "1 applied records: from a test",
    };
    struct question question = forget_all_orders(PARTITIONS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    assert_int_equal(walk_deliver("orders", PARTITIONS - 2, 5), VERDICT_NEW);
    walk_to_the_end(&question);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_equal(question.ret_done_count, PARTITIONS - 2);
    assert_int_equal(question.ret_count, 3);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 2, 5), VERDICT_APPLIED);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 2, 0), VERDICT_APPLIED);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 1, 0), VERDICT_APPLIED);
    question = forget_all_orders(question.ret_count);
    assert_int_equal(walk_to_the_end(&question), 1);
    assert_forgotten(&question, 3);
    assert_int_equal(partition_count(), 0);
    assert_events(details, 4);
}

static void test_after_a_crash_the_rest_is_there_and_can_be_forgotten(void **state)
{
    struct question question = forget_all_orders(PARTITIONS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    walk_crash(&question);
    size_t left_count = partition_count();
    assert_in_range(left_count, PARTITIONS - STEP_PARTITIONS_MAX, PARTITIONS - 1);
    assert_int_equal(walk_deliver("orders", PARTITIONS - 1, 0), VERDICT_APPLIED);
    question = forget_all_orders(left_count);
    walk_to_the_end(&question);
    assert_forgotten(&question, left_count);
    assert_int_equal(partition_count(), 0);
}

/* A step whose batch cannot be committed is taken again; WHICH: the how many-th fails. */
static void test_a_step_that_fails_is_taken_again(void **state)
{
    (void)state;
    for (size_t which = 0; which < 4; which++) {
        struct question question = forget_all_orders(PARTITIONS);
        fill();
        for (size_t i = 0; i < which; i++)
            assert_true(walk_step(&question));
        walk_fail(&question);
        walk_to_the_end(&question);
        assert_forgotten(&question, PARTITIONS);
        assert_int_equal(partition_count(), 0);
    }
}

static void test_it_ends_when_the_ledger_may_not_be_written_any_more(void **state)
{
    struct question question = forget_all_orders(PARTITIONS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    size_t left_count = partition_count();
    walk_begin(MACHINE_READ);
    machine_ask(walk.machine, &question);
    walk_commit();
    assert_false(machine_goes_on(&question));
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    assert_int_equal(partition_count(), left_count);
}

static void test_the_answers_of_a_partition_go_in_steps_before_it(void **state)
{
    struct question question = forget_all_orders(ANSWERS);
    (void)state;
    walk_begin(MACHINE_OPEN);
    for (int64_t i = 0; i < ANSWERS; i++)
        assert_int_equal(walk_offer("orders", 0, i, OUTCOME_APPLIED, "booked"), VERDICT_NEW);
    walk_commit();
    assert_true(history_row_count(1) > ANSWERS);
    assert_true(walk_step(&question));
    assert_true(history_row_count(1) > 0);
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_APPLIED);
    walk_to_the_end(&question);
    assert_forgotten(&question, ANSWERS);
    assert_int_equal(history_row_count(1), 0);
    assert_int_equal(partition_count(), 0);
}

static void plant_past(uint32_t pid, const char *topic)
{
    struct past_row row = { .partition = 0 };
    struct key key = key_pair(TABLE_PAST, pid, 0);
    struct value value;
    snprintf(row.topic, sizeof row.topic, "%s", topic);
    past_row_write(&row, &value);
    rows_put(walk.rows, key_slice(&key), value_slice(&value));
    key = key_pair(TABLE_MARKS, pid, 0);
    rows_put(walk.rows, key_slice(&key), slice_of(topic, 1));
}

static void test_former_histories_go_in_steps_too(void **state)
{
    enum { OURS = 100, THEIRS = OURS + 1000, END = THEIRS + 3000 };
    struct question question = forget_all_orders(1);
    struct slice value;
    (void)state;
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_NEW);
    for (uint32_t pid = OURS; pid < END; pid++)
        plant_past(pid, pid < THEIRS ? "orders" : "parcels");
    plant_past(END, "orders");
    assert_true(walk_to_the_end(&question) > 3);
    assert_forgotten(&question, 1);
    for (uint32_t pid = OURS; pid <= END; pid++) {
        struct key key = key_pair(TABLE_PAST, pid, 0);
        bool is_theirs = pid >= THEIRS && pid < END;
        assert_int_equal(rows_get(walk.rows, key_slice(&key), &value), is_theirs);
        assert_int_equal(history_row_count(pid), is_theirs);
    }
}

static void test_a_range_of_each_partition_goes_in_steps_and_the_partitions_stay(void **state)
{
    struct question question = forget_all_orders(PARTITIONS);
    (void)state;
    fill();
    question.first = question.last = 0;
    assert_true(walk_to_the_end(&question) > 1);
    assert_forgotten(&question, PARTITIONS);
    assert_int_equal(partition_count(), PARTITIONS);
    assert_int_equal(walk_deliver("orders", 500, 0), VERDICT_NEW);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, walk_setup, walk_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_topic_goes_in_steps_and_others_are_served_between_them),
        TEST(test_what_begins_anew_behind_a_step_is_not_forgotten_and_what_is_ahead_is_a_duplicate),
        TEST(test_a_partition_has_one_turn_although_it_stays),
        TEST(test_what_has_changed_since_it_was_counted_stops_it_and_stays),
        TEST(test_after_a_crash_the_rest_is_there_and_can_be_forgotten),
        TEST(test_a_step_that_fails_is_taken_again),
        TEST(test_it_ends_when_the_ledger_may_not_be_written_any_more),
        TEST(test_the_answers_of_a_partition_go_in_steps_before_it),
        TEST(test_former_histories_go_in_steps_too),
        TEST(test_a_range_of_each_partition_goes_in_steps_and_the_partitions_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
