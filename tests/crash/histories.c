/*
 * histories.c - runs of a ledger, each with another part of its life (see histories.h).
 */
#include "histories.h"

#include <stdarg.h>
#include <setjmp.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "disk.h"
#include "image.h"

struct subject subjects[SUBJECTS_MAX];
size_t subject_count;
char history_ledger_id[40];

static struct store *store;
static struct desk desk;
static struct store_options options;
static struct order order;
static unsigned seed;

static unsigned below(unsigned limit)
{
    return (unsigned)rand_r(&seed) % limit;
}

/* ---- what is told ----------------------------------------------------------------------------------------------- */

static size_t subject_of(int32_t partition, int64_t offset)
{
    for (size_t i = 0; i < subject_count; i++)
        if (subjects[i].partition == partition && subjects[i].offset == offset)
            return i;
    assert(subject_count < SUBJECTS_MAX);
    subjects[subject_count] = (struct subject){ partition, offset };
    return subject_count++;
}

static void tell(int32_t partition, int64_t offset, int what)
{
    disk_mark((int64_t)subject_of(partition, offset) << MAY_BE_BITS | what);
}

static void tell_run(int32_t partition, int64_t first, int64_t last, int what)
{
    for (int64_t offset = first; offset <= last; offset++)
        tell(partition, offset, what);
}

