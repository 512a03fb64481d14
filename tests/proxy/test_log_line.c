/*
 * test_log_line.c - whatever the fields hold, the line is one line and one JSON object; jansson is the oracle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include "log_line.h"

static void form(struct log_line *line, bool is_text, const struct log_field fields[], size_t field_count)
{
    const struct log_words words = { .time_ms = UINT64_C(1700000000123),
                                     .level = LOG_LEVEL_WARN,
                                     .event = "record.in_doubt",
                                     .message = "nobody can know",
                                     .fields = fields,
                                     .field_count = field_count };
    log_line_form(line, is_text, &words);
}

/* LINE as jansson reads it, after the promises that hold for every line. */
static json_t *read_back(const struct log_line *line)
{
    json_error_t error;
    assert_true(line->byte_count > 1 && line->byte_count <= LOG_LINE_BYTES_MAX);
    assert_ptr_equal(memchr(line->bytes, '\n', line->byte_count), line->bytes + line->byte_count - 1);
    json_t *object = json_loadb(line->bytes, line->byte_count, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        fail_msg("%s in %.*s", error.text, (int)line->byte_count, line->bytes);
    assert_true(json_is_object(object));
    return object;
}

static void test_a_line_holds_time_level_event_message_and_fields(void **state)
{
    const struct log_field fields[] = { log_text("topic", "orders"), log_integer("offset", INT64_MIN),
                                        log_slice("method", slice_of("POSTED", 4)) };
    struct log_line line;
    (void)state;
    form(&line, false, fields, 3);
    line.bytes[line.byte_count - 1] = '\0';
    assert_string_equal(line.bytes,
                        "{\"time\":\"2023-11-14T22:13:20.123Z\",\"level\":\"warn\","
                        "\"event\":\"record.in_doubt\",\"msg\":\"nobody can know\",\"topic\":\"orders\","
                        "\"offset\":-9223372036854775808,\"method\":\"POST\"}");
    form(&line, true, fields, 3);
    line.bytes[line.byte_count - 1] = '\0';
    assert_string_equal(line.bytes,
                        "2023-11-14T22:13:20.123Z warn record.in_doubt: nobody can know topic=orders "
                        "offset=-9223372036854775808 method=POST");
}

/* What goes in, and what a reader of the line gets. */
static const struct {
    const char *value;
    size_t byte_count;
    const char *read;
} values[] = {
    { "a\"b\\c/d", 7, "a\"b\\c/d" },
    { "a\nb\rc\td", 7, "a\nb\rc\td" },
    { "\x01\x1b[2J\x7f", 6, "\x01\x1b[2J\x7f" },
    { "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", 15,
      "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "\xc2\x9b", 2, "\xc2\x9b" },
    { "a\xff", 2, "a\xef\xbf\xbd" },
    { "\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd" },                 /* overlong slash */
    { "\xe0\x80\xaf", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* overlong */
    { "\xf0\x80\x80\xaf", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    { "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },                 /* surrogate */
    { "\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* above U+10FFFF */
    { "x\xe2\x82", 3, "x\xef\xbf\xbd\xef\xbf\xbd" },                               /* cut short by its end */
    { "\xe2\x82z", 3, "\xef\xbf\xbd\xef\xbf\xbdz" },                               /* cut short by another */
    { "", 0, "" },
};

static void test_values_are_read_back_as_they_were_or_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct log_line line;
        /* a copy of its own size, so that a sanitizer sees a step too far */
        char *exact = malloc(values[i].byte_count + 1);
        assert_non_null(exact);
        memcpy(exact, values[i].value, values[i].byte_count);
        const struct log_field field = log_slice("value", slice_of(exact, values[i].byte_count));
        form(&line, false, &field, 1);
        json_t *object = read_back(&line);
        assert_string_equal(json_string_value(json_object_get(object, "value")), values[i].read);
        json_decref(object);
        free(exact);
    }
}

static void test_every_byte_alone_and_in_a_pair_gives_one_valid_line(void **state)
{
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second += first < 0x80 ? 255 : 1) {
            const char bytes[] = { (char)first, (char)second };
            const struct log_field field = log_slice("value", slice_of(bytes, 2));
            struct log_line line;
            form(&line, false, &field, 1);
            if (first == 0 ||
                second == 0) /* jansson refuses U+0000 by default; the promise of one line holds */
                assert_non_null(memmem(line.bytes, line.byte_count, "\\u0000", 6));
            else
                json_decref(read_back(&line));
        }
    }
}

static void test_no_control_byte_gets_out_in_either_form(void **state)
{
    char bytes[256];
    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    for (int is_text = 0; is_text < 2; is_text++) {
        const struct log_field fields[] = { log_slice("value", slice_of(bytes, 256)),
                                            log_slice("c1", slice_of("\xc2\x9b", 2)) };
        struct log_line line;
        form(&line, is_text, fields, 2);
        for (size_t i = 0; i + 1 < line.byte_count; i++) {
            const unsigned char byte = (unsigned char)line.bytes[i];
            assert_true(byte >= 0x20 && byte != 0x7f);
            assert_false(byte == 0xc2 && (unsigned char)line.bytes[i + 1] < 0xa0);
        }
    }
}

static void test_a_value_cannot_pretend_to_be_a_field_in_the_text_form(void **state)
{
    const struct log_field fields[] = { log_text("topic", "a level=error"), log_text("b", "c=d"),
                                        log_text("e", "") };
    struct log_line line;
    (void)state;
    form(&line, true, fields, 3);
    line.bytes[line.byte_count] = '\0';
    assert_non_null(strstr(line.bytes, " topic=\"a level=error\" b=\"c=d\" e=\"\"\n"));
}

static void test_a_long_value_is_cut_and_leaves_room_for_the_next(void **state)
{
    char bytes[8000];
    struct log_line line;
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    const struct log_field fields[] = { log_slice("long", slice_of(bytes, sizeof bytes)),
                                        log_integer("after", 7) };
    form(&line, false, fields, 2);
    json_t *object = read_back(&line);
    assert_int_equal(json_string_length(json_object_get(object, "long")), 1024);
    assert_int_equal(json_integer_value(json_object_get(object, "after")), 7);
    assert_true(json_is_true(json_object_get(object, "cut")));
    json_decref(object);
}

/* Any length of any kind of character, with the limit of the line falling on every position. */
static void test_a_full_line_is_still_one_object_wherever_it_is_cut(void **state)
{
    static const char *const units[] = { "x", "\x01", "\xf0\x9f\x98\x80", "\xff", "\"" };
    (void)state;
    for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++) {
        for (size_t pad = 0; pad < 40; pad++) {
            char bytes[1200], padding[64];
            struct log_field fields[12];
            struct log_line line;
            size_t length = 0;
            while (length + 4 < sizeof bytes) {
                strcpy(bytes + length, units[unit]);
                length += strlen(units[unit]);
            }
            memset(padding, 'p', sizeof padding);
            fields[0] = log_slice("padding", slice_of(padding, pad));
            static const char *const names[] = { "", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k" };
            for (size_t i = 1; i < 12; i++)
                fields[i] = log_slice(names[i], slice_of(bytes, length));
            form(&line, false, fields, 12);
            json_t *object = read_back(&line);
            assert_true(json_is_true(json_object_get(object, "cut")));
            json_decref(object);
            form(&line, true, fields, 12);
            assert_true(line.byte_count <= LOG_LINE_BYTES_MAX);
            assert_memory_equal(line.bytes + line.byte_count - 10, " cut=true\n", 10);
        }
    }
}

/* The last field is a number, and the line's room ends at each of its digits once. */
static void test_a_number_at_the_end_of_the_room_is_whole_or_left_out(void **state)
{
    char bytes[1000];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    for (size_t length = 800; length < sizeof bytes; length++) {
        const struct slice value = slice_of(bytes, length);
        const struct log_field fields[] = { log_slice("a", value), log_slice("b", value),
                                            log_slice("c", value), log_slice("d", value),
                                            log_integer("number", INT64_MIN) };
        struct log_line line;
        form(&line, false, fields, 5);
        json_t *object = read_back(&line);
        const json_t *number = json_object_get(object, "number");
        if (number != NULL)
            assert_true(json_integer_value(number) == INT64_MIN);
        else
            assert_true(json_is_true(json_object_get(object, "cut")));
        json_decref(object);
    }
}

static void test_suppressed_is_named_when_there_is_any(void **state)
{
    struct log_words words = {
        .level = LOG_LEVEL_ERROR, .event = "a.b", .message = "c", .suppressed_count = 41
    };
    struct log_line line;
    (void)state;
    log_line_form(&line, false, &words);
    json_t *object = read_back(&line);
    assert_int_equal(json_integer_value(json_object_get(object, "suppressed")), 41);
    assert_string_equal(json_string_value(json_object_get(object, "time")), "1970-01-01T00:00:00.000Z");
    json_decref(object);
    words.suppressed_count = 0;
    log_line_form(&line, false, &words);
    object = read_back(&line);
    assert_null(json_object_get(object, "suppressed"));
    json_decref(object);
}

static void test_a_text_that_is_not_there_reads_empty(void **state)
{
    const struct log_field field = log_text("value", NULL);
    struct log_line line;
    (void)state;
    form(&line, false, &field, 1);
    json_t *object = read_back(&line);
    assert_string_equal(json_string_value(json_object_get(object, "value")), "");
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_holds_time_level_event_message_and_fields),
        cmocka_unit_test(test_values_are_read_back_as_they_were_or_replaced),
        cmocka_unit_test(test_every_byte_alone_and_in_a_pair_gives_one_valid_line),
        cmocka_unit_test(test_no_control_byte_gets_out_in_either_form),
        cmocka_unit_test(test_a_value_cannot_pretend_to_be_a_field_in_the_text_form),
        cmocka_unit_test(test_a_long_value_is_cut_and_leaves_room_for_the_next),
        cmocka_unit_test(test_a_full_line_is_still_one_object_wherever_it_is_cut),
        cmocka_unit_test(test_a_number_at_the_end_of_the_room_is_whole_or_left_out),
        cmocka_unit_test(test_suppressed_is_named_when_there_is_any),
        cmocka_unit_test(test_a_text_that_is_not_there_reads_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
