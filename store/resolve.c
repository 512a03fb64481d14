/*
 * resolve.c - doubts that are over because a person, or a probe, says what the target has.
 *
 * There may be a hundred thousand of them: they go in steps (steps.h), partition by partition, and in each from the end:
 * what leaves the end of a set moves nothing.  What is written down at the first step is the number of the next doubt:
 *
 *     a doubt with a lower one      was counted, and is resolved in its turn
 *     one that has ended meanwhile  is left out: by then something better is known of it
 *     one that has begun meanwhile  stays, although the filter names it: nobody has looked into the target for it
 *
 * so that the count of the answer is that of the doubts that this decision has ended, and no more than was expected.
 */
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "opens.h"
#include "partitions.h"
#include "questions.h"
#include "settle.h"
#include "steps.h"

enum { MOVED_PER_ROW = 16384 /* so many ranges move up in the time of a row */ };

/* How far it has come. */
struct resolved {
    char topic[TOPIC_BYTES_MAX + 1]; /* with number: the last partition that is through; "": none is */
    int32_t number;
    uint64_t doubt_count, record_count;
};

struct resolving {
    struct steps steps;
    struct resolved kept, now; /* after the last step that is durable, and after the one behind it */
    uint64_t id_end;           /* doubts from here on were not counted */
    uint64_t doubt_count, partition_count;
};

/* What of a doubt, or of a partition in one step, is resolved. */
struct stretch {
    int64_t first, last;
    uint64_t doubt_count, record_count;
};

static struct resolving *resolving_of(const struct question *question)
{
    return (struct resolving *)(void *)question->steps;
}

/* ---- one doubt -------------------------------------------------------------------------------------------------- */

static const char *decision(const struct question *question)
{
    return question->is_applied ? "applied" : "not applied";
}

/* The doubt is over for FIRST to LAST of RANGE. */
static void resolve(struct machine *machine, struct open_range *range, int64_t first, int64_t last,
                    const struct question *question, bool is_noted)
{
    char detail[192];
    struct partition *partition = range->partition;
    range = opens_carve(machine, range, first, last);
    if (range == NULL)
        return;
    uint64_t count = opens_count(range);
    snprintf(detail, sizeof detail, "%s: %.150s", decision(question), question->detail);
    if (question->is_applied) {
        machine->figures.resolved_applied += count;
        settle_applied(machine, range);
    } else {
        machine->figures.resolved_not_applied += count;
        opens_remove(machine, range);
        applied_set_free(machine, partition, last);
    }
    if (is_noted)
        audit_event(machine, EVENT_RESOLVED, partition, first, last, detail);
}

/* It is over, or there never was one: who still asks is told what became of its record. */
static void tell_ended(struct machine *machine, struct question *question)
{
    const struct ended_doubt *ended = &machine->ended[question->id % ENDED_DOUBTS];
    question->ret_status = QUESTION_NOT_FOUND;
    if (question->id == 0 || ended->id != question->id)
        return;
    question->ret_id = ended->id;
    question->ret_state = record_state_at(machine, ended->partition, ended->first);
}

void do_resolve_one(struct machine *machine, struct question *question)
{
    struct open_range *range = machine->doubts;
    while (range != NULL && range->row.id != question->id)
        range = range->next_doubt;
    if (range == NULL) {
        tell_ended(machine, question);
        return;
    }
    question->ret_count = opens_count(range);
    resolve(machine, range, range->first, range->row.last, question, true);
}

/* ---- which ------------------------------------------------------------------------------------------------------ */

static bool is_named_partition(const struct question *question, const struct partition *partition)
{
    return question_is_about(question, partition) &&
           (question->partition < 0 || question->partition == partition->number);
}

/* The part of RANGE, which lies in a partition that is named, that the filter names; false: none. */
static bool is_named(const struct question *question, const struct open_range *range,
                     struct stretch *ret_part)
{
    bool is_everywhere = question->first < 0 && question->last < 0;
    int64_t first = is_everywhere || range->first > question->first ? range->first : question->first;
    int64_t last = is_everywhere ? range->row.last : lesser(range->row.last, question->last);
    if (range->row.state != OPEN_IN_DOUBT || first > last ||
        (question->since_ms != 0 && question->since_ms != range->row.since_ms))
        return false;
    *ret_part = (struct stretch){ first, last, 1, (uint64_t)(last - first) + 1 };
    return true;
}

static void stretch_add(struct stretch *all, const struct stretch *part)
{
    if (all->doubt_count == 0 || part->first < all->first)
        all->first = part->first;
    if (all->doubt_count == 0 || part->last > all->last)
        all->last = part->last;
    all->doubt_count += part->doubt_count;
    all->record_count += part->record_count;
}

/* The partitions from behind the last one that is through on; not all need be named.  ONE is room for one of them. */
static struct partition *const *partitions_left(struct machine *machine, const struct question *question,
                                                const struct resolved *resolved, struct partition **one,
                                                size_t *ret_count)
{
    if (question->topic[0] != '\0' && question->partition >= 0) {
        *one = partitions_find(machine, slice_of_text(question->topic), question->partition);
        *ret_count = *one != NULL;
        return one;
    }
    size_t from, to;
    question_partitions(machine, question, resolved->topic, resolved->number, &from, &to);
    *ret_count = to - from;
    return from < to ? &partitions_by_name(machine)[from] : one;
}

