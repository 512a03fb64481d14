/*
 * failpoint.h - named points at which a test build may be killed, slowed down or made to fail.
 *
 * Compiled in with SINKONCE_FAILPOINTS only; the environment's FAILPOINT=name:abort|sleep=MS|error,... chooses.
 */
#ifndef SINKONCE_FAILPOINT_H
#define SINKONCE_FAILPOINT_H

#include <stdbool.h>

#ifdef SINKONCE_FAILPOINTS
bool failpoint_hit(const char *name); /* [any] true: the point is to behave as if it had failed */
#define FAILPOINT(name) ((void)failpoint_hit(name))
#define FAILPOINT_FAILS(name) failpoint_hit(name)
#else
#define FAILPOINT(name) ((void)0)
#define FAILPOINT_FAILS(name) false
#endif

#endif
