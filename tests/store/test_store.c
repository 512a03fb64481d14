/*
 * test_store.c - ports on several threads at once, and what only a whole store shows.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "backup.h"
#include "bed.h"

enum { THREADS = 3, STREAM = 4000, BATCH_MAX = 40 };

/* How often each record was sent; guarded by lock. */
static unsigned sent[STREAM];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct worker {
    pthread_t thread;
    unsigned seed;
    size_t waited_count;
};

static void send_new(const struct order *order)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < order->claim.record_count; i++)
        sent[order->records[i].key.offset] += order->verdicts[i] == VERDICT_NEW;
    pthread_mutex_unlock(&lock);
}

/* Delivers the stream in batches of its own cutting, each until all of it is applied. */
static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    struct desk desk = desk_open(bed.store);
    struct order *order = calloc(1, sizeof *order);
    for (int64_t at = 0; order != NULL && at < STREAM;) {
        size_t count = 1 + (size_t)rand_r(&worker->seed) % BATCH_MAX;
        count = at + (int64_t)count > STREAM ? (size_t)(STREAM - at) : count;
        order_init(order, "orders", 0, at, count);
        order->claim.wait_ms = 60000;
        if (desk_claim(&desk, order) != STORE_OK)
            abort();
        worker->waited_count += order->verdicts[0] == VERDICT_APPLIED;
        if (order->claim.ret_new_count > 0) {
            send_new(order);
            if (desk_settle(&desk, order, OUTCOME_APPLIED) != STORE_OK)
                abort();
        }
        at += (int64_t)count;
    }
    free(order);
    desk_close(&desk);
    return NULL;
}

static void test_several_threads_that_deliver_one_stream_send_each_record_once(void **state)
{
    static struct worker workers[THREADS];
    size_t duplicate_count = 0;
    (void)state;
    bed_open();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        duplicate_count += workers[i].waited_count;
    }
    for (size_t i = 0; i < STREAM; i++)
        assert_int_equal(sent[i], 1);
    assert_true(duplicate_count > 0);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.commit_record_count, 2 * STREAM); /* claimed, and settled */
    assert_int_equal(figures.interval_count, 1);
}

static void test_Z11_a_redelivery_far_below_the_window_is_dropped_and_counted(void **state)
{
    (void)state;
    bed.options.window = 65536;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    for (int64_t offset = 60000; offset <= 300000; offset += 60000)
        desk_offer(&bed.desk, "orders", 0, offset, 1, MARK_NONE, OUTCOME_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 5), RECORD_BELOW_WINDOW);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 50, 2, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    desk_state(&bed.desk, "orders", 0, 0); /* the figures are those of the batch before */
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.below_window_count, 3);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 299999, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

/* It may have come under a wrong name, or from another cluster. */
static void test_Z11_a_stray_record_far_ahead_loses_none_of_those_that_go_on(void **state)
{
    (void)state;
    bed.options.window = 65536;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 300000, 1, MARK_NONE, OUTCOME_APPLIED);
    for (int64_t offset = 10; offset < 300000; offset += 40000)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, offset, 1, MARK_NONE, OUTCOME_APPLIED),
                         VERDICT_NEW);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 5), RECORD_APPLIED);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.below_window_count, 0);
}

static void walk(int64_t first, int64_t last)
{
    for (int64_t offset = first; offset <= last; offset += 60000)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, offset, 1, MARK_NONE, OUTCOME_APPLIED),
                         VERDICT_NEW);
}

/* Of two old doubts the later one is decided first.  What comes next would fold the ground about them. */
static void test_Z11_an_old_doubt_that_is_not_applied_may_come_again_however_far_behind_it_lies(void **state)
{
    static const int64_t doubts[] = { 140000, 10 };
    (void)state;
    bed.options.window = 65536;
    bed_open();
    walk(0, 0);
    for (size_t i = 0; i < 2; i++)
        desk_offer(&bed.desk, "orders", 0, doubts[i], 3, MARK_NONE, OUTCOME_UNKNOWN);
    walk(60000, 600000);
    for (size_t i = 0; i < 2; i++) {
        struct question question = { .kind = DO_RESOLVE, .topic = "orders", .expect_count = 3 };
        question.first = doubts[i];
        question.last = doubts[i] + 2;
        assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
        walk(660000 + 60000 * (int64_t)i, 660000 + 60000 * (int64_t)i);
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, doubts[i], 3, MARK_NONE, OUTCOME_APPLIED),
                         VERDICT_NEW);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 300001), RECORD_BELOW_WINDOW); /* folding goes on */
}

