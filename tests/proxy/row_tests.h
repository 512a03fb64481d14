/*
 * row_tests.h - a test of its own for each row of a table.
 */
#ifndef SINKONCE_ROW_TESTS_H
#define SINKONCE_ROW_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

/* ROWS begin with their name each.  TEST finds its own row in *STATE; STATES is room for a copy of all. */
static inline void rows_become_tests(struct CMUnitTest tests[], void *states, const void *rows, size_t count,
                                     size_t row_bytes, CMUnitTestFunction test)
{
    memcpy(states, rows, count * row_bytes);
    for (size_t i = 0; i < count; i++) {
        char *state = (char *)states + i * row_bytes;
        tests[i] = (struct CMUnitTest){ .test_func = test, .initial_state = state };
        memcpy(&tests[i].name, state, sizeof tests[i].name);
    }
}

#define ROW_COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define ROW_TESTS(tests, rows, test)                                                                         \
    static char tests##_states[sizeof(rows)] __attribute__((aligned(16)));                                   \
    struct CMUnitTest tests[ROW_COUNT(rows)];                                                                \
    rows_become_tests(tests, tests##_states, rows, ROW_COUNT(rows), sizeof(rows)[0], test)

#endif
