/*
 * test_failing.c - each call that the ledger makes fails once: of memory, of the system and of LMDB (F-10).
 *
 * A history is played once to write down its calls, and then again for each place that made one: there the call fails.
 * Whatever was answered meanwhile must be true afterwards, when the ledger is opened once more and nothing fails:
 *
 *     answered                                  the record may then be
 *     settled: OK                               what the outcome says
 *     settled: FAILED                           that, or in doubt; that alone once the ledger answers again
 *     claimed: OK, and never settled            in doubt
 *     claimed: FAILED                           what it was before, or in doubt
 *     changed by a person: failed               what it was before, or what was asked for
 *
 * Some of the histories end with store_close(), which tries once more to write what is owed, some with a death.
 *
 * SINKONCE_FAIL_EACH=1 fails every call, and not only the first and the last of each place: minutes.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "bed.h"
#include "failing_calls.h"

enum { PARTITIONS = 5, SPAN = 64, CALLS_MAX = 100000, RETRY_MS = 300, FAR = 200000 };

/* What a record may be; several at once while nobody has been told. */
enum { ABSENT = 1, APPLIED = 2, IN_DOUBT = 4 };
static unsigned may[PARTITIONS][SPAN];
static bool may_conflict[PARTITIONS], may_replay[PARTITIONS];
static unsigned may_far[4]; /* far apart, under another topic */
static unsigned may_in_backup[PARTITIONS][SPAN];
static bool has_backup; /* it was told to be whole */

/* Outcomes that the ledger said it would write later. */
static struct {
    int32_t partition;
    int64_t first, last;
    unsigned state;
} owed[16];
static size_t owed_count;

static struct order order, waiting;
static struct question question;
static uint64_t places[CALLS_MAX];
static size_t failing_call, failing_after;
static int failing_error;
static bool is_killed; /* at its end */

#define HOLDS(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("%s, while call %zu (and %zu later) fails with %d", #condition, failing_call,           \
                     failing_after, failing_error);                                                          \
    } while (0)

/* ---- what was told ---------------------------------------------------------------------------------------------- */

static void told(int32_t partition, int64_t first, int64_t last, unsigned states)
{
    for (int64_t i = first; i <= last; i++)
        may[partition][i] = states;
}

static void told_maybe(int32_t partition, int64_t first, int64_t last, unsigned states)
{
    for (int64_t i = first; i <= last; i++)
        may[partition][i] |= states;
}

/* The ledger has answered: what it owed it has written first, unless a second call failed. */
static void told_that_it_works(void)
{
    for (size_t i = 0; i < owed_count && failing_after == 0; i++)
        told(owed[i].partition, owed[i].first, owed[i].last, owed[i].state);
    owed_count = 0;
}

static unsigned state_after(enum outcome outcome)
{
    return outcome == OUTCOME_APPLIED ? APPLIED : outcome == OUTCOME_UNKNOWN ? IN_DOUBT : ABSENT;
}

static unsigned state_told(enum record_state state)
{
    switch (state) {
    case RECORD_ABSENT:
        return ABSENT;
    case RECORD_APPLIED:
    case RECORD_BELOW_WINDOW:
        return APPLIED;
    case RECORD_IN_FLIGHT:
    case RECORD_IN_DOUBT:
        return IN_DOUBT;
    }
    return 0;
}

/* ---- what is done ----------------------------------------------------------------------------------------------- */

static void check_verdict(const struct record *record, enum verdict verdict)
{
    int32_t partition = record->key.partition;
    unsigned *cell = &may[partition][record->key.offset];
    switch (verdict) {
    case VERDICT_NEW:
        HOLDS((*cell & ABSENT) != 0 || may_replay[partition]);
        break;
    case VERDICT_APPLIED:
        HOLDS((*cell & APPLIED) != 0);
        *cell = APPLIED;
        break;
    case VERDICT_IN_DOUBT:
    case VERDICT_IN_FLIGHT:
        HOLDS((*cell & IN_DOUBT) != 0);
        break;
    case VERDICT_CONFLICT:
        HOLDS(may_conflict[partition]);
        break;
    case VERDICT_UNMET: /* of STORE_CROWDED alone */
        HOLDS(false);
        break;
    }
}

