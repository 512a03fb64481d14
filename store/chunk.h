/*
 * chunk.h - the exact set of applied offsets among 65,536 neighbours.
 *
 * In memory and on disk it is a sorted list of runs or a bitmap, whichever is smaller; a chunk never takes more
 * than 8 KiB, however ragged it is.  Pure: no memory of its own, no I/O.  Whose chunk it is, the caller knows.
 */
#ifndef SINKONCE_STORE_CHUNK_H
#define SINKONCE_STORE_CHUNK_H

#include <stdint.h>
#include "slice.h"

enum {
    CHUNK_OFFSETS = 65536,
    CHUNK_BITMAP_BYTES = CHUNK_OFFSETS / 8,
    CHUNK_RUNS_MAX = CHUNK_BITMAP_BYTES / 4, /* a run is 4 bytes: with more of them the bitmap is smaller */
    CHUNK_BYTES_MAX = 1 + CHUNK_BITMAP_BYTES,
};

struct chunk_run {
    uint16_t first;
    uint16_t more; /* length - 1 */
};

/* The caller's memory.  Runs are ascending and never touch: between two there is at least one offset. */
struct chunk {
    uint32_t applied_count; /* 0 to 65,536 */
    uint32_t run_count;     /* of the list, or those that the bitmap would make */
    bool is_bitmap;
    union {
        struct chunk_run runs[CHUNK_RUNS_MAX];
        uint64_t words[CHUNK_OFFSETS / 64];
    } set;
};

/* The number of the chunk that holds OFFSET. */
static inline uint64_t chunk_of(int64_t offset)
{
    return (uint64_t)offset / CHUNK_OFFSETS;
}

void chunk_init(struct chunk *chunk);
/* Add FIRST to LAST; returns how many of them were not in it before. */
uint32_t chunk_add(struct chunk *chunk, uint16_t first, uint16_t last);
/* Take FIRST to LAST out of it; returns how many of them were in it before. */
uint32_t chunk_remove(struct chunk *chunk, uint16_t first, uint16_t last);
bool chunk_contains(const struct chunk *chunk, uint16_t offset);
/* Is OFFSET in the set, and up to which offset does that stay so? */
bool chunk_stretch(const struct chunk *chunk, uint16_t offset, uint16_t *ret_last);

/* Writes a chunk that is not empty; returns the byte count, at most CHUNK_BYTES_MAX. */
size_t chunk_write(const struct chunk *chunk, uint8_t bytes[]);
/* False, and RET_CHUNK empty: these bytes are no chunk. */
MUST_CHECK bool chunk_read(struct slice bytes, struct chunk *ret_chunk);

#endif
