/*
 * walk.c - see walk.h.
 */
#include "walk.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

struct walk walk;

static enum store_status claim_status;

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell;
    (void)claim;
    claim_status = status;
}

void store_claim_deinit(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static void open_machine(uint64_t boot)
{
    const struct machine_settings settings = { .in_doubt_max = 100000,
                                               .marks = 1000,
                                               .is_identity_checked = true,
                                               .window = 100000,
                                               .replies = 10000,
                                               .reply_bytes_max = 100 };
    walk.machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(walk.machine);
    machine_load(walk.machine, walk.rows, boot);
}

int walk_setup(void **state)
{
    (void)state;
    walk.rows = rows_mem_new();
    rows_mem_begin(walk.rows);
    open_machine(1);
    return 0;
}

int walk_teardown(void **state)
{
    (void)state;
    machine_free(walk.machine);
    rows_mem_free(walk.rows);
    return 0;
}

void walk_begin(enum machine_mode mode)
{
    rows_mem_begin(walk.rows);
    machine_begin(walk.machine, walk.rows, (struct machine_time){ 1, 1 }, mode);
}

void walk_commit(void)
{
    machine_end(walk.machine);
    assert_int_equal(rows_status(walk.rows), ROWS_OK);
    machine_keep(walk.machine);
}

/* ---- deliveries ------------------------------------------------------------------------------------------------- */

enum verdict walk_offer(const char *topic, int32_t partition, int64_t offset, enum outcome outcome,
                        const char *answer)
{
    const struct record record = { { slice_of_text(topic), partition, offset },
                                   mark_of_hash((uint64_t)offset) };
    enum verdict verdict;
    struct claim claim = { .records = &record, .record_count = 1, .ret_verdicts = &verdict };
    machine_claim(walk.machine, &claim);
    assert_int_equal(claim_status, STORE_OK);
    store_claim_deinit(&claim);
    if (verdict != VERDICT_NEW)
        return verdict;
    struct settlement settlement = { .claim_id = claim.ret_claim_id,
                                     .records = &record,
                                     .verdicts = &verdict,
                                     .outcomes = &outcome,
                                     .record_count = 1,
                                     .cause = DOUBT_TIMEOUT,
                                     .detail = "no answer in time",
                                     .reply = { answer[0] == '\0' ? 0 : 201, slice_of_text("text/plain"),
                                                slice_of_text(answer) } };
    machine_settle(walk.machine, &settlement);
    return verdict;
}

enum verdict walk_deliver(const char *topic, int32_t partition, int64_t offset)
{
    walk_begin(MACHINE_OPEN);
    enum verdict verdict = walk_offer(topic, partition, offset, OUTCOME_APPLIED, "");
    walk_commit();
    return verdict;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

bool walk_step(struct question *question)
{
    walk_begin(MACHINE_OPEN);
    machine_ask(walk.machine, question);
    walk_commit();
    return machine_goes_on(question);
}

size_t walk_to_the_end(struct question *question)
{
    size_t count = 1;
    while (walk_step(question))
        count++;
    return count;
}

void walk_fail(struct question *question)
{
    struct rows *before = rows_mem_copy(walk.rows);
    walk_begin(MACHINE_OPEN);
    machine_ask(walk.machine, question);
    machine_end(walk.machine);
    machine_forget(walk.machine);
    rows_mem_free(walk.rows);
    walk.rows = before;
    rows_mem_begin(walk.rows);
    machine_load(walk.machine, walk.rows, 1);
}

void walk_crash(struct question *question)
{
    machine_give_up(question);
    machine_free(walk.machine);
    rows_mem_begin(walk.rows);
    open_machine(2);
}

/* ---- what there is ---------------------------------------------------------------------------------------------- */

struct machine_figures walk_figures(void)
{
    struct machine_figures figures;
    machine_figures_get(walk.machine, &figures);
    return figures;
}

void walk_assert_events(enum event_kind kind, const char *topic, const char *const details[], size_t count)
{
    struct question question = { .kind = ASK_EVENTS, .row_count_max = 1000 };
    walk_begin(MACHINE_READ);
    machine_ask(walk.machine, &question);
    walk_commit();
    size_t found = 0;
    for (size_t i = 0; i < question.ret_row_count; i++) {
        const struct event_row *row = &question.ret.events[i];
        if (row->kind != kind)
            continue;
        assert_true(found < count);
        assert_string_equal(row->topic, topic);
        assert_string_equal(row->detail, details[found++]);
    }
    assert_int_equal(found, count);
    free(question.ret.any);
}