/* True: all of it is claimed now. */
static bool claim(struct order *some)
{
    int64_t first = some->records[0].key.offset, last = first + (int64_t)some->claim.record_count - 1;
    int32_t partition = some->records[0].key.partition;
    calls_skip_ms(RETRY_MS); /* what is owed is written first */
    enum store_status status = desk_claim(&bed.desk, some);
    if (status == STORE_FAILED)
        told_maybe(partition, first, last, IN_DOUBT);
    if (status != STORE_OK) {
        may_conflict[partition] = true; /* the next one may be the first that is seen, and above offset 0 */
        return false;
    }
    told_that_it_works();
    for (size_t i = 0; i < some->claim.record_count; i++)
        check_verdict(&some->records[i], some->verdicts[i]);
    if (some->claim.ret_new_count == 0)
        return false;
    if (may_replay[partition])
        told_maybe(partition, first, last, IN_DOUBT);
    else
        told(partition, first, last, IN_DOUBT);
    return true;
}

static void settle(struct order *some, enum outcome outcome)
{
    int64_t first = some->records[0].key.offset, last = first + (int64_t)some->claim.record_count - 1;
    int32_t partition = some->records[0].key.partition;
    enum store_status status = desk_settle(&bed.desk, some, outcome);
    HOLDS(status == STORE_OK || status == STORE_FAILED);
    told(partition, first, last, state_after(outcome) | (status == STORE_OK ? 0 : IN_DOUBT));
    if (status == STORE_OK)
        return;
    HOLDS(owed_count < sizeof owed / sizeof owed[0]);
    owed[owed_count].partition = partition;
    owed[owed_count].first = first;
    owed[owed_count].last = last;
    owed[owed_count++].state = state_after(outcome);
}

static void draw(struct order *some, int32_t partition, int64_t first, size_t count, record_mark mark)
{
    order_init(some, "orders", partition, first, count);
    for (size_t i = 0; i < count; i++)
        some->records[i].mark = mark + 2 * (record_mark)(first + (int64_t)i);
}

static void offer(int32_t partition, int64_t first, size_t count, record_mark mark, enum outcome outcome)
{
    draw(&order, partition, first, count, mark);
    order.settlement.reply = (struct stored_reply){ 201, slice_of_text("t"), slice_of_text("b") };
    order.settlement.detail = "no answer";
    if (claim(&order))
        settle(&order, outcome);
}

/* Other records under known coordinates. */
static void contradict(int32_t partition, int64_t first, size_t count, record_mark mark)
{
    bool is_known = may[partition][first] == APPLIED;
    may_conflict[partition] = true;
    draw(&order, partition, first, count, mark);
    bool is_claimed = claim(&order);
    HOLDS(!is_known || !is_claimed);
    HOLDS(!is_known || order.status != STORE_OK || order.verdicts[0] == VERDICT_CONFLICT);
    if (is_claimed)
        settle(&order, OUTCOME_NOT_SENT);
}

/* True: it was answered and is true. */
static bool ask(struct question what)
{
    store_question_deinit(&question);
    question = what;
    snprintf(question.topic, sizeof question.topic, "orders");
    calls_skip_ms(RETRY_MS);
    if (desk_ask(&bed.desk, &question) != STORE_OK)
        return false;
    told_that_it_works();
    return question.ret_status == QUESTION_OK;
}

/* A person changes what FIRST to LAST are. */
static void change(struct question what, unsigned states)
{
    bool is_done = ask(what);
    if (is_done)
        told(what.partition, what.first, what.last, states);
    else if (question.ret_status == QUESTION_FAILED)
        told_maybe(what.partition, what.first, what.last, states);
}

