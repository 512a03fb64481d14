/*
 * marks.c - identity marks of applied records.
 *
 * MARKS rows are blocks of 256 offsets, a ring without a pointer: what lies wholly below (highest - the setting) is
 * deleted, a few rows at a time, as the partition grows.  Older offsets that arrive late get no mark, because nothing
 * would ever delete it.
 *
 * The records of a batch are mostly neighbours: what it changes in a block is gathered in a slot, and written once.
 */
#include "marks.h"

#include "pairs.h"
#include "partitions.h"

enum { SWEEP_ROWS_MAX = 8 /* per call; a step forward of 256 offsets makes one */ };

static uint64_t block_of(int64_t offset)
{
    return (uint64_t)offset / MARK_BLOCK_OFFSETS;
}

static struct mark_slot *slot_at(const struct machine *machine, uint32_t pid, uint64_t block)
{
    return &machine->mark_slots[(pid * 37 + block) % MARK_SLOTS];
}

/* NULL: the batch has not changed it. */
static struct mark_slot *slot_find(const struct machine *machine, uint32_t pid, uint64_t block)
{
    struct mark_slot *slot = slot_at(machine, pid, block);
    return slot->pid == pid && slot->block == block ? slot : NULL;
}

/* Lives until the next change of a row or a mark.  NULL: there is none, or it is damaged and the transaction spoilt. */
static const char *block_find(struct machine *machine, uint32_t pid, uint64_t block)
{
    const struct mark_slot *slot = slot_find(machine, pid, block);
    struct key key = key_pair(TABLE_MARKS, pid, block);
    struct slice value;
    if (slot != NULL)
        return slot->marks;
    if (!rows_get(machine->rows, key_slice(&key), &value))
        return NULL;
    if (marks_is_block(value))
        return value.at;
    rows_spoil(machine->rows);
    return NULL;
}

static void block_put(struct machine *machine, uint32_t pid, uint64_t block,
                      const char marks[MARK_BLOCK_BYTES])
{
    struct key key = key_pair(TABLE_MARKS, pid, block);
    rows_put(machine->rows, key_slice(&key), slice_of(marks, MARK_BLOCK_BYTES));
}

static void slot_flush(struct machine *machine, struct mark_slot *slot)
{
    if (slot->pid != 0)
        block_put(machine, slot->pid, slot->block, slot->marks);
    slot->pid = 0;
}

void marks_flush(struct machine *machine)
{
    for (size_t i = 0; i < MARK_SLOTS; i++)
        slot_flush(machine, &machine->mark_slots[i]);
}

/* To be changed. */
static struct mark_slot *slot_take(struct machine *machine, uint32_t pid, uint64_t block)
{
    struct mark_slot *slot = slot_find(machine, pid, block);
    if (slot != NULL)
        return slot;
    slot = slot_at(machine, pid, block);
    slot_flush(machine, slot);
    const char *kept = block_find(machine, pid, block);
    if (kept != NULL)
        memcpy(slot->marks, kept, sizeof slot->marks);
    else
        memset(slot->marks, 0, sizeof slot->marks);
    slot->pid = pid;
    slot->block = block;
    slot->is_sampled = false;
    return slot;
}

static bool sample_get(struct machine *machine, uint32_t pid, uint64_t chunk, int64_t *ret_offset,
                       record_mark *ret_mark)
{
    struct key key = key_pair(TABLE_SAMPLES, pid, chunk);
    struct slice value;
    if (!rows_get(machine->rows, key_slice(&key), &value))
        return false;
    bool is_good = sample_read(value, ret_offset, ret_mark);
    if (!is_good)
        rows_spoil(machine->rows);
    return is_good;
}

