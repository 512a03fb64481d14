/*
 * test_resolve.c - very many doubts are resolved in steps, on rows in memory: what may come between two of them, and what is
 * there when they end too early.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include "walk.h"

enum { DOUBTS = 5000, STEP_DOUBTS_MAX = 2000, PARTITIONS = 500, STEP_PARTITIONS_MAX = 200 };

/* Inside a batch: a doubt of its own. */
static void leave(const char *topic, int32_t partition, int64_t offset)
{
    assert_int_equal(walk_offer(topic, partition, offset, OUTCOME_UNKNOWN, ""), VERDICT_NEW);
}

/* Of one partition. */
static void fill(void)
{
    walk_begin(MACHINE_OPEN);
    for (int64_t i = 0; i < DOUBTS; i++)
        leave("orders", 0, i);
    walk_commit();
}

/* One in each of many partitions of two topics. */
static void fill_many(void)
{
    walk_begin(MACHINE_OPEN);
    for (int32_t i = 0; i < PARTITIONS; i++) {
        leave("orders", i, 7);
        leave("parcels", i, 7);
    }
    walk_commit();
}

static struct question resolve(bool is_applied, uint64_t expect_count)
{
    return (struct question){ .kind = DO_RESOLVE,
                              .partition = -1,
                              .first = -1,
                              .last = -1,
                              .is_applied = is_applied,
                              .expect_count = expect_count,
                              .detail = "from a test" };
}

static struct question resolve_in(int32_t partition, int64_t first, int64_t last, bool is_applied)
{
    struct question question = resolve(is_applied, (uint64_t)(last - first) + 1);
    question.partition = partition;
    question.first = first;
    question.last = last;
    memcpy(question.topic, "orders", sizeof "orders");
    return question;
}

static void assert_resolved(const struct question *question, uint64_t count)
{
    assert_int_equal(question->ret_status, QUESTION_OK);
    assert_int_equal(question->ret_count, count);
    assert_null(question->steps);
}