static void decide(int32_t partition, bool is_new_topic)
{
    bool is_listed = ask((struct question){ .kind = ASK_CONFLICTS });
    uint64_t id = 0;
    for (size_t i = 0; is_listed && i < question.ret_row_count; i++)
        if (question.ret.conflicts[i].partition == partition)
            id = question.ret.conflicts[i].id;
    if (id == 0)
        return;
    struct question what = {
        .kind = DO_DECIDE, .id = id, .is_new_topic = is_new_topic, .partition = partition, .last = SPAN - 1
    };
    if (is_new_topic)
        change(what, ABSENT);
    else
        (void)ask(what);
}

static void wait_for_flight(void)
{
    draw(&order, 1, 0, 3, 10);
    order.claim.contexts =
        (const struct slice[3]){ slice_of_text("a"), slice_of_text("b"), slice_of_text("") };
    bool is_flying = claim(&order);
    draw(&waiting, 1, 2, 2, 10);
    waiting.claim.wait_ms = 3600000;
    desk_post(&bed.desk, &waiting);
    if (is_flying)
        settle(&order, OUTCOME_APPLIED);
    if (is_flying && order.settle_status == STORE_OK)
        desk_pump(&bed.desk, &waiting.is_answered);
    while (!waiting.is_answered) /* what it waits for is still owed */
        (void)ask((struct question){ .kind = DO_NOTE, .detail = "is anybody there?" });
    if (waiting.status != STORE_OK || waiting.claim.ret_new_count == 0) {
        told_maybe(1, 2, 3, waiting.status == STORE_FAILED ? IN_DOUBT : 0);
        return;
    }
    told_that_it_works();
    check_verdict(&waiting.records[0], waiting.verdicts[0]);
    check_verdict(&waiting.records[1], waiting.verdicts[1]);
    settle(&waiting, OUTCOME_APPLIED);
}

static void meet_doubts(void)
{
    offer(0, 30, 5, 10, OUTCOME_UNKNOWN);
    offer(0, 40, 3, 10, OUTCOME_UNKNOWN);
    offer(0, 50, 2, 10, OUTCOME_NOT_APPLIED);
    bool is_listed = ask((struct question){ .kind = ASK_DOUBTS });
    if (is_listed && question.ret_row_count > 0 && question.ret.doubts[0].first == 30)
        change((struct question){ .kind = DO_RESOLVE_ONE,
                                  .id = question.ret.doubts[0].id,
                                  .first = 30,
                                  .last = 34,
                                  .is_applied = true },
               APPLIED);
    change((struct question){ .kind = DO_RESOLVE, .first = 40, .last = 41, .expect_count = 2 }, ABSENT);
}

static void meet_conflicts(void)
{
    contradict(0, 0, 12, 5000);
    decide(0, false);
    offer(2, 0, 5, 10, OUTCOME_APPLIED);
    contradict(2, 0, 5, 7000);
    decide(2, true);
    offer(2, 0, 5, 7000, OUTCOME_APPLIED);
    may_conflict[4] = true; /* first seen above offset 0, and held */
    offer(4, 7, 1, 10, OUTCOME_APPLIED);
    decide(4, false);
    offer(4, 7, 1, 10, OUTCOME_APPLIED);
}

static void send_again(void)
{
    may_replay[0] = true;
    bool is_open =
        ask((struct question){ .kind = DO_REPLAY_OPEN, .first = 0, .last = 11, .until_ms = UINT64_MAX / 2 });
    uint64_t id = question.ret_id;
    offer(0, 2, 3, 10, OUTCOME_APPLIED);
    if (is_open)
        (void)ask((struct question){ .kind = DO_REPLAY_CLOSE, .id = id });
    offer(0, 2, 3, 10, OUTCOME_APPLIED);
}

