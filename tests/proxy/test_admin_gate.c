/*
 * test_admin_gate.c - who may change something: the whole table of peers, tokens, hosts and origins.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "admin_gate.h"

static enum gate ask(bool is_trusted, const char *token, const char *authorization, const char *host,
                     const char *origin)
{
    struct request request = { .is_trusted_peer = is_trusted };
    struct http1_head *head = &request.head;
    head->host = slice_of_text(host);
    if (authorization != NULL)
        head->fields[head->field_count++] =
            (struct http1_field){ slice_of_text("AUTHORIZATION"), slice_of_text(authorization) };
    if (origin != NULL)
        head->fields[head->field_count++] =
            (struct http1_field){ slice_of_text("origin"), slice_of_text(origin) };
    return admin_gate(&request, token);
}

static void test_the_table_of_the_gate(void **state)
{
    static const struct {
        bool is_trusted;
        const char *token, *authorization, *host, *origin;
        enum gate gate;
    } rows[] = {
        { true, "", NULL, "127.0.0.1:8651", NULL, GATE_OPEN },
        { true, "", NULL, "localhost", NULL, GATE_OPEN },
        { true, "s", NULL, "[::1]:8651", NULL, GATE_OPEN },
        { true, "", NULL, "rebound.example", NULL, GATE_FOREIGN_HOST },
        { true, "s", "Bearer s", "gateway.example", NULL, GATE_OPEN },
        { true, "s", "Bearer x", "gateway.example", NULL, GATE_FOREIGN_HOST },
        { true, "", NULL, "", NULL, GATE_FOREIGN_HOST },
        { true, "", NULL, "127.0.0.1:8651", "http://127.0.0.1:8651", GATE_OPEN },
        { true, "", NULL, "LOCALHOST:8651", "http://localhost:8651", GATE_OPEN },
        { true, "", NULL, "127.0.0.1:8651", "http://127.0.0.1:9999", GATE_FOREIGN_ORIGIN },
        { true, "", NULL, "127.0.0.1:8651", "null", GATE_FOREIGN_ORIGIN },
        { true, "", NULL, "127.0.0.1:8651", "", GATE_FOREIGN_ORIGIN },
        { true, "s", "Bearer s", "127.0.0.1:8651", "http://evil.example", GATE_FOREIGN_ORIGIN },
        { false, "", NULL, "10.0.0.1", NULL, GATE_NO_TOKEN_SET },
        { false, "", "Bearer ", "10.0.0.1", NULL, GATE_NO_TOKEN_SET },
        { false, "secret", NULL, "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "Bearer secre", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "Bearer secrett", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "Bearer secretsecret", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "Bearer ", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "Basic secret", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "secret", "10.0.0.1", NULL, GATE_NOT_AUTHORIZED },
        { false, "secret", "bEARER  secret", "anything.example", NULL, GATE_OPEN },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum gate gate =
            ask(rows[i].is_trusted, rows[i].token, rows[i].authorization, rows[i].host, rows[i].origin);
        if (gate != rows[i].gate)
            fail_msg("row %zu: %s instead of %s", i, admin_gate_label(gate), admin_gate_label(rows[i].gate));
    }
}

static void test_only_literals_and_localhost_are_local_names(void **state)
{
    static const char *const local[] = { "127.0.0.1", "10.1.2.3:80", "[::1]", "[fe80::1]:8651",
                                         "LocalHost:1" };
    static const char *const foreign[] = { "",
                                           "localhost.example",
                                           "127.0.0.1.example",
                                           "[::1",
                                           "[evil]:80",
                                           "127.1",
                                           "2130706433",
                                           "0x7f.1",
                                           ":8651",
                                           "localhostx",
                                           "::1" };
    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        assert_true(admin_host_is_local_name(slice_of_text(local[i])));
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_false(admin_host_is_local_name(slice_of_text(foreign[i])));
}

static void test_every_refusal_has_a_status_and_a_sentence(void **state)
{
    (void)state;
    for (enum gate gate = GATE_OPEN + 1; gate < GATE_COUNT; gate++) {
        assert_true(admin_gate_status(gate) == 401 || admin_gate_status(gate) == 403);
        assert_true(strlen(admin_gate_sentence(gate)) > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_of_the_gate),
        cmocka_unit_test(test_only_literals_and_localhost_are_local_names),
        cmocka_unit_test(test_every_refusal_has_a_status_and_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