static uint64_t in_doubt(void)
{
    return walk_figures().in_doubt_records;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_very_many_go_in_steps_and_others_are_served_between_them(void **state)
{
    struct question question = resolve(true, DOUBTS);
    int64_t offset = 0;
    (void)state;
    fill();
    uint64_t before = in_doubt();
    for (; walk_step(&question); before = in_doubt()) {
        assert_in_range(before - in_doubt(), 1, STEP_DOUBTS_MAX);
        assert_int_equal(walk_deliver("parcels", 0, offset++), VERDICT_NEW);
    }
    assert_in_range(before, 1, STEP_DOUBTS_MAX);
    assert_true(offset > 1);
    assert_resolved(&question, DOUBTS);
    assert_int_equal(in_doubt(), 0);
    for (int64_t i = 0; i < DOUBTS; i++)
        assert_int_equal(walk_deliver("orders", 0, i), VERDICT_APPLIED);
}

static void test_those_of_many_partitions_go_in_steps_and_leave_two_events(void **state)
{
    static const char *const details[] = {
        "begun, not applied, 1000 records in 1000 doubts: from a test",
        "not applied, 1000 records in 1000 of 1000 doubts: from a test",
    };
    struct question question = resolve(false, 2 * PARTITIONS);
    (void)state;
    fill_many();
    uint64_t before = in_doubt();
    for (; walk_step(&question); before = in_doubt())
        assert_in_range(before - in_doubt(), 1, STEP_PARTITIONS_MAX);
    assert_in_range(before, 1, STEP_PARTITIONS_MAX);
    assert_resolved(&question, 2 * PARTITIONS);
    assert_int_equal(in_doubt(), 0);
    walk_assert_events(EVENT_RESOLVED, "", details, 2);
    for (int32_t i = 0; i < PARTITIONS; i++)
        assert_int_equal(walk_deliver("orders", i, 7), VERDICT_NEW);
}

static void test_a_few_steps_in_one_partition_leave_an_event_each(void **state)
{
    struct question question = resolve(true, DOUBTS), events = { .kind = ASK_EVENTS, .row_count_max = 1000 };
    (void)state;
    fill();
    size_t step_count = walk_to_the_end(&question), event_count = 0;
    walk_begin(MACHINE_READ);
    machine_ask(walk.machine, &events);
    walk_commit();
    for (size_t i = 0; i < events.ret_row_count; i++)
        event_count += events.ret.events[i].kind == EVENT_RESOLVED;
    assert_int_equal(event_count, step_count);
    free(events.ret.any);
}

static void test_what_begins_meanwhile_stays_and_what_has_ended_meanwhile_is_left_out(void **state)
{
    struct question question = resolve(true, DOUBTS), one = resolve_in(0, 5, 5, false);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    assert_int_equal(walk_to_the_end(&one), 1); /* by another person, and then it is in doubt again */
    assert_resolved(&one, 1);
    walk_begin(MACHINE_OPEN);
    leave("orders", 0, 5);
    leave("orders", 0, DOUBTS);
    leave("aaa", 0, 0);
    walk_commit();
    one = resolve_in(0, 6, 6, false); /* this one is applied meanwhile */
    assert_int_equal(walk_to_the_end(&one), 1);
    assert_int_equal(walk_deliver("orders", 0, 6), VERDICT_NEW);
    walk_to_the_end(&question);
    assert_resolved(&question, DOUBTS - 2);
    assert_int_equal(in_doubt(), 3);
    assert_int_equal(walk_deliver("orders", 0, 5), VERDICT_IN_DOUBT);
    assert_int_equal(walk_deliver("orders", 0, DOUBTS), VERDICT_IN_DOUBT);
    assert_int_equal(walk_deliver("aaa", 0, 0), VERDICT_IN_DOUBT);
    assert_int_equal(walk_deliver("orders", 0, 4), VERDICT_APPLIED);
}

static void test_of_many_partitions_as_well_what_begins_meanwhile_stays(void **state)
{
    struct question question = resolve(true, 2 * PARTITIONS);
    (void)state;
    fill_many();
    assert_true(walk_step(&question));
    walk_begin(MACHINE_OPEN);
    leave("aaa", 0, 0);
    leave("orders", 0, 8); /* the partition is through */
    leave("parcels", PARTITIONS - 1, 8);
    walk_commit();
    walk_to_the_end(&question);
    assert_resolved(&question, 2 * PARTITIONS);
    assert_int_equal(in_doubt(), 3);
}

static void test_only_what_the_filter_names_is_resolved(void **state)
{
    struct question question = resolve_in(0, 0, DOUBTS / 2 - 1, false);
    (void)state;
    fill();
    assert_true(walk_to_the_end(&question) > 1);
    assert_resolved(&question, DOUBTS / 2);
    assert_int_equal(in_doubt(), DOUBTS / 2);
    assert_int_equal(walk_deliver("orders", 0, DOUBTS / 2), VERDICT_IN_DOUBT);
    assert_int_equal(walk_deliver("orders", 0, DOUBTS / 2 - 1), VERDICT_NEW);
}

static void test_another_number_than_was_expected_changes_nothing(void **state)
{
    struct question question = resolve(true, DOUBTS - 1);
    (void)state;
    fill();
    assert_false(walk_step(&question));
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_equal(question.ret_count, DOUBTS);
    assert_int_equal(in_doubt(), DOUBTS);
}

static void test_after_a_crash_the_rest_is_in_doubt_and_can_be_resolved(void **state)
{
    struct question question = resolve(true, DOUBTS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    walk_crash(&question);
    uint64_t left_count = in_doubt();
    assert_in_range(left_count, DOUBTS - STEP_DOUBTS_MAX, DOUBTS - 1);
    assert_int_equal(walk_deliver("orders", 0, 0), VERDICT_IN_DOUBT);
    assert_int_equal(walk_deliver("orders", 0, DOUBTS - 1), VERDICT_APPLIED);
    question = resolve(true, left_count);
    walk_to_the_end(&question);
    assert_resolved(&question, left_count);
    assert_int_equal(in_doubt(), 0);
}

/* WHICH: the how many-th step fails. */
static void test_a_step_that_fails_is_taken_again(void **state)
{
    (void)state;
    for (size_t which = 0; which < 3; which++) {
        struct question question = resolve(false, DOUBTS);
        fill();
        for (size_t i = 0; i < which; i++)
            assert_true(walk_step(&question));
        walk_fail(&question);
        walk_to_the_end(&question);
        assert_resolved(&question, DOUBTS);
        assert_int_equal(in_doubt(), 0);
        assert_int_equal(walk_figures().resolved_not_applied, (which + 1) * DOUBTS);
    }
}

static void test_of_many_partitions_a_step_that_fails_is_taken_again(void **state)
{
    (void)state;
    for (size_t which = 0; which < 4; which++) {
        struct question question = resolve(false, 2 * PARTITIONS);
        fill_many();
        for (size_t i = 0; i < which; i++)
            assert_true(walk_step(&question));
        walk_fail(&question);
        walk_to_the_end(&question);
        assert_resolved(&question, 2 * PARTITIONS);
        assert_int_equal(in_doubt(), 0);
    }
}

static void test_it_ends_when_the_ledger_may_not_be_written_any_more(void **state)
{
    struct question question = resolve(true, DOUBTS);
    (void)state;
    fill();
    assert_true(walk_step(&question));
    uint64_t left_count = in_doubt();
    walk_begin(MACHINE_READ);
    machine_ask(walk.machine, &question);
    walk_commit();
    assert_false(machine_goes_on(&question));
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    assert_int_equal(in_doubt(), left_count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, walk_setup, walk_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_very_many_go_in_steps_and_others_are_served_between_them),
        TEST(test_those_of_many_partitions_go_in_steps_and_leave_two_events),
        TEST(test_a_few_steps_in_one_partition_leave_an_event_each),
        TEST(test_what_begins_meanwhile_stays_and_what_has_ended_meanwhile_is_left_out),
        TEST(test_of_many_partitions_as_well_what_begins_meanwhile_stays),
        TEST(test_only_what_the_filter_names_is_resolved),
        TEST(test_another_number_than_was_expected_changes_nothing),
        TEST(test_after_a_crash_the_rest_is_in_doubt_and_can_be_resolved),
        TEST(test_a_step_that_fails_is_taken_again),
        TEST(test_of_many_partitions_a_step_that_fails_is_taken_again),
        TEST(test_it_ends_when_the_ledger_may_not_be_written_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
