/*
 * verify.c - does a ledger hold together?
 *
 * First every row by itself: is it one of a known table, can it be read, does its pid belong to anybody?  Then each
 * applied set against what its partition says of it, and each open record against the applied ones.
 */
#include "verify.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "machine_state.h"
#include "opens.h"
#include "pairs.h"
#include "partitions.h"

enum { FINDINGS_MAX = 1000, TABLE_COUNT = TABLE_PAST + 1 };

struct verifier {
    struct machine *machine; /* borrowed */
    store_line_fn *line;
    void *context;  /* borrowed */
    uint32_t *pids; /* owned, ascending: those that somebody has */
    size_t pid_count, pid_room;
    uint64_t finding_count;
    uint64_t row_counts[TABLE_COUNT], row_bytes[TABLE_COUNT];
};

__attribute__((format(printf, 2, 3))) static void report(struct verifier *verifier, const char *format, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (verifier->finding_count++ < FINDINGS_MAX)
        (void)verifier->line(verifier->context, slice_of_text(words));
}

static const char *table_name(unsigned table)
{
    static const char *const names[TABLE_COUNT] = {
        [TABLE_META] = "meta",       [TABLE_PART] = "partitions",     [TABLE_RUNS] = "runs",
        [TABLE_FULL] = "full",       [TABLE_OPEN] = "open",           [TABLE_MARKS] = "marks",
        [TABLE_SAMPLES] = "samples", [TABLE_REPLIES] = "replies",     [TABLE_RING] = "ring",
        [TABLE_EVENTS] = "events",   [TABLE_CONFLICTS] = "conflicts", [TABLE_CONTEXTS] = "contexts",
        [TABLE_REPLAYS] = "replays", [TABLE_PAST] = "past",
    };
    assert(table < TABLE_COUNT && names[table] != NULL);
    return names[table];
}

/* ---- whose rows ------------------------------------------------------------------------------------------------- */

/* False: no memory. */
static bool know(struct verifier *verifier, uint32_t pid)
{
    if (verifier->pid_count == verifier->pid_room) {
        size_t room = 2 * verifier->pid_room + 16;
        uint32_t *pids = realloc(verifier->pids, room * sizeof pids[0]);
        if (pids == NULL)
            return false;
        verifier->pids = pids;
        verifier->pid_room = room;
    }
    verifier->pids[verifier->pid_count++] = pid;
    return true;
}

static int ascending(const void *a, const void *b)
{
    uint32_t pid_a = *(const uint32_t *)a, pid_b = *(const uint32_t *)b;
    return (pid_a > pid_b) - (pid_a < pid_b);
}

static bool is_known(const struct verifier *verifier, uint32_t pid)
{
    size_t low = 0, high = verifier->pid_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (verifier->pids[middle] < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < verifier->pid_count && verifier->pids[low] == pid;
}

static bool know_past(struct verifier *verifier)
{
    struct rows *rows = verifier->machine->rows;
    struct slice key, value;
    uint32_t pid = 0;
    uint64_t zero;
    struct key from = key_pair(TABLE_PAST, 0, 0);
    while (rows_seek(rows, key_slice(&from), &key, &value) && key_is_of(key, TABLE_PAST) &&
           key_read_pair(key, TABLE_PAST, &pid, &zero)) {
        if (!know(verifier, pid))
            return false;
        from = key_pair(TABLE_PAST, pid, zero + 1);
    }
    return true;
}

/* False: no memory. */
static bool know_all(struct verifier *verifier)
{
    struct machine *machine = verifier->machine;
    bool is_done = true;
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition))
        is_done = is_done && know(verifier, partition->row.pid);
    for (const struct replay *replay = machine->replays; replay != NULL; replay = replay->next)
        is_done = is_done && know(verifier, replay->sent.row.pid);
    is_done = is_done && know_past(verifier);
    if (is_done && verifier->pid_count > 0)
        qsort(verifier->pids, verifier->pid_count, sizeof verifier->pids[0], ascending);
    return is_done;
}

/* ---- rows by themselves ----------------------------------------------------------------------------------------- */

/* What was read when the machine was loaded is good. */
static bool is_value_good(enum table table, uint64_t number, struct slice value)
{
    struct chunk chunk;
    struct full_row full;
    record_mark mark;
    int64_t offset;
    uint32_t pid;
    struct reply_row reply;
    struct past_row past;
    struct event_row event;
    switch ((int)table) {
    case TABLE_RUNS:
        return chunk_read(value, &chunk) && number <= INT64_MAX / CHUNK_OFFSETS;
    case TABLE_FULL:
        return full_row_read(value, number, &full);
    case TABLE_MARKS:
        return marks_is_block(value);
    case TABLE_SAMPLES:
        return sample_read(value, &offset, &mark) && (uint64_t)offset / CHUNK_OFFSETS == number;
    case TABLE_REPLIES:
        return reply_row_read(value, &reply);
    case TABLE_RING:
        return ring_read(value, &pid, &offset);
    case TABLE_EVENTS:
        return event_row_read(number, value, &event);
    case TABLE_CONTEXTS:
        return value.byte_count <= RECORD_CONTEXT_BYTES_MAX;
    case TABLE_PAST:
        return past_row_read(value, &past);
    default:
        return true;
    }
}

