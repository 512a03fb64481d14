/*
 * coding.c - see coding.h.
 *
 * Bodies are opened piece by piece into a buffer that doubles up to the limit, so that a few bytes which promise
 * gigabytes cost no more than the limit.  They are packed at the fastest levels: the next hop is a local network.
 */
#include "coding.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

enum {
    GZIP_BITS = 15 + 16, /* zlib's way to ask for the format of RFC 1952 */
    ZLIB_BITS = 15,
    RAW_BITS = -15,
    PACK_LEVEL = 1,
    ZSTD_WINDOW_LOG_MAX = 23, /* RFC 8878 as used in HTTP: 8 MiB, whatever a frame asks for */
};

enum coding coding_of(struct slice value)
{
    static const struct {
        const char *name;
        enum coding coding;
    } rows[] = { { "", CODING_IDENTITY },   { "identity", CODING_IDENTITY }, { "gzip", CODING_GZIP },
                 { "x-gzip", CODING_GZIP }, { "deflate", CODING_DEFLATE },   { "zstd", CODING_ZSTD } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_equals_caseless(value, slice_of_text(rows[i].name)))
            return rows[i].coding;
    return CODING_OTHER;
}

/* ---- the buffer that is written to --------------------------------------------------------------------------- */

struct output {
    char *bytes; /* owned */
    size_t byte_count, room, bytes_max;
};

/* Room for at least one more byte. */
static enum coding_status output_grow(struct output *output)
{
    if (output->byte_count < output->room)
        return CODING_OK;
    if (output->room == output->bytes_max)
        return CODING_TOO_LARGE;
    size_t wanted = output->room > output->bytes_max / 2 ? output->bytes_max : output->room * 2;
    char *grown = realloc(output->bytes, wanted);
    if (grown == NULL)
        return CODING_NO_MEMORY;
    output->bytes = grown;
    output->room = wanted;
    return CODING_OK;
}

/* FIRST is the guess for the whole. */
static enum coding_status output_init(struct output *output, size_t first, size_t bytes_max)
{
    size_t room = first < 64 ? 64 : first;
    *output = (struct output){ .room = room > bytes_max ? bytes_max : room, .bytes_max = bytes_max };
    output->bytes = malloc(output->room + 1); /* of 0 bytes it could be NULL */
    return output->bytes == NULL ? CODING_NO_MEMORY : CODING_OK;
}

static enum coding_status output_hand_over(struct output *output, enum coding_status status, char **ret,
                                           size_t *ret_bytes)
{
    if (status != CODING_OK) {
        free(output->bytes);
        return status;
    }
    *ret = output->bytes;
    *ret_bytes = output->byte_count;
    return CODING_OK;
}

/* ---- zlib ---------------------------------------------------------------------------------------------------- */

/* zlib counts in unsigned int. */
static unsigned piece_of(size_t byte_count)
{
    return byte_count > UINT_MAX ? UINT_MAX : (unsigned)byte_count;
}

/* zlib takes no const. */
static void input_set(z_stream *stream, const char *at, size_t byte_count)
{
    union {
        const char *in;
        Bytef *out;
    } pointer = { .in = at };
    stream->next_in = pointer.out;
    stream->avail_in = piece_of(byte_count);
}

/* One call of inflate() or deflate(), with what is left of INPUT, into OUTPUT. */
static int zlib_step(z_stream *stream, int (*step)(z_stream *stream, int flush), int flush,
                     struct slice *input, struct output *output)
{
    unsigned room = piece_of(output->room - output->byte_count);
    input_set(stream, input->at, input->byte_count);
    unsigned offered = stream->avail_in;
    stream->next_out = (Bytef *)output->bytes + output->byte_count;
    stream->avail_out = room;
    int result = step(stream, flush);
    *input =
        slice_of(input->at + (offered - stream->avail_in), input->byte_count - (offered - stream->avail_in));
    output->byte_count += room - stream->avail_out;
    return result;
}

/* To the end of the stream, or of the last of several.  A full output is not yet too small: the end may be all that is
 * missing. */
