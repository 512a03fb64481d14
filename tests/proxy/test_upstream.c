/*
 * test_upstream.c - the silent second send, the queue, the loop: C-01 to C-08, C-20 to C-28.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "metrics.h"
#include "upstream_bed.h"
#include "upstream_target.h"

/* ---- C-01 to C-05: one send, whatever dies ---- */

enum ending { ENDING_FIN, ENDING_RST };
struct drop {
    enum ending ending;
    bool is_half;
};

/* Reads a write (or half of it) on a used connection and drops the connection; a second send would be answered. */
static void drop_script(struct target *target, int fd, unsigned index)
{
    const struct drop *drop = target->context;
    struct target_request request;
    if (index > 0) {
        target_answer_ok(target, fd, index);
        return;
    }
    if (!target_read(target, fd, &request))
        return;
    target_write(fd, TARGET_OK); /* the warm one */
    if (drop->is_half)
        (void)target_read_half(target, fd, &request);
    else
        (void)target_read(target, fd, &request);
    if (drop->ending == ENDING_RST)
        target_reset(target, index);
}

static char *big_body(size_t byte_count)
{
    char *body = malloc(byte_count);
    assert_non_null(body);
    memset(body, 'b', byte_count);
    return body;
}

static void assert_sent_once(const char *method, const char *body, size_t body_bytes, struct drop drop)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    target_start(&target, drop_script, &drop);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 4);
    bed_warm(&bed);
    trip_init(&trip, &bed, method, "/write", body, body_bytes);
    trip_send(&trip);
    trip_wait(&trip);
    assert_int_equal(target.begun_count, 1);
    assert_string_equal(class_name(trip.flight.attempt_class), "unknown");
    assert_int_equal(trip.done_count, 1);
    assert_int_not_equal(trip.flight.error, ATTEMPT_ERROR_NONE);
    assert_true(trip.flight.detail[0] != '\0');
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
}

static const struct drop drops[] = {
    { ENDING_FIN, false }, { ENDING_RST, false }, { ENDING_FIN, true }, { ENDING_RST, true }
};

static void test_c01_c04_c05_small_post_is_sent_once_when_a_used_connection_dies(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_sent_once("POST", "12345", 5, drops[i]);
}

static void test_c02_c04_c05_big_post_is_sent_once_when_a_used_connection_dies(void **state)
{
    char *body = big_body(300 * 1024);
    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_sent_once("POST", body, 300 * 1024, drops[i]);
    free(body);
}

static void test_c03_c04_delete_and_empty_post_are_sent_once_when_a_used_connection_dies(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_sent_once("DELETE", NULL, 0, drops[i]);
        assert_sent_once("POST", "", 0, drops[i]);
    }
}

/* C-06 without libcurl's debug text: what it says would be believed, what the target saw is counted. */
static void test_c06_second_send_stopped_by_the_guard_is_named_and_counted(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    struct drop drop = { ENDING_FIN, false };
    uint64_t before = metrics_counter(COUNTER_TARGET_ERROR_GUARD);
    (void)state;
    target_start(&target, drop_script, &drop);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 4);
    bed_warm(&bed);
    trip_run(&trip, &bed, "DELETE", "/write", NULL);
    assert_int_equal(trip.flight.attempt.prereq_count, 2);
    assert_int_equal(trip.flight.error, ATTEMPT_ERROR_GUARD);
    assert_int_equal(metrics_counter(COUNTER_TARGET_ERROR_GUARD), before + 1);
    assert_int_equal(target.begun_count, 1);
    bed_spin_ms(&bed, 50);
    assert_int_equal(target.begun_count, 1);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
}

static void test_c07_a_flight_stopped_before_its_send_reaches_nobody(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip, late;
    atomic_bool stop = true;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 4);
    trip_init(&trip, &bed, "POST", "/write", "12345", 5);
    trip.flight.stop = &stop;
    trip_send(&trip);
    assert_false(trip.is_from_inside);
    trip_wait(&trip);
    trip_init(&late, &bed, "POST", "/write", "12345", 5);
    stop = false;
    late.flight.stop = &stop;
    trip_send(&late); /* handed to libcurl; the guard sees the flag */
    stop = true;
    trip_wait(&late);
    assert_string_equal(class_name(trip.flight.attempt_class), "not_sent");
    assert_string_equal(class_name(late.flight.attempt_class), "not_sent");
    assert_true(late.flight.attempt.is_first_refused);
    assert_int_equal(trip.flight.error, ATTEMPT_ERROR_STOPPED);
    assert_int_equal(late.flight.error, ATTEMPT_ERROR_STOPPED);
    assert_false(flight_may_go_again(&trip.flight));
    assert_int_equal(target.begun_count, 0);
    flight_deinit(&trip.flight);
    flight_deinit(&late.flight);
    bed_stop(&bed);
    target_stop(&target);
}