static void leave_far_ground(void)
{
    for (int64_t i = 0; i < 4; i++) {
        order_init(&order, "far", 0, i * FAR, 3);
        enum store_status status = desk_claim(&bed.desk, &order);
        may_far[i] = status == STORE_FAILED ? ABSENT | IN_DOUBT : ABSENT;
        if (status != STORE_OK || order.claim.ret_new_count == 0)
            continue;
        status = desk_settle(&bed.desk, &order, OUTCOME_APPLIED);
        may_far[i] = status == STORE_OK ? APPLIED : APPLIED | IN_DOUBT;
    }
}

static void ask_everything(void)
{
    static const enum question_kind kinds[] = { ASK_RECORD, ASK_PARTITIONS, ASK_CONFLICTS, ASK_INTERVALS,
                                                ASK_PROBES, ASK_REPLAYS,    ASK_EVENTS,    ASK_DOUBTS };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        (void)ask((struct question){ .kind = kinds[i], .after_offset = -1 });
}

static void back_up(void)
{
    struct question what = { .kind = DO_BACKUP };
    char path[160];
    struct stat file;
    bed_path("backup.mdb", path);
    snprintf(what.detail, sizeof what.detail, "%s", path);
    has_backup = ask(what) || (question.ret_status == QUESTION_OK && question.ret_count > 0);
    HOLDS(has_backup || stat(path, &file) != 0);
    memcpy(may_in_backup, may, sizeof may);
}

static void forget(void)
{
    change((struct question){ .kind = DO_FORGET, .first = 5, .last = 8, .expect_count = 4 }, ABSENT);
    may_conflict[2] = false;
    struct question what = { .kind = DO_FORGET, .partition = 2, .first = -1, .last = -1, .expect_count = 5 };
    if (ask(what))
        told(2, 0, SPAN - 1, ABSENT);
    else if (question.ret_status == QUESTION_FAILED)
        told_maybe(2, 0, SPAN - 1, ABSENT);
}

static void leave_undecided(void)
{
    contradict(4, 7, 1, 9000);
    draw(&order, 3, 0, 2, 10);
    (void)claim(&order);
}

/* ---- histories -------------------------------------------------------------------------------------------------- */

/* False: it cannot be opened now. */
static bool open_store(void)
{
    if (store_open(&bed.options, &bed.store, bed.why, sizeof bed.why) != STORE_OPENED) {
        HOLDS(bed.store == NULL && bed.why[0] != '\0');
        return false;
    }
    bed.desk = (struct desk){ bed.store, store_port_new(bed.store) };
    if (bed.desk.port != NULL)
        return true;
    store_close(bed.store);
    bed.store = NULL;
    return false;
}

static void work(void)
{
    offer(0, 0, 12, 10, OUTCOME_APPLIED);
    offer(0, 20, 1, 10, OUTCOME_APPLIED);
    offer(0, 20, 1, 10, OUTCOME_APPLIED);
    wait_for_flight();
    meet_doubts();
    send_again();
    meet_conflicts();
    leave_far_ground();
    ask_everything();
    back_up();
    forget();
    leave_undecided();
}

/* ---- what is true afterwards ------------------------------------------------------------------------------------ */

/* What the ledger says of the first SPAN offsets. */
static void look(int32_t partition, unsigned is[SPAN])
{
    for (int64_t i = 0; i < SPAN; i++)
        is[i] = ABSENT;
    if (!ask((struct question){ .kind = ASK_INTERVALS, .partition = partition }))
        HOLDS(question.ret_status == QUESTION_NOT_FOUND);
    for (size_t i = 0; i < question.ret_row_count; i++)
        for (int64_t at = question.ret.intervals[i].first; at <= question.ret.intervals[i].last && at < SPAN;
             at++)
            is[at] = state_told(question.ret.intervals[i].state);
}