static void test_Z11_what_was_on_its_way_for_long_and_is_refused_may_come_again(void **state)
{
    static struct order order;
    (void)state;
    bed.options.window = 65536;
    bed_open();
    walk(0, 0);
    order_init(&order, "orders", 0, 10, 3);
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    walk(60000, 600000);
    assert_int_equal(desk_settle(&bed.desk, &order, OUTCOME_NOT_APPLIED), STORE_OK);
    walk(660000, 660000);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 10, 3, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_a_claim_of_many_thousand_records_is_taken_whole(void **state)
{
    enum { MANY = 100000 };
    static struct record records[MANY];
    static enum verdict verdicts[MANY];
    static struct order order;
    (void)state;
    bed_open();
    order_init(&order, "orders", 0, 0, 1);
    for (size_t i = 0; i < MANY; i++)
        records[i] = (struct record){ { slice_of_text("orders"), 0, (int64_t)i }, mark_of_hash(i * 64) };
    order.claim.records = records;
    order.claim.ret_verdicts = verdicts;
    order.claim.record_count = MANY;
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    assert_int_equal(order.claim.ret_new_count, MANY);
    bed_close();
    bed_open();
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.in_doubt_records, MANY);
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = 0,
                                 .first = 10,
                                 .last = MANY - 11,
                                 .is_applied = true,
                                 .expect_count = MANY - 20 };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.in_doubt_records, 20);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, MANY / 2), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 9), RECORD_IN_DOUBT);
}

static void test_a_commit_that_waits_for_company_answers_all_the_same(void **state)
{
    (void)state;
    bed.options.commit_delay_us = 2000;
    bed_open();
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, i, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static struct question open_window(int64_t first, int64_t last, uint64_t until_ms)
{
    struct question question = { .kind = DO_REPLAY_OPEN,
                                 .topic = "orders",
                                 .first = first,
                                 .last = last,
                                 .until_ms = until_ms,
                                 .detail = "asked by a test" };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    return question;
}

static void test_a_window_and_what_it_has_sent_again_outlive_a_restart(void **state)
{
    (void)state;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 200, MARK_NONE, OUTCOME_APPLIED);
    open_window(50, 149, UINT64_MAX);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 60, 30, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    bed_close();
    bed_open();
    struct question question = { .kind = ASK_REPLAYS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.replays[0].replayed_count, 30);
    store_question_deinit(&question);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 60, 30, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 90, 30, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.replay_open_count, 1);
    assert_int_equal(figures.interval_count, 1); /* the window's own set is none */
}

/* Looked at until it is closed: nothing here depends on how long that takes. */
static void test_a_window_closes_when_its_time_is_over(void **state)
{
    struct timespec now;
    (void)state;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    clock_gettime(CLOCK_REALTIME, &now);
    open_window(0, 19, (uint64_t)now.tv_sec * 1000 + 2000);
    struct store_figures figures;
    do { /* nothing is posted meanwhile */
        usleep(10000);
        store_figures_get(bed.store, &figures);
    } while (figures.replay_open_count > 0);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 0, 20, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

static void test_an_intent_that_a_crash_left_says_so_and_keeps_what_a_probe_must_know(void **state)
{
    static struct order order;
    struct slice context = slice_of_text("id 7");
    (void)state;
    bed_open();
    order_init(&order, "orders", 0, 7, 1);
    order.claim.contexts = &context;
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    bed_close();
    bed_open();
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_string_equal(question.ret.doubts[0].detail, "sinkonce ended between sending and result, boot 1");
    store_question_deinit(&question);
    question = (struct question){ .kind = ASK_PROBES, .after_offset = -1 };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.probes[0].context_bytes, 4);
    assert_memory_equal(question.ret.probes[0].context, "id 7", 4);
    store_question_deinit(&question);
}

