/*
 * audit.c - events (a ring of the last thousand) and undecided conflicts.
 */
#include "audit.h"

#include <stdio.h>
#include <stdlib.h>
#include "pairs.h"
#include "partitions.h"

/* ROW says what it is about; the rest is filled in. */
static void add_event(struct machine *machine, struct event_row *row, enum event_kind kind,
                      const char *detail)
{
    row->id = machine->counters.next_event_id++;
    row->time_ms = machine->now.unix_ms;
    row->kind = kind;
    size_t byte_count = strnlen(detail, sizeof row->detail - 1);
    memcpy(row->detail, detail, byte_count);
    struct key key = key_number(TABLE_EVENTS, row->id);
    struct value value;
    event_row_write(row, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
    machine->is_counters_dirty = true;
    if (row->id >= EVENTS_MAX) {
        key = key_number(TABLE_EVENTS, row->id - EVENTS_MAX);
        rows_delete(machine->rows, key_slice(&key));
    }
}

void audit_event(struct machine *machine, enum event_kind kind, const struct partition *partition,
                 int64_t first, int64_t last, const char *detail)
{
    struct event_row row = { .partition = partition == NULL ? -1 : partition->number,
                             .first = first,
                             .last = last };
    if (partition != NULL)
        memcpy(row.topic, partition->topic, partition->topic_bytes + 1);
    add_event(machine, &row, kind, detail);
}

void audit_topic_event(struct machine *machine, enum event_kind kind, const char *topic, const char *detail)
{
    struct event_row row = { .partition = -1, .first = -1, .last = -1 };
    snprintf(row.topic, sizeof row.topic, "%s", topic);
    add_event(machine, &row, kind, detail);
}

static void note_conflict(struct machine *machine, const struct partition *partition,
                          const struct conflict_row *row)
{
    char detail[160];
    snprintf(detail, sizeof detail, "another record at these coordinates: mark %08x is kept, %08x came; %s",
             row->stored, row->seen,
             row->is_tail ? "older ones do not differ as far as is known: has the log been cut?"
                          : "it lies at the beginning or far back: has the topic been created anew?");
    audit_event(machine, EVENT_CONFLICT, partition, row->offset, row->offset,
                row->is_first_sight ? "first seen above offset 0, and held" : detail);
}

void audit_conflict(struct machine *machine, struct partition *partition, const struct conflict_row *what)
{
    struct conflict_row *row = malloc(sizeof *row);
    if (row == NULL) {
        rows_spoil(machine->rows);
        return;
    }
    *row = *what;
    row->id = machine->counters.next_conflict_id++;
    machine->is_counters_dirty = true;
    memcpy(row->topic, partition->topic, partition->topic_bytes + 1);
    row->partition = partition->number;
    row->since_ms = machine->now.unix_ms;
    row->count = 1;
    partition->conflict = row;
    partition->row.conflict_id = row->id;
    machine->figures.conflict_count++;
    machine->figures.conflict_open_count++;
    partitions_touch(machine, partition);
    note_conflict(machine, partition, row);
}

void audit_close_conflict(struct machine *machine, struct partition *partition)
{
    struct key key = key_number(TABLE_CONFLICTS, partition->conflict->id);
    rows_delete(machine->rows, key_slice(&key));
    free(partition->conflict);
    partition->conflict = NULL;
    partition->row.conflict_id = 0;
    machine->figures.conflict_open_count--;
    partitions_touch(machine, partition);
}

void audit_restore_conflict(struct machine *machine, struct partition *partition,
                            const struct conflict_row *row)
{
    partition->conflict = malloc(sizeof *row);
    if (partition->conflict == NULL) {
        rows_spoil(machine->rows);
        return;
    }
    *partition->conflict = *row;
    partition->row.conflict_id = row->id;
    machine->figures.conflict_open_count++;
    partitions_touch(machine, partition);
}

static bool load_conflict(struct machine *machine, uint64_t id, struct slice value)
{
    struct conflict_row row;
    uint32_t pid;
    if (!conflict_row_read(id, value, &row, &pid))
        return false;
    struct partition *partition = partitions_find(machine, slice_of_text(row.topic), row.partition);
    if (partition == NULL || partition->row.pid != pid || partition->row.conflict_id != id)
        return false;
    partition->conflict = malloc(sizeof row);
    if (partition->conflict == NULL)
        return false;
    *partition->conflict = row;
    machine->figures.conflict_open_count++;
    return true;
}

void audit_load_conflicts(struct machine *machine)
{
    struct slice value;
    uint64_t id;
    for (uint64_t at = 0; numbers_next(machine->rows, TABLE_CONFLICTS, at, &id, &value); at = id + 1)
        if (!load_conflict(machine, id, value))
            rows_spoil(machine->rows);
}
