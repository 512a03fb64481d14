/*
 * contract.c - what include/store.h promises, told to whoever implements it: linked with the real store and with the
 * fake of the other tests, so that the fake stays honest.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "desk.h"
#include "forget_orders.h"

static char folder[64];
static struct store *store;
static struct desk desk;
static struct order a, b;

static void begin(const struct store_options *changes)
{
    char why[256];
    struct store_options options = changes == NULL ? desk_options(folder) : *changes;
    assert_int_equal(store_open(&options, &store, why, sizeof why), STORE_OPENED);
    desk = desk_open(store);
}

static void begin_with_policy(enum doubt_policy policy)
{
    struct store_options options = desk_options(folder);
    options.policy = policy;
    begin(&options);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sinkonce-contract-XXXXXX");
    order_init(&a, "none", 0, 0, 0);
    order_init(&b, "none", 0, 0, 0);
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "sinkonce.lock" };
    (void)state;
    order_deinit(&a);
    order_deinit(&b);
    desk_close(&desk);
    store_close(store);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void claim_new(struct order *order, int64_t first, size_t count)
{
    order_init(order, "orders", 3, first, count);
    assert_int_equal(desk_claim(&desk, order), STORE_OK);
    assert_int_equal(order->claim.ret_new_count, count);
}

/* ---- one record ------------------------------------------------------------------------------------------------- */

static void test_a_record_is_new_once_and_applied_ever_after(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 41, 1);
    assert_int_equal(a.verdicts[0], VERDICT_NEW);
    assert_int_not_equal(a.claim.ret_claim_id, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 41), RECORD_IN_FLIGHT);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_state(&desk, "orders", 3, 41), RECORD_APPLIED);
    for (int i = 0; i < 3; i++) {
        order_init(&b, "orders", 3, 41, 1);
        assert_int_equal(desk_claim(&desk, &b), STORE_OK);
        assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
        assert_int_equal(b.claim.ret_new_count, 0);
        assert_int_equal(b.claim.ret_claim_id, 0);
    }
}

static void test_the_kept_answer_comes_with_the_duplicate(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 7, 1);
    a.settlement.reply =
        (struct stored_reply){ 201, slice_of_text("application/json"), slice_of_text("{\"id\":\"x1\"}") };
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    order_init(&b, "orders", 3, 7, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_reply.status, 201);
    assert_true(slice_equals_text(b.claim.ret_reply.content_type, "application/json"));
    assert_true(slice_equals_text(b.claim.ret_reply.body, "{\"id\":\"x1\"}"));
}

static void test_without_an_answer_there_is_none_to_give(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(desk_offer(&desk, "orders", 3, 7, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    order_init(&b, "orders", 3, 7, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_reply.status, 0);
}

static void test_A1_A7_a_record_refused_or_not_sent_is_free_again(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_NOT_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_state(&desk, "orders", 3, 5), RECORD_ABSENT);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_NOT_SENT), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_topics_and_partitions_do_not_share_offsets(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 4, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "order", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders2", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

static void test_the_highest_and_lowest_offsets_of_kafka_are_ordinary(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(desk_offer(&desk, "t", INT32_MAX, INT64_MAX, 1, MARK_NONE, OUTCOME_APPLIED),
                     VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "t", INT32_MAX, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "t", INT32_MAX, INT64_MAX, 1, MARK_NONE, OUTCOME_APPLIED),
                     VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "t", INT32_MAX, INT64_MAX - 1, 1, MARK_NONE, OUTCOME_APPLIED),
                     VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "t", INT32_MAX, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

/* ---- how it is told --------------------------------------------------------------------------------------------- */

static void test_done_is_never_called_from_inside_store_claim(void **state)
{
    (void)state;
    begin(NULL);
    order_init(&a, "orders", 3, 1, 1);
    desk_post(&desk, &a);
    assert_false(a.is_answered);
    desk_pump(&desk, &a.is_answered);
    desk_post_settle(&desk, &a);
    assert_false(a.is_settled);
    desk_pump(&desk, &a.is_settled);
}

static void test_postings_of_one_port_are_applied_in_order(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    a.outcomes[0] = OUTCOME_APPLIED;
    order_init(&b, "orders", 3, 1, 1);
    desk_post_settle(&desk, &a);
    desk_post(&desk, &b);
    desk_pump(&desk, &b.is_answered);
    assert_true(a.is_settled);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
}

static void test_two_ports_see_one_ledger(void **state)
{
    (void)state;
    begin(NULL);
    struct desk other = desk_open(store);
    claim_new(&a, 1, 1);
    order_init(&b, "orders", 3, 1, 1);
    assert_int_equal(desk_claim(&other, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_IN_FLIGHT);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_claim(&other, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    desk_close(&other);
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void test_D2_a_second_delivery_waits_for_the_flight_and_is_applied(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    order_init(&b, "orders", 3, 1, 1);
    b.claim.wait_ms = 60000;
    desk_post(&desk, &b);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.status, STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
}

static void test_a_delivery_that_waited_for_a_refused_one_may_send(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    order_init(&b, "orders", 3, 1, 1);
    b.claim.wait_ms = 60000;
    desk_post(&desk, &b);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_NOT_APPLIED), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.verdicts[0], VERDICT_NEW);
    assert_int_equal(b.claim.ret_new_count, 1);
    assert_int_not_equal(b.claim.ret_claim_id, a.claim.ret_claim_id);
}

static void test_a_delivery_that_waited_long_enough_is_told_so(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    order_init(&b, "orders", 3, 1, 1);
    b.claim.wait_ms = 30;
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_IN_FLIGHT);
    assert_int_equal(b.claim.ret_new_count, 0);
}

static void test_a_waiting_delivery_holds_nothing(void **state)
{
    static struct order c;
    static const struct record mixed[] = { { { { "orders", 6 }, 3, 1 }, MARK_NONE },
                                           { { { "orders", 6 }, 4, 7 }, MARK_NONE } };
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    order_init(&b, "orders", 3, 1, 2);
    b.claim.records = mixed; /* 1 of partition 3 is in flight, 7 of partition 4 is free */
    b.claim.wait_ms = 60000;
    desk_post(&desk, &b);
    order_init(&c, "orders", 4, 6, 1);
    assert_int_equal(desk_claim(&desk, &c), STORE_OK);
    assert_int_equal(c.verdicts[0], VERDICT_NEW);
    assert_int_equal(desk_settle(&desk, &c, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(b.verdicts[1], VERDICT_NEW);
}

/* What came later must not reach the target first. */
static void test_a_waiting_delivery_is_not_overtaken_in_its_partition(void **state)
{
    static struct order c, d;
    (void)state;
    begin(NULL);
    claim_new(&a, 3, 1);
    order_init(&b, "orders", 3, 3, 2); /* waits for 3, and has 4 to send */
    b.claim.wait_ms = 60000;
    desk_post(&desk, &b);
    order_init(&c, "orders", 3, 5, 1); /* free, but behind 4 */
    c.claim.wait_ms = 60000;
    desk_post(&desk, &c);
    order_init(&d, "orders", 3, 6, 1); /* has no time: told to come again */
    assert_int_equal(desk_claim(&desk, &d), STORE_OK);
    assert_int_equal(d.verdicts[0], VERDICT_IN_FLIGHT);
    assert_int_equal(d.claim.ret_new_count, 0);
    assert_false(c.is_answered);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    desk_pump(&desk, &c.is_answered);
    assert_int_equal(b.verdicts[1], VERDICT_NEW);
    assert_int_equal(c.verdicts[0], VERDICT_NEW);
    assert_true(b.claim.ret_claim_id < c.claim.ret_claim_id);
}

static void test_of_several_that_wait_the_first_gets_the_record(void **state)
{
    static struct order waiting[3];
    (void)state;
    begin(NULL);
    claim_new(&a, 1, 1);
    for (int i = 0; i < 3; i++) {
        order_init(&waiting[i], "orders", 3, 1, 1);
        waiting[i].claim.wait_ms = 60000;
        desk_post(&desk, &waiting[i]);
    }
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_NOT_SENT), STORE_OK);
    desk_pump(&desk, &waiting[0].is_answered);
    assert_int_equal(waiting[0].verdicts[0], VERDICT_NEW);
    assert_false(waiting[1].is_answered);
    assert_int_equal(desk_settle(&desk, &waiting[0], OUTCOME_APPLIED), STORE_OK);
    desk_pump(&desk, &waiting[1].is_answered);
    desk_pump(&desk, &waiting[2].is_answered);
    assert_int_equal(waiting[1].verdicts[0], VERDICT_APPLIED);
    assert_int_equal(waiting[2].verdicts[0], VERDICT_APPLIED);
}

/* ---- many records ----------------------------------------------------------------------------------------------- */

static void test_a_batch_with_one_record_in_flight_claims_nothing(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 105, 1);
    order_init(&b, "orders", 3, 100, 10);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[5], VERDICT_IN_FLIGHT);
    assert_int_equal(b.verdicts[4], VERDICT_NEW);
    assert_int_equal(b.claim.ret_new_count, 0);
    assert_int_equal(b.claim.ret_claim_id, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 104), RECORD_ABSENT);
}

