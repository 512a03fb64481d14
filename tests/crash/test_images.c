/*
 * test_images.c - F-20 and F-21: the ledgers that a power cut could leave.
 *
 * A run of claims and outcomes is recorded: every write, flush, creation and rename, and each moment at which something
 * was told to the outside.  After each event the disk is built again as a power cut at that moment could have left it,
 * and the real store opens it:
 *     none, all, or a random half of the writes that were not flushed
 *     the last of them torn at a sector of 512 bytes; a write through O_DSYNC torn anywhere while it runs
 *     any number of the folder's changes that were not flushed
 * It must open; each record told applied must be applied; each record told claimed must be in doubt, or applied if that had been
 * asked for.
 *
 * SINKONCE_IMAGES (default 400): how many images at most, spread over all events.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "desk.h"
#include "disk.h"

enum { FILES_MAX = 4, SECTOR_BYTES = 512, FILE_BYTES_MAX = 8 * 1024 * 1024, OFFSETS_MAX = 4000 };
enum { READY = -1 }; /* the mark of "store_open() returned"; else offset * 4 + enum told */

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
static char folder[64], image_folder[64];
static unsigned seed = 20;

static struct entry *entry_in(struct entry entries[], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static void file_write(struct file *file, uint64_t offset, const void *bytes, size_t byte_count)
{
    assert(offset + byte_count <= FILE_BYTES_MAX);
    if (file->bytes == NULL)
        file->bytes = calloc(1, FILE_BYTES_MAX);
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

static void disk_free(void)
{
    for (size_t i = 0; i < disk.file_count; i++)
        free(disk.files[i].bytes);
    memset(&disk, 0, sizeof disk);
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

/* The event has happened. */
static void disk_apply(size_t index)
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

enum image_kind { IMAGE_NONE, IMAGE_ALL, IMAGE_HALF, IMAGE_TORN, IMAGE_KIND_COUNT };

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

static void image_clear(void)
{
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "ledger.mdb.new",
                                         "ledger.mdb.new-lock", "sinkonce.lock" };
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", image_folder, names[i]);
        unlink(path);
    }
}

/* The disk as it may be found, while RUNNING (or nothing: NULL) was under way. */
static void image_build(enum image_kind kind, const struct disk_event *running)
{
    bool has_new_names = kind == IMAGE_ALL || (kind != IMAGE_NONE && rand_r(&seed) % 2 == 0);
    const struct entry *entries = has_new_names ? disk.entries : disk.durable_entries;
    size_t entry_count = has_new_names ? disk.entry_count : disk.durable_entry_count;
    image_clear();
    for (size_t i = 0; i < entry_count; i++) {
        const struct entry *now = NULL; /* the name under which the running write knows this file */
        for (size_t j = 0; j < disk.entry_count; j++)
            if (disk.entries[j].file == entries[i].file)
                now = &disk.entries[j];
        bool is_its = running != NULL && now != NULL && strcmp(now->name, running->name) == 0;
        image_write(entries[i].name, &disk.files[entries[i].file], kind, is_its ? running : NULL);
    }
}

/* ---- what must be true ------------------------------------------------------------------------------------------ */

/* Told by the store that it is claimed; told to the store that it is applied; told by the store that this is on disk. */
enum told { TOLD_NOTHING, TOLD_CLAIMED, TOLD_RESULT, TOLD_APPLIED };

static enum told told[OFFSETS_MAX];
static bool is_ready_told;
static char ledger_id[40];

static void check_image(size_t index, enum image_kind kind)
{
    struct store_options options = desk_options(image_folder);
    struct store *store;
    char why[256];
    options.is_missing_refused = is_ready_told;
    options.ledger_bytes_max = FILE_BYTES_MAX;
    enum store_open_status status = store_open(&options, &store, why, sizeof why);
    if (status != STORE_OPENED)
        fail_msg("event %zu, image %d: %s", index, kind, why);
    if (is_ready_told)
        assert_string_equal(store_id(store), ledger_id);
    struct desk desk = desk_open(store);
    for (int64_t offset = 0; offset < OFFSETS_MAX; offset++) {
        if (told[offset] == TOLD_NOTHING)
            continue;
        enum record_state state = desk_state(&desk, "orders", 0, offset);
        bool may_be_applied = told[offset] != TOLD_CLAIMED, may_be_in_doubt = told[offset] != TOLD_APPLIED;
        if (!(state == RECORD_APPLIED && may_be_applied) && !(state == RECORD_IN_DOUBT && may_be_in_doubt))
            fail_msg("event %zu, image %d: record %lld was told (%d) and is %s", index, kind,
                     (long long)offset, told[offset], record_state_name(state));
    }
    desk_close(&desk);
    store_close(store);
}

static void take_mark(int64_t mark)
{
    if (mark == READY)
        is_ready_told = true;
    else
        told[mark / 4] = (enum told)(mark % 4);
}

/* ---- the recorded run ------------------------------------------------------------------------------------------- */

static void mark_records(const struct order *order, enum told what)
{
    for (size_t i = 0; i < order->claim.record_count; i++)
        if (order->verdicts[i] == VERDICT_NEW)
            disk_mark(order->records[i].key.offset * 4 + (int64_t)what);
}

static void one_exchange(struct desk *desk, int64_t first, size_t count)
{
    static struct order order;
    order_init(&order, "orders", 0, first, count);
    for (size_t i = 0; i < count; i++)
        order.records[i].mark = mark_of_hash((uint64_t)first + i);
    assert_int_equal(desk_claim(desk, &order), STORE_OK);
    mark_records(&order, TOLD_CLAIMED);
    if (rand_r(&seed) % 8 == 0)
        return; /* its answer never comes */
    order.settlement.reply = (struct stored_reply){ 201, slice_of_text("text/plain"), slice_of_text("made") };
    mark_records(&order, TOLD_RESULT);
    assert_int_equal(desk_settle(desk, &order, OUTCOME_APPLIED), STORE_OK);
    mark_records(&order, TOLD_APPLIED);
    order_deinit(&order);
}

static void record_run(void)
{
    struct store_options options = desk_options(folder);
    struct store *store;
    char why[256];
    options.ledger_bytes_max = FILE_BYTES_MAX;
    disk_watch(folder);
    disk_record(true);
    assert_int_equal(store_open(&options, &store, why, sizeof why), STORE_OPENED);
    disk_mark(READY);
    snprintf(ledger_id, sizeof ledger_id, "%s", store_id(store));
    struct desk desk = desk_open(store);
    int64_t offset = 0;
    for (int i = 0; i < 60; i++) {
        size_t count = rand_r(&seed) % 3 == 0 ? 1 + (size_t)rand_r(&seed) % 60 : 1;
        one_exchange(&desk, offset, count);
        offset += (int64_t)count + rand_r(&seed) % 2;
    }
    disk_record(false);
    desk_close(&desk);
    store_close(store);
    disk_watch(NULL);
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void check_moment(size_t index, const struct disk_event *running)
{
    for (int kind = IMAGE_NONE; kind < IMAGE_KIND_COUNT; kind++) {
        image_build((enum image_kind)kind, running);
        check_image(index, (enum image_kind)kind);
    }
}

static void test_F20_F21_whatever_a_power_cut_leaves_holds_what_was_told(void **state)
{
    const char *wanted = getenv("SINKONCE_IMAGES");
    size_t image_max = wanted == NULL ? 400 : strtoul(wanted, NULL, 10);
    (void)state;
    record_run();
    size_t event_count = disk_event_count(), image_count = 0;
    size_t moment_max = image_max / IMAGE_KIND_COUNT;
    for (size_t i = 0; i < event_count; i++) {
        const struct disk_event *event = disk_event_at(i);
        /* the first events are the creation: all of them; of the rest as many as wanted, spread evenly */
        bool is_chosen = i < 20 || i * moment_max / event_count != (i + 1) * moment_max / event_count;
        if (is_chosen && event->kind == DISK_EVENT_WRITE && event->is_durable) {
            check_moment(i, event); /* while it runs, it may be there in part */
            image_count += IMAGE_KIND_COUNT;
        }
        disk_apply(i);
        if (event->kind == DISK_EVENT_MARK)
            take_mark(event->mark);
        if (is_chosen) {
            check_moment(i, NULL);
            image_count += IMAGE_KIND_COUNT;
        }
    }
    print_message("%zu events, %zu images\n", event_count, image_count);
    assert_true(event_count > 300);
    disk_free();
    disk_forget_events();
}

/* Images are written and read in memory where there is room for that. */
static int make_folders(void **state)
{
    (void)state;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/sinkonce-run-XXXXXX", base);
    snprintf(image_folder, sizeof image_folder, "%s/sinkonce-image-XXXXXX", base);
    return mkdtemp(folder) == NULL || mkdtemp(image_folder) == NULL;
}

static int remove_folders(void **state)
{
    (void)state;
    image_clear();
    rmdir(image_folder);
    memcpy(image_folder, folder, sizeof folder);
    image_clear();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_F20_F21_whatever_a_power_cut_leaves_holds_what_was_told,
                                        make_folders, remove_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
