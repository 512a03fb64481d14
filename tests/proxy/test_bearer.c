/*
 * test_bearer.c - which requests a token opens, and where it stands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "bearer.h"
#include "request_of.h"

#define REQUEST(fields) "POST / HTTP/1.1\r\nHost: a\r\n" fields "Content-Length: 0\r\n\r\n"

static const struct {
    const char *text;
    bool is_open, is_in_authorization;
} rows[] = {
    { REQUEST(""), false, true },
    { REQUEST("Authorization: Bearer t0ken\r\n"), true, true },
    { REQUEST("authorization: bearer   t0ken\r\n"), true, true },
    { REQUEST("Authorization: Bearer t0ke\r\n"), false, true },
    { REQUEST("Authorization: Bearer t0kenx\r\n"), false, true },
    { REQUEST("Authorization: Bearer T0ken\r\n"), false, true },
    { REQUEST("Authorization: Bearer\r\n"), false, true },
    { REQUEST("Authorization: Basic t0ken\r\n"), false, true },
    { REQUEST("Authorization: t0ken\r\n"), false, true },
    { REQUEST("Authorization: Bearer other\r\nAuthorization: Bearer t0ken\r\n"), false, true },
    { REQUEST("Sinkonce-Authorization: Bearer t0ken\r\n"), true, false },
    { REQUEST("Sinkonce-Authorization: Bearer t0ken\r\nAuthorization: Basic eA==\r\n"), true, false },
    { REQUEST("Authorization: Bearer t0ken\r\nSinkonce-Authorization: Bearer wrong\r\n"), false, false },
};

static void test_each_request_is_let_in_or_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct request *request = request_of(rows[i].text, strlen(rows[i].text));
        if (bearer_opens(&request->head, "t0ken") != rows[i].is_open)
            print_error("row %zu\n", i);
        assert_int_equal(bearer_opens(&request->head, "t0ken"), rows[i].is_open);
        assert_int_equal(bearer_is_in_authorization(&request->head), rows[i].is_in_authorization);
        request_release(request);
    }
}

static void test_no_token_opens_nothing(void **state)
{
    static const char text[] = REQUEST("Authorization: Bearer \r\n");
    struct request *request = request_of(text, sizeof text - 1);
    (void)state;
    assert_false(bearer_opens(&request->head, ""));
    request_release(request);
}

/* Each token, and no mixture of them. */
static void test_each_of_several_tokens_opens(void **state)
{
    static const struct {
        const char *text;
        bool is_open;
    } several[] = {
        { REQUEST("Authorization: Bearer first\r\n"), true },
        { REQUEST("Authorization: Bearer second-one\r\n"), true },
        { REQUEST("Authorization: Bearer third\r\n"), true },
        { REQUEST("Authorization: Bearer \r\n"), false },
        { REQUEST("Authorization: Bearer firs\r\n"), false },
        { REQUEST("Authorization: Bearer firstsecond-one\r\n"), false },
        { REQUEST("Authorization: Bearer thirdthird\r\n"), false },
        { REQUEST("Authorization: Bearer fourth\r\n"), false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        struct request *request = request_of(several[i].text, strlen(several[i].text));
        assert_int_equal(bearer_opens(&request->head, "first\nsecond-one\nthird"), several[i].is_open);
        request_release(request);
    }
    assert_true(slice_equals_text(bearer_first("first\nsecond-one"), "first"));
    assert_true(slice_equals_text(bearer_first("first"), "first"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_request_is_let_in_or_not),
        cmocka_unit_test(test_no_token_opens_nothing),
        cmocka_unit_test(test_each_of_several_tokens_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
