/*
 * test_json_scan.c - what is JSON, where values end, and what stands at a pointer.
 *
 * Rows with a name are tests of their own; jansson is the judge where a rule is RFC 8259's and not ours.
 */
#include "json_scan.h"
#include "json_string.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define BYTES(text) text, sizeof text - 1

struct row {
    const char *name;
    const char *bytes;
    size_t byte_count;
    bool is_valid;
    size_t end; /* of the value, or of what is wrong */
};

static const struct row rows[] = {
    { "an object is read to its brace", BYTES("{\"a\":1}"), true, 7 },
    { "an array is read to its bracket", BYTES("[1,[],{}]"), true, 9 },
    { "a value ends before the next one", BYTES("{}{}"), true, 2 },
    { "a value ends before a newline", BYTES("  {}\n"), true, 4 },
    { "a lone number is a value", BYTES("-12.5e+3 "), true, 8 },
    { "a number ends where its grammar ends", BYTES("01"), true, 1 },
    { "the words are values", BYTES("[true,false,null]"), true, 17 },
    { "white space may stand everywhere", BYTES(" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } "), true, 35 },
    { "J-01 the scan itself allows duplicate names", BYTES("{\"a\":1,\"a\":2}"), true, 13 },
    { "J-02 an integer of 20 digits passes", BYTES("18446744073709551616"), true, 20 },
    { "J-02 a decimal of 30 digits passes", BYTES("[0.123456789012345678901234567890]"), true, 34 },
    { "J-02 a number beyond any double passes", BYTES("1e999"), true, 5 },
    { "J-03 odd but legal spellings pass", BYTES("[-0,1E5,\"\\/\",\"\\u00e9\",1.10]"), true, 27 },
    { "J-04 an escaped NUL passes", BYTES("\"\\u0000\""), true, 8 },
    { "J-04 an escaped NUL passes in a name", BYTES("{\"\\u0000\":1}"), true, 12 },
    { "J-09 leading white space is skipped", BYTES("\n\n1"), true, 3 },
    { "J-09 text above ASCII passes", BYTES("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""), true, 11 },
    { "J-09 a pair of surrogates passes", BYTES("\"\\ud83d\\ude00\""), true, 14 },
    { "J-09 U+10FFFF and U+D7FF pass", BYTES("\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\""), true, 9 },
    { "DEL passes", BYTES("\"\x7f\""), true, 3 },

    { "nothing is no value", BYTES(""), false, 0 },
    { "white space is no value", BYTES("  "), false, 2 },
    { "a word that is none", BYTES("nul"), false, 0 },
    { "a word in capitals", BYTES("True"), false, 0 },
    { "NaN is no number", BYTES("NaN"), false, 0 },
    { "a plus sign begins no number", BYTES("+1"), false, 0 },
    { "a minus sign alone is no number", BYTES("-"), false, 1 },
    { "a point needs digits", BYTES("1."), false, 2 },
    { "a point needs digits before it", BYTES(".5"), false, 0 },
    { "an exponent needs digits", BYTES("1e"), false, 2 },
    { "an exponent's sign needs digits", BYTES("1e+"), false, 3 },
    { "a leading zero ends an element", BYTES("[01]"), false, 2 },
    { "an object that is not closed", BYTES("{\"a\":1"), false, 6 },
    { "an array that is not closed", BYTES("[1,2"), false, 4 },
    { "an array closed by a brace", BYTES("[1}"), false, 2 },
    { "an object closed by a bracket", BYTES("{\"a\":1]"), false, 6 },
    { "a trailing comma in an object", BYTES("{\"a\":1,}"), false, 7 },
    { "a trailing comma in an array", BYTES("[1,]"), false, 3 },
    { "a leading comma", BYTES("[,1]"), false, 1 },
    { "two commas", BYTES("[1,,2]"), false, 3 },
    { "a missing comma", BYTES("[1 2]"), false, 3 },
    { "a missing colon", BYTES("{\"a\" 1}"), false, 5 },
    { "a missing value", BYTES("{\"a\":}"), false, 5 },
    { "a name without quotes", BYTES("{a:1}"), false, 1 },
    { "a name that is a number", BYTES("{1:1}"), false, 1 },
    { "a comment", BYTES("[1/*x*/]"), false, 2 },
    { "a string that is not closed", BYTES("\"abc"), false, 4 },
    { "a string in single quotes", BYTES("'a'"), false, 0 },
    { "an escape that is none", BYTES("\"ab\\x\""), false, 3 },
    { "an escape cut by the end", BYTES("\"\\"), false, 1 },
    { "a unicode escape cut by the end", BYTES("\"\\u12"), false, 1 },
    { "a unicode escape that is not hexadecimal", BYTES("\"\\u12g4\""), false, 1 },
    { "a form feed is no white space", BYTES("\f1"), false, 0 },
    { "a NUL is no white space",
      BYTES("\0"
            "1"),
      false, 0 },
    { "J-09 a byte order mark", BYTES("\xef\xbb\xbf{}"), false, 0 },
    { "J-09 a raw newline in a string", BYTES("\"a\nb\""), false, 2 },
    { "J-09 a raw tab in a string", BYTES("\"aaaaaaaaaaaa\tb\""), false, 13 },
    { "J-09 a raw tab amid a long string", BYTES("\"aaa\tbbbbbbbbbbbbbbbbbbbb\""), false, 4 },
    { "J-09 a raw 0x1f amid a long string",
      BYTES("\"aaaaaaaaaa\x1f"
            "bbbbbbbbbbbbbbbbbbbb\""),
      false, 11 },
    { "J-09 a bad byte amid a long string",
      BYTES("\"aaaaa\xff"
            "bbbbbbbbbbbbbbbbbbbb\""),
      false, 6 },
    { "a quote amid eight bytes ends the string", BYTES("\"aaa\"bbbbbbbbbbbbbbbbbbbb\""), true, 5 },
    { "a bad escape amid a long string", BYTES("\"aaa\\xbbbbbbbbbbbbbbbbbbbb\""), false, 4 },
    { "J-09 a raw NUL in a string", BYTES("\"a\0b\""), false, 2 },
    { "J-09 a lone high surrogate", BYTES("\"\\ud83d\""), false, 1 },
    { "J-09 a lone low surrogate", BYTES("\"\\ude00\""), false, 1 },
    { "J-09 two high surrogates", BYTES("\"\\ud83d\\ud83d\""), false, 1 },
    { "J-09 a high surrogate before text", BYTES("\"\\ud83dabcdef\""), false, 1 },
    { "J-09 a lone continuation byte", BYTES("\"\x80\""), false, 1 },
    { "J-09 an overlong slash", BYTES("\"\xc0\xaf\""), false, 1 },
    { "J-09 an overlong form of three bytes", BYTES("\"\xe0\x80\xaf\""), false, 1 },
    { "J-09 an overlong form of four bytes", BYTES("\"\xf0\x80\x80\xaf\""), false, 1 },
    { "J-09 a surrogate in UTF-8", BYTES("\"\xed\xa0\x80\""), false, 1 },
    { "J-09 a character above U+10FFFF", BYTES("\"\xf4\x90\x80\x80\""), false, 1 },
    { "J-09 a lead byte that UTF-8 has not", BYTES("\"\xf8\x88\x80\x80\x80\""), false, 1 },
    { "J-09 a character cut by the quote", BYTES("\"\xe2\x82\""), false, 1 },
    { "J-09 a character cut by the end", BYTES("\"\xe2\x82"), false, 1 },
    { "J-09 a bad byte behind a good character", BYTES("\"\xc3\xa9\xff\""), false, 3 },
};

static void scan_row(const char bytes[], size_t byte_count, const struct row *row)
{
    size_t end = 999;
    assert_int_equal(json_scan(bytes, byte_count, NULL, 0, &end), row->is_valid ? JSON_DONE : JSON_INVALID);
    assert_int_equal(end, row->end);
}

/* In memory of the exact size, so that a sanitizer sees every byte read too far. */
static void test_row(void **state)
{
    const struct row *row = *state;
    char *copy = malloc(row->byte_count > 0 ? row->byte_count : 1);
    assert_non_null(copy);
    memcpy(copy, row->bytes, row->byte_count);
    scan_row(copy, row->byte_count, row);
    free(copy);
}

/* Every row again behind 0 to 15 spaces: the words of eight bytes begin elsewhere. */
static void test_the_answer_does_not_depend_on_alignment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t shift = 0; shift < 16; shift++) {
            struct row row = rows[i];
            char *copy = malloc(row.byte_count + shift + 1);
            assert_non_null(copy);
            memset(copy, ' ', shift);
            memcpy(copy + shift, row.bytes, row.byte_count);
            row.end += shift;
            scan_row(copy, row.byte_count + shift, &row);
            free(copy);
        }
}

