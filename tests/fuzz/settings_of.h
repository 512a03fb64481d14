/*
 * settings_of.h - settings that a target chose, read as the program reads them.
 */
#ifndef SINKONCE_FUZZ_SETTINGS_OF_H
#define SINKONCE_FUZZ_SETTINGS_OF_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "settings.h"

enum { FUZZ_VARIABLES_MAX = 16 };

/* COMMON, then OWN up to its first NULL. */
static inline void settings_of(const char *const common[], size_t common_count, const char *const own[],
                               size_t own_count_max, struct settings *ret)
{
    char *environment[FUZZ_VARIABLES_MAX + 1] = { NULL };
    size_t count = 0;
    struct settings_mistakes mistakes;
    assert(common_count + own_count_max <= FUZZ_VARIABLES_MAX);
    for (size_t i = 0; i < common_count; i++)
        environment[count++] = strdup(common[i]);
    for (size_t i = 0; i < own_count_max && own[i] != NULL; i++)
        environment[count++] = strdup(own[i]);
    bool is_read = settings_read(environment, ret, &mistakes);
    assert(is_read);
    settings_mistakes_deinit(&mistakes);
    for (size_t i = 0; i < count; i++)
        free(environment[i]);
}

#endif
