/*
 * prober_context.c - finds each record's own JSON in its request.
 *
 * Of an action of a bulk request that is the document behind its action line; of everything else the element itself.
 */
#include "prober_context.h"
#include <stdlib.h>
#include "json_scan.h"

static struct slice record_json(const struct identified *identified, const struct record_site *site)
{
    struct slice bytes =
        slice_of(identified->body.at + site->whole.begin, site->whole.end - site->whole.begin);
    size_t end = 0;
    if (identified->shape != SHAPE_IS_BULK)
        return bytes;
    if (json_scan(bytes.at, bytes.byte_count, NULL, 0, &end) != JSON_DONE)
        return slice_of("", 0);
    return slice_of(bytes.at + end, bytes.byte_count - end);
}

static bool is_first_of_record(const struct record_site *site)
{
    return site->record != NO_RECORD && !site->is_repeat;
}

/* Slices for all records, and behind them the bytes. */
struct block {
    char *at;
    size_t used, bytes;
};

/* Room for one more.  False: no memory; what is there stays. */
static bool block_grow(struct block *block)
{
    size_t bytes = block->bytes * 2 + RECORD_CONTEXT_BYTES_MAX;
    if (block->bytes - block->used >= RECORD_CONTEXT_BYTES_MAX)
        return true;
    char *larger = realloc(block->at, bytes);
    if (larger == NULL)
        return false;
    block->at = larger;
    block->bytes = bytes;
    return true;
}

static struct slice *slices_of(const struct block *block)
{
    return (struct slice *)(void *)block->at;
}

/* What has been written lies in the order of the sites; only now it has its final place. */
static void slices_point(const struct block *block, const struct identified *identified)
{
    const char *at = block->at + identified->record_count * sizeof(struct slice);
    for (size_t i = 0; i < identified->site_count; i++) {
        if (!is_first_of_record(&identified->sites[i]))
            continue;
        struct slice *slice = &slices_of(block)[identified->sites[i].record];
        slice->at = at;
        at += slice->byte_count;
    }
}

struct slice *probe_contexts_new(const struct probe_template *url, const struct identified *identified)
{
    size_t used = identified->record_count * sizeof(struct slice);
    struct block block = { .at = calloc(1, used + RECORD_CONTEXT_BYTES_MAX),
                           .used = used,
                           .bytes = used + RECORD_CONTEXT_BYTES_MAX };
    for (size_t i = 0; block.at != NULL && i < identified->site_count; i++) {
        const struct record_site *site = &identified->sites[i];
        size_t bytes = 0;
        if (!is_first_of_record(site))
            continue;
        if (!block_grow(&block)) {
            free(block.at);
            return NULL;
        }
        probe_context_write(url, record_json(identified, site), block.at + block.used,
                            RECORD_CONTEXT_BYTES_MAX, &bytes);
        slices_of(&block)[site->record].byte_count = bytes;
        block.used += bytes;
    }
    if (block.at != NULL)
        slices_point(&block, identified);
    return slices_of(&block);
}
