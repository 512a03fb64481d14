/*
 * fuzz_store_chunk.c - any bytes as an applied set of 65,536 offsets, and any changes of it, against a flag for each.
 *
 * The input is the changes, five bytes each (add or remove, first, last), up to a zero byte; behind it a stored chunk.
 * A change with its highest bit set is a comb: single offsets with gaps between them, enough for a bitmap.
 */
#include <stdlib.h>
#include "chunk.h"
#include "fuzz.h"

enum { STEP_BYTES = 5, STEPS_MAX = 64, TEETH_MAX = CHUNK_RUNS_MAX + 200, TEETH_OUT_MAX = 200 };

static uint8_t model[CHUNK_OFFSETS]; /* 0 or 1 each */

static uint32_t model_set(uint16_t first, uint16_t last, bool is_applied)
{
    uint32_t applied_count = 0, count = last - first + 1u;
    for (uint32_t i = first; i <= last; i++)
        applied_count += model[i];
    memset(model + first, is_applied, count);
    return is_applied ? count - applied_count : applied_count;
}

/* Stretch by stretch, which also shows that they cover everything. */
static void check_against_model(const struct chunk *chunk)
{
    static uint8_t same[CHUNK_OFFSETS];
    uint32_t applied_count = 0, run_count = 0;
    uint16_t last;
    for (uint32_t at = 0; at < CHUNK_OFFSETS; at = last + 1u) {
        bool is_applied = chunk_stretch(chunk, (uint16_t)at, &last);
        assert(last >= at && chunk_contains(chunk, (uint16_t)at) == is_applied &&
               chunk_contains(chunk, last) == is_applied);
        memset(same + at, is_applied, last - at + 1u);
        run_count += is_applied;
        applied_count += is_applied ? last - at + 1 : 0;
    }
    assert(memcmp(same, model, sizeof model) == 0);
    assert(chunk->applied_count == applied_count && chunk->run_count == run_count);
}

static void check_written(const struct chunk *chunk)
{
    static uint8_t bytes[CHUNK_BYTES_MAX];
    static struct chunk again;
    if (chunk->applied_count == 0)
        return;
    size_t byte_count = chunk_write(chunk, bytes);
    assert(byte_count <= CHUNK_BYTES_MAX);
    bool is_read = chunk_read(slice_of((const char *)bytes, byte_count), &again);
    assert(is_read);
    check_against_model(&again);
}

static void take_over(const struct chunk *chunk)
{
    uint16_t last;
    for (uint32_t at = 0; at < CHUNK_OFFSETS; at = last + 1u) {
        bool is_applied = chunk_stretch(chunk, (uint16_t)at, &last);
        assert(last >= at);
        memset(model + at, is_applied, last - at + 1u);
    }
}

static void set(struct chunk *chunk, uint16_t first, uint16_t last, bool is_applied)
{
    uint32_t changed = is_applied ? chunk_add(chunk, first, last) : chunk_remove(chunk, first, last);
    assert(changed == model_set(first, last, is_applied));
}

static void change(struct chunk *chunk, const uint8_t step[STEP_BYTES])
{
    uint16_t first = (uint16_t)(step[1] << 8 | step[2]), last = (uint16_t)(step[3] << 8 | step[4]);
    bool is_applied = step[0] % 2 != 0;
    if (first > last)
        return;
    if (step[0] < 128) {
        set(chunk, first, last, is_applied);
        return;
    }
    /* To take an offset out of runs is to write them anew: rare, and not to be done thousands of times in a row. */
    uint32_t stride = 2 + (step[0] >> 1 & 7u), tooth_count = 0,
             teeth_max = is_applied ? TEETH_MAX : TEETH_OUT_MAX;
    for (uint32_t at = first; at <= last && tooth_count < teeth_max; at += stride, tooth_count++)
        set(chunk, (uint16_t)at, (uint16_t)at, is_applied);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    static struct chunk chunk;
    size_t used = 0, steps = 0;
    while (used + STEP_BYTES <= input_bytes && input[used] != 0 && steps < STEPS_MAX) {
        used += STEP_BYTES;
        steps++;
    }
    size_t stored = used < input_bytes ? used + 1 : used;
    struct slice bytes = slice_of((const char *)input + stored, input_bytes - stored);
    if (!chunk_read(bytes, &chunk))
        assert(chunk.applied_count == 0 && chunk.run_count == 0);
    take_over(&chunk);
    check_against_model(&chunk);
    check_written(&chunk);
    for (size_t at = 0; at < used; at += STEP_BYTES)
        change(&chunk, input + at);
    check_against_model(&chunk);
    check_written(&chunk);
    return 0;
}
