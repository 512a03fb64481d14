/*
 * fuzz_coding.c - any bytes in any content coding: opened to the limit and no further, the same at every limit that is
 * large enough, and again after packing.
 *
 * The first byte chooses the coding, the second the limit.
 */
#include <stdlib.h>
#include "coding.h"
#include "fuzz.h"

enum { HEADER_BYTES = 2, OPENED_BYTES_MAX = 1 << 16 };

static const enum coding codings[] = { CODING_GZIP, CODING_DEFLATE, CODING_DEFLATE_RAW, CODING_ZSTD };

struct opened {
    enum coding coding;
    enum coding_status status;
    char *bytes; /* owned */
    size_t byte_count;
};

static struct opened open_packed(enum coding coding, struct slice packed, size_t bytes_max)
{
    struct opened opened = { .coding = coding };
    opened.status = coding_open(&opened.coding, packed, bytes_max, &opened.bytes, &opened.byte_count);
    assert(opened.status != CODING_NO_MEMORY);
    assert(opened.status != CODING_OK || opened.byte_count <= bytes_max);
    return opened;
}

static void check_same(const struct opened *a, const struct opened *b)
{
    assert(b->status == CODING_OK && a->byte_count == b->byte_count);
    assert(memcmp(a->bytes, b->bytes, a->byte_count) == 0);
}

/* What fits into a limit fits into exactly as much as it needs, and into no less. */
static void check_limits(enum coding coding, struct slice packed, const struct opened *whole)
{
    struct opened again = open_packed(coding, packed, whole->byte_count);
    check_same(whole, &again);
    free(again.bytes);
    if (whole->byte_count == 0)
        return;
    struct opened less = open_packed(coding, packed, whole->byte_count - 1);
    assert(less.status != CODING_OK);
    assert(coding == CODING_DEFLATE || less.status == CODING_TOO_LARGE);
}

static void check_packed(const struct opened *whole)
{
    size_t middle = whole->byte_count / 3;
    const struct slice parts[] = { slice_of(whole->bytes, middle),
                                   slice_of(whole->bytes + middle, whole->byte_count - middle) };
    char *packed;
    size_t packed_bytes;
    enum coding_status status = coding_pack(whole->coding, parts, 2, &packed, &packed_bytes);
    assert(status == CODING_OK);
    struct opened again = open_packed(whole->coding, slice_of(packed, packed_bytes), whole->byte_count);
    check_same(whole, &again);
    free(again.bytes);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    if (input_bytes < HEADER_BYTES)
        return 0;
    enum coding coding = codings[input[0] % (sizeof codings / sizeof codings[0])];
    struct slice packed = slice_of((const char *)input + HEADER_BYTES, input_bytes - HEADER_BYTES);
    size_t bytes_max = input[1] < 128 ? OPENED_BYTES_MAX : input[1] - 127u;
    struct opened whole = open_packed(coding, packed, bytes_max);
    if (whole.status != CODING_OK)
        return 0;
    check_limits(coding, packed, &whole);
    check_packed(&whole);
    free(whole.bytes);
    return 0;
}
