/*
 * disk.c - stands between the store and the kernel (see disk.h).
 */
#include "disk.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char watched[PATH_MAX]; /* all of it guarded by lock */
static struct {
    unsigned next, count;
    int error;
} faults[DISK_CALL_COUNT];
static unsigned failure_count;
static bool is_recording;
static struct disk_event *events;
static size_t event_count, event_room;

/* The function that ours stands before. */
static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    assert(function != NULL);
    return function;
}

#define REAL(name, type) ((type)real(name))

void disk_watch(const char *folder)
{
    pthread_mutex_lock(&lock);
    snprintf(watched, sizeof watched, "%s", folder == NULL ? "" : folder);
    pthread_mutex_unlock(&lock);
}

void disk_fail(enum disk_call call, unsigned nth, unsigned count, int error)
{
    pthread_mutex_lock(&lock);
    faults[call].next = nth;
    faults[call].count = count;
    faults[call].error = error;
    failure_count = 0;
    pthread_mutex_unlock(&lock);
}

void disk_heal(void)
{
    pthread_mutex_lock(&lock);
    memset(faults, 0, sizeof faults);
    pthread_mutex_unlock(&lock);
}

unsigned disk_failure_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned count = failure_count;
    pthread_mutex_unlock(&lock);
    return count;
}

/* 0, or the number that this call fails with.  Under the lock. */
static int fault_of(enum disk_call call)
{
    if (faults[call].count == 0)
        return 0;
    if (faults[call].next > 1) {
        faults[call].next--;
        return 0;
    }
    faults[call].count--;
    failure_count++;
    return faults[call].error;
}

/* The name of FD's file within the watched folder; "" is the folder itself.  False: another file. */
static bool name_of(int fd, char name[32])
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    size_t folder_bytes = strlen(watched);
    if (folder_bytes == 0 || length < (ssize_t)folder_bytes || strncmp(path, watched, folder_bytes) != 0)
        return false;
    path[length] = '\0';
    if (path[folder_bytes] != '\0' && path[folder_bytes] != '/')
        return false;
    snprintf(name, 32, "%.31s", path[folder_bytes] == '\0' ? "" : path + folder_bytes + 1);
    return strstr(name, "-lock") == NULL && strcmp(name, "sinkonce.lock") != 0;
}

/* Under the lock. */
static struct disk_event *add_event(enum disk_event_kind kind, const char *name)
{
    if (event_count == event_room) {
        event_room = 2 * event_room + 64;
        events = realloc(events, event_room * sizeof events[0]);
        assert(events != NULL);
    }
    struct disk_event *event = &events[event_count++];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    snprintf(event->name, sizeof event->name, "%.31s", name);
    return event;
}

static void record_write(int fd, const char *name, const void *bytes, size_t byte_count, uint64_t offset)
{
    if (!is_recording)
        return;
    struct disk_event *event = add_event(DISK_EVENT_WRITE, name);
    event->is_durable = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    event->offset = offset;
    event->byte_count = byte_count;
    event->bytes = malloc(byte_count);
    assert(event->bytes != NULL);
    memcpy(event->bytes, bytes, byte_count);
}

void disk_record(bool is_on)
{
    pthread_mutex_lock(&lock);
    is_recording = is_on;
    pthread_mutex_unlock(&lock);
}

void disk_mark(int64_t mark)
{
    pthread_mutex_lock(&lock);
    if (is_recording)
        add_event(DISK_EVENT_MARK, "")->mark = mark;
    pthread_mutex_unlock(&lock);
}

size_t disk_event_count(void)
{
    return event_count;
}

const struct disk_event *disk_event_at(size_t index)
{
    assert(index < event_count);
    return &events[index];
}

void disk_forget_events(void)
{
    for (size_t i = 0; i < event_count; i++)
        free(events[i].bytes);
    free(events);
    events = NULL;
    event_count = event_room = 0;
}

/* ---- the calls -------------------------------------------------------------------------------------------------- */

/* Returns the error to fail with, after writing down what is about to be written. */
static int on_write(int fd, const void *bytes, size_t byte_count, off_t offset)
{
    char name[32];
    int error = 0;
    pthread_mutex_lock(&lock);
    if (name_of(fd, name)) {
        bool is_meta = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
        error = fault_of(is_meta ? DISK_META_WRITE : DISK_DATA_WRITE);
        if (error == 0)
            record_write(fd, name, bytes, byte_count, (uint64_t)offset);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return error;
}

ssize_t pwrite(int fd, const void *bytes, size_t byte_count, off_t offset)
{
    int error = on_write(fd, bytes, byte_count, offset);
    if (error != 0 && error != DISK_SHORT)
        return -1;
    return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(
        fd, bytes, error == DISK_SHORT ? byte_count / 2 : byte_count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int part_count)
{
    off_t offset = lseek(fd, 0, SEEK_CUR);
    for (int i = 0; offset >= 0 && i < part_count; i++) {
        int error = on_write(fd, parts[i].iov_base, parts[i].iov_len, offset);
        if (error == DISK_SHORT)
            return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(
                fd, parts[0].iov_base, parts[0].iov_len / 2, lseek(fd, 0, SEEK_CUR));
        if (error != 0)
            return -1;
        offset += (off_t)parts[i].iov_len;
    }
    return REAL("writev", ssize_t(*)(int, const struct iovec *, int))(fd, parts, part_count);
}

static int on_sync(int fd)
{
    char name[32];
    int error = 0;
    pthread_mutex_lock(&lock);
    if (name_of(fd, name)) {
        error = fault_of(DISK_SYNC);
        if (error == 0 && is_recording)
            add_event(name[0] == '\0' ? DISK_EVENT_SYNC_FOLDER : DISK_EVENT_SYNC, name);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return error;
}

int fdatasync(int fd)
{
    return on_sync(fd) != 0 ? -1 : REAL("fdatasync", int (*)(int))(fd);
}

int fsync(int fd)
{
    return on_sync(fd) != 0 ? -1 : REAL("fsync", int (*)(int))(fd);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    struct stat before;
    bool was_missing = stat(path, &before) != 0;
    int fd = REAL("open", int (*)(const char *, int, ...))(path, flags, mode);
    char name[32];
    pthread_mutex_lock(&lock);
    if (fd >= 0 && was_missing && is_recording && name_of(fd, name))
        add_event(DISK_EVENT_CREATE, name);
    pthread_mutex_unlock(&lock);
    return fd;
}

int rename(const char *from, const char *to)
{
    size_t folder_bytes = strlen(watched);
    pthread_mutex_lock(&lock);
    if (is_recording && folder_bytes > 0 && strncmp(from, watched, folder_bytes) == 0) {
        struct disk_event *event = add_event(DISK_EVENT_RENAME, from + folder_bytes + 1);
        snprintf(event->new_name, sizeof event->new_name, "%.31s", to + folder_bytes + 1);
    }
    pthread_mutex_unlock(&lock);
    return REAL("rename", int (*)(const char *, const char *))(from, to);
}