static void check_records(unsigned expected[PARTITIONS][SPAN])
{
    unsigned is[SPAN];
    HOLDS(bed_try_open() == STORE_OPENED);
    for (int32_t partition = 0; partition < PARTITIONS; partition++) {
        look(partition, is);
        for (int64_t i = 0; i < SPAN; i++)
            if ((expected[partition][i] & is[i]) == 0) {
                print_message("orders/%d, offset %lld may be %u and is %u\n", partition, (long long)i,
                              expected[partition][i], is[i]);
                HOLDS(false);
            }
    }
}

static bool is_no_finding(void *context, struct slice line)
{
    (void)context;
    fprintf(stderr, "%.*s\n", (int)line.byte_count, line.at);
    return true;
}

static void check_soundness(void)
{
    HOLDS(store_verify(&bed.options, is_no_finding, NULL, bed.why, sizeof bed.why) == STORE_OPENED);
}

static void check_backup(void)
{
    char path[160], ledger[160];
    bed_path("backup.mdb", path);
    bed_path("ledger.mdb", ledger);
    HOLDS(rename(path, ledger) == 0);
    check_records(may_in_backup);
    bed_close();
    check_soundness();
}

static void end_life(void)
{
    calls_die(is_killed);
    bed_close();
    calls_die(false);
    if (!is_killed)
        told_that_it_works(); /* it has tried once more */
    owed_count = 0;
}

/* ---- histories: what goes before, what is played while calls fail, what is checked ------------------------------ */

struct history {
    void (*play)(void);
    void (*check)(void);
    bool is_of_known_ledger; /* one that has seen all of work() lies there already */
};

static char known_file[1024 * 1024], known_lines[64 * 1024];
static size_t known_file_bytes, known_lines_bytes;
static unsigned may_in_known[PARTITIONS][SPAN], may_far_in_known[4];

static void play_life(void)
{
    if (!open_store())
        return;
    work();
    end_life();
}

static void play_next_life(void)
{
    if (!open_store())
        return;
    offer(0, 60, 2, 10, OUTCOME_APPLIED);
    end_life();
}

static void check_life(void)
{
    check_records(may);
    for (int64_t i = 0; i < 4; i++)
        HOLDS((may_far[i] & state_told(desk_state(&bed.desk, "far", 0, i * FAR + 2))) != 0);
    bed_close();
    check_soundness();
    if (has_backup)
        check_backup();
}

/* A commit fails, and with it one of the calls that the ledger makes to find back. */
static size_t commit_at; /* that call among those that a settlement makes */

static void play_settlement(void)
{
    bool is_counting = commit_at == 0;
    size_t call = failing_call, after = failing_after;
    (void)memory_recover();
    HOLDS(open_store());
    draw(&order, 0, 60, 2, 10);
    HOLDS(claim(&order));
    if (is_counting)
        (void)memory_note(places, CALLS_MAX);
    else
        memory_fail_twice(call, after);
    settle(&order, OUTCOME_APPLIED);
    if (is_counting)
        commit_at = memory_note(NULL, 0);
    (void)ask((struct question){ .kind = DO_NOTE, .detail = "on" });
    end_life();
}

static bool keep_line(void *context, struct slice line)
{
    char **at = context;
    if (line.byte_count + 1 > (size_t)(known_lines + sizeof known_lines - *at))
        return false;
    memcpy(*at, line.at, line.byte_count);
    (*at)[line.byte_count] = '\n';
    *at += line.byte_count + 1;
    return true;
}

struct comparing {
    size_t at;
    bool is_same;
};

static bool compare_line(void *context, struct slice line)
{
    struct comparing *comparing = context;
    size_t left = known_lines_bytes - comparing->at;
    comparing->is_same = comparing->is_same && line.byte_count < left &&
                         memcmp(known_lines + comparing->at, line.at, line.byte_count) == 0 &&
                         known_lines[comparing->at + line.byte_count] == '\n';
    comparing->at += line.byte_count + 1;
    return comparing->is_same;
}

