/*
 * test_machine.c - F-08: the claim machine agrees with a naive model, seed by seed; the simulation is simulation.c.
 *
 * The number of seeds comes from the environment: SINKONCE_SEEDS (and SINKONCE_SEED, the first).
 */
#include "simulation.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

enum { STEPS = 400 };

static unsigned seed_pick(void *context, unsigned below)
{
    unsigned *seed = context;
    return (unsigned)rand_r(seed) % below;
}

static bool seed_is_spent(void *context)
{
    (void)context;
    return false;
}

static void add(struct simulation_counts *sum, const struct simulation_counts *counts)
{
    sum->answered_count += counts->answered_count;
    sum->waited_count += counts->waited_count;
    sum->behind_count += counts->behind_count;
    sum->failed_count += counts->failed_count;
    sum->replayed_count += counts->replayed_count;
    sum->forgotten_count += counts->forgotten_count;
    sum->memory_failed_count += counts->memory_failed_count;
    sum->crowded_count += counts->crowded_count;
    sum->left_count += counts->left_count;
    sum->batch_count += counts->batch_count;
}

static void test_F08_verdicts_and_states_are_those_of_a_naive_model(void **state)
{
    const char *seeds = getenv("SINKONCE_SEEDS"), *first = getenv("SINKONCE_SEED");
    unsigned seed_count = seeds == NULL ? 60 : (unsigned)strtoul(seeds, NULL, 10);
    unsigned first_seed = first == NULL ? 1 : (unsigned)strtoul(first, NULL, 10);
    struct simulation_counts sum = { 0 }, counts;
    (void)state;
    for (unsigned i = 0; i < seed_count; i++) {
        unsigned seed = first_seed + i;
        const struct chances chances = { seed_pick, seed_is_spent, &seed };
        print_message("seed %u\n", seed);
        simulation_run(&chances, STEPS, &counts);
        add(&sum, &counts);
    }
    assert_true(sum.answered_count > seed_count * STEPS / 4);
    assert_true(sum.waited_count > seed_count);
    assert_true(sum.behind_count > 0);
    assert_true(sum.failed_count > seed_count);
    assert_true(sum.replayed_count > seed_count);
    assert_true(sum.forgotten_count > seed_count);
    assert_true(sum.memory_failed_count > seed_count);
    assert_true(sum.crowded_count > seed_count);
    assert_true(sum.left_count > 0);
    print_message("%llu batches, each compared record by record with the model\n",
                  (unsigned long long)sum.batch_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F08_verdicts_and_states_are_those_of_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
