/*
 * disk.h - stands between the store and the kernel: fails calls, or writes down what they do.
 *
 * Linked into a test, its own pwrite(), writev(), fdatasync(), fsync(), open() and rename() are found before those of
 * the C library, by LMDB too.  Files outside the watched folder pass untouched.
 */
#ifndef SINKONCE_TESTS_DISK_H
#define SINKONCE_TESTS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_call { DISK_SYNC, DISK_META_WRITE, DISK_DATA_WRITE, DISK_CALL_COUNT };
enum { DISK_SHORT = -1 }; /* in place of an error: half of the bytes are written, as where a disk ends */

void disk_watch(const char *folder); /* NULL: none */
/* The NTHth such call from now on (1: the next) fails with ERROR, and COUNT - 1 after it. */
void disk_fail(enum disk_call call, unsigned nth, unsigned count, int error);
void disk_heal(void);
unsigned disk_failure_count(void); /* since the last disk_fail() */

/* ---- the recorder ---- */

enum disk_event_kind {
    DISK_EVENT_CREATE,
    DISK_EVENT_WRITE,
    DISK_EVENT_SYNC,
    DISK_EVENT_RENAME,
    DISK_EVENT_SYNC_FOLDER,
    DISK_EVENT_MARK
};

struct disk_event {
    enum disk_event_kind kind;
    char name[32], new_name[32]; /* within the folder */
    bool is_durable;             /* a write through a descriptor opened with O_DSYNC */
    uint64_t offset;
    size_t byte_count;
    unsigned char *bytes; /* owned by the recorder */
    int64_t mark;
};

void disk_record(bool is_on);
void disk_mark(int64_t mark); /* something became visible outside */
size_t disk_event_count(void);
const struct disk_event *disk_event_at(size_t index);
void disk_forget_events(void);

#endif
