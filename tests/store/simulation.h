/*
 * simulation.h - F-08: the claim machine under any events and virtual time, against a naive model.
 *
 * The model knows every record by itself; verdicts and states must agree after each step.  What happens is decided by
 * chances from outside: a seed's, or a fuzzer's bytes.  What disagrees fails cmocka's assertion.
 */
#ifndef SINKONCE_SIMULATION_H
#define SINKONCE_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>

struct chances {
    unsigned (*pick)(void *context, unsigned below); /* 0 to BELOW - 1 */
    bool (*is_spent)(void *context);                 /* the run ends before its steps are done */
    void *context;
};

/* What the run did: one that does nothing shows nothing. */
struct simulation_counts {
    uint64_t answered_count, waited_count, behind_count, failed_count, replayed_count, forgotten_count,
        memory_failed_count, crowded_count, left_count, batch_count;
};

/* From an empty ledger on.  Not from two threads. */
void simulation_run(const struct chances *chances, unsigned step_count, struct simulation_counts *ret_counts);

#endif
