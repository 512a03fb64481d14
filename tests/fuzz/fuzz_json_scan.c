/*
 * fuzz_json_scan.c - J-08: any bytes are judged as jansson judges them, end where it says, and hold what it finds.
 *
 * jansson alone refuses numbers that its types cannot hold and names with \u0000; we alone refuse to go deeper than
 * JSON_DEPTH_MAX.  Those are no differences.  A raw NUL behind a number is lost in jansson's buffer ("[18<NUL>]" is
 * read), so texts with one are scanned without a judge.
 */
#include <jansson.h>
#include <stdlib.h>
#include "fuzz.h"
#include "json_scan.h"
#include "json_string.h"

static char name_a[] = "a", name_b[] = "b", name_0[] = "0", name_accent[] = "\xc3\xa9", name_empty[] = "";
static char *const tokens_a[] = { name_a }, *const tokens_ab[] = { name_a, name_b },
                   *const tokens_a0[] = { name_a, name_0 }, *const tokens_0[] = { name_0 },
                   *const tokens_e[] = { name_accent, name_empty };

#define WANT(list)                                                                                           \
    {                                                                                                        \
        .tokens = list, .token_count = sizeof list / sizeof list[0]                                          \
    }
static const struct json_want templates[] = { WANT(tokens_a), WANT(tokens_ab), WANT(tokens_a0),
                                              WANT(tokens_0), WANT(tokens_e),  { .tokens = NULL } };
enum { WANT_COUNT = sizeof templates / sizeof templates[0] };

/* Of text that is known to be JSON. */
static size_t depth_of(const char *bytes, size_t byte_count)
{
    size_t depth = 0, deepest = 0;
    bool is_string = false;
    for (size_t i = 0; i < byte_count; i++) {
        char c = bytes[i];
        if (is_string && c == '\\')
            i++;
        else if (c == '"')
            is_string = !is_string;
        else if (!is_string && (c == '[' || c == '{'))
            depth++;
        else if (!is_string && (c == ']' || c == '}'))
            depth--;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static json_t *value_at(json_t *value, const struct json_want *want)
{
    for (size_t i = 0; i < want->token_count && value != NULL; i++) {
        const char *token = want->tokens[i];
        uint64_t index;
        if (json_is_array(value))
            value =
                decimal_read(slice_of_text(token), SIZE_MAX, &index) ? json_array_get(value, index) : NULL;
        else
            value = json_object_get(value, token);
    }
    return value;
}

static enum json_kind kind_of(const json_t *value)
{
    if (value == NULL)
        return JSON_IS_MISSING;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return JSON_IS_OBJECT;
    case JSON_ARRAY:
        return JSON_IS_ARRAY;
    case JSON_STRING:
        return JSON_IS_STRING;
    case JSON_INTEGER:
    case JSON_REAL:
        return JSON_IS_NUMBER;
    case JSON_TRUE:
        return JSON_IS_TRUE;
    case JSON_FALSE:
        return JSON_IS_FALSE;
    case JSON_NULL:
        return JSON_IS_NULL;
    }
    abort();
}

static void check_string(struct slice text, const json_t *value)
{
    char *out = malloc(text.byte_count);
    size_t byte_count;
    assert(out != NULL);
    bool has_nul = memchr(json_string_value(value), 0, json_string_length(value)) != NULL;
    bool is_copied = json_string_copy(text, out, text.byte_count, &byte_count);
    assert(is_copied == !has_nul);
    if (is_copied)
        assert(slice_equals(slice_of(out, byte_count),
                            slice_of(json_string_value(value), json_string_length(value))));
    free(out);
}

static void check_number(struct slice text, const json_t *value)
{
    uint64_t number;
    if (json_is_integer(value) && decimal_read(text, INT64_MAX, &number))
        assert((json_int_t)number == json_integer_value(value));
}

static void check_want(const struct json_want *want, json_t *root, const char *bytes, size_t byte_count)
{
    json_t *value = value_at(root, want);
    if (want->kind != JSON_IS_MISSING) {
        assert_inside(want->text, bytes, byte_count);
        assert_inside(want->member, bytes, byte_count);
        assert_inside(want->text, want->member.at, want->member.byte_count);
    }
    if (want->is_ambiguous)
        return;
    assert(want->kind == kind_of(value));
    if (want->kind == JSON_IS_STRING)
        check_string(want->text, value);
    if (want->kind == JSON_IS_NUMBER)
        check_number(want->text, value);
}

static void check_valid(struct json_want wants[], json_t *theirs, const char *bytes, size_t byte_count,
                        size_t end)
{
    for (size_t i = 0; i < WANT_COUNT; i++)
        check_want(&wants[i], theirs, bytes, byte_count);
    struct slice text = wants[WANT_COUNT - 1].text;
    assert(text.at + text.byte_count == bytes + end);
}

/* Where a value ends that others may follow; jansson says so for containers only. */
static void check_end(const char *bytes, size_t byte_count, enum json_status status, size_t end)
{
    json_error_t error;
    json_t *theirs =
        json_loadb(bytes, byte_count, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);
    if (theirs != NULL && (json_is_object(theirs) || json_is_array(theirs))) {
        size_t their_end = (size_t)error.position;
        assert(status == JSON_DONE ? their_end == end : depth_of(bytes, their_end) > JSON_DEPTH_MAX);
    }
    json_decref(theirs);
}

/* A search that has seen other texts before finds what a scan finds.  The last of the wants is the whole value, which
 * no search looks for. */
static void check_search(const struct json_want wants[], const char *bytes, size_t byte_count,
                         enum json_status status, size_t end)
{
    static struct json_want found[WANT_COUNT - 1];
    static struct json_search search;
    size_t search_end;
    if (search.wants == NULL) {
        memcpy(found, templates, sizeof found);
        json_search_init(&search, found, WANT_COUNT - 1);
    }
    enum json_status search_status = json_search_next(&search, bytes, byte_count, &search_end);
    assert(search_status == status && search_end == end);
    for (size_t i = 0; status == JSON_DONE && i < WANT_COUNT - 1; i++) {
        assert(found[i].kind == wants[i].kind && found[i].is_ambiguous == wants[i].is_ambiguous);
        assert(found[i].text.at == wants[i].text.at && found[i].text.byte_count == wants[i].text.byte_count);
        assert(found[i].member.at == wants[i].member.at &&
               found[i].member.byte_count == wants[i].member.byte_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    const char *bytes = (const char *)input;
    struct json_want wants[WANT_COUNT];
    json_error_t error;
    size_t end;
    memcpy(wants, templates, sizeof wants);
    enum json_status status = json_scan(bytes, input_bytes, wants, WANT_COUNT, &end);
    assert(end <= input_bytes);
    check_search(wants, bytes, input_bytes, status, end);
    if (input_bytes > 0 && memchr(bytes, '\0', input_bytes) != NULL)
        return 0;
    bool is_ours = status == JSON_DONE && json_is_blank(bytes, input_bytes, end);
    json_t *theirs = json_loadb(bytes, input_bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (theirs != NULL && is_ours) {
        check_valid(wants, theirs, bytes, input_bytes, end);
    } else if (theirs != NULL) {
        assert(depth_of(bytes, input_bytes) > JSON_DEPTH_MAX);
    } else if (is_ours) {
        enum json_error_code code = json_error_code(&error);
        assert(code == json_error_numeric_overflow || code == json_error_null_byte_in_key);
    }
    json_decref(theirs);
    check_end(bytes, input_bytes, status, end);
    return 0;
}
