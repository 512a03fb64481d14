/*
 * test_ledger.c - the ledger's thread when the disk fails or is full: L-01, L-02, L-04, L-05, L-06, L-07, L-11.
 *
 * No test waits for a time: it goes on asking until the ledger has helped itself.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "bed.h"
#include "disk.h"
#include "forget_orders.h"

static struct order a, b;

static int setup(void **state)
{
    order_init(&a, "orders", 0, 0, 0);
    order_init(&b, "orders", 0, 0, 0);
    int result = bed_setup(state);
    disk_watch(bed.folder);
    return result;
}

static int teardown(void **state)
{
    disk_heal();
    disk_watch(NULL);
    order_deinit(&a);
    order_deinit(&b);
    bed_close();
    umount(bed.folder); /* one test mounts something there */
    return bed_teardown(state);
}

static enum store_status claim(struct order *order, int64_t offset)
{
    order_init(order, "orders", 0, offset, 1);
    return desk_claim(&bed.desk, order);
}

static void apply(int64_t offset)
{
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, offset, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

/* Ask until the ledger answers again, and not only that somebody holds the record. */
static enum verdict claim_at_last(struct order *order, int64_t offset)
{
    while (claim(order, offset) != STORE_OK || order->verdicts[0] == VERDICT_IN_FLIGHT)
        usleep(5000);
    return order->verdicts[0];
}

static uint64_t error_count(void)
{
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    return figures.error_count;
}

/* ---- a disk that fails ------------------------------------------------------------------------------------------ */

static void claim_meets(enum disk_call call)
{
    bed_open();
    apply(1);
    disk_fail(call, 1, 1, EIO);
    assert_int_equal(claim(&a, 2), STORE_FAILED);
    assert_int_equal(disk_failure_count(), 1);
    assert_int_equal(error_count(), 1);
    assert_int_equal(claim_at_last(&b, 2), VERDICT_NEW); /* what the failed claim left has been released */
    assert_int_equal(desk_settle(&bed.desk, &b, OUTCOME_APPLIED), STORE_OK);
    bed_close();
    bed_open();
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 1), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 2), RECORD_APPLIED);
}

static void test_L01_a_claim_whose_flush_fails_sends_nothing_and_is_released(void **state)
{
    (void)state;
    claim_meets(DISK_SYNC);
}

static void test_L01_a_claim_whose_page_cannot_be_written_is_released(void **state)
{
    (void)state;
    claim_meets(DISK_DATA_WRITE);
}

static void test_L02_a_claim_whose_meta_page_fails_is_released(void **state)
{
    (void)state;
    claim_meets(DISK_META_WRITE);
}

static void settlement_meets(enum disk_call call, unsigned count)
{
    bed_open();
    assert_int_equal(claim(&a, 7), STORE_OK);
    a.settlement.reply = (struct stored_reply){ 201, slice_of_text("t"), slice_of_text("body") };
    disk_fail(call, 1, count, EIO);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_FAILED);
    order_init(&a, "scribbled over", 1, 1, 1); /* the store has its own copy */
    assert_int_equal(claim_at_last(&b, 7), VERDICT_APPLIED);
    assert_int_equal(b.claim.ret_reply.status, count == 0 ? 0 : b.claim.ret_reply.status);
    assert_true(disk_failure_count() >= 1);
    bed_close();
    bed_open();
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 7), RECORD_APPLIED);
}

static void test_L01_S2_an_outcome_whose_flush_fails_is_written_later_by_the_ledger_itself(void **state)
{
    (void)state;
    settlement_meets(DISK_SYNC, 1);
}

static void test_L02_S2_an_outcome_whose_meta_page_fails_is_written_later(void **state)
{
    (void)state;
    settlement_meets(DISK_META_WRITE, 1);
}

static void test_S2_outcomes_that_are_owed_are_written_in_their_order(void **state)
{
    (void)state;
    bed_open();
    assert_int_equal(claim(&a, 7), STORE_OK);
    assert_int_equal(claim(&b, 8), STORE_OK);
    disk_fail(DISK_SYNC, 1, 1000000, EIO);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_FAILED);
    b.settlement.cause = DOUBT_STATUS;
    assert_int_equal(desk_settle(&bed.desk, &b, OUTCOME_UNKNOWN), STORE_FAILED);
    disk_heal();
    bed_close();
    bed_open();
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 7), RECORD_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 8), RECORD_IN_DOUBT);
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.doubts[0].cause, DOUBT_STATUS); /* and not that of a crash */
    store_question_deinit(&question);
}

