/*
 * simulation.c - see simulation.h.
 *
 * Each step is a batch: postings, then a commit that succeeds, fails and is rolled back, or is followed by a restart.
 */
#include "simulation.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "failing_memory.h"
#include "machine.h"
#include "rows_mem.h"

enum { PARTITIONS = 3, SPAN = 300, ORDERS = 24, RECORDS_MAX = 80, WAIT_MS = 50, WINDOWS = 4 };

/* Where each partition's records lie: over a border of chunks, at the beginning, at the very end. */
static const int64_t base[PARTITIONS] = { 2 * 65536 - 150, 0, INT64_MAX - (SPAN - 1) };

enum cell_state { ABSENT, INTENT, APPLIED, IN_DOUBT };

struct cell {
    enum cell_state state;
    record_mark mark;
    record_mark open_mark; /* while it is open: that of its claim */
    uint64_t claim_id;
    uint32_t attempts;
    bool was_applied;     /* sent again under a window: the first delivery stands */
    uint64_t replay_id;   /* that window */
    uint64_t replayed_in; /* the window under which it has been sent again */
    uint32_t context;     /* what the claim that opened it said; 0: nothing */
};

struct window {
    uint64_t id, until_ms, replayed_count;
    int partition;
    int64_t first, last; /* cells */
};

struct model {
    struct cell cells[PARTITIONS][SPAN];
    bool is_in_conflict[PARTITIONS];
    bool is_met[PARTITIONS];
    uint64_t doubt_count;
    struct window windows[WINDOWS];
};

enum order_state { FREE, WAITING, SENT };

struct order {
    struct claim claim;
    struct record records[RECORDS_MAX];
    enum verdict verdicts[RECORDS_MAX];
    enum outcome outcomes[RECORDS_MAX];
    struct slice contexts[RECORDS_MAX];
    uint32_t context_words[RECORDS_MAX];
    enum order_state state, state_before; /* before: at the begin of the batch */
    uint64_t deadline_ms, arrival;
};

static struct rows *rows;
static struct machine *machine;
static struct machine_settings settings;
static struct model model, model_before;
static struct order orders[ORDERS];
static const struct chances *chances;
static unsigned sample_seed;
static uint64_t arrival_count;
static uint64_t now_ms;
static uint64_t boot;
static uint64_t to_release[8 * ORDERS]; /* several batches may fail in a row: as long as there is room */
static size_t to_release_count;
static struct simulation_counts tally; /* of this run */

/* False: the transaction has failed in the middle of its batch.  What the machine says then counts for nothing; it only
 * must come through, and all is rolled back. */
static bool is_sound(void)
{
    return rows_status(rows) == ROWS_OK && !memory_has_failed();
}

/* What happens. */
static unsigned pick(unsigned below)
{
    return chances->pick(chances->context, below);
}

