/*
 * dump.c - a ledger as lines.
 */
#include "dump.h"

#include <stdlib.h>
#include "applied.h"
#include "machine_state.h"
#include "opens.h"
#include "pairs.h"
#include "partitions.h"

struct dumper {
    struct machine *machine; /* borrowed */
    store_line_fn *line;
    void *context; /* borrowed */
    struct dump_counts counts;
    struct line_out out;
    bool is_stopped;
};

static void finish_line(struct dumper *dumper)
{
    struct slice line = line_end(&dumper->out);
    dumper->is_stopped = dumper->is_stopped || !dumper->line(dumper->context, line);
}

static void dump_head(struct dumper *dumper, const struct store_row *row)
{
    const struct counters_row *counters = &dumper->machine->counters;
    struct line_out *out = &dumper->out;
    line_begin(out, "ledger");
    line_put_number(out, "version", DUMP_VERSION);
    line_put_text(out, "id", slice_of_text(row->id));
    line_put_number(out, "created_ms", row->created_ms);
    line_put_number(out, "boots", row->boot_count);
    line_put_text(out, "scope", slice_of_text(row->scope));
    line_put_number(out, "next_doubt", counters->next_doubt_id);
    line_put_number(out, "next_event", counters->next_event_id);
    line_put_number(out, "next_conflict", counters->next_conflict_id);
    line_put_number(out, "next_replay", counters->next_replay_id);
    finish_line(dumper);
}

/* ---- one partition ---------------------------------------------------------------------------------------------- */

static void dump_partition_line(struct dumper *dumper, const struct partition *partition)
{
    const struct part_row *row = &partition->row;
    struct line_out *out = &dumper->out;
    line_begin(out, "partition");
    line_put_text(out, "topic", slice_of(partition->topic, partition->topic_bytes));
    line_put_number(out, "partition", (uint64_t)partition->number);
    line_put_number(out, "generation", row->generation);
    line_put_signed(out, "seen_first", row->seen_first);
    line_put_number(out, "folded_to", row->folded_to);
    line_put_number(out, "swept_to", row->swept_to);
    line_put_number(out, "last_ms", row->last_ms);
    finish_line(dumper);
    dumper->counts.partitions++;
    dumper->counts.applied += row->applied_count;
}

static void dump_interval(struct dumper *dumper, int64_t first, int64_t last, uint64_t gap_count)
{
    line_begin(&dumper->out, gap_count == 0 ? "applied" : "folded");
    line_put_signed(&dumper->out, "first", first);
    line_put_signed(&dumper->out, "last", last);
    if (gap_count > 0)
        line_put_number(&dumper->out, "gaps", gap_count);
    finish_line(dumper);
    dumper->counts.intervals++;
}

/* Exact neighbours become one line, however they are kept; folded ground stays as it is. */
static void dump_applied(struct dumper *dumper, const struct partition *partition)
{
    int64_t at = 0, first, last = -1, run_first = -1;
    while (!dumper->is_stopped && applied_next(dumper->machine, partition, at, INT64_MAX, &first)) {
        struct applied_piece piece = applied_piece_at(dumper->machine, partition, first, INT64_MAX);
        bool is_more = run_first >= 0 && !piece.is_folded && first == last + 1;
        if (run_first >= 0 && !is_more)
            dump_interval(dumper, run_first, last, 0);
        run_first = is_more ? run_first : piece.is_folded ? -1 : first;
        last = piece.last;
        if (piece.is_folded)
            dump_interval(dumper, first, piece.last, piece.gap_count);
        if (last == INT64_MAX)
            break;
        at = last + 1;
    }
    if (run_first >= 0)
        dump_interval(dumper, run_first, last, 0);
}

static void dump_contexts(struct dumper *dumper, const struct open_range *range)
{
    struct slice value;
    uint64_t offset, at = (uint64_t)range->first, last = (uint64_t)range->row.last;
    uint32_t pid = range->partition->row.pid;
    for (; range->row.has_contexts &&
           pairs_next(dumper->machine->rows, TABLE_CONTEXTS, pid, at, &offset, &value) && offset <= last;
         at = offset + 1) {
        if (value.byte_count > RECORD_CONTEXT_BYTES_MAX) {
            rows_spoil(dumper->machine->rows);
            return;
        }
        line_begin(&dumper->out, "context");
        line_put_number(&dumper->out, "offset", offset);
        line_put_hex(&dumper->out, "hex", value);
        finish_line(dumper);
        dumper->counts.contexts++;
    }
}

static void put_open_marks(struct line_out *out, const struct open_range *range)
{
    char bytes[4 * OPEN_RECORDS_MAX];
    size_t count = (size_t)opens_count(range);
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < 4; byte++)
            bytes[4 * i + byte] = (char)(range->marks[i] >> (24 - 8 * byte));
    line_put_hex(out, "marks", slice_of(bytes, 4 * count));
}

