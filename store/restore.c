/*
 * restore.c - lines as a ledger.
 *
 * Every line is checked against what came before it, because what comes in here decides what will be sent: intervals
 * ascend and do not overlap, an open record is not applied (unless it was being sent again), a context belongs to an
 * open record, and the counts of the last line are those that were met.
 */
#include <assert.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "dump.h"
#include "machine_state.h"
#include "opens.h"
#include "partitions.h"

struct restore {
    struct machine *machine;     /* borrowed */
    const char *scope;           /* borrowed */
    struct partition *partition; /* borrowed: whose lines these are; NULL: none yet */
    int64_t seen_first;          /* of that partition, as announced */
    int64_t applied_to;          /* the end of the last interval; -1: none */
    struct dump_counts counts;
    bool has_head, has_end;
    struct line_in in;
    uint8_t bytes[4 * OPEN_RECORDS_MAX];
};

struct restore *restore_new(struct machine *machine, const char *scope)
{
    struct restore *restore = calloc(1, sizeof *restore);
    if (restore == NULL)
        return NULL;
    restore->machine = machine;
    restore->scope = scope;
    return restore;
}

void restore_free(struct restore *restore)
{
    free(restore);
}

const char *restore_why(const struct restore *restore)
{
    return restore->in.why;
}

bool restore_is_whole(const struct restore *restore)
{
    return restore->has_end;
}

/* ---- the first line --------------------------------------------------------------------------------------------- */

