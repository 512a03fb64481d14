/*
 * test_line.c - lines of an export: what is written is read back, and what is no such line is refused.
 */
#include "line.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct line_out out;
static struct line_in in;

static bool reads(const char *line)
{
    return line_read(&in, slice_of_text(line));
}

static void test_every_type_comes_back(void **state)
{
    char text[64];
    uint8_t bytes[8];
    (void)state;
    line_begin(&out, "thing");
    line_put_number(&out, "most", UINT64_MAX);
    line_put_signed(&out, "none", -1);
    line_put_signed(&out, "offset", INT64_MAX);
    line_put_bool(&out, "yes", true);
    line_put_text(&out, "text", slice_of_text("a \"quoted\" \\ \n\x01 \xc3\xa9 \xf0\x9f\x98\x80"));
    line_put_hex(&out, "hex", slice_of("\x00\xfe\x10", 3));
    assert_true(line_read(&in, line_end(&out)));
    line_text(&in, "kind", text, sizeof text);
    assert_string_equal(text, "thing");
    assert_true(line_number(&in, "most", 0, UINT64_MAX) == UINT64_MAX);
    assert_int_equal(line_offset(&in, "none", -1), -1);
    assert_true(line_offset(&in, "offset", 0) == INT64_MAX);
    assert_true(line_bool(&in, "yes"));
    line_text(&in, "text", text, sizeof text);
    assert_string_equal(text, "a \"quoted\" \\ \n\x01 \xc3\xa9 \xf0\x9f\x98\x80");
    assert_int_equal(line_hex(&in, "hex", bytes, sizeof bytes), 3);
    assert_memory_equal(bytes, "\x00\xfe\x10", 3);
    assert_true(line_is_good(&in));
}

static void test_bytes_that_are_no_characters_are_written_as_question_marks(void **state)
{
    char text[16];
    (void)state;
    line_begin(&out, "t");
    line_put_text(&out, "text",
                  slice_of_text("a\xc3"
                                "b\xff\xed\xa0\x80\xc0\x80\xe2\x82"));
    assert_true(line_read(&in, line_end(&out)));
    line_text(&in, "text", text, sizeof text);
    assert_string_equal(text, "a?b????????");
}

static void test_space_and_order_do_not_matter(void **state)
{
    char text[8];
    (void)state;
    assert_true(reads(" { \"n\" : 7 ,\t\"kind\":\"x\" } "));
    line_text(&in, "kind", text, sizeof text);
    assert_int_equal(line_number(&in, "n", 7, 7), 7);
    assert_true(line_is_good(&in));
}

static void test_what_is_no_flat_object_is_refused(void **state)
{
    static const char *const lines[] = {
        "",
        "{}",
        "[]",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1}x",
        "{\"a\":1}  x",
        "{\"a\":-\"}",
        "{\"a\":\"\xf4\x90\x80\x80\"}", /* above the last character */
        "{\"a\":\"\xed\xa0\x80\"}",     /* half of a pair */
        "{\"a\":\"\xc0\x80\"}",         /* longer than it need be */
        "{\"a\":1 \"b\":2}",
        "{\"a\":{}}",
        "{\"a\":[1]}",
        "{\"a\":null}",
        "{\"a\":01}",
        "{\"a\":1.5}",
        "{\"a\":1e3}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":18446744073709551616}",
        "{\"a\":\"b}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u00e9\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":1,\"a\":2}",
        "{a:1}",
        "{\"a\":\"\\",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_false(reads(lines[i]));
        assert_int_not_equal(in.why[0], '\0');
    }
}

static void test_a_name_is_told_without_what_a_terminal_would_obey(void **state)
{
    char text[8];
    (void)state;
    assert_true(reads("{\"kind\":\"x\",\"a\\r\\u001b[2J\u00e9\":1}"));
    line_text(&in, "kind", text, sizeof text);
    assert_false(line_is_good(&in));
    assert_string_equal(in.why, "\"a??[2J??\" does not belong here");
}

static void test_a_line_beyond_its_bounds_is_refused(void **state)
{
    static char line[LINE_BYTES_MAX + 64];
    (void)state;
    memset(line, 'x', sizeof line);
    memcpy(line, "{\"a\":\"", 6);
    memcpy(line + sizeof line - 3, "\"}", 3);
    assert_false(reads(line)); /* one character too many */
    assert_string_equal(in.why, "too long");
    memcpy(line + 6 + sizeof in.bytes - 1, "\\n", 2); /* one escape too many, behind the name's letter */
    assert_false(reads(line));
    assert_string_equal(in.why, "too long");
    size_t used = 0;
    for (int i = 0; i <= LINE_FIELDS_MAX; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%c\"f%d\":1", i == 0 ? '{' : ',', i);
    assert_false(reads(line));
    assert_string_equal(in.why, "too many fields");
}

