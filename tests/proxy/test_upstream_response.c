/*
 * test_upstream_response.c - what the target says and what of it is passed up: C-50 to C-58, R-13 to R-22.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include "upstream_bed.h"
#include "upstream_target.h"

struct scene {
    struct target target;
    struct bed bed;
    struct trip trip;
};

/* The same bytes for each request of a connection. */
static void say_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request))
        target_write(fd, target->context);
}

/* The same, one byte at a time. */
static void trickle_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request))
        for (const char *at = target->context; *at != '\0'; at++) {
            target_write_bytes(fd, at, 1);
            usleep(100);
        }
}

static void scene_open(struct scene *scene, target_script *script, const char *answer)
{
    target_start(&scene->target, script, strdup(answer));
    bed_init(&scene->bed, "127.0.0.1", scene->target.port);
    bed_start(&scene->bed, 1);
}

static void scene_close(struct scene *scene)
{
    bed_stop(&scene->bed);
    target_stop(&scene->target);
    free(scene->target.context);
}

static void assert_body(const struct flight *flight, const char *body)
{
    assert_int_equal(flight->answer_bytes, strlen(body));
    if (flight->answer_bytes > 0)
        assert_memory_equal(flight->answer, body, flight->answer_bytes);
}

static void assert_field(const struct flight *flight, const char *name, const char *value)
{
    const struct http1_field *field =
        http1_field_find(flight->response.fields, flight->response.field_count, name);
    if (value == NULL) {
        assert_null(field);
        return;
    }
    assert_non_null(field);
    assert_true(slice_equals_text(field->value, value));
}

/* Answers twice, so that what is left of the first would show in the second; in one piece and byte by byte. */
static void assert_known(const char *method, const char *answer, int status, const char *body, bool is_kept)
{
    target_script *const scripts[] = { say_script, trickle_script };
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        scene_open(&scene, scripts[i], answer);
        for (int k = 0; k < 2; k++) {
            trip_run(&scene.trip, &scene.bed, method, "/write", strcmp(method, "POST") == 0 ? "12345" : NULL);
            if (scene.trip.flight.attempt_class != ATTEMPT_KNOWN)
                fail_msg("%s: %s", answer, scene.trip.flight.detail);
            assert_int_equal(scene.trip.flight.response.status, status);
            assert_false(scene.trip.flight.is_answer_damaged);
            assert_int_equal(scene.trip.flight.error, ATTEMPT_ERROR_NONE);
            assert_body(&scene.trip.flight, body);
            assert_field(&scene.trip.flight, "set-cookie", NULL);
            for (size_t f = 0; f < scene.trip.flight.response.field_count; f++)
                assert_true(http1_token_is_valid(scene.trip.flight.response.fields[f].name));
            flight_deinit(&scene.trip.flight);
        }
        assert_int_equal(scene.target.connection_count, is_kept ? 1 : 2);
        assert_false(target_has_seen(&scene.target, " HTTP/1.0\r\n"));
        scene_close(&scene);
    }
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void test_c50_r16_trailers_are_dropped(void **state)
{
    (void)state;
    /* Larger than what is there for the head: to keep it would move what the head's slices point to. */
    char answer[1200];
    (void)snprintf(answer, sizeof answer, CHUNKED "3\r\nabc\r\n0\r\nSet-Cookie: a=b\r\nX: %01000d\r\n\r\n",
                   0);
    assert_known("POST", answer, 200, "abc", true);
    assert_known("POST", CHUNKED "0\r\nSet-Cookie: a=b\r\nHTTP/1.1 500 No: x\r\n\r\n", 200, "", true);
}

static void test_c51_r13_heads_before_the_answer_are_not_the_answer(void **state)
{
    (void)state;
    assert_known("POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok", 201,
                 "ok", true);
    assert_known(
        "POST",
        "HTTP/1.1 102 Processing\r\nSet-Cookie: a=b\r\nContent-Length: 7\r\n\r\nHTTP/1.1 103 Early\r\n"
        "Link: x\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok",
        201, "ok", true);
}

