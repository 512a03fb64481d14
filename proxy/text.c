/*
 * text.c - see text.h.
 */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM_BYTES_MIN = 256 };

void text_reserve(struct text *text, size_t more_bytes)
{
    if (text->is_lost || more_bytes <= text->room_bytes - text->byte_count)
        return;
    size_t room_bytes = text->room_bytes < ROOM_BYTES_MIN ? ROOM_BYTES_MIN : text->room_bytes * 2;
    if (room_bytes - text->byte_count < more_bytes)
        room_bytes = text->byte_count + more_bytes;
    char *bytes = realloc(text->bytes, room_bytes);
    text->is_lost = bytes == NULL;
    if (text->is_lost)
        return;
    text->bytes = bytes;
    text->room_bytes = room_bytes;
}

void text_add(struct text *text, struct slice more)
{
    text_reserve(text, more.byte_count);
    if (text->is_lost || more.byte_count == 0)
        return;
    memcpy(text->bytes + text->byte_count, more.at, more.byte_count);
    text->byte_count += more.byte_count;
}

void text_add_chars(struct text *text, const char *more)
{
    text_add(text, slice_of_text(more));
}

void text_add_number(struct text *text, int64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, number);
    text_add_chars(text, digits);
}

bool text_take(struct text *text, char **ret_bytes, size_t *ret_byte_count)
{
    bool is_whole = !text->is_lost;
    if (!is_whole)
        text_deinit(text);
    *ret_bytes = text->bytes;
    *ret_byte_count = text->byte_count;
    *text = (struct text){ 0 };
    return is_whole;
}

void text_deinit(struct text *text)
{
    free(text->bytes);
    *text = (struct text){ 0 };
}
