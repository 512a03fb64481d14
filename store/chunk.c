/*
 * chunk.c - the exact set of applied offsets among 65,536 neighbours.
 *
 * On disk: one byte that says which form, then
 *     1  runs, ascending: first u16, length - 1 u16, both big-endian
 *     2  bitmap: 1,024 words u64 big-endian; offset n is bit n % 64 of word n / 64
 */
#include "chunk.h"

#include <assert.h>

enum { FORM_RUNS = 1, FORM_BITMAP = 2, WORD_COUNT = CHUNK_OFFSETS / 64 };

static uint32_t run_last(struct chunk_run run)
{
    return (uint32_t)run.first + run.more;
}

static uint32_t run_length(struct chunk_run run)
{
    return (uint32_t)run.more + 1;
}

/* The first run that ends at OFFSET or later. */
static uint32_t run_search(const struct chunk *chunk, uint32_t offset)
{
    uint32_t low = 0, high = chunk->run_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (run_last(chunk->set.runs[middle]) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- bitmap ------------------------------------------------------------------------------------------------- */

static bool bit_is_set(const uint64_t words[], uint32_t offset)
{
    return (words[offset / 64] >> (offset % 64)) & 1;
}

/* The bits of WORD that lie in FIRST to LAST. */
static uint64_t word_mask(uint32_t word, uint32_t first, uint32_t last)
{
    uint64_t mask = UINT64_MAX;
    if (word == first / 64)
        mask &= UINT64_MAX << (first % 64);
    if (word == last / 64)
        mask &= UINT64_MAX >> (63 - last % 64);
    return mask;
}

static uint32_t bits_set(uint64_t words[], uint32_t first, uint32_t last)
{
    uint32_t added = 0;
    for (uint32_t word = first / 64; word <= last / 64; word++) {
        uint64_t mask = word_mask(word, first, last);
        added += (uint32_t)__builtin_popcountll(mask & ~words[word]);
        words[word] |= mask;
    }
    return added;
}

static uint32_t bits_clear(uint64_t words[], uint32_t first, uint32_t last)
{
    uint32_t removed = 0;
    for (uint32_t word = first / 64; word <= last / 64; word++) {
        uint64_t mask = word_mask(word, first, last);
        removed += (uint32_t)__builtin_popcountll(mask & words[word]);
        words[word] &= ~mask;
    }
    return removed;
}

/* A run starts at each bit whose lower neighbour is clear. */
static uint32_t bits_run_count(const uint64_t words[])
{
    uint32_t run_count = 0;
    uint64_t carry = 0;
    for (uint32_t i = 0; i < WORD_COUNT; i++) {
        run_count += (uint32_t)__builtin_popcountll(words[i] & ~(words[i] << 1 | carry));
        carry = words[i] >> 63;
    }
    return run_count;
}

/* The last offset from OFFSET on whose bit is as that of OFFSET. */
static uint32_t bits_stretch(const uint64_t words[], uint32_t offset)
{
    uint64_t flip = bit_is_set(words, offset) ? UINT64_MAX : 0;
    uint32_t word = offset / 64;
    uint64_t other = (words[word] ^ flip) & (UINT64_MAX << (offset % 64));
    while (other == 0 && ++word < WORD_COUNT)
        other = words[word] ^ flip;
    return word == WORD_COUNT ? CHUNK_OFFSETS - 1 : word * 64 + (uint32_t)__builtin_ctzll(other) - 1;
}

static void become_bitmap(struct chunk *chunk)
{
    uint64_t words[WORD_COUNT] = { 0 };
    for (uint32_t i = 0; i < chunk->run_count; i++)
        bits_set(words, chunk->set.runs[i].first, run_last(chunk->set.runs[i]));
    memcpy(chunk->set.words, words, sizeof words);
    chunk->is_bitmap = true;
}

/* ---- the set ------------------------------------------------------------------------------------------------ */

void chunk_init(struct chunk *chunk)
{
    chunk->applied_count = 0;
    chunk->run_count = 0;
    chunk->is_bitmap = false;
}

/* Put one run in the place of those from LOW on that it swallows. */
static void runs_replace(struct chunk *chunk, uint32_t low, uint32_t high, uint32_t first, uint32_t last)
{
    struct chunk_run *runs = chunk->set.runs;
    memmove(&runs[low + 1], &runs[high], (chunk->run_count - high) * sizeof runs[0]);
    runs[low] = (struct chunk_run){ (uint16_t)first, (uint16_t)(last - first) };
    chunk->run_count += 1 - (high - low);
}

static uint32_t runs_add(struct chunk *chunk, uint32_t first, uint32_t last)
{
    struct chunk_run *runs = chunk->set.runs;
    uint32_t low = run_search(chunk, first == 0 ? 0 : first - 1); /* one that ends just before joins */
    uint32_t high = low, swallowed = 0;
    for (; high < chunk->run_count && runs[high].first <= last + 1; high++) {
        swallowed += run_length(runs[high]);
        first = runs[high].first < first ? runs[high].first : first;
        last = run_last(runs[high]) > last ? run_last(runs[high]) : last;
    }
    runs_replace(chunk, low, high, first, last);
    return last - first + 1 - swallowed;
}

uint32_t chunk_add(struct chunk *chunk, uint16_t first, uint16_t last)
{
    assert(first <= last);
    if (!chunk->is_bitmap && chunk->run_count == CHUNK_RUNS_MAX)
        become_bitmap(chunk);
    uint32_t added =
        chunk->is_bitmap ? bits_set(chunk->set.words, first, last) : runs_add(chunk, first, last);
    if (chunk->is_bitmap && added > 0)
        chunk->run_count = bits_run_count(chunk->set.words);
    chunk->applied_count += added;
    return added;
}

bool chunk_contains(const struct chunk *chunk, uint16_t offset)
{
    uint16_t last;
    return chunk_stretch(chunk, offset, &last);
}

bool chunk_stretch(const struct chunk *chunk, uint16_t offset, uint16_t *ret_last)
{
    if (chunk->is_bitmap) {
        *ret_last = (uint16_t)bits_stretch(chunk->set.words, offset);
        return bit_is_set(chunk->set.words, offset);
    }
    uint32_t at = run_search(chunk, offset);
    bool is_last = at == chunk->run_count;
    bool is_in = !is_last && chunk->set.runs[at].first <= offset;
    uint32_t last = is_last ? CHUNK_OFFSETS - 1u
                    : is_in ? run_last(chunk->set.runs[at])
                            : chunk->set.runs[at].first - 1u;
    *ret_last = (uint16_t)last;
    return is_in;
}

/* Rare, and so by way of a second chunk: all stretches but what is taken out are added again. */
static uint32_t runs_remove(struct chunk *chunk, uint16_t first, uint16_t last)
{
    struct chunk rest;
    uint16_t stretch_last;
    chunk_init(&rest);
    for (uint32_t at = 0; at < CHUNK_OFFSETS; at = stretch_last + 1u) {
        if (!chunk_stretch(chunk, (uint16_t)at, &stretch_last))
            continue;
        if (at < first)
            chunk_add(&rest, (uint16_t)at, stretch_last < first ? stretch_last : (uint16_t)(first - 1));
        if (stretch_last > last)
            chunk_add(&rest, at > last ? (uint16_t)at : (uint16_t)(last + 1), stretch_last);
    }
    uint32_t removed_count = chunk->applied_count - rest.applied_count;
    *chunk = rest;
    return removed_count;
}

uint32_t chunk_remove(struct chunk *chunk, uint16_t first, uint16_t last)
{
    assert(first <= last);
    if (!chunk->is_bitmap)
        return runs_remove(chunk, first, last);
    uint32_t removed = bits_clear(chunk->set.words, first, last);
    chunk->run_count = bits_run_count(chunk->set.words);
    chunk->applied_count -= removed;
    return removed;
}

/* ---- bytes -------------------------------------------------------------------------------------------------- */

static void write_u16(uint8_t bytes[], uint32_t number)
{
    bytes[0] = (uint8_t)(number >> 8);
    bytes[1] = (uint8_t)number;
}

static uint16_t read_u16(const uint8_t bytes[])
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static size_t write_bitmap(const uint64_t words[], uint8_t bytes[])
{
    bytes[0] = FORM_BITMAP;
    for (size_t i = 0; i < WORD_COUNT; i++)
        for (size_t byte = 0; byte < 8; byte++)
            bytes[1 + i * 8 + byte] = (uint8_t)(words[i] >> (56 - 8 * byte));
    return CHUNK_BYTES_MAX;
}

static size_t write_run(uint8_t bytes[], size_t used, uint32_t first, uint32_t last)
{
    write_u16(&bytes[used], first);
    write_u16(&bytes[used + 2], last - first);
    return used + 4;
}

static size_t write_runs_of_bitmap(const struct chunk *chunk, uint8_t bytes[])
{
    size_t used = 1;
    uint32_t offset = 0;
    while (offset < CHUNK_OFFSETS) {
        uint32_t last = bits_stretch(chunk->set.words, offset);
        if (bit_is_set(chunk->set.words, offset))
            used = write_run(bytes, used, offset, last);
        offset = last + 1;
    }
    return used;
}

size_t chunk_write(const struct chunk *chunk, uint8_t bytes[])
{
    assert(chunk->applied_count > 0);
    if (chunk->is_bitmap && chunk->run_count >= CHUNK_RUNS_MAX)
        return write_bitmap(chunk->set.words, bytes);
    bytes[0] = FORM_RUNS;
    if (chunk->is_bitmap)
        return write_runs_of_bitmap(chunk, bytes);
    size_t used = 1;
    for (uint32_t i = 0; i < chunk->run_count; i++)
        used = write_run(bytes, used, chunk->set.runs[i].first, run_last(chunk->set.runs[i]));
    return used;
}

static bool read_runs(const uint8_t bytes[], size_t byte_count, struct chunk *chunk)
{
    if (byte_count == 0 || byte_count % 4 != 0 || byte_count / 4 > CHUNK_RUNS_MAX)
        return false;
    uint32_t lowest_legal = 0; /* one further than the neighbour of the run before */
    for (size_t i = 0; i < byte_count / 4; i++) {
        struct chunk_run run = { read_u16(&bytes[i * 4]), read_u16(&bytes[i * 4 + 2]) };
        if (run.first < lowest_legal || run_last(run) >= CHUNK_OFFSETS)
            return false;
        lowest_legal = run_last(run) + 2;
        chunk->set.runs[chunk->run_count++] = run;
        chunk->applied_count += run_length(run);
    }
    return true;
}

static bool read_bitmap(const uint8_t bytes[], size_t byte_count, struct chunk *chunk)
{
    if (byte_count != CHUNK_BITMAP_BYTES)
        return false;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        uint64_t word = 0;
        for (size_t byte = 0; byte < 8; byte++)
            word = word << 8 | bytes[i * 8 + byte];
        chunk->set.words[i] = word;
        chunk->applied_count += (uint32_t)__builtin_popcountll(word);
    }
    chunk->is_bitmap = true;
    chunk->run_count = bits_run_count(chunk->set.words);
    return chunk->applied_count > 0;
}

bool chunk_read(struct slice bytes, struct chunk *ret_chunk)
{
    const uint8_t *at = (const uint8_t *)bytes.at;
    chunk_init(ret_chunk);
    bool is_good = bytes.byte_count > 0 &&
                   ((at[0] == FORM_RUNS && read_runs(at + 1, bytes.byte_count - 1, ret_chunk)) ||
                    (at[0] == FORM_BITMAP && read_bitmap(at + 1, bytes.byte_count - 1, ret_chunk)));
    if (!is_good)
        chunk_init(ret_chunk);
    return is_good;
}
