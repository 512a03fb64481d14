/*
 * test_queue.c - the queue before the ledger's thread: what is taken, and what ends the sleep before.
 *
 * A wait that must end by itself is given an hour, or for ever: one that does not end so hangs, and ctest ends it.
 */
#include "queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "clock.h"

#define HOUR_NS (3600 * (uint64_t)NS_PER_S)

static const struct company nobody = { 0, 0 };
static struct queue queue;
static struct posting postings[8];
static struct posting_list taken;
static size_t taken_count;

static int setup(void **state)
{
    (void)state;
    queue_init(&queue);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    queue_deinit(&queue);
    return 0;
}

static void add(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        queue_add(&queue, &postings[i]);
}

static bool take(uint64_t until_ns, struct company company)
{
    return queue_take(&queue, until_ns, company, &taken, &taken_count);
}

static void *later_add_two(void *argument)
{
    (void)argument;
    add(1, 3);
    return NULL;
}

static void *later_add_all(void *argument)
{
    (void)argument;
    add(0, 3);
    return NULL;
}

static void *later_close(void *argument)
{
    (void)argument;
    queue_close(&queue);
    return NULL;
}

static void meanwhile(pthread_t *thread, void *(*main)(void *))
{
    assert_int_equal(pthread_create(thread, NULL, main, NULL), 0);
}

/* ---- what is taken ---------------------------------------------------------------------------------------------- */

static void test_all_that_is_there_is_taken_in_the_order_added(void **state)
{
    (void)state;
    add(0, 5);
    assert_true(take(UINT64_MAX, nobody));
    assert_int_equal(taken_count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_ptr_equal(posting_list_take(&taken), &postings[i]);
    assert_null(posting_list_take(&taken));
}

static void test_nothing_is_taken_twice(void **state)
{
    (void)state;
    add(0, 2);
    assert_true(take(UINT64_MAX, nobody));
    add(2, 3);
    assert_true(take(UINT64_MAX, nobody));
    assert_int_equal(taken_count, 1);
    assert_ptr_equal(taken.first, &postings[2]);
}

static void test_when_it_is_time_for_other_work_nothing_is_taken(void **state)
{
    (void)state;
    assert_true(take(1, nobody));
    assert_int_equal(taken_count, 0);
    assert_null(taken.first);
    assert_true(
        take(clock_monotonic_ns() + NS_PER_MS, (struct company){ 5, HOUR_NS })); /* nobody to keep company */
    assert_int_equal(taken_count, 0);
}

static void test_the_first_posting_ends_the_sleep(void **state)
{
    pthread_t thread;
    (void)state;
    meanwhile(&thread, later_add_all);
    assert_true(take(UINT64_MAX, nobody));
    assert_true(taken_count >= 1);
    pthread_join(thread, NULL);
}

/* ---- company ---------------------------------------------------------------------------------------------------- */

static void test_a_company_that_is_complete_is_not_waited_for(void **state)
{
    (void)state;
    add(0, 3);
    assert_true(take(UINT64_MAX, (struct company){ 3, HOUR_NS }));
    assert_int_equal(taken_count, 3);
    add(0, 5);
    assert_true(take(UINT64_MAX, (struct company){ 3, HOUR_NS }));
    assert_int_equal(taken_count, 5);
}

static void test_the_wait_ends_with_the_posting_that_completes_the_company(void **state)
{
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 50; i++) {
        add(0, 1);
        meanwhile(&thread, later_add_two);
        assert_true(take(UINT64_MAX, (struct company){ 3, HOUR_NS }));
        assert_int_equal(taken_count, 3);
        pthread_join(thread, NULL);
    }
}

static void test_a_sleeper_takes_the_whole_company_and_not_only_who_woke_it(void **state)
{
    pthread_t thread;
    (void)state;
    for (int i = 0; i < 50; i++) {
        meanwhile(&thread, later_add_all);
        assert_true(take(UINT64_MAX, (struct company){ 3, HOUR_NS }));
        assert_int_equal(taken_count, 3);
        pthread_join(thread, NULL);
    }
}

static void test_a_company_that_does_not_come_is_waited_for_no_longer_than_said(void **state)
{
    (void)state;
    add(0, 2);
    assert_true(take(UINT64_MAX, (struct company){ 3, NS_PER_MS }));
    assert_int_equal(taken_count, 2);
    add(0, 2);
    assert_true(take(UINT64_MAX, (struct company){ SIZE_MAX, NS_PER_MS }));
    assert_int_equal(taken_count, 2);
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static void test_once_it_is_closed_what_is_left_is_taken_and_nothing_is_waited_for(void **state)
{
    (void)state;
    add(0, 1);
    queue_close(&queue);
    assert_true(take(UINT64_MAX, (struct company){ SIZE_MAX, HOUR_NS }));
    assert_int_equal(taken_count, 1);
    add(1, 2); /* what cannot be written yet comes back */
    assert_true(take(UINT64_MAX, (struct company){ SIZE_MAX, HOUR_NS }));
    assert_int_equal(taken_count, 1);
    assert_false(take(UINT64_MAX, (struct company){ SIZE_MAX, HOUR_NS }));
    assert_int_equal(taken_count, 0);
}

static void test_closing_wakes_who_sleeps(void **state)
{
    pthread_t thread;
    (void)state;
    meanwhile(&thread, later_close);
    assert_false(take(UINT64_MAX, nobody));
    pthread_join(thread, NULL);
}

static void test_closing_ends_a_wait_for_company(void **state)
{
    pthread_t thread;
    (void)state;
    add(0, 1);
    meanwhile(&thread, later_close);
    assert_true(take(UINT64_MAX, (struct company){ SIZE_MAX, HOUR_NS }));
    assert_int_equal(taken_count, 1);
    pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_that_is_there_is_taken_in_the_order_added),
        TEST(test_nothing_is_taken_twice),
        TEST(test_when_it_is_time_for_other_work_nothing_is_taken),
        TEST(test_the_first_posting_ends_the_sleep),
        TEST(test_a_company_that_is_complete_is_not_waited_for),
        TEST(test_the_wait_ends_with_the_posting_that_completes_the_company),
        TEST(test_a_sleeper_takes_the_whole_company_and_not_only_who_woke_it),
        TEST(test_a_company_that_does_not_come_is_waited_for_no_longer_than_said),
        TEST(test_once_it_is_closed_what_is_left_is_taken_and_nothing_is_waited_for),
        TEST(test_closing_wakes_who_sleeps),
        TEST(test_closing_ends_a_wait_for_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
