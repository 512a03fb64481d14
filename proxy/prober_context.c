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

/* Two passes: how much there is, then the slices into what has grown to its final place. */
struct slice *probe_contexts_new(const struct probe_template *url, const struct identified *identified)
{
    size_t count = identified->record_count, used = count * sizeof(struct slice), room = used + 4096;
    char *block = calloc(1, room);
    struct slice *contexts = (struct slice *)(void *)block;
    for (size_t i = 0; block != NULL && i < identified->site_count; i++) {
        const struct record_site *site = &identified->sites[i];
        size_t bytes = 0;
        if (site->record == NO_RECORD || site->is_repeat)
            continue;
        if (room - used < RECORD_CONTEXT_BYTES_MAX) {
            char *larger = realloc(block, room * 2 + RECORD_CONTEXT_BYTES_MAX);
            if (larger == NULL) {
                free(block);
                return NULL;
            }
            room = room * 2 + RECORD_CONTEXT_BYTES_MAX;
            block = larger;
            contexts = (struct slice *)(void *)block;
        }
        probe_context_write(url, record_json(identified, site), block + used, RECORD_CONTEXT_BYTES_MAX,
                            &bytes);
        contexts[site->record].byte_count = bytes;
        used += bytes;
    }
    /* in the order they were written, which is that of the sites */
    size_t at = count * sizeof(struct slice);
    for (size_t i = 0; block != NULL && i < identified->site_count; i++) {
        const struct record_site *site = &identified->sites[i];
        if (site->record == NO_RECORD || site->is_repeat)
            continue;
        contexts[site->record].at = block + at;
        at += contexts[site->record].byte_count;
    }
    return contexts;
}
