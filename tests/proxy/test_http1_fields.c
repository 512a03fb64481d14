/*
 * test_http1_fields.c - bytes, lines, lists, lengths and hosts, against the grammar written down a second time.
 */
#include "http1.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool is_one_of(int byte, const char *set)
{
    return byte != 0 && strchr(set, byte) != NULL;
}

static void every_byte_is_in_the_classes_of_the_grammar(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        bool is_digit = byte >= '0' && byte <= '9';
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool is_visible = byte > 0x20 && byte < 0x7f;
        bool is_alnum = is_digit || is_letter;
        assert_int_equal(http1_byte_is((char)byte, HTTP1_IN_TOKEN),
                         is_alnum || is_one_of(byte, "!#$%&'*+-.^_`|~"));
        assert_int_equal(http1_byte_is((char)byte, HTTP1_IN_VALUE),
                         is_visible || is_one_of(byte, "\t ") || byte > 0x7f);
        assert_int_equal(http1_byte_is((char)byte, HTTP1_IN_TARGET), is_visible && byte != '#');
        assert_int_equal(http1_byte_is((char)byte, HTTP1_IN_HOST),
                         is_alnum || is_one_of(byte, "-._~!$&'()*+;="));
        assert_int_equal(http1_byte_is((char)byte, HTTP1_IN_HEX),
                         is_digit || is_one_of(byte, "abcdefABCDEF"));
    }
}

static void names_are_compared_without_case_and_in_full(void **state)
{
    (void)state;
    assert_true(http1_name_equals(slice_of_text("hOsT"), "host"));
    assert_true(http1_name_equals(slice_of_text("AZ-az_1@["), "az-az_1@["));
    assert_false(http1_name_equals(slice_of_text("@["), "`{"));
    assert_false(http1_name_equals(slice_of_text("hos"), "host"));
    assert_false(http1_name_equals(slice_of_text("hosts"), "host"));
    assert_false(http1_name_equals(slice_of_text(""), "host"));
    assert_false(http1_name_equals(slice_of("host\0s", 6), "host"));
    assert_false(http1_name_equals(slice_of_text("h\xcfst"), "host")); /* 0xcf is 'o' with other bits */
    assert_false(http1_name_equals(slice_of_text("content\rlength"), "content-length"));
}

static void R_09_the_first_field_of_a_name_is_found(void **state)
{
    const struct http1_field fields[] = {
        { slice_of_text("A"), slice_of_text("1") },
        { slice_of_text("x-b"), slice_of_text("2") },
        { slice_of_text("X-B"), slice_of_text("3") },
    };
    (void)state;
    assert_ptr_equal(http1_field_find(fields, COUNT(fields), "X-b"), &fields[1]);
    assert_null(http1_field_find(fields, COUNT(fields), "b"));
    assert_null(http1_field_find(fields, 0, "a"));
}