static void test_no_bytes_may_be_a_null_pointer(void **state)
{
    size_t end = 1;
    (void)state;
    assert_int_equal(json_scan(NULL, 0, NULL, 0, &end), JSON_INVALID);
    assert_int_equal(end, 0);
    assert_true(json_is_blank(NULL, 0, 0));
}

static bool is_nesting_read(size_t depth, char open, const char *name)
{
    size_t name_bytes = strlen(name), end, byte_count = 0;
    char *bytes = malloc(depth * (name_bytes + 2) + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < depth; i++) {
        bytes[byte_count++] = open;
        memcpy(bytes + byte_count, name, i + 1 < depth ? name_bytes : 0);
        byte_count += i + 1 < depth ? name_bytes : 0;
    }
    for (size_t i = 0; i < depth; i++)
        bytes[byte_count++] = open == '[' ? ']' : '}';
    bool is_read = json_scan(bytes, byte_count, NULL, 0, &end) == JSON_DONE && end == byte_count;
    free(bytes);
    return is_read;
}

static void test_J_05_512_levels_are_read_and_513_are_not(void **state)
{
    (void)state;
    assert_true(is_nesting_read(511, '[', ""));
    assert_true(is_nesting_read(512, '[', ""));
    assert_false(is_nesting_read(513, '[', ""));
    assert_true(is_nesting_read(511, '{', "\"a\":"));
    assert_true(is_nesting_read(512, '{', "\"a\":"));
    assert_false(is_nesting_read(513, '{', "\"a\":"));
    assert_false(is_nesting_read(100000, '[', ""));
}

