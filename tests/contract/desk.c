/*
 * desk.c - a port whose postings are waited for.
 */
#include "desk.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { PATIENCE_MS = 60000 /* a test that waits longer than this hangs */ };

struct desk desk_open(struct store *store)
{
    struct desk desk = { store, store_port_new(store) };
    assert(desk.port != NULL);
    return desk;
}

void desk_close(struct desk *desk)
{
    store_port_free(desk->port);
    desk->port = NULL;
}

static struct order *order_of_claim(struct claim *claim)
{
    return (struct order *)(void *)((char *)claim - offsetof(struct order, claim));
}

static void on_claimed(struct claim *claim, enum store_status status)
{
    struct order *order = order_of_claim(claim);
    assert(!order->is_answered);
    order->status = status;
    order->is_answered = true;
}

static void on_settled(struct settlement *settlement, enum store_status status)
{
    struct order *order = (struct order *)(void *)((char *)settlement - offsetof(struct order, settlement));
    assert(!order->is_settled);
    order->settle_status = status;
    order->is_settled = true;
}

void order_init(struct order *order, const char *topic, int32_t partition, int64_t first, size_t count)
{
    store_claim_deinit(&order->claim);
    memset(order, 0, sizeof *order);
    order->claim.records = order->records;
    order->claim.ret_verdicts = order->verdicts;
    order->claim.done = on_claimed;
    for (size_t i = 0; i < count; i++)
        order_add(order, topic, partition, first + (int64_t)i, MARK_NONE);
}

void order_add(struct order *order, const char *topic, int32_t partition, int64_t offset, record_mark mark)
{
    assert(order->claim.record_count < DESK_RECORDS_MAX);
    order->records[order->claim.record_count++] =
        (struct record){ { slice_of_text(topic), partition, offset }, mark };
}

void order_deinit(struct order *order)
{
    store_claim_deinit(&order->claim);
}

bool desk_turn(struct desk *desk, int wait_ms)
{
    struct pollfd fd = { .fd = store_port_fd(desk->port), .events = POLLIN };
    if (poll(&fd, 1, wait_ms) <= 0)
        return false;
    store_port_deliver(desk->port);
    return true;
}

void desk_pump(struct desk *desk, const bool *is_done)
{
    while (!*is_done) {
        if (!desk_turn(desk, PATIENCE_MS)) {
            fprintf(stderr, "nothing came back from the store\n");
            abort();
        }
    }
}

void desk_post(struct desk *desk, struct order *order)
{
    store_claim_deinit(&order->claim);
    order->is_answered = false;
    store_claim(desk->port, &order->claim);
}

void desk_post_settle(struct desk *desk, struct order *order)
{
    order->is_settled = false;
    order->settlement.claim_id = order->claim.ret_claim_id;
    order->settlement.records = order->records;
    order->settlement.verdicts = order->verdicts;
    order->settlement.outcomes = order->outcomes;
    order->settlement.record_count = order->claim.record_count;
    order->settlement.done = on_settled;
    store_settle(desk->port, &order->settlement);
}

enum store_status desk_claim(struct desk *desk, struct order *order)
{
    desk_post(desk, order);
    desk_pump(desk, &order->is_answered);
    return order->status;
}

enum store_status desk_settle_each(struct desk *desk, struct order *order)
{
    desk_post_settle(desk, order);
    desk_pump(desk, &order->is_settled);
    return order->settle_status;
}

enum store_status desk_settle(struct desk *desk, struct order *order, enum outcome outcome)
{
    for (size_t i = 0; i < order->claim.record_count; i++)
        order->outcomes[i] = outcome;
    return desk_settle_each(desk, order);
}

static bool is_question_done;
static enum store_status question_status;

static void on_asked(struct question *question, enum store_status status)
{
    (void)question;
    question_status = status;
    is_question_done = true;
}

enum store_status desk_ask(struct desk *desk, struct question *question)
{
    is_question_done = false;
    question->done = on_asked;
    if (question->row_count_max == 0)
        question->row_count_max = 1000;
    store_ask(desk->port, question);
    desk_pump(desk, &is_question_done);
    return question_status;
}

enum verdict desk_offer(struct desk *desk, const char *topic, int32_t partition, int64_t first, size_t count,
                        record_mark mark, enum outcome outcome)
{
    struct order *order = calloc(1, sizeof *order);
    assert(order != NULL);
    order_init(order, topic, partition, first, count);
    for (size_t i = 0; mark != MARK_NONE && i < count; i++)
        order->records[i].mark = mark + (record_mark)(2 * i);
    enum store_status status = desk_claim(desk, order);
    enum verdict verdict = order->verdicts[0];
    assert(status == STORE_OK);
    if (order->claim.ret_new_count > 0)
        status = desk_settle(desk, order, outcome);
    assert(status == STORE_OK);
    order_deinit(order);
    free(order);
    return verdict;
}

enum record_state desk_state(struct desk *desk, const char *topic, int32_t partition, int64_t offset)
{
    struct question question = { .kind = ASK_RECORD, .partition = partition, .first = offset };
    snprintf(question.topic, sizeof question.topic, "%s", topic);
    enum store_status status = desk_ask(desk, &question);
    assert(status == STORE_OK && question.ret_status == QUESTION_OK);
    store_question_deinit(&question);
    return question.ret_state;
}

struct store_options desk_options(const char *folder)
{
    return (struct store_options){ .folder = folder,
                                   .scope = "orders->billing",
                                   .ledger_bytes_max = 64 * 1024 * 1024,
                                   .policy = POLICY_HOLD,
                                   .in_doubt_max = 10000,
                                   .marks = 65536,
                                   .is_identity_checked = true,
                                   .window = 10000000,
                                   .replies = 1000,
                                   .reply_bytes_max = 4096 };
}
