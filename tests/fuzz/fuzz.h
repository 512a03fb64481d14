/*
 * fuzz.h - what every fuzz target has: the entry that libFuzzer and run_corpus.c call, and checks on slices.
 *
 * A broken promise is an assert: both drivers report it.
 */
#ifndef SINKONCE_FUZZ_H
#define SINKONCE_FUZZ_H

#include <assert.h>
#include <stdint.h>
#include "slice.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes);

static inline void assert_inside(struct slice part, const char *bytes, size_t byte_count)
{
    assert(part.at >= bytes && part.at <= bytes + byte_count);
    assert(part.byte_count <= (size_t)(bytes + byte_count - part.at));
}

/* No byte that could end a line or a string. */
static inline void assert_one_line(struct slice text)
{
    for (size_t i = 0; i < text.byte_count; i++)
        assert(text.at[i] != '\r' && text.at[i] != '\n' && text.at[i] != '\0');
}

/* Every byte for short inputs, about a hundred places in long ones: the work stays linear. */
static inline size_t cut_step(size_t input_bytes)
{
    return input_bytes / 128 + 1;
}

#endif