static void test_of_an_overlapping_batch_only_the_new_part_is_claimed(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 500, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    order_init(&b, "orders", 3, 250, 500);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_new_count, 250);
    for (size_t i = 0; i < 500; i++)
        assert_int_equal(b.verdicts[i], i < 250 ? VERDICT_APPLIED : VERDICT_NEW);
    assert_int_equal(desk_settle(&desk, &b, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 750, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    struct question question = { .kind = ASK_PARTITIONS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.partitions[0].applied_count, 750);
    assert_int_equal(question.ret.partitions[0].interval_count, 1);
    assert_int_equal(question.ret.partitions[0].lowest, 0);
    assert_int_equal(question.ret.partitions[0].highest, 749);
    store_question_deinit(&question);
}

static void test_A8_each_record_of_a_batch_has_its_own_outcome(void **state)
{
    static const enum outcome outcomes[] = { OUTCOME_APPLIED, OUTCOME_NOT_APPLIED, OUTCOME_UNKNOWN,
                                             OUTCOME_NOT_SENT };
    static const enum record_state states[] = { RECORD_APPLIED, RECORD_ABSENT, RECORD_IN_DOUBT,
                                                RECORD_ABSENT };
    (void)state;
    begin(NULL);
    claim_new(&a, 0, 40);
    for (size_t i = 0; i < 40; i++)
        a.outcomes[i] = outcomes[i / 3 % 4];
    assert_int_equal(desk_settle_each(&desk, &a), STORE_OK);
    for (int64_t i = 0; i < 40; i++)
        assert_int_equal(desk_state(&desk, "orders", 3, i), states[i / 3 % 4]);
}

static void test_Z06_one_claim_may_span_partitions_and_leap(void **state)
{
    (void)state;
    begin(NULL);
    order_init(&a, "orders", 0, 9, 1);
    order_add(&a, "orders", 1, 9, MARK_NONE);
    order_add(&a, "refunds", 0, 3, MARK_NONE);
    order_add(&a, "orders", 0, 7, MARK_NONE);
    order_add(&a, "orders", 0, 1000000, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(a.claim.ret_new_count, 5);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_state(&desk, "orders", 0, 7), RECORD_APPLIED);
    assert_int_equal(desk_state(&desk, "orders", 0, 8), RECORD_ABSENT);
    assert_int_equal(desk_state(&desk, "orders", 0, 9), RECORD_APPLIED);
    assert_int_equal(desk_state(&desk, "refunds", 0, 3), RECORD_APPLIED);
    assert_int_equal(desk_state(&desk, "orders", 0, 999999), RECORD_ABSENT);
}

/* Z-05: however a stream is cut into retried, overlapping batches, every offset is sent once. */
static void test_Z05_any_cutting_of_a_stream_applies_every_offset_once(void **state)
{
    enum { STREAM = 3000 };
    static unsigned char sent[STREAM];
    unsigned seed = 7;
    (void)state;
    begin(NULL);
    memset(sent, 0, sizeof sent);
    for (int64_t at = 0; at < STREAM;) {
        size_t count = 1 + (size_t)rand_r(&seed) % 300;
        int64_t first = at - (int64_t)((unsigned)rand_r(&seed) % 200);
        first = first < 0 ? 0 : first;
        count = first + (int64_t)count > STREAM ? (size_t)(STREAM - first) : count;
        order_init(&a, "orders", 3, first, count);
        assert_int_equal(desk_claim(&desk, &a), STORE_OK);
        bool is_refused = rand_r(&seed) % 4 == 0;
        for (size_t i = 0; i < count; i++)
            if (a.verdicts[i] == VERDICT_NEW && !is_refused)
                sent[first + (int64_t)i]++;
        if (a.claim.ret_new_count > 0)
            assert_int_equal(desk_settle(&desk, &a, is_refused ? OUTCOME_NOT_SENT : OUTCOME_APPLIED),
                             STORE_OK);
        if (!is_refused && first + (int64_t)count > at && first <= at)
            at = first + (int64_t)count;
    }
    for (size_t i = 0; i < STREAM; i++)
        assert_int_equal(sent[i], 1);
}

/* ---- doubts ----------------------------------------------------------------------------------------------------- */

static void make_doubt(int64_t first, size_t count)
{
    claim_new(&a, first, count);
    a.settlement.cause = DOUBT_TIMEOUT;
    a.settlement.detail = "no answer in 30 s";
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_UNKNOWN), STORE_OK);
}

static uint64_t doubt_id(int64_t offset)
{
    struct question question = { .kind = ASK_RECORD, .topic = "orders", .partition = 3, .first = offset };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_state, RECORD_IN_DOUBT);
    assert_int_equal(question.ret_row_count, 1);
    uint64_t id = question.ret.doubts[0].id;
    store_question_deinit(&question);
    return id;
}

static void test_A2_an_unknown_outcome_is_held_and_listed_with_what_is_known(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 1);
    order_init(&b, "orders", 3, 8, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_IN_DOUBT);
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    const struct doubt_row *row = &question.ret.doubts[0];
    assert_string_equal(row->topic, "orders");
    assert_int_equal(row->partition, 3);
    assert_int_equal(row->first, 8);
    assert_int_equal(row->last, 8);
    assert_int_equal(row->record_count, 1);
    assert_int_equal(row->attempts, 1);
    assert_int_equal(row->cause, DOUBT_TIMEOUT);
    assert_string_equal(row->detail, "no answer in 30 s");
    store_question_deinit(&question);
    struct store_figures figures;
    store_figures_get(store, &figures);
    assert_int_equal(figures.in_doubt_records, 1);
    assert_int_equal(figures.doubts_by_cause[DOUBT_TIMEOUT], 1);
    assert_int_equal(figures.entered_by_cause[DOUBT_TIMEOUT], 1);
}

static void test_a_held_doubt_lets_a_delivery_go_on_when_it_is_resolved(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 1);
    order_init(&b, "orders", 3, 8, 1);
    b.claim.wait_ms = 60000;
    desk_post(&desk, &b);
    struct question question = { .kind = DO_RESOLVE_ONE, .id = doubt_id(8), .is_applied = true };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
}

static void test_the_policy_retry_opens_a_doubt_again_and_counts_it(void **state)
{
    (void)state;
    begin_with_policy(POLICY_RETRY);
    make_doubt(8, 3);
    order_init(&b, "orders", 3, 8, 4); /* three in doubt, one never seen */
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_new_count, 4);
    assert_int_equal(b.claim.ret_retried_count, 3);
    assert_int_equal(desk_settle(&desk, &b, OUTCOME_APPLIED), STORE_OK);
    struct store_figures figures;
    store_figures_get(store, &figures);
    assert_int_equal(figures.resolved_retry, 3);
    assert_int_equal(figures.in_doubt_records, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 9), RECORD_APPLIED);
}

static void test_a_doubt_is_retried_only_when_its_record_comes_again(void **state)
{
    (void)state;
    begin_with_policy(POLICY_RETRY);
    make_doubt(8, 3);
    assert_int_equal(desk_offer(&desk, "orders", 3, 9, 1, MARK_NONE, OUTCOME_UNKNOWN), VERDICT_NEW);
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 3); /* 8, 9, 10: the one in the middle was sent twice */
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(question.ret.doubts[i].attempts, question.ret.doubts[i].first == 9 ? 2 : 1);
    store_question_deinit(&question);
}

