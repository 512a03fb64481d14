/*
 * clock.h - the two clocks of the doers.  Deciders get times as arguments.
 */
#ifndef SINKONCE_CLOCK_H
#define SINKONCE_CLOCK_H

#include <stdint.h>
#include <time.h>

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, MS_PER_S = 1000 };

static inline uint64_t clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * MS_PER_S + (uint64_t)now.tv_nsec / NS_PER_MS;
}

#endif
