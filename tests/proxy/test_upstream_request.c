/*
 * test_upstream_request.c - the bytes that reach the target: C-30 to C-41, R-08, R-25.
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

struct stage {
    struct target target;
    struct bed bed;
};

static void stage_open(struct stage *stage)
{
    target_start(&stage->target, target_answer_ok, NULL);
    bed_init(&stage->bed, "127.0.0.1", stage->target.port);
}

static void stage_close(struct stage *stage)
{
    bed_stop(&stage->bed);
    target_stop(&stage->target);
}

/* Send, expect a known answer, and compare everything that the target saw; "%d" in WANTED is its port. */
static void assert_seen(struct stage *stage, struct trip *trip, const char *wanted)
{
    char *bytes = NULL;
    int count = 0;
    stage->target.seen_bytes = 0;
    trip_send(trip);
    trip_wait(trip);
    assert_string_equal(class_name(trip->flight.attempt_class), "known");
    const char *mark = strstr(wanted, "%d");
    if (mark == NULL)
        count = asprintf(&bytes, "%s", wanted);
    else
        count = asprintf(&bytes, "%.*s%d%s", (int)(mark - wanted), wanted, stage->target.port, mark + 2);
    assert_true(count > 0);
    stage->target.seen[stage->target.seen_bytes] = '\0';
    assert_string_equal(stage->target.seen, bytes);
    free(bytes);
    flight_deinit(&trip->flight);
}

static void test_c33_r08_fields_arrive_in_order_with_case_repetition_and_nothing_added(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "POST", "/write", "12345", 5);
    trip_field(&trip, "x-LOWER-upper", "One,  two ;three");
    trip_field(&trip, "Set", "1");
    trip_field(&trip, "SET", "2");
    trip_field(&trip, "set", "1");
    trip_field(&trip, "X-Colon", ":a:b:");
    trip_field(&trip, "x_under-score!", "");
    trip_field(&trip, "X-Latin", "caf\xe9\tand tab");
    assert_seen(&stage, &trip,
                "POST /write HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nx-LOWER-upper: One,  two ;three\r\nSet: "
                "1\r\nSET: 2\r\n"
                "set: 1\r\nX-Colon: :a:b:\r\nx_under-score!:\r\nX-Latin: caf\xe9\tand tab\r\nContent-Length: "
                "5\r\n\r\n"
                "12345");
    stage_close(&stage);
}

static void test_c33_fields_that_libcurl_would_add_or_know_arrive_as_they_came(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "PUT", "/write", "{}", 2);
    trip_field(&trip, "ACCEPT", "a/b");
    trip_field(&trip, "accept", "c/d");
    trip_field(&trip, "content-TYPE", "application/json");
    trip_field(&trip, "user-agent", "kafka");
    trip_field(&trip, "Accept-Encoding", "gzip");
    trip_field(&trip, "Authorization", "Bearer x");
    trip_field(&trip, "Cookie", "a=b");
    trip_field(&trip, "Cookie", "c=d");
    trip_field(&trip, "Referer", "http://r/");
    trip_field(&trip, "Range", "bytes=0-1");
    trip_field(&trip, "If-Modified-Since", "never");
    assert_seen(
        &stage, &trip,
        "PUT /write HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nACCEPT: a/b\r\naccept: c/d\r\n"
        "content-TYPE: application/json\r\nuser-agent: kafka\r\nAccept-Encoding: gzip\r\n"
        "Authorization: Bearer x\r\nCookie: a=b\r\nCookie: c=d\r\nReferer: http://r/\r\nRange: bytes=0-1\r\n"
        "If-Modified-Since: never\r\nContent-Length: 2\r\n\r\n{}");
    stage_close(&stage);
}

static void test_c34_a_field_with_an_empty_value_arrives(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "GET", "/", NULL, 0);
    trip_field(&trip, "X-Empty", "");
    trip_field(&trip, "Accept", "");
    trip_field(&trip, "User-Agent", "");
    assert_seen(&stage, &trip,
                "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Empty:\r\nAccept:\r\nUser-Agent:\r\n\r\n");
    stage_close(&stage);
}

static void test_c31_c32_c35_c37_framing_and_host_are_ours_whatever_the_fields_say(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "POST", "/write", "12345", 5);
    trip_field(&trip, "Content-Length", "99");
    trip_field(&trip, "transfer-ENCODING", "chunked");
    trip_field(&trip, "Host", "other.test");
    trip_field(&trip, "Expect", "100-continue");
    trip_field(&trip, "Connection", "close");
    trip.flight.host = slice_of_text("kept.test:81");
    assert_seen(&stage, &trip,
                "POST /write HTTP/1.1\r\nHost: kept.test:81\r\nContent-Length: 5\r\n\r\n12345");
    stage_close(&stage);
}

