/*
 * image.c - the disk as a power cut could leave it (see image.h).
 *
 *     a file        what is durable, and the writes since its last flush
 *     the folder    its names now, and those that a flush of the folder has made durable
 */
#include "image.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 4, SECTOR_BYTES = 512 };

/* ---- the disk at some moment ------------------------------------------------------------------------------------ */

struct file {
    unsigned char *bytes; /* owned: what is durable */
    size_t byte_count;
    size_t pending[4096]; /* numbers of events: written, not flushed */
    size_t pending_count;
};

/* A name in the folder as it is now, and as it is on the disk. */
struct disk {
    struct file files[FILES_MAX];
    size_t file_count;
    struct entry {
        char name[32];
        size_t file;
    } entries[FILES_MAX], durable_entries[FILES_MAX];
    size_t entry_count, durable_entry_count;
};

static struct disk disk;
static char image_folder[64];
static unsigned seed;

static struct entry *entry_in(struct entry entries[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static void file_write(struct file *file, uint64_t offset, const void *bytes, size_t byte_count)
{
    assert(offset + byte_count <= IMAGE_FILE_BYTES_MAX);
    if (file->bytes == NULL)
        file->bytes = calloc(1, IMAGE_FILE_BYTES_MAX);
    assert(file->bytes != NULL);
    memcpy(file->bytes + offset, bytes, byte_count);
    if (offset + byte_count > file->byte_count)
        file->byte_count = offset + byte_count;
}

static void file_flush(struct file *file)
{
    for (size_t i = 0; i < file->pending_count; i++) {
        const struct disk_event *event = disk_event_at(file->pending[i]);
        file_write(file, event->offset, event->bytes, event->byte_count);
    }
    file->pending_count = 0;
}

static void on_create(const char *name)
{
    struct entry *entry = &disk.entries[disk.entry_count++];
    assert(disk.entry_count <= FILES_MAX && disk.file_count < FILES_MAX);
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->file = disk.file_count++;
}

static void on_rename(const char *name, const char *new_name)
{
    struct entry *entry = entry_in(disk.entries, disk.entry_count, name);
    assert(entry != NULL && entry_in(disk.entries, disk.entry_count, new_name) == NULL);
    snprintf(entry->name, sizeof entry->name, "%s", new_name);
}

void image_play(size_t index)
{
    const struct disk_event *event = disk_event_at(index);
    struct entry *entry = entry_in(disk.entries, disk.entry_count, event->name);
    struct file *file = entry == NULL ? NULL : &disk.files[entry->file];
    switch (event->kind) {
    case DISK_EVENT_CREATE:
        on_create(event->name);
        break;
    case DISK_EVENT_RENAME:
        on_rename(event->name, event->new_name);
        break;
    case DISK_EVENT_WRITE:
        assert(file != NULL && file->pending_count < sizeof file->pending / sizeof file->pending[0]);
        if (event->is_durable)
            file_write(file, event->offset, event->bytes, event->byte_count);
        else
            file->pending[file->pending_count++] = index;
        break;
    case DISK_EVENT_SYNC:
        assert(file != NULL);
        file_flush(file);
        break;
    case DISK_EVENT_SYNC_FOLDER:
        memcpy(disk.durable_entries, disk.entries, sizeof disk.entries);
        disk.durable_entry_count = disk.entry_count;
        break;
    case DISK_EVENT_MARK:
        break;
    }
}

/* ---- images ----------------------------------------------------------------------------------------------------- */

/* How much of a write reaches the disk. */
static size_t reaching(enum image_kind kind, bool is_last, size_t byte_count)
{
    switch (kind) {
    case IMAGE_NONE:
        return 0;
    case IMAGE_HALF:
        return rand_r(&seed) % 2 == 0 ? 0 : byte_count;
    case IMAGE_TORN:
        if (is_last && byte_count >= SECTOR_BYTES)
            return (size_t)rand_r(&seed) % (byte_count / SECTOR_BYTES) * SECTOR_BYTES;
        return is_last ? (size_t)rand_r(&seed) % byte_count : byte_count;
    case IMAGE_ALL:
    case IMAGE_KIND_COUNT:
        break;
    }
    return byte_count;
}

static void image_write(const char *name, const struct file *file, enum image_kind kind,
                        const struct disk_event *running)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", image_folder, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert(fd >= 0);
    if (file->byte_count > 0 && pwrite(fd, file->bytes, file->byte_count, 0) != (ssize_t)file->byte_count)
        abort();
    for (size_t i = 0; i <= file->pending_count; i++) {
        bool is_last = i + (running == NULL) == file->pending_count || i == file->pending_count;
        const struct disk_event *event = i < file->pending_count ? disk_event_at(file->pending[i]) : running;
        size_t byte_count = event == NULL ? 0 : reaching(kind, is_last, event->byte_count);
        if (byte_count > 0 &&
            pwrite(fd, event->bytes, byte_count, (off_t)event->offset) != (ssize_t)byte_count)
            abort();
    }
    close(fd);
}

static void clear(const char *cleared)
{
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "ledger.mdb.new",
                                         "ledger.mdb.new-lock", "sinkonce.lock" };
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", cleared, names[i]);
        unlink(path);
    }
}

void image_build(enum image_kind kind, const struct disk_event *running)
{
    bool has_new_names = kind == IMAGE_ALL || (kind != IMAGE_NONE && rand_r(&seed) % 2 == 0);
    const struct entry *entries = has_new_names ? disk.entries : disk.durable_entries;
    size_t entry_count = has_new_names ? disk.entry_count : disk.durable_entry_count;
    clear(image_folder);
    for (size_t i = 0; i < entry_count; i++) {
        const struct entry *now = NULL; /* the name under which the running write knows this file */
        for (size_t j = 0; j < disk.entry_count; j++)
            if (disk.entries[j].file == entries[i].file)
                now = &disk.entries[j];
        bool is_its = running != NULL && now != NULL && strcmp(now->name, running->name) == 0;
        image_write(entries[i].name, &disk.files[entries[i].file], kind, is_its ? running : NULL);
    }
}

/* ---- its life --------------------------------------------------------------------------------------------------- */

void image_begin(const char *folder)
{
    memset(&disk, 0, sizeof disk);
    snprintf(image_folder, sizeof image_folder, "%s", folder);
    seed = 20;
}

void image_remove(const char *folder)
{
    clear(folder);
    rmdir(folder);
}

void image_end(void)
{
    for (size_t i = 0; i < disk.file_count; i++)
        free(disk.files[i].bytes);
    memset(&disk, 0, sizeof disk);
}
