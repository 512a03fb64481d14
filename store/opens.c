/*
 * opens.c - the records that are claimed or in doubt.
 *
 * A partition's ranges are a sorted array of pointers: there are few of them (requests in flight, and doubts up to a
 * setting), most are looked for and changed near the end, and a search is a handful of steps.
 */
#include "opens.h"

#include <assert.h>
#include <stdlib.h>
#include "pairs.h"
#include "partitions.h"
#include "waiters.h"

static size_t search(const struct open_set *set, int64_t offset)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->at[middle]->row.last < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct open_range *opens_from(const struct partition *partition, int64_t offset)
{
    size_t index = search(&partition->opens, offset);
    return index < partition->opens.count ? partition->opens.at[index] : NULL;
}

/* ---- the set, the list of doubts, the rows ---------------------------------------------------------------------- */

static void doubt_enter(struct machine *machine, struct open_range *range)
{
    struct machine_figures *figures = &machine->figures;
    range->previous_doubt = NULL;
    range->next_doubt = machine->doubts;
    if (machine->doubts != NULL)
        machine->doubts->previous_doubt = range;
    machine->doubts = range;
    figures->in_doubt_records += opens_count(range);
    figures->doubts_by_cause[range->row.cause] += opens_count(range);
    machine->is_oldest_stale = true;
}

static void doubt_leave(struct machine *machine, struct open_range *range)
{
    struct machine_figures *figures = &machine->figures;
    if (range->previous_doubt != NULL)
        range->previous_doubt->next_doubt = range->next_doubt;
    else
        machine->doubts = range->next_doubt;
    if (range->next_doubt != NULL)
        range->next_doubt->previous_doubt = range->previous_doubt;
    figures->in_doubt_records -= opens_count(range);
    figures->doubts_by_cause[range->row.cause] -= opens_count(range);
    machine->is_oldest_stale = true;
}

/* It is over, and its id is remembered for a while. */
static void doubt_end(struct machine *machine, struct open_range *range)
{
    doubt_leave(machine, range);
    machine->ended[range->row.id % ENDED_DOUBTS] =
        (struct ended_doubt){ range->row.id, range->partition, range->first };
}

static bool insert(struct open_set *set, struct open_range *range)
{
    if (set->count == set->room) {
        size_t room = set->room == 0 ? 8 : 2 * set->room;
        struct open_range **at = realloc(set->at, room * sizeof at[0]);
        if (at == NULL)
            return false;
        set->at = at;
        set->room = room;
    }
    size_t index = search(set, range->first);
    memmove(&set->at[index + 1], &set->at[index], (set->count - index) * sizeof set->at[0]);
    set->at[index] = range;
    set->count++;
    return true;
}

static void range_free(struct open_range *range)
{
    free(range->marks);
    free(range);
}

/* Owned by PARTITION; MARKS is copied.  NULL: no memory. */
static struct open_range *range_new(struct machine *machine, struct partition *partition, int64_t first,
                                    const struct open_row *row, const record_mark marks[])
{
    struct open_range *range = calloc(1, sizeof *range);
    size_t count = (size_t)(row->last - first) + 1;
    if (range == NULL)
        return NULL;
    range->partition = partition;
    range->first = first;
    range->row = *row;
    if (marks != NULL && (range->marks = malloc(count * sizeof marks[0])) != NULL)
        memcpy(range->marks, marks, count * sizeof marks[0]);
    if ((marks != NULL && range->marks == NULL) || !insert(&partition->opens, range)) {
        range_free(range);
        return NULL;
    }
    if (row->state == OPEN_IN_DOUBT)
        doubt_enter(machine, range);
    return range;
}

