/*
 * test_metrics.c - what is counted is read back, whichever thread counted it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include "metrics.h"

enum { THREADS = 20, ROUNDS = 2000 }; /* more threads than shards: some share */

static void *count_many(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        metrics_add(COUNTER_RECORDS, 2);
        metrics_gauge_add(GAUGE_CONNECTIONS, 1);
        metrics_gauge_add(GAUGE_CONNECTIONS, -1);
        metrics_observe(HISTOGRAM_TARGET_DURATION, 3000000);
        metrics_request(2, 201);
    }
    return unused;
}

static void test_nothing_is_lost_when_many_threads_count_at_once(void **state)
{
    pthread_t threads[THREADS];
    struct histogram_reading reading;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    metrics_histogram_get(HISTOGRAM_TARGET_DURATION, &reading);
    assert_int_equal(metrics_counter(COUNTER_RECORDS), 2 * THREADS * ROUNDS);
    assert_int_equal(metrics_gauge(GAUGE_CONNECTIONS), 0);
    assert_int_equal(reading.count, THREADS * ROUNDS);
    assert_int_equal(reading.sum, 3000000ull * THREADS * ROUNDS);
    assert_int_equal(metrics_request_count(2, 201), THREADS * ROUNDS);
}

static void test_a_counter_leaves_its_neighbours_alone(void **state)
{
    (void)state;
    metrics_add(COUNTER_RECORDS_CONFLICT, 7);
    assert_int_equal(metrics_counter(COUNTER_RECORDS_CONFLICT), 7);
    assert_int_equal(metrics_counter(COUNTER_RECORDS_BUSY), 0);
    assert_int_equal(metrics_counter(COUNTER_RECORDS_UNKEYED), 0);
}

static void test_a_gauge_is_set_and_then_moved(void **state)
{
    (void)state;
    metrics_gauge_set(GAUGE_TARGET_IN_FLIGHT, 40);
    metrics_gauge_add(GAUGE_TARGET_IN_FLIGHT, -41);
    assert_int_equal(metrics_gauge(GAUGE_TARGET_IN_FLIGHT), -1);
}

static void test_a_value_on_a_bound_belongs_to_the_bucket_below_it(void **state)
{
    struct histogram_reading reading;
    (void)state;
    metrics_observe(HISTOGRAM_BATCH_RECORDS, 1);     /* <= 1 */
    metrics_observe(HISTOGRAM_BATCH_RECORDS, 2);     /* <= 2 */
    metrics_observe(HISTOGRAM_BATCH_RECORDS, 3);     /* <= 5 */
    metrics_observe(HISTOGRAM_BATCH_RECORDS, 10000); /* the last bound */
    metrics_observe(HISTOGRAM_BATCH_RECORDS, 10001); /* above all */
    metrics_histogram_get(HISTOGRAM_BATCH_RECORDS, &reading);
    assert_int_equal(reading.buckets[0], 1);
    assert_int_equal(reading.buckets[1], 1);
    assert_int_equal(reading.buckets[2], 1);
    assert_int_equal(reading.buckets[12], 1);
    assert_int_equal(reading.buckets[13], 1);
    assert_int_equal(reading.count, 5);
    assert_int_equal(reading.sum, 1 + 2 + 3 + 10000 + 10001);
}

static void test_bounds_of_every_histogram_ascend(void **state)
{
    (void)state;
    for (enum histogram histogram = 0; histogram < HISTOGRAM_COUNT; histogram++) {
        const struct histogram_unit *unit = metrics_histogram_unit(histogram);
        assert_true(unit->bound_count > 0 && unit->bound_count <= HISTOGRAM_BOUNDS_MAX);
        for (size_t i = 1; i < unit->bound_count; i++)
            assert_true(unit->bounds[i] > unit->bounds[i - 1]);
    }
}

static void test_a_status_that_no_rfc_knows_is_counted_not_asserted(void **state)
{
    (void)state;
    metrics_target_response(200);
    metrics_target_response(999);
    metrics_target_response(0);
    assert_int_equal(metrics_target_response_count(200), 1);
    assert_int_equal(metrics_target_response_count(599), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost_when_many_threads_count_at_once),
        cmocka_unit_test(test_a_counter_leaves_its_neighbours_alone),
        cmocka_unit_test(test_a_gauge_is_set_and_then_moved),
        cmocka_unit_test(test_a_value_on_a_bound_belongs_to_the_bucket_below_it),
        cmocka_unit_test(test_bounds_of_every_histogram_ascend),
        cmocka_unit_test(test_a_status_that_no_rfc_knows_is_counted_not_asserted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
