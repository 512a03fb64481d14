/*
 * forget.c - applied records that are to be unknown again, because a person says so.
 *
 * Doubts and flights stay: what is not known cannot be forgotten.  A partition that is forgotten as a whole also loses
 * the histories that new topics under its name have ended, and leaves itself when nothing else holds it: there is room for
 * another one then (partitions_max).
 *
 * A topic may have a hundred thousand partitions: it goes in steps, each a commit of its own, and what else was posted is
 * served between two of them.  Who goes is written down at the first step, in memory, together with what was counted; then
 *
 *     former histories   whose rows go one after the other, the one that names them last
 *     each partition     its answers, one after the other; then all else of it in one commit
 *
 * so that a crash leaves each partition either whole, but for courtesies, or forgotten, and the action can be repeated.
 * Until its turn a partition is what it was: duplicates are dropped.  Has what is applied in it changed by then, nobody has
 * counted that, and the forgetting stops there.  After its turn a claim finds it as if it had never been met; what that
 * claim brings stays, because the pid is a new one, or because each partition has one turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "marks.h"
#include "pairs.h"
#include "partitions.h"
#include "questions.h"
#include "steps.h"

/* A partition that is to go. */
struct target {
    uint32_t pid;
    int32_t number;
    uint64_t count; /* of what was applied in it when all were counted */
};

struct progress {
    uint32_t past_pid; /* former histories below have been looked at */
    size_t target_count;
    uint64_t record_count; /* forgotten so far */
};

struct forgetting {
    struct steps steps;
    struct progress kept, now; /* after the last step that is durable, and after the one behind it */
    size_t target_count;
    struct target targets[]; /* ascending by pid: that is how the rows lie */
};

static struct forgetting *forgetting_of(const struct question *question)
{
    return (struct forgetting *)(void *)question->steps;
}

static bool is_whole(const struct question *question)
{
    return question->first < 0 && question->last < 0;
}

static bool is_range(const struct question *question)
{
    return is_whole(question) || (question->first >= 0 && question->first <= question->last);
}

static bool is_named(const struct question *question, const char *topic, int32_t number)
{
    return question->topic[0] != '\0' && strcmp(question->topic, topic) == 0 &&
           (question->partition < 0 || question->partition == number);
}

static uint64_t count_named(struct machine *machine, const struct question *question,
                            const struct partition *partition)
{
    return is_whole(question) ? partition->row.applied_count
                              : applied_count_in(machine, partition, question->first, question->last);
}

/* ---- who goes --------------------------------------------------------------------------------------------------- */

/* How many partitions the question names, and how much is applied in them; TARGETS NULL: only counted. */
static size_t find_targets(struct machine *machine, const struct question *question, struct target targets[],
                           uint64_t *ret_record_count)
{
    size_t count = 0;
    *ret_record_count = 0;
    for (size_t i = 0; i < machine->listed_count; i++) {
        const struct partition *partition = machine->by_name[i];
        if (partition->is_over || !is_named(question, partition->topic, partition->number))
            continue;
        struct target target = { partition->row.pid, partition->number,
                                 count_named(machine, question, partition) };
        if (targets != NULL)
            targets[count] = target;
        *ret_record_count += target.count;
        count++;
    }
    return count;
}

static int by_pid(const void *a, const void *b)
{
    const struct target *left = a, *right = b;
    return left->pid < right->pid ? -1 : left->pid > right->pid;
}

/* False: nothing is to be done, and the question says why. */
static bool begin(struct machine *machine, struct question *question)
{
    size_t count = is_range(question) ? find_targets(machine, question, NULL, &question->ret_count) : 0;
    struct forgetting *forgetting = NULL;
    if (count == 0) {
        question->ret_status = QUESTION_NOT_FOUND;
    } else if (question->ret_count != question->expect_count) {
        question->ret_status = QUESTION_MISMATCH;
    } else {
        forgetting = calloc(1, sizeof *forgetting + count * sizeof forgetting->targets[0]);
        if (forgetting == NULL)
            question->ret_status = QUESTION_FAILED;
    }
    if (forgetting == NULL)
        return false;
    uint64_t record_count;
    forgetting->target_count = find_targets(machine, question, forgetting->targets, &record_count);
    qsort(forgetting->targets, count, sizeof forgetting->targets[0], by_pid);
    question->steps = &forgetting->steps;
    return true;
}

/* ---- histories -------------------------------------------------------------------------------------------------- */

/* What only adds to the applied set goes before it.  False: there are more rows than were left. */
static bool drop_history(struct machine *machine, uint32_t pid, size_t *rows_left)
{
    static const enum table tables[] = { TABLE_REPLIES, TABLE_SAMPLES, TABLE_MARKS };
    marks_flush(machine);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!pairs_drop(machine->rows, tables[i], pid, rows_left))
            return false;
    }
    steps_spend(rows_left, applied_drop(machine, pid));
    return true;
}

/* The first former history from *PID on that the question names; then *PID is its number.  False: there is none. */
static bool past_from(struct machine *machine, const struct question *question, uint32_t *pid,
                      size_t *rows_left)
{
    struct slice key, value;
    uint64_t zero;
    struct past_row row;
    struct key from = key_pair(TABLE_PAST, *pid, 0);
    while (rows_seek(machine->rows, key_slice(&from), &key, &value) && key_is_of(key, TABLE_PAST)) {
        if (!key_read_pair(key, TABLE_PAST, pid, &zero) || !past_row_read(value, &row)) {
            rows_spoil(machine->rows);
            return false;
        }
        if (*rows_left == 0 || is_named(question, row.topic, row.partition))
            return true;
        steps_spend(rows_left, 1);
        from = key_pair(TABLE_PAST, *pid, 1);
    }
    return false;
}