/* ---- wants --------------------------------------------------------------------------------------------------- */

struct look {
    struct json_want want;
    char *tokens[POINTER_DEPTH_MAX];
};

/* POINTER is "/a/b", without escapes; "" is the whole value. */
static void look_init(struct look *look, const char *pointer)
{
    char *text = strdup(pointer), *rest = text;
    memset(look, 0, sizeof *look);
    for (char *token; rest != NULL && pointer[0] == '/' && (token = strsep(&rest, "/")) != NULL;)
        if (token != text)
            look->tokens[look->want.token_count++] = strdup(token);
    free(text);
}

static void look_deinit(struct look *look)
{
    for (size_t i = 0; i < look->want.token_count; i++)
        free(look->tokens[i]);
}

static void look_scan(struct look looks[], size_t look_count, const char *text)
{
    struct json_want wants[JSON_WANTS_MAX];
    size_t end;
    for (size_t i = 0; i < look_count; i++) {
        wants[i] = looks[i].want;
        wants[i].tokens = looks[i].tokens;
    }
    assert_int_equal(json_scan(text, strlen(text), wants, look_count, &end), JSON_DONE);
    for (size_t i = 0; i < look_count; i++)
        looks[i].want = wants[i];
}

struct want_row {
    const char *name, *pointer, *json;
    enum json_kind kind;
    const char *text, *member;
    bool is_ambiguous;
};

