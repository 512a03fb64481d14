/*
 * loops.c - all event loops of the program together.
 */
#include "loops.h"

bool loops_start(struct loops *loops, struct program *program)
{
    uint64_t wanted = program->settings->workers, connections = program->settings->target_connections;
    if (wanted > connections) /* one without a connection to the target would be of no use */
        wanted = connections;
    for (size_t i = 0; i < wanted && i < LOOPS_MAX; i++) {
        uint64_t part = connections / wanted + (i < connections % wanted);
        loops->at[i] = loop_new(program, (unsigned)i, (unsigned)part);
        if (loops->at[i] == NULL)
            return false;
        loops->count++;
    }
    return true;
}

void loops_free(struct loops *loops)
{
    for (size_t i = 0; i < loops->count; i++)
        loop_free(loops->at[i]);
    loops->count = 0;
}

struct loop *loops_least_loaded(const struct loops *loops)
{
    struct loop *best = loops->at[0];
    for (size_t i = 1; i < loops->count; i++) {
        if (atomic_load(&loops->at[i]->connections) < atomic_load(&best->connections))
            best = loops->at[i];
    }
    return best;
}

void loops_drain(const struct loops *loops)
{
    for (size_t i = 0; i < loops->count; i++)
        loop_drain(loops->at[i]);
}

bool loops_resume(const struct loops *loops)
{
    for (size_t i = 0; i < loops->count; i++)
        if (!loop_resume(loops->at[i]))
            return false;
    return true;
}