static enum coding_status inflate_all(z_stream *stream, struct slice input, bool may_follow,
                                      struct output *output)
{
    for (;;) {
        enum coding_status status = output_grow(output);
        bool is_full = status == CODING_TOO_LARGE;
        if (status == CODING_NO_MEMORY)
            return status;
        size_t before_in = input.byte_count, before_out = output->byte_count;
        int result = zlib_step(stream, inflate, Z_NO_FLUSH, &input, output);
        if (result == Z_MEM_ERROR)
            return CODING_NO_MEMORY;
        if (result == Z_STREAM_END && input.byte_count == 0)
            return CODING_OK;
        /* RFC 1952, 2.2: members simply follow each other. */
        if (result == Z_STREAM_END && may_follow) {
            if (inflateReset(stream) != Z_OK)
                return CODING_DAMAGED;
            continue;
        }
        bool is_stuck = before_in == input.byte_count && before_out == output->byte_count;
        if (is_stuck && is_full)
            return CODING_TOO_LARGE;
        if ((result != Z_OK && result != Z_BUF_ERROR) || is_stuck)
            return CODING_DAMAGED;
    }
}

static enum coding_status zlib_open(int bits, struct slice bytes, size_t bytes_max, char **ret,
                                    size_t *ret_bytes)
{
    z_stream stream = { .zalloc = Z_NULL };
    struct output output;
    size_t guess = bytes.byte_count > SIZE_MAX / 4 ? bytes_max : bytes.byte_count * 4;
    if (inflateInit2(&stream, bits) != Z_OK)
        return CODING_NO_MEMORY;
    enum coding_status status = output_init(&output, guess, bytes_max);
    if (status == CODING_OK)
        status = inflate_all(&stream, bytes, bits == GZIP_BITS, &output);
    inflateEnd(&stream);
    return output_hand_over(&output, status, ret, ret_bytes);
}

static enum coding_status deflate_all(z_stream *stream, const struct slice parts[], size_t part_count,
                                      struct output *output)
{
    for (size_t i = 0; i <= part_count; i++) {
        bool is_last = i == part_count;
        struct slice input = is_last ? slice_of("", 0) : parts[i];
        int result = Z_OK;
        while (input.byte_count > 0 || (is_last && result != Z_STREAM_END)) {
            if (output_grow(output) != CODING_OK)
                return CODING_NO_MEMORY;
            result = zlib_step(stream, deflate, is_last ? Z_FINISH : Z_NO_FLUSH, &input, output);
            if (result == Z_STREAM_ERROR)
                return CODING_DAMAGED;
        }
    }
    return CODING_OK;
}

static enum coding_status zlib_pack(int bits, const struct slice parts[], size_t part_count, size_t guess,
                                    char **ret, size_t *ret_bytes)
{
    enum { MEMORY_LEVEL = 8 };
    z_stream stream = { .zalloc = Z_NULL };
    struct output output;
    if (deflateInit2(&stream, PACK_LEVEL, Z_DEFLATED, bits, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return CODING_NO_MEMORY;
    enum coding_status status = output_init(&output, guess, SIZE_MAX / 2);
    if (status == CODING_OK)
        status = deflate_all(&stream, parts, part_count, &output);
    deflateEnd(&stream);
    return output_hand_over(&output, status, ret, ret_bytes);
}

/* ---- zstd ---------------------------------------------------------------------------------------------------- */

static enum coding_status zstd_open_all(ZSTD_DCtx *context, struct slice bytes, struct output *output)
{
    ZSTD_inBuffer in = { bytes.byte_count > 0 ? bytes.at : "", bytes.byte_count, 0 };
    for (;;) {
        enum coding_status status = output_grow(output);
        if (status == CODING_NO_MEMORY)
            return status;
        ZSTD_outBuffer out = { output->bytes, output->room, output->byte_count };
        size_t before_in = in.pos;
        size_t result = ZSTD_decompressStream(context, &out, &in);
        if (ZSTD_isError(result))
            return CODING_DAMAGED;
        bool is_stuck = in.pos == before_in && out.pos == output->byte_count;
        output->byte_count = out.pos;
        if (result == 0 && in.pos == in.size)
            return CODING_OK;
        if (is_stuck)
            return status == CODING_TOO_LARGE ? CODING_TOO_LARGE : CODING_DAMAGED;
    }
}

static enum coding_status zstd_open(struct slice bytes, size_t bytes_max, char **ret, size_t *ret_bytes)
{
    struct output output;
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL)
        return CODING_NO_MEMORY;
    size_t guess = bytes.byte_count > SIZE_MAX / 4 ? bytes_max : bytes.byte_count * 4;
    enum coding_status status = output_init(&output, guess, bytes_max);
    if (status == CODING_OK &&
        ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)))
        status = CODING_NO_MEMORY;
    if (status == CODING_OK)
        status = zstd_open_all(context, bytes, &output);
    ZSTD_freeDCtx(context);
    return output_hand_over(&output, status, ret, ret_bytes);
}