static void expectation_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request))
        target_write(fd, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n");
}

static void test_c08_c37_a_417_is_an_answer_and_no_expectation_is_ever_sent(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    char *body = big_body(3 << 20);
    (void)state;
    target_start(&target, expectation_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 4);
    trip_init(&trip, &bed, "POST", "/write", body, 3 << 20);
    trip_field(&trip, "Expect", "100-continue");
    trip_send(&trip);
    trip_wait(&trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    assert_int_equal(trip.flight.response.status, 417);
    assert_int_equal(target.begun_count, 1);
    assert_false(target_has_seen(&target, "Expect"));
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
    free(body);
}

/* ---- C-20 to C-28: loop, queue, reuse ---- */

struct chain {
    struct trip trip;
    unsigned left;
};

static void send_again(struct trip *trip)
{
    struct chain *chain = (struct chain *)(void *)trip;
    assert_string_equal(class_name(trip->flight.attempt_class), "known");
    flight_deinit(&trip->flight);
    if (--chain->left == 0)
        return;
    trip->done_count = 0;
    trip_send(trip);
    assert_false(trip->is_from_inside);
}

static void test_c20_done_may_send_the_next_and_is_never_called_from_inside(void **state)
{
    struct target target;
    struct bed bed;
    static struct chain chains[8];
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 3);
    for (size_t i = 0; i < 8; i++) {
        trip_init(&chains[i].trip, &bed, "POST", "/write", "12345", 5);
        chains[i].trip.then = send_again;
        chains[i].left = 50;
        trip_send(&chains[i].trip);
    }
    for (size_t i = 0; i < 8; i++)
        while (chains[i].left > 0)
            (void)event_base_loop(bed.base, EVLOOP_ONCE);
    assert_int_equal(target.whole_count, 400);
    assert_int_equal(target.connection_count, 3); /* C-24: kept, not opened again */
    bed_stop(&bed);
    target_stop(&target);
}

/* Every second connection is closed at once: numbers of descriptors come back while others are watched. */
static void flapping_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    if (index % 2 == 1)
        return;
    if (target_read(target, fd, &request))
        target_write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
}

static void test_c22_descriptor_numbers_that_come_back_wake_the_right_flight(void **state)
{
    struct target target;
    struct bed bed;
    static struct trip trips[100];
    unsigned known = 0;
    (void)state;
    target_start(&target, flapping_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 8);
    for (size_t i = 0; i < 100; i++) {
        trip_init(&trips[i], &bed, "POST", "/write", "12345", 5);
        trip_send(&trips[i]);
    }
    for (size_t i = 0; i < 100; i++) {
        trip_wait(&trips[i]);
        assert_int_equal(trips[i].done_count, 1);
        known += trips[i].flight.attempt_class == ATTEMPT_KNOWN;
        flight_deinit(&trips[i].flight);
    }
    assert_int_equal(known, target.whole_count);
    assert_true(known > 0 && known < 100);
    bed_stop(&bed);
    target_stop(&target);
}

/* ---- C-21: no memory in the loop's library ---- */

static bool has_no_memory;

static void *failing_malloc(size_t byte_count)
{
    return has_no_memory ? NULL : malloc(byte_count);
}

static void *failing_realloc(void *bytes, size_t byte_count)
{
    return has_no_memory ? NULL : realloc(bytes, byte_count);
}

static void slow_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request)) {
        usleep(300000);
        target_write(fd, TARGET_OK);
    }
}

