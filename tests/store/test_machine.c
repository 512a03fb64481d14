/*
 * test_machine.c - F-08: the claim machine under random events and virtual time, against a naive model.
 *
 * One seed is one run.  Each step is a batch: postings, then a commit that succeeds, fails and is rolled back, or is
 * followed by a restart.  The model knows every record by itself; verdicts and states must agree after each step.
 * The number of seeds comes from the environment: SINKONCE_SEEDS (and SINKONCE_SEED, the first).
 */
#include "machine.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "rows_mem.h"

enum { PARTITIONS = 3, SPAN = 300, ORDERS = 24, RECORDS_MAX = 80, STEPS = 400, WAIT_MS = 50 };

/* Where each partition's records lie: over a border of chunks, at the beginning, at the very end. */
static const int64_t base[PARTITIONS] = { 2 * 65536 - 150, 0, INT64_MAX - (SPAN - 1) };

enum cell_state { ABSENT, INTENT, APPLIED, IN_DOUBT };

struct cell {
    enum cell_state state;
    record_mark mark;
    uint64_t claim_id;
    uint32_t attempts;
};

struct model {
    struct cell cells[PARTITIONS][SPAN];
    bool is_in_conflict[PARTITIONS];
    bool is_met[PARTITIONS];
    uint64_t doubt_count;
};

enum order_state { FREE, WAITING, SENT };

struct order {
    struct claim claim;
    struct record records[RECORDS_MAX];
    enum verdict verdicts[RECORDS_MAX];
    enum outcome outcomes[RECORDS_MAX];
    enum order_state state, state_before; /* before: at the begin of the batch */
    uint64_t deadline_ms, arrival;
};

static struct rows *rows;
static struct machine *machine;
static struct machine_settings settings;
static struct model model, model_before;
static struct order orders[ORDERS];
static unsigned seed;
static uint64_t arrival_count;
static uint64_t now_ms;
static uint64_t boot;
static uint64_t to_release[8 * ORDERS]; /* several batches may fail in a row */
static size_t to_release_count;
static uint64_t answered_count, waited_count, behind_count, failed_count; /* the run must do something */

/* False: the transaction has failed in the middle of its batch.  What the machine says then counts for nothing; it only
 * must come through, and all is rolled back. */
static bool is_sound(void)
{
    return rows_status(rows) == ROWS_OK;
}

