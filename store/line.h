/*
 * line.h - one line of an export: a flat JSON object, written and read back strictly.
 *
 * Its values are texts, whole numbers, true and false.  Of JSON that is all that an export needs; anything else is
 * refused.  Bytes that are no characters (answers cut in the middle of one) are written as "?".
 */
#ifndef SINKONCE_STORE_LINE_H
#define SINKONCE_STORE_LINE_H

#include <stdint.h>
#include "slice.h"

enum { LINE_BYTES_MAX = 16 * 1024, LINE_FIELDS_MAX = 20 };

/* ---- writing ---- */

/* The caller's memory. */
struct line_out {
    char bytes[LINE_BYTES_MAX];
    size_t byte_count;
};
void line_begin(struct line_out *out, const char *kind);
void line_put_number(struct line_out *out, const char *name, uint64_t number);
void line_put_signed(struct line_out *out, const char *name, int64_t number);
void line_put_bool(struct line_out *out, const char *name, bool is_true);
void line_put_text(struct line_out *out, const char *name, struct slice text);
void line_put_hex(struct line_out *out, const char *name, struct slice bytes);
struct slice line_end(struct line_out *out); /* lives as long as OUT */

/* ---- reading ---- */

enum line_type { LINE_NUMBER, LINE_TEXT, LINE_BOOL };

struct line_field {
    struct slice name; /* borrowed from the line */
    enum line_type type;
    bool is_taken, is_negative, is_true;
    uint64_t number;   /* without its sign */
    struct slice text; /* in the line's own bytes */
};

/* The caller's memory.  The first mistake stays: whoever reads asks for all fields and then line_is_good(). */
struct line_in {
    struct line_field fields[LINE_FIELDS_MAX];
    size_t field_count;
    char bytes[LINE_BYTES_MAX]; /* the texts, unescaped */
    size_t byte_count;
    bool is_bad;
    char why[96];
};
/* False: WHY says what is wrong. */
MUST_CHECK bool line_read(struct line_in *in, struct slice line);
bool line_has(struct line_in *in, const char *name);
uint64_t line_number(struct line_in *in, const char *name, uint64_t low, uint64_t high);
/* An offset, or -1 where LOWEST is -1. */
int64_t line_offset(struct line_in *in, const char *name, int64_t lowest);
bool line_bool(struct line_in *in, const char *name);
/* Copies and ends with a zero; a text of BYTES_MAX bytes or more is refused, and so is a zero inside. */
void line_text(struct line_in *in, const char *name, char text[], size_t bytes_max);
/* Returns how many bytes there were, at most BYTES_MAX. */
size_t line_hex(struct line_in *in, const char *name, uint8_t bytes[], size_t bytes_max);
void line_refuse(struct line_in *in, const char *why);
/* All fields were asked for, and all were as they should. */
MUST_CHECK bool line_is_good(struct line_in *in);

#endif
