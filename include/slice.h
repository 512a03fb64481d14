/*
 * slice.h - bytes that belong to somebody else.
 */
#ifndef SINKONCE_SLICE_H
#define SINKONCE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define MUST_CHECK __attribute__((warn_unused_result))

/* AT may be anything when BYTE_COUNT is 0; never zero-terminated. */
struct slice {
    const char *at; /* borrowed: lives as long as the buffer it points into */
    size_t byte_count;
};

static inline struct slice slice_of(const char *at, size_t byte_count)
{
    return (struct slice){ at, byte_count };
}

static inline struct slice slice_of_text(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static inline bool slice_equals(struct slice a, struct slice b)
{
    return a.byte_count == b.byte_count && (a.byte_count == 0 || memcmp(a.at, b.at, a.byte_count) == 0);
}

static inline bool slice_equals_text(struct slice a, const char *text)
{
    return slice_equals(a, slice_of_text(text));
}

/* Without regard to the case of ASCII letters. */
static inline bool slice_equals_caseless(struct slice a, struct slice b)
{
    return a.byte_count == b.byte_count && (a.byte_count == 0 || strncasecmp(a.at, b.at, a.byte_count) == 0);
}

/* Without the spaces and tabs around it. */
static inline struct slice slice_trimmed(struct slice text)
{
    while (text.byte_count > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = slice_of(text.at + 1, text.byte_count - 1);
    while (text.byte_count > 0 &&
           (text.at[text.byte_count - 1] == ' ' || text.at[text.byte_count - 1] == '\t'))
        text.byte_count--;
    return text;
}

/* -1: no digit. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