static void test_L01_an_outcome_outlives_several_failures(void **state)
{
    (void)state;
    settlement_meets(DISK_SYNC, 3);
}

static void test_S1_while_the_disk_fails_nothing_is_answered_from_the_ledger(void **state)
{
    (void)state;
    bed_open();
    apply(1);
    disk_fail(DISK_SYNC, 1, 1000000, EIO);
    assert_int_equal(claim(&a, 2), STORE_FAILED);
    for (int i = 0; i < 5; i++)
        assert_int_equal(claim(&b, 1), STORE_FAILED); /* not even what is known to be applied */
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_FAILED);
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    store_question_deinit(&question);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_true(figures.is_failing);
    disk_heal();
    assert_int_equal(claim_at_last(&b, 1), VERDICT_APPLIED);
    store_figures_get(bed.store, &figures);
    assert_false(figures.is_failing);
    assert_int_equal(figures.refusal_count, 1);
    assert_true(figures.refusal_ms > 0);
    assert_string_equal(figures.failure, "a commit failed: Input/output error");
    question = (struct question){ .kind = ASK_EVENTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret.events[question.ret_row_count - 1].kind, EVENT_DISK_ERROR);
    store_question_deinit(&question);
}

static struct question ask_to_forget(uint64_t expect_count)
{
    struct question question = forget_all_orders(expect_count);
    (void)desk_ask(&bed.desk, &question);
    return question;
}

static void test_L02_a_topic_half_forgotten_when_the_disk_fails_goes_with_the_next_try(void **state)
{
    enum { PARTITIONS = 500 };
    (void)state;
    bed_open();
    for (int32_t i = 0; i < PARTITIONS; i++)
        order_add(&a, "orders", i, 0, MARK_NONE);
    assert_int_equal(desk_claim(&bed.desk, &a), STORE_OK);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_OK);
    disk_fail(DISK_META_WRITE, 2, 1, EIO);
    assert_int_equal(ask_to_forget(PARTITIONS).ret_status, QUESTION_FAILED);
    assert_int_equal(disk_failure_count(), 1);
    claim_at_last(&b, 1);
    assert_int_equal(desk_settle(&bed.desk, &b, OUTCOME_NOT_SENT), STORE_OK);
    struct question question = ask_to_forget(0);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_in_range(question.ret_count, 1, PARTITIONS - 1);
    question = ask_to_forget(question.ret_count);
    assert_int_equal(question.ret_status, QUESTION_OK);
    question = ask_to_forget(0);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
}

static struct question ask_to_resolve(uint64_t expect_count)
{
    struct question question = { .kind = DO_RESOLVE,
                                 .partition = -1,
                                 .first = -1,
                                 .last = -1,
                                 .expect_count = expect_count,
                                 .detail = "from a test" };
    (void)desk_ask(&bed.desk, &question);
    return question;
}

static void test_L02_doubts_half_resolved_when_the_disk_fails_go_with_the_next_try(void **state)
{
    enum { DOUBTS = DESK_RECORDS_MAX };
    (void)state;
    bed_open();
    for (int64_t i = 0; i < DOUBTS; i++)
        order_add(&a, "orders", 0, 2 * i, MARK_NONE);
    assert_int_equal(desk_claim(&bed.desk, &a), STORE_OK);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_UNKNOWN), STORE_OK);
    disk_fail(DISK_META_WRITE, 2, 1, EIO);
    assert_int_equal(ask_to_resolve(DOUBTS).ret_status, QUESTION_FAILED);
    assert_int_equal(disk_failure_count(), 1);
    claim_at_last(&b, 1);
    assert_int_equal(desk_settle(&bed.desk, &b, OUTCOME_NOT_SENT), STORE_OK);
    struct question question = ask_to_resolve(0);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_in_range(question.ret_count, 1, DOUBTS - 1);
    question = ask_to_resolve(question.ret_count);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(ask_to_resolve(0).ret_status, QUESTION_OK);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 0), RECORD_ABSENT);
}

