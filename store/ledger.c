/*
 * ledger.c - the ledger's thread.
 *
 *     queue.h               one batch
 *     postings  ------>  begin -> machine: wake, claims, settlements, questions -> commit -> hand back
 *                                                                          |
 *                                        it failed: close, reopen, read back; then the same batch again with
 *                                        less in it (full), or all of it refused (the disk)
 *
 * A change that would hold everybody up for long is done in steps (machine_goes_on()): its posting goes back to the end of
 * the queue until it is through.
 *
 * What the ledger still owes after a failure (owed.h) it tries to write every 250 ms, traffic or not.
 *
 *     health        left by                          what is answered meanwhile
 *     GOOD          a commit that fails              everything
 *     FULL          a commit of ours that succeeds   what is applied in the committed ledger; new claims STORE_FULL
 *     FAILING       a commit of ours that succeeds   nothing: STORE_FAILED
 */
#include "ledger.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backup.h"
#include "clock.h"
#include "env.h"
#include "failpoint.h"
#include "figures.h"
#include "machine.h"
#include "owed.h"
#include "port.h"
#include "queue.h"

enum {
    RETRY_MS = 250,
    WINDOW_LOOK_MIN_MS = 1000,
    WINDOW_LOOK_MAX_MS = 60000,
    FULL_PERCENT = 85,
    SHORT_PERCENT = 70
};

enum health { HEALTH_GOOD, HEALTH_FULL, HEALTH_FAILING };

struct ledger {
    pthread_t thread;
    struct queue queue;
    struct figures figures;

    /* the ledger's thread alone */
    struct env env;
    struct machine *machine; /* owned */
    bool is_loaded;          /* the machine knows what is on disk */
    uint64_t commit_delay_ns;
    size_t batch_count; /* postings of the last batch */
    uint64_t commit_ns; /* what its commit took; 0: it changed nothing */
    uint64_t boot;
    enum health health;
    bool is_disk_full; /* what the last failed commit met */
    uint64_t retry_ms;
    struct posting_list answered; /* of the batch that runs: out of the machine, not yet handed back */
    struct owed owed;             /* after failures */
    struct backup backup;

    struct store_row row;
};

