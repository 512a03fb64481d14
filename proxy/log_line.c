/*
 * log_line.c - forms one line of the log: escaping, and the limit of 4 KiB.
 *
 * Control bytes never pass, in either form: a topic name must not be able to start a line of its own or to steer a
 * terminal.  What is not UTF-8 becomes U+FFFD.  Each text is cut after VALUE_BYTES_MAX so that one long value leaves
 * room for the fields after it.
 */
#include "log_line.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    VALUE_BYTES_MAX = 1024,
    TAIL_BYTES_MAX = 32, /* a closing quote, ,"cut":true}, the line end */
    UNIT_BYTES_MAX = 8,  /* one character escaped: "\u001b" is the longest */
};

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {
        [LOG_LEVEL_ERROR] = "error",
        [LOG_LEVEL_WARN] = "warn",
        [LOG_LEVEL_INFO] = "info",
        [LOG_LEVEL_DEBUG] = "debug",
    };
    return names[level];
}

/* The whole of BYTES or nothing. */
static bool put(struct log_line *line, const char bytes[], size_t byte_count)
{
    if (line->byte_count + byte_count > sizeof line->bytes - TAIL_BYTES_MAX) {
        line->is_cut = true;
        return false;
    }
    memcpy(line->bytes + line->byte_count, bytes, byte_count);
    line->byte_count += byte_count;
    return true;
}

static bool put_text(struct log_line *line, const char *text)
{
    return put(line, text, strlen(text));
}

/* What ends a value or the line has its room kept free. */
static void put_tail(struct log_line *line, const char *text)
{
    const size_t byte_count = strlen(text);
    assert(byte_count <= sizeof line->bytes - line->byte_count);
    memcpy(line->bytes + line->byte_count, text, byte_count);
    line->byte_count += byte_count;
}

/* The length of the character that BYTES begin with, 0 when it is not UTF-8 (RFC 3629, section 4: no overlong forms,
 * no surrogates, nothing above U+10FFFF). */
static size_t utf8_length(const unsigned char bytes[], size_t byte_count)
{
    const unsigned char first = bytes[0];
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0 || length > byte_count)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    const bool is_overlong = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xf0 && bytes[1] < 0x90);
    const bool is_surrogate = first == 0xed && bytes[1] > 0x9f;
    const bool is_above = first == 0xf4 && bytes[1] > 0x8f;
    return is_overlong || is_surrogate || is_above ? 0 : length;
}

/* Write the character that BYTES begin with into UNIT as a JSON string holds it (RFC 8259, section 7); the count of
 * bytes taken.  DEL and the C1 controls are legal there, but a terminal would obey them. */
static size_t escape(const unsigned char bytes[], size_t byte_count, char unit[UNIT_BYTES_MAX + 1])
{
    const unsigned char first = bytes[0];
    const size_t length = utf8_length(bytes, byte_count);
    if (length == 0) {
        strcpy(unit, "\xef\xbf\xbd");
        return 1;
    }
    if (first == '"' || first == '\\') {
        snprintf(unit, UNIT_BYTES_MAX, "\\%c", first);
    } else if (first == '\n' || first == '\r' || first == '\t') {
        snprintf(unit, UNIT_BYTES_MAX, "\\%c", first == '\n' ? 'n' : first == '\r' ? 'r' : 't');
    } else if (first < 0x20 || first == 0x7f) {
        snprintf(unit, UNIT_BYTES_MAX, "\\u%04x", first);
    } else if (first == 0xc2 && bytes[1] < 0xa0) {
        snprintf(unit, UNIT_BYTES_MAX, "\\u%04x", bytes[1]);
    } else {
        memcpy(unit, bytes, length);
        unit[length] = '\0';
    }
    return length;
}