static void test_methods_bodies_and_lengths_arrive_as_they_are(void **state)
{
    struct stage stage;
    struct trip trip;
    const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE", "GET", "OPTIONS" };
    char wanted[128];
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        trip_init(&trip, &stage.bed, methods[i], "/m", NULL, 0);
        (void)snprintf(wanted, sizeof wanted, "%s /m HTTP/1.1\r\nHost: 127.0.0.1:%%d\r\n\r\n", methods[i]);
        assert_seen(&stage, &trip, wanted);
        trip_init(&trip, &stage.bed, methods[i], "/m", "", 0);
        (void)snprintf(wanted, sizeof wanted,
                       "%s /m HTTP/1.1\r\nHost: 127.0.0.1:%%d\r\nContent-Length: 0\r\n\r\n", methods[i]);
        assert_seen(&stage, &trip, wanted);
        trip_init(&trip, &stage.bed, methods[i], "/m", "a\nb", 3);
        (void)snprintf(wanted, sizeof wanted,
                       "%s /m HTTP/1.1\r\nHost: 127.0.0.1:%%d\r\nContent-Length: 3\r\n\r\na\nb", methods[i]);
        assert_seen(&stage, &trip, wanted);
    }
    stage_close(&stage);
}

static void test_a_body_in_pieces_arrives_as_one(void **state)
{
    struct stage stage;
    struct trip trip;
    const struct slice parts[] = { { "ab", 2 }, { "", 0 }, { "c", 1 }, { NULL, 0 }, { "defg", 4 } };
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "POST", "/write", "", 0);
    trip.flight.parts = parts;
    trip.flight.part_count = sizeof parts / sizeof parts[0];
    trip.flight.body_bytes = 7;
    assert_seen(&stage, &trip,
                "POST /write HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 7\r\n\r\nabcdefg");
    stage_close(&stage);
}

static void test_a_large_body_in_pieces_arrives_byte_for_byte(void **state)
{
    enum { PIECE_BYTES = 33333, PIECE_COUNT = 20 };
    static char bytes[PIECE_BYTES * PIECE_COUNT];
    struct slice parts[PIECE_COUNT];
    struct stage stage;
    struct trip trip;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < PIECE_COUNT; i++)
        parts[i] = slice_of(bytes + i * PIECE_BYTES, PIECE_BYTES);
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "POST", "/write", "", 0);
    trip.flight.parts = parts;
    trip.flight.part_count = PIECE_COUNT;
    trip.flight.body_bytes = sizeof bytes;
    trip_send(&trip);
    trip_wait(&trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    assert_true(stage.target.seen_bytes > sizeof bytes);
    assert_memory_equal(stage.target.seen + stage.target.seen_bytes - sizeof bytes, bytes, sizeof bytes);
    flight_deinit(&trip.flight);
    stage_close(&stage);
}

static void assert_target(const char *base_path, const char *base_query, const char *target,
                          const char *wanted)
{
    struct stage stage;
    struct trip trip;
    char line[512];
    stage_open(&stage);
    stage.bed.settings.target.base_path = strdup(base_path);
    stage.bed.settings.target.base_query = strdup(base_query);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "GET", target, NULL, 0);
    (void)snprintf(line, sizeof line, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:", wanted);
    trip_send(&trip);
    trip_wait(&trip);
    stage.target.seen[stage.target.seen_bytes] = '\0';
    if (strncmp(stage.target.seen, line, strlen(line)) != 0)
        fail_msg("%s gave %s", target, stage.target.seen);
    flight_deinit(&trip.flight);
    stage_close(&stage);
    free(stage.bed.settings.target.base_path);
    free(stage.bed.settings.target.base_query);
}

static void test_c36_r25_the_target_is_sent_byte_for_byte_behind_the_base(void **state)
{
    (void)state;
    assert_target("", "", "/a/../b/./c//d/%2e%2E/%00?", "/a/../b/./c//d/%2e%2E/%00?");
    assert_target("", "", "/?a=%20&b=%zz?c", "/?a=%20&b=%zz?c");
    assert_target("/base/../x", "", "/p?q", "/base/../x/p?q");
    assert_target("/base", "a=b", "/p", "/base/p?a=b");
    assert_target("/base", "a=b", "/p?q=1", "/base/p?a=b&q=1");
    assert_target("", "a=b", "/p?", "/p?a=b&");
}