static void test_a_waiting_delivery_is_told_when_the_disk_fails(void **state)
{
    static struct order c;
    (void)state;
    bed_open();
    assert_int_equal(claim(&a, 11), STORE_OK);
    order_init(&b, "orders", 0, 11, 1);
    b.claim.wait_ms = 3600000;
    desk_post(&bed.desk, &b);
    disk_fail(DISK_SYNC, 1, 1000000, EIO);
    assert_int_equal(claim(&c, 2), STORE_FAILED);
    while (!b.is_answered)
        claim(&c, 3);
    assert_int_equal(b.status, STORE_FAILED);
    disk_heal();
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_FAILED); /* still failing: kept */
    assert_int_equal(claim_at_last(&b, 11), VERDICT_APPLIED);
}

/* ---- no room ---------------------------------------------------------------------------------------------------- */

enum { FAR = 70000 /* a row of its own for each record */ };

static struct stored_reply long_answer(void)
{
    static char body[3000];
    memset(body, 'x', sizeof body);
    return (struct stored_reply){ 201, slice_of_text("text/plain"), slice_of(body, sizeof body) };
}

/* Records STEP offsets apart, until there is no room; returns how many were applied. */
static int64_t fill(enum store_status *ret_status, int64_t step, struct stored_reply answer)
{
    for (int64_t i = 0;; i++) {
        *ret_status = claim(&b, i * step);
        if (*ret_status != STORE_OK || i == 100000)
            return i;
        b.settlement.reply = answer;
        assert_int_equal(desk_settle(&bed.desk, &b, OUTCOME_APPLIED), STORE_OK);
    }
}

static void test_L04_Z14_a_full_ledger_stops_claims_and_nothing_else(void **state)
{
    enum store_status status;
    static struct order flights[20];
    (void)state;
    bed.options.ledger_bytes_max = 256 * 1024;
    bed.options.window = 1000000000000;
    bed_open();
    for (int64_t i = 0; i < 20; i++) {
        order_init(&flights[i], "orders", 1, i * 70000, 1);
        assert_int_equal(desk_claim(&bed.desk, &flights[i]), STORE_OK);
    }
    int64_t applied_count = fill(&status, FAR, (struct stored_reply){ 0 });
    assert_int_equal(status, STORE_FULL);
    assert_true(applied_count > 50);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_true(figures.is_full);
    assert_true(figures.used_bytes <= figures.max_bytes);
    assert_int_equal(claim(&a, FAR), STORE_OK);
    assert_int_equal(a.verdicts[0], VERDICT_APPLIED);
    for (size_t i = 0; i < 20; i++) /* what was claimed can still be settled */
        assert_int_equal(desk_settle(&bed.desk, &flights[i], i % 2 == 0 ? OUTCOME_APPLIED : OUTCOME_UNKNOWN),
                         STORE_OK);
    struct question question = {
        .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1, .is_applied = true, .expect_count = 10
    };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    bed_close();
    bed.options.ledger_bytes_max = 16 * 1024 * 1024;
    bed_open();
    for (int64_t i = 0; i < applied_count; i++)
        assert_int_equal(desk_state(&bed.desk, "orders", 0, i * FAR), RECORD_APPLIED);
    assert_int_equal(claim(&a, applied_count * FAR), STORE_OK);
    assert_int_equal(a.verdicts[0], VERDICT_NEW);
}

static void no_room_left(int error)
{
    bed_open();
    apply(1);
    assert_int_equal(claim(&a, 2), STORE_OK);
    disk_fail(DISK_DATA_WRITE, 1, 1000000, error);
    assert_int_equal(claim(&b, 3), STORE_FULL);
    assert_int_equal(claim(&b, 1), STORE_OK); /* what is committed is still answered */
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_FAILED);
    assert_int_equal(claim(&b, 1), STORE_OK);
    struct question question = { .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1 };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK); /* it changes nothing */
    disk_heal();
    assert_int_equal(claim_at_last(&b, 2), VERDICT_APPLIED);
    while (claim(&b, 3) != STORE_OK)
        usleep(5000);
    assert_int_equal(b.verdicts[0], VERDICT_NEW);
}

static void test_L04_a_ledger_without_any_room_left_keeps_its_promises(void **state)
{
    (void)state;
    no_room_left(ENOSPC);
}

static void test_L04_a_quota_that_is_used_up_is_no_failing_disk(void **state)
{
    (void)state;
    no_room_left(EDQUOT);
}

