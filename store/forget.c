/*
 * forget.c - applied records that are to be unknown again, because a person says so.
 *
 * Doubts and flights stay: what is not known cannot be forgotten.  A partition that is forgotten as a whole also loses
 * the histories that new topics under its name have ended, and leaves itself when nothing else holds it: there is room for
 * another one then (partitions_max).
 */
#include <stdio.h>
#include "applied.h"
#include "audit.h"
#include "marks.h"
#include "pairs.h"
#include "partitions.h"
#include "questions.h"

static bool is_whole(const struct question *question)
{
    return question->first < 0 && question->last < 0;
}

static bool is_named(const struct question *question, const struct partition *partition)
{
    return question->topic[0] != '\0' && question_is_about(question, partition) &&
           (question->partition < 0 || question->partition == partition->number);
}

static uint64_t count_named(struct machine *machine, const struct question *question,
                            const struct partition *partition)
{
    return is_whole(question) ? partition->row.applied_count
                              : applied_count_in(machine, partition, question->first, question->last);
}

/* True: the table has a row of this partition from *PID on; then *PID is its number. */
static bool past_from(struct machine *machine, const struct partition *partition, uint32_t *pid)
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
        if (row.partition == partition->number && strcmp(row.topic, partition->topic) == 0)
            return true;
        from = key_pair(TABLE_PAST, *pid, 1);
    }
    return false;
}

static void drop_history(struct machine *machine, uint32_t pid)
{
    applied_drop(machine, pid);
    marks_flush(machine);
    pairs_delete(machine->rows, TABLE_MARKS, pid, 0, UINT64_MAX);
    pairs_delete(machine->rows, TABLE_SAMPLES, pid, 0, UINT64_MAX);
    pairs_delete(machine->rows, TABLE_REPLIES, pid, 0, UINT64_MAX);
}

static void forget_past(struct machine *machine, const struct partition *partition)
{
    for (uint32_t pid = 0; past_from(machine, partition, &pid); pid++) {
        struct key key = key_pair(TABLE_PAST, pid, 0);
        drop_history(machine, pid);
        rows_delete(machine->rows, key_slice(&key));
    }
}

static bool is_held(const struct partition *partition)
{
    return partition->opens.count > 0 || partition->conflict != NULL || partition->replay_count > 0;
}

static void forget_whole(struct machine *machine, struct partition *partition)
{
    struct part_row *row = &partition->row;
    drop_history(machine, row->pid);
    machine->figures.interval_count -= row->interval_count;
    row->seen_first = row->lowest = row->highest = -1;
    row->applied_count = row->interval_count = row->folded_to = row->swept_to = 0;
    forget_past(machine, partition);
    partition->is_over = !is_held(partition);
    if (!partition->is_over)
        partitions_touch(machine, partition);
}

static void forget_range(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    applied_remove(machine, partition, first, last);
    marks_remove(machine, partition, first, last);
    pairs_delete(machine->rows, TABLE_REPLIES, partition->row.pid, (uint64_t)first, (uint64_t)last);
}

static void forget(struct machine *machine, struct partition *partition, const struct question *question)
{
    char detail[192];
    uint64_t count = count_named(machine, question, partition);
    snprintf(detail, sizeof detail, "%llu applied records: %.150s", (unsigned long long)count,
             question->detail);
    if (is_whole(question))
        forget_whole(machine, partition);
    else
        forget_range(machine, partition, question->first, question->last);
    audit_event(machine, EVENT_FORGOTTEN, partition, question->first, question->last, detail);
}

static bool is_range(const struct question *question)
{
    return is_whole(question) || (question->first >= 0 && question->first <= question->last);
}

void do_forget(struct machine *machine, struct question *question)
{
    question->ret_status = QUESTION_NOT_FOUND;
    if (!is_range(question))
        return;
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition)) {
        if (!is_named(question, partition))
            continue;
        question->ret_status = QUESTION_OK;
        question->ret_count += count_named(machine, question, partition);
    }
    if (question->ret_status == QUESTION_OK && question->ret_count != question->expect_count)
        question->ret_status = QUESTION_MISMATCH;
    if (question->ret_status != QUESTION_OK)
        return;
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition))
        if (is_named(question, partition))
            forget(machine, partition, question);
    partitions_sweep(machine);
}
