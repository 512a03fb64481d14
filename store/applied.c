/*
 * applied.c - which offsets of a partition are applied: cache of chunks, long intervals, folding.
 *
 * Folding bounds what a ragged partition costs: chunks wholly below the window become one FULL row with the count of
 * their gaps.  It only ever moves forward (folded_to): a chunk that comes to life below it is kept exactly, and
 * nothing below the lowest applied offset is ever folded, so that only offsets between known ones are taken on trust.
 *
 * Nor is anything behind a leap of more than the window: no partition is that ragged, so it was skipped, or the record
 * came under a wrong name.  What was skipped may be delivered after all, and the records that go on behind a stray one
 * must not be taken for its gaps, which would lose them all.
 */
#include "applied.h"

#include <assert.h>
#include "pairs.h"
#include "partitions.h"

enum { FOLD_ROWS_MAX = 64 /* per batch: the commit stays small however much there is to fold */ };

static int64_t chunk_first(uint64_t number)
{
    return (int64_t)(number * CHUNK_OFFSETS);
}

static int64_t chunk_last(uint64_t number)
{
    return (int64_t)(number * CHUNK_OFFSETS + (CHUNK_OFFSETS - 1));
}

/* ---- the cache of chunks ---------------------------------------------------------------------------------------- */

static void slot_flush(struct machine *machine, struct chunk_slot *slot)
{
    if (!slot->is_dirty)
        return;
    struct key key = key_pair(TABLE_RUNS, slot->pid, slot->number);
    if (slot->chunk.applied_count > 0) {
        uint8_t bytes[CHUNK_BYTES_MAX];
        size_t byte_count = chunk_write(&slot->chunk, bytes);
        rows_put(machine->rows, key_slice(&key), slice_of((const char *)bytes, byte_count));
    } else if (slot->is_stored) {
        rows_delete(machine->rows, key_slice(&key));
    }
    slot->is_stored = slot->chunk.applied_count > 0;
    slot->is_dirty = false;
}

/* A key of which the disk has turned a bit is not found, and its row would be forgotten.  It stands beside where it was
 * looked for, because the order of all keys is checked when the file is opened (pages.c): there its sum tells. */
static void neighbours_check(struct machine *machine, enum table table, uint32_t pid, uint64_t number)
{
    struct key key = key_pair(table, pid, number);
    struct slice found, value;
    bool is_there = rows_seek(machine->rows, key_slice(&key), &found, &value);
    is_there = rows_seek_back(machine->rows, key_slice(&key), &found, &value) || is_there;
    (void)is_there; /* reading them was enough: a wrong sum fails the transaction */
}

static void slot_load(struct machine *machine, struct chunk_slot *slot, uint32_t pid, uint64_t number)
{
    struct key key = key_pair(TABLE_RUNS, pid, number);
    struct slice value;
    slot->pid = pid;
    slot->number = number;
    slot->is_stored = rows_get(machine->rows, key_slice(&key), &value);
    if (slot->is_stored) {
        if (!chunk_read(value, &slot->chunk))
            rows_spoil(machine->rows);
        return;
    }
    chunk_init(&slot->chunk);
    neighbours_check(machine, TABLE_RUNS, pid, number);
    neighbours_check(machine, TABLE_FULL, pid, number);
}

/* Neighbours in one partition take neighbouring slots. */
static struct chunk_slot *slot_of(struct machine *machine, uint32_t pid, uint64_t number)
{
    struct chunk_slot *slot = &machine->slots[(pid * 37 + number) % CHUNK_SLOTS];
    if (slot->pid != pid || slot->number != number) {
        slot_flush(machine, slot);
        slot_load(machine, slot, pid, number);
    }
    return slot;
}

void applied_flush(struct machine *machine)
{
    for (size_t i = 0; i < CHUNK_SLOTS; i++)
        slot_flush(machine, &machine->slots[i]);
}

void applied_forget(struct machine *machine)
{
    for (size_t i = 0; i < CHUNK_SLOTS; i++) {
        machine->slots[i].pid = 0;
        machine->slots[i].is_dirty = false;
    }
}

