/*
 * http1_chunk.c - the chunked coding as a machine that is fed byte by byte, so that a cut anywhere changes nothing.
 *
 *   SIZE_FIRST -> SIZE -> [EXTENSION_FIRST -> EXTENSION] -> SIZE_LF -+-> DATA -> DATA_CR -> DATA_LF -> SIZE_FIRST
 *                                                                   |
 *                                               last chunk, size 0  +-> LINE_FIRST -> END_LF -> END
 *                                                                         |     ^
 *                                                                       NAME -> VALUE -> VALUE_LF
 *
 * Only what RFC 9112, 7.1 spells out passes: no prefix, sign or white space around a size, no bare CR or LF.
 * Extensions and trailers are checked, counted and dropped.
 */
#include "http1.h"
#include <assert.h>

enum {
    SIZE_FIRST, /* 0: the state of a zeroed struct */
    SIZE,
    EXTENSION_FIRST,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    LINE_FIRST,
    NAME,
    VALUE,
    VALUE_LF,
    END_LF,
    END,
    REFUSED,
};

enum { SIZE_DIGITS_MAX = 16 }; /* 64 bits: a size of so many digits cannot wrap left_bytes */

/* NEXT when BYTE is the one that must come here. */
static int expect(char byte, char wanted, int next)
{
    return byte == wanted ? next : REFUSED;
}

static int add_digit(struct http1_chunks *chunks, char byte)
{
    if (++chunks->digit_count > SIZE_DIGITS_MAX)
        return REFUSED;
    unsigned digit = (unsigned)(byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10);
    chunks->left_bytes = chunks->left_bytes << 4 | digit;
    return SIZE;
}

static int after_size_line(struct http1_chunks *chunks)
{
    bool is_last = chunks->left_bytes == 0;
    chunks->line_bytes = 0;
    chunks->digit_count = 0;
    return is_last ? LINE_FIRST : DATA;
}

static int step_size_line(struct http1_chunks *chunks, char byte)
{
    if (++chunks->line_bytes > HTTP1_CHUNK_LINE_BYTES_MAX)
        return REFUSED;
    switch (chunks->state) {
    case SIZE_FIRST:
        return http1_byte_is(byte, HTTP1_IN_HEX) ? add_digit(chunks, byte) : REFUSED;
    case SIZE:
        if (http1_byte_is(byte, HTTP1_IN_HEX))
            return add_digit(chunks, byte);
        return byte == ';' ? EXTENSION_FIRST : expect(byte, '\r', SIZE_LF);
    case EXTENSION_FIRST: /* a name must follow the semicolon; white space may stand before it */
        if (byte == ' ' || byte == '\t')
            return EXTENSION_FIRST;
        return http1_byte_is(byte, HTTP1_IN_TOKEN) ? EXTENSION : REFUSED;
    case EXTENSION:
        return http1_byte_is(byte, HTTP1_IN_VALUE) ? EXTENSION : expect(byte, '\r', SIZE_LF);
    default:
        assert(chunks->state == SIZE_LF);
        return byte == '\n' ? after_size_line(chunks) : REFUSED;
    }
}

static int step_trailer(struct http1_chunks *chunks, char byte)
{
    switch (chunks->state) {
    case LINE_FIRST: /* also refuses obs-fold and a line without name */
        return http1_byte_is(byte, HTTP1_IN_TOKEN) ? NAME : expect(byte, '\r', END_LF);
    case NAME:
        return http1_byte_is(byte, HTTP1_IN_TOKEN) ? NAME : expect(byte, ':', VALUE);
    case VALUE:
        return http1_byte_is(byte, HTTP1_IN_VALUE) ? VALUE : expect(byte, '\r', VALUE_LF);
    case VALUE_LF:
        return expect(byte, '\n', LINE_FIRST);
    default:
        assert(chunks->state == END_LF);
        return expect(byte, '\n', END);
    }
}

/* One byte that is not data.  FINISH_NONE: the state has moved on. */
static enum finish step(struct http1_chunks *chunks, char byte, uint64_t body_bytes_max)
{
    if (chunks->state == DATA_CR) {
        chunks->state = expect(byte, '\r', DATA_LF);
    } else if (chunks->state == DATA_LF) {
        chunks->state = expect(byte, '\n', SIZE_FIRST);
    } else if (chunks->state <= SIZE_LF) {
        chunks->state = step_size_line(chunks, byte);
        if (chunks->state == DATA && chunks->left_bytes > body_bytes_max - chunks->body_bytes)
            return FINISH_BODY_TOO_LARGE;
    } else {
        if (++chunks->trailer_bytes > HTTP1_TRAILER_BYTES_MAX)
            return FINISH_HEAD_TOO_LARGE;
        chunks->state = step_trailer(chunks, byte);
    }
    return chunks->state == REFUSED ? FINISH_BAD_REQUEST : FINISH_NONE;
}

static struct slice take_piece(struct http1_chunks *chunks, const char *at, size_t byte_count)
{
    size_t piece_bytes = byte_count < chunks->left_bytes ? byte_count : (size_t)chunks->left_bytes;
    chunks->left_bytes -= piece_bytes;
    chunks->body_bytes += piece_bytes;
    if (chunks->left_bytes == 0)
        chunks->state = DATA_CR;
    return slice_of(at, piece_bytes);
}

enum http1_status http1_chunk(struct http1_chunks *chunks, const char bytes[], size_t byte_count,
                              uint64_t body_bytes_max, size_t *ret_taken, struct slice *ret_body,
                              enum finish *ret_why)
{
    assert(chunks->state >= SIZE_FIRST && chunks->state < REFUSED);
    assert(chunks->body_bytes <= body_bytes_max);
    size_t taken = 0;
    enum finish why = FINISH_NONE;
#ifdef BREAK_SPLIT
    chunks->left_bytes = chunks->state == SIZE ? 0 : chunks->left_bytes;
#endif
    *ret_body = slice_of(bytes, 0);
    while (taken < byte_count && chunks->state != DATA && chunks->state != END && why == FINISH_NONE)
        why = step(chunks, bytes[taken++], body_bytes_max);
    *ret_taken = taken;
    if (why != FINISH_NONE) {
        chunks->state = REFUSED;
        *ret_why = why;
        return HTTP1_REFUSED;
    }
    if (chunks->state == DATA && taken < byte_count) {
        *ret_body = take_piece(chunks, bytes + taken, byte_count - taken);
        *ret_taken += ret_body->byte_count;
    }
    return chunks->state == END ? HTTP1_DONE : HTTP1_MORE;
}