static void sample_put(struct machine *machine, uint32_t pid, int64_t offset, record_mark mark)
{
    struct key key = key_pair(TABLE_SAMPLES, pid, chunk_of(offset));
    struct value value;
    sample_write(offset, mark, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
}

/* ---- comparing -------------------------------------------------------------------------------------------------- */

static bool contradicts_block(struct machine *machine, uint32_t pid, const struct record records[],
                              size_t count, size_t *ret_index, record_mark *ret_stored)
{
    int64_t first = records[0].key.offset;
    const char *block = block_find(machine, pid, block_of(first));
    if (block == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        record_mark stored = marks_get(block, (size_t)(first % MARK_BLOCK_OFFSETS) + i);
        if (marks_contradict(stored, records[i].mark)) {
            *ret_index = i;
            *ret_stored = stored;
            return true;
        }
    }
    return false;
}

/* RECORDS lie in one chunk. */
static bool contradicts_sample(struct machine *machine, uint32_t pid, const struct record records[],
                               size_t count, size_t *ret_index, record_mark *ret_stored)
{
    int64_t offset, first = records[0].key.offset;
    if (!sample_get(machine, pid, chunk_of(first), &offset, ret_stored))
        return false;
    if (offset < first || offset - first >= (int64_t)count)
        return false;
    *ret_index = (size_t)(offset - first);
    return marks_contradict(*ret_stored, records[*ret_index].mark);
}

/* How many of COUNT offsets from FIRST on lie in one group of WIDTH. */
static size_t in_one_group(int64_t first, size_t count, size_t width)
{
    size_t room = width - (size_t)(first % (int64_t)width);
    return count < room ? count : room;
}

typedef bool contradicts_fn(struct machine *machine, uint32_t pid, const struct record records[],
                            size_t count, size_t *ret_index, record_mark *ret_stored);

static bool contradicts_in_groups(contradicts_fn *contradicts, size_t width, struct machine *machine,
                                  uint32_t pid, const struct record records[], size_t count,
                                  size_t *ret_index, record_mark *ret_stored)
{
    for (size_t at = 0; at < count;) {
        size_t some = in_one_group(records[at].key.offset, count - at, width);
        if (contradicts(machine, pid, &records[at], some, ret_index, ret_stored)) {
            *ret_index += at;
            return true;
        }
        at += some;
    }
    return false;
}

bool marks_find_contradiction(struct machine *machine, const struct partition *partition,
                              const struct record records[], size_t count, size_t *ret_index,
                              record_mark *ret_stored)
{
    if (!machine->settings.is_identity_checked)
        return false;
    size_t unmarked = 0;
    while (unmarked < count && records[unmarked].mark == MARK_NONE)
        unmarked++;
    uint32_t pid = partition->row.pid;
    return unmarked < count && (contradicts_in_groups(contradicts_block, MARK_BLOCK_OFFSETS, machine, pid,
                                                      records, count, ret_index, ret_stored) ||
                                contradicts_in_groups(contradicts_sample, CHUNK_OFFSETS, machine, pid,
                                                      records, count, ret_index, ret_stored));
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

/* Blocks below are too old to be kept. */
static uint64_t floor_block(const struct machine *machine, const struct partition *partition)
{
    int64_t floor = partition->row.highest - (int64_t)machine->settings.marks;
    return floor <= 0 ? 0 : block_of(floor);
}

static void sweep(struct machine *machine, struct partition *partition)
{
    uint64_t floor = floor_block(machine, partition), block, at = partition->row.swept_to;
    uint32_t pid;
    struct slice key, value;
    size_t deleted_count = 0;
    if (at < floor)
        marks_flush(machine);
    while (at < floor && deleted_count < SWEEP_ROWS_MAX) {
        struct key from = key_pair(TABLE_MARKS, partition->row.pid, at);
        if (!rows_seek(machine->rows, key_slice(&from), &key, &value) ||
            !key_read_pair(key, TABLE_MARKS, &pid, &block) || pid != partition->row.pid || block >= floor) {
            at = floor;
            break;
        }
        at = block + 1;
        if (block == block_of(partition->row.seen_first))
            continue;
        from = key_pair(TABLE_MARKS, pid, block);
        rows_delete(machine->rows, key_slice(&from));
        deleted_count++;
    }
    if (at > partition->row.swept_to) {
        partition->row.swept_to = at;
        partitions_touch(machine, partition);
    }
}

static void put_in_block(struct machine *machine, uint32_t pid, int64_t first, const record_mark marks[],
                         size_t count)
{
    struct mark_slot *slot = slot_take(machine, pid, block_of(first));
    for (size_t i = 0; i < count; i++)
        if (marks[i] != MARK_NONE)
            marks_set(slot->marks, (size_t)(first % MARK_BLOCK_OFFSETS) + i, marks[i]);
}

/* The offsets lie in one chunk: the first mark that it ever gets is its sample. */
static void put_sample(struct machine *machine, uint32_t pid, int64_t first, const record_mark marks[],
                       size_t count)
{
    int64_t offset;
    record_mark mark;
    struct mark_slot *slot = slot_find(machine, pid, block_of(first));
    if (slot != NULL && slot->is_sampled)
        return;
    bool is_sampled = sample_get(machine, pid, chunk_of(first), &offset, &mark);
    for (size_t i = 0; i < count && !is_sampled; i++) {
        is_sampled = marks[i] != MARK_NONE;
        if (is_sampled)
            sample_put(machine, pid, first + (int64_t)i, marks[i]);
    }
    if (slot != NULL)
        slot->is_sampled = is_sampled;
}

void marks_put(struct machine *machine, struct partition *partition, int64_t first, const record_mark marks[],
               size_t count)
{
    uint64_t floor = floor_block(machine, partition), kept = block_of(partition->row.seen_first);
    for (size_t at = 0; at < count;) {
        int64_t offset = first + (int64_t)at;
        size_t some = in_one_group(offset, count - at, MARK_BLOCK_OFFSETS);
        if (block_of(offset) >= floor || block_of(offset) == kept)
            put_in_block(machine, partition->row.pid, offset, &marks[at], some);
        at += some;
    }
    for (size_t at = 0; at < count;) {
        size_t some = in_one_group(first + (int64_t)at, count - at, CHUNK_OFFSETS);
        put_sample(machine, partition->row.pid, first + (int64_t)at, &marks[at], some);
        at += some;
    }
    sweep(machine, partition);
}

void marks_overwrite(struct machine *machine, const struct partition *partition, int64_t offset,
                     record_mark mark)
{
    uint32_t pid = partition->row.pid;
    record_mark sample;
    int64_t sample_offset;
    if (block_find(machine, pid, block_of(offset)) != NULL)
        marks_set(slot_take(machine, pid, block_of(offset))->marks, (size_t)(offset % MARK_BLOCK_OFFSETS),
                  mark);
    if (sample_get(machine, pid, chunk_of(offset), &sample_offset, &sample) && sample_offset == offset)
        sample_put(machine, pid, offset, mark);
}

static void clear_in_block(struct machine *machine, uint32_t pid, uint64_t block_number, int64_t first,
                           int64_t last)
{
    int64_t block_first = (int64_t)(block_number * MARK_BLOCK_OFFSETS);
    if (block_find(machine, pid, block_number) == NULL)
        return;
    struct mark_slot *slot = slot_take(machine, pid, block_number);
    for (int64_t i = 0; i < MARK_BLOCK_OFFSETS; i++)
        if (block_first + i >= first && block_first + i <= last)
            marks_set(slot->marks, (size_t)i, MARK_NONE);
}

static void remove_samples(struct machine *machine, uint32_t pid, int64_t first, int64_t last)
{
    struct slice value;
    uint64_t number;
    int64_t offset;
    record_mark mark;
    for (uint64_t at = chunk_of(first);
         pairs_next(machine->rows, TABLE_SAMPLES, pid, at, &number, &value) && number <= chunk_of(last);
         at = number + 1) {
        struct key key = key_pair(TABLE_SAMPLES, pid, number);
        if (!sample_read(value, &offset, &mark))
            rows_spoil(machine->rows);
        else if (offset >= first && offset <= last)
            rows_delete(machine->rows, key_slice(&key));
    }
}

void marks_remove(struct machine *machine, struct partition *partition, int64_t first, int64_t last)
{
    uint32_t pid = partition->row.pid;
    uint64_t first_whole = block_of(first), end = block_of(last); /* whole blocks: up to END, END is not */
    marks_flush(machine);
    if (first % MARK_BLOCK_OFFSETS != 0)
        clear_in_block(machine, pid, first_whole++, first, last);
    if (last % MARK_BLOCK_OFFSETS == MARK_BLOCK_OFFSETS - 1)
        end++;
    else if (end >= first_whole)
        clear_in_block(machine, pid, end, first, last);
    if (first_whole < end)
        pairs_delete(machine->rows, TABLE_MARKS, pid, first_whole, end - 1);
    remove_samples(machine, pid, first, last);
    uint64_t floor = partition->row.highest < 0 ? 0 : floor_block(machine, partition);
    if (floor < partition->row.swept_to)
        partition->row.swept_to = floor; /* what comes to life below is swept once more */
}
