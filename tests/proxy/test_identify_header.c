/*
 * test_identify_header.c - what a head says at a place: fields, fragments, parameters, paths; and whether it is signed.
 */
#include "identify_header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static char bytes[4096];

static struct request request_of(const char *target, const char *fields)
{
    struct request request = { 0 };
    enum finish why;
    snprintf(bytes, sizeof bytes, "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n", target, fields);
    assert_int_equal(http1_head(bytes, strlen(bytes), sizeof bytes, 0, &request.head, &why), HTTP1_DONE);
    return request;
}

static void expect(const struct request *request, enum locator_kind kind, const char *text, enum look look,
                   const char *expected)
{
    char name[64];
    struct value value;
    struct locator locator = { .kind = kind, .text = name };
    snprintf(name, sizeof name, "%s", text);
    enum look actual = head_look(request, &locator, &value);
    if (actual != look)
        fail_msg("%s: %d", bytes, (int)actual);
    if (look == LOOK_FOUND && !slice_equals_text(value.text, expected))
        fail_msg("%s: %.*s", bytes, (int)value.text.byte_count, value.text.at);
}

static void test_a_parameter_is_found_decoded_and_once(void **state)
{
    static const struct {
        const char *query;
        enum look look;
        const char *expected;
    } rows[] = {
        { "o=5", LOOK_FOUND, "5" },       { "x=1&o=5&y=2", LOOK_FOUND, "5" },
        { "x=1&&o=5", LOOK_FOUND, "5" },  { "%6F=5", LOOK_FOUND, "5" },
        { "%6f=%35", LOOK_FOUND, "5" },   { "o=%e2%9C%93", LOOK_FOUND, "\xe2\x9c\x93" },
        { "o=", LOOK_FOUND, "" },         { "o", LOOK_FOUND, "" },
        { "o=5=6", LOOK_FOUND, "5=6" },   { "O=5", LOOK_ABSENT, NULL },
        { "oo=5", LOOK_ABSENT, NULL },    { "o%=5", LOOK_ABSENT, NULL },
        { "%o=5", LOOK_ABSENT, NULL },    { "", LOOK_ABSENT, NULL },
        { "o=%3", LOOK_BROKEN, NULL },    { "o=%", LOOK_BROKEN, NULL },
        { "o=%zz", LOOK_BROKEN, NULL },   { "o=%3g", LOOK_BROKEN, NULL },
        { "o=%3:", LOOK_BROKEN, NULL },   { "o=%3%41", LOOK_BROKEN, NULL },
        { "o=5&o=5", LOOK_BROKEN, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char target[100];
        snprintf(target, sizeof target, "/p?%s", rows[i].query);
        struct request request = request_of(target, "");
        expect(&request, LOCATOR_QUERY, "o", rows[i].look, rows[i].expected);
    }
}

static void test_a_parameter_too_long_for_a_key_is_broken(void **state)
{
    char target[1500] = "/p?o=";
    (void)state;
    memset(target + 5, 'a', 1400);
    struct request request = request_of(target, "");
    expect(&request, LOCATOR_QUERY, "o", LOOK_BROKEN, NULL);
    expect(&request, LOCATOR_QUERY, "a", LOOK_ABSENT, NULL);
}

static void test_fields_fragments_paths_and_constants(void **state)
{
    struct request request =
        request_of("/a%2Fb?o=1", "X-O: 41\r\nce-source: /kafka/x#or#ders\r\nX-None: plain\r\n");
    (void)state;
    expect(&request, LOCATOR_HEADER, "x-o", LOOK_FOUND, "41");
    expect(&request, LOCATOR_HEADER, "x-p", LOOK_ABSENT, NULL);
    expect(&request, LOCATOR_FRAGMENT, "ce-source", LOOK_FOUND, "ders");
    expect(&request, LOCATOR_FRAGMENT, "x-none", LOOK_ABSENT, NULL);
    expect(&request, LOCATOR_FRAGMENT, "x-p", LOOK_ABSENT, NULL);
    expect(&request, LOCATOR_PATH, "", LOOK_FOUND, "/a%2Fb");
    expect(&request, LOCATOR_CONST, "orders", LOOK_FOUND, "orders");
    expect(&request, LOCATOR_BULK_ID, "", LOOK_ABSENT, NULL);
    request = request_of("/", "X-O: 1\r\nX-O: 1\r\nce-source: a#b\r\nce-source: a#b\r\nX-E:\r\n");
    expect(&request, LOCATOR_HEADER, "x-o", LOOK_BROKEN, NULL);
    expect(&request, LOCATOR_FRAGMENT, "ce-source", LOOK_BROKEN, NULL);
    expect(&request, LOCATOR_FRAGMENT, "x-e", LOOK_ABSENT, NULL);
}

static void test_a_signature_over_the_body_is_seen(void **state)
{
    static const char *const signing[] = { "Authorization: AWS4-HMAC-SHA256 Credential=x\r\n",
                                           "X-Amz-Content-Sha256: x\r\n",
                                           "webhook-signature: v1,x\r\n",
                                           "Content-MD5: x\r\n",
                                           "Digest: x\r\n",
                                           "Content-Digest: x\r\n",
                                           "Repr-Digest: x\r\n",
                                           "Signature: x\r\n" };
    static const char *const plain[] = { "", "Authorization: Bearer AWS4-\r\n", "Authorization: AWS4\r\n",
                                         "Authorization: AWS5-HMAC\r\n", "Signature-Input: x\r\n" };
    (void)state;
    for (size_t i = 0; i < sizeof signing / sizeof signing[0]; i++) {
        struct request request = request_of("/", signing[i]);
        assert_true(head_is_signed(&request));
    }
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        struct request request = request_of("/", plain[i]);
        assert_false(head_is_signed(&request));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_parameter_is_found_decoded_and_once),
        cmocka_unit_test(test_a_parameter_too_long_for_a_key_is_broken),
        cmocka_unit_test(test_fields_fragments_paths_and_constants),
        cmocka_unit_test(test_a_signature_over_the_body_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
