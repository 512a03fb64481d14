/*
 * json_string.c - the inside of JSON strings.
 */
#include "json_string.h"

#include <assert.h>
#include <string.h>

/* ---- which bytes may stand there --------------------------------------------------------------------------------- */

static inline bool is_between(const char *at, unsigned char low, unsigned char high)
{
    return (unsigned char)*at >= low && (unsigned char)*at <= high;
}

/* Behind one character above ASCII; NULL when it is not well formed.
 * Source: RFC 3629, 4 (no overlong forms, no surrogates, nothing above U+10FFFF). */
static const char *utf8_end(const char *at, const char *end)
{
    unsigned char lead = (unsigned char)*at;
    size_t byte_count = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xbf;
    if (lead < 0xc2 || lead > 0xf4 || (size_t)(end - at) < byte_count)
        return NULL;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    if (!is_between(at + 1, low, high))
        return NULL;
    for (size_t i = 2; i < byte_count; i++)
        if (!is_between(at + i, 0x80, 0xbf))
            return NULL;
    return at + byte_count;
}

const char *json_wide_end(const char *at, const char *end)
{
    while (at < end && json_is_wide(*at)) {
        const char *next = utf8_end(at, end);
        if (next == NULL)
            break;
        at = next;
    }
    return at;
}

/* Four hexadecimal digits from AT on, which must hold so many bytes; -1: they are not. */
static int32_t hex4(const char *at)
{
    int32_t unit = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* One \uXXXX, or two that are a pair of surrogates, at AT.  NULL: neither.  Source: RFC 8259, 7. */
static const char *unicode_escape_end(const char *at, const char *end, uint32_t *ret_point)
{
    int32_t unit = end - at < 6 ? -1 : hex4(at + 2);
    if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff))
        return NULL;
    *ret_point = (uint32_t)unit;
    if (unit < 0xd800 || unit > 0xdbff)
        return at + 6;
    int32_t second = end - at < 12 || at[6] != '\\' || at[7] != 'u' ? -1 : hex4(at + 8);
    if (second < 0xdc00 || second > 0xdfff)
        return NULL;
    *ret_point = 0x10000 + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
    return at + 12;
}

const char *json_escape_end(const char *at, const char *end, uint32_t *ret_point)
{
    if (end - at < 2)
        return NULL;
    switch (at[1]) {
    case '"':
    case '\\':
    case '/':
        *ret_point = (uint32_t)at[1];
        return at + 2;
    case 'b':
        *ret_point = '\b';
        return at + 2;
    case 'f':
        *ret_point = '\f';
        return at + 2;
    case 'n':
        *ret_point = '\n';
        return at + 2;
    case 'r':
        *ret_point = '\r';
        return at + 2;
    case 't':
        *ret_point = '\t';
        return at + 2;
    case 'u':
        return unicode_escape_end(at, end, ret_point);
    default:
        return NULL;
    }
}

/* ---- what they stand for ------------------------------------------------------------------------------------------ */

static size_t utf8_write(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | (point >> 6));
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | (point >> 12));
        out[1] = (char)(0x80 | ((point >> 6) & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (point >> 18));
    out[1] = (char)(0x80 | ((point >> 12) & 0x3f));
    out[2] = (char)(0x80 | ((point >> 6) & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* The next bytes of a valid string's inside, unescaped; *AT moves on.  Bytes above ASCII come one by one. */
static size_t unescape(const char **at, const char *end, char out[4])
{
    if (**at != '\\') {
        out[0] = *(*at)++;
        return 1;
    }
    uint32_t point = 0;
    const char *next = json_escape_end(*at, end, &point);
    assert(next != NULL);
    *at = next;
    return utf8_write(point, out);
}

bool json_escaped_equals(struct slice inside, const char *text)
{
    const char *at = inside.at, *end = inside.at + inside.byte_count;
    size_t left_bytes = strlen(text);
    while (at < end) {
        char bytes[4];
        size_t byte_count = unescape(&at, end, bytes);
        if (byte_count > left_bytes || memcmp(text, bytes, byte_count) != 0)
            return false;
        text += byte_count;
        left_bytes -= byte_count;
    }
    return left_bytes == 0;
}

bool json_string_copy(struct slice text, char out[], size_t out_bytes_max, size_t *ret_bytes)
{
    assert(text.byte_count >= 2 && text.at[0] == '"');
    const char *at = text.at + 1, *end = text.at + text.byte_count - 1;
    size_t byte_count = 0;
    while (at < end) {
        char bytes[4];
        size_t more = unescape(&at, end, bytes);
        if (bytes[0] == '\0' || more > out_bytes_max - byte_count)
            return false;
        memcpy(out + byte_count, bytes, more);
        byte_count += more;
    }
    *ret_bytes = byte_count;
    return true;
}
