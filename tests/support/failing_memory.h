/*
 * failing_memory.h - the Nth allocation fails: for tests that are linked with the library failing_memory.
 *
 * Every call of malloc(), calloc(), realloc(), strdup() and strndup() from an object of the program counts, not those
 * inside shared libraries.  With failing_calls.h other calls count too, in the same row.  Any thread may make them.
 */
#ifndef SINKONCE_TESTS_FAILING_MEMORY_H
#define SINKONCE_TESTS_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on: the COUNTth allocation fails, and no other. */
void memory_fail_at(size_t count);
/* As well as the one that comes AFTER so many more. */
void memory_fail_twice(size_t count, size_t after);
bool memory_has_failed(void);
/* No more failures; was there one? */
bool memory_recover(void);

/* From now on nothing fails, and of each call a number is written down that is the same for all that are made from one
 * place by one way.  ROOM: how many have room; NULL: no longer.  Returns how many were made until now. */
size_t memory_note(uint64_t places[], size_t room);

/* For the functions that stand before others: one more call; true: it is to fail. */
bool memory_refuses(void);

#endif
