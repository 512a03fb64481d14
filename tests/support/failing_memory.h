/*
 * failing_memory.h - the Nth allocation fails: for tests that are linked with the library failing_memory.
 *
 * Every call of malloc(), calloc(), realloc(), strdup() and strndup() from an object of the program counts, not those
 * inside shared libraries.
 */
#ifndef SINKONCE_TESTS_FAILING_MEMORY_H
#define SINKONCE_TESTS_FAILING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* From now on: the COUNTth allocation fails, and no other. */
void memory_fail_at(size_t count);
bool memory_has_failed(void);
/* No more failures; was there one? */
bool memory_recover(void);

#endif
