/*
 * busy.c - a ledger in memory that has seen something of everything.
 */
#include "busy.h"

#include <assert.h>
#include <stdlib.h>

enum { RECORDS = 30 };

static struct record records[RECORDS];
static struct slice contexts[RECORDS];
static enum verdict verdicts[RECORDS];
static enum outcome outcomes[RECORDS];
static struct claim claim;
static struct machine_settings settings = { .policy = POLICY_RETRY,
                                            .in_doubt_max = 1000,
                                            .marks = 300,
                                            .is_identity_checked = true,
                                            .window = 100000,
                                            .replies = 4,
                                            .reply_bytes_max = 100 };

static void on_claim(void *shell, struct claim *answered, enum store_status status)
{
    (void)shell;
    (void)status;
    free(answered->reply_bytes);
    answered->reply_bytes = NULL;
}

void busy_offer(struct machine *machine, int32_t partition, int64_t first, size_t count, enum outcome outcome)
{
    for (size_t i = 0; i < count; i++) {
        int64_t offset = first + (int64_t)i;
        records[i] = (struct record){ { slice_of_text("orders"), partition, offset },
                                      mark_of_hash((uint64_t)offset * 2) };
        outcomes[i] = outcome;
    }
    for (size_t i = 0; i < count; i++)
        contexts[i] = slice_of_text("what a probe must know");
    claim = (struct claim){
        .records = records, .record_count = count, .contexts = contexts, .ret_verdicts = verdicts
    };
    machine_claim(machine, &claim);
    struct settlement settlement = { .claim_id = claim.ret_claim_id,
                                     .records = records,
                                     .verdicts = verdicts,
                                     .outcomes = outcomes,
                                     .record_count = count,
                                     .cause = DOUBT_STATUS,
                                     .detail = "500",
                                     .reply = { 201, slice_of_text("t"), slice_of_text("b") } };
    if (claim.ret_new_count > 0 &&
        outcome != OUTCOME_NOT_SENT) /* NOT_SENT stands for one that stays in flight */
        machine_settle(machine, &settlement);
}

void busy_work(struct machine *machine, int64_t from)
{
    busy_offer(machine, 0, from, RECORDS, OUTCOME_APPLIED);
    busy_offer(machine, 0, from + 50, 1, OUTCOME_APPLIED);
    busy_offer(machine, 0, from + 60, 7, OUTCOME_UNKNOWN);
    busy_offer(machine, 1, from + 3, 5, OUTCOME_NOT_SENT);
    busy_offer(machine, 1, from + 200000, 5, OUTCOME_APPLIED);
    busy_offer(machine, 2, from, 1, OUTCOME_NOT_APPLIED);
}

void busy_change(struct machine *machine, enum question_kind kind, int64_t first, int64_t last)
{
    struct question question = {
        .kind = kind, .topic = "orders", .first = first, .last = last, .until_ms = 1000
    };
    machine_ask(machine, &question);
    question.expect_count = question.ret_count;
    if (question.ret_status == QUESTION_MISMATCH) /* now the count is known */
        machine_ask(machine, &question);
    machine_give_up(&question); /* rows that are damaged end it in the middle */
}

void busy_ask_everything(struct machine *machine)
{
    busy_change(machine, DO_FORGET, 10, 90000);
    busy_change(machine, DO_REPLAY_OPEN, 3000000, 4000000);
    busy_change(machine, DO_FORGET, -1, -1);
    for (int kind = ASK_RECORD; kind <= DO_DECIDE; kind++) {
        struct question question = { .kind = (enum question_kind)kind,
                                     .topic = "orders",
                                     .first = 5,
                                     .last = 70,
                                     .partition = 0,
                                     .id = 1,
                                     .is_applied = true,
                                     .expect_count = 7,
                                     .row_count_max = 100 };
        if (kind == DO_BACKUP)
            continue; /* not the machine's */
        machine_ask(machine, &question);
        machine_give_up(&question);
        free(question.ret.any);
    }
}

struct machine *busy_begin(struct rows *rows, uint64_t boot)
{
    struct machine *machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert(machine != NULL);
    rows_mem_begin(rows);
    machine_load(machine, rows, boot);
    if (rows_status(rows) != ROWS_OK) { /* refused: store_open() says so */
        machine_free(machine);
        return NULL;
    }
    machine_begin(machine, rows, (struct machine_time){ 1, 1 }, MACHINE_OPEN);
    return machine;
}

struct rows *busy_ledger(void)
{
    struct rows *good = rows_mem_new();
    struct machine *machine = busy_begin(good, 1);
    assert(machine != NULL);
    for (int64_t i = 0; i < 6; i++)
        busy_work(machine, i * 40000);
    busy_change(machine, DO_REPLAY_OPEN, 0, 100000);
    busy_work(machine, 40000);
    busy_offer(machine, 0, 0, 1, OUTCOME_APPLIED);
    machine_end(machine);
    assert(rows_status(good) == ROWS_OK);
    machine_free(machine);
    return good;
}
