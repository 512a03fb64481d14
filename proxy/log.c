/*
 * log.c - writes the lines: one write(2) each, from any thread.
 *
 * log_line.c forms them, log_limit.c decides how often.  Nothing is queued here: what has returned is written, and a
 * kill loses no line.  A line that cannot be written is dropped, since there is nowhere left to say so.
 */
#include "log.h"
#include "log_limit.h"
#include "log_line.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static _Atomic int level_now = LOG_LEVEL_INFO;
static bool is_text; /* set before the threads start, constant afterwards */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_limit limit; /* guarded by lock */

void log_init(enum log_level level, enum log_format format)
{
    is_text = format == LOG_FORMAT_TEXT || (format == LOG_FORMAT_AUTO && isatty(STDERR_FILENO) == 1);
    log_level_set(level);
}

void log_level_set(enum log_level level)
{
    atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

bool log_is_on(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&level_now, memory_order_relaxed);
}

static uint64_t now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A file system that is full, or a signal, may leave a rest behind.  A pipe takes a line whole (see log_line.h). */
static void write_whole(int fd, const char bytes[], size_t byte_count)
{
    while (byte_count > 0) {
        const ssize_t written = write(fd, bytes, byte_count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        byte_count -= (size_t)written;
    }
}

static void write_event(const struct log_words *words)
{
    const int errno_before = errno; /* a line must not change what its caller goes on to look at */
    struct log_line line;
    log_line_form(&line, is_text, words);
    write_whole(STDERR_FILENO, line.bytes, line.byte_count);
    errno = errno_before;
}

void log_event(enum log_level level, const char *event, const char *message, const struct log_field fields[],
               size_t field_count)
{
    if (!log_is_on(level))
        return;
    write_event(&(struct log_words){ .time_ms = now_ms(CLOCK_REALTIME),
                                     .level = level,
                                     .event = event,
                                     .message = message,
                                     .fields = fields,
                                     .field_count = field_count });
}

void log_event_limited(enum log_level level, const char *event, const char *message,
                       const struct log_field fields[], size_t field_count)
{
    uint64_t suppressed_count = 0;
    if (!log_is_on(level))
        return;
    pthread_mutex_lock(&lock);
    const bool is_due = log_limit_take(&limit, event, now_ms(CLOCK_MONOTONIC), &suppressed_count);
    pthread_mutex_unlock(&lock);
    if (!is_due)
        return;
    write_event(&(struct log_words){ .time_ms = now_ms(CLOCK_REALTIME),
                                     .level = level,
                                     .event = event,
                                     .message = message,
                                     .fields = fields,
                                     .field_count = field_count,
                                     .suppressed_count = suppressed_count });
}

void log_access(struct slice line)
{
    const struct iovec parts[] = {
        { .iov_base = (void *)(uintptr_t)line.at, .iov_len = line.byte_count },
        { .iov_base = (void *)(uintptr_t) "\n", .iov_len = 1 },
    };
    ssize_t written;
    do {
        written = writev(STDOUT_FILENO, parts, 2);
    } while (written < 0 && errno == EINTR);
}
