/*
 * fuzz_log_line.c - any bytes in the fields of an event: one line in both forms, whole characters, and in the JSON form
 * one object that jansson reads.
 *
 * The first byte says how many events were held back and which level it is; the rest are fields, separated by 0x00: a byte
 * of their kind, and what they hold.
 */
#include <jansson.h>
#include "fuzz.h"
#include "log_line.h"

enum { FIELDS_MAX = 12 };

static const char *const names[FIELDS_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };

static size_t fields_read(struct slice rest, struct log_field fields[FIELDS_MAX])
{
    size_t count = 0;
    while (rest.byte_count > 0 && count < FIELDS_MAX) {
        const char *end = memchr(rest.at, '\0', rest.byte_count);
        size_t byte_count = end == NULL ? rest.byte_count : (size_t)(end - rest.at);
        struct slice value = slice_of(rest.at + 1, byte_count > 0 ? byte_count - 1 : 0);
        int64_t number = 0;
        memcpy(&number, value.at, value.byte_count < sizeof number ? value.byte_count : sizeof number);
        fields[count] = byte_count > 0 && rest.at[0] % 2 != 0 ? log_integer(names[count], number)
                                                              : log_slice(names[count], value);
        count++;
        size_t used = byte_count + (end != NULL);
        rest = slice_of(rest.at + used, rest.byte_count - used);
    }
    return count;
}

static void check_line(const struct log_line *line)
{
    assert(line->byte_count >= 1 && line->byte_count <= sizeof line->bytes);
    assert(line->bytes[line->byte_count - 1] == '\n');
    for (size_t i = 0; i + 1 < line->byte_count; i++)
        assert((unsigned char)line->bytes[i] >= ' ' && line->bytes[i] != 0x7f);
}

/* jansson takes only what is UTF-8. */
static void check_object(const struct log_line *line, const struct log_field fields[], size_t field_count)
{
    json_error_t error;
    json_t *json = json_loadb(line->bytes, line->byte_count, JSON_REJECT_DUPLICATES, &error);
    assert(json_is_object(json));
    assert((json_object_get(json, "cut") != NULL) == line->is_cut);
    for (size_t i = 0; i < field_count && !line->is_cut; i++) {
        const json_t *value = json_object_get(json, fields[i].name);
        assert(fields[i].kind == LOG_INTEGER ? json_integer_value(value) == fields[i].integer
                                             : json_is_string(value));
    }
    json_decref(json);
}

static void check_characters(const struct log_line *line)
{
    json_t *text = json_stringn(line->bytes, line->byte_count);
    assert(text != NULL);
    json_decref(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct log_field fields[FIELDS_MAX];
    static struct log_line line;
    if (input_bytes < 1)
        return 0;
    struct log_words words = { .time_ms = UINT64_C(1700000000000) + input[0],
                               .level = (enum log_level)(input[0] % 4),
                               .event = "fuzz.line",
                               .message = "a \"sentence\"",
                               .fields = fields,
                               .suppressed_count = input[0] / 64 };
    words.field_count = fields_read(slice_of((const char *)input + 1, input_bytes - 1), fields);
    log_line_form(&line, false, &words);
    check_line(&line);
    check_object(&line, fields, words.field_count);
    log_line_form(&line, true, &words);
    check_line(&line);
    check_characters(&line);
    return 0;
}