static void H_32_a_list_has_a_token_only_as_a_whole_member(void **state)
{
    static const struct {
        const char *list;
        bool has;
    } rows[] = {
        { "close", true },      { "Close", true },    { "a,close", true },  { "a ,\tcLOSE ,b", true },
        { ",,close,", true },   { "closed", false },  { "a close", false }, { "clo,se", false },
        { "\"close\"", false }, { "close=1", false }, { "", false },        { ",", false },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(http1_list_has(slice_of_text(rows[i].list), slice_of_text("close")), rows[i].has);
}

static void a_list_gives_every_member_even_empty_ones(void **state)
{
    struct slice list = slice_of_text(" a,, b c ,"), member;
    (void)state;
    assert_true(http1_list_next(&list, &member));
    assert_true(slice_equals_text(member, "a"));
    assert_true(http1_list_next(&list, &member));
    assert_int_equal(member.byte_count, 0);
    assert_true(http1_list_next(&list, &member));
    assert_true(slice_equals_text(member, "b c"));
    assert_true(http1_list_next(&list, &member));
    assert_int_equal(member.byte_count, 0);
    assert_false(http1_list_next(&list, &member));
}

static void H_05_H_06_H_07_numbers_are_digits_and_never_wrap(void **state)
{
    static const struct {
        const char *text;
        uint64_t max;
        enum http1_number status;
        uint64_t number;
    } rows[] = {
        { "0", 0, HTTP1_NUMBER_OK, 0 },
        { "1", 0, HTTP1_NUMBER_ABOVE, 0 },
        { "9", 8, HTTP1_NUMBER_ABOVE, 0 },
        { "100", 100, HTTP1_NUMBER_OK, 100 },
        { "101", 100, HTTP1_NUMBER_ABOVE, 0 },
        { "1000", 100, HTTP1_NUMBER_ABOVE, 0 },
        { "18446744073709551615", UINT64_MAX, HTTP1_NUMBER_OK, UINT64_MAX },
        { "18446744073709551616", UINT64_MAX, HTTP1_NUMBER_ABOVE, 0 },
        { "18446744073709551620", UINT64_MAX, HTTP1_NUMBER_ABOVE, 0 },
        { "184467440737095516150", UINT64_MAX, HTTP1_NUMBER_ABOVE, 0 },
        { "0000000000000000000000000000005", 5, HTTP1_NUMBER_OK, 5 },
        { "", 100, HTTP1_NUMBER_BAD, 0 },
        { "+5", 100, HTTP1_NUMBER_BAD, 0 },
        { "-5", 100, HTTP1_NUMBER_BAD, 0 },
        { "5 ", 100, HTTP1_NUMBER_BAD, 0 },
        { "5x", 100, HTTP1_NUMBER_BAD, 0 },
        { "999999x", 100, HTTP1_NUMBER_BAD, 0 },
        { "5\xb5", 100, HTTP1_NUMBER_BAD, 0 },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t number = 0;
        assert_int_equal(http1_number(slice_of_text(rows[i].text), rows[i].max, &number), rows[i].status);
        if (rows[i].status == HTTP1_NUMBER_OK)
            assert_int_equal(number, rows[i].number);
    }
}

static void H_09_H_10_H_11_a_coding_ends_with_the_only_chunked(void **state)
{
    static const struct {
        const char *value;
        enum http1_coding coding;
    } rows[] = {
        { "chunked", HTTP1_CODING_CHUNKED },
        { "CHUNKED", HTTP1_CODING_CHUNKED },
        { "gzip, chunked", HTTP1_CODING_OTHER },
        { "a,b\t,chunked", HTTP1_CODING_OTHER },
        { "identity,chunked", HTTP1_CODING_OTHER },
        { "chunked,chunked", HTTP1_CODING_BAD },
        { "chunked,gzip", HTTP1_CODING_BAD },
        { "gzip", HTTP1_CODING_BAD },
        { "", HTTP1_CODING_BAD },
        { ",chunked", HTTP1_CODING_BAD },
        { "chunked,", HTTP1_CODING_BAD },
        { "chunked;q=1", HTTP1_CODING_BAD },
        { "chunked gzip", HTTP1_CODING_BAD },
        { "gzip chunked", HTTP1_CODING_BAD },
        { "a;b=c,chunked", HTTP1_CODING_BAD },
        { "xchunked", HTTP1_CODING_BAD },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(http1_coding(slice_of_text(rows[i].value)), rows[i].coding);
}

static void H_24_a_host_has_the_shape_of_RFC_3986(void **state)
{
    static const char *const good[] = { "a",     "a.b-c_d",  "127.0.0.1",        "a:80",
                                        "a:",    "a:65535",  "%41%7e",           "a;b=c",
                                        "[::1]", "[::1]:80", "[fe80::1:2.3.4.5]" };
    static const char *const bad[] = { "",         ":80",      "a:b",    "a:65536",  "a:-1", "a:80:80",
                                       "a b",      "a/",       "a?b",    "a#b",      "u@a",  "a,b",
                                       "%4",       "%4g",      "%",      "\xc3\xa9", "[::1", "::1",
                                       "[]",       "[1]",      "[::g]",  "[::1]80",  "[v]",  "[v1]",
                                       "[v1.a:b]", "[vf.::1]", "[::1]a", "a[::1]",   "a\\b", "\"a\"",
                                       "<a>",      "[::%251]", "a\t",    "[" };
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++)
        if (!http1_host_is_valid(slice_of_text(good[i])))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (http1_host_is_valid(slice_of_text(bad[i])))
            fail_msg("%s was accepted", bad[i]);
}

static void C_30_what_goes_out_is_checked_with_the_same_grammar(void **state)
{
    (void)state;
    assert_true(http1_token_is_valid(slice_of_text("X_a-1")));
    assert_false(http1_token_is_valid(slice_of_text("")));
    assert_false(http1_token_is_valid(slice_of_text("a b")));
    assert_false(http1_token_is_valid(slice_of_text("a\r\nb")));
    assert_true(http1_value_is_valid(slice_of_text("")));
    assert_true(http1_value_is_valid(slice_of_text("a\tb \xff")));
    assert_false(http1_value_is_valid(slice_of_text("a\r\nX: y")));
    assert_false(http1_value_is_valid(slice_of("a\0", 2)));
}

static void C_36_a_target_is_origin_form(void **state)
{
    (void)state;
    assert_true(http1_target_is_valid(slice_of_text("/")));
    assert_true(http1_target_is_valid(slice_of_text("//a/../%2e?b?c|{}")));
    assert_false(http1_target_is_valid(slice_of_text("")));
    assert_false(http1_target_is_valid(slice_of_text("*")));
    assert_false(http1_target_is_valid(slice_of_text("http://a/")));
    assert_false(http1_target_is_valid(slice_of_text("/a b")));
    assert_false(http1_target_is_valid(slice_of_text("/a#b")));
    assert_false(http1_target_is_valid(slice_of_text("/\x7f")));
    assert_false(http1_target_is_valid(slice_of_text("/\xc3\xa9")));
    assert_false(http1_target_is_valid(slice_of_text("/\r\n")));
}

static void R_01_R_02_hop_by_hop_fields_are_the_fixed_ones_and_the_listed_ones(void **state)
{
    static const char *const ends_here[] = { "Connection",
                                             "keep-alive",
                                             "Proxy-Connection",
                                             "TE",
                                             "Transfer-Encoding",
                                             "UPGRADE",
                                             "Proxy-Authorization",
                                             "Proxy-Authenticate",
                                             "Trailer",
                                             "HTTP2-Settings",
                                             "x-secret",
                                             "X-Other" };
    static const char *const goes_on[] = {
        "Authorization", "WWW-Authenticate", "Allow", "Content-Type", "X-Secret-2", "Via", "T", "Trailers",
        "Host",          "__topic"
    };
    const struct http1_field fields[] = {
        { slice_of_text("Connection"), slice_of_text("X-Secret, close") },
        { slice_of_text("X-Secret"), slice_of_text("via, allow") },
        { slice_of_text("connection"), slice_of_text("X-OTHER") },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ends_here); i++)
        assert_true(http1_field_is_hop_by_hop(slice_of_text(ends_here[i]), fields, COUNT(fields)));
    for (size_t i = 0; i < COUNT(goes_on); i++)
        assert_false(http1_field_is_hop_by_hop(slice_of_text(goes_on[i]), fields, COUNT(fields)));
    assert_false(http1_field_is_hop_by_hop(slice_of_text("X-Secret"), NULL, 0));
}