static unsigned pick(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

static int partition_of(const struct record *record)
{
    return record->key.partition;
}

static struct cell *cell_of(const struct record *record)
{
    return &model.cells[partition_of(record)][record->key.offset - base[partition_of(record)]];
}

struct expected {
    enum verdict verdicts[RECORDS_MAX];
    size_t new_count, retried_count;
    bool is_conflict, is_hindered;
    bool
        is_behind; /* an earlier claim waits, with an earlier record of a partition of which this one would send some */
    const struct record *offender;
};

static enum verdict expect_open(const struct cell *cell, struct expected *expected)
{
    if (cell->state == IN_DOUBT && settings.policy == POLICY_RETRY) {
        expected->new_count++;
        expected->retried_count++;
        return VERDICT_NEW;
    }
    if (cell->state == IN_DOUBT && settings.policy == POLICY_ASSUME_APPLIED)
        return VERDICT_APPLIED;
    expected->is_hindered = true;
    return cell->state == IN_DOUBT ? VERDICT_IN_DOUBT : VERDICT_IN_FLIGHT;
}

static enum verdict expect_one(const struct record *record, struct expected *expected)
{
    const struct cell *cell = cell_of(record);
    if (model.is_in_conflict[partition_of(record)]) {
        expected->is_conflict = true;
        return VERDICT_CONFLICT;
    }
    if (cell->state != ABSENT && marks_contradict(cell->mark, record->mark)) {
        expected->is_conflict = true;
        if (expected->offender == NULL)
            expected->offender = record;
        return VERDICT_CONFLICT;
    }
    if (cell->state == ABSENT) {
        expected->new_count++;
        return VERDICT_NEW;
    }
    return cell->state == APPLIED ? VERDICT_APPLIED : expect_open(cell, expected);
}

static bool is_overtaking(const struct claim *claim, size_t index)
{
    const struct order *own = (const struct order *)(const void *)claim;
    const struct record *record = &claim->records[index];
    for (size_t i = 0; i < ORDERS; i++) {
        const struct order *other = &orders[i];
        if (other == own || other->state != WAITING || other->arrival > own->arrival)
            continue;
        for (size_t k = 0; k < other->claim.record_count; k++) {
            const struct record *theirs = &other->records[k];
            if (partition_of(theirs) == partition_of(record) && theirs->key.offset <= record->key.offset)
                return true;
        }
    }
    return false;
}

static struct expected expect(const struct claim *claim)
{
    struct expected expected = { 0 };
    for (size_t i = 0; i < claim->record_count; i++)
        expected.verdicts[i] = expect_one(&claim->records[i], &expected);
    if (expected.is_conflict || expected.is_hindered)
        return expected;
    for (size_t i = 0; i < claim->record_count; i++)
        expected.is_behind =
            expected.is_behind || (expected.verdicts[i] == VERDICT_NEW && is_overtaking(claim, i));
    for (size_t i = 0; expected.is_behind && i < claim->record_count; i++) {
        if (expected.verdicts[i] == VERDICT_NEW)
            expected.verdicts[i] = VERDICT_IN_FLIGHT; /* when its time is over; until then it waits */
    }
    expected.is_hindered = expected.is_behind;
    return expected;
}

static void model_claim(const struct claim *claim, enum verdict verdict, const struct record *record)
{
    struct cell *cell = cell_of(record);
    model.is_met[partition_of(record)] = true;
    if (cell->state == IN_DOUBT)
        model.doubt_count--;
    if (verdict == VERDICT_APPLIED)
        cell->state = APPLIED;
    if (verdict != VERDICT_NEW)
        return;
    if (cell->state == ABSENT)
        *cell = (struct cell){ .mark = record->mark };
    cell->state = INTENT;
    cell->claim_id = claim->ret_claim_id;
    cell->attempts++;
}

/* ---- what the machine says -------------------------------------------------------------------------------------- */

/* store.c is not linked. */
void store_claim_deinit(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
}

static struct order *order_of(struct claim *claim)
{
    return (struct order *)(void *)claim;
}

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    struct order *order = order_of(claim);
    (void)shell;
    store_claim_deinit(claim);
    if (status == STORE_FAILED)
        return;
    if (!is_sound()) {
        order->state = claim->ret_new_count > 0 ? SENT : FREE;
        return;
    }
    struct expected expected = expect(claim);
    assert_int_equal(status, STORE_OK);
    answered_count++;
    bool is_acting = !expected.is_conflict && !expected.is_hindered;
    if (expected.is_hindered && !expected.is_conflict)
        assert_true(order->deadline_ms <= now_ms); /* hindered: only when its time is over */
    if (expected.offender == NULL || !is_acting)
        assert_int_equal(claim->ret_new_count, is_acting ? expected.new_count : 0);
    assert_int_equal(claim->ret_retried_count, is_acting ? expected.retried_count : 0);
    assert_int_equal(claim->ret_claim_id != 0, claim->ret_new_count > 0);
    for (size_t i = 0; i < claim->record_count; i++) {
        assert_int_equal(claim->ret_verdicts[i], expected.verdicts[i]);
        if (is_acting)
            model_claim(claim, expected.verdicts[i], &claim->records[i]);
    }
    if (expected.offender != NULL) {
        model.is_in_conflict[partition_of(expected.offender)] = true;
        model.is_met[partition_of(expected.offender)] = true;
    }
    order->state = claim->ret_new_count > 0 ? SENT : FREE;
}

