/*
 * settle.c - what became of claimed records.
 *
 * An outcome changes only records that still belong to the claim which brings it: a settlement may come twice (the
 * shell repeats one whose commit failed), or after a person's decision.  A record that is sent again under a replay
 * window is still in the applied set: when it was refused or not sent, removing its open range lets that show again.
 */
#include "settle.h"

#include <assert.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "marks.h"
#include "opens.h"
#include "partitions.h"
#include "replays.h"
#include "replies.h"

void settle_applied(struct machine *machine, struct open_range *range)
{
    struct partition *partition = range->partition;
    int64_t first = range->first, last = range->row.last;
    record_mark *marks = range->marks;
    uint64_t replay_id = range->row.replay_id;
    range->marks = NULL;
    opens_remove(machine, range);
    applied_add(machine, partition, first, last);
    if (replay_id != 0)
        replays_sent(machine, replay_id, first, last);
    else if (partition->replay_count > 0)
        replays_first(machine, partition, first, last);
    if (marks != NULL)
        marks_put(machine, partition, first, marks, (size_t)(last - first) + 1);
    free(marks);
}

/* This claim had no effect, because nothing was sent or the target refused it: the record is what it was before, free or
 * in doubt.  A doubt that a policy re-opened in vain must not vanish: its first sending may have been applied. */
static void give_back(struct machine *machine, struct open_range *range, bool is_refused)
{
    if (range->row.attempts <= 1) {
        struct partition *partition = range->partition;
        int64_t last = range->row.last;
        opens_remove(machine, range);
        applied_set_free(machine, partition, last);
        return;
    }
    range->row.attempts -= !is_refused;
    opens_doubt(machine, range, range->row.cause,
                is_refused ? "sent again, and refused; an earlier sending may have been applied"
                           : "re-opened, and nothing was sent",
                machine->now.unix_ms);
    audit_event(machine, EVENT_IN_DOUBT, range->partition, range->first, range->row.last, range->row.detail);
}

static void settle_range(struct machine *machine, struct open_range *range,
                         const struct settlement *settlement, enum outcome outcome)
{
    machine->figures.changed_record_count += opens_count(range);
    switch (outcome) {
    case OUTCOME_APPLIED:
        if (settlement->record_count == 1)
            replies_keep(machine, range->partition, range->first, &settlement->reply);
        settle_applied(machine, range);
        break;
    case OUTCOME_NOT_APPLIED:
    case OUTCOME_NOT_SENT:
        give_back(machine, range, outcome == OUTCOME_NOT_APPLIED);
        break;
    case OUTCOME_UNKNOWN:
        opens_doubt(machine, range, settlement->cause, settlement->detail, machine->now.unix_ms);
        audit_event(machine, EVENT_IN_DOUBT, range->partition, range->first, range->row.last,
                    range->row.detail);
        break;
    }
}

static void settle_stretch(struct machine *machine, struct partition *partition, int64_t first, int64_t last,
                           const struct settlement *settlement, enum outcome outcome)
{
    for (int64_t at = first; rows_status(machine->rows) == ROWS_OK;) {
        struct open_range *range = opens_from(partition, at);
        if (range == NULL || range->first > last)
            return;
        int64_t part_first = range->first > at ? range->first : at;
        int64_t part_last = range->row.last < last ? range->row.last : last;
        bool is_ours = range->row.state == OPEN_INTENT && range->row.claim_id == settlement->claim_id;
        if (is_ours && (range = opens_carve(machine, range, part_first, part_last)) != NULL)
            settle_range(machine, range, settlement, outcome);
        if (part_last == last)
            return;
        at = part_last + 1;
    }
}

/* Neighbours from INDEX on that the claim got and that ended alike; 0: the record was not the claim's to send. */
static size_t alike(const struct settlement *settlement, size_t index)
{
    if (settlement->verdicts[index] != VERDICT_NEW)
        return 0;
    size_t most = records_stretch(settlement->records, settlement->record_count, index), count = 1;
    while (count < most && settlement->verdicts[index + count] == VERDICT_NEW &&
           settlement->outcomes[index + count] == settlement->outcomes[index])
        count++;
    return count;
}

void machine_settle(struct machine *machine, const struct settlement *settlement)
{
    assert(machine->mode != MACHINE_READ);
    for (size_t index = 0; index < settlement->record_count;) {
        const struct record_key *key = &settlement->records[index].key;
        size_t count = alike(settlement, index);
        struct partition *partition =
            count == 0 ? NULL : partitions_find(machine, key->topic, key->partition);
        if (partition != NULL)
            settle_stretch(machine, partition, key->offset, key->offset + ((int64_t)count - 1), settlement,
                           settlement->outcomes[index]);
        index += count == 0 ? 1 : count;
    }
}

static void release_in(struct machine *machine, struct partition *partition, uint64_t claim_id)
{
    for (size_t i = partition->opens.count; i > 0; i--) {
        struct open_range *range = partition->opens.at[i - 1];
        if (range->row.state == OPEN_INTENT && range->row.claim_id == claim_id)
            give_back(machine, range, false);
    }
}

void machine_release(struct machine *machine, uint64_t claim_id)
{
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition))
        release_in(machine, partition, claim_id);
}