static const struct want_row want_rows[] = {
    { "a member is found", "/a", "{\"b\":2, \"a\" : 1 ,\"c\":3}", JSON_IS_NUMBER, "1", "\"a\" : 1", false },
    { "the whole value is found", "", " {\"a\":1} ", JSON_IS_OBJECT, "{\"a\":1}", "{\"a\":1}", false },
    { "the whole value may be a scalar", "", " 12 ", JSON_IS_NUMBER, "12", "12", false },
    { "nothing is found where nothing is", "/a", "{\"b\":1}", JSON_IS_MISSING, "", "", false },
    { "a member of a member is found", "/a/b", "{\"a\":{\"x\":{\"b\":0},\"b\":\"v\"}}", JSON_IS_STRING,
      "\"v\"", "\"b\":\"v\"", false },
    { "a name at another depth is not it", "/a", "{\"b\":{\"a\":1}}", JSON_IS_MISSING, "", "", false },
    { "a name that only begins alike is not it", "/ab", "{\"a\":1,\"abc\":2}", JSON_IS_MISSING, "", "",
      false },
    { "a container is found whole", "/a", "{\"a\":{\"b\":[1,{}]},\"c\":1}", JSON_IS_OBJECT, "{\"b\":[1,{}]}",
      "\"a\":{\"b\":[1,{}]}", false },
    { "an empty array is found", "/a", "{\"a\":[ ]}", JSON_IS_ARRAY, "[ ]", "\"a\":[ ]", false },
    { "the words are found", "/a", "{\"a\":null}", JSON_IS_NULL, "null", "\"a\":null", false },
    { "the empty name is a name", "/", "{\"\":7}", JSON_IS_NUMBER, "7", "\"\":7", false },
    { "an element is found by its index", "/1", "[5,6,7]", JSON_IS_NUMBER, "6", "6", false },
    { "an element beyond the end is missing", "/3", "[5,6,7]", JSON_IS_MISSING, "", "", false },
    { "an index has no leading zero", "/01", "[5,6,7]", JSON_IS_MISSING, "", "", false },
    { "the tenth element is no first", "/10", "[0,1,2,3,4,5,6,7,8,9,10]", JSON_IS_NUMBER, "10", "10", false },
    { "an index is a name in an object", "/1", "{\"1\":9}", JSON_IS_NUMBER, "9", "\"1\":9", false },
    { "a path through an array", "/a/1/b", "{\"a\":[{\"b\":1},{\"b\":2}]}", JSON_IS_NUMBER, "2", "\"b\":2",
      false },
    { "a path through a scalar ends", "/a/b", "{\"a\":1}", JSON_IS_MISSING, "", "", false },
    { "a name written with escapes is the name", "/topic", "{\"\\u0074opi\\u0063\":1}", JSON_IS_NUMBER, "1",
      "\"\\u0074opi\\u0063\":1", false },
    { "a name above ASCII written with escapes", "/\xc3\xa9\xf0\x9f\x98\x80", "{\"\\u00e9\\ud83d\\ude00\":1}",
      JSON_IS_NUMBER, "1", "\"\\u00e9\\ud83d\\ude00\":1", false },
    { "J-04 a name with NUL is no name of ours", "/a", "{\"a\\u0000\":1}", JSON_IS_MISSING, "", "", false },
    { "J-01 a name that stands twice is ambiguous", "/a", "{\"a\":1,\"b\":2,\"a\":3}", JSON_IS_NUMBER, "3",
      "\"a\":3", true },
    { "J-01 three times is ambiguous too", "/a", "{\"a\":1,\"a\":2,\"a\":3}", JSON_IS_NUMBER, "3", "\"a\":3",
      true },
    { "J-01 the same value twice is ambiguous", "/a", "{\"a\":1,\"a\":1}", JSON_IS_NUMBER, "1", "\"a\":1",
      true },
    { "J-01 the second one written with escapes", "/a", "{\"a\":1,\"\\u0061\":2}", JSON_IS_NUMBER, "2",
      "\"\\u0061\":2", true },
    { "J-01 the first one written with escapes", "/ab", "{\"\\u0061b\":1,\"ab\":2}", JSON_IS_NUMBER, "2",
      "\"ab\":2", true },
    { "J-01 a name on the way that stands twice", "/a/b", "{\"a\":{\"b\":1},\"a\":{\"c\":2}}", JSON_IS_NUMBER,
      "1", "\"b\":1", true },
    { "J-01 a scalar of the name on the way", "/a/b", "{\"a\":1,\"a\":{\"b\":1}}", JSON_IS_NUMBER, "1",
      "\"b\":1", true },
    { "J-01 once in each of two objects is not twice", "/a/b", "{\"b\":0,\"a\":{\"b\":1},\"c\":{\"b\":2}}",
      JSON_IS_NUMBER, "1", "\"b\":1", false },
    { "J-01 once in each of two elements is not twice", "/0/b", "[{\"b\":1},{\"b\":2}]", JSON_IS_NUMBER, "1",
      "\"b\":1", false },
    { "J-01 other names may stand twice", "/a", "{\"b\":1,\"b\":2,\"a\":3}", JSON_IS_NUMBER, "3", "\"a\":3",
      false },
    { "J-02 an integer is its bytes", "/a", "{\"a\":9007199254740993}", JSON_IS_NUMBER, "9007199254740993",
      "\"a\":9007199254740993", false },
    { "the deepest pointer is followed", "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
      "{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{"
      "\"a\":"
      "{\"a\":{\"a\":1}}}}}}}}}}}}}}}}}",
      JSON_IS_OBJECT, "{\"a\":1}", "\"a\":{\"a\":1}", false },
};