static struct machine_time time_now(void)
{
    return (struct machine_time){ clock_unix_ms(), clock_monotonic_ns() / NS_PER_MS };
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

/* Forget all and read it back.  False: it cannot be read now. */
static bool read_back(struct ledger *ledger)
{
    struct rows rows;
    backup_join(&ledger->backup);
    machine_forget(ledger->machine);
    ledger->is_loaded = false;
    if (!env_reopen(&ledger->env) || rows_begin(&rows, ledger->env.mdb, ledger->env.table) != ROWS_OK)
        return false;
    machine_load(ledger->machine, &rows, ledger->boot);
    ledger->is_loaded = rows_status(&rows) == ROWS_OK;
    rows_abort(&rows);
    if (!ledger->is_loaded)
        machine_forget(ledger->machine);
    return ledger->is_loaded;
}

static void publish(struct ledger *ledger, uint64_t used_bytes, uint64_t commit_ns)
{
    figures_publish(&ledger->figures, ledger->machine, ledger->health == HEALTH_FAILING, used_bytes,
                    commit_ns);
}

static enum rows_status commit(struct ledger *ledger, struct rows *rows)
{
    uint64_t used_bytes = rows_used_bytes(rows);
    uint64_t began_ns = clock_monotonic_ns();
    if (!env_is_in_place(&ledger->env))
        rows_fail(rows, ENOENT);
    enum rows_status status = rows_commit(rows);
    if (status != ROWS_OK)
        return status;
    machine_keep(ledger->machine);
    ledger->commit_ns = clock_monotonic_ns() - began_ns + 1;
    publish(ledger, used_bytes, ledger->commit_ns);
    return ROWS_OK;
}

/* A commit failed: nothing in memory counts any more. */
static void on_failure(struct ledger *ledger, const struct rows *rows)
{
    figures_count_error(&ledger->figures);
    bool is_read = read_back(ledger);
    int error = env_error_of(&ledger->env, rows->error);
    snprintf(ledger->figures.failure, sizeof ledger->figures.failure, "a commit failed: %s",
             mdb_strerror(error));
    ledger->health = rows_status_of(error) == ROWS_FULL && is_read ? HEALTH_FULL : HEALTH_FAILING;
    ledger->is_disk_full = error == ENOSPC || error == EDQUOT;
    ledger->retry_ms = time_now().mono_ms + RETRY_MS;
    figures_set_full(&ledger->figures, ledger->health == HEALTH_FULL, ledger->is_disk_full);
    publish(ledger, 0, 0);
}

/* One commit of our own, with all that is owed in it. */
static void repair(struct ledger *ledger)
{
    struct rows rows;
    ledger->retry_ms = time_now().mono_ms + RETRY_MS;
    if (!ledger->is_loaded && !read_back(ledger))
        return;
    enum rows_status status = rows_begin(&rows, ledger->env.mdb, ledger->env.table);
    if (status == ROWS_OK) {
        machine_begin(ledger->machine, &rows, time_now(), MACHINE_NO_CLAIM);
        machine_probe(ledger->machine);
        if (ledger->health == HEALTH_FAILING)
            machine_note(ledger->machine, EVENT_DISK_ERROR, ledger->figures.failure);
        owed_pay(&ledger->owed, ledger->machine);
        machine_end(ledger->machine);
        status = commit(ledger, &rows);
    }
    if (status != ROWS_OK) {
        on_failure(ledger, &rows);
        return;
    }
    owed_clear(&ledger->owed);
    ledger->health = HEALTH_GOOD;
    ledger->is_disk_full = false;
    publish(ledger, 0, 0);
}

static bool owes(const struct ledger *ledger)
{
    return ledger->health != HEALTH_GOOD || !owed_is_empty(&ledger->owed);
}

/* ---- one batch -------------------------------------------------------------------------------------------------- */

static void on_claim_answered(void *shell, struct claim *claim, enum store_status status)
{
    struct ledger *ledger = shell;
    claim->posting.status = status;
    posting_list_add(&ledger->answered, &claim->posting);
}

static void apply(struct ledger *ledger, struct posting *posting)
{
    switch ((enum posting_kind)posting->kind) {
    case POSTING_CLAIM:
        machine_claim(ledger->machine, claim_of(posting));
        return; /* answered through on_claim_answered(), now or later */
    case POSTING_SETTLEMENT:
        machine_settle(ledger->machine, settlement_of(posting));
        break;
    case POSTING_QUESTION:
        if (question_of(posting)->kind != DO_BACKUP)
            machine_ask(ledger->machine, question_of(posting));
        else if (backup_start(&ledger->backup, question_of(posting)))
            return; /* comes back as POSTING_BACKUP */
        break;
    case POSTING_BACKUP:
        backup_join(&ledger->backup);
        backup_note(question_of(posting), ledger->machine);
        break;
    }
    posting->status = STORE_OK;
    posting_list_add(&ledger->answered, posting);
}

static size_t count_postings(const struct posting_list *list, enum posting_kind kind)
{
    size_t count = 0;
    for (const struct posting *posting = list->first; posting != NULL; posting = posting->next)
        count += posting->kind == (int)kind;
    return count;
}

static bool has_new_claims(const struct posting_list *list)
{
    for (struct posting *posting = list->first; posting != NULL; posting = posting->next)
        if (posting->kind == POSTING_CLAIM && claim_of(posting)->ret_claim_id != 0)
            return true;
    return false;
}

/* Answers are a courtesy: they make room before claims stop.  While the ledger fails to write, nothing is tried. */
static bool is_room_short(const struct ledger *ledger, struct rows *rows)
{
    uint64_t mark = ledger->env.bytes_max / 100 * SHORT_PERCENT;
    return ledger->health == HEALTH_GOOD && rows_used_bytes(rows) >= mark;
}

/* Past the mark, or on a disk without a reserve, new claims stop, so that what was claimed can still be settled. */
static enum machine_mode mode_for(struct ledger *ledger, struct rows *rows, enum machine_mode mode)
{
    uint64_t mark = ledger->env.bytes_max / 100 * FULL_PERCENT;
    bool is_reserved = env_reserve(&ledger->env);
    bool is_tight = rows_used_bytes(rows) >= mark || !is_reserved;
    figures_set_full(&ledger->figures, is_tight || ledger->health == HEALTH_FULL,
                     !is_reserved || ledger->is_disk_full);
    return is_tight && mode == MACHINE_OPEN ? MACHINE_NO_CLAIM : mode;
}

/* The commit of a batch whose answers are in ledger->answered. */
static enum rows_status commit_batch(struct ledger *ledger, struct rows *rows)
{
    bool has_claims = has_new_claims(&ledger->answered);
    bool has_results = count_postings(&ledger->answered, POSTING_SETTLEMENT) > 0;
    if (has_claims)
        FAILPOINT("before_intent");
#ifdef BREAK_INTENT_COMMIT
    port_hand_back(&ledger->answered);
#endif
#ifdef BREAK_RESULT_COMMIT
    if (has_results && !has_claims)
        port_hand_back(&ledger->answered);
#endif
    enum rows_status status = commit(ledger, rows);
    if (has_claims)
        FAILPOINT("after_intent");
    if (has_results)
        FAILPOINT("after_result");
    return status;
}

/* All of TODO in one transaction.  ROWS_OK: the answers in ledger->answered are true on disk; else they count for
 * nothing, and the machine has been read back. */
static enum rows_status attempt(struct ledger *ledger, struct posting_list *todo, enum machine_mode mode)
{
    struct rows rows;
    struct posting *posting;
    enum rows_status status = rows_begin(&rows, ledger->env.mdb, ledger->env.table);
    if (status == ROWS_OK) {
        machine_begin(ledger->machine, &rows, time_now(), mode_for(ledger, &rows, mode));
        machine_room(ledger->machine, is_room_short(ledger, &rows));
        machine_wake(ledger->machine);
        while ((posting = posting_list_take(todo)) != NULL)
            apply(ledger, posting);
        machine_end(ledger->machine);
        ledger->commit_ns = 0;
        if (rows_is_changed(&rows) || rows_status(&rows) != ROWS_OK)
            status = commit_batch(ledger, &rows);
        else
            publish(ledger, 0, 0); /* some figures move without a row */
        rows_abort(&rows);
    } else {
        ledger->answered = *todo;
        *todo = (struct posting_list){ 0 };
    }
    if (status != ROWS_OK)
        on_failure(ledger, &rows);
    return status;
}

/* What a failed attempt may have left on disk for these claims is to be released. */
static void owe_releases(struct ledger *ledger, const struct posting_list *list)
{
    for (struct posting *posting = list->first; posting != NULL; posting = posting->next) {
        if (posting->kind != POSTING_CLAIM || claim_of(posting)->ret_claim_id == 0)
            continue;
        owed_release(&ledger->owed, claim_of(posting)->ret_claim_id);
        claim_of(posting)->ret_claim_id = 0; /* owed once, however often the batch is tried */
    }
}

/* STATUS for a posting that cannot be served now; a settlement's outcome is kept.  False: it stays with us. */
static bool refuse(struct ledger *ledger, struct posting *posting, enum store_status status)
{
    switch ((enum posting_kind)posting->kind) {
    case POSTING_CLAIM:
        store_claim_deinit(claim_of(posting));
        claim_of(posting)->ret_claim_id = 0;
        claim_of(posting)->ret_new_count = claim_of(posting)->ret_retried_count = 0;
        claim_of(posting)->ret_replayed_count = 0;
        break;
    case POSTING_SETTLEMENT:
        if (!owed_keep(&ledger->owed, settlement_of(posting)))
            return false;
        status = STORE_FAILED;
        break;
    case POSTING_QUESTION:
        store_question_deinit(question_of(posting));
        machine_give_up(question_of(posting));
        question_of(posting)->ret_status = QUESTION_FAILED;
        break;
    case POSTING_BACKUP: /* what it says about its file stays true */
        backup_join(&ledger->backup);
        status = STORE_OK;
        break;
    }
    posting->status = status;
    posting_list_add(&ledger->answered, posting);
    return true;
}

static void refuse_all(struct ledger *ledger, struct posting_list todo, enum store_status status)
{
    struct posting *posting;
    while ((posting = posting_list_take(&todo)) != NULL)
        if (!refuse(ledger, posting, status))
            queue_add(&ledger->queue, posting);
}

/* What writes leaves the batch; what only reads may still be answered from the committed ledger. */
static struct posting_list readers_of(struct ledger *ledger, struct posting_list todo)
{
    struct posting_list readers = { 0 };
    struct posting *posting;
    while ((posting = posting_list_take(&todo)) != NULL) {
        if (posting->kind != POSTING_SETTLEMENT)
            posting_list_add(&readers, posting);
        else if (!refuse(ledger, posting, STORE_FAILED))
            queue_add(&ledger->queue, posting);
    }
    return readers;
}

/* The batch is committed: what is answered goes back, and of what only a step is done the next one waits its turn. */
static void hand_back(struct ledger *ledger)
{
    struct posting_list over = { 0 };
    struct posting *posting;
    while ((posting = posting_list_take(&ledger->answered)) != NULL) {
        if (posting->kind == POSTING_QUESTION && machine_goes_on(question_of(posting)))
            queue_add(&ledger->queue, posting);
        else
            posting_list_add(&over, posting);
    }
    port_hand_back(&over);
}

/* Try the batch with less and less in it, until what is left of it stands on the disk. */
static void serve(struct ledger *ledger, struct posting_list todo)
{
    enum machine_mode mode = ledger->health == HEALTH_FULL ? MACHINE_NO_CLAIM : MACHINE_OPEN;
    struct posting_list refused = { 0 };
    for (;;) {
        if (attempt(ledger, &todo, mode) == ROWS_OK)
            break;
        owe_releases(ledger, &ledger->answered);
        todo = ledger->answered;
        ledger->answered = (struct posting_list){ 0 };
        if (ledger->health == HEALTH_FAILING || mode == MACHINE_READ) {
            refuse_all(ledger, todo, STORE_FAILED);
            break;
        }
        mode = mode == MACHINE_OPEN ? MACHINE_NO_CLAIM : MACHINE_READ;
        if (mode == MACHINE_READ) {
            todo = readers_of(ledger, todo);
            refused = ledger->answered;
            ledger->answered = (struct posting_list){ 0 };
        }
    }
    port_hand_back(&refused);
    hand_back(ledger);
}

static void run_batch(struct ledger *ledger, struct posting_list todo)
{
    if (owes(ledger) && time_now().mono_ms >= ledger->retry_ms)
        repair(ledger);
    size_t claim_count = count_postings(&todo, POSTING_CLAIM) + machine_waiter_count(ledger->machine);
    /* a batch is tried with claims twice at most */
    bool has_room = owed_make_room(&ledger->owed, 2 * claim_count);
    if (ledger->health != HEALTH_FAILING && has_room) {
        serve(ledger, todo);
        return;
    }
    machine_refuse_waiters(ledger->machine, STORE_FAILED);
    refuse_all(ledger, todo, STORE_FAILED);
    port_hand_back(&ledger->answered);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

/* When a window is to be closed even if nothing is posted.  Not before a second is over, so that one that cannot be
 * closed (a full disk) is no reason to turn in a circle; and looked at every minute, because people move clocks. */
static uint64_t next_window_ms(const struct ledger *ledger)
{
    uint64_t until_ms = machine_window_until_ms(ledger->machine);
    if (until_ms == UINT64_MAX)
        return UINT64_MAX;
    struct machine_time now = time_now();
    uint64_t left_ms = until_ms > now.unix_ms ? until_ms - now.unix_ms : 0;
    left_ms = left_ms < WINDOW_LOOK_MIN_MS ? WINDOW_LOOK_MIN_MS : left_ms;
    return now.mono_ms + (left_ms > WINDOW_LOOK_MAX_MS ? WINDOW_LOOK_MAX_MS : left_ms);
}

/* When there is work without a posting, on the mono_ms clock. */
static uint64_t next_work_ms(const struct ledger *ledger)
{
    if (machine_has_woken(ledger->machine))
        return 0;
    uint64_t work_ms = machine_deadline_ms(ledger->machine);
    if (owes(ledger) && ledger->retry_ms < work_ms)
        work_ms = ledger->retry_ms;
    uint64_t window_ms = next_window_ms(ledger);
    work_ms = window_ms < work_ms ? window_ms : work_ms;
    return work_ms;
}

/* Ask for short turns: whoever runs little and often is then let in sooner after each wait for the disk, which on busy
 * cores costs more than the disk itself.  Linux takes it as a hint since 6.12 (sched(7), sched_setattr(2)), needs no
 * privilege for it, and older ones ignore it. */
static void short_turns_ask(void)
{
    enum { TURN_NS = 100000 };
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = { .size = 48, .policy = SCHED_OTHER, .runtime_ns = TURN_NS };
    errno = 0;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0)
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* All that was posted; none when it is time for something else.  False: the end. */
static bool take_postings(struct ledger *ledger, struct posting_list *ret_postings)
{
    size_t count;
    uint64_t work_ms = next_work_ms(ledger);
    uint64_t work_ns = work_ms == UINT64_MAX ? UINT64_MAX : work_ms * NS_PER_MS;
    struct company company = company_wanted(ledger->commit_delay_ns, ledger->batch_count, ledger->commit_ns);
    bool is_going_on = queue_take(&ledger->queue, work_ns, company, ret_postings, &count);
    if (count > 0)
        ledger->batch_count = count;
    return is_going_on;
}

static void *ledger_main(void *argument)
{
    struct ledger *ledger = argument;
    struct posting_list postings;
    short_turns_ask();
    while (take_postings(ledger, &postings))
        run_batch(ledger, postings);
    if (owes(ledger)) /* the last chance: what is still owed then will be found as INTENT, and be in doubt */
        repair(ledger);
    return NULL;
}

void ledger_post(struct ledger *ledger, struct posting *posting)
{
    posting->posted_ns = clock_monotonic_ns();
    queue_add(&ledger->queue, posting);
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

static void write_boot(struct ledger *ledger, struct rows *rows, bool is_created)
{
    struct key key = key_meta(META_STORE);
    struct value value;
    store_row_write(&ledger->row, &value);
    rows_put(rows, key_slice(&key), value_slice(&value));
    if (is_created)
        machine_note(ledger->machine, EVENT_CREATED, "a new ledger: nothing is known of any record");
    machine_recover(ledger->machine);
}

/* A life begins: counted, and what the last one left open is in doubt, before anything is answered. */
static enum store_open_status begin_life(struct ledger *ledger, bool is_created, char why[],
                                         size_t why_bytes_max)
{
    struct rows rows;
    ledger->boot = ++ledger->row.boot_count;
    if (rows_begin(&rows, ledger->env.mdb, ledger->env.table) == ROWS_OK) {
        machine_load(ledger->machine, &rows, ledger->boot);
        machine_begin(ledger->machine, &rows, time_now(), MACHINE_OPEN);
        write_boot(ledger, &rows, is_created);
        machine_end(ledger->machine);
        if (commit(ledger, &rows) == ROWS_OK) {
            ledger->is_loaded = true;
            return STORE_OPENED;
        }
    }
    snprintf(why, why_bytes_max, "the ledger in %s cannot be read or written: %s", ledger->env.folder,
             mdb_strerror(env_error_of(&ledger->env, rows.error)));
    return STORE_UNREADABLE;
}

static struct machine_settings machine_settings_of(const struct store_options *options)
{
    return (struct machine_settings){ .policy = options->policy,
                                      .in_doubt_max = options->in_doubt_max,
                                      .partitions_max = options->partitions_max,
                                      .marks = options->marks,
                                      .is_identity_checked = options->is_identity_checked,
                                      .window = options->window,
                                      .is_first_sight_held = options->is_first_sight_held,
                                      .replies = options->replies,
                                      .reply_bytes_max = options->reply_bytes_max };
}

static struct ledger *ledger_new(const struct store_options *options)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct machine_settings settings = machine_settings_of(options);
    if (ledger == NULL)
        return NULL;
    ledger->env.lock_fd = -1;
    ledger->machine = machine_new(&settings, (struct machine_answers){ on_claim_answered, ledger });
    ledger->commit_delay_ns = options->commit_delay_us * UINT64_C(1000);
    ledger->backup.env = &ledger->env;
    ledger->backup.queue = &ledger->queue;
    queue_init(&ledger->queue);
    figures_init(&ledger->figures);
    return ledger;
}

static void ledger_free(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    owed_clear(&ledger->owed);
    machine_free(ledger->machine);
    env_deinit(&ledger->env);
    figures_deinit(&ledger->figures);
    queue_deinit(&ledger->queue);
    free(ledger);
}

static enum store_open_status start(struct ledger *ledger, const struct store_options *options, char why[],
                                    size_t why_bytes_max)
{
    bool is_created;
    enum store_open_status status =
        env_init(&ledger->env, options, time_now().unix_ms, &ledger->row, &is_created, why, why_bytes_max);
    if (status == STORE_OPENED)
        status = begin_life(ledger, is_created, why, why_bytes_max);
    if (status != STORE_OPENED)
        return status;
    figures_open(&ledger->figures, options, &ledger->row);
    env_reserve(&ledger->env);
    if (pthread_create(&ledger->thread, NULL, ledger_main, ledger) == 0)
        return STORE_OPENED;
    snprintf(why, why_bytes_max, "cannot start the ledger's thread");
    return STORE_UNREADABLE;
}

enum store_open_status ledger_open(const struct store_options *options, struct ledger **ret_ledger,
                                   char why[], size_t why_bytes_max)
{
    struct ledger *ledger = ledger_new(options);
    if (ledger == NULL || ledger->machine == NULL) {
        ledger_free(ledger);
        snprintf(why, why_bytes_max, "no memory for the ledger");
        return STORE_UNREADABLE;
    }
    enum store_open_status status = start(ledger, options, why, why_bytes_max);
    if (status == STORE_OPENED)
        *ret_ledger = ledger;
    else
        ledger_free(ledger);
    return status;
}

void ledger_close(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    queue_close(&ledger->queue);
    pthread_join(ledger->thread, NULL);
    ledger_free(ledger);
}

void ledger_figures(struct ledger *ledger, struct store_figures *ret_figures)
{
    figures_get(&ledger->figures, ret_figures);
}

const char *ledger_id(const struct ledger *ledger)
{
    return ledger->row.id;
}