static void save(struct machine *machine, const struct open_range *range)
{
    struct key key = key_pair(TABLE_OPEN, range->partition->row.pid, (uint64_t)range->first);
    struct value value;
    open_row_write(&range->row, range->first, range->marks, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static bool any_mark(const struct record records[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].mark != MARK_NONE)
            return true;
    return false;
}

/* True: there were some to keep. */
static bool put_contexts(struct machine *machine, const struct open_range *range,
                         const struct slice contexts[])
{
    size_t kept_count = 0;
    for (size_t i = 0; contexts != NULL && i < opens_count(range); i++) {
        struct slice context = contexts[i];
        if (context.byte_count == 0)
            continue;
        if (context.byte_count > RECORD_CONTEXT_BYTES_MAX)
            context.byte_count = RECORD_CONTEXT_BYTES_MAX;
        struct key key =
            key_pair(TABLE_CONTEXTS, range->partition->row.pid, (uint64_t)range->first + (uint64_t)i);
        rows_put(machine->rows, key_slice(&key), context);
        kept_count++;
    }
    return kept_count > 0;
}

void opens_keep_contexts(struct machine *machine, struct open_range *range, const struct slice contexts[])
{
    if (!put_contexts(machine, range, contexts) || range->row.has_contexts)
        return;
    range->row.has_contexts = true;
    save(machine, range);
}

struct slice opens_context(struct machine *machine, const struct open_range *range, int64_t offset)
{
    struct key key = key_pair(TABLE_CONTEXTS, range->partition->row.pid, (uint64_t)offset);
    struct slice value;
    if (!range->row.has_contexts || !rows_get(machine->rows, key_slice(&key), &value))
        return slice_of(NULL, 0);
    if (value.byte_count <= RECORD_CONTEXT_BYTES_MAX)
        return value;
    rows_spoil(machine->rows);
    return slice_of(NULL, 0);
}

static void claim_some(struct machine *machine, struct partition *partition, const struct open_claim *claim)
{
    const struct record *records = claim->records;
    size_t count = claim->count;
    record_mark marks[OPEN_RECORDS_MAX];
    bool has_marks = machine->settings.is_identity_checked && any_mark(records, count);
    for (size_t i = 0; has_marks && i < count; i++)
        marks[i] = records[i].mark;
    struct open_row row = { .last = records[count - 1].key.offset,
                            .state = OPEN_INTENT,
                            .claim_id = claim->claim_id,
                            .boot = machine->boot,
                            .since_ms = machine->now.unix_ms,
                            .attempts = 1,
                            .replay_id = claim->replay_id };
    struct open_range *range =
        range_new(machine, partition, records[0].key.offset, &row, has_marks ? marks : NULL);
    if (range == NULL) {
        rows_spoil(machine->rows);
        return;
    }
    range->row.has_contexts = put_contexts(machine, range, claim->contexts);
    save(machine, range);
}

void opens_claim(struct machine *machine, struct partition *partition, const struct open_claim *claim)
{
    for (size_t at = 0; at < claim->count; at += OPEN_RECORDS_MAX) {
        struct open_claim some = *claim;
        some.records += at;
        some.contexts = claim->contexts == NULL ? NULL : &claim->contexts[at];
        some.count = claim->count - at < OPEN_RECORDS_MAX ? claim->count - at : OPEN_RECORDS_MAX;
        claim_some(machine, partition, &some);
    }
}

/* A part of RANGE becomes a range of its own; a doubt gets a name of its own, too. */
static struct open_range *split_off(struct machine *machine, struct open_range *range, int64_t first,
                                    int64_t last)
{
    struct open_row row = range->row;
    row.last = last;
    if (row.state == OPEN_IN_DOUBT) {
        row.id = machine->counters.next_doubt_id++;
        machine->is_counters_dirty = true;
    }
    const record_mark *marks = range->marks == NULL ? NULL : &range->marks[first - range->first];
    return range_new(machine, range->partition, first, &row, marks);
}

/* RANGE ends at LAST from now on. */
static void shorten(struct machine *machine, struct open_range *range, int64_t last)
{
    bool is_doubt = range->row.state == OPEN_IN_DOUBT;
    if (is_doubt)
        doubt_leave(machine, range);
    range->row.last = last;
    if (is_doubt)
        doubt_enter(machine, range);
}

struct open_range *opens_carve(struct machine *machine, struct open_range *range, int64_t first, int64_t last)
{
    assert(range->first <= first && first <= last && last <= range->row.last);
    struct open_range *middle = range;
    waiters_wake(machine, range);
    if (last < range->row.last) {
        int64_t right_last = range->row.last;
        shorten(machine, range, last);
        struct open_range whole = *range;
        whole.row.last = right_last;
        struct open_range *right = split_off(machine, &whole, last + 1, right_last);
        if (right == NULL)
            goto no_memory;
        save(machine, right);
    }
    if (first > range->first) {
        shorten(machine, range, first - 1);
        middle = split_off(machine, range, first, last);
        if (middle == NULL)
            goto no_memory;
        save(machine, range);
    }
    return middle;
no_memory:
    rows_spoil(machine->rows);
    return NULL;
}

void opens_remove(struct machine *machine, struct open_range *range)
{
    struct open_set *set = &range->partition->opens;
    struct key key = key_pair(TABLE_OPEN, range->partition->row.pid, (uint64_t)range->first);
    size_t index = search(set, range->first);
    assert(index < set->count && set->at[index] == range);
    waiters_wake(machine, range);
    if (range->row.state == OPEN_IN_DOUBT)
        doubt_end(machine, range);
    rows_delete(machine->rows, key_slice(&key));
    if (range->row.has_contexts)
        pairs_delete(machine->rows, TABLE_CONTEXTS, range->partition->row.pid, (uint64_t)range->first,
                     (uint64_t)range->row.last);
    set->count--;
    memmove(&set->at[index], &set->at[index + 1], (set->count - index) * sizeof set->at[0]);
    range_free(range);
}

void opens_reclaim(struct machine *machine, struct open_range *range, uint64_t claim_id)
{
    assert(range->row.state == OPEN_IN_DOUBT);
    waiters_wake(machine, range);
    doubt_end(machine, range);
    range->row.state = OPEN_INTENT;
    range->row.claim_id = claim_id;
    range->row.id = 0;
    range->row.boot = machine->boot;
    range->row.since_ms = machine->now.unix_ms;
    range->row.attempts++;
    range->row.detail[0] = '\0';
    save(machine, range);
}

static void set_detail(char detail[DETAIL_BYTES_MAX + 1], const char *words)
{
    size_t byte_count = words == NULL ? 0 : strnlen(words, DETAIL_BYTES_MAX);
    if (byte_count > 0)
        memcpy(detail, words, byte_count);
    detail[byte_count] = '\0';
}

void opens_doubt(struct machine *machine, struct open_range *range, enum doubt_cause cause,
                 const char *detail, uint64_t since_ms)
{
    waiters_wake(machine, range);
    if (range->row.state == OPEN_IN_DOUBT)
        doubt_leave(machine, range);
    else
        machine->figures.entered_by_cause[cause] += opens_count(range);
    if (range->row.id == 0)
        range->row.id = machine->counters.next_doubt_id++;
    machine->is_counters_dirty = true;
    range->row.state = OPEN_IN_DOUBT;
    range->row.cause = cause;
    range->row.since_ms = since_ms;
    set_detail(range->row.detail, detail);
    doubt_enter(machine, range);
    save(machine, range);
}

record_mark opens_mark(const struct open_range *range, int64_t offset)
{
    return range->marks == NULL ? MARK_NONE : range->marks[offset - range->first];
}

void opens_set_mark(struct machine *machine, struct open_range *range, int64_t offset, record_mark mark)
{
    if (range->marks == NULL &&
        (range->marks = calloc((size_t)opens_count(range), sizeof range->marks[0])) == NULL) {
        rows_spoil(machine->rows);
        return;
    }
    range->marks[offset - range->first] = mark;
    save(machine, range);
}

/* ---- putting back ----------------------------------------------------------------------------------------------- */

void opens_restore(struct machine *machine, struct partition *partition, int64_t first,
                   const struct open_row *row, const record_mark marks[])
{
    struct open_range *range = range_new(machine, partition, first, row, marks);
    if (range == NULL)
        rows_spoil(machine->rows);
    else
        save(machine, range);
}

void opens_restore_context(struct machine *machine, struct open_range *range, int64_t offset,
                           struct slice context)
{
    struct key key = key_pair(TABLE_CONTEXTS, range->partition->row.pid, (uint64_t)offset);
    rows_put(machine->rows, key_slice(&key), context);
    if (range->row.has_contexts)
        return;
    range->row.has_contexts = true;
    save(machine, range);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static int by_pid(const void *a, const void *b)
{
    uint32_t pid_a = (*(struct partition *const *)a)->row.pid,
             pid_b = (*(struct partition *const *)b)->row.pid;
    return (pid_a > pid_b) - (pid_a < pid_b);
}

/* Ascending by pid.  A table with a cell for each pid that was ever given would be simpler, but the highest one comes
 * from the disk: damaged, it may ask for gigabytes. */
struct by_pid {
    struct partition **at; /* owned; NULL: no memory */
    size_t count;
};

static struct by_pid partitions_by_pid(struct machine *machine)
{
    struct by_pid all = { .at = calloc(machine->partition_count + 1, sizeof all.at[0]) };
    for (struct partition *partition = partitions_next(machine, NULL); all.at != NULL && partition != NULL;
         partition = partitions_next(machine, partition))
        all.at[all.count++] = partition;
    if (all.at != NULL)
        qsort(all.at, all.count, sizeof all.at[0], by_pid);
    return all;
}

/* NULL: nobody's. */
static struct partition *partition_of_pid(const struct by_pid *all, uint32_t pid)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->at[middle]->row.pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->count && all->at[low]->row.pid == pid ? all->at[low] : NULL;
}

static bool load_row(struct machine *machine, const struct by_pid *partitions, struct slice key,
                     struct slice value, uint32_t *ret_pid, uint64_t *ret_first)
{
    struct open_row row;
    record_mark marks[OPEN_RECORDS_MAX];
    bool has_marks;
    if (!key_read_pair(key, TABLE_OPEN, ret_pid, ret_first) ||
        !open_row_read(value, (int64_t)*ret_first, &row, &has_marks, marks))
        return false;
    struct partition *partition = partition_of_pid(partitions, *ret_pid);
    /* they come in order: one that ends at this offset or behind it would overlap */
    if (partition == NULL || opens_from(partition, (int64_t)*ret_first) != NULL)
        return false;
    return range_new(machine, partition, (int64_t)*ret_first, &row, has_marks ? marks : NULL) != NULL;
}

void opens_load(struct machine *machine)
{
    struct by_pid partitions = partitions_by_pid(machine);
    struct key from = { .bytes = { TABLE_OPEN }, .byte_count = 1 };
    struct slice key, value;
    uint32_t pid;
    uint64_t first;
    if (partitions.at == NULL)
        rows_spoil(machine->rows);
    while (rows_seek(machine->rows, key_slice(&from), &key, &value) && key_is_of(key, TABLE_OPEN)) {
        if (!load_row(machine, &partitions, key, value, &pid, &first))
            rows_spoil(machine->rows);
        else
            from = key_pair(TABLE_OPEN, pid, first + 1);
    }
    free(partitions.at);
}

void opens_forget(struct machine *machine, struct partition *partition)
{
    for (size_t i = 0; i < partition->opens.count; i++) {
        struct open_range *range = partition->opens.at[i];
        waiters_wake(machine, range);
        if (range->row.state == OPEN_IN_DOUBT)
            doubt_leave(machine, range);
        range_free(range);
    }
    free(partition->opens.at);
    partition->opens = (struct open_set){ 0 };
}