static void hint_then_close_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    if (target_read(target, fd, &request))
        target_write(fd, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\n");
}

static void test_c51_only_a_head_before_the_answer_is_unknown(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, hint_then_close_script, "");
    trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
    assert_string_equal(class_name(scene.trip.flight.attempt_class), "unknown");
    flight_deinit(&scene.trip.flight);
    scene_close(&scene);
}

/* UNKNOWN, nothing of the answer used, and the connection not used again. */
static void assert_unknown(const char *answer)
{
    struct scene scene;
    scene_open(&scene, say_script, answer);
    for (unsigned i = 1; i <= 2; i++) {
        trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
        if (scene.trip.flight.attempt_class != ATTEMPT_UNKNOWN)
            fail_msg("%s: %s", answer, class_name(scene.trip.flight.attempt_class));
        assert_int_equal(scene.trip.flight.error, ATTEMPT_ERROR_PROTOCOL);
        assert_int_equal(scene.trip.flight.answer_bytes, 0);
        assert_int_equal(scene.target.connection_count, i);
        assert_int_equal(scene.target.begun_count, i);
        flight_deinit(&scene.trip.flight);
    }
    scene_close(&scene);
}

static void test_c52_c53_c54_r19_a_head_that_contradicts_itself_is_unknown(void **state)
{
    (void)state;
    assert_unknown("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nokxyz");
    assert_unknown("HTTP/1.1 200 OK\r\nContent-Length: 2, 5\r\n\r\nokxyz");
    assert_unknown(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
    assert_unknown("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok");
    assert_unknown("HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 2\r\n\r\nok");
    assert_unknown("HTTP/1.1 200 OK\r\nHTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok");
}

static void test_r14_101_is_unknown(void **state)
{
    (void)state;
    assert_unknown("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
}

static void test_c53_the_same_length_twice_is_no_contradiction(void **state)
{
    (void)state;
    assert_known("POST", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok",
                 true);
}

static void test_c55_bytes_after_an_answer_are_not_given_to_the_next_request(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(
        &scene, say_script,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 201 Evil\r\nContent-Length: 0\r\n\r\n");
    for (int i = 0; i < 3; i++) {
        trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
        assert_string_equal(class_name(scene.trip.flight.attempt_class), "known");
        assert_int_equal(scene.trip.flight.response.status, 200);
        assert_body(&scene.trip.flight, "ok");
        flight_deinit(&scene.trip.flight);
    }
    assert_int_equal(scene.target.begun_count, 3);
    scene_close(&scene);
}

static atomic_uint extra_count;

/* The second answer comes once the first has been taken, and before the next request. */
static void late_extra_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request)) {
        target_write(fd, TARGET_OK);
        usleep(20000);
        target_write(fd, "HTTP/1.1 201 Evil\r\nContent-Length: 0\r\n\r\n");
        atomic_fetch_add(&extra_count, 1);
    }
}

static void test_c55_an_answer_without_a_request_is_not_taken_for_the_next(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, late_extra_script, "");
    for (unsigned i = 1; i <= 3; i++) {
        trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
        assert_string_equal(class_name(scene.trip.flight.attempt_class), "known");
        assert_int_equal(scene.trip.flight.response.status, 200);
        flight_deinit(&scene.trip.flight);
        while (atomic_load(&extra_count) < i)
            bed_spin_ms(&scene.bed, 10);
    }
    assert_int_equal(scene.target.begun_count, 3);
    scene_close(&scene);
}