static size_t event_count(enum event_kind kind)
{
    struct question question = { .kind = ASK_EVENTS };
    size_t count = 0;
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    for (size_t i = 0; i < question.ret_row_count; i++)
        count += question.ret.events[i].kind == kind;
    store_question_deinit(&question);
    return count;
}

static void test_Z07_leaps_of_the_offset_are_counted_and_gaps_are_not(void **state)
{
    struct store_figures figures;
    (void)state;
    bed.options.window = 100000;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 500000, 1, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 600000, 1, MARK_NONE,
               OUTCOME_APPLIED); /* as far as the window, no further */
    desk_offer(&bed.desk, "orders", 0, 499000, 1, MARK_NONE, OUTCOME_APPLIED); /* out of order */
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.jump_count, 0);
    assert_int_equal(figures.rewind_count, 0);
    desk_offer(&bed.desk, "orders", 0, 700001, 1, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 700002, 1, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 0, 1, MARK_NONE, OUTCOME_APPLIED);
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.jump_count, 1);
    assert_int_equal(figures.rewind_count, 1);
    assert_int_equal(event_count(EVENT_JUMP), 1);
    assert_int_equal(event_count(EVENT_REWIND), 1);
}

static void test_L16_a_backup_made_while_records_come_opens_as_a_ledger(void **state)
{
    static struct order orders[50];
    char path[160], copy_folder[160];
    (void)state;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 1000, MARK_NONE, OUTCOME_APPLIED);
    bed_path("copy", copy_folder);
    assert_int_equal(mkdir(copy_folder, 0700), 0);
    struct question question = { .kind = DO_BACKUP };
    snprintf(question.detail, sizeof question.detail, "%s/ledger.mdb", copy_folder);
    for (int64_t i = 0; i < 50; i++) {
        order_init(&orders[i], "orders", 0, 1000 + i, 1);
        desk_post(&bed.desk, &orders[i]);
    }
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    for (int64_t i = 0; i < 50; i++)
        desk_pump(&bed.desk, &orders[i].is_answered);
    assert_int_equal(event_count(EVENT_BACKUP), 1);
    bed_close();
    struct store_options options = bed.options;
    options.folder = copy_folder;
    options.is_missing_refused = true;
    assert_int_equal(store_open(&options, &bed.store, bed.why, sizeof bed.why), STORE_OPENED);
    bed.desk = desk_open(bed.store);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 999), RECORD_APPLIED);
    bed_close();
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "sinkonce.lock" };
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%.120s/%s", copy_folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(copy_folder), 0);
}

static void test_L16_one_backup_after_the_other_and_none_over_a_file(void **state)
{
    char path[160], folder[160];
    struct question question = { .kind = DO_BACKUP };
    (void)state;
    bed_open();
    bed_path("backup.mdb", path);
    snprintf(question.detail, sizeof question.detail, "%s", path);
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_non_null(strstr(question.ret_why, "exists already; nothing was written"));
    bed_path("none/backup.mdb", folder);
    snprintf(question.detail, sizeof question.detail, "%s", folder);
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    assert_non_null(strstr(question.ret_why, "cannot create"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chdir(bed.folder), 0);
    snprintf(question.detail, sizeof question.detail, "backup.mdb"); /* beside where the program runs */
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_L16_a_backup_beside_another_is_refused_for_that_and_for_no_file(void **state)
{
    struct question running = { .kind = DO_BACKUP }, question = { .kind = DO_BACKUP };
    struct backup backup = { .question = &running };
    (void)state;
    assert_false(backup_start(&backup, &question));
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    assert_non_null(strstr(question.ret_why, "another backup is being written"));
    assert_ptr_equal(backup.question, &running);
}

static void forget(int64_t first, int64_t last, const char *topic)
{
    struct question question = { .kind = DO_FORGET, .first = first, .last = last };
    snprintf(question.topic, sizeof question.topic, "%s", topic);
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
}

static void test_what_names_nothing_forgets_nothing(void **state)
{
    (void)state;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    forget(9, 0, "orders");
    forget(-1, 9, "orders");
    forget(9, -1, "orders");
    forget(0, 9, "refunds");
    forget(0, 9, "");
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 0), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 9), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, -1), RECORD_ABSENT);
    store_port_free(NULL);
    store_close(NULL);
}

