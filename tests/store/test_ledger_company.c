/*
 * test_ledger_company.c - what the ledger's thread tells company.h of its last batch, and that it waits as it is told.
 *
 * The decision is a double: which batch waits for company is scripted, and what was asked is kept.  Each call comes before
 * the batch of its number, so that nothing here depends on when the thread runs.
 */
#include "company.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include "bed.h"
#include "clock.h"

enum { CALLS_MAX = 256, ALONE = 4 };
#define HOUR_NS (3600 * (uint64_t)NS_PER_S)

struct call {
    uint64_t delay_ns, commit_ns;
    size_t served_count;
};

static struct call calls[CALLS_MAX]; /* the ledger's thread writes one before each batch, and none again */
static size_t call_count;
static size_t pairs_from; /* from this batch on each waits for two */

struct company company_wanted(uint64_t delay_ns, size_t served_count, uint64_t commit_ns)
{
    size_t number = call_count++;
    if (number < CALLS_MAX)
        calls[number] = (struct call){ delay_ns, commit_ns, served_count };
    return number >= pairs_from ? (struct company){ 2, HOUR_NS } : (struct company){ 0, 0 };
}

static int setup(void **state)
{
    call_count = 0;
    pairs_from = SIZE_MAX;
    return bed_setup(state);
}

/* A batch of its own that changes nothing. */
static void look(void)
{
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    store_question_deinit(&question);
}

static void test_the_last_batch_is_told_with_its_number_and_the_time_of_its_commit(void **state)
{
    static struct order order;
    (void)state;
    bed_open();
    order_init(&order, "orders", 0, 0, 1);
    uint64_t began_ns = clock_monotonic_ns();
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    uint64_t took_ns = clock_monotonic_ns() - began_ns;
    look();
    look();
    assert_int_equal(calls[0].served_count, 0); /* the opening's commit served nobody */
    assert_int_equal(calls[1].served_count, 1);
    assert_true(calls[1].commit_ns > 0 && calls[1].commit_ns <= took_ns + 1);
    assert_int_equal(calls[2].served_count, 1);
    assert_int_equal(calls[2].commit_ns, 0); /* nothing was changed */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(calls[i].delay_ns, 0);
    order_deinit(&order);
}

static void test_a_delay_that_was_set_is_told_in_nanoseconds(void **state)
{
    (void)state;
    bed.options.commit_delay_us = 1000000;
    bed_open();
    look();
    assert_int_equal(calls[0].delay_ns, 1000000000);
}

static void test_the_commit_waits_for_the_company_that_is_wanted_and_no_longer(void **state)
{
    static struct order a, b;
    enum { PAIRS = 50 };
    (void)state;
    pairs_from = ALONE;
    bed_open();
    for (size_t i = 0; i < ALONE; i++)
        look();
    for (size_t i = 0; i < PAIRS; i++) {
        order_init(&a, "orders", 0, (int64_t)(2 * i), 1);
        order_init(&b, "orders", 0, (int64_t)(2 * i + 1), 1);
        desk_post(&bed.desk, &a);
        desk_post(&bed.desk, &b);
        desk_pump(&bed.desk, &a.is_answered);
        desk_pump(&bed.desk, &b.is_answered);
    }
    for (size_t i = 1; i < PAIRS; i++)
        assert_int_equal(calls[ALONE + i].served_count, 2);
    order_deinit(&a);
    order_deinit(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_last_batch_is_told_with_its_number_and_the_time_of_its_commit),
        TEST(test_a_delay_that_was_set_is_told_in_nanoseconds),
        TEST(test_the_commit_waits_for_the_company_that_is_wanted_and_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