static void test_c21_a_flight_that_no_event_can_serve_ends_alone(void **state)
{
    struct target target;
    struct bed bed;
    struct trip first, starved[8], last;
    int fillers[200];
    (void)state;
    target_start(&target, slow_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.connect_timeout_ms = bed.settings.target_timeout_ms = 1000;
    bed_start(&bed, 10);
    trip_init(&first, &bed, "POST", "/write", "1", 1);
    trip_send(&first);
    while (first.flight.sent_ns == 0)
        (void)event_base_loop(bed.base, EVLOOP_ONCE);
    /* Numbers that the loop has no place for yet, so that it must ask for memory. */
    for (size_t i = 0; i < 200; i++)
        fillers[i] = dup(STDIN_FILENO);
    has_no_memory = true;
    for (size_t i = 0; i < 8; i++) {
        trip_init(&starved[i], &bed, "POST", "/write", "2", 1);
        trip_send(&starved[i]);
    }
    trip_wait(&first);
    assert_string_equal(class_name(first.flight.attempt_class), "known");
    for (size_t i = 0; i < 8; i++) {
        trip_wait(&starved[i]);
        assert_int_equal(starved[i].flight.attempt_class == ATTEMPT_NOT_SENT, starved[i].flight.sent_ns == 0);
        assert_true(starved[i].flight.attempt_class != ATTEMPT_KNOWN || target.whole_count > 1);
        flight_deinit(&starved[i].flight);
    }
    has_no_memory = false;
    trip_run(&last, &bed, "POST", "/write", "3");
    assert_string_equal(class_name(last.flight.attempt_class), "known");
    flight_deinit(&first.flight);
    flight_deinit(&last.flight);
    for (size_t i = 0; i < 200; i++)
        (void)close(fillers[i]);
    bed_stop(&bed);
    target_stop(&target);
}

static void silent_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    if (target_read(target, fd, &request))
        target_stall(target, fd);
}