static void test_a_doubt_that_was_reopened_in_vain_is_one_again(void **state)
{
    static const enum outcome outcomes[] = { OUTCOME_NOT_SENT, OUTCOME_NOT_APPLIED, OUTCOME_NOT_SENT,
                                             OUTCOME_NOT_APPLIED };
    static const uint32_t attempts[] = { 1, 2, 2, 3 };
    (void)state;
    begin_with_policy(POLICY_RETRY);
    make_doubt(8, 1);
    for (size_t i = 0; i < 4; i++) { /* its first sending may be applied, whatever becomes of the others */
        assert_int_equal(desk_offer(&desk, "orders", 3, 8, 1, MARK_NONE, outcomes[i]), VERDICT_NEW);
        struct question question = { .kind = ASK_DOUBTS };
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_row_count, 1);
        assert_int_equal(question.ret.doubts[0].attempts, attempts[i]);
        store_question_deinit(&question);
    }
    struct question question = {
        .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1, .expect_count = 1
    };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 8, 1, MARK_NONE, OUTCOME_NOT_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_ABSENT);
}

static void test_the_policy_assume_applied_drops_a_doubt_and_counts_it(void **state)
{
    (void)state;
    begin_with_policy(POLICY_ASSUME_APPLIED);
    make_doubt(8, 3);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_IN_DOUBT);
    order_init(&b, "orders", 3, 8, 2);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(b.claim.ret_new_count, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 9), RECORD_APPLIED);
    assert_int_equal(desk_state(&desk, "orders", 3, 10), RECORD_IN_DOUBT);
    struct store_figures figures;
    store_figures_get(store, &figures);
    assert_int_equal(figures.resolved_assumed, 2);
}

static void test_a_policy_acts_for_the_whole_claim_or_not_at_all(void **state)
{
    static struct order c;
    (void)state;
    begin_with_policy(POLICY_RETRY);
    make_doubt(8, 1);
    claim_new(&c, 9, 1); /* stays in flight */
    order_init(&b, "orders", 3, 8, 2);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[1], VERDICT_IN_FLIGHT);
    assert_int_equal(b.claim.ret_new_count, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_IN_DOUBT);
}

static void test_too_many_doubts_stop_new_claims_but_not_duplicates(void **state)
{
    struct store_options options = desk_options(folder);
    options.in_doubt_max = 2;
    (void)state;
    begin(&options);
    assert_int_equal(desk_offer(&desk, "orders", 3, 100, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    make_doubt(8, 3);
    order_init(&b, "orders", 3, 20, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_BUSY);
    assert_int_equal(desk_state(&desk, "orders", 3, 20), RECORD_ABSENT);
    assert_int_equal(desk_offer(&desk, "orders", 3, 100, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

static void begin_with_partitions(uint64_t partitions_max, bool is_first_sight_held)
{
    struct store_options options = desk_options(folder);
    options.partitions_max = partitions_max;
    options.is_first_sight_held = is_first_sight_held;
    begin(&options);
}

static void test_too_many_partitions_stop_new_ones_and_those_that_are_known_go_on(void **state)
{
    (void)state;
    begin_with_partitions(2, false);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 4, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    order_init(&b, "orders", 5, 0, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_CROWDED);
    order_init(&b, "orders", 3, 1, 1); /* all or none: the known one is not claimed beside it */
    order_add(&b, "parcels", 3, 0, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &b), STORE_CROWDED);
    assert_int_equal(b.claim.ret_claim_id, 0);
    assert_int_not_equal(b.verdicts[0], VERDICT_UNMET);
    assert_int_equal(b.verdicts[1], VERDICT_UNMET);
    assert_int_equal(desk_state(&desk, "orders", 3, 1), RECORD_ABSENT);
    assert_int_equal(desk_state(&desk, "parcels", 3, 0), RECORD_ABSENT);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 1, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_the_partitions_of_one_claim_are_counted_once_each(void **state)
{
    (void)state;
    begin_with_partitions(2, false);
    order_init(&b, "orders", 3, 0, 1);
    order_add(&b, "orders", 4, 0, MARK_NONE);
    order_add(&b, "orders", 5, 0, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &b), STORE_CROWDED);
    order_init(&b, "orders", 3, 0, 1);
    order_add(&b, "orders", 4, 0, MARK_NONE);
    order_add(&b, "orders", 3, 9, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_new_count, 3);
}

static void test_a_first_sight_that_would_be_held_takes_the_room_of_a_partition_too(void **state)
{
    (void)state;
    begin_with_partitions(1, true);
    order_init(&b, "orders", 3, 7, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_CONFLICT);
    order_init(&b, "orders", 4, 7, 1);
    order_add(&b, "orders", 3, 7, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &b), STORE_CROWDED);
    assert_int_equal(b.verdicts[0], VERDICT_UNMET);
    assert_int_not_equal(b.verdicts[1], VERDICT_UNMET);
}

static void test_a_partition_that_is_forgotten_makes_room(void **state)
{
    (void)state;
    begin_with_partitions(1, false);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    order_init(&b, "parcels", 0, 0, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_CROWDED);
    struct question question = forget_orders(3, -1, -1, 1);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(desk_offer(&desk, "parcels", 0, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_a_person_resolves_one_doubt_either_way(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 1);
    make_doubt(20, 2);
    struct question question = { .kind = DO_RESOLVE_ONE, .id = doubt_id(8), .is_applied = true };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 1);
    question = (struct question){ .kind = DO_RESOLVE_ONE, .id = doubt_id(20), .is_applied = false };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 2);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_APPLIED);
    assert_int_equal(desk_state(&desk, "orders", 3, 21), RECORD_ABSENT);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
}

static void test_a_filter_resolves_what_it_names_if_the_count_is_as_expected(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 10);
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = 3,
                                 .first = 10,
                                 .last = 12,
                                 .is_applied = true,
                                 .expect_count = 99 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_equal(question.ret_count, 3);
    assert_int_equal(desk_state(&desk, "orders", 3, 11), RECORD_IN_DOUBT);
    question.expect_count = 3;
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_count, 3);
    for (int64_t i = 8; i < 18; i++)
        assert_int_equal(desk_state(&desk, "orders", 3, i),
                         i >= 10 && i <= 12 ? RECORD_APPLIED : RECORD_IN_DOUBT);
    question =
        (struct question){ .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1, .expect_count = 7 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_state(&desk, "orders", 3, 17), RECORD_ABSENT);
}

static struct question doubts_of_orders(void)
{
    struct question question = { .kind = ASK_DOUBTS, .topic = "orders" };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    return question;
}

static void test_a_filter_may_name_only_the_doubts_that_began_just_then(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 10);
    struct question list = doubts_of_orders();
    uint64_t since_ms = list.ret.doubts[0].since_ms;
    store_question_deinit(&list);
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = 3,
                                 .first = 10,
                                 .last = 12,
                                 .is_applied = true,
                                 .since_ms = since_ms + 1,
                                 .expect_count = 3 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_equal(question.ret_count, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 11), RECORD_IN_DOUBT);
    question.since_ms = since_ms;
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_count, 3);
    for (int64_t i = 8; i < 18; i++)
        assert_int_equal(desk_state(&desk, "orders", 3, i),
                         i >= 10 && i <= 12 ? RECORD_APPLIED : RECORD_IN_DOUBT);
}

static void test_a_note_is_an_event_and_nothing_else(void **state)
{
    (void)state;
    begin(NULL);
    make_doubt(8, 1);
    for (int i = 1; i <= 2; i++) {
        struct question question = { .kind = DO_NOTE };
        snprintf(question.detail, sizeof question.detail, "mode observe by 127.0.0.1: reason %d", i);
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
    }
    struct question list = { .kind = ASK_EVENTS };
    assert_int_equal(desk_ask(&desk, &list), STORE_OK);
    size_t note_count = 0;
    for (size_t i = 0; i < list.ret_row_count; i++) {
        const struct event_row *row = &list.ret.events[i];
        if (row->kind != EVENT_ADMIN)
            continue;
        assert_string_equal(row->topic, "");
        assert_true(row->time_ms > 0);
        assert_string_equal(row->detail, note_count++ == 0 ? "mode observe by 127.0.0.1: reason 1"
                                                           : "mode observe by 127.0.0.1: reason 2");
    }
    assert_int_equal(note_count, 2);
    store_question_deinit(&list);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_IN_DOUBT);
}

