/*
 * replies.c - the target's answers, kept to be given again.
 *
 * RING rows give them an order of age; REPLIES rows hold them.  An answer that equals the one which is made up for a
 * forgotten one (200, no type, no body) takes no room.
 */
#include "replies.h"

#include <stdlib.h>

enum { EVICT_MAX = 50 /* two rows each: a commit that makes room must itself need little */ };

static bool is_worth_keeping(const struct machine *machine, const struct stored_reply *reply)
{
    /* What the proxy says by default where no answer is kept. */
    bool is_plain =
        reply->status == 200 && reply->content_type.byte_count == 0 && reply->body.byte_count == 0;
    return machine->settings.replies > 0 && machine->mode == MACHINE_OPEN && reply->status >= 100 &&
           reply->status <= 599 && !is_plain && reply->content_type.byte_count <= REPLY_TYPE_BYTES_MAX &&
           reply->body.byte_count <= machine->settings.reply_bytes_max;
}

/* The answer that SEQUENCE put there; a newer one of the same record stays. */
static void evict_reply(struct machine *machine, uint64_t sequence, uint32_t pid, int64_t offset)
{
    struct key key = key_pair(TABLE_REPLIES, pid, (uint64_t)offset);
    struct slice value;
    struct reply_row row;
    if (!rows_get(machine->rows, key_slice(&key), &value))
        return;
    if (!reply_row_read(value, &row))
        rows_spoil(machine->rows);
    else if (row.sequence == sequence)
        rows_delete(machine->rows, key_slice(&key));
}

/* The oldest leave several at a time: they lie in pages of their own, which each commit would else write too. */
void replies_evict(struct machine *machine)
{
    struct counters_row *counters = &machine->counters;
    uint64_t kept_max = machine->is_room_short ? 0 : machine->settings.replies;
    uint64_t kept = counters->ring_next - counters->ring_first;
    uint64_t leaving = kept > kept_max ? kept - kept_max + kept_max / 16 : 0;
    for (size_t i = 0; i < EVICT_MAX && i < leaving; i++) {
        struct key key = key_number(TABLE_RING, counters->ring_first);
        struct slice value;
        uint32_t pid;
        int64_t offset;
        if (rows_get(machine->rows, key_slice(&key), &value)) {
            if (ring_read(value, &pid, &offset))
                evict_reply(machine, counters->ring_first, pid, offset);
            rows_delete(machine->rows, key_slice(&key));
        }
        counters->ring_first++;
        machine->is_counters_dirty = true;
    }
}

void replies_keep(struct machine *machine, const struct partition *partition, int64_t offset,
                  const struct stored_reply *reply)
{
    if (!is_worth_keeping(machine, reply))
        return;
    struct reply_row row = { machine->counters.ring_next++, *reply };
    struct key key = key_pair(TABLE_REPLIES, partition->row.pid, (uint64_t)offset);
    size_t byte_count = reply_row_write(&row, machine->reply_bytes);
    rows_put(machine->rows, key_slice(&key), slice_of((const char *)machine->reply_bytes, byte_count));
    struct value value;
    key = key_number(TABLE_RING, row.sequence);
    ring_write(partition->row.pid, offset, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    machine->is_counters_dirty = true;
    replies_evict(machine);
}

void replies_give(struct machine *machine, const struct partition *partition, int64_t offset,
                  struct claim *claim)
{
    struct key key = key_pair(TABLE_REPLIES, partition->row.pid, (uint64_t)offset);
    struct slice value;
    struct reply_row row;
    if (!rows_get(machine->rows, key_slice(&key), &value))
        return;
    if (!reply_row_read(value, &row)) {
        rows_spoil(machine->rows);
        return;
    }
    struct slice type = row.reply.content_type, body = row.reply.body;
    char *bytes = malloc(type.byte_count + body.byte_count + 1);
    if (bytes == NULL)
        return; /* as one that is no longer kept */
    memcpy(bytes, type.at, type.byte_count);
    memcpy(bytes + type.byte_count, body.at, body.byte_count);
    claim->reply_bytes = bytes;
    claim->ret_reply = (struct stored_reply){ row.reply.status, slice_of(bytes, type.byte_count),
                                              slice_of(bytes + type.byte_count, body.byte_count) };
}
