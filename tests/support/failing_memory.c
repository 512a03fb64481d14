/*
 * failing_memory.c - the Nth allocation fails.  The linker's --wrap leads every call here first.
 */
#include "failing_memory.h"

#include <string.h>

void *__real_malloc(size_t byte_count);
void *__real_calloc(size_t count, size_t byte_count);
void *__real_realloc(void *bytes, size_t byte_count);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t byte_count);
void *__wrap_malloc(size_t byte_count);
void *__wrap_calloc(size_t count, size_t byte_count);
void *__wrap_realloc(void *bytes, size_t byte_count);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t byte_count);

static size_t left; /* 0: none fails */
static bool has_failed;

void memory_fail_at(size_t count)
{
    left = count;
    has_failed = false;
}

bool memory_has_failed(void)
{
    return has_failed;
}

bool memory_recover(void)
{
    left = 0;
    return has_failed;
}

static bool is_refused(void)
{
    if (left == 0 || --left > 0)
        return false;
    has_failed = true;
    return true;
}

void *__wrap_malloc(size_t byte_count)
{
    return is_refused() ? NULL : __real_malloc(byte_count);
}

void *__wrap_calloc(size_t count, size_t byte_count)
{
    return is_refused() ? NULL : __real_calloc(count, byte_count);
}

void *__wrap_realloc(void *bytes, size_t byte_count)
{
    return is_refused() ? NULL : __real_realloc(bytes, byte_count);
}

char *__wrap_strdup(const char *text)
{
    return is_refused() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t byte_count)
{
    return is_refused() ? NULL : __real_strndup(text, byte_count);
}