/* What is looked at: no chance of the run is spent on it. */
static unsigned sample(unsigned below)
{
    return (unsigned)rand_r(&sample_seed) % below;
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

/* The open window over a cell. */
static struct window *window_over(int partition, int64_t index)
{
    for (size_t i = 0; i < WINDOWS; i++) {
        struct window *window = &model.windows[i];
        if (window->id != 0 && window->until_ms > 1000000 + now_ms && window->partition == partition &&
            window->first <= index && index <= window->last)
            return window;
    }
    return NULL;
}

static struct window *window_of(uint64_t id)
{
    for (size_t i = 0; id != 0 && i < WINDOWS; i++)
        if (model.windows[i].id == id)
            return &model.windows[i];
    return NULL;
}

/* Machine and model close them at the same time: at the begin of a batch. */
static void expire_windows(void)
{
    for (size_t i = 0; i < WINDOWS; i++)
        if (model.windows[i].until_ms <= 1000000 + now_ms)
            model.windows[i] = (struct window){ 0 };
}

static struct window *window_over_record(const struct record *record)
{
    const struct cell *cell = cell_of(record);
    struct window *window =
        window_over(partition_of(record), record->key.offset - base[partition_of(record)]);
    return cell->state == APPLIED && window != NULL && cell->replayed_in != window->id ? window : NULL;
}

static void become_applied(struct cell *cell)
{
    int64_t place = cell - &model.cells[0][0];
    const struct window *meanwhile = window_over((int)(place / SPAN), place % SPAN);
    struct window *window = window_of(cell->replay_id);
    if (cell->replay_id != 0) {
        cell->replayed_in = cell->replay_id;
        tally.replayed_count++;
    } else if (meanwhile != NULL) {
        cell->replayed_in = meanwhile->id; /* for the first time: it need not come again */
    }
    if (window != NULL)
        window->replayed_count++;
    cell->state = APPLIED;
    cell->mark = cell->open_mark != MARK_NONE ? cell->open_mark : cell->mark;
    cell->was_applied = false;
    cell->replay_id = cell->claim_id = 0;
    cell->attempts = cell->context = 0;
}

/* No effect: unknown, or what the first delivery left. */
static void become_free(struct cell *cell)
{
    bool was_applied = cell->was_applied;
    uint64_t replayed_in = cell->replayed_in;
    record_mark mark = cell->mark;
    *cell = (struct cell){ 0 };
    if (was_applied)
        *cell = (struct cell){ .state = APPLIED, .mark = mark, .replayed_in = replayed_in };
}

struct expected {
    enum verdict verdicts[RECORDS_MAX];
    size_t new_count, retried_count, replayed_count;
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
    record_mark known = cell->state == APPLIED ? cell->mark : cell->open_mark;
    if (cell->state != ABSENT && marks_contradict(known, record->mark)) {
        expected->is_conflict = true;
        if (expected->offender == NULL)
            expected->offender = record;
        return VERDICT_CONFLICT;
    }
    if (cell->state == ABSENT) {
        expected->new_count++;
        return VERDICT_NEW;
    }
    if (window_over_record(record) != NULL) {
        expected->new_count++;
        expected->replayed_count++;
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

/* Does CLAIM bring more partitions than there is room for? */
static bool is_crowded(const struct claim *claim)
{
    bool is_met[PARTITIONS];
    uint64_t count = 0;
    memcpy(is_met, model.is_met, sizeof is_met);
    for (size_t i = 0; i < claim->record_count; i++)
        is_met[partition_of(&claim->records[i])] = true;
    for (size_t i = 0; i < PARTITIONS; i++)
        count += is_met[i];
    bool is_known = memcmp(is_met, model.is_met, sizeof is_met) == 0;
    return !is_known && settings.partitions_max != 0 && count > settings.partitions_max;
}

/* A mark that was not known is learnt with the delivery that is settled as applied. */
static void model_claim(const struct claim *claim, enum verdict verdict, const struct record *record,
                        uint32_t context)
{
    struct cell *cell = cell_of(record);
    struct window *window = window_over_record(record);
    model.is_met[partition_of(record)] = true;
    bool is_doubt = cell->state == IN_DOUBT;
    if (is_doubt)
        model.doubt_count--;
    if (verdict == VERDICT_APPLIED && is_doubt)
        become_applied(cell);
    if (verdict != VERDICT_NEW)
        return;
    if (cell->state == ABSENT)
        *cell = (struct cell){ .open_mark = record->mark };
    if (window != NULL) {
        cell->was_applied = true;
        cell->replay_id = window->id;
        cell->open_mark = record->mark;
    }
    cell->context = context == 0 ? cell->context : context;
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
    bool is_acting = !expected.is_conflict && !expected.is_hindered;
    if (is_acting && is_crowded(claim)) {
        assert_int_equal(status, STORE_CROWDED);
        for (size_t i = 0; i < claim->record_count; i++)
            assert_int_equal(claim->ret_verdicts[i] == VERDICT_UNMET,
                             !model.is_met[partition_of(&claim->records[i])]);
        assert_int_equal(claim->ret_claim_id, 0);
        order->state = FREE;
        tally.crowded_count++;
        return;
    }
    assert_int_equal(status, STORE_OK);
    tally.answered_count++;
    if (expected.is_hindered && !expected.is_conflict)
        assert_true(order->deadline_ms <= now_ms); /* hindered: only when its time is over */
    if (expected.offender == NULL || !is_acting)
        assert_int_equal(claim->ret_new_count, is_acting ? expected.new_count : 0);
    assert_int_equal(claim->ret_replayed_count, is_acting ? expected.replayed_count : 0);
    assert_int_equal(claim->ret_retried_count, is_acting ? expected.retried_count : 0);
    assert_int_equal(claim->ret_claim_id != 0, claim->ret_new_count > 0);
    for (size_t i = 0; i < claim->record_count; i++) {
        assert_int_equal(claim->ret_verdicts[i], expected.verdicts[i]);
        if (is_acting)
            model_claim(claim, expected.verdicts[i], &claim->records[i], order->context_words[i]);
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
        int partition = (int)sample(PARTITIONS);
        int64_t index = (int64_t)sample(SPAN);
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
    if (!is_sound()) { /* no memory: it may have been told nothing */
        free(question.ret.any);
        return;
    }
    size_t met_count = 0;
    for (int i = 0; i < PARTITIONS; i++)
        met_count += model.is_met[i];
    assert_int_equal(question.ret_row_count, met_count);
    for (size_t row = 0; row < question.ret_row_count; row++) {
        const struct partition_row *actual = &question.ret.partitions[row];
        uint64_t counts[4] = { 0 };
        for (size_t i = 0; i < SPAN; i++)
            counts[model.cells[actual->partition][i].state]++;
        for (size_t i = 0; i < SPAN; i++)
            counts[APPLIED] += model.cells[actual->partition][i].was_applied;
        assert_int_equal(actual->applied_count, counts[APPLIED]);
        assert_int_equal(actual->in_flight_count, counts[INTENT]);
        assert_int_equal(actual->in_doubt_count, counts[IN_DOUBT]);
        assert_int_equal(actual->is_in_conflict, model.is_in_conflict[actual->partition]);
    }
    free(question.ret.any);
}

/* The intervals are those of the cells, without a gap or an overlap of their own. */
static void assert_intervals(void)
{
    static const enum record_state states[] = { RECORD_ABSENT, RECORD_IN_FLIGHT, RECORD_APPLIED,
                                                RECORD_IN_DOUBT };
    int partition = (int)sample(PARTITIONS);
    int64_t from = (int64_t)sample(SPAN);
    struct question question = { .kind = ASK_INTERVALS,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = base[partition] + from,
                                 .row_count_max = 1000 };
    machine_ask(machine, &question);
    assert_int_equal(question.ret_status, model.is_met[partition] ? QUESTION_OK : QUESTION_NOT_FOUND);
    size_t row = 0;
    for (int64_t i = from; i < SPAN && model.is_met[partition]; i++) {
        int64_t offset = base[partition] + i;
        while (row < question.ret_row_count && question.ret.intervals[row].last < offset)
            row++;
        bool is_in = row < question.ret_row_count && question.ret.intervals[row].first <= offset;
        assert_int_equal(is_in ? question.ret.intervals[row].state : RECORD_ABSENT,
                         states[model.cells[partition][i].state]);
    }
    free(question.ret.any);
}

static void assert_probes(void)
{
    struct question question = { .kind = ASK_PROBES, .after_offset = -1, .row_count_max = 10000 };
    machine_ask(machine, &question);
    assert_int_equal(question.ret_row_count, model.doubt_count);
    for (size_t i = 0; i < question.ret_row_count; i++) {
        const struct probe_row *row = &question.ret.probes[i];
        const struct cell *cell = &model.cells[row->partition][row->offset - base[row->partition]];
        uint32_t word = 0;
        assert_int_equal(cell->state, IN_DOUBT);
        assert_true(row->context_bytes == 0 || row->context_bytes == sizeof word);
        memcpy(&word, row->context, row->context_bytes);
        assert_int_equal(word, cell->context);
    }
    free(question.ret.any);
}

static void assert_windows(void)
{
    struct question question = { .kind = ASK_REPLAYS, .row_count_max = 10 };
    machine_ask(machine, &question);
    size_t open_count = 0;
    for (size_t i = 0; i < WINDOWS; i++)
        open_count += model.windows[i].id != 0;
    assert_int_equal(question.ret_row_count, open_count);
    for (size_t i = 0; i < question.ret_row_count; i++) {
        const struct window *window = window_of(question.ret.replays[i].id);
        assert_non_null(window);
        assert_int_equal(question.ret.replays[i].replayed_count, window->replayed_count);
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

/* A word of its own for each record, or nothing. */
static void say_contexts(struct order *order)
{
    for (size_t i = 0; i < order->claim.record_count; i++) {
        order->context_words[i] = order->claim.contexts == NULL || pick(3) == 0 ? 0 : 1 + pick(1000000);
        size_t byte_count = order->context_words[i] == 0 ? 0 : sizeof order->context_words[i];
        order->contexts[i] = slice_of((const char *)&order->context_words[i], byte_count);
    }
}

static void event_claim(void)
{
    struct order *order = order_in(FREE);
    if (order == NULL)
        return;
    order->claim = (struct claim){ .records = order->records,
                                   .contexts = pick(2) == 0 ? NULL : order->contexts,
                                   .ret_verdicts = order->verdicts };
    int first_partition = (int)pick(PARTITIONS);
    add_stretch(order, first_partition);
    if (pick(3) == 0)
        add_stretch(order, (first_partition + 1) % PARTITIONS); /* another: each key at most once */
    say_contexts(order);
    order->claim.wait_ms = pick(2) == 0 ? 0 : WAIT_MS;
    order->deadline_ms = now_ms + order->claim.wait_ms;
    order->arrival = ++arrival_count;
    order->state = WAITING;
    machine_claim(machine, &order->claim);
    if (order->state == WAITING && is_sound()) { /* not answered: the model must see why */
        struct expected expected = expect(&order->claim);
        assert_true(expected.is_hindered && !expected.is_conflict && order->claim.wait_ms > 0);
        tally.waited_count++;
        tally.behind_count += expected.is_behind;
    }
}

static void model_settle(const struct record *record, enum outcome outcome)
{
    struct cell *cell = cell_of(record);
    if (outcome == OUTCOME_APPLIED) {
        become_applied(cell);
    } else if (outcome == OUTCOME_UNKNOWN) {
        cell->state = IN_DOUBT;
        model.doubt_count++;
    } else if (cell->attempts > 1) {
        cell->state = IN_DOUBT; /* a doubt that was re-opened in vain */
        cell->attempts -= outcome == OUTCOME_NOT_SENT;
        model.doubt_count++;
    } else {
        become_free(cell);
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

/* False: the batch is lost, and the question with it. */
static bool change(struct question *question)
{
    machine_ask(machine, question);
    if (!is_sound())
        machine_give_up(question);
    return is_sound();
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
            become_applied(cell);
        else
            become_free(cell);
    }
    model.doubt_count -= count;
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = base[partition] + from,
                                 .last = base[partition] + to,
                                 .is_applied = is_applied,
                                 .expect_count = count };
    if (!change(&question))
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
        if (cell->state == INTENT || cell->state == IN_DOUBT)
            cell->open_mark = conflict->seen;
        if (cell->state == APPLIED || cell->was_applied)
            cell->mark = conflict->seen;
        return;
    }
    for (size_t i = 0; i < WINDOWS; i++)
        if (model.windows[i].partition == conflict->partition)
            model.windows[i] = (struct window){ 0 };
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
        struct question question = { .kind = DO_DECIDE, .id = conflict->id, .is_new_topic = pick(3) == 0 };
        machine_ask(machine, &question);
        if (is_sound())
            assert_int_equal(question.ret_status, QUESTION_OK);
        model_decide(conflict, question.is_new_topic);
    }
    free(list.ret.any);
}

static void event_open_window(void)
{
    struct window *window = &model.windows[pick(WINDOWS)];
    int partition = (int)pick(PARTITIONS);
    int64_t first = (int64_t)pick(SPAN), last = first + (int64_t)pick(100);
    last = last >= SPAN ? SPAN - 1 : last;
    if (window->id != 0 || !model.is_met[partition])
        return;
    bool is_free = true;
    for (size_t i = 0; i < WINDOWS; i++)
        is_free = is_free && (model.windows[i].id == 0 || model.windows[i].partition != partition ||
                              model.windows[i].last < first || last < model.windows[i].first);
    struct question question = { .kind = DO_REPLAY_OPEN,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = base[partition] + first,
                                 .last = base[partition] + last,
                                 .until_ms = 1000000 + now_ms + 1 + pick(500) };
    if (!change(&question))
        return;
    assert_int_equal(question.ret_status, is_free ? QUESTION_OK : QUESTION_MISMATCH);
    if (is_free)
        *window = (struct window){ question.ret_id, question.until_ms, 0, partition, first, last };
}

static void event_close_window(void)
{
    struct window *window = &model.windows[pick(WINDOWS)];
    struct question question = { .kind = DO_REPLAY_CLOSE, .id = window->id };
    if (!change(&question))
        return;
    assert_int_equal(question.ret_status, window->id != 0 ? QUESTION_OK : QUESTION_NOT_FOUND);
    assert_int_equal(question.ret_count, window->replayed_count);
    *window = (struct window){ 0 };
}

/* What is applied is unknown; what is open loses only the delivery that stood before. */
static uint64_t model_forget(int partition, int64_t from, int64_t to)
{
    uint64_t count = 0;
    for (int64_t i = from; i <= to; i++) {
        struct cell *cell = &model.cells[partition][i];
        count += cell->state == APPLIED || cell->was_applied;
        cell->was_applied = false;
        if (cell->state == APPLIED)
            *cell = (struct cell){ 0 };
    }
    return count;
}

/* Something of it is left: a doubt, a flight, a conflict or a window. */
static bool is_held(int partition)
{
    bool is_held = model.is_in_conflict[partition];
    for (size_t i = 0; i < SPAN; i++)
        is_held = is_held || model.cells[partition][i].state != ABSENT;
    for (size_t i = 0; i < WINDOWS; i++)
        is_held = is_held || (model.windows[i].id != 0 && model.windows[i].partition == partition);
    return is_held;
}

static void event_forget(void)
{
    int partition = (int)pick(PARTITIONS);
    bool is_whole = pick(3) == 0;
    int64_t from = is_whole ? 0 : (int64_t)pick(SPAN), to = from + (int64_t)pick(40);
    to = is_whole || to >= SPAN ? SPAN - 1 : to;
    if (!model.is_met[partition])
        return;
    uint64_t count = model_forget(partition, from, to);
    struct question question = { .kind = DO_FORGET,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = is_whole ? -1 : base[partition] + from,
                                 .last = is_whole ? -1 : base[partition] + to,
                                 .expect_count = count };
    if (!change(&question))
        return;
    assert_int_equal(question.ret_count, count);
    assert_int_equal(question.ret_status, QUESTION_OK);
    tally.forgotten_count += count;
    if (is_whole && !is_held(partition)) {
        model.is_met[partition] = false;
        tally.left_count++;
    }
}

static void one_event(void)
{
    unsigned event = pick(40);
    if (event < 16)
        event_claim();
    else if (event < 31)
        event_settle();
    else if (event < 33)
        event_resolve();
    else if (event < 36)
        event_decide();
    else if (event < 38)
        event_open_window();
    else if (event < 39)
        event_close_window();
    else
        event_forget();
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
    tally.failed_count++;
    memory_fail_at(0); /* forget that it has failed */
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
    expire_windows();
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
    tally.batch_count++;
    model_before = model;
    begin_batch();
    for (size_t i = 0; i < ORDERS; i++)
        orders[i].state_before = orders[i].state;
    bool may_fail = to_release_count <= 7 * ORDERS;
    memory_fail_at(may_fail && pick(20) == 0 ? 1 + pick(20) : 0);
    if (may_fail && pick(20) == 0)
        rows_mem_fail_at(rows, 1 + pick(12), pick(2) == 0 ? ROWS_FULL : ROWS_FAILED);
    for (size_t i = 0; i < to_release_count; i++)
        machine_release(machine, to_release[i]);
    machine_wake(machine);
    for (unsigned i = pick(4); i > 0; i--)
        one_event();
    if (pick(4) == 0 && is_sound())
        assert_counts();
    machine_end(machine);
    bool is_short = memory_recover();
    tally.memory_failed_count += is_short;
    if (rows_status(rows) != ROWS_OK || is_short || (may_fail && pick(25) == 0)) {
        fail_batch(snapshot);
        return;
    }
    to_release_count = 0;
    memory_fail_at(0); /* forget that it has failed */
    machine_keep(machine);
    rows_mem_free(snapshot);
    begin_batch();
    assert_states();
    assert_intervals();
    assert_probes();
    assert_windows();
    machine_end(machine);
    machine_keep(machine);
}

void simulation_run(const struct chances *new_chances, unsigned step_count,
                    struct simulation_counts *ret_counts)
{
    chances = new_chances;
    sample_seed = 1;
    memset(&tally, 0, sizeof tally);
    settings = (struct machine_settings){ .policy = (enum doubt_policy)pick(3),
                                          .in_doubt_max = 1000000,
                                          .partitions_max = pick(3) == 0 ? PARTITIONS - 1 : 0,
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
    for (unsigned step = 0; step < step_count && !chances->is_spent(chances->context); step++) {
        one_batch();
        now_ms += pick(3) == 0 ? pick(2 * WAIT_MS) : 1;
        if (pick(100) == 0)
            restart();
    }
    refuse_waiters();
    machine_free(machine);
    rows_mem_free(rows);
    *ret_counts = tally;
}
