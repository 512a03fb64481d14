/*
 * owed.c - what the ledger still owes after commits that failed.
 */
#include "owed.h"

#include <assert.h>
#include <stdlib.h>

/* A settlement with memory of its own. */
struct kept {
    struct settlement settlement;
    struct kept *next;
    char bytes[]; /* records, topics, verdicts, outcomes, answer, detail */
};

bool owed_make_room(struct owed *owed, size_t count)
{
    size_t needed = owed->release_count + count;
    if (needed <= owed->release_room)
        return true;
    uint64_t *releases = realloc(owed->releases, 2 * needed * sizeof releases[0]);
    if (releases == NULL)
        return false;
    owed->releases = releases;
    owed->release_room = 2 * needed;
    return true;
}

void owed_release(struct owed *owed, uint64_t claim_id)
{
    assert(owed->release_count < owed->release_room);
    owed->releases[owed->release_count++] = claim_id;
}

static void *copy_bytes(char **at, const void *bytes, size_t byte_count)
{
    void *copy = *at;
    if (byte_count > 0)
        memcpy(copy, bytes, byte_count);
    *at += (byte_count + 7) & ~(size_t)7;
    return copy;
}

static struct slice copy_slice(char **at, struct slice slice)
{
    return slice_of(copy_bytes(at, slice.at, slice.byte_count), slice.byte_count);
}

static size_t kept_bytes(const struct settlement *settlement)
{
    size_t count = settlement->record_count;
    size_t byte_count = count * (sizeof(struct record) + sizeof(enum verdict) + sizeof(enum outcome));
    for (size_t i = 0; i < count; i++)
        byte_count += settlement->records[i].key.topic.byte_count + 8;
    return byte_count + settlement->reply.content_type.byte_count + settlement->reply.body.byte_count +
           DETAIL_BYTES_MAX + 1 + 8 * 6;
}

/* NULL: no memory. */
static struct kept *kept_new(const struct settlement *settlement)
{
    struct kept *kept = calloc(1, sizeof *kept + kept_bytes(settlement));
    if (kept == NULL)
        return NULL;
    size_t count = settlement->record_count;
    char *at = kept->bytes;
    kept->settlement = *settlement;
    struct record *records = copy_bytes(&at, settlement->records, count * sizeof records[0]);
    for (size_t i = 0; i < count; i++)
        records[i].key.topic = copy_slice(&at, records[i].key.topic);
    kept->settlement.records = records;
    kept->settlement.verdicts = copy_bytes(&at, settlement->verdicts, count * sizeof settlement->verdicts[0]);
    kept->settlement.outcomes = copy_bytes(&at, settlement->outcomes, count * sizeof settlement->outcomes[0]);
    kept->settlement.reply.content_type = copy_slice(&at, settlement->reply.content_type);
    kept->settlement.reply.body = copy_slice(&at, settlement->reply.body);
    const char *detail = settlement->detail == NULL ? "" : settlement->detail;
    char *words = copy_bytes(&at, detail, strnlen(detail, DETAIL_BYTES_MAX));
    kept->settlement.detail = words; /* the zero behind it is calloc's */
    return kept;
}

bool owed_keep(struct owed *owed, const struct settlement *settlement)
{
    struct kept *kept = kept_new(settlement);
    if (kept == NULL)
        return false;
    if (owed->last_kept != NULL)
        owed->last_kept->next = kept;
    else
        owed->first_kept = kept;
    owed->last_kept = kept;
    return true;
}

bool owed_is_empty(const struct owed *owed)
{
    return owed->release_count == 0 && owed->first_kept == NULL;
}

void owed_pay(const struct owed *owed, struct machine *machine)
{
    for (size_t i = 0; i < owed->release_count; i++)
        machine_release(machine, owed->releases[i]);
    for (const struct kept *kept = owed->first_kept; kept != NULL; kept = kept->next)
        machine_settle(machine, &kept->settlement);
}

void owed_clear(struct owed *owed)
{
    for (struct kept *next, *kept = owed->first_kept; kept != NULL; kept = next) {
        next = kept->next;
        free(kept);
    }
    free(owed->releases);
    *owed = (struct owed){ 0 };
}