static void dump_open(struct dumper *dumper, const struct open_range *range)
{
    const struct open_row *row = &range->row;
    struct line_out *out = &dumper->out;
    line_begin(out, "open");
    line_put_signed(out, "first", range->first);
    line_put_signed(out, "last", row->last);
    line_put_bool(out, "in_doubt", row->state == OPEN_IN_DOUBT);
    line_put_text(out, "cause", slice_of_text(doubt_cause_name(row->cause)));
    line_put_number(out, "claim", row->claim_id);
    line_put_number(out, "id", row->id);
    line_put_number(out, "boot", row->boot);
    line_put_number(out, "since_ms", row->since_ms);
    line_put_number(out, "attempts", row->attempts);
    line_put_number(out, "replay", row->replay_id);
    line_put_text(out, "detail", slice_of_text(row->detail));
    if (range->marks != NULL)
        put_open_marks(out, range);
    finish_line(dumper);
    dumper->counts.opens++;
    dump_contexts(dumper, range);
}

static void dump_marks(struct dumper *dumper, const struct partition *partition)
{
    struct slice value;
    uint64_t number;
    struct rows *rows = dumper->machine->rows;
    for (uint64_t at = 0;
         !dumper->is_stopped && pairs_next(rows, TABLE_MARKS, partition->row.pid, at, &number, &value);
         at = number + 1) {
        if (!marks_is_block(value)) {
            rows_spoil(rows);
            return;
        }
        line_begin(&dumper->out, "marks");
        line_put_number(&dumper->out, "block", number);
        line_put_hex(&dumper->out, "hex", value);
        finish_line(dumper);
        dumper->counts.marks++;
    }
}

static void dump_samples(struct dumper *dumper, const struct partition *partition)
{
    struct slice value;
    uint64_t number;
    int64_t offset;
    record_mark mark;
    struct rows *rows = dumper->machine->rows;
    for (uint64_t at = 0;
         !dumper->is_stopped && pairs_next(rows, TABLE_SAMPLES, partition->row.pid, at, &number, &value);
         at = number + 1) {
        if (!sample_read(value, &offset, &mark) || (uint64_t)offset / CHUNK_OFFSETS != number) {
            rows_spoil(rows);
            return;
        }
        line_begin(&dumper->out, "sample");
        line_put_signed(&dumper->out, "offset", offset);
        line_put_number(&dumper->out, "mark", mark);
        finish_line(dumper);
        dumper->counts.samples++;
    }
}

static void dump_conflict(struct dumper *dumper, const struct conflict_row *row)
{
    struct line_out *out = &dumper->out;
    line_begin(out, "conflict");
    line_put_number(out, "id", row->id);
    line_put_signed(out, "offset", row->offset);
    line_put_number(out, "stored", row->stored);
    line_put_number(out, "seen", row->seen);
    line_put_number(out, "since_ms", row->since_ms);
    line_put_number(out, "count", row->count);
    line_put_bool(out, "first_sight", row->is_first_sight);
    line_put_bool(out, "tail", row->is_tail);
    finish_line(dumper);
    dumper->counts.conflicts++;
}

static void dump_partition(struct dumper *dumper, const struct partition *partition)
{
    dump_partition_line(dumper, partition);
    dump_applied(dumper, partition);
    for (size_t i = 0; i < partition->opens.count && !dumper->is_stopped; i++)
        dump_open(dumper, partition->opens.at[i]);
    dump_marks(dumper, partition);
    dump_samples(dumper, partition);
    if (partition->conflict != NULL)
        dump_conflict(dumper, partition->conflict);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static void dump_end(struct dumper *dumper)
{
    const struct dump_counts *counts = &dumper->counts;
    struct line_out *out = &dumper->out;
    line_begin(out, "end");
    line_put_number(out, "partitions", counts->partitions);
    line_put_number(out, "intervals", counts->intervals);
    line_put_number(out, "applied", counts->applied);
    line_put_number(out, "opens", counts->opens);
    line_put_number(out, "contexts", counts->contexts);
    line_put_number(out, "marks", counts->marks);
    line_put_number(out, "samples", counts->samples);
    line_put_number(out, "conflicts", counts->conflicts);
    finish_line(dumper);
}

static void dump_partitions(struct dumper *dumper)
{
    struct machine *machine = dumper->machine;
    struct partition *const *all = partitions_by_name(machine);
    for (size_t i = 0; i < machine->partition_count && !dumper->is_stopped; i++)
        if (rows_status(machine->rows) == ROWS_OK)
            dump_partition(dumper, all[i]);
}

bool dump(struct machine *machine, const struct store_row *row, store_line_fn *line, void *context)
{
    struct dumper *dumper = calloc(1, sizeof *dumper);
    if (dumper == NULL)
        return false;
    *dumper = (struct dumper){ .machine = machine, .line = line, .context = context };
    dump_head(dumper, row);
    dump_partitions(dumper);
    bool is_whole = !dumper->is_stopped && rows_status(machine->rows) == ROWS_OK;
    if (is_whole)
        dump_end(dumper);
    is_whole = is_whole && !dumper->is_stopped;
    free(dumper);
    return is_whole;
}