static void count_named(struct machine *machine, struct question *question, struct resolving *counted)
{
    size_t count;
    struct partition *one, *const *all = partitions_left(machine, question, &counted->kept, &one, &count);
    for (size_t i = 0; i < count; i++) {
        const struct open_set *opens = &all[i]->opens;
        struct stretch sum = { 0 }, part;
        if (!is_named_partition(question, all[i]))
            continue;
        for (size_t at = 0; at < opens->count; at++)
            if (is_named(question, opens->at[at], &part))
                stretch_add(&sum, &part);
        question->ret_count += sum.record_count;
        counted->doubt_count += sum.doubt_count;
        counted->partition_count += sum.doubt_count > 0;
    }
}

/* False: nothing is to be done, and the question says why. */
static bool begin(struct machine *machine, struct question *question)
{
    struct resolving counted = { .id_end = machine->counters.next_doubt_id };
    count_named(machine, question, &counted);
    if (question->ret_count != question->expect_count) {
        question->ret_status = QUESTION_MISMATCH;
        return false;
    }
    struct resolving *resolving = malloc(sizeof *resolving);
    if (resolving == NULL) {
        question->ret_status = QUESTION_FAILED;
        return false;
    }
    *resolving = counted;
    question->steps = &resolving->steps;
    return true;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

/* Many doubts have one event for all of a partition, and those of many partitions one when it begins and one when it
 * ends: one each would drive everything else out of the ring. */
static bool is_noted_each(const struct resolving *resolving)
{
    return resolving->doubt_count <= EVENTS_EACH_MAX;
}

static bool is_noted_by_partition(const struct resolving *resolving)
{
    return !is_noted_each(resolving) && resolving->partition_count <= EVENTS_EACH_MAX;
}

static void note_partition(struct machine *machine, const struct partition *partition,
                           const struct stretch *done, const struct question *question)
{
    char detail[192];
    snprintf(detail, sizeof detail, "%s, %llu records in %llu doubts: %.120s", decision(question),
             (unsigned long long)done->record_count, (unsigned long long)done->doubt_count, question->detail);
    audit_event(machine, EVENT_RESOLVED, partition, done->first, done->last, detail);
}

static void note_all(struct machine *machine, const struct question *question)
{
    char detail[192];
    const struct resolving *resolving = resolving_of(question);
    if (resolving->steps.is_over)
        snprintf(detail, sizeof detail, "%s, %llu records in %llu of %llu doubts: %.100s", decision(question),
                 (unsigned long long)resolving->now.record_count,
                 (unsigned long long)resolving->now.doubt_count, (unsigned long long)resolving->doubt_count,
                 question->detail);
    else if (!resolving->steps.is_begun)
        snprintf(detail, sizeof detail, "begun, %s, %llu records in %llu doubts: %.100s", decision(question),
                 (unsigned long long)question->expect_count, (unsigned long long)resolving->doubt_count,
                 question->detail);
    else
        return;
    audit_topic_event(machine, EVENT_RESOLVED, question->topic, detail);
}

/* How many of OPENS begin before the end of what the filter names. */
static size_t count_before_end(const struct open_set *opens, const struct question *question)
{
    size_t low = 0, high = opens->count;
    if (question->last < 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (opens->at[middle]->first <= question->last)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False: the step is over before PARTITION is through. */
static bool resolve_in(struct machine *machine, const struct question *question,
                       const struct partition *partition, struct stretch *done, size_t *rows_left)
{
    const struct resolving *resolving = resolving_of(question);
    struct stretch part;
    for (size_t at = count_before_end(&partition->opens, question); at > 0; at--) {
        struct open_range *range = partition->opens.at[at - 1];
        if (range->row.id >= resolving->id_end || !is_named(question, range, &part))
            continue;
        if (*rows_left == 0 || rows_status(machine->rows) != ROWS_OK)
            return false;
        size_t behind_count = partition->opens.count - at;
        steps_spend(rows_left,
                    1 + (range->row.has_contexts ? part.record_count : 0) + behind_count / MOVED_PER_ROW);
        resolve(machine, range, part.first, part.last, question, is_noted_each(resolving));
        stretch_add(done, &part);
    }
    return true;
}

/* False: the step is over before PARTITION is through. */
static bool take_partition(struct machine *machine, const struct question *question,
                           const struct partition *partition, size_t *rows_left)
{
    struct resolving *resolving = resolving_of(question);
    struct stretch done = { 0 };
    bool is_through = resolve_in(machine, question, partition, &done, rows_left);
    resolving->now.doubt_count += done.doubt_count;
    resolving->now.record_count += done.record_count;
    if (done.doubt_count == 0)
        return is_through;
    steps_spend(rows_left, PARTITION_ROWS);
    if (is_noted_by_partition(resolving))
        note_partition(machine, partition, &done, question);
    return is_through;
}

static void take_step(struct machine *machine, const struct question *question)
{
    struct resolving *resolving = resolving_of(question);
    struct resolved *now = &resolving->now;
    size_t rows_left = STEP_ROWS, at, count;
    if (resolving->steps.is_durable)
        resolving->kept = *now;
    resolving->steps.is_durable = false;
    *now = resolving->kept;
    struct partition *one, *const *all = partitions_left(machine, question, now, &one, &count);
    for (at = 0; at < count; at++)
        if (is_named_partition(question, all[at]) && !take_partition(machine, question, all[at], &rows_left))
            break;
    if (at > 0) {
        memcpy(now->topic, all[at - 1]->topic, all[at - 1]->topic_bytes + 1);
        now->number = all[at - 1]->number;
    }
    resolving->steps.is_over = at == count;
}

void do_resolve(struct machine *machine, struct question *question)
{
    if (steps_resume(question) == NULL && !begin(machine, question))
        return;
    const struct resolving *resolving = resolving_of(question);
    take_step(machine, question);
    if (!is_noted_each(resolving) && !is_noted_by_partition(resolving))
        note_all(machine, question);
    question->ret_count = resolving->now.record_count;
    steps_close(question);
}