static bool next_known_line(void *context, struct slice *ret_line)
{
    size_t *at = context;
    if (*at == known_lines_bytes)
        return false;
    const char *end = memchr(known_lines + *at, '\n', known_lines_bytes - *at);
    *ret_line = slice_of(known_lines + *at, (size_t)(end - known_lines) - *at);
    *at += ret_line->byte_count + 1;
    return true;
}

/* False: refused, and with words. */
static bool is_opened(enum store_open_status status)
{
    HOLDS(status == STORE_OPENED || bed.why[0] != '\0');
    return status == STORE_OPENED;
}

static void export_all(void)
{
    struct comparing comparing = { 0, true };
    if (is_opened(store_export(&bed.options, compare_line, &comparing, bed.why, sizeof bed.why)))
        HOLDS(comparing.is_same && comparing.at == known_lines_bytes);
}

static bool is_counted(void *context, struct slice line)
{
    size_t *count = context;
    ++*count;
    return line.byte_count > 0;
}

static void play_offline(void)
{
    size_t line_count = 0, finding_count = 0;
    export_all();
    (void)is_opened(store_stat(&bed.options, is_counted, &line_count, bed.why, sizeof bed.why));
    if (is_opened(store_verify(&bed.options, is_counted, &finding_count, bed.why, sizeof bed.why)))
        HOLDS(finding_count == 0);
}

/* Into an empty folder: all of it, or nothing. */
static void play_import(void)
{
    size_t at = 0;
    char path[160];
    struct stat file;
    bed_path("ledger.mdb", path);
    bool is_imported = is_opened(store_import(&bed.options, next_known_line, &at, bed.why, sizeof bed.why));
    (void)memory_recover();
    HOLDS(is_imported == (stat(path, &file) == 0));
    if (is_imported)
        export_all();
}

static void check_nothing(void)
{
}

static const struct history life = { play_life, check_life, false };
static const struct history next_life = { play_next_life, check_life, true };
static const struct history settlement = { play_settlement, check_life, true };
static const struct history offline = { play_offline, check_life, true };
static const struct history import = { play_import, check_nothing, false };

/* ---- each call --------------------------------------------------------------------------------------------------- */

static void put_known_ledger(void)
{
    char path[160];
    bed_path("ledger.mdb", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(known_file, 1, known_file_bytes, file), known_file_bytes);
    fclose(file);
    memcpy(may, may_in_known, sizeof may);
    memcpy(may_far, may_far_in_known, sizeof may_far);
}

static void begin(const struct history *history)
{
    assert_int_equal(bed_setup(NULL), 0);
    bed.options.ledger_bytes_max = sizeof known_file; /* and little is reserved on the disk */
    bed.options.window = FAR;
    bed.options.is_first_sight_held = true;
    bed.options.replies = 2;
    for (int32_t partition = 0; partition < PARTITIONS; partition++)
        told(partition, 0, SPAN - 1, ABSENT);
    for (size_t i = 0; i < 4; i++)
        may_far[i] = ABSENT;
    memset(may_conflict, 0, sizeof may_conflict);
    memset(may_replay, 0, sizeof may_replay);
    has_backup = false;
    owed_count = 0;
    if (history->is_of_known_ledger)
        put_known_ledger();
}

static void end(void)
{
    order_deinit(&order);
    order_deinit(&waiting);
    store_question_deinit(&question);
    assert_int_equal(bed_teardown(NULL), 0);
}

static void play_with(const struct history *history, size_t call, size_t after, int error, bool is_death)
{
    is_killed = is_death;
    failing_call = call;
    failing_after = after;
    failing_error = error;
    calls_error(error);
    begin(history);
    memory_fail_twice(call, after);
    history->play();
    (void)memory_recover();
    history->check();
    end();
}