static void test_c36_asterisk_form_is_sent_as_it_is(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "OPTIONS", "*", NULL, 0);
    assert_seen(&stage, &trip, "OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n");
    stage_close(&stage);
}

static void assert_refused(struct stage *stage, struct trip *trip)
{
    trip_send(trip);
    assert_false(trip->is_from_inside);
    trip_wait(trip);
    assert_string_equal(class_name(trip->flight.attempt_class), "not_sent");
    assert_int_equal(trip->flight.error, ATTEMPT_ERROR_PROTOCOL);
    assert_int_equal(stage->target.begun_count, 0);
    flight_deinit(&trip->flight);
}

static void test_c30_what_would_end_a_line_early_is_refused_and_reaches_nobody(void **state)
{
    struct stage stage;
    struct trip trip;
    const char *const bad_names[] = { "X\r\nY", "X ", "", "X:", "X;" };
    const char *const bad_values[] = { "a\r\nY: b", "a\nb", "a\rb", "\x01" };
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    for (size_t i = 0; i < sizeof bad_names / sizeof bad_names[0]; i++) {
        trip_init(&trip, &stage.bed, "GET", "/", NULL, 0);
        trip_field(&trip, bad_names[i], "v");
        assert_refused(&stage, &trip);
    }
    for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
        trip_init(&trip, &stage.bed, "GET", "/", NULL, 0);
        trip_field(&trip, "X", bad_values[i]);
        assert_refused(&stage, &trip);
        trip_init(&trip, &stage.bed, "GET", "/", NULL, 0);
        trip.flight.host = slice_of_text(bad_values[i]);
        assert_refused(&stage, &trip);
    }
    trip_init(&trip, &stage.bed, "GET / HTTP/1.1\r\n\r\nPOST", "/", NULL, 0);
    assert_refused(&stage, &trip);
    trip_init(&trip, &stage.bed, "GET", "/ HTTP/1.1\r\nX: y", NULL, 0);
    assert_refused(&stage, &trip);
    stage_close(&stage);
}

static void test_c38_a_proxy_in_the_environment_is_not_obeyed(void **state)
{
    struct target trap;
    struct stage stage;
    struct trip trip;
    char url[64];
    (void)state;
    target_start(&trap, target_answer_ok, NULL);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", trap.port);
    (void)setenv("http_proxy", url, 1);
    (void)setenv("all_proxy", url, 1);
    (void)setenv("ALL_PROXY", url, 1);
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_init(&trip, &stage.bed, "GET", "/", NULL, 0);
    assert_seen(&stage, &trip, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n");
    assert_int_equal(trap.connection_count, 0);
    stage_close(&stage);
    target_stop(&trap);
    (void)unsetenv("http_proxy");
    (void)unsetenv("all_proxy");
    (void)unsetenv("ALL_PROXY");
}

static void test_a_proxy_of_the_setting_is_asked_in_absolute_form(void **state)
{
    struct target proxy;
    struct bed bed;
    struct trip trip;
    char url[64];
    (void)state;
    target_start(&proxy, target_answer_ok, NULL);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", proxy.port);
    (void)setenv("no_proxy", "*", 1);
    bed_init(&bed, "target.invalid", 80); /* only the proxy could know this name */
    bed.settings.target_proxy = url;
    bed_start(&bed, 1);
    trip_run(&trip, &bed, "POST", "/p?q", "12345");
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    static const char wanted[] = "POST http://target.invalid:80/p?q HTTP/1.1\r\nHost: target.invalid\r\n"
                                 "Content-Length: 5\r\n\r\n12345";
    proxy.seen[proxy.seen_bytes] = '\0';
    assert_string_equal(proxy.seen, wanted);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&proxy);
    (void)unsetenv("no_proxy");
}

static void refusing_proxy_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    if (target_read(target, fd, &request))
        target_write(fd, "HTTP/1.1 200 OK\r\nX: from the proxy\r\n\r\nnot TLS");
}