static void assert_slice(struct slice slice, const char *text)
{
    if (!slice_equals_text(slice, text))
        fail_msg("\"%.*s\" is not \"%s\"", (int)slice.byte_count, slice.at, text);
}

static void test_want_row(void **state)
{
    const struct want_row *row = *state;
    struct look look;
    look_init(&look, row->pointer);
    look_scan(&look, 1, row->json);
    assert_int_equal(look.want.kind, row->kind);
    assert_slice(look.want.text, row->text);
    assert_slice(look.want.member, row->member);
    assert_int_equal(look.want.is_ambiguous, row->is_ambiguous);
    look_deinit(&look);
}

static void test_as_many_wants_as_there_may_be_are_found_at_once(void **state)
{
    struct look looks[JSON_WANTS_MAX];
    char json[2000] = "{", pointer[20];
    (void)state;
    for (size_t i = 0; i < JSON_WANTS_MAX; i++) {
        snprintf(pointer, sizeof pointer, i % 2 == 0 ? "/name%zu" : "/deep/name%zu", i);
        look_init(&looks[i], pointer);
        if (i % 2 == 0)
            snprintf(json + strlen(json), sizeof json - strlen(json), "\"name%zu\":%zu,", i, i);
    }
    strcat(json, "\"deep\":{\"x\":0");
    for (size_t i = 1; i < JSON_WANTS_MAX; i += 2)
        snprintf(json + strlen(json), sizeof json - strlen(json), ",\"name%zu\":%zu", i, i);
    strcat(json, "}}");
    look_scan(looks, JSON_WANTS_MAX, json);
    for (size_t i = 0; i < JSON_WANTS_MAX; i++) {
        snprintf(pointer, sizeof pointer, "%zu", i);
        assert_slice(looks[i].want.text, pointer);
        assert_false(looks[i].want.is_ambiguous);
        look_deinit(&looks[i]);
    }
}

static void test_J_01_each_of_two_names_is_counted_for_itself(void **state)
{
    struct look looks[2];
    (void)state;
    look_init(&looks[0], "/a");
    look_init(&looks[1], "/b");
    look_scan(looks, 2, "{\"a\":1,\"b\":2,\"a\":3}");
    assert_true(looks[0].want.is_ambiguous);
    assert_false(looks[1].want.is_ambiguous);
    look_scan(looks, 2, "{\"b\":1,\"a\":2,\"c\":{\"a\":1},\"b\":3}");
    assert_false(looks[0].want.is_ambiguous);
    assert_true(looks[1].want.is_ambiguous);
    look_deinit(&looks[0]);
    look_deinit(&looks[1]);
}

static void test_results_of_an_earlier_scan_are_forgotten(void **state)
{
    struct look look;
    (void)state;
    look_init(&look, "/a");
    look_scan(&look, 1, "{\"a\":1,\"a\":2}");
    look_scan(&look, 1, "{\"b\":1}");
    assert_int_equal(look.want.kind, JSON_IS_MISSING);
    assert_false(look.want.is_ambiguous);
    look_deinit(&look);
}

/* ---- J-08: random texts, jansson as the judge ----------------------------------------------------------------- */