static void test_c56_r20_answers_that_have_no_body(void **state)
{
    (void)state;
    assert_known("POST", "HTTP/1.1 204 None\r\n\r\n", 204, "", true);
    assert_known("GET", "HTTP/1.1 304 Same\r\nContent-Length: 500\r\n\r\n", 304, "", true);
    assert_known("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200, "", true);
    assert_known("HEAD", CHUNKED, 200, "", true);
    assert_known("POST", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, "", true);
}

static void test_c57_a_coded_body_passes_untouched(void **state)
{
    (void)state;
    assert_known("POST",
                 "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08x", 200,
                 "\x1f\x8b\x08x", true);
    assert_known("POST", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nabcd", 200,
                 "abcd", true);
}

static void test_answers_of_an_old_target_and_a_closing_one_are_whole(void **state)
{
    (void)state;
    assert_known("POST", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false);
    assert_known("POST", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200,
                 "ok", false);
    assert_known("POST", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok",
                 false);
}

static void assert_too_large(const char *head, size_t body_bytes, bool is_expected)
{
    struct scene scene;
    char *answer = calloc(1, strlen(head) + body_bytes + 1);
    assert_non_null(answer);
    strcpy(answer, head);
    memset(answer + strlen(head), 'b', body_bytes);
    target_start(&scene.target, say_script, answer);
    bed_init(&scene.bed, "127.0.0.1", scene.target.port);
    scene.bed.settings.response_bytes_max = 1000;
    scene.bed.settings.target_timeout_ms = 1000;
    bed_start(&scene.bed, 1);
    trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
    assert_string_equal(class_name(scene.trip.flight.attempt_class), "known");
    assert_int_equal(scene.trip.flight.response.status, 200);
    assert_int_equal(scene.trip.flight.is_answer_damaged, is_expected);
    assert_int_equal(scene.trip.flight.error, is_expected ? ATTEMPT_ERROR_TOO_LARGE : ATTEMPT_ERROR_NONE);
    assert_true(scene.trip.flight.answer_bytes <= 1000);
    flight_deinit(&scene.trip.flight);
    bed_stop(&scene.bed);
    target_stop(&scene.target);
    free(answer);
}

static void test_c58_r22_an_answer_above_the_limit_is_known_and_damaged(void **state)
{
    (void)state;
    assert_too_large("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 1000, false);
    assert_too_large("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", 1001, true);
    assert_too_large("HTTP/1.1 200 OK\r\nContent-Length: 900000000000\r\n\r\n", 1, true);
    assert_too_large("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", 100000, true);
}

static void test_the_head_can_be_read_until_the_flight_is_released(void **state)
{
    struct scene scene;
    (void)state;
    scene_open(&scene, say_script,
               "HTTP/1.1 202 Taken\r\nContent-Type: text/x\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nok");
    trip_run(&scene.trip, &scene.bed, "POST", "/write", "12345");
    bed_stop(&scene.bed);
    target_stop(&scene.target);
    free(scene.target.context);
    assert_field(&scene.trip.flight, "content-type", "text/x");
    assert_field(&scene.trip.flight, "x-empty", "");
    assert_int_equal(scene.trip.flight.response.field_count, 3);
    flight_deinit(&scene.trip.flight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c50_r16_trailers_are_dropped),
        cmocka_unit_test(test_c51_r13_heads_before_the_answer_are_not_the_answer),
        cmocka_unit_test(test_c51_only_a_head_before_the_answer_is_unknown),
        cmocka_unit_test(test_c52_c53_c54_r19_a_head_that_contradicts_itself_is_unknown),
        cmocka_unit_test(test_r14_101_is_unknown),
        cmocka_unit_test(test_c53_the_same_length_twice_is_no_contradiction),
        cmocka_unit_test(test_c55_bytes_after_an_answer_are_not_given_to_the_next_request),
        cmocka_unit_test(test_c55_an_answer_without_a_request_is_not_taken_for_the_next),
        cmocka_unit_test(test_c56_r20_answers_that_have_no_body),
        cmocka_unit_test(test_c57_a_coded_body_passes_untouched),
        cmocka_unit_test(test_answers_of_an_old_target_and_a_closing_one_are_whole),
        cmocka_unit_test(test_c58_r22_an_answer_above_the_limit_is_known_and_damaged),
        cmocka_unit_test(test_the_head_can_be_read_until_the_flight_is_released),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    upstream_global_init();
    return cmocka_run_group_tests_name("upstream_response", tests, NULL, NULL);
}