static size_t note_calls(const struct history *history)
{
    failing_call = 0;
    is_killed = false;
    begin(history);
    (void)memory_note(places, CALLS_MAX);
    history->play();
    size_t count = memory_note(NULL, 0);
    history->check();
    end();
    assert_true(count > 0 && count < CALLS_MAX);
    return count;
}

/* What a call means to a ledger that is new is often something else than to one that has worked. */
static bool is_first_or_last_of_place(size_t call, size_t call_count)
{
    bool is_first = true, is_last = true;
    for (size_t i = 1; i <= call_count; i++) {
        is_first = is_first && (i >= call || places[i - 1] != places[call - 1]);
        is_last = is_last && (i <= call || places[i - 1] != places[call - 1]);
    }
    return is_first || is_last;
}

static void count_settlement(void)
{
    commit_at = 0;
    (void)note_calls(&settlement);
}

static void play_with_each(const struct history *history)
{
    size_t call_count = note_calls(history), played_count = 0;
    bool is_each = getenv("SINKONCE_FAIL_EACH") != NULL;
    for (size_t call = 1; call <= call_count; call++) {
        if (!is_each && !is_first_or_last_of_place(call, call_count))
            continue;
        played_count++;
        play_with(history, call, 0, EIO, true);
        play_with(history, call, 0, ENOSPC, false);
        if (history == &next_life)
            play_with(history, call, 0, EINTR, false);
    }
    print_message("%zu calls, %zu of them failed\n", call_count, played_count);
}

static void test_F10_S1_S2_whichever_call_fails_what_was_told_is_true(void **state)
{
    (void)state;
    play_with_each(&life);
}

static void test_F10_a_ledger_that_cannot_be_opened_again_loses_nothing(void **state)
{
    (void)state;
    play_with_each(&next_life);
}

static void test_F10_a_second_failure_while_the_first_is_met_loses_nothing(void **state)
{
    enum { LATER_MAX = 110 };
    (void)state;
    count_settlement();
    for (size_t after = 1; after <= LATER_MAX; after++) { /* a commit fails before and behind its work */
        play_with(&settlement, commit_at - 1, after, EIO, true);
        play_with(&settlement, commit_at - 1, after, ENOSPC, false);
        play_with(&settlement, commit_at, after, EIO, false);
    }
    static const int full[] = { MDB_MAP_FULL, MDB_TXN_FULL, EDQUOT };
    for (size_t i = 0; i < sizeof full / sizeof full[0]; i++)
        play_with(&settlement, commit_at - 1, 0, full[i], i % 2 == 0);
}

static void test_F10_L15_what_is_read_offline_is_all_or_refused(void **state)
{
    (void)state;
    play_with_each(&offline);
    play_with_each(&import);
}

/* ---- files and file systems that are not what they were ---------------------------------------------------------- */

/* The library would make a new ledger of a file without a byte, and every record would pass again. */
static void test_L07_a_ledger_that_was_emptied_while_it_was_closed_is_not_begun_anew(void **state)
{
    char path[160];
    (void)state;
    count_settlement();
    begin(&settlement);
    bed_path("ledger.mdb", path);
    assert_true(open_store());
    draw(&order, 0, 60, 2, 10);
    assert_true(claim(&order));
    calls_error(EIO);
    memory_fail_twice(commit_at, 1); /* it was closed, and cannot be opened at once */
    settle(&order, OUTCOME_APPLIED);
    assert_true(memory_recover());
    assert_int_equal(order.settle_status, STORE_FAILED);
    assert_int_equal(truncate(path, 0), 0);
    draw(&order, 0, 9, 3, 10);
    assert_false(claim(&order));
    assert_int_equal(order.status, STORE_FAILED);
    bed_close();
    assert_int_equal(bed_try_open(), STORE_UNREADABLE);
    assert_non_null(strstr(bed.why, "is no ledger of sinkonce, or damaged"));
    end();
}