static void test_what_a_proxy_says_before_its_tunnel_stands_is_no_answer(void **state)
{
    struct target proxy;
    struct bed bed;
    struct trip trip;
    char url[64];
    (void)state;
    target_start(&proxy, refusing_proxy_script, NULL);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", proxy.port);
    bed_init(&bed, "target.invalid", 443);
    bed.settings.target.is_https = true;
    bed.settings.target_proxy = url;
    bed_start(&bed, 1);
    trip_run(&trip, &bed, "POST", "/secret", "12345");
    assert_string_equal(class_name(trip.flight.attempt_class), "not_sent");
    assert_int_equal(trip.flight.error, ATTEMPT_ERROR_TLS);
    assert_false(trip.flight.attempt.is_head_complete);
    assert_true(target_has_seen(&proxy, "CONNECT target.invalid:443 HTTP/1.1\r\n"));
    assert_false(target_has_seen(&proxy, "secret"));
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&proxy);
}

static void moved_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    const char *answer = target->context;
    (void)index;
    while (target_read(target, fd, &request))
        target_write(fd, answer);
}

static void assert_answered_once(const char *answer, int status)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    char *text = strdup(answer);
    target_start(&target, moved_script, text);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 1);
    for (unsigned i = 1; i <= 2; i++) {
        trip_init(&trip, &bed, "POST", "/write", "12345", 5);
        trip_send(&trip);
        trip_wait(&trip);
        assert_string_equal(class_name(trip.flight.attempt_class), "known");
        assert_int_equal(trip.flight.response.status, status);
        assert_int_equal(target.begun_count, i);
        flight_deinit(&trip.flight);
    }
    assert_false(target_has_seen(&target, "Cookie"));
    bed_stop(&bed);
    target_stop(&target);
    free(text);
}

static void test_c40_redirects_challenges_and_cookies_are_answers_and_nothing_more(void **state)
{
    (void)state;
    assert_answered_once("HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", 307);
    assert_answered_once("HTTP/1.1 302 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
                         302);
    assert_answered_once(
        "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n", 401);
    assert_answered_once("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n", 407);
    assert_answered_once("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n", 200);
    assert_answered_once("HTTP/1.1 503 Wait\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", 503);
    assert_answered_once("HTTP/1.1 425 Early\r\nContent-Length: 0\r\n\r\n", 425);
}

static void test_c39_tls_keys_are_not_dumped(void **state)
{
    (void)state;
    assert_null(getenv("SSLKEYLOGFILE")); /* main() had set it before upstream_global_init() */
}

static void test_c41_the_request_offers_no_other_version(void **state)
{
    struct stage stage;
    struct trip trip;
    (void)state;
    stage_open(&stage);
    bed_start(&stage.bed, 1);
    trip_run(&trip, &stage.bed, "GET", "/", NULL);
    assert_false(target_has_seen(&stage.target, "Upgrade"));
    assert_false(target_has_seen(&stage.target, "HTTP2-Settings"));
    assert_true(target_has_seen(&stage.target, "GET / HTTP/1.1\r\n"));
    flight_deinit(&trip.flight);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c33_r08_fields_arrive_in_order_with_case_repetition_and_nothing_added),
        cmocka_unit_test(test_c33_fields_that_libcurl_would_add_or_know_arrive_as_they_came),
        cmocka_unit_test(test_c34_a_field_with_an_empty_value_arrives),
        cmocka_unit_test(test_c31_c32_c35_c37_framing_and_host_are_ours_whatever_the_fields_say),
        cmocka_unit_test(test_methods_bodies_and_lengths_arrive_as_they_are),
        cmocka_unit_test(test_a_body_in_pieces_arrives_as_one),
        cmocka_unit_test(test_a_large_body_in_pieces_arrives_byte_for_byte),
        cmocka_unit_test(test_c36_r25_the_target_is_sent_byte_for_byte_behind_the_base),
        cmocka_unit_test(test_c36_asterisk_form_is_sent_as_it_is),
        cmocka_unit_test(test_c30_what_would_end_a_line_early_is_refused_and_reaches_nobody),
        cmocka_unit_test(test_c38_a_proxy_in_the_environment_is_not_obeyed),
        cmocka_unit_test(test_a_proxy_of_the_setting_is_asked_in_absolute_form),
        cmocka_unit_test(test_what_a_proxy_says_before_its_tunnel_stands_is_no_answer),
        cmocka_unit_test(test_c40_redirects_challenges_and_cookies_are_answers_and_nothing_more),
        cmocka_unit_test(test_c39_tls_keys_are_not_dumped),
        cmocka_unit_test(test_c41_the_request_offers_no_other_version),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setenv("SSLKEYLOGFILE", "/dev/null", 1);
    upstream_global_init();
    return cmocka_run_group_tests_name("upstream_request", tests, NULL, NULL);
}
