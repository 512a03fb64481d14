/*
 * test_pass.c - which fields of a request go on to the target.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "pass.h"

static char none[] = "", target[] = "target", preserve[] = "preserve", fixed[] = "sink.example:8443",
            scope[] = "pay", key_header[] = "Idempotency-Key", secret[] = "Bearer s3cret", token[] = "s3cret";

static struct settings settings_of(void)
{
    struct settings settings = { 0 };
    settings.key_header = settings.authorization = settings.client_token = none;
    settings.host_header = target;
    settings.scope = scope;
    return settings;
}

static struct request request_of(const char *text)
{
    struct request request = { 0 };
    enum finish why = FINISH_NONE;
    assert_int_equal(http1_head(text, strlen(text), 65536, 1 << 20, &request.head, &why), HTTP1_DONE);
    return request;
}

static void assert_fields(const struct pass *pass, const char *const lines[], size_t line_count)
{
    assert_int_equal(pass->field_count, line_count);
    for (size_t i = 0; i < line_count; i++) {
        char line[256];
        snprintf(line, sizeof line, "%.*s: %.*s", (int)pass->fields[i].name.byte_count,
                 pass->fields[i].name.at, (int)pass->fields[i].value.byte_count, pass->fields[i].value.at);
        assert_string_equal(line, lines[i]);
    }
}

static void test_R_01_R_02_no_hop_by_hop_field_reaches_the_target(void **state)
{
    struct request request =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: "
                   "timeout=9\r\n"
                   "Proxy-Connection: keep-alive\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: "
                   "AAMA\r\nTrailer: X-T\r\n"
                   "Proxy-Authorization: Basic YQ==\r\nContent-Length: 0\r\nX-Kept: 1\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    pass_build(&pass, &request, NULL, &settings, NULL);
    const char *const lines[] = { "X-Kept: 1" };
    assert_fields(&pass, lines, 1);
}

static void test_R_05_R_08_R_10_order_case_and_repetition_stay_and_via_comes_last(void **state)
{
    struct request request =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nx-B: 1\r\nX-b: 2\r\nAuthorization: Basic YQ==\r\n"
                   "__topic: t\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    pass_build(&pass, &request, NULL, &settings, "1.1 sinkonce-abc");
    const char *const lines[] = { "x-B: 1", "X-b: 2", "Authorization: Basic YQ==", "__topic: t",
                                  "Via: 1.1 sinkonce-abc" };
    assert_fields(&pass, lines, 5);
}

static void test_R_06_a_request_that_was_here_before_is_a_loop(void **state)
{
    struct request request =
        request_of("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.0 other, 1.1 sinkonce-abc\r\n\r\n");
    (void)state;
    assert_true(pass_is_loop(&request, "1.1 sinkonce-abc"));
    assert_false(pass_is_loop(&request, "1.1 sinkonce-abd"));
}

static void test_R_07_max_forwards_counts_down_for_options_only(void **state)
{
    struct request options = request_of("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n");
    struct request last = request_of("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
    struct request get = request_of("GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    pass_build(&pass, &options, NULL, &settings, NULL);
    const char *const lines[] = { "Max-Forwards: 2" };
    assert_fields(&pass, lines, 1);
    assert_true(pass_ends_here(&last));
    assert_false(pass_ends_here(&options));
    assert_false(pass_ends_here(&get));
}

static void test_Z_15_a_client_cannot_speak_in_our_name(void **state)
{
    struct request request = request_of("POST / HTTP/1.1\r\nHost: evil\r\nSinkonce-Outcome: applied\r\n"
                                        "idempotency-key: forged\r\nContent-Length: 0\r\n\r\n");
    struct record record = { { slice_of_text("orders"), 3, 41 }, MARK_NONE };
    struct identified identified = { .records = &record, .record_count = 1 };
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    settings.key_header = key_header;
    pass_build(&pass, &request, &identified, &settings, NULL);
    const char *const lines[] = { "Idempotency-Key: pay/orders/3/41" };
    assert_fields(&pass, lines, 1);
    assert_int_equal(pass.host.byte_count, 0);
}

static void test_authorization_is_replaced_by_the_setting(void **state)
{
    struct request request =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nauthorization: Basic YQ==\r\nContent-Length: 0\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    settings.authorization = secret;
    pass_build(&pass, &request, NULL, &settings, NULL);
    const char *const lines[] = { "Authorization: Bearer s3cret" };
    assert_fields(&pass, lines, 1);
}

static void test_the_token_of_our_own_door_does_not_go_on_but_what_stands_beside_it_does(void **state)
{
    struct request with_token =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nauthorization: Bearer a\r\nAuthorization: Bearer b\r\n"
                   "Content-Length: 0\r\n\r\n");
    struct request with_both =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YQ==\r\n"
                   "Sinkonce-Authorization: Bearer s3cret\r\nContent-Length: 0\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    const char *const lines[] = { "Authorization: Basic YQ==" };
    (void)state;
    settings.client_token = secret;
    pass_build(&pass, &with_token, NULL, &settings, NULL);
    assert_int_equal(pass.field_count, 0);
    pass_build(&pass, &with_both, NULL, &settings, NULL);
    assert_fields(&pass, lines, 1);
    settings.client_token = none;
    pass_build(&pass, &with_token, NULL, &settings, NULL);
    assert_int_equal(pass.field_count, 2);
    pass_build(&pass, &with_both, NULL, &settings, NULL);
    assert_fields(&pass, lines, 1);
}

static void test_the_token_does_not_go_on_when_it_stands_in_both_fields(void **state)
{
    struct request request = request_of(
        "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: bearer  s3cret\r\nAuthorization: Basic YQ==\r\n"
        "Sinkonce-Authorization: Bearer s3cret\r\nContent-Length: 0\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    const char *const lines[] = { "Authorization: Basic YQ==" };
    (void)state;
    settings.client_token = token;
    pass_build(&pass, &request, NULL, &settings, NULL);
    assert_fields(&pass, lines, 1);
}

static void test_strip_leaves_the_coordinate_headers_out_when_it_is_on(void **state)
{
    struct request request =
        request_of("POST / HTTP/1.1\r\nHost: a\r\nX-Kafka-Topic: t\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n");
    struct identified identified = { .strip_headers = { "x-kafka-topic" }, .strip_header_count = 1 };
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    pass_build(&pass, &request, &identified, &settings, NULL);
    assert_int_equal(pass.field_count, 2);
    settings.is_stripped = true;
    pass_build(&pass, &request, &identified, &settings, NULL);
    const char *const lines[] = { "X-A: 1" };
    assert_fields(&pass, lines, 1);
}

static void test_host_is_the_targets_the_clients_or_a_fixed_one(void **state)
{
    struct request request = request_of("GET / HTTP/1.1\r\nHost: client.example\r\n\r\n");
    struct settings settings = settings_of();
    struct pass pass;
    (void)state;
    settings.host_header = preserve;
    pass_build(&pass, &request, NULL, &settings, NULL);
    assert_true(slice_equals_text(pass.host, "client.example"));
    settings.host_header = fixed;
    pass_build(&pass, &request, NULL, &settings, NULL);
    assert_true(slice_equals_text(pass.host, "sink.example:8443"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_R_01_R_02_no_hop_by_hop_field_reaches_the_target),
        cmocka_unit_test(test_R_05_R_08_R_10_order_case_and_repetition_stay_and_via_comes_last),
        cmocka_unit_test(test_R_06_a_request_that_was_here_before_is_a_loop),
        cmocka_unit_test(test_R_07_max_forwards_counts_down_for_options_only),
        cmocka_unit_test(test_Z_15_a_client_cannot_speak_in_our_name),
        cmocka_unit_test(test_authorization_is_replaced_by_the_setting),
        cmocka_unit_test(test_the_token_of_our_own_door_does_not_go_on_but_what_stands_beside_it_does),
        cmocka_unit_test(test_the_token_does_not_go_on_when_it_stands_in_both_fields),
        cmocka_unit_test(test_strip_leaves_the_coordinate_headers_out_when_it_is_on),
        cmocka_unit_test(test_host_is_the_targets_the_clients_or_a_fixed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
