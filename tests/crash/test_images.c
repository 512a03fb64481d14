/*
 * test_images.c - F-20 and F-21: the ledgers that a power cut could leave.
 *
 * Each history (histories.h) is recorded: every write, flush, creation and rename, and each moment at which something was
 * told to the outside.  After each event the disk is built again as a power cut at that moment could have left it, and
 * the real store opens it:
 *     none, all, or a random half of the writes that were not flushed
 *     the last of them torn at a sector of 512 bytes; a write through O_DSYNC torn anywhere while it runs
 *     any number of the folder's changes that were not flushed
 * It must open and pass its own verification; each record must be what was told of it, or what it was just being made.
 *
 * SINKONCE_IMAGES (default 2000): how many images about, spread over all histories and their events.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "histories.h"
#include "image.h"

enum { CREATION_EVENTS = 20, CHECKED_MAX = 100 };

static char folder[64], image_folder[64];
static unsigned char may_be[SUBJECTS_MAX]; /* 0: nothing was told */
static bool is_ready_told;
static size_t last_told; /* a subject */
static unsigned seed = 20;

static bool on_finding(void *context, struct slice line)
{
    (void)context;
    print_error("%.*s\n", (int)line.byte_count, line.at);
    return true;
}

static void check_subject(struct desk *desk, size_t subject, const char *moment)
{
    static const int bits[] = { [RECORD_ABSENT] = MAY_BE_ABSENT,
                                [RECORD_IN_FLIGHT] = 0,
                                [RECORD_APPLIED] = MAY_BE_APPLIED,
                                [RECORD_IN_DOUBT] = MAY_BE_IN_DOUBT,
                                [RECORD_BELOW_WINDOW] = MAY_BE_APPLIED };
    if (may_be[subject] == 0)
        return;
    enum record_state state =
        desk_state(desk, "orders", subjects[subject].partition, subjects[subject].offset);
    if ((bits[state] & may_be[subject]) == 0)
        fail_msg("%s: record %d/%lld may be %d and is %s", moment, (int)subjects[subject].partition,
                 (long long)subjects[subject].offset, may_be[subject], record_state_name(state));
}

/* All of few; of many those that were spoken of last, and others by chance. */
static void check_subjects(struct desk *desk, const char *moment)
{
    size_t first = last_told < CHECKED_MAX / 2 ? 0 : last_told - CHECKED_MAX / 2;
    if (subject_count <= CHECKED_MAX)
        first = 0;
    for (size_t i = first; i < subject_count && i < first + CHECKED_MAX; i++)
        check_subject(desk, i, moment);
    for (int i = 0; subject_count > CHECKED_MAX && i < CHECKED_MAX / 2; i++)
        check_subject(desk, (size_t)rand_r(&seed) % subject_count, moment);
}

static void check_image(const struct history *history, size_t index, enum image_kind kind)
{
    struct store_options options = history_options(history, image_folder);
    struct store *store;
    char why[256] = "", moment[128];
    snprintf(moment, sizeof moment, "%s, event %zu, image %d", history->name, index, (int)kind);
    options.is_missing_refused = is_ready_told;
    options.ledger_bytes_max = IMAGE_FILE_BYTES_MAX;
    if (store_open(&options, &store, why, sizeof why) != STORE_OPENED)
        fail_msg("%s: %s", moment, why);
    if (is_ready_told)
        assert_string_equal(store_id(store), history_ledger_id);
    struct desk desk = desk_open(store);
    check_subjects(&desk, moment);
    desk_close(&desk);
    store_close(store);
    if (store_verify(&options, on_finding, NULL, why, sizeof why) != STORE_OPENED)
        fail_msg("%s: %s", moment, why);
}

static void take_mark(int64_t mark)
{
    if (mark == MARK_READY) {
        is_ready_told = true;
        return;
    }
    last_told = (size_t)(mark >> MAY_BE_BITS);
    may_be[last_told] = (unsigned char)(mark & ((1 << MAY_BE_BITS) - 1));
}

static size_t check_moment(const struct history *history, size_t index, const struct disk_event *running)
{
    for (int kind = IMAGE_NONE; kind < IMAGE_KIND_COUNT; kind++) {
        image_build((enum image_kind)kind, running);
        check_image(history, index, (enum image_kind)kind);
    }
    return IMAGE_KIND_COUNT;
}

/* Marks change nothing on the disk, and only the last one of several is looked at. */
static bool is_moment(size_t index)
{
    return disk_event_at(index)->kind != DISK_EVENT_MARK || index + 1 == disk_event_count() ||
           disk_event_at(index + 1)->kind != DISK_EVENT_MARK;
}

static size_t count_moments(void)
{
    size_t count = 0;
    for (size_t i = 0; i < disk_event_count(); i++)
        count += is_moment(i);
    return count;
}

/* The first events are the creation: all of them; of the rest as many as wanted, spread evenly. */
static bool is_chosen(size_t moment, size_t moment_count, size_t wanted)
{
    return moment < CREATION_EVENTS || moment * wanted / moment_count != (moment + 1) * wanted / moment_count;
}

static size_t check_history(const struct history *history, size_t image_max)
{
    size_t moment_count = count_moments(), moment = 0, image_count = 0;
    size_t wanted = image_max / IMAGE_KIND_COUNT;
    for (size_t i = 0; i < disk_event_count(); i++) {
        const struct disk_event *event = disk_event_at(i);
        bool is_looked_at = is_moment(i) && is_chosen(moment, moment_count, wanted);
        moment += is_moment(i);
        if (is_looked_at && event->kind == DISK_EVENT_WRITE && event->is_durable)
            image_count += check_moment(history, i, event); /* while it runs, it may be there in part */
        image_play(i);
        if (event->kind == DISK_EVENT_MARK)
            take_mark(event->mark);
        if (is_looked_at)
            image_count += check_moment(history, i, NULL);
    }
    return image_count;
}

static size_t whatever_a_power_cut_leaves(const struct history *history, size_t image_max)
{
    const char *base =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* in memory where there is room */
    snprintf(folder, sizeof folder, "%s/sinkonce-run-XXXXXX", base);
    snprintf(image_folder, sizeof image_folder, "%s/sinkonce-image-XXXXXX", base);
    assert_true(mkdtemp(folder) != NULL && mkdtemp(image_folder) != NULL);
    memset(may_be, 0, sizeof may_be);
    is_ready_told = false;
    last_told = 0;
    history_record(history, folder);
    image_begin(image_folder);
    size_t image_count = check_history(history, image_max);
    print_message("%s: %zu events, %zu records, %zu images\n", history->name, disk_event_count(),
                  subject_count, image_count);
    assert_true(disk_event_count() > 100);
    image_end();
    disk_forget_events();
    image_remove(image_folder);
    image_remove(folder);
    return image_count;
}

static void test_F20_F21_whatever_a_power_cut_leaves_holds_what_was_told(void **state)
{
    const char *wanted = getenv("SINKONCE_IMAGES");
    size_t image_max = wanted == NULL ? 2000 : strtoul(wanted, NULL, 10), image_count = 0;
    (void)state;
    for (size_t i = 0; i < history_count; i++)
        image_count += whatever_a_power_cut_leaves(&histories[i], image_max / history_count);
    print_message("%zu images, 0 wrong\n", image_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F20_F21_whatever_a_power_cut_leaves_holds_what_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