/* A row whose key is a pid and a number. */
static void check_pair(struct verifier *verifier, enum table table, struct slice key, struct slice value)
{
    uint32_t pid;
    uint64_t number;
    if (!key_read_pair(key, table, &pid, &number) || !is_value_good(table, number, value))
        report(verifier, "a row of %s cannot be read", table_name(table));
    else if (pid >= verifier->machine->counters.next_pid || !is_known(verifier, pid))
        report(verifier, "a row of %s belongs to history %u, which nobody has", table_name(table), pid);
}

/* A row whose key is a number. */
static void check_number(struct verifier *verifier, enum table table, struct slice key, struct slice value)
{
    uint64_t number;
    if (!key_read_number(key, table, &number) || !is_value_good(table, number, value))
        report(verifier, "a row of %s cannot be read", table_name(table));
}

static void check_row(struct verifier *verifier, struct slice key, struct slice value)
{
    unsigned table = (uint8_t)key.at[0]; /* no key is empty: they are looked for from a zero on */
    if (table == 0 || table >= TABLE_COUNT) {
        report(verifier, "a row of table %u, which does not exist", table);
        return;
    }
    verifier->row_counts[table]++;
    verifier->row_bytes[table] += key.byte_count + value.byte_count;
    bool is_number =
        table == TABLE_RING || table == TABLE_EVENTS || table == TABLE_CONFLICTS || table == TABLE_REPLAYS;
    if (is_number)
        check_number(verifier, (enum table)table, key, value);
    else if (table != TABLE_META && table != TABLE_PART) /* these were read when it was loaded */
        check_pair(verifier, (enum table)table, key, value);
}

static void check_rows(struct verifier *verifier)
{
    uint8_t from[512] = { 0 };
    size_t from_bytes = 0;
    struct slice key, value;
    while (rows_seek(verifier->machine->rows, slice_of((const char *)from, from_bytes + 1), &key, &value)) {
        check_row(verifier, key, value);
        from_bytes = key.byte_count < sizeof from ? key.byte_count : sizeof from - 1;
        memcpy(from, key.at, from_bytes);
        from[from_bytes] = 0; /* the least key behind this one */
    }
}

/* ---- rows among each other -------------------------------------------------------------------------------------- */

struct tally {
    uint64_t applied_count, interval_count;
    int64_t lowest, highest;
};

static void tally_chunk(struct tally *tally, uint64_t number, const struct chunk *chunk)
{
    uint16_t last;
    tally->applied_count += chunk->applied_count;
    tally->interval_count += chunk->run_count;
    for (uint32_t at = 0; at < CHUNK_OFFSETS; at = last + 1u) {
        if (!chunk_stretch(chunk, (uint16_t)at, &last))
            continue;
        int64_t first = (int64_t)(number * CHUNK_OFFSETS + at),
                end = (int64_t)(number * CHUNK_OFFSETS + last);
        tally->lowest = tally->lowest < 0 ? first : tally->lowest; /* they come in order */
        tally->highest = end;
    }
}

static void tally_full(struct tally *tally, const struct full_row *row)
{
    int64_t end = (int64_t)(row->last * CHUNK_OFFSETS + (CHUNK_OFFSETS - 1));
    tally->applied_count += (uint64_t)(end - row->from) + 1 - row->gap_count;
    tally->interval_count++;
    tally->lowest = tally->lowest < 0 || row->from < tally->lowest ? row->from : tally->lowest;
    tally->highest = end > tally->highest ? end : tally->highest;
}

static struct tally tally_set(struct verifier *verifier, uint32_t pid)
{
    struct rows *rows = verifier->machine->rows;
    struct tally tally = { 0, 0, -1, -1 };
    struct slice value;
    uint64_t number;
    struct chunk chunk;
    struct full_row row;
    for (uint64_t at = 0; pairs_next(rows, TABLE_RUNS, pid, at, &number, &value); at = number + 1)
        if (number <= (uint64_t)INT64_MAX / CHUNK_OFFSETS && chunk_read(value, &chunk))
            tally_chunk(&tally, number, &chunk);
    for (uint64_t at = 0; pairs_next(rows, TABLE_FULL, pid, at, &number, &value); at = number + 1)
        if (full_row_read(value, number, &row))
            tally_full(&tally, &row);
    return tally;
}

