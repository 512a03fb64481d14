/*
 * failpoint.h - named places where a test may kill, delay or fail the program.
 *
 * Compiled in with -DSINKONCE_FAILPOINTS=ON only; otherwise each expands to nothing and no name reaches the binary.
 * The environment variable FAILPOINT holds name:action pairs with commas between them; an action is abort (SIGKILL,
 * so that nothing is flushed on the way out), sleep=MILLISECONDS, or error.
 */
#ifndef SINKONCE_FAILPOINT_H
#define SINKONCE_FAILPOINT_H

#ifdef SINKONCE_FAILPOINTS
#include <stdbool.h>
bool failpoint_hit(const char *name); /* [any] true: the action is error */
#define FAILPOINT(name)       ((void)failpoint_hit(name))
#define FAILPOINT_FAILS(name) failpoint_hit(name)
#else
#define FAILPOINT(name)       ((void)0)
#define FAILPOINT_FAILS(name) false
#endif

#endif