static enum coding_status zstd_pack_all(ZSTD_CCtx *context, const struct slice parts[], size_t part_count,
                                        struct output *output)
{
    for (size_t i = 0; i <= part_count; i++) {
        bool is_last = i == part_count;
        ZSTD_inBuffer in = { is_last ? "" : parts[i].at, is_last ? 0 : parts[i].byte_count, 0 };
        size_t result = 1;
        while (in.pos < in.size || (is_last && result != 0)) {
            if (output_grow(output) != CODING_OK)
                return CODING_NO_MEMORY;
            ZSTD_outBuffer out = { output->bytes, output->room, output->byte_count };
            result = ZSTD_compressStream2(context, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
            if (ZSTD_isError(result))
                return CODING_NO_MEMORY;
            output->byte_count = out.pos;
        }
    }
    return CODING_OK;
}

static enum coding_status zstd_pack(const struct slice parts[], size_t part_count, size_t guess, char **ret,
                                    size_t *ret_bytes)
{
    struct output output;
    ZSTD_CCtx *context = ZSTD_createCCtx();
    if (context == NULL)
        return CODING_NO_MEMORY;
    enum coding_status status = output_init(&output, guess, SIZE_MAX / 2);
    if (status == CODING_OK &&
        ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, PACK_LEVEL)))
        status = CODING_NO_MEMORY;
    if (status == CODING_OK)
        status = zstd_pack_all(context, parts, part_count, &output);
    ZSTD_freeCCtx(context);
    return output_hand_over(&output, status, ret, ret_bytes);
}

/* ---- by coding ----------------------------------------------------------------------------------------------- */

/* Senders disagree about "deflate": most mean zlib's format (RFC 9110, 8.4.1.2), some the bare one. */
static enum coding_status deflate_open(enum coding *coding, struct slice bytes, size_t bytes_max, char **ret,
                                       size_t *ret_bytes)
{
    enum coding_status status = CODING_DAMAGED;
    if (*coding == CODING_DEFLATE)
        status = zlib_open(ZLIB_BITS, bytes, bytes_max, ret, ret_bytes);
    if (status != CODING_DAMAGED)
        return status;
    status = zlib_open(RAW_BITS, bytes, bytes_max, ret, ret_bytes);
    if (status == CODING_OK)
        *coding = CODING_DEFLATE_RAW;
    return status;
}

enum coding_status coding_open(enum coding *coding, struct slice bytes, size_t bytes_max, char **ret,
                               size_t *ret_bytes)
{
    switch (*coding) {
    case CODING_GZIP:
        return zlib_open(GZIP_BITS, bytes, bytes_max, ret, ret_bytes);
    case CODING_DEFLATE:
    case CODING_DEFLATE_RAW:
        return deflate_open(coding, bytes, bytes_max, ret, ret_bytes);
    case CODING_ZSTD:
        return zstd_open(bytes, bytes_max, ret, ret_bytes);
    case CODING_IDENTITY:
    case CODING_OTHER:
        break;
    }
    return CODING_DAMAGED;
}

enum coding_status coding_pack(enum coding coding, const struct slice parts[], size_t part_count, char **ret,
                               size_t *ret_bytes)
{
    size_t guess = 128;
    for (size_t i = 0; i < part_count; i++)
        guess += parts[i].byte_count / 4;
    switch (coding) {
    case CODING_GZIP:
        return zlib_pack(GZIP_BITS, parts, part_count, guess, ret, ret_bytes);
    case CODING_DEFLATE:
        return zlib_pack(ZLIB_BITS, parts, part_count, guess, ret, ret_bytes);
    case CODING_DEFLATE_RAW:
        return zlib_pack(RAW_BITS, parts, part_count, guess, ret, ret_bytes);
    case CODING_ZSTD:
        return zstd_pack(parts, part_count, guess, ret, ret_bytes);
    case CODING_IDENTITY:
    case CODING_OTHER:
        break;
    }
    return CODING_DAMAGED;
}