static uint32_t random_next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Pieces that are likely to make JSON of some sort. */
static size_t random_text(uint32_t *seed, char text[], size_t size)
{
    static const char *const pieces[] = { "{",
                                          "}",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"a\"",
                                          "\"b\":",
                                          "1",
                                          "-0.5",
                                          "true",
                                          "null",
                                          " ",
                                          "\n",
                                          "\"\\u00e9\"",
                                          "\"\xc3\xa9\"",
                                          "0",
                                          "\"",
                                          "\\",
                                          "[]",
                                          "{}",
                                          "\"a\":1",
                                          "\"\\ud83d\\ude00\"",
                                          "\x80",
                                          "01",
                                          "{\"a\":",
                                          "[1," };
    size_t byte_count = 0, piece_count = 1 + random_next(seed) % 12;
    for (size_t i = 0; i < piece_count; i++) {
        const char *piece = pieces[random_next(seed) % (sizeof pieces / sizeof pieces[0])];
        size_t piece_bytes = strlen(piece);
        if (byte_count + piece_bytes > size)
            break;
        memcpy(text + byte_count, piece, piece_bytes);
        byte_count += piece_bytes;
    }
    return byte_count;
}

static void test_J_08_random_texts_are_judged_as_by_jansson(void **state)
{
    uint32_t seed = 20240601;
    size_t valid_count = 0;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        char text[200];
        json_error_t error;
        size_t end, byte_count = random_text(&seed, text, sizeof text);
        bool is_ours =
            json_scan(text, byte_count, NULL, 0, &end) == JSON_DONE && json_is_blank(text, byte_count, end);
        json_t *theirs = json_loadb(text, byte_count, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        if (is_ours != (theirs != NULL))
            fail_msg("%s: %.*s", is_ours ? "only jansson refuses" : "only we refuse", (int)byte_count, text);
        valid_count += is_ours;
        json_decref(theirs);
    }
    assert_true(valid_count > 1000);
}

/* ---- searches ------------------------------------------------------------------------------------------------ */

static void assert_same_want(const struct json_want *found, const struct json_want *expected)
{
    assert_int_equal(found->kind, expected->kind);
    assert_int_equal(found->is_ambiguous, expected->is_ambiguous);
    assert_ptr_equal(found->text.at, expected->text.at);
    assert_int_equal(found->text.byte_count, expected->text.byte_count);
    assert_ptr_equal(found->member.at, expected->member.at);
    assert_int_equal(found->member.byte_count, expected->member.byte_count);
}

static void test_a_search_finds_in_text_after_text_what_a_scan_finds(void **state)
{
    static const char *const texts[] = { "{\"a\":1,\"b\":{\"a\":[2],\"a\":3}}",
                                         "{}",
                                         "[{\"a\":1}]",
                                         "{\"b\":{\"a\":4}}",
                                         "{\"a\":1,\"a\"",
                                         "{\"a\":5}",
                                         "17" };
    struct look looks[2];
    struct json_want found[2];
    struct json_search search;
    size_t end, search_end;
    (void)state;
    look_init(&looks[0], "/a");
    look_init(&looks[1], "/b/a");
    for (size_t i = 0; i < 2; i++) {
        looks[i].want.tokens = looks[i].tokens;
        found[i] = looks[i].want;
    }
    json_search_init(&search, found, 2);
    for (size_t i = 0; i < 49; i++) {
        const char *text = texts[(i + i / 7) % 7];
        struct json_want expected[2] = { looks[0].want, looks[1].want };
        enum json_status status = json_scan(text, strlen(text), expected, 2, &end);
        assert_int_equal(json_search_next(&search, text, strlen(text), &search_end), status);
        assert_int_equal(search_end, end);
        for (size_t want = 0; status == JSON_DONE && want < 2; want++)
            assert_same_want(&found[want], &expected[want]);
    }
    look_deinit(&looks[0]);
    look_deinit(&looks[1]);
}

/* ---- strings and numbers ------------------------------------------------------------------------------------- */

static void test_a_string_is_unescaped(void **state)
{
    char out[64];
    size_t byte_count;
    (void)state;
    struct slice text =
        slice_of_text("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\xc3\xa9\"");
    assert_true(json_string_copy(text, out, sizeof out, &byte_count));
    assert_slice(slice_of(out, byte_count), "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9");
    assert_true(json_string_copy(slice_of_text("\"\""), out, 0, &byte_count));
    assert_int_equal(byte_count, 0);
}

static void test_a_string_that_does_not_fit_is_refused(void **state)
{
    char out[4];
    size_t byte_count;
    (void)state;
    assert_true(json_string_copy(slice_of_text("\"abcd\""), out, 4, &byte_count));
    assert_false(json_string_copy(slice_of_text("\"abcde\""), out, 4, &byte_count));
    assert_false(json_string_copy(slice_of_text("\"ab\\u20ac\""), out, 4, &byte_count));
}

