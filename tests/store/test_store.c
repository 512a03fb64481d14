/*
 * test_store.c - ports on several threads at once, and what only a whole store shows.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "bed.h"

enum { THREADS = 3, STREAM = 4000, BATCH_MAX = 40 };

/* How often each record was sent; guarded by lock. */
static unsigned sent[STREAM];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct worker {
    pthread_t thread;
    unsigned seed;
    size_t waited_count;
};

static void send_new(const struct order *order)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < order->claim.record_count; i++)
        sent[order->records[i].key.offset] += order->verdicts[i] == VERDICT_NEW;
    pthread_mutex_unlock(&lock);
}

/* Delivers the stream in batches of its own cutting, each until all of it is applied. */
static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct desk desk = desk_open(bed.store);
    struct order *order = calloc(1, sizeof *order);
    for (int64_t at = 0; order != NULL && at < STREAM;) {
        size_t count = 1 + (size_t)rand_r(&worker->seed) % BATCH_MAX;
        count = at + (int64_t)count > STREAM ? (size_t)(STREAM - at) : count;
        order_init(order, "orders", 0, at, count);
        order->claim.wait_ms = 60000;
        if (desk_claim(&desk, order) != STORE_OK)
            abort();
        worker->waited_count += order->verdicts[0] == VERDICT_APPLIED;
        if (order->claim.ret_new_count > 0) {
            send_new(order);
            if (desk_settle(&desk, order, OUTCOME_APPLIED) != STORE_OK)
                abort();
        }
        at += (int64_t)count;
    }
    free(order);
    desk_close(&desk);
    return NULL;
}

static void test_several_threads_that_deliver_one_stream_send_each_record_once(void **state)
{
    static struct worker workers[THREADS];
    size_t duplicate_count = 0;
    (void)state;
    bed_open();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        duplicate_count += workers[i].waited_count;
    }
    for (size_t i = 0; i < STREAM; i++)
        assert_int_equal(sent[i], 1);
    assert_true(duplicate_count > 0);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.commit_record_count, 2 * STREAM); /* claimed, and settled */
    assert_int_equal(figures.interval_count, 1);
}

static void test_Z11_a_redelivery_far_below_the_window_is_dropped_and_counted(void **state)
{
    (void)state;
    bed.options.window = 65536;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 300000, 1, MARK_NONE, OUTCOME_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 5), RECORD_BELOW_WINDOW);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 50, 2, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    desk_state(&bed.desk, "orders", 0, 0); /* the figures are those of the batch before */
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.below_window_count, 3);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 299999, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_a_claim_of_many_thousand_records_is_taken_whole(void **state)
{
    enum { MANY = 100000 };
    static struct record records[MANY];
    static enum verdict verdicts[MANY];
    static struct order order;
    (void)state;
    bed_open();
    order_init(&order, "orders", 0, 0, 1);
    for (size_t i = 0; i < MANY; i++)
        records[i] = (struct record){ { slice_of_text("orders"), 0, (int64_t)i }, mark_of_hash(i * 64) };
    order.claim.records = records;
    order.claim.ret_verdicts = verdicts;
    order.claim.record_count = MANY;
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    assert_int_equal(order.claim.ret_new_count, MANY);
    bed_close();
    bed_open();
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.in_doubt_records, MANY);
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = 0,
                                 .first = 10,
                                 .last = MANY - 11,
                                 .is_applied = true,
                                 .expect_count = MANY - 20 };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.in_doubt_records, 20);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, MANY / 2), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 9), RECORD_IN_DOUBT);
}

static void test_a_commit_that_waits_for_company_answers_all_the_same(void **state)
{
    (void)state;
    bed.options.commit_delay_us = 2000;
    bed_open();
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, i, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_several_threads_that_deliver_one_stream_send_each_record_once),
        TEST(test_Z11_a_redelivery_far_below_the_window_is_dropped_and_counted),
        TEST(test_a_claim_of_many_thousand_records_is_taken_whole),
        TEST(test_a_commit_that_waits_for_company_answers_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
