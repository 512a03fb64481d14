/*
 * fuzz_http1_chunk.c - chunked bodies: the same body and the same verdict however the bytes were cut.
 */
#include <stdlib.h>
#include "fuzz.h"
#include "http1.h"

enum { BODY_BYTES_MAX = 1000 };

struct run {
    struct http1_chunks chunks;
    char body[BODY_BYTES_MAX];
    size_t body_bytes, taken;
    enum http1_status status;
    enum finish why;
};

static void feed(struct run *run, const char *bytes, size_t byte_count)
{
    size_t taken = 0, taken_now = 1;
    while (run->status == HTTP1_MORE && taken_now > 0) {
        struct slice body;
        run->status = http1_chunk(&run->chunks, bytes + taken, byte_count - taken, BODY_BYTES_MAX, &taken_now,
                                  &body, &run->why);
        assert(taken_now <= byte_count - taken);
        assert_inside(body, bytes + taken, taken_now);
        assert(body.byte_count <= sizeof run->body - run->body_bytes);
        memcpy(run->body + run->body_bytes, body.at, body.byte_count);
        run->body_bytes += body.byte_count;
        taken += taken_now;
    }
    run->taken += taken;
    assert(run->status != HTTP1_MORE || taken == byte_count);
}

static void check_same(const struct run *a, const struct run *b)
{
    assert(a->status == b->status && a->why == b->why && a->taken == b->taken);
    assert(a->body_bytes == b->body_bytes && memcmp(a->body, b->body, a->body_bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    const char *bytes = (const char *)input;
    struct run whole = { .status = HTTP1_MORE }, byte_by_byte = { .status = HTTP1_MORE };
    feed(&whole, bytes, input_bytes);
    assert(whole.status == HTTP1_REFUSED || whole.chunks.body_bytes == whole.body_bytes);
    for (size_t i = 0; i < input_bytes; i++)
        feed(&byte_by_byte, bytes + i, 1);
    check_same(&whole, &byte_by_byte);
    for (size_t cut = 0; cut < input_bytes; cut += cut_step(input_bytes)) {
        struct run halves = { .status = HTTP1_MORE };
        feed(&halves, bytes, cut);
        feed(&halves, bytes + cut, input_bytes - cut);
        check_same(&whole, &halves);
    }
    return 0;
}
