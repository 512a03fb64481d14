/*
 * text.h - text that grows at its end, for bodies whose length is known only once they are written.
 *
 * Memory that could not be had is remembered and told once, by text_take(): what is added after it is lost.
 */
#ifndef SINKONCE_TEXT_H
#define SINKONCE_TEXT_H

#include <stdint.h>
#include "slice.h"

struct text {
    char *bytes; /* owned */
    size_t byte_count, room_bytes;
    bool is_lost; /* no memory */
};

/* Zeroed by {0}.  Makes room ahead, so that what is added later need not move. */
void text_reserve(struct text *text, size_t more_bytes);
void text_add(struct text *text, struct slice more);
void text_add_chars(struct text *text, const char *more);
void text_add_number(struct text *text, int64_t number);

/* Hands the bytes over and leaves TEXT empty.  False: no memory; *RET_BYTES is NULL then. */
MUST_CHECK bool text_take(struct text *text, char **ret_bytes, size_t *ret_byte_count);
void text_deinit(struct text *text);

#endif