static void put_escaped(struct log_line *line, struct slice value)
{
    const unsigned char *bytes = (const unsigned char *)value.at;
    const size_t begin = line->byte_count;
    for (size_t at = 0; at < value.byte_count;) {
        char unit[UNIT_BYTES_MAX + 1];
        at += escape(bytes + at, value.byte_count - at, unit);
        if (line->byte_count - begin >= VALUE_BYTES_MAX) {
            line->is_cut = true;
            return;
        }
        if (!put_text(line, unit))
            return;
    }
}

static void put_quoted(struct log_line *line, struct slice value)
{
    if (!put_text(line, "\""))
        return;
    put_escaped(line, value);
    put_tail(line, "\"");
}

/* Does VALUE read well without quotes? */
static bool is_plain(struct slice value)
{
    for (size_t i = 0; i < value.byte_count; i++) {
        const unsigned char byte = (unsigned char)value.at[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '"' || byte == '\\' || byte == '=')
            return false;
    }
    return value.byte_count > 0;
}

static struct slice value_of(const struct log_field *field)
{
    if (field->kind == LOG_SLICE)
        return field->slice;
    return slice_of_text(field->text == NULL ? "" : field->text);
}

/* A field goes in with its name and value or not at all, so that a full line is still an object. */
static void put_field(struct log_line *line, bool is_text, const struct log_field *field)
{
    char begin[80], number[32];
    snprintf(begin, sizeof begin, is_text ? " %.60s=" : ",\"%.60s\":", field->name);
    if (line->byte_count + strlen(begin) + sizeof number > sizeof line->bytes - TAIL_BYTES_MAX) {
        line->is_cut = true;
        return;
    }
    put_text(line, begin);
    if (field->kind == LOG_INTEGER) {
        snprintf(number, sizeof number, "%" PRId64, field->integer);
        put_text(line, number);
    } else if (is_text && is_plain(value_of(field))) {
        put_escaped(line, value_of(field));
    } else {
        put_quoted(line, value_of(field));
    }
}

/* RFC 3339, in UTC, with milliseconds. */
static void form_time(uint64_t time_ms, char ret_text[32])
{
    const time_t seconds = (time_t)(time_ms / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL || strftime(ret_text, 32, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        strcpy(ret_text, "1970-01-01T00:00:00");
    const size_t length = strlen(ret_text);
    snprintf(ret_text + length, 32 - length, ".%03uZ", (unsigned)(time_ms % 1000));
}

static void put_json_head(struct log_line *line, const char *time_text, const struct log_words *words)
{
    put_text(line, "{\"time\":\"");
    put_text(line, time_text);
    put_text(line, "\",\"level\":\"");
    put_text(line, log_level_name(words->level));
    put_text(line, "\",\"event\":");
    put_quoted(line, slice_of_text(words->event));
    put_text(line, ",\"msg\":");
    put_quoted(line, slice_of_text(words->message));
}

static void put_text_head(struct log_line *line, const char *time_text, const struct log_words *words)
{
    put_text(line, time_text);
    put_text(line, " ");
    put_text(line, log_level_name(words->level));
    put_text(line, " ");
    put_escaped(line, slice_of_text(words->event));
    put_text(line, ": ");
    put_escaped(line, slice_of_text(words->message));
}

void log_line_form(struct log_line *line, bool is_text, const struct log_words *words)
{
    char time_text[32];
    assert(words->level <= LOG_LEVEL_DEBUG);
    form_time(words->time_ms, time_text);
    line->byte_count = 0;
    line->is_cut = false;
    if (is_text)
        put_text_head(line, time_text, words);
    else
        put_json_head(line, time_text, words);
    if (words->suppressed_count > 0) {
        const struct log_field suppressed = log_integer("suppressed", (int64_t)words->suppressed_count);
        put_field(line, is_text, &suppressed);
    }
    for (size_t i = 0; i < words->field_count; i++)
        put_field(line, is_text, &words->fields[i]);
    if (line->is_cut)
        put_tail(line, is_text ? " cut=true" : ",\"cut\":true");
    put_tail(line, is_text ? "\n" : "}\n");
}
