/*
 * settings_reading.h - reads settings from a short list of variables, for the tests of settings*.c.
 */
#ifndef SINKONCE_TESTS_SETTINGS_READING_H
#define SINKONCE_TESTS_SETTINGS_READING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "settings.h"

/* A file with BYTES; its path goes into PATH. */
static inline void file_with(const char *bytes, size_t byte_count, char path[64])
{
    strcpy(path, "/tmp/sinkonce-test-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, byte_count), byte_count);
    close(fd);
}

struct reading_result {
    bool is_good;
    struct settings settings;
    struct settings_mistakes mistakes;
};

#define TARGET "SINKONCE_TARGET=http://target:8080"

/* VARIABLES ends with NULL; borrowed for the call only. */
static inline void read_from(struct reading_result *result, const char *const variables[])
{
    char *environment[32] = { 0 };
    for (size_t i = 0; variables[i] != NULL; i++) {
        assert_true(i < 31);
        environment[i] = strdup(variables[i]);
    }
    result->is_good = settings_read(environment, &result->settings, &result->mistakes);
    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
}
#define READ(result, ...) read_from(result, (const char *const[]){ __VA_ARGS__, NULL })

static inline void release(struct reading_result *result)
{
    settings_mistakes_deinit(&result->mistakes);
    settings_deinit(&result->settings);
}

/* How many lines hold WORDS? */
static inline size_t lines_with(char *const lines[], size_t line_count, const char *words)
{
    size_t count = 0;
    for (size_t i = 0; i < line_count; i++)
        count += strstr(lines[i], words) != NULL;
    return count;
}

static inline void print_lines(const struct settings_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->line_count; i++)
        print_error("mistake: %s\n", mistakes->lines[i]);
    for (size_t i = 0; i < mistakes->note_count; i++)
        print_error("note: %s\n", mistakes->notes[i]);
}

#define assert_good(result)                                                                                  \
    do {                                                                                                     \
        if (!(result)->is_good)                                                                              \
            print_lines(&(result)->mistakes);                                                                \
        assert_true((result)->is_good);                                                                      \
        assert_int_equal((result)->mistakes.line_count, 0);                                                  \
    } while (0)

/* Exactly one line, and it is LINE. */
#define assert_one_mistake(result, line)                                                                     \
    do {                                                                                                     \
        assert_false((result)->is_good);                                                                     \
        if ((result)->mistakes.line_count != 1)                                                              \
            print_lines(&(result)->mistakes);                                                                \
        assert_int_equal((result)->mistakes.line_count, 1);                                                  \
        assert_string_equal((result)->mistakes.lines[0], line);                                              \
    } while (0)

#endif