static void test_L04_a_file_that_may_grow_no_more_is_no_failing_disk(void **state)
{
    (void)state;
    no_room_left(EFBIG);
}

static void write_filler(const char *path)
{
    static char bytes[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, bytes, sizeof bytes) > 0)
        ;
    close(fd);
}

static void test_L04_kept_answers_make_room_before_a_claim_is_refused(void **state)
{
    static char body[4000];
    (void)state;
    memset(body, 'x', sizeof body);
    bed.options.ledger_bytes_max = 1024 * 1024;
    bed.options.replies = 1000000;
    bed_open();
    for (int64_t i = 0; i < 400; i++) {
        assert_int_equal(claim(&a, i), STORE_OK);
        assert_int_equal(a.verdicts[0], VERDICT_NEW);
        a.settlement.reply = (struct stored_reply){ 201, slice_of_text("t"), slice_of(body, sizeof body) };
        assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_OK);
    }
    assert_int_equal(error_count(), 0);
    assert_int_equal(claim(&b, 0), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(b.claim.ret_reply.status, 0);
    assert_int_equal(claim(&b, 380), STORE_OK); /* the newer ones are kept */
    assert_int_equal(b.claim.ret_reply.status, 201);
}

/* A ledger in which 1 is applied and 2 claimed by A, on a file system of SIZE that PATH has filled. */
static void fill_small_disk(const char *size, char path[160])
{
    if (mount("none", bed.folder, "tmpfs", 0, size) != 0) {
        print_message("skipped: a small file system cannot be mounted: %s\n", strerror(errno));
        skip();
    }
    bed_open();
    apply(1);
    assert_int_equal(claim(&a, 2), STORE_OK);
    bed_path("filler", path);
    write_filler(path);
}

static void test_L05_L06_a_full_disk_refuses_claims_and_the_process_lives(void **state)
{
    char path[160];
    (void)state;
    fill_small_disk("size=2m", path);
    enum store_status status;
    fill(&status, 1000, long_answer());
    assert_int_equal(status, STORE_FULL);
    assert_int_equal(claim(&b, 1), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_OK); /* out of the reserve */
    assert_int_equal(claim(&b, 1000), STORE_OK);
    assert_int_equal(b.claim.ret_reply.status, 201); /* no answer was thrown away for nothing */
    unlink(path);
    while (claim(&b, 5001) != STORE_OK)
        usleep(5000);
    assert_int_equal(b.verdicts[0], VERDICT_NEW);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 2), RECORD_APPLIED);
}

/* The library calls a write that was cut short an I/O error, whatever cut it. */
static void cut_short_on_a_full_disk(const char *size)
{
    struct store_figures figures;
    char path[160];
    fill_small_disk(size, path);
    disk_fail(DISK_DATA_WRITE, 1, 1000000, DISK_SHORT);
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_FAILED);
    store_figures_get(bed.store, &figures);
    assert_true(figures.is_full && figures.is_disk_full && !figures.is_failing);
    assert_int_equal(claim(&b, 1), STORE_OK); /* what is committed is still answered */
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(claim(&b, 3), STORE_FULL);
    unlink(path);
    disk_heal();
    assert_int_equal(claim_at_last(&b, 2), VERDICT_APPLIED);
    while (claim(&b, 3) != STORE_OK)
        usleep(5000);
    store_figures_get(bed.store, &figures);
    assert_false(figures.is_full || figures.is_disk_full);
    assert_true(figures.refusal_count >= 1);
    assert_non_null(strstr(figures.failure, "No space left on device"));
}

static void test_L05_a_write_that_is_cut_short_on_a_full_disk_is_no_failing_disk(void **state)
{
    (void)state;
    cut_short_on_a_full_disk("size=2m");
}

/* A commit that is larger than the reserve: the blocks that were kept ahead say nothing about the disk. */
static void test_L05_a_full_disk_is_told_although_the_reserve_holds_more_than_one_write(void **state)
{
    (void)state;
    cut_short_on_a_full_disk("size=8m");
}

