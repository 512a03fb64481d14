/*
 * fuzz_store_claims.c - F-08 by any bytes: each is the next chance of the simulation, so that what reaches new code is
 * kept and gone on from, where a seed would have to hit it from the start.
 */
#include <stdlib.h>
#include "fuzz.h"
#include "simulation.h"

enum { STEPS_MAX = 400 };

struct bytes {
    const uint8_t *at, *end;
};

/* As many bytes as BELOW needs; 0 when none are left. */
static unsigned bytes_pick(void *context, unsigned below)
{
    struct bytes *bytes = context;
    unsigned number = 0;
    for (unsigned limit = 1; limit < below && bytes->at < bytes->end; limit *= 256)
        number = number * 256 + *bytes->at++;
    return number % below;
}

static bool bytes_are_spent(void *context)
{
    const struct bytes *bytes = context;
    return bytes->at == bytes->end;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct bytes bytes = { input, input + input_bytes };
    const struct chances chances = { bytes_pick, bytes_are_spent, &bytes };
    struct simulation_counts counts;
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* outside its tests, cmocka would end the process without a word */
    simulation_run(&chances, STEPS_MAX, &counts);
    return 0;
}