static void read_head(struct restore *restore)
{
    struct line_in *in = &restore->in;
    struct machine *machine = restore->machine;
    struct store_row row = { .format = FORMAT_VERSION };
    if (line_number(in, "version", 0, UINT64_MAX) != DUMP_VERSION)
        line_refuse(in, "these lines have another version than this program reads");
    line_text(in, "id", row.id, sizeof row.id);
    row.created_ms = line_number(in, "created_ms", 0, UINT64_MAX);
    row.boot_count = line_number(in, "boots", 0, UINT64_MAX >> 24);
    line_text(in, "scope", row.scope, sizeof row.scope);
    machine->counters.next_doubt_id = line_number(in, "next_doubt", 1, INT64_MAX);
    machine->counters.next_event_id = line_number(in, "next_event", 1, INT64_MAX);
    machine->counters.next_conflict_id = line_number(in, "next_conflict", 1, INT64_MAX);
    machine->counters.next_replay_id = line_number(in, "next_replay", 1, INT64_MAX);
    if (strlen(row.id) != STORE_ID_CHARS)
        line_refuse(in, "\"id\" does not have 32 characters");
    if (strcmp(row.scope, restore->scope) != 0)
        line_refuse(in, "these lines belong to another scope than the settings say");
    struct key key = key_meta(META_STORE);
    struct value value;
    store_row_write(&row, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    machine->is_counters_dirty = true;
    restore->has_head = true;
}

/* ---- partitions ------------------------------------------------------------------------------------------------- */

/* The partition's lines are over: what it announced must be true. */
static void close_partition(struct restore *restore)
{
    struct partition *partition = restore->partition;
    if (partition == NULL)
        return;
    if ((restore->seen_first < 0) != (partition->row.highest < 0) ||
        restore->seen_first > partition->row.highest)
        line_refuse(&restore->in, "\"seen_first\" of the partition before does not fit its intervals");
    if (partition->row.highest >= 0 && partition->row.applied_count == 0)
        line_refuse(&restore->in, "the partition before has folded ground only");
    partition->row.seen_first = restore->seen_first;
    partitions_touch(restore->machine, partition);
    restore->counts.applied += partition->row.applied_count;
    restore->partition = NULL;
}

static void read_partition(struct restore *restore)
{
    struct line_in *in = &restore->in;
    char topic[TOPIC_BYTES_MAX + 1];
    close_partition(restore);
    line_text(in, "topic", topic, sizeof topic);
    int32_t number = (int32_t)line_number(in, "partition", 0, INT32_MAX);
    uint32_t generation = (uint32_t)line_number(in, "generation", 0, UINT32_MAX);
    restore->seen_first = line_offset(in, "seen_first", -1);
    uint64_t folded_to = line_number(in, "folded_to", 0, (uint64_t)INT64_MAX / CHUNK_OFFSETS + 1);
    uint64_t swept_to = line_number(in, "swept_to", 0, (uint64_t)INT64_MAX / MARK_BLOCK_OFFSETS + 1);
    uint64_t last_ms = line_number(in, "last_ms", 0, UINT64_MAX);
    if (!topic_is_legal(slice_of_text(topic)))
        line_refuse(in, "\"topic\" is no name of a topic");
    else if (partitions_find(restore->machine, slice_of_text(topic), number) != NULL)
        line_refuse(in, "the same partition twice");
    if (in->is_bad)
        return;
    restore->partition = partitions_add(restore->machine, slice_of_text(topic), number);
    if (restore->partition == NULL)
        return;
    restore->partition->row.generation = generation;
    restore->partition->row.folded_to = folded_to;
    restore->partition->row.swept_to = swept_to;
    restore->partition->row.last_ms = last_ms;
    restore->applied_to = -1;
    restore->counts.partitions++;
}

/* GAP_COUNT is 0 for an exact interval. */
static void read_interval(struct restore *restore, bool is_folded)
{
    struct line_in *in = &restore->in;
    int64_t first = line_offset(in, "first", 0), last = line_offset(in, "last", 0);
    uint64_t length = (uint64_t)(last - first) + 1, gap_count = 0;
    if (last < first || first <= restore->applied_to || restore->partition->opens.count > 0)
        line_refuse(in, "this interval does not ascend");
    else if (is_folded)
        gap_count = line_number(in, "gaps", 1, length);
    if (is_folded && last % CHUNK_OFFSETS != CHUNK_OFFSETS - 1)
        line_refuse(in, "folded ground that ends in the middle of a chunk");
    if (in->is_bad)
        return;
    applied_restore(restore->machine, restore->partition, first, last, gap_count);
    restore->applied_to = last;
    restore->counts.intervals++;
}

/* ---- open records ----------------------------------------------------------------------------------------------- */

static enum doubt_cause read_cause(struct line_in *in)
{
    char name[16];
    line_text(in, "cause", name, sizeof name);
    for (int cause = 0; cause < DOUBT_COUNT; cause++)
        if (strcmp(name, doubt_cause_name((enum doubt_cause)cause)) == 0)
            return (enum doubt_cause)cause;
    line_refuse(in, "\"cause\" is none that is known");
    return DOUBT_CRASH;
}

static struct open_row read_open_row(struct restore *restore, int64_t *ret_first)
{
    struct line_in *in = &restore->in;
    const struct counters_row *counters = &restore->machine->counters;
    *ret_first = line_offset(in, "first", 0);
    struct open_row row = { .last = line_offset(in, "last", 0) };
    row.state = line_bool(in, "in_doubt") ? OPEN_IN_DOUBT : OPEN_INTENT;
    row.cause = read_cause(in);
    row.claim_id = line_number(in, "claim", 0, UINT64_MAX);
    row.id = line_number(in, "id", row.state == OPEN_IN_DOUBT ? 1 : 0, counters->next_doubt_id - 1);
    row.boot = line_number(in, "boot", 0, UINT64_MAX);
    row.since_ms = line_number(in, "since_ms", 0, UINT64_MAX);
    row.attempts = (uint32_t)line_number(in, "attempts", 0, UINT32_MAX);
    row.replay_id = line_number(in, "replay", 0, counters->next_replay_id - 1);
    line_text(in, "detail", row.detail, sizeof row.detail);
    return row;
}

/* False: none, or not one for each. */
static bool read_open_marks(struct restore *restore, size_t count, record_mark marks[])
{
    if (!line_has(&restore->in, "marks"))
        return false;
    if (line_hex(&restore->in, "marks", restore->bytes, sizeof restore->bytes) != 4 * count) {
        line_refuse(&restore->in, "\"marks\" does not have one for each record");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = &restore->bytes[4 * i];
        marks[i] = (record_mark)at[0] << 24 | (record_mark)at[1] << 16 | (record_mark)at[2] << 8 | at[3];
    }
    return true;
}

static void read_open(struct restore *restore)
{
    int64_t first, met;
    record_mark marks[OPEN_RECORDS_MAX];
    struct line_in *in = &restore->in;
    struct open_row row = read_open_row(restore, &first);
    if (row.last < first || row.last - first >= OPEN_RECORDS_MAX ||
        opens_from(restore->partition, first) != NULL) {
        line_refuse(in, "this open range does not ascend, or is too long");
        return;
    }
    bool has_marks = read_open_marks(restore, (size_t)(row.last - first) + 1, marks);
    if (row.replay_id == 0 && applied_next(restore->machine, restore->partition, first, row.last, &met))
        line_refuse(in, "a record is both applied and open");
    if (in->is_bad)
        return;
    opens_restore(restore->machine, restore->partition, first, &row, has_marks ? marks : NULL);
    restore->counts.opens++;
}

static void read_context(struct restore *restore)
{
    struct line_in *in = &restore->in;
    int64_t offset = line_offset(in, "offset", 0);
    size_t byte_count = line_hex(in, "hex", restore->bytes, RECORD_CONTEXT_BYTES_MAX);
    struct open_range *range = opens_from(restore->partition, offset);
    if (range == NULL || range->first > offset)
        line_refuse(in, "a context of a record that is not open");
    if (in->is_bad)
        return;
    opens_restore_context(restore->machine, range, offset,
                          slice_of((const char *)restore->bytes, byte_count));
    restore->counts.contexts++;
}

/* ---- marks and conflicts ---------------------------------------------------------------------------------------- */

static void read_marks(struct restore *restore)
{
    struct line_in *in = &restore->in;
    uint64_t block = line_number(in, "block", 0, (uint64_t)INT64_MAX / MARK_BLOCK_OFFSETS);
    if (line_hex(in, "hex", restore->bytes, MARK_BLOCK_BYTES) != MARK_BLOCK_BYTES)
        line_refuse(in, "\"hex\" is no block of marks");
    struct key key = key_pair(TABLE_MARKS, restore->partition->row.pid, block);
    rows_put(restore->machine->rows, key_slice(&key),
             slice_of((const char *)restore->bytes, MARK_BLOCK_BYTES));
    restore->counts.marks++;
}

static void read_sample(struct restore *restore)
{
    struct line_in *in = &restore->in;
    int64_t offset = line_offset(in, "offset", 0);
    record_mark mark = (record_mark)line_number(in, "mark", 0, UINT32_MAX);
    struct key key = key_pair(TABLE_SAMPLES, restore->partition->row.pid, (uint64_t)offset / CHUNK_OFFSETS);
    struct value value;
    sample_write(offset, mark, &value);
    rows_put(restore->machine->rows, key_slice(&key), value_slice(&value));
    restore->counts.samples++;
}

static void read_conflict(struct restore *restore)
{
    struct line_in *in = &restore->in;
    struct partition *partition = restore->partition;
    struct conflict_row row = { .partition = partition->number };
    row.id = line_number(in, "id", 1, restore->machine->counters.next_conflict_id - 1);
    row.offset = line_offset(in, "offset", 0);
    row.stored = (record_mark)line_number(in, "stored", 0, UINT32_MAX);
    row.seen = (record_mark)line_number(in, "seen", 0, UINT32_MAX);
    row.since_ms = line_number(in, "since_ms", 0, UINT64_MAX);
    row.count = line_number(in, "count", 0, UINT64_MAX);
    row.is_first_sight = line_bool(in, "first_sight");
    row.is_tail = line_bool(in, "tail");
    memcpy(row.topic, partition->topic, partition->topic_bytes + 1);
    if (partition->conflict != NULL || (row.is_first_sight && row.is_tail))
        line_refuse(in, "two conflicts of one partition, or one of two kinds");
    if (in->is_bad)
        return;
    audit_restore_conflict(restore->machine, partition, &row);
    restore->counts.conflicts++;
}

/* ---- the last line, and each ------------------------------------------------------------------------------------ */

static void demand(struct restore *restore, const char *name, uint64_t count)
{
    if (line_number(&restore->in, name, 0, UINT64_MAX) != count)
        line_refuse(&restore->in,
                    "the counts are not those of the lines before: some are missing, or too many");
}

static void read_end(struct restore *restore)
{
    const struct dump_counts *counts = &restore->counts;
    close_partition(restore);
    demand(restore, "partitions", counts->partitions);
    demand(restore, "intervals", counts->intervals);
    demand(restore, "applied", counts->applied);
    demand(restore, "opens", counts->opens);
    demand(restore, "contexts", counts->contexts);
    demand(restore, "marks", counts->marks);
    demand(restore, "samples", counts->samples);
    demand(restore, "conflicts", counts->conflicts);
    restore->has_end = true;
}

/* What stands within a partition.  False: no such kind. */
static bool read_within(struct restore *restore, const char *kind)
{
    static const struct {
        const char *kind;
        void (*read)(struct restore *restore);
    } ways[] = { { "open", read_open },
                 { "context", read_context },
                 { "marks", read_marks },
                 { "sample", read_sample },
                 { "conflict", read_conflict } };
    if (strcmp(kind, "applied") == 0 || strcmp(kind, "folded") == 0) {
        read_interval(restore, kind[0] == 'f');
        return true;
    }
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (strcmp(kind, ways[i].kind) == 0) {
            ways[i].read(restore);
            return true;
        }
    }
    return false;
}

bool restore_line(struct restore *restore, struct slice line)
{
    char kind[16];
    struct line_in *in = &restore->in;
    if (!line_read(in, line))
        return false;
    line_text(in, "kind", kind, sizeof kind);
    bool is_head = strcmp(kind, "ledger") == 0, is_partition = strcmp(kind, "partition") == 0;
    bool is_end = strcmp(kind, "end") == 0;
    if (restore->has_end || is_head == restore->has_head)
        line_refuse(in, restore->has_end ? "something behind the end"
                        : is_head        ? "a second beginning"
                                         : "no beginning");
    else if (is_head)
        read_head(restore);
    else if (is_partition)
        read_partition(restore);
    else if (is_end)
        read_end(restore);
    else if (restore->partition == NULL || !read_within(restore, kind))
        line_refuse(in, "a line of an unknown kind, or before any partition");
    return line_is_good(in);
}