static void test_J_04_a_string_with_NUL_is_not_extracted(void **state)
{
    char out[16];
    size_t byte_count;
    (void)state;
    assert_false(json_string_copy(slice_of_text("\"orders\\u0000\""), out, sizeof out, &byte_count));
}

struct decimal_row {
    const char *digits;
    uint64_t max;
    bool is_read;
    uint64_t value;
};

static void test_J_02_plain_decimals_are_read_exactly(void **state)
{
    static const struct decimal_row decimals[] = {
        { "0", 9, true, 0 },
        { "9", 9, true, 9 },
        { "10", 9, false, 0 },
        { "7", 3, false, 0 },
        { "2147483647", INT32_MAX, true, INT32_MAX },
        { "2147483648", INT32_MAX, false, 0 },
        { "9007199254740993", INT64_MAX, true, UINT64_C(9007199254740993) },
        { "9223372036854775807", INT64_MAX, true, INT64_MAX },
        { "9223372036854775808", INT64_MAX, false, 0 },
        { "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
        { "18446744073709551616", UINT64_MAX, false, 0 },
        { "99999999999999999999999999", UINT64_MAX, false, 0 },
        { "", 9, false, 0 },
        { "00", 9, false, 0 },
        { "07", 9, false, 0 },
        { "-1", 9, false, 0 },
        { "-0", 9, false, 0 },
        { "+1", 9, false, 0 },
        { "1.0", 9, false, 0 },
        { "1e0", 9, false, 0 },
        { " 1", 9, false, 0 },
        { "1 ", 9, false, 0 },
        { "0x1", 99, false, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof decimals / sizeof decimals[0]; i++) {
        uint64_t value = 0;
        if (decimal_read(slice_of_text(decimals[i].digits), decimals[i].max, &value) != decimals[i].is_read)
            fail_msg("\"%s\"", decimals[i].digits);
        assert_true(value == decimals[i].value);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_answer_does_not_depend_on_alignment),
        cmocka_unit_test(test_no_bytes_may_be_a_null_pointer),
        cmocka_unit_test(test_J_05_512_levels_are_read_and_513_are_not),
        cmocka_unit_test(test_as_many_wants_as_there_may_be_are_found_at_once),
        cmocka_unit_test(test_J_01_each_of_two_names_is_counted_for_itself),
        cmocka_unit_test(test_results_of_an_earlier_scan_are_forgotten),
        cmocka_unit_test(test_J_08_random_texts_are_judged_as_by_jansson),
        cmocka_unit_test(test_a_search_finds_in_text_after_text_what_a_scan_finds),
        cmocka_unit_test(test_a_string_is_unescaped),
        cmocka_unit_test(test_a_string_that_does_not_fit_is_refused),
        cmocka_unit_test(test_J_04_a_string_with_NUL_is_not_extracted),
        cmocka_unit_test(test_J_02_plain_decimals_are_read_exactly),
    };
    static struct row row_states[sizeof rows / sizeof rows[0]];
    static struct want_row want_states[sizeof want_rows / sizeof want_rows[0]];
    struct CMUnitTest row_tests[sizeof rows / sizeof rows[0]] = { 0 };
    struct CMUnitTest want_tests[sizeof want_rows / sizeof want_rows[0]] = { 0 };
    memcpy(row_states, rows, sizeof rows);
    memcpy(want_states, want_rows, sizeof want_rows);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        row_tests[i] = (struct CMUnitTest){ .name = rows[i].name,
                                            .test_func = test_row,
                                            .initial_state = &row_states[i] };
    for (size_t i = 0; i < sizeof want_rows / sizeof want_rows[0]; i++)
        want_tests[i] = (struct CMUnitTest){ .name = want_rows[i].name,
                                             .test_func = test_want_row,
                                             .initial_state = &want_states[i] };
    int failed_count = cmocka_run_group_tests_name("texts", row_tests, NULL, NULL);
    failed_count += cmocka_run_group_tests_name("wants", want_tests, NULL, NULL);
    return failed_count + cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