static void check_set(struct verifier *verifier, const char *topic, int32_t number,
                      const struct part_row *row)
{
    struct tally tally = tally_set(verifier, row->pid);
    if (tally.applied_count != row->applied_count)
        report(verifier, "%s/%d: %llu records are applied, and %llu are said to be", topic, number,
               (unsigned long long)tally.applied_count, (unsigned long long)row->applied_count);
    if (tally.interval_count != row->interval_count)
        report(verifier, "%s/%d: there are %llu intervals, and %llu are said to be", topic, number,
               (unsigned long long)tally.interval_count, (unsigned long long)row->interval_count);
    if (tally.lowest != row->lowest || tally.highest != row->highest)
        report(verifier, "%s/%d: applied from %lld to %lld, and said to be from %lld to %lld", topic, number,
               (long long)tally.lowest, (long long)tally.highest, (long long)row->lowest,
               (long long)row->highest);
}

static void check_opens(struct verifier *verifier, const struct partition *partition)
{
    int64_t met;
    for (size_t i = 0; i < partition->opens.count; i++) {
        const struct open_range *range = partition->opens.at[i];
        const struct counters_row *counters = &verifier->machine->counters;
        if (range->row.replay_id == 0 &&
            applied_next(verifier->machine, partition, range->first, range->row.last, &met))
            report(verifier, "%s/%d: offset %lld is both applied and open", partition->topic,
                   partition->number, (long long)met);
        if (range->row.id >= counters->next_doubt_id ||
            (range->row.state == OPEN_IN_DOUBT && range->row.id == 0))
            report(verifier, "%s/%d: the doubt at offset %lld has a number that was never given",
                   partition->topic, partition->number, (long long)range->first);
    }
}

static void check_partition(struct verifier *verifier, const struct partition *partition)
{
    check_set(verifier, partition->topic, partition->number, &partition->row);
    check_opens(verifier, partition);
    if ((partition->conflict == NULL) != (partition->row.conflict_id == 0))
        report(verifier, "%s/%d: waits for a decision that is not there", partition->topic,
               partition->number);
}

uint64_t verify(struct machine *machine, store_line_fn *line, void *context)
{
    struct verifier verifier = { .machine = machine, .line = line, .context = context };
    if (!know_all(&verifier)) {
        report(&verifier, "no memory");
        free(verifier.pids);
        return verifier.finding_count;
    }
    check_rows(&verifier);
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition))
        check_partition(&verifier, partition);
    for (const struct replay *replay = machine->replays; replay != NULL; replay = replay->next)
        check_set(&verifier, replay->row.topic, replay->row.partition, &replay->sent.row);
    if (rows_status(machine->rows) != ROWS_OK)
        report(&verifier, "the file cannot be read to its end");
    free(verifier.pids);
    return verifier.finding_count;
}

/* ---- figures ---------------------------------------------------------------------------------------------------- */

static bool say_nothing(void *context, struct slice line)
{
    (void)context;
    (void)line;
    return true;
}

static void say(store_line_fn *line, void *context, const char *name, uint64_t number)
{
    char words[96];
    snprintf(words, sizeof words, "%s %llu", name, (unsigned long long)number);
    (void)line(context, slice_of_text(words));
}

static void say_text(store_line_fn *line, void *context, const char *name, const char *text)
{
    char words[320];
    snprintf(words, sizeof words, "%s %.300s", name, text);
    (void)line(context, slice_of_text(words));
}

static void say_tables(const struct verifier *verifier, store_line_fn *line, void *context)
{
    char name[48];
    for (unsigned table = TABLE_META; table < TABLE_COUNT; table++) {
        snprintf(name, sizeof name, "rows_%s", table_name(table));
        say(line, context, name, verifier->row_counts[table]);
        snprintf(name, sizeof name, "bytes_%s", table_name(table));
        say(line, context, name, verifier->row_bytes[table]);
    }
}

void verify_stat(struct machine *machine, const struct store_row *row, store_line_fn *line, void *context)
{
    struct verifier verifier = { .machine = machine, .line = say_nothing };
    struct machine_figures figures;
    uint64_t applied_count = 0, in_flight_count = 0;
    check_rows(&verifier); /* findings are another command's */
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition)) {
        applied_count += partition->row.applied_count;
        for (size_t i = 0; i < partition->opens.count; i++)
            if (partition->opens.at[i]->row.state == OPEN_INTENT)
                in_flight_count += opens_count(partition->opens.at[i]);
    }
    machine_figures_get(machine, &figures);
    say(line, context, "format", row->format);
    say_text(line, context, "id", row->id);
    say_text(line, context, "scope", row->scope);
    if (row->target[0] != '\0')
        say_text(line, context, "target", row->target);
    say(line, context, "created_ms", row->created_ms);
    say(line, context, "boots", row->boot_count);
    say(line, context, "partitions", machine->partition_count);
    say(line, context, "applied_records", applied_count);
    say(line, context, "intervals", figures.interval_count);
    say(line, context, "in_doubt_records", figures.in_doubt_records);
    say(line, context, "in_flight_records", in_flight_count);
    say(line, context, "conflicts", figures.conflict_open_count);
    say(line, context, "replay_windows", figures.replay_open_count);
    say_tables(&verifier, line, context);
}