static void test_c23_a_full_in_flight_limit_ends_waiting_flights_unsent(void **state)
{
    struct target target;
    struct bed bed;
    struct trip first, second, third;
    (void)state;
    target_start(&target, silent_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.connect_timeout_ms = 100;
    bed.settings.target_timeout_ms = 400;
    bed_start(&bed, 1);
    trip_init(&first, &bed, "POST", "/write", "1", 1);
    trip_init(&second, &bed, "POST", "/write", "2", 1);
    trip_init(&third, &bed, "POST", "/write", "3", 1);
    trip_send(&first);
    trip_send(&second);
    trip_send(&third);
    trip_wait(&second);
    trip_wait(&third);
    assert_int_equal(first.done_count, 0);
    trip_wait(&first);
    assert_int_equal(second.flight.error, ATTEMPT_ERROR_QUEUE);
    assert_string_equal(class_name(second.flight.attempt_class), "not_sent");
    assert_string_equal(class_name(third.flight.attempt_class), "not_sent");
    assert_int_equal(second.flight.sent_ns, 0);
    assert_string_equal(class_name(first.flight.attempt_class), "unknown"); /* C-28: the total deadline */
    assert_int_equal(first.flight.error, ATTEMPT_ERROR_TIMEOUT);
    assert_int_equal(target.begun_count, 1);
    flight_deinit(&first.flight);
    flight_deinit(&second.flight);
    flight_deinit(&third.flight);
    bed_stop(&bed);
    target_stop(&target);
}

static void order_script(struct target *target, int fd, unsigned index)
{
    target_answer_ok(target, fd, index);
}

static void test_c23_waiting_flights_are_sent_in_their_order(void **state)
{
    struct target target;
    struct bed bed;
    static struct trip trips[20];
    static char bodies[20][8];
    (void)state;
    target_start(&target, order_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    for (size_t i = 0; i < 20; i++) {
        (void)snprintf(bodies[i], sizeof bodies[i], "[%02zu]", i);
        trip_init(&trips[i], &bed, "POST", "/write", bodies[i], 4);
        trip_send(&trips[i]);
    }
    trip_wait(&trips[19]);
    const char *at = target.seen;
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(trips[i].done_count, 1);
        at = strstr(at, bodies[i]);
        assert_non_null(at);
        flight_deinit(&trips[i].flight);
    }
    bed_stop(&bed);
    target_stop(&target);
}

static void test_c26_nothing_of_a_request_is_left_in_the_next_one(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    trip_init(&trip, &bed, "POST", "/first", "12345", 5);
    trip_field(&trip, "Cookie", "a=b");
    trip_field(&trip, "Authorization", "Basic eDp5");
    trip.flight.host = slice_of_text("first.test");
    trip_send(&trip);
    trip_wait(&trip);
    flight_deinit(&trip.flight);
    target.seen_bytes = 0;
    trip_run(&trip, &bed, "HEAD", "/second", NULL);
    flight_deinit(&trip.flight);
    trip_run(&trip, &bed, "GET", "/third", NULL);
    flight_deinit(&trip.flight);
    char wanted[256];
    int count = snprintf(wanted, sizeof wanted,
                         "HEAD /second HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\nGET /third HTTP/1.1\r\nHost: "
                         "127.0.0.1:%d\r\n\r\n",
                         target.port, target.port);
    assert_int_equal(target.seen_bytes, count);
    assert_memory_equal(target.seen, wanted, (size_t)count);
    bed_stop(&bed);
    target_stop(&target);
}

/* Reads nothing after the head, then resets: we are in the middle of a write. */
static void reset_while_sending_script(struct target *target, int fd, unsigned index)
{
    char bytes[64];
    if (read(fd, bytes, sizeof bytes) > 0)
        target_reset(target, index);
}

static void test_c27_a_reset_while_sending_raises_no_signal(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    char *body = big_body(4 << 20);
    (void)state;
    target_start(&target, reset_while_sending_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    trip_init(&trip, &bed, "POST", "/write", body, 4 << 20);
    trip_send(&trip);
    trip_wait(&trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "unknown");
    assert_int_equal(trip.flight.error, ATTEMPT_ERROR_CLOSED);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
    free(body);
}

static void test_upstream_may_end_with_flights_running_and_waiting(void **state)
{
    struct target target;
    struct bed bed;
    static struct trip trips[5];
    (void)state;
    target_start(&target, silent_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 2);
    for (size_t i = 0; i < 5; i++) {
        trip_init(&trips[i], &bed, "POST", "/write", "12345", 5);
        trip_send(&trips[i]);
    }
    bed_spin_ms(&bed, 50);
    bed_stop(&bed);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(trips[i].done_count, 0);
        flight_deinit(&trips[i].flight);
    }
    assert_int_equal(metrics_gauge(GAUGE_TARGET_IN_FLIGHT), 0);
    target_stop(&target);
}

/* ---- many at once against a target that leaves at random ---- */

enum { STORM_FLIGHTS = 400 };
static atomic_uint storm_seen[STORM_FLIGHTS]; /* how often each write was read in full */

/* Answers, closes before or after the answer, or resets; each choice comes from the write's own number. */
static void storm_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    while (target_read(target, fd, &request)) {
        unsigned long number = strtoul(strstr(request.head, "/write/") + 7, NULL, 10);
        unsigned choice = (unsigned)(number * 2654435761u >> 7) % 8;
        atomic_fetch_add(&storm_seen[number], 1);
        if (choice == 0)
            return;
        if (choice == 1) {
            target_reset(target, index);
            return;
        }
        target_write(fd, TARGET_OK);
        if (choice == 2)
            return; /* without a word in the answer */
    }
}