/* Of the order's records: what comes of NEW ones. */
static void tell_order(int what)
{
    for (size_t i = 0; i < order.claim.record_count; i++)
        if (order.verdicts[i] == VERDICT_NEW)
            tell(order.records[i].key.partition, order.records[i].key.offset, what);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void open_ledger(void)
{
    char why[256];
    if (store_open(&options, &store, why, sizeof why) != STORE_OPENED)
        fail_msg("%s", why);
    disk_mark(MARK_READY);
    snprintf(history_ledger_id, sizeof history_ledger_id, "%s", store_id(store));
    desk = desk_open(store);
}

static void close_ledger(void)
{
    desk_close(&desk);
    store_close(store);
}

/* Another KIND at the same coordinates is another record. */
static record_mark mark_of(int64_t offset, unsigned kind)
{
    return mark_of_hash(((uint64_t)offset * 8 + kind + 1) * 2); /* the lowest bit is not part of it */
}

static enum store_status claim_order(unsigned kind)
{
    for (size_t i = 0; i < order.claim.record_count; i++) {
        order.records[i].mark = mark_of(order.records[i].key.offset, kind);
        order.verdicts[i] = VERDICT_NEW;
    }
    tell_order(MAY_BE_ABSENT | MAY_BE_IN_DOUBT);
    enum store_status status = desk_claim(&desk, &order);
    if (status == STORE_OK)
        tell_order(MAY_BE_IN_DOUBT);
    return status;
}

static void settle_order(enum outcome outcome)
{
    static const int becomes[] = { [OUTCOME_APPLIED] = MAY_BE_APPLIED,
                                   [OUTCOME_NOT_APPLIED] = MAY_BE_ABSENT,
                                   [OUTCOME_NOT_SENT] = MAY_BE_ABSENT,
                                   [OUTCOME_UNKNOWN] = MAY_BE_IN_DOUBT };
    order.settlement.reply = (struct stored_reply){ 201, slice_of_text("text/plain"), slice_of_text("made") };
    tell_order(MAY_BE_IN_DOUBT | becomes[outcome]);
    assert_int_equal(desk_settle(&desk, &order, outcome), STORE_OK);
    tell_order(becomes[outcome]);
    order_deinit(&order);
}

/* An exchange from its claim to its end. */
static void exchange(int32_t partition, int64_t first, size_t count, enum outcome outcome)
{
    order_init(&order, "orders", partition, first, count);
    assert_int_equal(claim_order(0), STORE_OK);
    settle_order(outcome);
}

/* Its answer never comes. */
static void exchange_left(int32_t partition, int64_t first, size_t count)
{
    order_init(&order, "orders", partition, first, count);
    assert_int_equal(claim_order(0), STORE_OK);
}

static void ask(struct question question)
{
    snprintf(question.detail, sizeof question.detail, "a history");
    snprintf(question.topic, sizeof question.topic, "orders");
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    store_question_deinit(&question);
}

/* ---- the histories ---------------------------------------------------------------------------------------------- */

static void singles_and_batches(void)
{
    int64_t offset = 0;
    open_ledger();
    for (int i = 0; i < 60; i++) {
        size_t count = below(3) == 0 ? 1 + below(60) : 1;
        if (below(8) == 0)
            exchange_left(0, offset, count);
        else
            exchange(0, offset, count, OUTCOME_APPLIED);
        offset += (int64_t)count + below(2);
    }
}

static void resolve(int64_t first, int64_t last, bool is_applied)
{
    int becomes = is_applied ? MAY_BE_APPLIED : MAY_BE_ABSENT;
    tell_run(0, first, last, MAY_BE_IN_DOUBT | becomes);
    ask((struct question){ .kind = DO_RESOLVE,
                           .first = first,
                           .last = last,
                           .is_applied = is_applied,
                           .expect_count = (uint64_t)(last - first + 1) });
    tell_run(0, first, last, becomes);
}

/* Whole doubts and parts of them; what was found not applied is sent again. */
static void doubts_resolved(void)
{
    open_ledger();
    for (int64_t offset = 0; offset < 300; offset += 20) {
        exchange(0, offset, 12, OUTCOME_UNKNOWN);
        exchange(0, offset + 12, 4, OUTCOME_NOT_APPLIED);
        exchange(0, offset + 16, 2, OUTCOME_APPLIED);
        resolve(offset, offset + 4, true);
        resolve(offset + 5, offset + 7, false);
        if (offset % 40 == 0)
            exchange(0, offset + 5, 3, OUTCOME_APPLIED);
    }
}

/* A kill between every few exchanges: intents of a former life are in doubt. */
static void lives(void)
{
    for (int life = 0; life < 6; life++) {
        open_ledger();
        for (int64_t i = 0; i < 5; i++)
            exchange(0, life * 40 + i * 4, 3, i == 3 ? OUTCOME_UNKNOWN : OUTCOME_APPLIED);
        exchange_left(0, life * 40 + 30, 5);
        if (life < 5)
            close_ledger();
    }
}

/* The topic is created anew, and again: one history ends, another begins at 0. */
static void generations(void)
{
    open_ledger();
    for (unsigned kind = 0; kind < 4; kind++) {
        for (int64_t offset = 0; offset < 60; offset += 6) {
            order_init(&order, "orders", 1, offset, 5);
            assert_int_equal(claim_order(kind), STORE_OK);
            settle_order(OUTCOME_APPLIED);
        }
        order_init(&order, "orders", 1, 0, 1);
        order.records[0].mark = mark_of(0, kind + 1);
        assert_int_equal(desk_claim(&desk, &order), STORE_OK);
        assert_int_equal(order.verdicts[0], VERDICT_CONFLICT);
        order_deinit(&order);
        struct question conflicts = { .kind = ASK_CONFLICTS };
        assert_int_equal(desk_ask(&desk, &conflicts), STORE_OK);
        uint64_t id = conflicts.ret.conflicts[0].id;
        store_question_deinit(&conflicts);
        for (int64_t offset = 0; offset < 60; offset += 6)
            tell_run(1, offset, offset + 4, MAY_BE_APPLIED | MAY_BE_ABSENT);
        ask((struct question){ .kind = DO_DECIDE, .id = id, .is_new_topic = true });
        for (int64_t offset = 0; offset < 60; offset += 6)
            tell_run(1, offset, offset + 4, MAY_BE_ABSENT);
    }
}

/* What lies in an open window is sent again: applied, in doubt while it is on its way, applied. */
static void replay_windows(void)
{
    open_ledger();
    exchange(0, 0, 100, OUTCOME_APPLIED);
    for (int64_t first = 0; first < 100; first += 20) {
        ask((struct question){
            .kind = DO_REPLAY_OPEN, .first = first, .last = first + 14, .until_ms = UINT64_MAX });
        for (int64_t offset = first; offset < first + 15; offset += 5) {
            order_init(&order, "orders", 0, offset, 5);
            tell_run(0, offset, offset + 4, MAY_BE_APPLIED | MAY_BE_IN_DOUBT);
            for (size_t i = 0; i < 5; i++)
                order.records[i].mark = mark_of(offset + (int64_t)i, 0);
            assert_int_equal(desk_claim(&desk, &order), STORE_OK);
            assert_int_equal(order.claim.ret_replayed_count, 5);
            tell_order(MAY_BE_IN_DOUBT);
            settle_order(OUTCOME_APPLIED);
        }
    }
}

static void forgetting(void)
{
    open_ledger();
    for (int64_t first = 0; first < 240; first += 40) {
        exchange(0, first, 40, OUTCOME_APPLIED);
        tell_run(0, first + 5, first + 24, MAY_BE_APPLIED | MAY_BE_ABSENT);
        ask((struct question){
            .kind = DO_FORGET, .first = first + 5, .last = first + 24, .expect_count = 20 });
        tell_run(0, first + 5, first + 24, MAY_BE_ABSENT);
        exchange(0, first + 10, 6, OUTCOME_APPLIED);
    }
}

/* Few answers, few marks and a narrow window are kept: rings turn over, gaps are folded, chunks fill up. */
static void pruning(void)
{
    open_ledger();
    for (int64_t offset = 0; offset < 3000; offset += 100)
        exchange(0, offset, 1 + below(30), OUTCOME_APPLIED);
    for (int64_t offset = 70000; offset < 200000; offset += 65000)
        exchange(0, offset, 1, OUTCOME_APPLIED);
    for (int64_t offset = 200000; offset < 200040; offset++)
        exchange(0, offset, 1, OUTCOME_APPLIED);
    for (int64_t offset = 0; offset < 20; offset++)
        exchange(2, offset * 70000, 1, OUTCOME_APPLIED);
}

static void options_of_pruning(struct store_options *changed)
{
    changed->replies = 8;
    changed->marks = 256;
    changed->window = 70000; /* not below the strides of pruning() */
}

/* Far from each other, so that each takes room of its own.  False: no room for the claim. */
static bool scattered(int32_t partition)
{
    order_init(&order, "orders", partition, 0, 0);
    for (int64_t i = 0; i < 40; i++)
        order_add(&order, "orders", partition, i * 70000, MARK_NONE);
    enum store_status status = claim_order(0);
    assert_true(status == STORE_OK || status == STORE_FULL);
    if (status == STORE_OK) {
        settle_order(partition % 5 == 4 ? OUTCOME_UNKNOWN : OUTCOME_APPLIED);
        return true;
    }
    tell_order(MAY_BE_ABSENT);
    order_deinit(&order);
    return false;
}

/* Until no claim is taken any more; then larger, in a new life. */
static void full_and_larger(void)
{
    int32_t partition = 0;
    open_ledger();
    exchange(100, 0, 30, OUTCOME_UNKNOWN);
    while (scattered(partition))
        partition++;
    assert_in_range(partition, 3, 90);
    tell_run(100, 0, 9, MAY_BE_IN_DOUBT | MAY_BE_APPLIED); /* a decision finds room in a full ledger */
    struct question question = {
        .kind = DO_RESOLVE, .partition = 100, .first = 0, .last = 9, .is_applied = true, .expect_count = 10
    };
    ask(question);
    tell_run(100, 0, 9, MAY_BE_APPLIED);
    close_ledger();
    options.ledger_bytes_max *= 2;
    open_ledger();
    for (int i = 0; i < 4; i++)
        assert_true(scattered(partition + i));
}

static void options_of_full(struct store_options *changed)
{
    changed->ledger_bytes_max = 1024 * 1024;
}

/* Copies are taken while all goes on; they lie elsewhere. */
static void backups(void)
{
    char path[64];
    open_ledger();
    for (int64_t offset = 0; offset < 200; offset += 10) {
        exchange(0, offset, 8, OUTCOME_APPLIED);
        struct question question = { .kind = DO_BACKUP };
        snprintf(path, sizeof path, "/tmp/sinkonce-copy-%d-%d", (int)getpid(), (int)offset);
        snprintf(question.detail, sizeof question.detail, "%s", path);
        if (offset % 50 == 0) {
            assert_int_equal(desk_ask(&desk, &question), STORE_OK);
            assert_int_equal(question.ret_status, QUESTION_OK);
            unlink(path);
        }
    }
}

const struct history histories[] = {
    { "single records and batches", singles_and_batches, NULL },
    { "doubts that are resolved", doubts_resolved, NULL },
    { "several lives", lives, NULL },
    { "a topic that is created anew", generations, NULL },
    { "replay windows", replay_windows, NULL },
    { "forgetting", forgetting, NULL },
    { "pruning", pruning, options_of_pruning },
    { "a ledger that is full, and made larger", full_and_larger, options_of_full },
    { "backups in between", backups, NULL },
};
const size_t history_count = sizeof histories / sizeof histories[0];

struct store_options history_options(const struct history *history, const char *folder)
{
    struct store_options made = desk_options(folder);
    made.ledger_bytes_max = IMAGE_FILE_BYTES_MAX;
    if (history->options != NULL)
        history->options(&made);
    return made;
}

void history_record(const struct history *history, const char *folder)
{
    options = history_options(history, folder);
    subject_count = 0;
    seed = 20;
    disk_watch(folder);
    disk_record(true);
    history->run();
    disk_record(false);
    close_ledger();
    disk_watch(NULL);
}
