/*
 * test_upstream_loop.c - sockets between transfers, and how a small write leaves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <cmocka.h>
#include <curl/curl.h>
#include "upstream_bed.h"
#include "upstream_target.h"

/* ---- segments ---- */

static unsigned segments_in(int fd)
{
    struct tcp_info figures;
    socklen_t byte_count = sizeof figures;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &figures, &byte_count) == 0 ? figures.tcpi_data_segs_in : 0;
}

/* Counts the segments of the second request, which comes on a used connection. */
static void counting_script(struct target *target, int fd, unsigned index)
{
    atomic_uint *segment_count = target->context;
    struct target_request request;
    (void)index;
    if (!target_read(target, fd, &request))
        return;
    unsigned before = segments_in(fd); /* before the answer: the next request may follow at once */
    target_write(fd, TARGET_OK);
    if (!target_read(target, fd, &request))
        return;
    atomic_store(segment_count, segments_in(fd) - before);
    target_write(fd, TARGET_OK);
    target_answer_ok(target, fd, index);
}

static unsigned segments_of_a_write(size_t body_bytes)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    atomic_uint segment_count = 0;
    char *body = malloc(body_bytes);
    assert_non_null(body);
    memset(body, 'b', body_bytes);
    target_start(&target, counting_script, &segment_count);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    bed_warm(&bed);
    trip_init(&trip, &bed, "POST", "/write", body, body_bytes);
    trip_send(&trip);
    trip_wait(&trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    assert_int_equal(target.whole_count, 1);
    assert_int_equal(target.connection_count, 1);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
    free(body);
    return atomic_load(&segment_count);
}

static void test_head_and_body_of_a_small_write_leave_as_one_segment(void **state)
{
    (void)state;
    assert_int_equal(segments_of_a_write(1), 1);
    assert_int_equal(segments_of_a_write(500), 1);
}

static void test_a_large_write_is_not_held_back(void **state)
{
    (void)state;
    /* libcurl 7.88 sends head and body apart, 8.14 in one call: there one segment is no sign of having been held. */
    if (curl_version_info(CURLVERSION_NOW)->version_num < 0x080000)
        assert_true(segments_of_a_write(8193) >= 2);
    assert_true(segments_of_a_write(1000000) >= 2);
}

/* ---- between transfers ---- */

/* Ends, or says something that nobody asked for, once the first request is answered. */
static void idle_script(struct target *target, int fd, unsigned index)
{
    const char *unasked = target->context;
    struct target_request request;
    if (index > 0) {
        target_answer_ok(target, fd, index);
        return;
    }
    if (!target_read(target, fd, &request))
        return;
    target_write(fd, TARGET_OK);
    if (unasked == NULL)
        return;
    target_write(fd, unasked);
    target_stall(target, fd);
}

static void over_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    *(bool *)context = true;
}

/* How often the loop wakes up in a twentieth of a second with nothing to do. */
static unsigned turns_of_rest(struct bed *bed)
{
    const struct timeval rest = { 0, 50000 };
    bool is_over = false;
    unsigned turn_count = 0;
    assert_int_equal(event_base_once(bed->base, -1, EV_TIMEOUT, over_cb, &is_over, &rest), 0);
    while (!is_over && turn_count < 1000) {
        (void)event_base_loop(bed->base, EVLOOP_ONCE);
        turn_count++;
    }
    return turn_count;
}

static void assert_rests(char *unasked)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    target_start(&target, idle_script, unasked);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    bed_warm(&bed);
    assert_true(turns_of_rest(&bed) < 20);
    for (unsigned i = 0; i < 3; i++) { /* the number of the closed socket serves the next one */
        trip_run(&trip, &bed, "POST", "/write", "12345");
        assert_string_equal(class_name(trip.flight.attempt_class), "known");
        assert_int_equal(trip.flight.answer_bytes, 2);
        flight_deinit(&trip.flight);
    }
    assert_int_equal(target.whole_count, 3);
    assert_int_equal(target.connection_count, 2);
    bed_stop(&bed);
    target_stop(&target);
}

static void test_an_idle_connection_that_the_target_closes_wakes_the_loop_once(void **state)
{
    (void)state;
    assert_rests(NULL);
}

static void test_bytes_that_nobody_asked_for_wake_the_loop_once_and_are_no_answer(void **state)
{
    char unasked[] = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nunasked";
    (void)state;
    assert_rests(unasked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_and_body_of_a_small_write_leave_as_one_segment),
        cmocka_unit_test(test_a_large_write_is_not_held_back),
        cmocka_unit_test(test_an_idle_connection_that_the_target_closes_wakes_the_loop_once),
        cmocka_unit_test(test_bytes_that_nobody_asked_for_wake_the_loop_once_and_are_no_answer),
    };
    upstream_global_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