static void test_an_outcome_that_comes_after_a_decision_changes_nothing(void **state)
{
    static struct order c;
    (void)state;
    begin(NULL);
    make_doubt(8, 1); /* its claim is over */
    struct question question = { .kind = DO_RESOLVE_ONE, .id = doubt_id(8), .is_applied = false };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    claim_new(&c, 8, 1);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK); /* the old claim's */
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_IN_FLIGHT);
    assert_int_equal(desk_settle(&desk, &c, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_state(&desk, "orders", 3, 8), RECORD_APPLIED);
}

/* ---- identity --------------------------------------------------------------------------------------------------- */

static uint64_t conflict_id(void)
{
    struct question question = { .kind = ASK_CONFLICTS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    uint64_t id = question.ret_row_count == 0 ? 0 : question.ret.conflicts[0].id;
    store_question_deinit(&question);
    return id;
}

static uint64_t conflict_open_count(void)
{
    struct store_figures figures;
    store_figures_get(store, &figures);
    return figures.conflict_open_count;
}

static void test_Z01_another_record_at_known_coordinates_is_a_conflict(void **state)
{
    (void)state;
    begin(NULL);
    record_mark monday = mark_of_timestamp(1000), tuesday = mark_of_timestamp(2000);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, monday, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, monday, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, tuesday, OUTCOME_APPLIED), VERDICT_CONFLICT);
    assert_int_equal(desk_offer(&desk, "orders", 3, 50, 1, tuesday, OUTCOME_APPLIED), VERDICT_CONFLICT);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, monday, OUTCOME_APPLIED), VERDICT_CONFLICT);
    assert_int_equal(desk_offer(&desk, "orders", 4, 0, 1, tuesday, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_not_equal(conflict_id(), 0);
    assert_int_equal(conflict_open_count(), 1);
}

static void test_Z01_decided_as_the_same_record_the_new_mark_counts(void **state)
{
    (void)state;
    begin(NULL);
    record_mark monday = mark_of_timestamp(1000), tuesday = mark_of_timestamp(2000);
    desk_offer(&desk, "orders", 3, 0, 1, monday, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 0, 1, tuesday, OUTCOME_APPLIED);
    struct question question = { .kind = DO_DECIDE, .id = conflict_id() };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(conflict_id(), 0);
    assert_int_equal(conflict_open_count(), 0);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, tuesday, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, monday, OUTCOME_APPLIED), VERDICT_CONFLICT);
}

static void test_Z01_decided_as_a_new_topic_its_records_are_new(void **state)
{
    (void)state;
    begin(NULL);
    record_mark monday = mark_of_timestamp(1000), tuesday = mark_of_timestamp(2000);
    desk_offer(&desk, "orders", 3, 0, 9, monday, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 0, 1, tuesday, OUTCOME_APPLIED);
    struct question question = { .kind = DO_DECIDE, .id = conflict_id(), .is_new_topic = true };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, tuesday, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, tuesday, OUTCOME_APPLIED), VERDICT_NEW);
    question = (struct question){ .kind = ASK_PARTITIONS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret.partitions[0].generation, 1);
    assert_int_equal(question.ret.partitions[0].applied_count, 2);
    store_question_deinit(&question);
}

static void test_Z02_a_record_in_flight_or_in_doubt_is_compared_too(void **state)
{
    (void)state;
    begin(NULL);
    order_init(&a, "orders", 3, 8, 1);
    a.records[0].mark = mark_of_timestamp(1000);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 8, 1, mark_of_timestamp(9), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
    assert_int_not_equal(conflict_id(), 0);
}

static void test_marks_of_different_kinds_or_none_do_not_contradict(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 1, mark_of_timestamp(1000), OUTCOME_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, mark_of_hash(77), OUTCOME_APPLIED),
                     VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

static void test_without_identity_nothing_is_a_conflict(void **state)
{
    struct store_options options = desk_options(folder);
    options.is_identity_checked = false;
    (void)state;
    begin(&options);
    desk_offer(&desk, "orders", 3, 0, 1, mark_of_timestamp(1000), OUTCOME_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, mark_of_timestamp(1), OUTCOME_APPLIED),
                     VERDICT_APPLIED);
}

static void test_Z03_a_partition_first_seen_in_its_middle_is_counted(void **state)
{
    (void)state;
    begin(NULL);
    struct store_figures figures;
    desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED);
    store_figures_get(store, &figures);
    assert_int_equal(figures.first_sight_count, 0);
    assert_int_equal(desk_offer(&desk, "orders", 4, 17, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    store_figures_get(store, &figures);
    assert_int_equal(figures.first_sight_count, 1);
}

/* Records of many partitions, mixed: each partition is met once, at its oldest. */
static void offer_mixed(struct order *mixed)
{
    order_init(mixed, "orders", 4, 7, 1);
    order_add(mixed, "orders", 5, 3, MARK_NONE);
    order_add(mixed, "parcels", 4, 0, MARK_NONE);
    order_add(mixed, "orders", 4, 5, MARK_NONE);
    order_add(mixed, "orders", 6, 1, MARK_NONE);
    order_add(mixed, "orders", 6, 0, MARK_NONE);
    assert_int_equal(desk_claim(&desk, mixed), STORE_OK);
}

static void test_Z03_partitions_that_come_mixed_are_each_met_at_their_oldest_record(void **state)
{
    static struct order mixed;
    struct store_figures figures;
    (void)state;
    begin(NULL);
    offer_mixed(&mixed);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(mixed.verdicts[i], VERDICT_NEW);
    assert_int_equal(desk_settle(&desk, &mixed, OUTCOME_APPLIED), STORE_OK);
    store_figures_get(store, &figures);
    assert_int_equal(figures.first_sight_count, 2); /* orders/4 at 5, orders/5 at 3 */
    order_deinit(&mixed);
}

static void test_Z03_held_only_partitions_without_a_beginning_wait(void **state)
{
    static struct order mixed;
    struct store_options options = desk_options(folder);
    options.is_first_sight_held = true;
    (void)state;
    begin(&options);
    order_init(&mixed, "orders", 6, 1, 1);
    order_add(&mixed, "orders", 6, 0, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &mixed), STORE_OK);
    assert_int_equal(mixed.verdicts[0], VERDICT_NEW);
    assert_int_equal(desk_settle(&desk, &mixed, OUTCOME_APPLIED), STORE_OK);
    offer_mixed(&mixed);
    assert_int_equal(mixed.verdicts[0], VERDICT_CONFLICT);
    assert_int_equal(mixed.verdicts[2], VERDICT_NEW);
    assert_int_equal(mixed.verdicts[4], VERDICT_APPLIED);
    order_deinit(&mixed);
}