static void test_L10_a_folder_on_a_network_file_system_is_refused_by_its_name(void **state)
{
    (void)state;
    begin(&life);
    calls_fs_type(0x6969);
    assert_int_equal(bed_try_open(), STORE_UNREADABLE);
    assert_non_null(strstr(bed.why, "is on NFS"));
    bed.options.is_network_fs_allowed = true;
    assert_int_equal(bed_try_open(), STORE_OPENED);
    calls_fs_type(0);
    end();
}

/* ---- what is owed at the end ------------------------------------------------------------------------------------- */

static enum store_status note_something(void)
{
    store_question_deinit(&question);
    question = (struct question){ .kind = DO_NOTE };
    return desk_ask(&bed.desk, &question);
}

/* A commit fails, and the ledger repairs it: what is owed now waits for RETRY_MS, were it not for the end. */
static void fail_and_repair(void)
{
    memory_fail_at(0);
    assert_int_equal(note_something(), STORE_OK);
    size_t call_count = memory_note(NULL, 0); /* the last is the commit, behind its work */
    memory_fail_at(call_count);
    assert_int_equal(note_something(), STORE_FAILED);
    assert_true(memory_recover());
    calls_skip_ms(RETRY_MS);
    assert_int_equal(note_something(), STORE_OK);
}

/* The disk is good all the time here: what was lacking is memory, for another claim of the batch. */
static void test_S2_an_outcome_that_is_owed_at_the_end_is_written_though_the_disk_is_good(void **state)
{
    (void)state;
    begin(&life);
    calls_error(EIO);
    bed.options.commit_delay_us = 20000; /* what is posted together is one batch */
    bed_open();
    draw(&order, 0, 0, 2, 10);
    assert_int_equal(desk_claim(&bed.desk, &order), STORE_OK);
    fail_and_repair();
    draw(&waiting, 0, 9, 1, 10);
    memory_fail_at(1);
    desk_post(&bed.desk, &waiting);
    (void)desk_settle(&bed.desk, &order, OUTCOME_APPLIED);
    (void)memory_recover();
    desk_pump(&bed.desk, &waiting.is_answered);
    bed_close();
    bed_open();
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 1), RECORD_APPLIED);
    end();
}

/* ---- the known ledger -------------------------------------------------------------------------------------------- */

static int make_known_ledger(void **state)
{
    char path[160], *at = known_lines;
    (void)state;
    if (access("/dev/shm", W_OK) == 0)
        bed_root = "/dev/shm"; /* some thousand ledgers, and no power is cut here */
    begin(&life);
    play_life();
    bed_path("ledger.mdb", path);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    known_file_bytes = fread(known_file, 1, sizeof known_file, file);
    fclose(file);
    memcpy(may_in_known, may, sizeof may);
    memcpy(may_far_in_known, may_far, sizeof may_far);
    if (store_export(&bed.options, keep_line, &at, bed.why, sizeof bed.why) != STORE_OPENED)
        return -1;
    known_lines_bytes = (size_t)(at - known_lines);
    end();
    return known_file_bytes < sizeof known_file ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F10_S1_S2_whichever_call_fails_what_was_told_is_true),
        cmocka_unit_test(test_F10_a_ledger_that_cannot_be_opened_again_loses_nothing),
        cmocka_unit_test(test_F10_a_second_failure_while_the_first_is_met_loses_nothing),
        cmocka_unit_test(test_F10_L15_what_is_read_offline_is_all_or_refused),
        cmocka_unit_test(test_L07_a_ledger_that_was_emptied_while_it_was_closed_is_not_begun_anew),
        cmocka_unit_test(test_L10_a_folder_on_a_network_file_system_is_refused_by_its_name),
        cmocka_unit_test(test_S2_an_outcome_that_is_owed_at_the_end_is_written_though_the_disk_is_good),
    };
    return cmocka_run_group_tests(tests, make_known_ledger, NULL);
}