static void test_answers_that_cannot_be_given_again_are_not_kept(void **state)
{
    static struct order order;
    static char bytes[5000];
    memset(bytes, 'x', sizeof bytes);
    const struct stored_reply replies[] = {
        { 0, slice_of(NULL, 0), slice_of(NULL, 0) },
        { 99, slice_of_text("t"), slice_of_text("b") },
        { 600, slice_of_text("t"), slice_of_text("b") },
        { 200, slice_of(NULL, 0), slice_of(NULL, 0) }, /* the one that is made up */
        { 200, slice_of(bytes, 256), slice_of_text("b") },
        { 200, slice_of_text("t"), slice_of(bytes, sizeof bytes) },
        { 200, slice_of_text("t"), slice_of(NULL, 0) }, /* from here on they are kept */
        { 200, slice_of(NULL, 0), slice_of_text("b") },
        { 599, slice_of(bytes, 255), slice_of(bytes, 4096) },
        { 100, slice_of(NULL, 0), slice_of(NULL, 0) },
    };
    (void)state;
    bed_open();
    for (int64_t i = 0; i < 10; i++) {
        order_init(&order, "orders", 0, i, 1);
        assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
        order.settlement.reply = replies[i];
        assert_int_equal(desk_settle(&bed.desk, &order, OUTCOME_APPLIED), STORE_OK);
        order_init(&order, "orders", 0, i, 1);
        assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
        assert_int_equal(order.verdicts[0], VERDICT_APPLIED);
        assert_int_equal(order.claim.ret_reply.status, i < 6 ? 0 : replies[i].status);
        assert_true(i < 6 || slice_equals(order.claim.ret_reply.body, replies[i].body));
        assert_true(i < 6 || slice_equals(order.claim.ret_reply.content_type, replies[i].content_type));
    }
    order_deinit(&order);
}

