/*
 * test_log_limit.c - once per 10 s for each event, in a time that the test makes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "log_limit.h"

static void test_an_event_is_written_once_per_period_and_then_says_how_many_were_held_back(void **state)
{
    struct log_limit limit = { 0 };
    uint64_t suppressed = 99;
    (void)state;
    assert_true(log_limit_take(&limit, "limit.hit", 0, &suppressed));
    assert_int_equal(suppressed, 0);
    for (uint64_t now_ms = 1; now_ms <= 5; now_ms++)
        assert_false(log_limit_take(&limit, "limit.hit", now_ms, &suppressed));
    assert_false(log_limit_take(&limit, "limit.hit", LOG_LIMIT_PERIOD_MS - 1, &suppressed));
    assert_true(log_limit_take(&limit, "limit.hit", LOG_LIMIT_PERIOD_MS, &suppressed));
    assert_int_equal(suppressed, 6);
    assert_false(log_limit_take(&limit, "limit.hit", LOG_LIMIT_PERIOD_MS + 1, &suppressed));
    assert_true(log_limit_take(&limit, "limit.hit", 5 * LOG_LIMIT_PERIOD_MS, &suppressed));
    assert_int_equal(suppressed, 1);
}

static void test_events_do_not_hold_each_other_back(void **state)
{
    struct log_limit limit = { 0 };
    char same_name[] = "target.error";
    uint64_t suppressed;
    (void)state;
    assert_true(log_limit_take(&limit, "target.error", 0, &suppressed));
    assert_true(log_limit_take(&limit, "loop.stall", 0, &suppressed));
    assert_false(log_limit_take(&limit, same_name, 1, &suppressed)); /* by its name, not by its place */
}

static void test_an_event_beyond_the_table_is_written_rather_than_lost(void **state)
{
    static char names[LOG_LIMIT_EVENTS_MAX + 1][16];
    struct log_limit limit = { 0 };
    uint64_t suppressed;
    (void)state;
    for (int i = 0; i <= LOG_LIMIT_EVENTS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "e%d", i);
        assert_true(log_limit_take(&limit, names[i], 0, &suppressed));
    }
    assert_true(log_limit_take(&limit, names[LOG_LIMIT_EVENTS_MAX], 1, &suppressed));
    assert_false(log_limit_take(&limit, names[0], 1, &suppressed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_event_is_written_once_per_period_and_then_says_how_many_were_held_back),
        cmocka_unit_test(test_events_do_not_hold_each_other_back),
        cmocka_unit_test(test_an_event_beyond_the_table_is_written_rather_than_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
