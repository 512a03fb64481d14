/*
 * machine.c - the claim machine's life: made, loaded from the rows, fed in batches, forgotten and loaded again.
 */
#include "machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "marks.h"
#include "opens.h"
#include "partitions.h"
#include "replays.h"
#include "replies.h"
#include "settle.h"
#include "waiters.h"

static const struct counters_row counters_at_first = {
    .next_pid = 1, .next_doubt_id = 1, .next_event_id = 1, .next_conflict_id = 1, .next_replay_id = 1
};

struct machine *machine_new(const struct machine_settings *settings, struct machine_answers answers)
{
    struct machine *machine = calloc(1, sizeof *machine);
    if (machine == NULL)
        return NULL;
    machine->settings = *settings;
    machine->answers = answers;
    machine->counters = counters_at_first;
    machine->slots = calloc(CHUNK_SLOTS, sizeof machine->slots[0]);
    machine->mark_slots = calloc(MARK_SLOTS, sizeof machine->mark_slots[0]);
    machine->reply_bytes =
        malloc((size_t)settings->reply_bytes_max + REPLY_HEAD_BYTES + REPLY_TYPE_BYTES_MAX);
    machine->ended = calloc(ENDED_DOUBTS, sizeof machine->ended[0]);
    if (machine->slots == NULL || machine->mark_slots == NULL || machine->reply_bytes == NULL ||
        machine->ended == NULL) {
        machine_free(machine);
        return NULL;
    }
    return machine;
}

void machine_free(struct machine *machine)
{
    if (machine == NULL)
        return;
    assert(machine->first_waiter == NULL);
    replays_forget(machine);
    partitions_forget(machine);
    free(machine->slots);
    free(machine->mark_slots);
    free(machine->ended);
    free(machine->reply_bytes);
    free(machine);
}

void machine_load(struct machine *machine, struct rows *rows, uint64_t boot)
{
    struct key key = key_meta(META_COUNTERS);
    struct slice value;
    machine->rows = rows;
    machine->boot = boot;
    machine->counters = counters_at_first;
    if (rows_get(rows, key_slice(&key), &value) && !counters_row_read(value, &machine->counters))
        rows_spoil(rows);
    partitions_load(machine);
    opens_load(machine);
    replays_load(machine);
    audit_load_conflicts(machine);
    machine->kept_figures = machine->figures;
    machine->rows = NULL;
}

void machine_forget(struct machine *machine)
{
    machine->rows = NULL;
    replays_forget(machine);
    partitions_forget(machine);
    applied_forget(machine);
    memset(machine->ended, 0, ENDED_DOUBTS * sizeof machine->ended[0]);
    assert(machine->doubts == NULL);
    machine->is_counters_dirty = false;
    machine->figures = machine->kept_figures;
    machine->figures.in_doubt_records = 0; /* counted again from the rows, as is what follows */
    machine->figures.conflict_open_count = 0;
    machine->figures.replay_open_count = 0;
    memset(machine->figures.doubts_by_cause, 0, sizeof machine->figures.doubts_by_cause);
}

void machine_recover(struct machine *machine)
{
    uint64_t recovered_count = 0;
    char detail[96];
    for (struct partition *partition = partitions_next(machine, NULL); partition != NULL;
         partition = partitions_next(machine, partition)) {
        for (size_t i = partition->opens.count; i > 0; i--) {
            struct open_range *range = partition->opens.at[i - 1];
            if (range->row.state != OPEN_INTENT)
                continue;
            recovered_count += opens_count(range);
#ifdef BREAK_RECOVERY
            settle_applied(machine, range);
#else
            snprintf(detail, sizeof detail, "sinkonce ended between sending and result, boot %llu",
                     (unsigned long long)range->row.boot);
            opens_doubt(machine, range, DOUBT_CRASH, detail, range->row.since_ms);
#endif
        }
    }
    snprintf(detail, sizeof detail, "%llu records were claimed when the process ended: in doubt now",
             (unsigned long long)recovered_count);
    if (recovered_count > 0)
        machine_note(machine, EVENT_RECOVERED, detail);
}

void machine_begin(struct machine *machine, struct rows *rows, struct machine_time now,
                   enum machine_mode mode)
{
    assert(machine->rows == NULL);
    machine->rows = rows;
    machine->now = now;
    machine->mode = mode;
    machine->is_room_short = false;
    replays_expire(machine);
}

void machine_room(struct machine *machine, bool is_short)
{
    machine->is_room_short = is_short;
    if (is_short)
        replies_evict(machine);
}

/* Memory that is newer than its rows comes only together with changed rows: a batch that changed none stays without
 * a commit. */
void machine_end(struct machine *machine)
{
    marks_flush(machine);
    if (rows_is_changed(machine->rows)) {
        applied_flush(machine);
        partitions_flush(machine);
        if (machine->is_counters_dirty) {
            struct key key = key_meta(META_COUNTERS);
            struct value value;
            counters_row_write(&machine->counters, &value);
            rows_put(machine->rows, key_slice(&key), value_slice(&value));
            machine->is_counters_dirty = false;
        }
    }
    machine->rows = NULL;
}

void machine_keep(struct machine *machine)
{
    machine->kept_figures = machine->figures;
}

void machine_note(struct machine *machine, enum event_kind kind, const char *detail)
{
    if (machine->mode != MACHINE_READ)
        audit_event(machine, kind, NULL, -1, -1, detail);
}

void machine_probe(struct machine *machine)
{
    struct key key = key_meta(META_COUNTERS);
    struct value value;
    machine->counters.probe_count++;
    counters_row_write(&machine->counters, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    machine->is_counters_dirty = true;
}

size_t machine_waiter_count(const struct machine *machine)
{
    return machine->waiter_count;
}

bool machine_has_woken(const struct machine *machine)
{
    return machine->woken_count > 0;
}

uint64_t machine_deadline_ms(const struct machine *machine)
{
    uint64_t deadline_ms = UINT64_MAX;
    for (const struct waiter *waiter = machine->first_waiter; waiter != NULL; waiter = waiter->next)
        if (waiter->deadline_ms < deadline_ms)
            deadline_ms = waiter->deadline_ms;
    return deadline_ms;
}

static uint64_t oldest_doubt_ms(const struct machine *machine)
{
    uint64_t oldest_ms = 0;
    for (const struct open_range *range = machine->doubts; range != NULL; range = range->next_doubt)
        if (oldest_ms == 0 || range->row.since_ms < oldest_ms)
            oldest_ms = range->row.since_ms;
    return oldest_ms;
}

void machine_figures_get(struct machine *machine, struct machine_figures *ret_figures)
{
    if (machine->is_oldest_stale)
        machine->figures.in_doubt_oldest_ms = oldest_doubt_ms(machine);
    machine->is_oldest_stale = false;
    machine->figures.partition_count = machine->partition_count;
    *ret_figures = machine->figures;
}