static void test_Z03_held_at_first_sight_it_waits_for_a_decision(void **state)
{
    struct store_options options = desk_options(folder);
    options.is_first_sight_held = true;
    (void)state;
    begin(&options);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 4, 17, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_CONFLICT);
    assert_int_equal(desk_offer(&desk, "orders", 4, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_CONFLICT);
    struct question question = { .kind = DO_DECIDE, .id = conflict_id() };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_offer(&desk, "orders", 4, 17, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static struct conflict_row the_conflict(void)
{
    struct question question = { .kind = ASK_CONFLICTS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    struct conflict_row row = question.ret.conflicts[0];
    store_question_deinit(&question);
    return row;
}

static void test_Z02_a_log_that_was_cut_is_told_from_a_topic_created_anew(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 10, mark_of_hash(1000), OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 4, 0, 10, mark_of_hash(1000), OUTCOME_APPLIED);
    /* cut at 6: what is older does not differ */
    assert_int_equal(desk_offer(&desk, "orders", 3, 6, 4, mark_of_hash(5000), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
    struct conflict_row row = the_conflict();
    assert_int_equal(row.offset, 6);
    assert_true(row.is_tail);
    struct question question = { .kind = DO_DECIDE, .id = row.id };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    /* created anew: it differs from its beginning on */
    assert_int_equal(desk_offer(&desk, "orders", 4, 0, 4, mark_of_hash(5000), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
    row = the_conflict();
    assert_int_equal(row.offset, 0);
    assert_false(row.is_tail);
}

/* ---- backups ---------------------------------------------------------------------------------------------------- */

static void test_L16_a_backup_is_a_file_that_did_not_exist(void **state)
{
    struct stat file;
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    struct question question = { .kind = DO_BACKUP };
    snprintf(question.detail, sizeof question.detail, "%s/copy.mdb", folder);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(stat(question.detail, &file), 0);
    assert_int_equal(question.ret_count, file.st_size);
    assert_int_equal(file.st_mode & 0777, 0600);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_not_equal(question.ret_why[0], '\0');
    unlink(question.detail);
    snprintf(question.detail, sizeof question.detail, "%s/nowhere/copy.mdb", folder);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_FAILED);
    assert_int_not_equal(question.ret_why[0], '\0');
}

/* ---- what is kept for a probe ----------------------------------------------------------------------------------- */

static struct question probes_after(uint64_t after_id, int64_t after_offset, size_t row_count_max)
{
    struct question question = {
        .kind = ASK_PROBES, .after_id = after_id, .after_offset = after_offset, .row_count_max = row_count_max
    };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    return question;
}

static void test_what_a_probe_must_know_is_kept_while_a_record_is_in_doubt(void **state)
{
    static char much[2 * RECORD_CONTEXT_BYTES_MAX];
    struct slice contexts[3];
    (void)state;
    begin(NULL);
    memset(much, 'x', sizeof much);
    contexts[0] = slice_of_text("{\"id\":\"a1\"}");
    contexts[1] = slice_of(NULL, 0);
    contexts[2] = slice_of(much, sizeof much);
    order_init(&a, "orders", 3, 40, 3);
    a.claim.contexts = contexts;
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_UNKNOWN), STORE_OK);
    struct question question = probes_after(0, -1, 10);
    assert_int_equal(question.ret_row_count, 3);
    assert_int_equal(question.ret_count, 3);
    for (int64_t i = 0; i < 3; i++)
        assert_int_equal(question.ret.probes[i].offset, 40 + i);
    assert_int_equal(question.ret.probes[0].context_bytes, contexts[0].byte_count);
    assert_memory_equal(question.ret.probes[0].context, contexts[0].at, contexts[0].byte_count);
    assert_int_equal(question.ret.probes[1].context_bytes, 0);
    assert_int_equal(question.ret.probes[2].context_bytes, RECORD_CONTEXT_BYTES_MAX);
    assert_int_equal(question.ret.probes[2].context[RECORD_CONTEXT_BYTES_MAX - 1], 'x');
    store_question_deinit(&question);
    question =
        (struct question){ .kind = DO_RESOLVE, .partition = -1, .first = 41, .last = 41, .expect_count = 1 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    question = probes_after(0, -1, 10);
    assert_int_equal(question.ret_row_count, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(question.ret.probes[i].context_bytes, question.ret.probes[i].offset == 40
                                                                   ? contexts[0].byte_count
                                                                   : RECORD_CONTEXT_BYTES_MAX);
    store_question_deinit(&question);
}

static void test_what_was_kept_does_not_outlive_the_doubt(void **state)
{
    struct slice context = slice_of_text("old");
    (void)state;
    begin(NULL);
    for (int is_applied = 0; is_applied < 2; is_applied++) {
        order_init(&a, "orders", 3, 40, 1);
        a.claim.contexts = &context;
        assert_int_equal(desk_claim(&desk, &a), STORE_OK);
        assert_int_equal(desk_settle(&desk, &a, OUTCOME_NOT_APPLIED), STORE_OK);
        claim_new(&b, 40, 1); /* without one */
        assert_int_equal(desk_settle(&desk, &b, OUTCOME_UNKNOWN), STORE_OK);
        struct question question = probes_after(0, -1, 10);
        assert_int_equal(question.ret_row_count, 1);
        assert_int_equal(question.ret.probes[0].context_bytes, 0);
        store_question_deinit(&question);
        question = (struct question){
            .kind = DO_RESOLVE, .partition = -1, .first = -1, .last = -1, .expect_count = 1
        };
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
    }
}

static void test_probes_come_page_by_page_each_record_once(void **state)
{
    enum { RECORDS = 30 };
    static unsigned char seen[RECORDS];
    uint64_t id = 0;
    int64_t offset = -1;
    (void)state;
    begin(NULL);
    memset(seen, 0, sizeof seen);
    for (int64_t first = 0; first < RECORDS; first += 10) {
        claim_new(&a, first, 10);
        assert_int_equal(desk_settle(&desk, &a, OUTCOME_UNKNOWN), STORE_OK);
    }
    for (size_t page = 0, row_count = 7; row_count == 7; page++) {
        struct question question = probes_after(id, offset, 7);
        assert_int_equal(question.ret_count, RECORDS - page * 7);
        row_count = question.ret_row_count;
        for (size_t i = 0; i < row_count; i++) {
            const struct probe_row *row = &question.ret.probes[i];
            assert_true(row->doubt_id > id || (row->doubt_id == id && row->offset > offset));
            seen[row->offset]++;
            id = row->doubt_id;
            offset = row->offset;
        }
        store_question_deinit(&question);
    }
    for (size_t i = 0; i < RECORDS; i++)
        assert_int_equal(seen[i], 1);
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static void test_partitions_come_page_by_page_by_name_also_those_met_meanwhile(void **state)
{
    static const char *const names[] = { "b", "a.10", "a", "a.1", "c" };
    enum { TOPICS = 5, NUMBERS = 12, ALL = TOPICS * NUMBERS };
    struct question question = { .kind = ASK_PARTITIONS, .row_count_max = 7 };
    char before[TOPIC_BYTES_MAX + 1] = "";
    size_t count = 0, row_count;
    (void)state;
    begin(NULL);
    for (int32_t i = 0; i < ALL; i++)
        assert_int_equal(
            desk_offer(&desk, names[i % TOPICS], NUMBERS - 1 - i / TOPICS, 0, 1, MARK_NONE, OUTCOME_APPLIED),
            VERDICT_NEW);
    do {
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_count, ALL - count + (count > 0));
        for (size_t i = 0; i < question.ret_row_count; i++) {
            const struct partition_row *row = &question.ret.partitions[i];
            assert_true(strcmp(row->topic, before) > 0 || row->partition == question.after_partition + 1);
            snprintf(before, sizeof before, "%s", row->topic);
            memcpy(question.after_topic, before, sizeof before);
            question.after_partition = row->partition;
        }
        if (count == 0) /* behind the cursor, and among those that were in order already */
            assert_int_equal(desk_offer(&desk, "b", NUMBERS, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
        row_count = question.ret_row_count;
        count += row_count;
        store_question_deinit(&question);
    } while (row_count == 7);
    assert_int_equal(count, ALL + 1);
}

static void test_partitions_of_one_topic_have_pages_of_their_own(void **state)
{
    (void)state;
    begin(NULL);
    for (int32_t i = 0; i < 30; i++)
        assert_int_equal(desk_offer(&desk,
                                    i % 3 == 0   ? "orders"
                                    : i % 3 == 1 ? "bills"
                                                 : "returns",
                                    i, 0, 1, MARK_NONE, OUTCOME_APPLIED),
                         VERDICT_NEW);
    struct question question = { .kind = ASK_PARTITIONS,
                                 .topic = "orders",
                                 .after_topic = "orders",
                                 .after_partition = 9,
                                 .row_count_max = 4 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 6);
    assert_int_equal(question.ret_row_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        assert_string_equal(question.ret.partitions[i].topic, "orders");
        assert_int_equal(question.ret.partitions[i].partition, 12 + 3 * i);
    }
    store_question_deinit(&question);
    memcpy(question.after_topic, "zebra", 6); /* behind all of the topic */
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 0);
    store_question_deinit(&question);
    memcpy(question.after_topic, "apples", 7); /* before all of it */
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 10);
    store_question_deinit(&question);
    memcpy(question.topic, "nobody", 7);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_count, 0);
    assert_int_equal(question.ret_row_count, 0);
    store_question_deinit(&question);
}

static void test_conflicts_come_page_by_page_each_once(void **state)
{
    enum { CONFLICTS = 10 };
    struct question question = { .kind = ASK_CONFLICTS, .row_count_max = 4 };
    size_t count = 0, row_count;
    (void)state;
    begin(NULL);
    for (int32_t i = CONFLICTS; i > 0; i--) {
        desk_offer(&desk, "orders", i, 0, 1, mark_of_timestamp(1000), OUTCOME_APPLIED);
        assert_int_equal(desk_offer(&desk, "orders", i, 0, 1, mark_of_timestamp(2000), OUTCOME_APPLIED),
                         VERDICT_CONFLICT);
    }
    do {
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_count, CONFLICTS - count);
        for (size_t i = 0; i < question.ret_row_count; i++) {
            assert_true(question.ret.conflicts[i].id > question.after_id);
            question.after_id = question.ret.conflicts[i].id;
        }
        row_count = question.ret_row_count;
        count += row_count;
        store_question_deinit(&question);
    } while (row_count == 4);
    assert_int_equal(count, CONFLICTS);
}

/* ---- intervals -------------------------------------------------------------------------------------------------- */

static struct question intervals_from(int64_t first, size_t row_count_max)
{
    struct question question = { .kind = ASK_INTERVALS,
                                 .topic = "orders",
                                 .partition = 3,
                                 .first = first,
                                 .row_count_max = row_count_max };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    return question;
}

static void assert_interval(const struct question *question, size_t index, int64_t first, int64_t last,
                            enum record_state expected)
{
    assert_true(index < question->ret_row_count);
    assert_int_equal(question->ret.intervals[index].first, first);
    assert_int_equal(question->ret.intervals[index].last, last);
    assert_int_equal(question->ret.intervals[index].state, expected);
}

static void test_intervals_say_what_is_applied_in_flight_and_in_doubt(void **state)
{
    (void)state;
    begin(NULL);
    struct question question = intervals_from(0, 10);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
    store_question_deinit(&question);
    desk_offer(&desk, "orders", 3, 5, 3, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 8, 2, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 10, 4, MARK_NONE, OUTCOME_UNKNOWN);
    desk_offer(&desk, "orders", 3, 65530, 12, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, INT64_MAX - 1, 2, MARK_NONE, OUTCOME_APPLIED);
    claim_new(&a, 20, 1);
    question = intervals_from(0, 10);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_row_count, 5);
    assert_int_equal(question.ret_count, 5);
    assert_interval(&question, 0, 5, 9, RECORD_APPLIED);
    assert_interval(&question, 1, 10, 13, RECORD_IN_DOUBT);
    assert_interval(&question, 2, 20, 20, RECORD_IN_FLIGHT);
    assert_interval(&question, 3, 65530, 65541, RECORD_APPLIED);
    assert_interval(&question, 4, INT64_MAX - 1, INT64_MAX, RECORD_APPLIED);
    store_question_deinit(&question);
    question = intervals_from(10, 2);
    assert_int_equal(question.ret_row_count, 2);
    assert_int_equal(question.ret_count, 3); /* it goes on */
    assert_interval(&question, 0, 10, 13, RECORD_IN_DOUBT);
    assert_interval(&question, 1, 20, 20, RECORD_IN_FLIGHT);
    store_question_deinit(&question);
}

/* ---- replay windows --------------------------------------------------------------------------------------------- */

static struct question open_window(int64_t first, int64_t last)
{
    struct question question = { .kind = DO_REPLAY_OPEN,
                                 .topic = "orders",
                                 .partition = 3,
                                 .first = first,
                                 .last = last,
                                 .until_ms = UINT64_MAX,
                                 .detail = "from a test" };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    return question;
}

static uint64_t replayed_count(void)
{
    struct question question = { .kind = ASK_REPLAYS };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    uint64_t count = question.ret.replays[0].replayed_count;
    store_question_deinit(&question);
    return count;
}

static void test_in_a_replay_window_an_applied_record_is_sent_again_once(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    struct question window = open_window(5, 9);
    assert_int_equal(window.ret_status, QUESTION_OK);
    assert_int_not_equal(window.ret_id, 0);
    order_init(&a, "orders", 3, 0, 25);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(a.claim.ret_new_count, 10); /* five of the window, five that are really new */
    assert_int_equal(a.claim.ret_replayed_count, 5);
    for (size_t i = 0; i < 25; i++)
        assert_int_equal(a.verdicts[i], (i >= 5 && i <= 9) || i >= 20 ? VERDICT_NEW : VERDICT_APPLIED);
    assert_int_equal(desk_state(&desk, "orders", 3, 7), RECORD_IN_FLIGHT);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(replayed_count(), 5);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 25, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    order_init(&a, "orders", 3, 5, 5);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(a.claim.ret_new_count, 0);
    struct store_figures figures;
    store_figures_get(store, &figures);
    assert_int_equal(figures.replayed_count, 5);
    assert_int_equal(figures.replay_open_count, 1);
}

static void test_what_is_applied_for_the_first_time_in_a_replay_window_is_not_sent_again(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 6, MARK_NONE, OUTCOME_APPLIED);
    make_doubt(7, 1);
    claim_new(&a, 8, 1); /* on its way while the window is opened */
    open_window(5, 100);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    struct question question = { .kind = DO_RESOLVE,
                                 .partition = -1,
                                 .first = -1,
                                 .last = -1,
                                 .expect_count = 1,
                                 .is_applied = true };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    desk_offer(&desk, "orders", 3, 50, 60, MARK_NONE, OUTCOME_APPLIED);
    order_init(&a, "orders", 3, 0, 6);
    order_add(&a, "orders", 3, 7, MARK_NONE);
    order_add(&a, "orders", 3, 8, MARK_NONE);
    order_add(&a, "orders", 3, 50, MARK_NONE);
    order_add(&a, "orders", 3, 100, MARK_NONE);
    order_add(&a, "orders", 3, 101, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(a.claim.ret_new_count, 1);
    assert_int_equal(a.verdicts[5], VERDICT_NEW); /* applied before: sent again */
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(replayed_count(), 1);
}

static void test_a_replay_without_effect_leaves_the_first_delivery_and_may_come_again(void **state)
{
    static const enum outcome outcomes[] = { OUTCOME_NOT_APPLIED, OUTCOME_NOT_SENT };
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    open_window(5, 9);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(desk_offer(&desk, "orders", 3, 5, 2, MARK_NONE, outcomes[i]), VERDICT_NEW);
        assert_int_equal(desk_state(&desk, "orders", 3, 5), RECORD_APPLIED);
        assert_int_equal(replayed_count(), 0);
    }
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 2, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(replayed_count(), 2);
}

static void test_a_replay_that_ends_unknown_is_in_doubt_and_counts_when_it_is_resolved(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    open_window(5, 9);
    for (int is_applied = 0; is_applied < 2; is_applied++) {
        assert_int_equal(desk_offer(&desk, "orders", 3, 6, 1, MARK_NONE, OUTCOME_UNKNOWN), VERDICT_NEW);
        assert_int_equal(desk_state(&desk, "orders", 3, 6), RECORD_IN_DOUBT);
        struct question question = { .kind = DO_RESOLVE,
                                     .partition = -1,
                                     .first = -1,
                                     .last = -1,
                                     .expect_count = 1,
                                     .is_applied = is_applied != 0 };
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
        assert_int_equal(desk_state(&desk, "orders", 3, 6), RECORD_APPLIED);
        assert_int_equal(replayed_count(), is_applied);
    }
    assert_int_equal(desk_offer(&desk, "orders", 3, 6, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
}

static void test_a_closed_window_sends_nothing_again(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    struct question window = open_window(0, 9);
    claim_new(&a, 4, 1);
    struct question question = { .kind = DO_REPLAY_CLOSE, .id = window.ret_id };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK); /* it was on its way */
    assert_int_equal(desk_state(&desk, "orders", 3, 4), RECORD_APPLIED);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
    open_window(0, 9); /* another window, another time */
    assert_int_equal(desk_offer(&desk, "orders", 3, 4, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_windows_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(open_window(0, 9).ret_status, QUESTION_NOT_FOUND);
    desk_offer(&desk, "orders", 3, 0, 20, MARK_NONE, OUTCOME_APPLIED);
    assert_int_equal(open_window(9, 8).ret_status, QUESTION_NOT_FOUND);
    assert_int_equal(open_window(-1, 8).ret_status, QUESTION_NOT_FOUND);
    struct question question = {
        .kind = DO_REPLAY_OPEN, .topic = "orders", .partition = 3, .last = 9, .until_ms = 1
    };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND); /* its time is over */
    assert_int_equal(open_window(0, 9).ret_status, QUESTION_OK);
    assert_int_equal(open_window(9, 12).ret_status, QUESTION_MISMATCH);
    assert_int_equal(open_window(10, 12).ret_status, QUESTION_OK);
}

static void test_replays_come_page_by_page_each_once(void **state)
{
    enum { WINDOWS = 5 };
    struct question list = { .kind = ASK_REPLAYS, .row_count_max = 2 };
    size_t count = 0, row_count;
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 100, MARK_NONE, OUTCOME_APPLIED);
    for (int64_t i = WINDOWS; i > 0; i--) {
        struct question question = { .kind = DO_REPLAY_OPEN,
                                     .topic = "orders",
                                     .partition = 3,
                                     .first = i * 10,
                                     .last = i * 10 + 5,
                                     .until_ms = UINT64_MAX };
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
    }
    do {
        assert_int_equal(desk_ask(&desk, &list), STORE_OK);
        assert_int_equal(list.ret_count, WINDOWS - count);
        for (size_t i = 0; i < list.ret_row_count; i++) {
            assert_true(list.ret.replays[i].id > list.after_id);
            list.after_id = list.ret.replays[i].id;
        }
        row_count = list.ret_row_count;
        count += row_count;
        store_question_deinit(&list);
    } while (row_count == 2);
    assert_int_equal(count, WINDOWS);
}

static void test_in_a_replay_window_another_record_is_still_a_conflict(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 1, mark_of_timestamp(1000), OUTCOME_APPLIED);
    open_window(0, 9);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, mark_of_timestamp(2000), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
}

/* ---- forgetting ------------------------------------------------------------------------------------------------- */

static struct question forget(int64_t first, int64_t last, uint64_t expect_count)
{
    struct question question = forget_orders(3, first, last, expect_count);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    return question;
}

static size_t partitions_listed(void)
{
    struct question question = { .kind = ASK_PARTITIONS, .row_count_max = 100 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    size_t count = (size_t)question.ret_count;
    store_question_deinit(&question);
    return count;
}

static void test_what_is_forgotten_is_new_again_if_the_count_is_as_expected(void **state)
{
    (void)state;
    begin(NULL);
    assert_int_equal(forget(0, 9, 0).ret_status, QUESTION_NOT_FOUND);
    desk_offer(&desk, "orders", 3, 0, 20, mark_of_hash(500), OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 7, 1, MARK_NONE, OUTCOME_APPLIED);
    struct question question = forget(5, 24, 7);
    assert_int_equal(question.ret_status, QUESTION_MISMATCH);
    assert_int_equal(question.ret_count, 15);
    assert_int_equal(question.ret_done_count, 0);
    assert_int_equal(desk_state(&desk, "orders", 3, 6), RECORD_APPLIED);
    question = forget(5, 9, 5);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_done_count, 5);
    for (int64_t i = 0; i < 20; i++)
        assert_int_equal(desk_state(&desk, "orders", 3, i),
                         i >= 5 && i <= 9 ? RECORD_ABSENT : RECORD_APPLIED);
    /* their marks are gone with them: none is compared with what comes next */
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 5, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 5, mark_of_hash(70000), OUTCOME_APPLIED),
                     VERDICT_APPLIED);
    assert_int_equal(forget(5, 9, 5).ret_status, QUESTION_OK);
    assert_int_equal(desk_offer(&desk, "orders", 3, 5, 5, mark_of_hash(90000), OUTCOME_APPLIED), VERDICT_NEW);
    assert_int_equal(forget(-1, -1, 20).ret_status, QUESTION_OK);
    assert_int_equal(partitions_listed(), 0);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 20, mark_of_hash(7000), OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_doubts_and_flights_are_not_forgotten(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 10, 2, MARK_NONE, OUTCOME_UNKNOWN);
    claim_new(&a, 12, 1);
    assert_int_equal(forget(-1, -1, 10).ret_status, QUESTION_OK);
    assert_int_equal(desk_state(&desk, "orders", 3, 9), RECORD_ABSENT);
    assert_int_equal(desk_state(&desk, "orders", 3, 11), RECORD_IN_DOUBT);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(desk_state(&desk, "orders", 3, 12), RECORD_APPLIED);
}