/* From PID on, as far as the step goes. */
static void forget_past(struct machine *machine, const struct question *question, uint32_t *pid,
                        size_t *rows_left)
{
    while (past_from(machine, question, pid, rows_left) && *rows_left > 0) {
        if (!drop_history(machine, *pid, rows_left))
            return;
        struct key key = key_pair(TABLE_PAST, *pid, 0);
        rows_delete(machine->rows, key_slice(&key));
        steps_spend(rows_left, PARTITION_ROWS);
    }
}

/* ---- partitions ------------------------------------------------------------------------------------------------- */

static bool is_held(const struct partition *partition)
{
    return partition->opens.count > 0 || partition->conflict != NULL || partition->replay_count > 0;
}

static void forget_whole(struct machine *machine, struct partition *partition, size_t *rows_left)
{
    struct part_row *row = &partition->row;
    size_t all = SIZE_MAX;
    (void)drop_history(machine, row->pid, &all);
    steps_spend(rows_left, SIZE_MAX - all);
    machine->figures.interval_count -= row->interval_count;
    row->seen_first = row->lowest = row->highest = -1;
    row->applied_count = row->interval_count = row->folded_to = row->swept_to = 0;
    if (is_held(partition))
        partitions_touch(machine, partition);
    else
        partitions_drop(machine, partition);
}

static void forget_range(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    applied_remove(machine, partition, first, last);
    marks_remove(machine, partition, first, last);
    pairs_delete(machine->rows, TABLE_REPLIES, partition->row.pid, (uint64_t)first, (uint64_t)last);
}

static bool is_noted_each(const struct forgetting *forgetting)
{
    return forgetting->target_count <= EVENTS_EACH_MAX;
}

static void note_partition(struct machine *machine, const struct partition *partition, uint64_t count,
                           const struct question *question)
{
    char detail[192];
    snprintf(detail, sizeof detail, "%llu applied records: %.150s", (unsigned long long)count,
             question->detail);
    audit_event(machine, EVENT_FORGOTTEN, partition, question->first, question->last, detail);
}

/* False: TARGET is not through: another number is applied there now, or the step is over. */
static bool forget_target(struct machine *machine, struct question *question, const struct target *target,
                          size_t *rows_left)
{
    struct partition *partition = partitions_find(machine, slice_of_text(question->topic), target->number);
    steps_spend(rows_left, PARTITION_ROWS);
    if (partition == NULL || partition->row.pid != target->pid)
        return true; /* it has gone meanwhile, or has begun anew */
    if (count_named(machine, question, partition) != target->count) {
        question->ret_status = QUESTION_MISMATCH;
        return false;
    }
    if (is_whole(question) && !pairs_drop(machine->rows, TABLE_REPLIES, target->pid, rows_left))
        return false;
    if (is_whole(question))
        forget_whole(machine, partition, rows_left);
    else
        forget_range(machine, partition, question->first, question->last);
    if (is_noted_each(forgetting_of(question)))
        note_partition(machine, partition, target->count, question);
    forgetting_of(question)->now.record_count += target->count;
    return true;
}

static void take_step(struct machine *machine, struct question *question)
{
    struct forgetting *forgetting = forgetting_of(question);
    struct progress *now = &forgetting->now;
    size_t rows_left = STEP_ROWS;
    if (forgetting->steps.is_durable)
        forgetting->kept = *now;
    forgetting->steps.is_durable = false;
    *now = forgetting->kept;
    if (is_whole(question))
        forget_past(machine, question, &now->past_pid, &rows_left);
    while (rows_left > 0 && now->target_count < forgetting->target_count) {
        const struct target *target = &forgetting->targets[now->target_count];
        if (!forget_target(machine, question, target, &rows_left))
            break;
        now->target_count++;
    }
    forgetting->steps.is_over =
        now->target_count == forgetting->target_count || question->ret_status != QUESTION_OK;
    if (forgetting->steps.is_over)
        partitions_sweep(machine);
}

/* One event when it begins, and one when it ends, for all of many partitions: one each would drive everything else out
 * of the ring. */
static void note_topic(struct machine *machine, const struct question *question)
{
    const struct forgetting *forgetting = forgetting_of(question);
    const struct progress *now = &forgetting->now;
    char detail[192];
    if (forgetting->steps.is_over)
        snprintf(detail, sizeof detail, "%llu applied records in %zu of %zu partitions%s: %.100s",
                 (unsigned long long)now->record_count, now->target_count, forgetting->target_count,
                 question->ret_status == QUESTION_OK ? "" : ", the next one has changed", question->detail);
    else if (!forgetting->steps.is_begun)
        snprintf(detail, sizeof detail, "begun, %llu applied records in %zu partitions: %.120s",
                 (unsigned long long)question->expect_count, forgetting->target_count, question->detail);
    else
        return;
    audit_topic_event(machine, EVENT_FORGOTTEN, question->topic, detail);
}

void do_forget(struct machine *machine, struct question *question)
{
    if (steps_resume(question) == NULL && !begin(machine, question))
        return;
    const struct forgetting *forgetting = forgetting_of(question);
    take_step(machine, question);
    if (!is_noted_each(forgetting))
        note_topic(machine, question);
    question->ret_count = question->ret_done_count = forgetting->now.record_count;
    if (question->ret_status == QUESTION_MISMATCH)
        (void)find_targets(machine, question, NULL, &question->ret_count);
    steps_close(question);
}