size_t applied_drop(struct machine *machine, uint32_t pid)
{
    size_t rows_left = SIZE_MAX;
    for (size_t i = 0; i < CHUNK_SLOTS; i++) {
        if (machine->slots[i].pid != pid)
            continue;
        machine->slots[i].pid = 0;
        machine->slots[i].is_dirty = false;
    }
    (void)(pairs_drop(machine->rows, TABLE_RUNS, pid, &rows_left) &&
           pairs_drop(machine->rows, TABLE_FULL, pid, &rows_left));
    return SIZE_MAX - rows_left;
}

/* What a window has sent again is no interval of the ledger. */
static void count_intervals(struct machine *machine, struct partition *partition, int64_t change)
{
    partition->row.interval_count += (uint64_t)change;
    if (partition->replay == NULL)
        machine->figures.interval_count += (uint64_t)change;
}

/* ---- long intervals --------------------------------------------------------------------------------------------- */

static void full_put(struct machine *machine, uint32_t pid, uint64_t first, const struct full_row *row)
{
    struct key key = key_pair(TABLE_FULL, pid, first);
    struct value value;
    full_row_write(row, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
}

static void full_delete(struct machine *machine, uint32_t pid, uint64_t first)
{
    struct key key = key_pair(TABLE_FULL, pid, first);
    rows_delete(machine->rows, key_slice(&key));
}

static bool full_read(struct machine *machine, struct slice value, uint64_t first, struct full_row *ret_row)
{
    bool is_good = full_row_read(value, first, ret_row);
    if (!is_good)
        rows_spoil(machine->rows);
    return is_good;
}

/* The last interval that begins at chunk NUMBER or before it. */
static bool full_before(struct machine *machine, uint32_t pid, uint64_t number, uint64_t *ret_first,
                        struct full_row *ret_row)
{
    struct slice value;
    return pairs_before(machine->rows, TABLE_FULL, pid, number, ret_first, &value) &&
           full_read(machine, value, *ret_first, ret_row);
}

/* The first interval that begins at chunk NUMBER or behind it. */
static bool full_after(struct machine *machine, uint32_t pid, uint64_t number, uint64_t *ret_first,
                       struct full_row *ret_row)
{
    struct slice value;
    return pairs_next(machine->rows, TABLE_FULL, pid, number, ret_first, &value) &&
           full_read(machine, value, *ret_first, ret_row);
}

static bool may_join(const struct full_row *left, uint64_t right_first, const struct full_row *right)
{
    return left->last + 1 == right_first && right->from == chunk_first(right_first) &&
           (left->gap_count == 0) == (right->gap_count == 0);
}

/* Exact ones join exact ones and gapped ones gapped ones: what is exact stays so. */
static void full_add(struct machine *machine, struct partition *partition, uint64_t first,
                     struct full_row row)
{
    uint32_t pid = partition->row.pid;
    uint64_t other_first;
    struct full_row other;
    count_intervals(machine, partition, 1);
    if (first > 0 && full_before(machine, pid, first - 1, &other_first, &other) &&
        may_join(&other, first, &row)) {
        row = (struct full_row){ row.last, other.from, row.gap_count + other.gap_count };
        first = other_first;
        count_intervals(machine, partition, -1);
    }
    if (full_after(machine, pid, row.last + 1, &other_first, &other) && may_join(&row, other_first, &other)) {
        row = (struct full_row){ other.last, row.from, row.gap_count + other.gap_count };
        full_delete(machine, pid, other_first);
        count_intervals(machine, partition, -1);
    }
    full_put(machine, pid, first, &row);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static struct applied_piece piece_of_full(struct machine *machine, const struct partition *partition,
                                          int64_t offset, int64_t limit)
{
    uint64_t first, number = chunk_of(offset);
    struct full_row row;
    if (!full_before(machine, partition->row.pid, number, &first, &row) || row.last < number)
        return (struct applied_piece){ lesser(limit, chunk_last(number)), false, false, 0 };
    if (offset < row.from)
        return (struct applied_piece){ lesser(limit, row.from - 1), false, false, 0 };
    return (struct applied_piece){ lesser(limit, chunk_last(row.last)), true, row.gap_count > 0,
                                   row.gap_count };
}

struct applied_piece applied_piece_at(struct machine *machine, const struct partition *partition,
                                      int64_t offset, int64_t limit)
{
    const struct part_row *row = &partition->row;
    assert(offset >= 0 && offset <= limit);
    if (offset > row->highest)
        return (struct applied_piece){ limit, false, false, 0 };
    if (offset < row->lowest)
        return (struct applied_piece){ lesser(limit, row->lowest - 1), false, false, 0 };
    uint64_t number = chunk_of(offset);
    const struct chunk *chunk = &slot_of(machine, row->pid, number)->chunk;
    uint16_t last;
    bool is_applied = chunk_stretch(chunk, (uint16_t)(offset % CHUNK_OFFSETS), &last);
    int64_t stretch_last = lesser(limit, chunk_first(number) + last);
    if (is_applied || (chunk->applied_count > 0 && number >= row->folded_to))
        return (struct applied_piece){ stretch_last, is_applied, false, 0 };
    /* below the fold a chunk may have both rows, and then its runs come first; see format.h */
    if (chunk->applied_count > 0 && last < CHUNK_OFFSETS - 1)
        limit = stretch_last;
    return piece_of_full(machine, partition, offset, limit);
}

/* The first chunk from NUMBER on that has a row of any kind. */
static bool next_chunk(struct machine *machine, uint32_t pid, uint64_t number, uint64_t *ret_number)
{
    struct slice value;
    struct full_row row;
    uint64_t runs_number, full_first;
    bool has_runs = pairs_next(machine->rows, TABLE_RUNS, pid, number, &runs_number, &value);
    if (full_before(machine, pid, number, &full_first, &row) && row.last >= number)
        full_first = number;
    else if (!full_after(machine, pid, number, &full_first, &row))
        full_first = UINT64_MAX;
    *ret_number = has_runs && runs_number < full_first ? runs_number : full_first;
    return *ret_number <= chunk_of(INT64_MAX);
}

bool applied_next(struct machine *machine, const struct partition *partition, int64_t offset, int64_t limit,
                  int64_t *ret_offset)
{
    applied_flush(machine); /* rows are looked for, so they must be as new as the cache */
    while (rows_status(machine->rows) == ROWS_OK) {
        struct applied_piece piece = applied_piece_at(machine, partition, offset, limit);
        *ret_offset = offset;
        if (piece.is_applied || piece.last == limit)
            return piece.is_applied;
        offset = piece.last + 1;
        uint64_t number;
        if (offset % CHUNK_OFFSETS == 0) {
            if (!next_chunk(machine, partition->row.pid, chunk_of(offset), &number) ||
                chunk_first(number) > limit)
                return false;
            offset = chunk_first(number);
        }
    }
    return false;
}

/* Of COUNT gaps in WHOLE offsets, those of a PART; rounded where the numbers are too large to be multiplied. */
static uint64_t gap_share(uint64_t count, uint64_t part, uint64_t whole)
{
    unsigned shift = 0;
    count = count < whole ? count : whole;
    while (whole >> shift > UINT32_MAX)
        shift++;
    return (count >> shift) * (part >> shift) / (whole >> shift) << shift;
}

/* How many of a folded interval's offsets FIRST to LAST were applied. */
static uint64_t count_in_full(const struct full_row *row, int64_t first, int64_t last)
{
    uint64_t whole = (uint64_t)(chunk_last(row->last) - row->from) + 1, part = (uint64_t)(last - first) + 1;
    return part - gap_share(row->gap_count, part, whole);
}

static uint64_t count_in_piece(struct machine *machine, const struct partition *partition,
                               const struct applied_piece *piece, int64_t first)
{
    uint64_t full_first;
    struct full_row row;
    if (piece->is_folded && full_before(machine, partition->row.pid, chunk_of(first), &full_first, &row))
        return count_in_full(&row, first, piece->last);
    return (uint64_t)(piece->last - first) + 1;
}

uint64_t applied_count_in(struct machine *machine, const struct partition *partition, int64_t first,
                          int64_t last)
{
    uint64_t count = 0;
    for (int64_t at; applied_next(machine, partition, first, last, &at);) {
        struct applied_piece piece = applied_piece_at(machine, partition, at, last);
        count += count_in_piece(machine, partition, &piece, at);
        if (piece.last == last)
            break;
        first = piece.last + 1;
    }
    return count;
}

/* ---- folding ---------------------------------------------------------------------------------------------------- */

/* The end of the chunks that lie wholly below the window. */
static uint64_t window_end(const struct machine *machine, const struct partition *partition)
{
    int64_t highest = partition->row.highest;
    if (highest < 0 || (uint64_t)highest <= machine->settings.window)
        return 0;
    return ((uint64_t)highest - machine->settings.window) / CHUNK_OFFSETS;
}

/* The end of what may be folded: below the window, and never over an open record. */
static uint64_t fold_limit(const struct machine *machine, const struct partition *partition)
{
    uint64_t limit = window_end(machine, partition);
    if (partition->opens.count > 0 && chunk_of(partition->opens.at[0]->first) < limit)
        limit = chunk_of(partition->opens.at[0]->first);
    return limit;
}

/* Delete the RUNS rows from chunk FIRST to *LAST and count what they held; *LAST shrinks when there are many. */
static uint64_t fold_runs(struct machine *machine, struct partition *partition, uint64_t first,
                          uint64_t *last, size_t *rows_left)
{
    uint64_t applied_count = 0, number;
    uint32_t pid = partition->row.pid;
    struct chunk chunk;
    struct slice value;
    while (pairs_next(machine->rows, TABLE_RUNS, pid, first, &number, &value) && number <= *last) {
        if (*rows_left == 0) {
            *last = number - 1; /* never below FIRST: the caller saw to it that one row is left */
            break;
        }
        if (!chunk_read(value, &chunk)) {
            rows_spoil(machine->rows);
            break;
        }
        applied_count += chunk.applied_count;
        partition->row.interval_count -= chunk.run_count;
        machine->figures.interval_count -= chunk.run_count;
        struct key key = key_pair(TABLE_RUNS, pid, number);
        rows_delete(machine->rows, key_slice(&key));
        --*rows_left;
    }
    return applied_count;
}

/* Fold the chunks from FIRST on that no interval covers, up to LIMIT or the next interval; returns where it ended. */
static uint64_t fold_hole(struct machine *machine, struct partition *partition, uint64_t first,
                          uint64_t limit, size_t *rows_left)
{
    uint64_t next_first, last = limit - 1;
    struct full_row next;
    if (full_after(machine, partition->row.pid, first, &next_first, &next) && next_first <= last)
        last = next_first - 1;
    uint64_t applied_count = fold_runs(machine, partition, first, &last, rows_left);
    int64_t from = chunk_of(partition->row.lowest) == first ? partition->row.lowest : chunk_first(first);
    uint64_t offset_count = (uint64_t)(chunk_last(last) - from) + 1;
    full_add(machine, partition, first, (struct full_row){ last, from, offset_count - applied_count });
    return last + 1;
}

static void fold(struct machine *machine, struct partition *partition)
{
    uint64_t limit = fold_limit(machine, partition), at = chunk_of(partition->row.lowest);
    if (at < partition->row.folded_to)
        at = partition->row.folded_to;
    if (at >= limit)
        return;
    applied_flush(machine); /* the rows are counted, so they must be as new as the cache */
    applied_forget(machine);
    size_t rows_left = FOLD_ROWS_MAX;
    while (at < limit && rows_left > 0 && rows_status(machine->rows) == ROWS_OK) {
        uint64_t first;
        struct full_row row;
        bool is_covered = full_before(machine, partition->row.pid, at, &first, &row) && row.last >= at;
        at = is_covered ? row.last + 1 : fold_hole(machine, partition, at, limit, &rows_left);
        if (is_covered)
            rows_left--;
    }
    partition->row.folded_to = at < limit ? at : limit;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void chunk_is_full(struct machine *machine, struct partition *partition, struct chunk_slot *slot)
{
    uint64_t number = slot->number;
    chunk_init(&slot->chunk);
    count_intervals(machine, partition, -1);
    full_add(machine, partition, number, (struct full_row){ number, chunk_first(number), 0 });
}

/* Nothing below chunk END is folded any more. */
static void fold_past(struct machine *machine, struct partition *partition, uint64_t end)
{
    if (partition->row.folded_to >= end)
        return;
    partition->row.folded_to = end;
    partitions_touch(machine, partition);
}

/* FIRST is about to be applied: does it leave a hole that is none of a ragged partition? */
static void leave_behind(struct machine *machine, struct partition *partition, int64_t first)
{
    int64_t highest = partition->row.highest;
    if (highest >= 0 && first > highest && (uint64_t)(first - highest) > machine->settings.window)
        fold_past(machine, partition, chunk_of(first));
}

/* What was open held up the folding until now, and the next record would fold it with all that lies about it. */
void applied_set_free(struct machine *machine, struct partition *partition, int64_t last)
{
    if (chunk_of(last) < window_end(machine, partition))
        fold_past(machine, partition, chunk_of(last) + 1);
}

/* FIRST to LAST lie in one chunk and in no interval. */
static void add_to_chunk(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    struct chunk_slot *slot = slot_of(machine, partition->row.pid, chunk_of(first));
    uint32_t run_count = slot->chunk.run_count;
    partition->row.applied_count +=
        chunk_add(&slot->chunk, (uint16_t)(first % CHUNK_OFFSETS), (uint16_t)(last % CHUNK_OFFSETS));
    count_intervals(machine, partition, (int64_t)slot->chunk.run_count - run_count);
    slot->is_dirty = true;
    if (slot->chunk.applied_count == CHUNK_OFFSETS)
        chunk_is_full(machine, partition, slot);
}

static void stretch_bounds(struct partition *partition, int64_t first, int64_t last)
{
    struct part_row *row = &partition->row;
    if (row->seen_first < 0)
        row->seen_first = first;
    if (row->lowest < 0 || first < row->lowest)
        row->lowest = first;
    if (last > row->highest)
        row->highest = last;
}

void applied_add(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    assert(first >= 0 && first <= last);
    for (int64_t at = first;;) {
        struct applied_piece piece = applied_piece_at(machine, partition, at, last);
        int64_t piece_last = lesser(piece.last, chunk_last(chunk_of(at)));
        if (!piece.is_applied)
            add_to_chunk(machine, partition, at, piece_last);
        if (piece_last == last)
            break;
        at = piece_last + 1;
    }
    bool is_ahead = last > partition->row.highest;
    if (partition->replay == NULL)
        leave_behind(machine, partition, first);
    stretch_bounds(partition, first, last);
    partition->row.last_ms = machine->now.unix_ms;
    partitions_touch(machine, partition);
    if (is_ahead && partition->replay == NULL)
        fold(machine, partition);
}

/* ---- taking away, and putting back ------------------------------------------------------------------------------ */

static void restore_full(struct machine *machine, struct partition *partition, int64_t first, int64_t last,
                         uint64_t gap_count)
{
    assert(last % CHUNK_OFFSETS == CHUNK_OFFSETS - 1);
    uint64_t count = (uint64_t)(last - first) + 1;
    gap_count = gap_count < count ? gap_count : count;
    partition->row.applied_count += count - gap_count;
    full_add(machine, partition, chunk_of(first), (struct full_row){ chunk_of(last), first, gap_count });
}

/* Nothing of FIRST to LAST is applied.  The part of folded ground that does not end with a chunk becomes exact. */
static void restore(struct machine *machine, struct partition *partition, int64_t first, int64_t last,
                    uint64_t gap_count)
{
    if (first > last)
        return;
    if (gap_count == 0 && first % CHUNK_OFFSETS != 0) { /* an exact interval begins with a chunk */
        int64_t head_last = lesser(last, chunk_last(chunk_of(first)));
        add_to_chunk(machine, partition, first, head_last);
        if (head_last == last)
            return;
        first = head_last + 1;
    }
    int64_t whole_last = chunk_last(chunk_of(last));
    if (whole_last != last)
        whole_last = chunk_first(chunk_of(last)) - 1;
    if (whole_last > first)
        restore_full(machine, partition, first, whole_last, gap_count);
    else
        whole_last = first - 1;
    if (whole_last != last)
        add_to_chunk(machine, partition, whole_last + 1, last);
}

void applied_restore(struct machine *machine, struct partition *partition, int64_t first, int64_t last,
                     uint64_t gap_count)
{
    restore(machine, partition, first, last, gap_count);
    stretch_bounds(partition, first, last);
    partitions_touch(machine, partition);
}

/* The first long interval that has any of FIRST to LAST. */
static bool full_over(struct machine *machine, uint32_t pid, int64_t first, int64_t last,
                      uint64_t *ret_number, struct full_row *ret_row)
{
    uint64_t number = chunk_of(first);
    if (full_before(machine, pid, number, ret_number, ret_row) && chunk_last(ret_row->last) >= first)
        return ret_row->from <= last;
    return number < chunk_of(INT64_MAX) && full_after(machine, pid, number + 1, ret_number, ret_row) &&
           ret_row->from <= last;
}

/* FIRST to LAST, as far as they lie in it, are cut out of a long interval; returns the last of it. */
static int64_t cut_full(struct machine *machine, struct partition *partition, uint64_t number,
                        const struct full_row *row, int64_t first, int64_t last)
{
    int64_t end = chunk_last(row->last);
    uint64_t whole = (uint64_t)(end - row->from) + 1, left_gaps = 0, right_gaps = 0;
    if (first > row->from)
        left_gaps = gap_share(row->gap_count, (uint64_t)(first - row->from), whole);
    if (last < end)
        right_gaps = gap_share(row->gap_count, (uint64_t)(end - last), whole);
    full_delete(machine, partition->row.pid, number);
    count_intervals(machine, partition, -1);
    partition->row.applied_count -= whole - row->gap_count;
    if (first > row->from)
        restore(machine, partition, row->from, first - 1, left_gaps);
    if (last < end)
        restore(machine, partition, last + 1, end, right_gaps);
    return end;
}

static void cut_chunk(struct machine *machine, struct partition *partition, uint64_t number, int64_t first,
                      int64_t last)
{
    struct chunk_slot *slot = slot_of(machine, partition->row.pid, number);
    uint32_t run_count = slot->chunk.run_count;
    int64_t from = first > chunk_first(number) ? first % CHUNK_OFFSETS : 0;
    int64_t to = last < chunk_last(number) ? last % CHUNK_OFFSETS : CHUNK_OFFSETS - 1;
    partition->row.applied_count -= chunk_remove(&slot->chunk, (uint16_t)from, (uint16_t)to);
    count_intervals(machine, partition, (int64_t)slot->chunk.run_count - run_count);
    slot->is_dirty = true;
}

/* The highest applied offset, by the rows. */
static int64_t last_applied(struct machine *machine, const struct partition *partition)
{
    uint64_t number;
    struct slice value;
    struct full_row row;
    int64_t highest = -1;
    uint16_t last;
    if (full_before(machine, partition->row.pid, UINT64_MAX, &number, &row))
        highest = chunk_last(row.last);
    if (!pairs_before(machine->rows, TABLE_RUNS, partition->row.pid, UINT64_MAX, &number, &value) ||
        chunk_last(number) < highest)
        return highest;
    const struct chunk *chunk = &slot_of(machine, partition->row.pid, number)->chunk;
    for (uint32_t at = 0; at < CHUNK_OFFSETS; at = last + 1u)
        if (chunk_stretch(chunk, (uint16_t)at, &last) && chunk_first(number) + last > highest)
            highest = chunk_first(number) + last;
    return highest;
}

static void shrink_bounds(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    struct part_row *row = &partition->row;
    applied_flush(machine);
    if (row->applied_count == 0) { /* folded ground without any applied offset means nothing by itself */
        count_intervals(machine, partition, -(int64_t)row->interval_count);
        applied_drop(machine, row->pid);
        row->seen_first = row->lowest = row->highest = -1;
        row->folded_to = 0;
        return;
    }
    int64_t lowest;
    if (applied_next(machine, partition, row->lowest, row->highest, &lowest)) {
        row->lowest = lowest;
        row->highest = last_applied(machine, partition);
        uint64_t end = chunk_of(row->highest) + 1;
        row->folded_to =
            row->folded_to < end ? row->folded_to : end; /* a leap that is gone hinders nothing */
    } else {
        rows_spoil(machine->rows); /* the count and the rows differ */
    }
    if (row->seen_first >= first && row->seen_first <= last)
        row->seen_first = row->lowest;
}

uint64_t applied_remove(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    uint64_t count = applied_count_in(machine, partition, first, last), number;
    uint32_t pid = partition->row.pid;
    struct full_row row;
    struct slice value;
    if (partition->row.highest < 0)
        return 0;
    for (int64_t at = first; at <= last && full_over(machine, pid, at, last, &number, &row);) {
        int64_t cut_first = row.from > at ? row.from : at;
        int64_t end =
            cut_full(machine, partition, number, &row, cut_first, lesser(last, chunk_last(row.last)));
        if (end >= last)
            break;
        at = end + 1;
    }
    applied_flush(machine);
    for (uint64_t at = chunk_of(first);
         pairs_next(machine->rows, TABLE_RUNS, pid, at, &number, &value) && number <= chunk_of(last);
         at = number + 1)
        cut_chunk(machine, partition, number, first, last);
    shrink_bounds(machine, partition, first, last);
    partitions_touch(machine, partition);
    return count;
}