/* One that waits in more partitions than are remembered comes first in all. */
static void test_a_claim_that_waits_in_many_partitions_is_not_overtaken(void **state)
{
    enum { MANY = 20 };
    static struct order flight, wide, later;
    (void)state;
    bed_open();
    order_init(&flight, "orders", 0, 0, 1);
    assert_int_equal(desk_claim(&bed.desk, &flight), STORE_OK);
    order_init(&wide, "orders", 0, 0, 1);
    for (int32_t i = 1; i < MANY; i++)
        order_add(&wide, "orders", i, 0, MARK_NONE);
    wide.claim.wait_ms = 3600000;
    desk_post(&bed.desk, &wide);
    order_init(&later, "orders", MANY - 1, 0, 1);
    later.claim.wait_ms = 3600000;
    desk_post(&bed.desk, &later);
    assert_int_equal(desk_state(&bed.desk, "orders", MANY - 1, 0), RECORD_ABSENT); /* both wait */
    assert_false(wide.is_answered || later.is_answered);
    assert_int_equal(desk_settle(&bed.desk, &flight, OUTCOME_APPLIED), STORE_OK);
    desk_pump(&bed.desk, &wide.is_answered);
    assert_int_equal(wide.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(wide.verdicts[MANY - 1], VERDICT_NEW);
    assert_int_equal(desk_settle(&bed.desk, &wide, OUTCOME_APPLIED), STORE_OK);
    desk_pump(&bed.desk, &later.is_answered);
    assert_int_equal(later.verdicts[0], VERDICT_APPLIED);
    order_deinit(&flight);
    order_deinit(&wide);
    order_deinit(&later);
}

static struct question answer_to(struct question question)
{
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    return question;
}

static void assert_rows(struct question question, size_t count, size_t row_count)
{
    question = answer_to(question);
    assert_int_equal(question.ret_count, count);
    assert_int_equal(question.ret_row_count, row_count);
    store_question_deinit(&question);
}

static void test_lists_are_cut_and_filtered_as_they_are_asked_for(void **state)
{
    (void)state;
    bed_open();
    for (int32_t i = 0; i < 3; i++)
        desk_offer(&bed.desk, "orders", i, 10, 2, MARK_NONE, OUTCOME_UNKNOWN);
    desk_offer(&bed.desk, "refunds", 0, 10, 2, MARK_NONE, OUTCOME_UNKNOWN);
    assert_rows((struct question){ .kind = ASK_DOUBTS }, 4, 4);
    assert_rows((struct question){ .kind = ASK_DOUBTS, .row_count_max = 1 }, 4, 1);
    assert_rows((struct question){ .kind = ASK_DOUBTS, .after_id = 1 }, 3, 3);
    assert_rows((struct question){ .kind = ASK_DOUBTS, .topic = "refunds" }, 1, 1);
    assert_rows((struct question){ .kind = ASK_DOUBTS, .topic = "others" }, 0, 0);
    assert_rows((struct question){ .kind = ASK_EVENTS, .after_id = UINT64_MAX }, 0, 0);
    struct question probes =
        answer_to((struct question){ .kind = ASK_PROBES, .topic = "refunds", .after_offset = -1 });
    assert_int_equal(probes.ret_row_count, 2);
    assert_int_equal(probes.ret.probes[1].offset, 11);
    probes.after_id = probes.ret.probes[0].doubt_id;
    probes.after_offset = 10;
    store_question_deinit(&probes);
    probes = answer_to(probes);
    assert_int_equal(probes.ret_row_count, 1);
    assert_int_equal(probes.ret.probes[0].offset, 11);
    store_question_deinit(&probes);
    assert_rows(
        (struct question){ .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1, .since_ms = 1 }, 0,
        0);
    assert_rows((struct question){ .kind = DO_RESOLVE, .partition = 1, .first = 12, .last = 20 }, 0, 0);
    assert_rows((struct question){ .kind = DO_RESOLVE, .partition = 1, .first = 0, .last = 9 }, 0, 0);
    assert_rows(
        (struct question){ .kind = DO_RESOLVE, .partition = 1, .first = 11, .last = 20, .expect_count = 1 },
        1, 0);
    assert_int_equal(desk_state(&bed.desk, "orders", 1, 10), RECORD_IN_DOUBT);
    assert_int_equal(desk_state(&bed.desk, "orders", 1, 11), RECORD_ABSENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_several_threads_that_deliver_one_stream_send_each_record_once),
        TEST(test_Z11_a_redelivery_far_below_the_window_is_dropped_and_counted),
        TEST(test_Z11_a_stray_record_far_ahead_loses_none_of_those_that_go_on),
        TEST(test_Z11_an_old_doubt_that_is_not_applied_may_come_again_however_far_behind_it_lies),
        TEST(test_Z11_what_was_on_its_way_for_long_and_is_refused_may_come_again),
        TEST(test_a_claim_of_many_thousand_records_is_taken_whole),
        TEST(test_a_window_and_what_it_has_sent_again_outlive_a_restart),
        TEST(test_a_window_closes_when_its_time_is_over),
        TEST(test_an_intent_that_a_crash_left_says_so_and_keeps_what_a_probe_must_know),
        TEST(test_Z07_leaps_of_the_offset_are_counted_and_gaps_are_not),
        TEST(test_L16_a_backup_made_while_records_come_opens_as_a_ledger),
        TEST(test_L16_one_backup_after_the_other_and_none_over_a_file),
        TEST(test_L16_a_backup_beside_another_is_refused_for_that_and_for_no_file),
        TEST(test_what_names_nothing_forgets_nothing),
        TEST(test_answers_that_cannot_be_given_again_are_not_kept),
        TEST(test_a_claim_that_waits_in_many_partitions_is_not_overtaken),
        TEST(test_lists_are_cut_and_filtered_as_they_are_asked_for),
        TEST(test_a_commit_that_waits_for_company_answers_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
