/*
 * failing_memory.c - the Nth allocation fails.  The linker's --wrap leads every call here first.
 */
#include "failing_memory.h"

#include <execinfo.h>
#include <stdatomic.h>
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

enum { FRAMES_MAX = 12 };

static atomic_size_t seen, first, second; /* first, second: which of those seen fail; 0: none */
static atomic_bool has_failed;
static _Atomic(uint64_t *) noted; /* borrowed; NULL: nothing is noted */
static size_t noted_room;

void memory_fail_twice(size_t count, size_t after)
{
    atomic_store(&seen, 0);
    atomic_store(&has_failed, false);
    atomic_store(&first, count);
    atomic_store(&second, after > 0 ? count + after : 0);
}

void memory_fail_at(size_t count)
{
    memory_fail_twice(count, 0);
}

bool memory_has_failed(void)
{
    return atomic_load(&has_failed);
}

bool memory_recover(void)
{
    atomic_store(&first, 0);
    atomic_store(&second, 0);
    return memory_has_failed();
}

size_t memory_note(uint64_t places[], size_t room)
{
    size_t count = atomic_load(&seen);
    memory_fail_at(0);
    noted_room = room;
    atomic_store(&noted, places);
    return count;
}

static void note(size_t number)
{
    void *frames[FRAMES_MAX];
    uint64_t *places = atomic_load(&noted);
    if (places == NULL || number > noted_room)
        return;
    int count = backtrace(frames, FRAMES_MAX);
    uint64_t place = 14695981039346656037u; /* FNV-1a */
    for (int i = 0; i < count; i++)
        place = (place ^ (uintptr_t)frames[i]) * 1099511628211u;
    places[number - 1] = place;
}

bool memory_refuses(void)
{
    size_t number = atomic_fetch_add(&seen, 1) + 1;
    note(number);
    if (number != atomic_load(&first) && number != atomic_load(&second))
        return false;
    atomic_store(&has_failed, true);
    return true;
}

void *__wrap_malloc(size_t byte_count)
{
    return memory_refuses() ? NULL : __real_malloc(byte_count);
}

void *__wrap_calloc(size_t count, size_t byte_count)
{
    return memory_refuses() ? NULL : __real_calloc(count, byte_count);
}

void *__wrap_realloc(void *bytes, size_t byte_count)
{
    return memory_refuses() ? NULL : __real_realloc(bytes, byte_count);
}

char *__wrap_strdup(const char *text)
{
    return memory_refuses() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t byte_count)
{
    return memory_refuses() ? NULL : __real_strndup(text, byte_count);
}
