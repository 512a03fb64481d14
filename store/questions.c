/*
 * questions.c - what the admin port asks and decides.
 *
 * Lists are rare and short against the flow of claims: they are gathered by walking through all partitions or doubts.
 */
#include "questions.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "marks.h"
#include "opens.h"
#include "pairs.h"
#include "partitions.h"
#include "replays.h"

enum { ROWS_MAX = 10000 };

size_t question_row_limit(const struct question *question)
{
    return question->row_count_max < ROWS_MAX ? question->row_count_max : ROWS_MAX;
}

bool question_make_room(struct question *question, size_t count, size_t row_bytes)
{
    question->ret.any = calloc(count == 0 ? 1 : count, row_bytes);
    if (question->ret.any == NULL)
        question->ret_status = QUESTION_FAILED;
    return question->ret.any != NULL;
}

bool question_is_about(const struct question *question, const struct partition *partition)
{
    return question->topic[0] == '\0' || strcmp(question->topic, partition->topic) == 0;
}

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

void doubt_row_fill(struct doubt_row *row, const struct open_range *range)
{
    const struct partition *partition = range->partition;
    *row = (struct doubt_row){ .id = range->row.id,
                               .partition = partition->number,
                               .first = range->first,
                               .last = range->row.last,
                               .record_count = opens_count(range),
                               .since_ms = range->row.since_ms,
                               .attempts = range->row.attempts,
                               .cause = range->row.cause };
    memcpy(row->topic, partition->topic, partition->topic_bytes + 1);
    memcpy(row->detail, range->row.detail, sizeof row->detail);
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static int doubts_by_id(const void *a, const void *b)
{
    const struct open_range *const *left = a, *const *right = b;
    return by_number((*left)->row.id, (*right)->row.id);
}

static bool is_ascending(struct open_range *const all[], size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (all[i - 1]->row.id > all[i]->row.id)
            return false;
    return true;
}

/* The doubts that the question names, ascending by id; free what *RET_ROOM is.  NULL: no memory. */
static struct open_range **gather_doubts(const struct machine *machine, const struct question *question,
                                         struct open_range ***ret_room, size_t *ret_count)
{
    size_t count = 0;
    for (struct open_range *range = machine->doubts; range != NULL; range = range->next_doubt)
        count++;
    struct open_range **room = malloc((count + 1) * sizeof room[0]);
    *ret_room = room;
    if (room == NULL)
        return NULL;
    /* The newest stand first in the machine's list: filled from the end, there is seldom anything to sort. */
    struct open_range **all = room + count;
    for (struct open_range *range = machine->doubts; range != NULL; range = range->next_doubt)
        if (question_is_about(question, range->partition) && range->row.id > question->after_id)
            *--all = range;
    *ret_count = (size_t)(room + count - all);
    if (!is_ascending(all, *ret_count))
        qsort(all, *ret_count, sizeof all[0], doubts_by_id);
    return all;
}

static void ask_doubts(struct machine *machine, struct question *question)
{
    size_t found = 0;
    struct open_range **room, **all = gather_doubts(machine, question, &room, &found);
    size_t row_count = found < question_row_limit(question) ? found : question_row_limit(question);
    question->ret_count = found;
    if (all == NULL) {
        question->ret_status = QUESTION_FAILED;
    } else if (question_make_room(question, row_count, sizeof *question->ret.doubts)) {
        for (size_t i = 0; i < row_count; i++)
            doubt_row_fill(&question->ret.doubts[i], all[i]);
        question->ret_row_count = row_count;
    }
    free(room);
}

static void fill_partition(struct partition_row *row, const struct partition *partition, const char *topic)
{
    const struct part_row *part = &partition->row;
    *row = (struct partition_row){ .topic = topic,
                                   .partition = partition->number,
                                   .generation = part->generation,
                                   .lowest = part->lowest,
                                   .highest = part->highest,
                                   .applied_count = part->applied_count,
                                   .interval_count = part->interval_count,
                                   .last_ms = part->last_ms,
                                   .is_in_conflict = partition->conflict != NULL };
    if (part->highest >= 0)
        row->gap_count = (uint64_t)(part->highest - part->lowest) + 1 - part->applied_count;
    for (size_t i = 0; i < partition->opens.count; i++) {
        const struct open_range *range = partition->opens.at[i];
        if (range->row.state == OPEN_IN_DOUBT)
            row->in_doubt_count += opens_count(range);
        else
            row->in_flight_count += opens_count(range);
    }
}

void question_partitions(struct machine *machine, const struct question *question, const char *after_topic,
                         int32_t after_partition, size_t *ret_from, size_t *ret_to)
{
    bool is_any = question->topic[0] == '\0';
    size_t behind = after_topic[0] == '\0' ? 0 : partitions_behind(machine, after_topic, after_partition);
    *ret_from = is_any ? 0 : partitions_behind(machine, question->topic, -1);
    *ret_to = is_any ? machine->partition_count : partitions_behind(machine, question->topic, INT32_MAX);
    if (behind > *ret_from)
        *ret_from = behind < *ret_to ? behind : *ret_to;
}

static void find_named(struct machine *machine, const struct question *question, size_t *ret_from,
                       size_t *ret_to)
{
    question_partitions(machine, question, question->after_topic, question->after_partition, ret_from,
                        ret_to);
}

static bool begins_topic(struct partition *const all[], size_t index)
{
    return index == 0 || strcmp(all[index]->topic, all[index - 1]->topic) != 0;
}

/* Each topic stands once behind the rows: with room for a name in every row a scrape of ten thousand partitions would
 * spend most of its time on memory that nobody has touched before. */
static void fill_partitions(struct question *question, struct partition *const all[], size_t row_count)
{
    size_t bytes = row_count * sizeof *question->ret.partitions;
    for (size_t i = 0; i < row_count; i++)
        bytes += begins_topic(all, i) ? all[i]->topic_bytes + 1 : 0;
    if (!question_make_room(question, bytes, 1))
        return;
    struct partition_row *rows = question->ret.partitions;
    char *topic = NULL, *free_room = (char *)(rows + row_count);
    for (size_t i = 0; i < row_count; i++) {
        if (begins_topic(all, i)) {
            topic = memcpy(free_room, all[i]->topic, all[i]->topic_bytes + 1);
            free_room += all[i]->topic_bytes + 1;
        }
        fill_partition(&rows[i], all[i], topic);
    }
    question->ret_row_count = row_count;
}

static void ask_partitions(struct machine *machine, struct question *question)
{
    size_t from, to;
    struct partition *const *all = partitions_by_name(machine);
    find_named(machine, question, &from, &to);
    question->ret_count = to - from;
    size_t row_count = to - from < question_row_limit(question) ? to - from : question_row_limit(question);
    fill_partitions(question, row_count > 0 ? &all[from] : all, row_count); /* of none there is no array */
}

static int conflicts_by_id(const void *a, const void *b)
{
    const struct conflict_row *left = a, *right = b;
    return by_number(left->id, right->id);
}

static void ask_conflicts(struct machine *machine, struct question *question)
{
    size_t from, to, room = 0, count = 0;
    struct partition *const *all = partitions_by_name(machine);
    find_named(machine, question, &from, &to);
    for (size_t i = from; i < to; i++)
        room += all[i]->conflict != NULL;
    if (!question_make_room(question, room, sizeof *question->ret.conflicts))
        return;
    for (size_t i = from; i < to; i++)
        if (all[i]->conflict != NULL && all[i]->conflict->id > question->after_id)
            question->ret.conflicts[count++] = *all[i]->conflict;
    qsort(question->ret.conflicts, count, sizeof *question->ret.conflicts, conflicts_by_id);
    question->ret_count = count;
    question->ret_row_count = count < question_row_limit(question) ? count : question_row_limit(question);
}

static void ask_events(struct machine *machine, struct question *question)
{
    size_t limit = question_row_limit(question) < EVENTS_MAX ? question_row_limit(question) : EVENTS_MAX;
    struct slice value;
    uint64_t id = question->after_id;
    if (!question_make_room(question, limit, sizeof *question->ret.events))
        return;
    while (id < INT64_MAX && numbers_next(machine->rows, TABLE_EVENTS, id + 1, &id, &value)) {
        if (question->ret_row_count < limit &&
            !event_row_read(id, value, &question->ret.events[question->ret_row_count++])) {
            rows_spoil(machine->rows);
            return;
        }
        question->ret_count++;
    }
}

/* ---- decisions -------------------------------------------------------------------------------------------------- */

/* The same record after all: its mark is the one that came. */
static void accept_mark(struct machine *machine, struct partition *partition,
                        const struct conflict_row *conflict)
{
    struct open_range *range = opens_from(partition, conflict->offset);
    if (conflict->is_first_sight)
        return;
    if (range != NULL && range->first <= conflict->offset)
        opens_set_mark(machine, range, conflict->offset, conflict->seen);
    if (applied_piece_at(machine, partition, conflict->offset, conflict->offset).is_applied)
        marks_overwrite(machine, partition, conflict->offset, conflict->seen);
}

/* Another topic under the old name: nothing of the old one counts, and what was open of it is closed. */
static uint64_t begin_new_topic(struct machine *machine, struct partition *partition)
{
    uint64_t closed_count = 0;
    replays_close_all(machine, partition, "the topic is a new one");
    while (partition->opens.count > 0 && rows_status(machine->rows) == ROWS_OK) {
        closed_count += opens_count(partition->opens.at[partition->opens.count - 1]);
        opens_remove(machine, partition->opens.at[partition->opens.count - 1]);
    }
    if (partition->row.highest >= 0 || closed_count > 0)
        partitions_renew(machine, partition);
    return closed_count;
}

static void do_decide(struct machine *machine, struct question *question)
{
    struct partition *partition = partitions_next(machine, NULL);
    while (partition != NULL && (partition->conflict == NULL || partition->conflict->id != question->id))
        partition = partitions_next(machine, partition);
    if (partition == NULL) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    char detail[192];
    int64_t offset = partition->conflict->offset;
    uint64_t closed_count = 0;
    if (question->is_new_topic)
        closed_count = begin_new_topic(machine, partition);
    else
        accept_mark(machine, partition, partition->conflict);
    audit_close_conflict(machine, partition);
    snprintf(detail, sizeof detail, "%s (%llu open records closed): %.120s",
             question->is_new_topic ? "new topic" : "same record", (unsigned long long)closed_count,
             question->detail);
    audit_event(machine, EVENT_DECIDED, partition, offset, offset, detail);
    question->ret_count = 1;
}

static void do_note(struct machine *machine, struct question *question)
{
    audit_event(machine, EVENT_ADMIN, NULL, -1, -1, question->detail);
}

static bool is_change(enum question_kind kind)
{
    return kind == DO_RESOLVE_ONE || kind == DO_RESOLVE || kind == DO_DECIDE || kind == DO_FORGET ||
           kind == DO_REPLAY_OPEN || kind == DO_REPLAY_CLOSE || kind == DO_NOTE;
}

void machine_ask(struct machine *machine, struct question *question)
{
    static void (*const ways[])(struct machine *, struct question *) = {
        [ASK_RECORD] = ask_record,
        [ASK_DOUBTS] = ask_doubts,
        [ASK_PARTITIONS] = ask_partitions,
        [ASK_CONFLICTS] = ask_conflicts,
        [ASK_INTERVALS] = ask_intervals,
        [ASK_PROBES] = ask_probes,
        [ASK_REPLAYS] = ask_replays,
        [DO_REPLAY_OPEN] = do_replay_open,
        [DO_REPLAY_CLOSE] = do_replay_close,
        [DO_FORGET] = do_forget,
        [ASK_EVENTS] = ask_events,
        [DO_RESOLVE_ONE] = do_resolve_one,
        [DO_RESOLVE] = do_resolve,
        [DO_DECIDE] = do_decide,
        [DO_NOTE] = do_note,
    };
    assert((size_t)question->kind < sizeof ways / sizeof ways[0] && ways[question->kind] != NULL);
    free(question->ret.any);
    question->ret.any = NULL;
    question->ret_id = 0;
    question->ret_count = question->ret_done_count = 0;
    question->ret_row_count = 0;
    question->ret_state = RECORD_ABSENT;
    question->ret_status = QUESTION_OK;
    if (is_change(question->kind) && machine->mode == MACHINE_READ) {
        question->ret_status = QUESTION_FAILED;
        machine_give_up(question);
    } else {
        ways[question->kind](machine, question);
    }
}