static void assert_states(void)
{
    static const enum record_state states[] = { RECORD_ABSENT, RECORD_IN_FLIGHT, RECORD_APPLIED,
                                                RECORD_IN_DOUBT };
    for (int i = 0; i < 20; i++) {
        int partition = (int)pick(PARTITIONS);
        int64_t index = (int64_t)pick(SPAN);
        struct question question = { .kind = ASK_RECORD,
                                     .topic = "orders",
                                     .partition = partition,
                                     .first = base[partition] + index,
                                     .row_count_max = 1 };
        machine_ask(machine, &question);
        const struct cell *cell = &model.cells[partition][index];
        assert_int_equal(question.ret_state, states[cell->state]);
        if (cell->state == IN_DOUBT)
            assert_int_equal(question.ret.doubts[0].attempts, cell->attempts);
        free(question.ret.any);
    }
    struct machine_figures figures;
    machine_figures_get(machine, &figures);
    assert_int_equal(figures.in_doubt_records, model.doubt_count);
}

static void assert_counts(void)
{
    struct question question = { .kind = ASK_PARTITIONS, .row_count_max = 10 };
    machine_ask(machine, &question);
    size_t met_count = 0;
    for (int i = 0; i < PARTITIONS; i++)
        met_count += model.is_met[i];
    assert_int_equal(question.ret_row_count, met_count);
    for (size_t row = 0; row < question.ret_row_count; row++) {
        const struct partition_row *actual = &question.ret.partitions[row];
        uint64_t counts[4] = { 0 };
        for (size_t i = 0; i < SPAN; i++)
            counts[model.cells[actual->partition][i].state]++;
        assert_int_equal(actual->applied_count, counts[APPLIED]);
        assert_int_equal(actual->in_flight_count, counts[INTENT]);
        assert_int_equal(actual->in_doubt_count, counts[IN_DOUBT]);
        assert_int_equal(actual->is_in_conflict, model.is_in_conflict[actual->partition]);
    }
    free(question.ret.any);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static struct order *order_in(enum order_state state)
{
    unsigned from = pick(ORDERS);
    for (unsigned i = 0; i < ORDERS; i++)
        if (orders[(from + i) % ORDERS].state == state)
            return &orders[(from + i) % ORDERS];
    return NULL;
}

/* The true mark of a record, seldom another one. */
static record_mark mark_for(int partition, int64_t offset)
{
    record_mark mark = mark_of_hash(2 + 2 * ((uint64_t)offset % 1000 + 1000 * (unsigned)partition));
    return pick(400) == 0 ? mark + 2 : pick(10) == 0 ? MARK_NONE : mark;
}

static void add_stretch(struct order *order, int partition)
{
    size_t index = pick(SPAN), count = 1 + pick(pick(4) == 0 ? 1 : 30);
    for (size_t i = 0; i < count && index + i < SPAN && order->claim.record_count < RECORDS_MAX; i++) {
        int64_t offset = base[partition] + (int64_t)(index + i);
        order->records[order->claim.record_count++] =
            (struct record){ { slice_of_text("orders"), partition, offset }, mark_for(partition, offset) };
    }
}

static void event_claim(void)
{
    struct order *order = order_in(FREE);
    if (order == NULL)
        return;
    order->claim = (struct claim){ .records = order->records, .ret_verdicts = order->verdicts };
    int first_partition = (int)pick(PARTITIONS);
    add_stretch(order, first_partition);
    if (pick(3) == 0)
        add_stretch(order, (first_partition + 1) % PARTITIONS); /* another: each key at most once */
    order->claim.wait_ms = pick(2) == 0 ? 0 : WAIT_MS;
    order->deadline_ms = now_ms + order->claim.wait_ms;
    order->arrival = ++arrival_count;
    order->state = WAITING;
    machine_claim(machine, &order->claim);
    if (order->state == WAITING && is_sound()) { /* not answered: the model must see why */
        struct expected expected = expect(&order->claim);
        assert_true(expected.is_hindered && !expected.is_conflict && order->claim.wait_ms > 0);
        waited_count++;
        behind_count += expected.is_behind;
    }
}

static void model_settle(const struct record *record, enum outcome outcome)
{
    struct cell *cell = cell_of(record);
    if (outcome == OUTCOME_APPLIED) {
        cell->state = APPLIED;
    } else if (outcome == OUTCOME_UNKNOWN) {
        cell->state = IN_DOUBT;
        model.doubt_count++;
    } else if (outcome == OUTCOME_NOT_SENT && cell->attempts > 1) {
        cell->state = IN_DOUBT; /* a doubt that was re-opened in vain */
        cell->attempts--;
        model.doubt_count++;
    } else {
        *cell = (struct cell){ 0 };
    }
}

static void event_settle(void)
{
    struct order *order = order_in(SENT);
    if (order == NULL)
        return;
    enum outcome outcome = (enum outcome)pick(4);
    for (size_t i = 0; i < order->claim.record_count; i++) {
        if (pick(8) == 0)
            outcome = (enum outcome)pick(4);
        order->outcomes[i] = outcome;
        struct cell *cell = cell_of(&order->records[i]);
        bool is_ours = cell->state == INTENT && cell->claim_id == order->claim.ret_claim_id;
        if (order->verdicts[i] == VERDICT_NEW && is_ours)
            model_settle(&order->records[i], outcome);
    }
    struct settlement settlement = { .claim_id = order->claim.ret_claim_id,
                                     .records = order->records,
                                     .verdicts = order->verdicts,
                                     .outcomes = order->outcomes,
                                     .record_count = order->claim.record_count,
                                     .cause = DOUBT_TIMEOUT,
                                     .detail = "no answer" };
    machine_settle(machine, &settlement);
    order->state = FREE;
}

static void event_resolve(void)
{
    int partition = (int)pick(PARTITIONS);
    int64_t from = (int64_t)pick(SPAN), to = from + (int64_t)pick(60);
    to = to >= SPAN ? SPAN - 1 : to;
    bool is_applied = pick(2) == 0;
    uint64_t count = 0;
    for (int64_t i = from; i <= to; i++) {
        struct cell *cell = &model.cells[partition][i];
        if (cell->state != IN_DOUBT)
            continue;
        count++;
        if (is_applied)
            cell->state = APPLIED;
        else
            *cell = (struct cell){ 0 };
    }
    model.doubt_count -= count;
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = base[partition] + from,
                                 .last = base[partition] + to,
                                 .is_applied = is_applied,
                                 .expect_count = count };
    machine_ask(machine, &question);
    if (!is_sound())
        return;
    assert_int_equal(question.ret_status, QUESTION_OK);
    assert_int_equal(question.ret_count, count);
}