/* Whatever the bytes are: no crash, and a reason.  The sanitizers look on. */
static void test_a_line_cut_or_changed_anywhere_is_read_or_refused(void **state)
{
    (void)state;
    line_begin(&out, "thing");
    line_put_signed(&out, "none", -1);
    line_put_text(&out, "text", slice_of_text("a\"\n\xc3\xa9"));
    line_put_bool(&out, "no", false);
    struct slice line = line_end(&out);
    for (size_t cut = 0; cut < line.byte_count; cut++) {
        char *copy = malloc(line.byte_count);
        assert_non_null(copy);
        memcpy(copy, line.at, line.byte_count);
        assert_false(line_read(&in, slice_of(copy, cut)));
        for (unsigned byte = 0; byte < 256; byte++) {
            copy[cut] = (char)byte;
            bool is_read = line_read(&in, slice_of(copy, line.byte_count));
            assert_true(is_read || in.why[0] != '\0');
        }
        free(copy);
    }
}

static void test_fields_are_demanded_by_name_type_and_range(void **state)
{
    char text[4];
    uint8_t bytes[2];
    (void)state;
    assert_true(reads("{\"n\":7,\"t\":\"long\",\"z\":\"\\u0000\",\"h\":\"abc\",\"g\":\"zz\",\"b\":true}"));
    line_number(&in, "n", 0, 6);
    assert_false(line_is_good(&in));
    assert_string_equal(in.why, "\"n\" is out of its range");
    for (int mistake = 0; mistake < 7; mistake++) {
        assert_true(
            reads("{\"n\":7,\"t\":\"long\",\"z\":\"\\u0000\",\"h\":\"abc\",\"g\":\"zz\",\"b\":true}"));
        if (mistake == 0)
            line_number(&in, "missing", 0, 9);
        else if (mistake == 1)
            line_number(&in, "t", 0, 9);
        else if (mistake == 2)
            line_text(&in, "t", text, sizeof text);
        else if (mistake == 3)
            line_text(&in, "z", text, sizeof text);
        else if (mistake == 4)
            line_hex(&in, "h", bytes, sizeof bytes);
        else if (mistake == 5)
            line_hex(&in, "g", bytes, sizeof bytes);
        else
            line_bool(&in, "n");
        assert_true(in.is_bad);
    }
    assert_true(reads("{\"n\":-1,\"m\":-2,\"t\":\"1\",\"h\":\"abcdef\"}"));
    assert_int_equal(line_offset(&in, "n", -1), -1);
    assert_false(in.is_bad);
    line_offset(&in, "m", -1);
    assert_string_equal(in.why, "\"m\" is out of its range");
    for (int mistake = 0; mistake < 5; mistake++) {
        assert_true(reads("{\"n\":-1,\"m\":-2,\"t\":\"1\",\"h\":\"abcdef\"}"));
        if (mistake == 0)
            line_offset(&in, "n", 0);
        else if (mistake == 1)
            line_offset(&in, "t", -1);
        else if (mistake == 2)
            line_offset(&in, "missing", -1);
        else if (mistake == 3)
            line_hex(&in, "h", bytes, sizeof bytes); /* of three */
        else
            line_number(&in, "n", 0, UINT64_MAX);
        assert_true(in.is_bad);
    }
}

static void test_a_field_that_nobody_asked_for_does_not_belong_there(void **state)
{
    (void)state;
    assert_true(reads("{\"n\":7,\"extra\":1}"));
    line_number(&in, "n", 0, 9);
    assert_false(line_is_good(&in));
    assert_string_equal(in.why, "\"extra\" does not belong here");
    assert_true(reads("{\"\\u001b[31m \xc3\xa9 a name that is longer than any\":1}")); /* for no terminal */
    assert_false(line_is_good(&in));
    assert_string_equal(in.why, "\"?[31m ?? a name that is longer \" does not belong here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_comes_back),
        cmocka_unit_test(test_bytes_that_are_no_characters_are_written_as_question_marks),
        cmocka_unit_test(test_space_and_order_do_not_matter),
        cmocka_unit_test(test_what_is_no_flat_object_is_refused),
        cmocka_unit_test(test_a_name_is_told_without_what_a_terminal_would_obey),
        cmocka_unit_test(test_a_line_beyond_its_bounds_is_refused),
        cmocka_unit_test(test_a_line_cut_or_changed_anywhere_is_read_or_refused),
        cmocka_unit_test(test_fields_are_demanded_by_name_type_and_range),
        cmocka_unit_test(test_a_field_that_nobody_asked_for_does_not_belong_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