static void test_a_partition_leaves_when_it_is_forgotten_unless_something_holds_it(void **state)
{
    (void)state;
    begin(NULL);
    desk_offer(&desk, "orders", 3, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 3, 10, 1, MARK_NONE, OUTCOME_UNKNOWN);
    desk_offer(&desk, "orders", 4, 0, 10, mark_of_timestamp(1), OUTCOME_APPLIED);
    desk_offer(&desk, "orders", 4, 0, 1, mark_of_timestamp(2), OUTCOME_APPLIED); /* a conflict */
    desk_offer(&desk, "orders", 5, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(&desk, "parcels", 3, 0, 10, MARK_NONE, OUTCOME_APPLIED);
    struct question question = forget_all_orders(30);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(partitions_listed(), 3); /* a doubt, a conflict, and another topic */
    struct question resolve = { .kind = DO_RESOLVE_ONE, .id = doubt_id(10), .is_applied = true };
    assert_int_equal(desk_ask(&desk, &resolve), STORE_OK);
    assert_int_equal(forget(-1, -1, 1).ret_status, QUESTION_OK);
    assert_int_equal(partitions_listed(), 2);
    assert_int_equal(desk_ask(&desk, &resolve), STORE_OK); /* whose partition is gone */
    assert_int_equal(resolve.ret_status, QUESTION_NOT_FOUND);
    assert_int_equal(desk_offer(&desk, "parcels", 3, 0, 10, MARK_NONE, OUTCOME_APPLIED), VERDICT_APPLIED);
    assert_int_equal(desk_offer(&desk, "orders", 3, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_a_topic_of_many_partitions_is_forgotten_while_others_are_served(void **state)
{
    enum { PARTITIONS = 500, EACH = 100 };
    (void)state;
    begin(NULL);
    for (int32_t at = 0; at < PARTITIONS; at += EACH) {
        order_init(&a, "orders", at, 0, 1);
        for (int32_t i = 1; i < EACH; i++)
            order_add(&a, "orders", at + i, 0, MARK_NONE);
        assert_int_equal(desk_claim(&desk, &a), STORE_OK);
        assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    }
    struct question question = forget_all_orders(PARTITIONS);
    order_init(&b, "parcels", 0, 0, 1);
    desk_post(&desk, &b);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.status, STORE_OK);
    assert_int_equal(desk_settle(&desk, &b, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_count, PARTITIONS);
    assert_int_equal(partitions_listed(), 1);
    assert_int_equal(desk_offer(&desk, "orders", 0, 0, 1, MARK_NONE, OUTCOME_APPLIED), VERDICT_NEW);
}

static void test_very_many_doubts_are_resolved_while_others_are_served(void **state)
{
    (void)state;
    begin(NULL);
    order_init(&a, "orders", 3, 0, 0);
    for (int64_t i = 0; i < DESK_RECORDS_MAX; i++) /* no neighbours: each is a doubt of its own */
        order_add(&a, "orders", 3, 2 * i, MARK_NONE);
    assert_int_equal(desk_claim(&desk, &a), STORE_OK);
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_UNKNOWN), STORE_OK);
    struct question question = { .kind = DO_RESOLVE,
                                 .partition = -1,
                                 .first = -1,
                                 .last = -1,
                                 .is_applied = true,
                                 .expect_count = DESK_RECORDS_MAX,
                                 .detail = "from a test" };
    order_init(&b, "parcels", 0, 0, 1);
    desk_post(&desk, &b);
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    desk_pump(&desk, &b.is_answered);
    assert_int_equal(b.status, STORE_OK);
    assert_int_equal(desk_settle(&desk, &b, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_count, DESK_RECORDS_MAX);
    for (int64_t i = 0; i < DESK_RECORDS_MAX; i++)
        assert_int_equal(desk_state(&desk, "orders", 3, 2 * i), RECORD_APPLIED);
}

static void test_an_answer_is_forgotten_with_its_record(void **state)
{
    (void)state;
    begin(NULL);
    claim_new(&a, 7, 1);
    a.settlement.reply = (struct stored_reply){ 201, slice_of_text("text/plain"), slice_of_text("first") };
    assert_int_equal(desk_settle(&desk, &a, OUTCOME_APPLIED), STORE_OK);
    assert_int_equal(forget(7, 7, 1).ret_status, QUESTION_OK);
    desk_offer(&desk, "orders", 3, 7, 1, MARK_NONE, OUTCOME_APPLIED);
    order_init(&b, "orders", 3, 7, 1);
    assert_int_equal(desk_claim(&desk, &b), STORE_OK);
    assert_int_equal(b.claim.ret_reply.status, 0);
}

/* ---- too late --------------------------------------------------------------------------------------------------- */

static void test_a_resolution_of_a_doubt_that_is_over_is_told_what_became_of_it(void **state)
{
    (void)state;
    for (int is_applied = 0; is_applied < 2; is_applied++) {
        if (is_applied == 0)
            begin(NULL);
        make_doubt(8 + is_applied, 1);
        struct question question = { .kind = DO_RESOLVE_ONE,
                                     .id = doubt_id(8 + is_applied),
                                     .is_applied = is_applied != 0 };
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_OK);
        assert_int_equal(desk_ask(&desk, &question), STORE_OK);
        assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
        assert_int_equal(question.ret_id, question.id);
        assert_int_equal(question.ret_state, is_applied != 0 ? RECORD_APPLIED : RECORD_ABSENT);
    }
    struct question question = { .kind = DO_RESOLVE_ONE, .id = 424242 };
    assert_int_equal(desk_ask(&desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_NOT_FOUND);
    assert_int_equal(question.ret_id, 0);
}

static void test_names_are_words_for_people(void **state)
{
    (void)state;
    begin(NULL);
    assert_string_equal(doubt_cause_name(DOUBT_NO_REPLY), "no_reply");
    assert_string_equal(event_kind_name(EVENT_IN_DOUBT), "record.in_doubt");
    assert_string_equal(record_state_name(RECORD_ABSENT), "absent");
    assert_int_equal(strlen(store_id(store)), 32);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_is_new_once_and_applied_ever_after),
        TEST(test_the_kept_answer_comes_with_the_duplicate),
        TEST(test_without_an_answer_there_is_none_to_give),
        TEST(test_A1_A7_a_record_refused_or_not_sent_is_free_again),
        TEST(test_topics_and_partitions_do_not_share_offsets),
        TEST(test_the_highest_and_lowest_offsets_of_kafka_are_ordinary),
        TEST(test_done_is_never_called_from_inside_store_claim),
        TEST(test_postings_of_one_port_are_applied_in_order),
        TEST(test_two_ports_see_one_ledger),
        TEST(test_D2_a_second_delivery_waits_for_the_flight_and_is_applied),
        TEST(test_a_delivery_that_waited_for_a_refused_one_may_send),
        TEST(test_a_delivery_that_waited_long_enough_is_told_so),
        TEST(test_a_waiting_delivery_holds_nothing),
        TEST(test_a_waiting_delivery_is_not_overtaken_in_its_partition),
        TEST(test_of_several_that_wait_the_first_gets_the_record),
        TEST(test_a_batch_with_one_record_in_flight_claims_nothing),
        TEST(test_of_an_overlapping_batch_only_the_new_part_is_claimed),
        TEST(test_A8_each_record_of_a_batch_has_its_own_outcome),
        TEST(test_Z06_one_claim_may_span_partitions_and_leap),
        TEST(test_Z05_any_cutting_of_a_stream_applies_every_offset_once),
        TEST(test_A2_an_unknown_outcome_is_held_and_listed_with_what_is_known),
        TEST(test_a_held_doubt_lets_a_delivery_go_on_when_it_is_resolved),
        TEST(test_the_policy_retry_opens_a_doubt_again_and_counts_it),
        TEST(test_a_doubt_is_retried_only_when_its_record_comes_again),
        TEST(test_a_doubt_that_was_reopened_in_vain_is_one_again),
        TEST(test_the_policy_assume_applied_drops_a_doubt_and_counts_it),
        TEST(test_a_policy_acts_for_the_whole_claim_or_not_at_all),
        TEST(test_too_many_doubts_stop_new_claims_but_not_duplicates),
        TEST(test_too_many_partitions_stop_new_ones_and_those_that_are_known_go_on),
        TEST(test_the_partitions_of_one_claim_are_counted_once_each),
        TEST(test_a_first_sight_that_would_be_held_takes_the_room_of_a_partition_too),
        TEST(test_a_partition_that_is_forgotten_makes_room),
        TEST(test_a_person_resolves_one_doubt_either_way),
        TEST(test_a_filter_resolves_what_it_names_if_the_count_is_as_expected),
        TEST(test_a_filter_may_name_only_the_doubts_that_began_just_then),
        TEST(test_a_note_is_an_event_and_nothing_else),
        TEST(test_an_outcome_that_comes_after_a_decision_changes_nothing),
        TEST(test_Z01_another_record_at_known_coordinates_is_a_conflict),
        TEST(test_Z01_decided_as_the_same_record_the_new_mark_counts),
        TEST(test_Z01_decided_as_a_new_topic_its_records_are_new),
        TEST(test_Z02_a_record_in_flight_or_in_doubt_is_compared_too),
        TEST(test_marks_of_different_kinds_or_none_do_not_contradict),
        TEST(test_without_identity_nothing_is_a_conflict),
        TEST(test_Z03_a_partition_first_seen_in_its_middle_is_counted),
        TEST(test_Z03_partitions_that_come_mixed_are_each_met_at_their_oldest_record),
        TEST(test_Z03_held_only_partitions_without_a_beginning_wait),
        TEST(test_Z03_held_at_first_sight_it_waits_for_a_decision),
        TEST(test_Z02_a_log_that_was_cut_is_told_from_a_topic_created_anew),
        TEST(test_L16_a_backup_is_a_file_that_did_not_exist),
        TEST(test_what_a_probe_must_know_is_kept_while_a_record_is_in_doubt),
        TEST(test_what_was_kept_does_not_outlive_the_doubt),
        TEST(test_probes_come_page_by_page_each_record_once),
        TEST(test_partitions_come_page_by_page_by_name_also_those_met_meanwhile),
        TEST(test_partitions_of_one_topic_have_pages_of_their_own),
        TEST(test_conflicts_come_page_by_page_each_once),
        TEST(test_replays_come_page_by_page_each_once),
        TEST(test_intervals_say_what_is_applied_in_flight_and_in_doubt),
        TEST(test_in_a_replay_window_an_applied_record_is_sent_again_once),
        TEST(test_what_is_applied_for_the_first_time_in_a_replay_window_is_not_sent_again),
        TEST(test_a_replay_without_effect_leaves_the_first_delivery_and_may_come_again),
        TEST(test_a_replay_that_ends_unknown_is_in_doubt_and_counts_when_it_is_resolved),
        TEST(test_a_closed_window_sends_nothing_again),
        TEST(test_windows_that_make_no_sense_are_refused),
        TEST(test_in_a_replay_window_another_record_is_still_a_conflict),
        TEST(test_what_is_forgotten_is_new_again_if_the_count_is_as_expected),
        TEST(test_doubts_and_flights_are_not_forgotten),
        TEST(test_a_partition_leaves_when_it_is_forgotten_unless_something_holds_it),
        TEST(test_a_topic_of_many_partitions_is_forgotten_while_others_are_served),
        TEST(test_very_many_doubts_are_resolved_while_others_are_served),
        TEST(test_an_answer_is_forgotten_with_its_record),
        TEST(test_a_resolution_of_a_doubt_that_is_over_is_told_what_became_of_it),
        TEST(test_names_are_words_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
