/*
 * questions_records.c - what is asked about single records: one, the intervals of a partition, and those in doubt.
 */
#include <stdlib.h>
#include "applied.h"
#include "opens.h"
#include "partitions.h"
#include "questions.h"

/* ---- one record ------------------------------------------------------------------------------------------------- */

static enum record_state state_of_range(const struct open_range *range)
{
    return range->row.state == OPEN_INTENT ? RECORD_IN_FLIGHT : RECORD_IN_DOUBT;
}

static enum record_state state_of_piece(const struct applied_piece *piece)
{
    return !piece->is_applied ? RECORD_ABSENT : piece->is_folded ? RECORD_BELOW_WINDOW : RECORD_APPLIED;
}

enum record_state record_state_at(struct machine *machine, const struct partition *partition, int64_t offset)
{
    struct open_range *range = opens_from(partition, offset);
    if (range != NULL && range->first <= offset)
        return state_of_range(range);
    struct applied_piece piece = applied_piece_at(machine, partition, offset, offset);
    return state_of_piece(&piece);
}

void ask_record(struct machine *machine, struct question *question)
{
    struct partition *partition =
        partitions_find(machine, slice_of_text(question->topic), question->partition);
    if (partition == NULL || question->first < 0)
        return;
    question->ret_state = record_state_at(machine, partition, question->first);
    if (question->ret_state == RECORD_IN_DOUBT &&
        question_make_room(question, 1, sizeof *question->ret.doubts)) {
        doubt_row_fill(question->ret.doubts, opens_from(partition, question->first));
        question->ret_row_count = 1;
    }
}

/* ---- intervals -------------------------------------------------------------------------------------------------- */

/* False: there is no room for one more. */
static bool give_interval(struct question *question, size_t limit, int64_t first, int64_t last,
                          enum record_state state)
{
    struct interval_row *rows = question->ret.intervals;
    size_t count = question->ret_row_count;
    if (count > 0 && rows[count - 1].state == state && rows[count - 1].last == first - 1) {
        rows[count - 1].last = last;
        return true;
    }
    question->ret_count = count + 1; /* one more than there are rows: it goes on behind them */
    if (count == limit)
        return false;
    rows[question->ret_row_count++] = (struct interval_row){ first, last, state };
    return true;
}

/* What lies from *AT up to LIMIT, where nothing is open; *AT is the end of it afterwards.  False: nothing. */
static bool applied_interval(struct machine *machine, const struct partition *partition, int64_t *at,
                             int64_t limit, int64_t *ret_first, enum record_state *ret_state)
{
    if (!applied_next(machine, partition, *at, limit, ret_first))
        return false;
    struct applied_piece piece = applied_piece_at(machine, partition, *ret_first, limit);
    *ret_state = state_of_piece(&piece);
    *at = piece.last;
    return true;
}

static void walk_intervals(struct machine *machine, const struct partition *partition,
                           struct question *question, size_t limit)
{
    int64_t at = question->first < 0 ? 0 : question->first;
    while (rows_status(machine->rows) == ROWS_OK) {
        const struct open_range *range = opens_from(partition, at);
        int64_t first = at;
        enum record_state state;
        if (range != NULL && range->first <= at) {
            state = state_of_range(range);
            at = range->row.last;
        } else if (!applied_interval(machine, partition, &at, range == NULL ? INT64_MAX : range->first - 1,
                                     &first, &state)) {
            if (range == NULL)
                return;
            at = range->first;
            continue;
        }
        if (!give_interval(question, limit, first, at, state) || at == INT64_MAX)
            return;
        at++;
    }
}

void ask_intervals(struct machine *machine, struct question *question)
{
    size_t limit = question_row_limit(question);
    struct partition *partition =
        partitions_find(machine, slice_of_text(question->topic), question->partition);
    if (partition == NULL)
        question->ret_status = QUESTION_NOT_FOUND;
    else if (question_make_room(question, limit, sizeof *question->ret.intervals))
        walk_intervals(machine, partition, question, limit);
}

/* ---- probes ----------------------------------------------------------------------------------------------------- */

static int ranges_by_id(const void *a, const void *b)
{
    const struct open_range *const *left = a, *const *right = b;
    uint64_t left_id = (*left)->row.id, right_id = (*right)->row.id;
    return (left_id > right_id) - (left_id < right_id);
}

/* The first offset of RANGE that the question has not seen yet; behind the last: none. */
static int64_t first_unseen(const struct question *question, const struct open_range *range)
{
    if (range->row.id != question->after_id || question->after_offset < range->first)
        return range->first;
    return question->after_offset + 1;
}

static void fill_probe(struct machine *machine, struct probe_row *row, const struct open_range *range,
                       int64_t offset)
{
    const struct partition *partition = range->partition;
    struct slice context = opens_context(machine, range, offset);
    row->doubt_id = range->row.id;
    row->partition = partition->number;
    row->offset = offset;
    row->since_ms = range->row.since_ms;
    row->attempts = range->row.attempts;
    memcpy(row->topic, partition->topic, partition->topic_bytes + 1);
    row->context_bytes = (uint32_t)context.byte_count;
    if (context.byte_count > 0)
        memcpy(row->context, context.at, context.byte_count);
}

static void give_probes(struct machine *machine, struct question *question, struct open_range *const all[],
                        size_t count, size_t limit)
{
    for (size_t i = 0; i < count && question->ret_row_count < limit; i++) {
        const struct open_range *range = all[i];
        for (int64_t offset = first_unseen(question, range); question->ret_row_count < limit; offset++) {
            fill_probe(machine, &question->ret.probes[question->ret_row_count++], range, offset);
            if (offset == range->row.last)
                break;
        }
    }
}

/* A range that ends with the last offset there is has nothing unseen behind it. */
static bool has_unseen(const struct question *question, const struct open_range *range)
{
    return range->row.id > question->after_id ||
           (range->row.id == question->after_id && question->after_offset < range->row.last);
}

void ask_probes(struct machine *machine, struct question *question)
{
    size_t limit = question_row_limit(question), range_count = 0, found = 0;
    uint64_t record_count = 0;
    for (struct open_range *range = machine->doubts; range != NULL; range = range->next_doubt)
        range_count++;
    struct open_range **all = malloc((range_count + 1) * sizeof all[0]);
    for (struct open_range *range = machine->doubts; all != NULL && range != NULL;
         range = range->next_doubt) {
        if (!has_unseen(question, range) || !question_is_about(question, range->partition))
            continue;
        record_count += (uint64_t)(range->row.last - first_unseen(question, range)) + 1;
        all[found++] = range;
    }
    question->ret_count = record_count;
    limit = record_count < limit ? (size_t)record_count : limit;
    if (all == NULL || !question_make_room(question, limit, sizeof *question->ret.probes)) {
        question->ret_status = QUESTION_FAILED;
    } else {
        qsort(all, found, sizeof all[0], ranges_by_id);
        give_probes(machine, question, all, found, limit);
    }
    free(all);
}
