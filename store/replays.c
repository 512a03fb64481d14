/*
 * replays.c - replay windows.
 *
 * What has been sent again is an applied set under a pid of its own, as exact as that of a partition, and gone with
 * its window.  What is applied for the first time while the window is open stands in it too: nothing of that is to be sent
 * again.  A window is judged by its time in every batch, and closed by the first batch that may write.
 *
 * Its time is that of the day, which people and programs set.  Set forward, it ends a window early; set back, it would keep
 * one open for years, in which applied records are sent again: so no window is open for longer in one life of the program
 * than it was opened for.
 */
#include "replays.h"

#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "pairs.h"
#include "partitions.h"
#include "questions.h"

enum { REPLAYS_MAX = 1000 };

static bool is_over(const struct machine *machine, const struct replay *replay)
{
    return replay->row.until_ms <= machine->now.unix_ms ||
           (replay->end_ms != 0 && replay->end_ms <= machine->now.mono_ms);
}

/* Known once there is a batch with its time. */
static void work_out_end(const struct machine *machine, struct replay *replay)
{
    const struct replay_row *row = &replay->row;
    uint64_t begun_ms = row->opened_ms > machine->now.unix_ms ? row->opened_ms : machine->now.unix_ms;
    uint64_t left_ms = row->until_ms > begun_ms ? row->until_ms - begun_ms : 0;
    if (__builtin_add_overflow(machine->now.mono_ms, left_ms, &replay->end_ms))
        replay->end_ms = UINT64_MAX;
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

/* The window over PARTITION that holds OFFSET, or else begins next behind it; NULL: none. */
static struct replay *window_from(const struct machine *machine, const struct partition *partition,
                                  int64_t offset)
{
    struct replay *found = NULL;
    for (struct replay *replay = machine->replays; replay != NULL; replay = replay->next)
        if (replay->partition == partition && replay->row.last >= offset && !is_over(machine, replay) &&
            (found == NULL || replay->row.first < found->row.first))
            found = replay;
    return found;
}

struct replay_piece replays_piece_at(struct machine *machine, const struct partition *partition,
                                     int64_t offset, int64_t limit)
{
    struct replay *replay = partition->replay_count == 0 ? NULL : window_from(machine, partition, offset);
    if (replay == NULL)
        return (struct replay_piece){ limit, 0 };
    if (replay->row.first > offset)
        return (struct replay_piece){ lesser(limit, replay->row.first - 1), 0 };
    struct applied_piece piece =
        applied_piece_at(machine, partition, offset, lesser(limit, replay->row.last));
    if (!piece.is_applied)
        return (struct replay_piece){ piece.last, 0 };
    piece = applied_piece_at(machine, &replay->sent, offset, piece.last);
    return (struct replay_piece){ piece.last, piece.is_applied ? 0 : replay->row.id };
}

/* ---- windows ---------------------------------------------------------------------------------------------------- */

static struct replay *find(const struct machine *machine, uint64_t id)
{
    struct replay *replay = machine->replays;
    while (replay != NULL && replay->row.id != id)
        replay = replay->next;
    return replay;
}

void replays_sent(struct machine *machine, uint64_t id, int64_t first, int64_t last)
{
    struct replay *replay = find(machine, id);
    uint64_t count = (uint64_t)(last - first) + 1;
    machine->figures.replayed_count += count;
    if (replay == NULL)
        return;
    replay->row.replayed_count += count;
    applied_add(machine, &replay->sent, first, last);
}

void replays_first(struct machine *machine, const struct partition *partition, int64_t first, int64_t last)
{
    for (struct replay *replay = machine->replays; replay != NULL; replay = replay->next) {
        if (replay->partition != partition || replay->row.last < first || replay->row.first > last ||
            is_over(machine, replay))
            continue;
        int64_t from = replay->row.first > first ? replay->row.first : first;
        applied_add(machine, &replay->sent, from, lesser(last, replay->row.last));
    }
}

void replays_save(struct machine *machine, const struct replay *replay)
{
    struct key key = key_number(TABLE_REPLAYS, replay->row.id);
    struct value value;
    replay_row_write(&replay->row, &replay->sent.row, &value);
    rows_put(machine->rows, key_slice(&key), value_slice(&value));
}

/* The last of the list.  NULL: no memory. */
static struct replay *add(struct machine *machine, const struct replay_row *row, const struct part_row *sent,
                          struct partition *partition)
{
    struct replay *replay = calloc(1, sizeof *replay), **link = &machine->replays;
    if (replay == NULL)
        return NULL;
    replay->row = *row;
    replay->partition = partition;
    replay->sent.row = *sent;
    replay->sent.replay = replay;
    while (*link != NULL)
        link = &(*link)->next;
    *link = replay;
    partition->replay_count++;
    machine->figures.replay_open_count++;
    return replay;
}

static void close_window(struct machine *machine, struct replay *replay, const char *why)
{
    char detail[192];
    struct key key = key_number(TABLE_REPLAYS, replay->row.id);
    struct replay **link = &machine->replays;
    snprintf(detail, sizeof detail, "window %llu, %llu records sent again: %.120s",
             (unsigned long long)replay->row.id, (unsigned long long)replay->row.replayed_count, why);
    audit_event(machine, EVENT_REPLAY_CLOSED, replay->partition, replay->row.first, replay->row.last, detail);
    rows_delete(machine->rows, key_slice(&key));
    partitions_untouch(machine, &replay->sent);
    applied_drop(machine, replay->sent.row.pid);
    while (*link != replay)
        link = &(*link)->next;
    *link = replay->next;
    replay->partition->replay_count--;
    machine->figures.replay_open_count--;
    free(replay);
}

void replays_expire(struct machine *machine)
{
    for (struct replay *next, *replay = machine->replays; replay != NULL; replay = next) {
        next = replay->next;
        if (replay->end_ms == 0)
            work_out_end(machine, replay);
        if (is_over(machine, replay) && machine->mode != MACHINE_READ)
            close_window(machine, replay, "its time is over");
    }
}

uint64_t machine_window_until_ms(const struct machine *machine)
{
    uint64_t until_ms = UINT64_MAX;
    for (const struct replay *replay = machine->replays; replay != NULL; replay = replay->next)
        if (replay->row.until_ms < until_ms)
            until_ms = replay->row.until_ms;
    return until_ms;
}

void replays_close_all(struct machine *machine, const struct partition *partition, const char *why)
{
    for (struct replay *next, *replay = machine->replays; replay != NULL; replay = next) {
        next = replay->next;
        if (replay->partition == partition)
            close_window(machine, replay, why);
    }
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

void ask_replays(struct machine *machine, struct question *question)
{
    size_t limit = question_row_limit(question);
    if (!question_make_room(question, limit < REPLAYS_MAX ? limit : REPLAYS_MAX,
                            sizeof *question->ret.replays))
        return;
    for (struct replay *replay = machine->replays; replay != NULL; replay = replay->next) {
        if (is_over(machine, replay) || !question_is_about(question, replay->partition) ||
            replay->row.id <= question->after_id)
            continue;
        question->ret_count++;
        if (question->ret_row_count == limit)
            continue;
        struct replay_row *row = &question->ret.replays[question->ret_row_count++];
        *row = replay->row;
    }
}

static bool may_open(const struct machine *machine, const struct question *question,
                     const struct partition *partition)
{
    const struct replay *replay = window_from(machine, partition, question->first);
    return machine->figures.replay_open_count < REPLAYS_MAX &&
           (replay == NULL || replay->row.first > question->last);
}

void do_replay_open(struct machine *machine, struct question *question)
{
    struct partition *partition =
        partitions_find(machine, slice_of_text(question->topic), question->partition);
    if (partition == NULL || question->first < 0 || question->last < question->first ||
        question->until_ms <= machine->now.unix_ms) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    if (!may_open(machine, question, partition)) {
        question->ret_status = QUESTION_MISMATCH;
        return;
    }
    struct replay_row row = { .id = machine->counters.next_replay_id++,
                              .partition = question->partition,
                              .first = question->first,
                              .last = question->last,
                              .opened_ms = machine->now.unix_ms,
                              .until_ms = question->until_ms };
    struct part_row sent = {
        .pid = machine->counters.next_pid++, .seen_first = -1, .lowest = -1, .highest = -1
    };
    memcpy(row.topic, partition->topic, partition->topic_bytes + 1);
    machine->is_counters_dirty = true;
    struct replay *replay = add(machine, &row, &sent, partition);
    if (replay == NULL) {
        rows_spoil(machine->rows);
        return;
    }
    work_out_end(machine, replay);
    replays_save(machine, replay);
    audit_event(machine, EVENT_REPLAY_OPENED, partition, row.first, row.last, question->detail);
    question->ret_id = row.id;
}

void do_replay_close(struct machine *machine, struct question *question)
{
    struct replay *replay = find(machine, question->id);
    if (replay == NULL) {
        question->ret_status = QUESTION_NOT_FOUND;
        return;
    }
    question->ret_count = replay->row.replayed_count;
    close_window(machine, replay, question->detail);
}

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static bool load_row(struct machine *machine, uint64_t id, struct slice value)
{
    struct replay_row row;
    struct part_row sent;
    if (!replay_row_read(id, value, &row, &sent) || sent.pid >= machine->counters.next_pid ||
        id >= machine->counters.next_replay_id)
        return false;
    struct partition *partition = partitions_find(machine, slice_of_text(row.topic), row.partition);
    return partition != NULL && add(machine, &row, &sent, partition) != NULL;
}

void replays_load(struct machine *machine)
{
    struct slice value;
    uint64_t id;
    for (uint64_t at = 0; numbers_next(machine->rows, TABLE_REPLAYS, at, &id, &value); at = id + 1)
        if (!load_row(machine, id, value))
            rows_spoil(machine->rows);
}

void replays_forget(struct machine *machine)
{
    for (struct replay *next, *replay = machine->replays; replay != NULL; replay = next) {
        next = replay->next;
        free(replay);
    }
    machine->replays = NULL;
}
