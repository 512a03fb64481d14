/*
 * ledger_batch.c - one batch: all that was posted, in one transaction with one commit.
 *
 *     begin -> machine: wake, claims, settlements, questions -> commit -> hand back
 *                                                                 |
 *                               it failed: close, reopen, read back; then the same batch again with
 *                               less in it (full), or all of it refused (the disk)
 *
 * A change that would hold everybody up for long is done in steps (machine_goes_on()): its posting goes back to the end of
 * the queue until it is through.
 */
#include "ledger_state.h"

#include <errno.h>
#include <stdio.h>
#include "failpoint.h"

enum { RETRY_MS = 250, FULL_PERCENT = 85, SHORT_PERCENT = 70 };

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

enum rows_status ledger_commit(struct ledger *ledger, struct rows *rows)
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

void ledger_repair(struct ledger *ledger)
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
        status = ledger_commit(ledger, &rows);
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

bool ledger_owes(const struct ledger *ledger)
{
    return ledger->health != HEALTH_GOOD || !owed_is_empty(&ledger->owed);
}

/* ---- one batch -------------------------------------------------------------------------------------------------- */

void ledger_answer_claim(void *shell, struct claim *claim, enum store_status status)
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
        return; /* answered through ledger_answer_claim(), now or later */
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

/* Answers are a courtesy: they make room before claims stop.  While the ledger fails to write, nothing is tried.
 * On a full disk they stay.  A commit that drops them would find its pages, but what it frees lies inside the file, which
 * never gets shorter, and is not the room that claims wait for: blocks behind the end (env_reserve()).  Free pages are no
 * reserve for what must be settled: they may lie in pieces, a backup that is being written may hold them, and a file
 * system that copies on write takes new blocks for them. */
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
    enum rows_status status = ledger_commit(ledger, rows);
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

void ledger_run_batch(struct ledger *ledger, struct posting_list todo)
{
    if (ledger_owes(ledger) && time_now().mono_ms >= ledger->retry_ms)
        ledger_repair(ledger);
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
