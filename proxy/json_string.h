/*
 * json_string.h - the inside of JSON strings: which bytes may stand there, and what they stand for.
 *
 * Pure.  The scanner (json_scan.h) passes plain text by itself, and comes here where a character is written in more than
 * one byte.  Source: RFC 8259, 7 (escapes); RFC 3629, 4 (UTF-8).
 */
#ifndef SINKONCE_JSON_STRING_H
#define SINKONCE_JSON_STRING_H

#include <stdbool.h>
#include <stdint.h>
#include "slice.h"

/* A byte above ASCII? */
static inline bool json_is_wide(char c)
{
    return (unsigned char)c >= 0x80;
}

/* Behind the run of characters above ASCII at AT.  It ends at END, before plain text, or at the first character that is not
 * well formed, and only then before a wide byte. */
MUST_CHECK const char *json_wide_end(const char *at, const char *end);
/* Behind the escape whose backslash is at AT, before END, and the code point that it stands for.  NULL: it is none, or half
 * of a pair of surrogates. */
MUST_CHECK const char *json_escape_end(const char *at, const char *end, uint32_t *ret_point);

/* Does the inside of a valid string, escapes and all, stand for TEXT? */
MUST_CHECK bool json_escaped_equals(struct slice inside, const char *text);
/* Unescape a string value (quotes included in TEXT) into OUT.  False: it does not fit, or holds \u0000. */
MUST_CHECK bool json_string_copy(struct slice text, char out[], size_t out_bytes_max, size_t *ret_bytes);

#endif
