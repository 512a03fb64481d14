/*
 * target_counts.c - see target_counts.h.  A hash table of keys, and a journal written with one write(2) per
 * record, so that a kill of the target leaves whole lines and nothing unwritten.
 */
#include "target_counts.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

struct cell {
    char *key; /* owned; NULL: empty */
    uint64_t count;
};

struct fault_line {
    char *key; /* owned */
    bool is_applied;
    bool is_broken_off;
};

struct target_counts {
    int journal; /* -1: none */
    bool keeps_keys;
    struct target_totals totals;
    struct cell *cells; /* owned */
    size_t cell_count;  /* a power of two */
    size_t used;
    struct fault_line *faults; /* owned */
    size_t fault_count;
    size_t fault_room;
};

/* The target is a tool of tests: without memory it ends. */
static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("target: out of memory\n", stderr);
        exit(70);
    }
    return memory;
}

struct target_counts *target_counts_new(const char *journal_path, bool keeps_keys)
{
    struct target_counts *counts = must(calloc(1, sizeof *counts));

    counts->journal = -1;
    counts->keeps_keys = keeps_keys;
    counts->cell_count = 1024;
    counts->cells = must(calloc(counts->cell_count, sizeof *counts->cells));
    if (journal_path != NULL) {
        counts->journal = open(journal_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (counts->journal < 0) {
            perror(journal_path);
            exit(74);
        }
    }
    return counts;
}

struct target_totals *target_counts_totals(struct target_counts *counts)
{
    return &counts->totals;
}

static struct cell *cell_of(const struct target_counts *counts, const char *key)
{
    size_t at = (size_t)XXH3_64bits(key, strlen(key)) & (counts->cell_count - 1);

    while (counts->cells[at].key != NULL && strcmp(counts->cells[at].key, key) != 0)
        at = (at + 1) & (counts->cell_count - 1);
    return &counts->cells[at];
}

static void cells_grow(struct target_counts *counts)
{
    struct cell *old = counts->cells;
    size_t old_count = counts->cell_count;

    counts->cell_count *= 2;
    counts->cells = must(calloc(counts->cell_count, sizeof *counts->cells));
    for (size_t i = 0; i < old_count; i++)
        if (old[i].key != NULL)
            *cell_of(counts, old[i].key) = old[i];
    free(old);
}

static uint64_t key_count(struct target_counts *counts, const char *key)
{
    struct cell *cell = cell_of(counts, key);

    if (cell->key == NULL) {
        cell->key = must(strdup(key));
        cell->count = 1;
        if (++counts->used * 2 > counts->cell_count)
            cells_grow(counts);
        return 1;
    }
    return ++cell->count;
}

/* CRC-32 as in gzip (RFC 1952, 8), so that a test in any language can compute it. */
static uint32_t crc32_of(struct target_text text)
{
    static uint32_t table[256];
    uint32_t crc = UINT32_MAX;

    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t entry = i;
            for (int bit = 0; bit < 8; bit++)
                entry = entry & 1 ? entry >> 1 ^ UINT32_C(0xedb88320) : entry >> 1;
            table[i] = entry;
        }
    for (size_t i = 0; i < text.length; i++)
        crc = table[(crc ^ (unsigned char)text.bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static void journal_write(struct target_counts *counts, const char *key, struct target_text record)
{
    char line[512];
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    int length = snprintf(line, sizeof line, "%s\t%08" PRIx32 "-%zu\t%lld\n", key, crc32_of(record),
                          record.length, (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    assert(length > 0 && (size_t)length < sizeof line);
    if (write(counts->journal, line, (size_t)length) != length) {
        perror("target: journal");
        exit(74);
    }
}

void target_counts_apply(struct target_counts *counts, const char *key, struct target_text record)
{
    counts->totals.applied++;
    if (counts->keeps_keys && key_count(counts, key) > 1)
        counts->totals.duplicates++;
    if (counts->journal >= 0)
        journal_write(counts, key, record);
}

void target_counts_faulted(struct target_counts *counts, const char *key, bool is_applied, bool is_broken_off)
{
    if (!counts->keeps_keys)
        return;
    if (counts->fault_count == counts->fault_room) {
        counts->fault_room = counts->fault_room * 2 + 64;
        counts->faults = must(realloc(counts->faults, counts->fault_room * sizeof *counts->faults));
    }
    counts->faults[counts->fault_count++] =
        (struct fault_line){ must(strdup(key)), is_applied, is_broken_off };
}

uint64_t target_counts_of(const struct target_counts *counts, const char *key)
{
    return cell_of(counts, key)->count;
}

void target_counts_reset(struct target_counts *counts)
{
    struct target_totals *totals = &counts->totals;

    for (size_t i = 0; i < counts->cell_count; i++)
        free(counts->cells[i].key);
    memset(counts->cells, 0, counts->cell_count * sizeof *counts->cells);
    for (size_t i = 0; i < counts->fault_count; i++)
        free(counts->faults[i].key);
    counts->used = 0;
    counts->fault_count = 0;
    *totals = (struct target_totals){ .open = totals->open };
}

void target_counts_print(struct target_counts *counts, bool with_keys, FILE *out)
{
    const struct target_totals *totals = &counts->totals;
    const char *comma = "";

    fprintf(out,
            "{\"requests\":%" PRIu64 ",\"writes\":%" PRIu64 ",\"applied\":%" PRIu64 ",\"duplicates\":%" PRIu64
            ",\"connections\":%" PRIu64 ",\"open\":%" PRIu64 ",\"faulted\":%" PRIu64,
            totals->requests, totals->writes, totals->applied, totals->duplicates, totals->connections,
            totals->open, totals->faulted);
    if (with_keys) {
        fputs(",\"keys\":{", out);
        for (size_t i = 0; i < counts->cell_count; i++) {
            if (counts->cells[i].key == NULL)
                continue;
            fprintf(out, "%s\"%s\":%" PRIu64, comma, counts->cells[i].key, counts->cells[i].count);
            comma = ",";
        }
        fputs("}", out);
    }
    fputs("}\n", out);
}

void target_counts_print_faulted(struct target_counts *counts, FILE *out)
{
    fputs("[", out);
    for (size_t i = 0; i < counts->fault_count; i++)
        fprintf(out, "%s{\"key\":\"%s\",\"applied\":%s,\"broken_off\":%s}", i == 0 ? "" : ",",
                counts->faults[i].key, counts->faults[i].is_applied ? "true" : "false",
                counts->faults[i].is_broken_off ? "true" : "false");
    fputs("]\n", out);
}