static void model_decide(const struct conflict_row *conflict, bool is_new_topic)
{
    struct cell *cells = model.cells[conflict->partition];
    model.is_in_conflict[conflict->partition] = false;
    struct cell *cell = &cells[conflict->offset - base[conflict->partition]];
    if (!is_new_topic) {
        cell->mark = cell->state == ABSENT ? cell->mark : conflict->seen;
        return;
    }
    for (size_t i = 0; i < SPAN; i++)
        model.doubt_count -= cells[i].state == IN_DOUBT;
    memset(cells, 0, SPAN * sizeof cells[0]);
}

static void event_decide(void)
{
    struct question list = { .kind = ASK_CONFLICTS, .row_count_max = 10 };
    machine_ask(machine, &list);
    if (list.ret_row_count > 0) {
        const struct conflict_row *conflict = &list.ret.conflicts[0];
        struct question question = { .kind = DO_DECIDE,
                                     .doubt_id = conflict->id,
                                     .is_new_topic = pick(3) == 0 };
        machine_ask(machine, &question);
        if (is_sound())
            assert_int_equal(question.ret_status, QUESTION_OK);
        model_decide(conflict, question.is_new_topic);
    }
    free(list.ret.any);
}

static void one_event(void)
{
    unsigned event = pick(20);
    if (event < 9)
        event_claim();
    else if (event < 17)
        event_settle();
    else if (event < 18)
        event_resolve();
    else if (event < 20)
        event_decide();
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

/* The claims of a batch that failed are told so; those that began to wait in it go on waiting. */
static void roll_back_orders(void)
{
    for (size_t i = 0; i < ORDERS; i++) {
        struct order *order = &orders[i];
        if (order->state == SENT && order->state_before != SENT) {
            to_release[to_release_count++] = order->claim.ret_claim_id;
            order->state = FREE;
        }
        if (order->state_before == SENT && order->state != SENT)
            order->state = order->state == FREE ? SENT : order->state; /* its settlement comes again */
    }
}

static void fail_batch(struct rows *snapshot)
{
    failed_count++;
    machine_forget(machine);
    rows_mem_free(rows);
    rows = snapshot;
    model = model_before;
    roll_back_orders();
    machine_load(machine, rows, boot);
    assert_int_equal(rows_status(rows), ROWS_OK);
}

static void begin_batch(void)
{
    rows_mem_begin(rows);
    machine_begin(machine, rows, (struct machine_time){ 1000000 + now_ms, now_ms }, MACHINE_OPEN);
}

static void refuse_waiters(void)
{
    machine_refuse_waiters(machine, STORE_FAILED);
}

/* The process dies: its orders are gone, every intent is in doubt. */
static void restart(void)
{
    refuse_waiters();
    machine_forget(machine);
    machine_free(machine);
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    rows_mem_begin(rows);
    machine_load(machine, rows, ++boot);
    for (int partition = 0; partition < PARTITIONS; partition++) {
        for (size_t i = 0; i < SPAN; i++) {
            struct cell *cell = &model.cells[partition][i];
            model.doubt_count += cell->state == INTENT;
            cell->state = cell->state == INTENT ? IN_DOUBT : cell->state;
        }
    }
    for (size_t i = 0; i < ORDERS; i++)
        orders[i].state = FREE;
    to_release_count = 0;
    begin_batch();
    machine_recover(machine);
    machine_end(machine);
    machine_keep(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
}

static void one_batch(void)
{
    struct rows *snapshot = rows_mem_copy(rows);
    model_before = model;
    begin_batch();
    for (size_t i = 0; i < ORDERS; i++)
        orders[i].state_before = orders[i].state;
    if (pick(20) == 0)
        rows_mem_fail_at(rows, 1 + pick(12), pick(2) == 0 ? ROWS_FULL : ROWS_FAILED);
    for (size_t i = 0; i < to_release_count; i++)
        machine_release(machine, to_release[i]);
    machine_wake(machine);
    for (unsigned i = pick(4); i > 0; i--)
        one_event();
    if (pick(4) == 0 && is_sound())
        assert_counts();
    machine_end(machine);
    if (rows_status(rows) != ROWS_OK || pick(25) == 0) {
        fail_batch(snapshot);
        return;
    }
    to_release_count = 0;
    machine_keep(machine);
    rows_mem_free(snapshot);
    begin_batch();
    assert_states();
    machine_end(machine);
}

static void run_seed(unsigned first_seed)
{
    seed = first_seed;
    settings = (struct machine_settings){ .policy = (enum doubt_policy)pick(3),
                                          .in_doubt_max = 1000000,
                                          .marks = 65536,
                                          .is_identity_checked = true,
                                          .window = (uint64_t)1 << 62,
                                          .replies = 5,
                                          .reply_bytes_max = 100 };
    rows = rows_mem_new();
    memset(&model, 0, sizeof model);
    memset(orders, 0, sizeof orders);
    to_release_count = 0;
    now_ms = 1;
    boot = 1;
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    machine_load(machine, rows, boot);
    for (int step = 0; step < STEPS; step++) {
        one_batch();
        now_ms += pick(3) == 0 ? pick(2 * WAIT_MS) : 1;
        if (pick(100) == 0)
            restart();
    }
    refuse_waiters();
    machine_free(machine);
    rows_mem_free(rows);
}

static void test_F08_verdicts_and_states_are_those_of_a_naive_model(void **state)
{
    const char *seeds = getenv("SINKONCE_SEEDS"), *first = getenv("SINKONCE_SEED");
    unsigned seed_count = seeds == NULL ? 60 : (unsigned)strtoul(seeds, NULL, 10);
    unsigned first_seed = first == NULL ? 1 : (unsigned)strtoul(first, NULL, 10);
    (void)state;
    for (unsigned i = 0; i < seed_count; i++) {
        print_message("seed %u\n", first_seed + i);
        run_seed(first_seed + i);
    }
    assert_true(answered_count > seed_count * STEPS / 4);
    assert_true(waited_count > seed_count);
    assert_true(behind_count > 0);
    assert_true(failed_count > seed_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F08_verdicts_and_states_are_those_of_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