static void test_c01_c03_no_write_of_many_is_seen_twice_by_a_target_that_leaves(void **state)
{
    static struct trip trips[STORM_FLIGHTS];
    static char targets[STORM_FLIGHTS][24];
    unsigned counts[3] = { 0, 0, 0 };
    struct target target;
    struct bed bed;
    (void)state;
    target_start(&target, storm_script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.connect_timeout_ms = 30000;
    bed_start(&bed, 16);
    for (size_t i = 0; i < STORM_FLIGHTS; i++) {
        (void)snprintf(targets[i], sizeof targets[i], "/write/%zu", i);
        trip_init(&trips[i], &bed, i % 2 == 0 ? "POST" : "DELETE", targets[i], i % 2 == 0 ? "12345" : NULL,
                  5);
        trip_send(&trips[i]);
    }
    for (size_t i = 0; i < STORM_FLIGHTS; i++) {
        enum attempt_class class = (trip_wait(&trips[i]), trips[i].flight.attempt_class);
        unsigned seen = atomic_load(&storm_seen[i]);
        assert_true(seen <= 1);
        assert_true(class != ATTEMPT_KNOWN || seen == 1);
        assert_true(class != ATTEMPT_NOT_SENT || seen == 0);
        counts[class]++;
        flight_deinit(&trips[i].flight);
    }
    assert_true(counts[ATTEMPT_KNOWN] > STORM_FLIGHTS / 2 && counts[ATTEMPT_UNKNOWN] > STORM_FLIGHTS / 16);
    bed_stop(&bed);
    target_stop(&target);
}

/* ---- idle connections ---- */

/* How many connections two requests need with PAUSE_MS between them. */
static unsigned connections_of_two(uint64_t idle_ms, int pause_ms, target_script *script)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    target_start(&target, script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.target_idle_ms = idle_ms;
    bed_start(&bed, 2);
    for (int i = 0; i < 2; i++) {
        trip_run(&trip, &bed, "POST", "/write", "12345");
        assert_string_equal(class_name(trip.flight.attempt_class), "known");
        assert_int_equal(trip.flight.attempt.prereq_count, 1);
        flight_deinit(&trip.flight);
        if (i == 0 && pause_ms > 0)
            bed_spin_ms(&bed, pause_ms);
    }
    assert_int_equal(target.begun_count, 2);
    unsigned count = target.connection_count;
    bed_stop(&bed);
    target_stop(&target);
    return count;
}

static void keep_alive_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request))
        target_write(fd, "HTTP/1.1 200 OK\r\nKeep-Alive: max=9, timeout=0\r\nContent-Length: 2\r\n\r\nok");
}

static void test_idle_connection_is_used_again_within_the_limit_only(void **state)
{
    (void)state;
    assert_int_equal(connections_of_two(60000, 0, target_answer_ok), 1);
    assert_int_equal(connections_of_two(100, 250, target_answer_ok), 2);
    assert_int_equal(connections_of_two(0, 0, target_answer_ok), 2);
    assert_int_equal(connections_of_two(60000, 0, keep_alive_script), 2); /* the target's word is shorter */
}

static void test_without_reuse_the_target_is_told(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.target_idle_ms = 0;
    bed_start(&bed, 2);
    trip_run(&trip, &bed, "POST", "/write", "12345");
    assert_true(target_has_seen(&target, "\r\nConnection: close\r\n"));
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c01_c04_c05_small_post_is_sent_once_when_a_used_connection_dies),
        cmocka_unit_test(test_c02_c04_c05_big_post_is_sent_once_when_a_used_connection_dies),
        cmocka_unit_test(test_c03_c04_delete_and_empty_post_are_sent_once_when_a_used_connection_dies),
        cmocka_unit_test(test_c06_second_send_stopped_by_the_guard_is_named_and_counted),
        cmocka_unit_test(test_c07_a_flight_stopped_before_its_send_reaches_nobody),
        cmocka_unit_test(test_c08_c37_a_417_is_an_answer_and_no_expectation_is_ever_sent),
        cmocka_unit_test(test_c20_done_may_send_the_next_and_is_never_called_from_inside),
        cmocka_unit_test(test_c21_a_flight_that_no_event_can_serve_ends_alone),
        cmocka_unit_test(test_c22_descriptor_numbers_that_come_back_wake_the_right_flight),
        cmocka_unit_test(test_c23_a_full_in_flight_limit_ends_waiting_flights_unsent),
        cmocka_unit_test(test_c23_waiting_flights_are_sent_in_their_order),
        cmocka_unit_test(test_c26_nothing_of_a_request_is_left_in_the_next_one),
        cmocka_unit_test(test_c27_a_reset_while_sending_raises_no_signal),
        cmocka_unit_test(test_upstream_may_end_with_flights_running_and_waiting),
        cmocka_unit_test(test_c01_c03_no_write_of_many_is_seen_twice_by_a_target_that_leaves),
        cmocka_unit_test(test_idle_connection_is_used_again_within_the_limit_only),
        cmocka_unit_test(test_without_reuse_the_target_is_told),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    event_set_mem_functions(failing_malloc, failing_realloc, free); /* before the loop's library is used */
    upstream_global_init();
    return cmocka_run_group_tests_name("upstream", tests, NULL, NULL);
}