static void test_L01_a_write_that_is_cut_short_where_there_is_room_is_a_failing_disk(void **state)
{
    struct store_figures figures;
    (void)state;
    bed_open();
    apply(1);
    disk_fail(DISK_DATA_WRITE, 1, 1000000, DISK_SHORT);
    assert_int_equal(claim(&a, 2), STORE_FAILED);
    store_figures_get(bed.store, &figures);
    assert_true(figures.is_failing && !figures.is_full && !figures.is_disk_full);
    assert_int_equal(claim(&b, 1), STORE_FAILED);
    disk_heal();
    assert_int_equal(claim_at_last(&b, 2), VERDICT_NEW);
}

/* ---- a file that is not there any more -------------------------------------------------------------------------- */

/* Away with the ledger's file while it runs, and perhaps another one in its place. */
static void loses_its_file(bool is_replaced)
{
    char path[160], elsewhere[160];
    bed_open();
    apply(1);
    bed_path("ledger.mdb", path);
    bed_path("elsewhere", elsewhere);
    assert_int_equal(rename(path, elsewhere), 0);
    if (is_replaced)
        close(open(path, O_RDWR | O_CREAT, 0600));
    assert_int_equal(claim(&a, 2), STORE_FAILED);
    for (int i = 0; i < 100; i++) { /* no new ledger, which would know nothing, takes its place */
        assert_int_equal(claim(&a, 1), STORE_FAILED);
        usleep(5000);
    }
    assert_int_equal(access(path, F_OK) == 0, is_replaced);
    assert_int_equal(rename(elsewhere, path), 0);
    assert_int_equal(claim_at_last(&b, 1), VERDICT_APPLIED);
    assert_int_equal(claim_at_last(&b, 2), VERDICT_NEW);
}

static void test_L07_nothing_is_promised_on_a_file_that_was_removed(void **state)
{
    (void)state;
    loses_its_file(false);
}

static void test_L07_nothing_is_promised_on_a_file_that_was_replaced(void **state)
{
    (void)state;
    loses_its_file(true);
}

static void test_L11_no_reader_lets_the_file_grow(void **state)
{
    struct stat file;
    char path[160];
    (void)state;
    bed_open();
    for (int i = 0; i < 1500; i++)
        desk_offer(&bed.desk, "orders", 0, i % 5, 1, MARK_NONE, OUTCOME_NOT_APPLIED);
    bed_path("ledger.mdb", path);
    assert_int_equal(stat(path, &file), 0);
    assert_true(file.st_size < 512 * 1024);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_L01_a_claim_whose_flush_fails_sends_nothing_and_is_released),
        TEST(test_L01_a_claim_whose_page_cannot_be_written_is_released),
        TEST(test_L02_a_claim_whose_meta_page_fails_is_released),
        TEST(test_L01_S2_an_outcome_whose_flush_fails_is_written_later_by_the_ledger_itself),
        TEST(test_L02_S2_an_outcome_whose_meta_page_fails_is_written_later),
        TEST(test_S2_outcomes_that_are_owed_are_written_in_their_order),
        TEST(test_L01_an_outcome_outlives_several_failures),
        TEST(test_S1_while_the_disk_fails_nothing_is_answered_from_the_ledger),
        TEST(test_L02_a_topic_half_forgotten_when_the_disk_fails_goes_with_the_next_try),
        TEST(test_L02_doubts_half_resolved_when_the_disk_fails_go_with_the_next_try),
        TEST(test_a_waiting_delivery_is_told_when_the_disk_fails),
        TEST(test_L04_Z14_a_full_ledger_stops_claims_and_nothing_else),
        TEST(test_L04_a_ledger_without_any_room_left_keeps_its_promises),
        TEST(test_L04_a_quota_that_is_used_up_is_no_failing_disk),
        TEST(test_L04_a_file_that_may_grow_no_more_is_no_failing_disk),
        TEST(test_L04_kept_answers_make_room_before_a_claim_is_refused),
        TEST(test_L05_L06_a_full_disk_refuses_claims_and_the_process_lives),
        TEST(test_L05_a_write_that_is_cut_short_on_a_full_disk_is_no_failing_disk),
        TEST(test_L05_a_full_disk_is_told_although_the_reserve_holds_more_than_one_write),
        TEST(test_L01_a_write_that_is_cut_short_where_there_is_room_is_a_failing_disk),
        TEST(test_L07_nothing_is_promised_on_a_file_that_was_removed),
        TEST(test_L07_nothing_is_promised_on_a_file_that_was_replaced),
        TEST(test_L11_no_reader_lets_the_file_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
