/*
 * test_company.c - how long a commit waits for company, and for how many.
 */
#include "company.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { US = 1000, MS = 1000000 };

static void test_as_many_as_the_last_batch_held_are_waited_for_no_longer_than_its_commit_took(void **state)
{
    static const uint64_t commits_ns[] = { 50 * US, 51 * US, 300 * US, MS, 4 * MS, 5 * MS };
    (void)state;
    for (size_t i = 0; i < sizeof commits_ns / sizeof commits_ns[0]; i++) {
        struct company company = company_wanted(0, 7 + i, commits_ns[i]);
        assert_int_equal(company.wait_ns, commits_ns[i]);
        assert_int_equal(company.count, 7 + i);
    }
}

static void test_a_disk_that_hesitated_once_is_not_waited_for_again(void **state)
{
    static const uint64_t commits_ns[] = { 5 * MS + 1, 90 * (uint64_t)MS, 3600000 * (uint64_t)MS,
                                           UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof commits_ns / sizeof commits_ns[0]; i++)
        assert_int_equal(company_wanted(0, 7, commits_ns[i]).wait_ns, 5 * MS);
}

static void test_a_wait_shorter_than_a_sleep_can_be_is_none(void **state)
{
    (void)state;
    assert_int_equal(company_wanted(0, 7, 50 * US - 1).wait_ns, 0);
    assert_int_equal(company_wanted(0, 7, 1).wait_ns, 0);
}

static void test_a_batch_that_changed_nothing_is_no_reason_to_wait(void **state)
{
    (void)state;
    assert_int_equal(company_wanted(0, 7, 0).wait_ns, 0);
}

static void test_a_delay_that_was_set_is_waited_in_full_whatever_the_last_commit_was(void **state)
{
    static const uint64_t commits_ns[] = { 0, 1, MS, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < sizeof commits_ns / sizeof commits_ns[0]; i++) {
        assert_int_equal(company_wanted(1000 * (uint64_t)MS, i, commits_ns[i]).wait_ns, 1000 * (uint64_t)MS);
        assert_int_equal(company_wanted(20 * US, i, commits_ns[i]).wait_ns, 20 * US);
        assert_true(company_wanted(20 * US, i, commits_ns[i]).count == SIZE_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_the_last_batch_held_are_waited_for_no_longer_than_its_commit_took),
        cmocka_unit_test(test_a_disk_that_hesitated_once_is_not_waited_for_again),
        cmocka_unit_test(test_a_wait_shorter_than_a_sleep_can_be_is_none),
        cmocka_unit_test(test_a_batch_that_changed_nothing_is_no_reason_to_wait),
        cmocka_unit_test(test_a_delay_that_was_set_is_waited_in_full_whatever_the_last_commit_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