static void H_03_H_19_H_20_H_23_a_field_line_is_taken_whole_or_not_at_all(void **state)
{
    static const char *const bad[] = { "",       ":",      "a",          "a:",          "a: b",
                                       "a: b\n", "a: b\r", "a: b\r\r\n", "a :b\r\n",    " a:b\r\n",
                                       ":b\r\n", "a\r\n",  "\r\n",       "a: b\rc\r\n", "a: \x7f\r\n" };
    struct slice rest = slice_of_text("a:\t b \r\nc:\r\n\r\n");
    struct http1_field field;
    (void)state;
    assert_true(http1_field_line(&rest, &field));
    assert_true(slice_equals_text(field.name, "a") && slice_equals_text(field.value, "b"));
    assert_true(http1_field_line(&rest, &field));
    assert_true(slice_equals_text(field.name, "c") && field.value.byte_count == 0);
    assert_true(slice_equals_text(rest, "\r\n"));
    rest = slice_of_text("a: b\r\n");
    assert_true(http1_field_line(&rest, &field));
    assert_int_equal(rest.byte_count, 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        rest = slice_of_text(bad[i]);
        assert_false(http1_field_line(&rest, &field));
        assert_int_equal(rest.byte_count, strlen(bad[i]));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_in_the_classes_of_the_grammar),
        cmocka_unit_test(names_are_compared_without_case_and_in_full),
        cmocka_unit_test(R_09_the_first_field_of_a_name_is_found),
        cmocka_unit_test(H_32_a_list_has_a_token_only_as_a_whole_member),
        cmocka_unit_test(a_list_gives_every_member_even_empty_ones),
        cmocka_unit_test(H_05_H_06_H_07_numbers_are_digits_and_never_wrap),
        cmocka_unit_test(H_09_H_10_H_11_a_coding_ends_with_the_only_chunked),
        cmocka_unit_test(H_24_a_host_has_the_shape_of_RFC_3986),
        cmocka_unit_test(C_30_what_goes_out_is_checked_with_the_same_grammar),
        cmocka_unit_test(C_36_a_target_is_origin_form),
        cmocka_unit_test(R_01_R_02_hop_by_hop_fields_are_the_fixed_ones_and_the_listed_ones),
        cmocka_unit_test(H_03_H_19_H_20_H_23_a_field_line_is_taken_whole_or_not_at_all),
    };
    return cmocka_run_group_tests_name("http1_fields", tests, NULL, NULL);
}
