/*
 * claims.c - may these records be sent?
 *
 * A claim is judged as a whole before anything is changed, stretch by stretch of neighbouring offsets:
 *
 *     any conflict            answered at once, nothing is claimed
 *     any flight, held doubt  it waits for that range, holding nothing; judged again when the range changes, and
 *                             answered as it stands when its time is over
 *     all applied             answered, nothing is written
 *     too many partitions     refused, when one was never met
 *     else                    what is new becomes INTENT, what a policy re-opens too, all or none
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "applied.h"
#include "audit.h"
#include "firsts.h"
#include "marks.h"
#include "opens.h"
#include "partitions.h"
#include "replays.h"
#include "replies.h"
#include "settle.h"
#include "waiters.h"

/* What was found.  Finding it has changed nothing but a conflict that was known before (widen_conflict()). */
struct judgement {
    size_t fresh_count, replayed_count, retried_count, assumed_count, folded_count;
    bool is_conflict;
    struct open_range *hindrance; /* borrowed: the first flight or held doubt */
    struct partition *reply_from; /* borrowed: of the last applied stretch */
    /* the first contradiction that is not written down yet */
    const struct record *offender; /* borrowed from the claim; NULL: none */
    record_mark stored;
    bool is_first_sight;
    bool has_unknown;     /* a partition that was never met */
    struct firsts firsts; /* owned; found when first needed */
};

/* How many would be INTENT. */
static size_t claims_count(const struct judgement *judgement)
{
    return judgement->fresh_count + judgement->replayed_count + judgement->retried_count;
}

/* Neighbours of one partition. */
struct stretch {
    struct partition *partition; /* borrowed; NULL: never met */
    const struct record *records;
    enum verdict *verdicts;
    size_t count;
    const struct slice *contexts; /* NULL, or one for each record */
};

static void fill(enum verdict verdicts[], size_t count, enum verdict verdict)
{
    for (size_t i = 0; i < count; i++)
        verdicts[i] = verdict;
}

static struct stretch stretch_at(struct machine *machine, const struct claim *claim, size_t index)
{
    const struct record_key *key = &claim->records[index].key;
    assert(key->offset >= 0 && key->partition >= 0);
    return (struct stretch){ partitions_find(machine, key->topic, key->partition), &claim->records[index],
                             &claim->ret_verdicts[index],
                             records_stretch(claim->records, claim->record_count, index),
                             claim->contexts == NULL ? NULL : &claim->contexts[index] };
}

static int64_t first_of(const struct stretch *stretch)
{
    return stretch->records[0].key.offset;
}

static int64_t last_of(const struct stretch *stretch)
{
    return stretch->records[stretch->count - 1].key.offset;
}

static struct stretch stretch_part(const struct stretch *stretch, int64_t first, int64_t last)
{
    size_t skipped = (size_t)(first - first_of(stretch));
    return (struct stretch){ stretch->partition, &stretch->records[skipped], &stretch->verdicts[skipped],
                             (size_t)(last - first) + 1,
                             stretch->contexts == NULL ? NULL : &stretch->contexts[skipped] };
}

/* In the same partition, and older. */
static bool is_before(const struct record *record, const struct record *other)
{
    return record->key.offset < other->key.offset && record->key.partition == other->key.partition &&
           slice_equals(record->key.topic, other->key.topic);
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

static void judge_contradiction(struct judgement *judgement, const struct stretch *stretch, size_t index,
                                record_mark stored)
{
    const struct record *record = &stretch->records[index];
    judgement->is_conflict = true;
    fill(&stretch->verdicts[index], 1, VERDICT_CONFLICT);
    if (judgement->offender != NULL && !is_before(record, judgement->offender))
        return;
    judgement->offender = record;
    judgement->stored = stored;
}

/* A partition that was never met and does not begin at 0: did we lose our memory, or it its beginning?  Its records may
 * stand apart in the claim, the first of them behind others. */
static bool is_first_sight_held(const struct machine *machine, struct judgement *judgement,
                                const struct claim *claim, const struct stretch *stretch)
{
    if (!machine->settings.is_first_sight_held || first_of(stretch) == 0)
        return false;
    if (judgement->is_first_sight) /* one reason is enough to hold all */
        return true;
    if (judgement->firsts.count == 0 && !firsts_find(machine, claim, &judgement->firsts))
        return true; /* no memory to look: asked again, it may be there */
    return firsts_lowest(&judgement->firsts, &stretch->records[0].key) > 0;
}

static void judge_unknown_partition(const struct machine *machine, struct judgement *judgement,
                                    const struct claim *claim, const struct stretch *stretch)
{
    bool is_held = is_first_sight_held(machine, judgement, claim, stretch);
    judgement->has_unknown = true;
    fill(stretch->verdicts, stretch->count, is_held ? VERDICT_CONFLICT : VERDICT_NEW);
    if (!is_held) {
        judgement->fresh_count += stretch->count;
        return;
    }
    judge_contradiction(judgement, stretch, 0, MARK_NONE);
    judgement->is_first_sight = judgement->offender == &stretch->records[0];
}

static enum verdict judge_doubt(const struct machine *machine, struct judgement *judgement,
                                struct open_range *range, size_t count)
{
    switch (machine->settings.policy) {
    case POLICY_RETRY:
        judgement->retried_count += count;
        return VERDICT_NEW;
    case POLICY_ASSUME_APPLIED:
        judgement->assumed_count += count;
        return VERDICT_APPLIED;
    case POLICY_HOLD:
        break;
    }
    if (judgement->hindrance == NULL)
        judgement->hindrance = range;
    return VERDICT_IN_DOUBT;
}

static void judge_open(const struct machine *machine, struct judgement *judgement, const struct stretch *part,
                       struct open_range *range)
{
    enum verdict verdict = VERDICT_IN_FLIGHT;
    if (range->row.state == OPEN_IN_DOUBT)
        verdict = judge_doubt(machine, judgement, range, part->count);
    else if (judgement->hindrance == NULL)
        judgement->hindrance = range;
    fill(part->verdicts, part->count, verdict);
    for (size_t i = 0; machine->settings.is_identity_checked && range->marks != NULL && i < part->count;
         i++) {
        record_mark stored = opens_mark(range, part->records[i].key.offset);
        if (marks_contradict(stored, part->records[i].mark))
            judge_contradiction(judgement, part, i, stored);
    }
}

static void judge_applied(struct machine *machine, struct judgement *judgement, const struct stretch *part,
                          bool is_folded)
{
    size_t index;
    record_mark stored;
    struct stretch rest = *part;
    fill(part->verdicts, part->count, VERDICT_APPLIED);
    judgement->reply_from = part->partition;
    judgement->folded_count += is_folded ? part->count : 0;
    while (rest.count > 0 &&
           marks_find_contradiction(machine, rest.partition, rest.records, rest.count, &index, &stored)) {
        judge_contradiction(judgement, &rest, index, stored);
        rest = (struct stretch){ rest.partition, rest.records + index + 1, rest.verdicts + index + 1,
                                 rest.count - index - 1, NULL };
    }
}

/* Of an applied PART, what lies in a replay window and has not been sent again under it yet. */
static void judge_replays(struct machine *machine, struct judgement *judgement, const struct stretch *part,
                          bool is_folded)
{
    int64_t last = last_of(part);
    for (int64_t at = first_of(part);;) {
        struct replay_piece piece = replays_piece_at(machine, part->partition, at, last);
        struct stretch some = stretch_part(part, at, piece.last);
        for (size_t i = 0; piece.id != 0 && i < some.count; i++)
            if (some.verdicts[i] == VERDICT_APPLIED)
                some.verdicts[i] = VERDICT_NEW;
        judgement->replayed_count += piece.id != 0 ? some.count : 0;
        judgement->folded_count -= piece.id != 0 && is_folded ? some.count : 0;
        if (piece.last == last)
            return;
        at = piece.last + 1;
    }
}

/* Does another record at OFFSET mean that the log's end was cut off?  Then something older is known, and nothing of it
 * is contradicted; a topic that was created anew differs from its beginning on.  Too far back for the dense marks, only
 * a sample has shown it, and the neighbours are not known. */
static bool is_tail(const struct machine *machine, const struct partition *partition, int64_t offset)
{
    const struct part_row *row = &partition->row;
    if (partition->opens.count > 0 && partition->opens.at[0]->first < offset && row->highest < 0)
        return true;
    return row->highest >= 0 && offset > row->lowest && offset > row->seen_first &&
           row->highest - offset <= (int64_t)machine->settings.marks;
}

/* A delivery to a partition that waits may show that more differs than was known. */
static void widen_conflict(struct machine *machine, const struct stretch *stretch)
{
    struct conflict_row *conflict = stretch->partition->conflict;
    size_t index;
    record_mark stored;
    conflict->count++; /* reaches the disk with the next commit, and needs none of its own */
    partitions_touch(machine, stretch->partition);
    if (conflict->is_first_sight || first_of(stretch) >= conflict->offset ||
        !marks_find_contradiction(machine, stretch->partition, stretch->records, stretch->count, &index,
                                  &stored) ||
        stretch->records[index].key.offset >= conflict->offset)
        return;
    conflict->offset = stretch->records[index].key.offset;
    conflict->stored = stored;
    conflict->seen = stretch->records[index].mark;
    conflict->is_tail = is_tail(machine, stretch->partition, conflict->offset);
}

/* Nobody holds FIRST to LAST; what of them is known?  Returns where that ends. */
static int64_t judge_free(struct machine *machine, struct judgement *judgement, const struct stretch *stretch,
                          int64_t first, int64_t last)
{
    struct applied_piece piece = applied_piece_at(machine, stretch->partition, first, last);
    struct stretch part = stretch_part(stretch, first, piece.last);
#ifdef BREAK_DEDUP
    piece.is_applied = false;
#endif
    if (piece.is_applied) {
        judge_applied(machine, judgement, &part, piece.is_folded);
        if (part.partition->replay_count > 0)
            judge_replays(machine, judgement, &part, piece.is_folded);
    } else {
        fill(part.verdicts, part.count, VERDICT_NEW);
        judgement->fresh_count += part.count;
    }
    return piece.last;
}

/* Nothing here steps past LAST: it may be the last offset there is. */
static void judge_stretch(struct machine *machine, struct judgement *judgement, const struct stretch *stretch)
{
    int64_t last = last_of(stretch), part_last;
    for (int64_t at = first_of(stretch);; at = part_last + 1) {
        struct open_range *range = opens_from(stretch->partition, at);
        if (range != NULL && range->first <= at) {
            part_last = lesser(last, range->row.last);
            struct stretch part = stretch_part(stretch, at, part_last);
            judge_open(machine, judgement, &part, range);
        } else {
            int64_t free_last = range == NULL ? last : lesser(last, range->first - 1);
            part_last = judge_free(machine, judgement, stretch, at, free_last);
        }
        if (part_last == last)
            return;
    }
}

static struct judgement judge(struct machine *machine, struct claim *claim)
{
    struct judgement judgement = { 0 };
    for (size_t index = 0; index < claim->record_count;) {
        struct stretch stretch = stretch_at(machine, claim, index);
        if (stretch.partition == NULL) {
            judge_unknown_partition(machine, &judgement, claim, &stretch);
        } else if (stretch.partition->conflict != NULL) {
            fill(stretch.verdicts, stretch.count, VERDICT_CONFLICT);
            judgement.is_conflict = true;
            widen_conflict(machine, &stretch);
        } else {
            judge_stretch(machine, &judgement, &stretch);
        }
        index += stretch.count;
    }
    return judgement;
}

/* ---- acting ----------------------------------------------------------------------------------------------------- */

/* STORE_CROWDED: a first sight, and no room to write it down. */
static enum store_status note_conflict(struct machine *machine, const struct judgement *judgement)
{
    const struct record *offender = judgement->offender;
    if (offender == NULL || machine->mode == MACHINE_READ)
        return STORE_OK;
    struct partition *partition = partitions_find(machine, offender->key.topic, offender->key.partition);
    if (partition == NULL && !partitions_have_room(machine, 1))
        return STORE_CROWDED;
    if (partition == NULL)
        partition = partitions_add(machine, offender->key.topic, offender->key.partition);
    if (partition == NULL)
        return STORE_OK; /* no memory: the transaction is spoilt */
    machine->figures.first_sight_count += judgement->is_first_sight;
    struct conflict_row what = { .offset = offender->key.offset,
                                 .stored = judgement->stored,
                                 .seen = offender->mark,
                                 .is_first_sight = judgement->is_first_sight,
                                 .is_tail = !judgement->is_first_sight &&
                                            is_tail(machine, partition, offender->key.offset) };
    audit_conflict(machine, partition, &what);
    return STORE_OK;
}

/* False: no memory, and the transaction is spoilt. */
static bool meet_partitions(struct machine *machine, const struct firsts *firsts)
{
    for (size_t i = 0; i < firsts->count; i++) {
        const struct record_key *key = &firsts->at[i]->key;
        struct partition *partition = partitions_add(machine, key->topic, key->partition);
        if (partition == NULL)
            return false;
        if (key->offset == 0)
            continue;
        machine->figures.first_sight_count++;
        audit_event(machine, EVENT_FIRST_SIGHT, partition, key->offset, key->offset,
                    "first seen above offset 0");
    }
    return true;
}

static bool meet_unknown(struct machine *machine, const struct claim *claim, struct judgement *judgement)
{
    if (!judgement->has_unknown)
        return true;
    if (judgement->firsts.count == 0 && !firsts_find(machine, claim, &judgement->firsts)) {
        rows_spoil(machine->rows);
        return false;
    }
    return meet_partitions(machine, &judgement->firsts);
}

/* The part of a doubt that came again. */
static void act_on_doubt(struct machine *machine, struct open_range *range, int64_t first, int64_t last,
                         const struct slice contexts[], uint64_t claim_id)
{
    struct partition *partition = range->partition;
    char detail[64];
    range = opens_carve(machine, range, first, last);
    if (range == NULL)
        return;
    uint64_t count = opens_count(range);
    snprintf(detail, sizeof detail, "doubt %llu: ", (unsigned long long)range->row.id);
    if (machine->settings.policy == POLICY_RETRY) {
        strcat(detail, "sent again by policy");
        opens_reclaim(machine, range, claim_id);
        opens_keep_contexts(machine, range, contexts);
        machine->figures.resolved_retry += count;
    } else {
        strcat(detail, "assumed applied by policy");
        settle_applied(machine, range);
        machine->figures.resolved_assumed += count;
    }
    audit_event(machine, EVENT_RESOLVED, partition, first, last, detail);
}

/* All of PART is new: for the first time, or once more in a replay window. */
static void claim_part(struct machine *machine, const struct stretch *part, uint64_t claim_id)
{
    int64_t last = last_of(part);
    for (int64_t at = first_of(part);;) {
        struct replay_piece piece = replays_piece_at(machine, part->partition, at, last);
        struct stretch some = stretch_part(part, at, piece.last);
        struct open_claim claim = { some.records, some.contexts, some.count, claim_id, piece.id };
        opens_claim(machine, part->partition, &claim);
        if (piece.last == last)
            return;
        at = piece.last + 1;
    }
}

/* The verdicts say which are new. */
static void act_on_free(struct machine *machine, const struct stretch *part, uint64_t claim_id)
{
    for (size_t at = 0, count; at < part->count; at += count) {
        for (count = 1; at + count < part->count && part->verdicts[at + count] == part->verdicts[at];)
            count++;
        if (part->verdicts[at] != VERDICT_NEW)
            continue;
        int64_t first = part->records[at].key.offset;
        struct stretch some = stretch_part(part, first, first + ((int64_t)count - 1));
        claim_part(machine, &some, claim_id);
    }
}

static void act_on_stretch(struct machine *machine, const struct stretch *stretch, uint64_t claim_id)
{
    int64_t last = last_of(stretch), part_last;
    for (int64_t at = first_of(stretch); rows_status(machine->rows) == ROWS_OK; at = part_last + 1) {
        struct open_range *range = opens_from(stretch->partition, at);
        if (range != NULL && range->first <= at) {
            part_last = lesser(last, range->row.last);
            struct stretch part = stretch_part(stretch, at, part_last);
            act_on_doubt(machine, range, at, part_last, part.contexts, claim_id);
        } else {
            part_last = range == NULL ? last : lesser(last, range->first - 1);
            struct stretch part = stretch_part(stretch, at, part_last);
            act_on_free(machine, &part, claim_id);
        }
        if (part_last == last)
            return;
    }
}

/* How far below the lowest offset a record must lie to be a rewind: nobody sends one partition that disorderly. */
static uint64_t rewind_offsets(const struct machine *machine)
{
    return machine->settings.window < CHUNK_OFFSETS ? machine->settings.window : CHUNK_OFFSETS;
}

/* Offsets that leap far away from all that was met: a gap that large, or a connector that began anew. */
static void note_leaps(struct machine *machine, const struct stretch *stretch)
{
    const struct partition *partition = stretch->partition;
    const struct open_set *opens = &partition->opens;
    int64_t first = first_of(stretch), last = last_of(stretch);
    int64_t low = partition->row.lowest, high = partition->row.highest;
    if (opens->count > 0) {
        low = low < 0 ? opens->at[0]->first : lesser(low, opens->at[0]->first);
        int64_t open_last = opens->at[opens->count - 1]->row.last;
        high = open_last > high ? open_last : high;
    }
    if (high >= 0 && last > high && (uint64_t)(last - high) > machine->settings.window) {
        machine->figures.jump_count++;
        audit_event(machine, EVENT_JUMP, partition, high, last, "far above all that was met before");
    }
    if (low >= 0 && first < low && (uint64_t)(low - first) > rewind_offsets(machine)) {
        machine->figures.rewind_count++;
        audit_event(machine, EVENT_REWIND, partition, first, low, "far below all that was met before");
    }
}

static void act(struct machine *machine, struct claim *claim, struct judgement *judgement)
{
    /* never given twice: room for 2^24 lives of the ledger with 2^40 claims each */
    uint64_t claim_id = machine->boot << 40 | machine->next_claim_number++;
    if (!meet_unknown(machine, claim, judgement))
        return;
    for (size_t index = 0; index < claim->record_count;) {
        struct stretch stretch = stretch_at(machine, claim, index);
        note_leaps(machine, &stretch);
        act_on_stretch(machine, &stretch, claim_id);
        index += stretch.count;
    }
    claim->ret_new_count = claims_count(judgement);
    claim->ret_replayed_count = judgement->replayed_count;
    claim->ret_retried_count = judgement->retried_count;
    claim->ret_claim_id = claim->ret_new_count > 0 ? claim_id : 0;
    machine->figures.changed_record_count += claim->ret_new_count + judgement->assumed_count;
}

/* ---- one claim -------------------------------------------------------------------------------------------------- */

static void begin_results(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
    claim->ret_reply = (struct stored_reply){ 0 };
    claim->ret_claim_id = 0;
    claim->ret_new_count = claim->ret_retried_count = claim->ret_replayed_count = 0;
}

/* Would CLAIM bring more partitions than there is room for?  No memory to look: act() will have none either. */
static bool is_crowded(const struct machine *machine, const struct claim *claim, struct judgement *judgement)
{
    if (!judgement->has_unknown)
        return false;
    if (judgement->firsts.count == 0 && !firsts_find(machine, claim, &judgement->firsts))
        return false;
    return !partitions_have_room(machine, judgement->firsts.count);
}

/* STORE_CROWDED: which records have brought the partitions that there is no room for. */
static void tell_unmet(struct machine *machine, const struct claim *claim)
{
    for (size_t index = 0; index < claim->record_count;) {
        struct stretch stretch = stretch_at(machine, claim, index);
        if (stretch.partition == NULL)
            fill(stretch.verdicts, stretch.count, VERDICT_UNMET);
        index += stretch.count;
    }
}

/* STORE_OK: the claim may be acted on.  A claim that only re-opens doubts is never too many: it makes them fewer. */
static enum store_status may_write(const struct machine *machine, const struct claim *claim,
                                   struct judgement *judgement)
{
    if (machine->mode == MACHINE_READ)
        return STORE_FULL;
    if (claims_count(judgement) == 0)
        return STORE_OK;
    if (machine->mode == MACHINE_NO_CLAIM)
        return STORE_FULL;
    if (is_crowded(machine, claim, judgement))
        return STORE_CROWDED;
    bool is_busy =
        judgement->retried_count == 0 && machine->figures.in_doubt_records > machine->settings.in_doubt_max;
    return is_busy ? STORE_BUSY : STORE_OK;
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static bool is_same_partition(const struct record_key *a, const struct record_key *b)
{
    return a->partition == b->partition && slice_equals(a->topic, b->topic);
}

/* Where WAITER's claim begins in each of its partitions. */
static void note_lanes(struct waiter *waiter)
{
    const struct claim *claim = waiter->claim;
    for (size_t index = 0; index < claim->record_count && !waiter->is_wide;) {
        const struct record_key *key = &claim->records[index].key;
        size_t lane = 0;
        while (lane < waiter->lane_count && !is_same_partition(waiter->lanes[lane].key, key))
            lane++;
        if (lane == WAITER_LANES_MAX)
            waiter->is_wide = true;
        else if (lane == waiter->lane_count)
            waiter->lanes[waiter->lane_count++] = (struct waiter_lane){ key, key->offset };
        else
            waiter->lanes[lane].lowest = lesser(waiter->lanes[lane].lowest, key->offset);
        index += records_stretch(claim->records, claim->record_count, index);
    }
}

static bool comes_first(const struct waiter *waiter, const struct record_key *key)
{
    if (waiter->is_wide)
        return true;
    for (size_t lane = 0; lane < waiter->lane_count; lane++) {
        if (is_same_partition(waiter->lanes[lane].key, key))
            return waiter->lanes[lane].lowest <= key->offset;
    }
    return false;
}

/* The last record of a stretch that would be sent; NULL: none. */
static const struct record_key *last_new_of(const struct claim *claim, size_t index, size_t count)
{
    for (size_t i = index + count; i > index; i--) {
        if (claim->ret_verdicts[i - 1] == VERDICT_NEW)
            return &claim->records[i - 1].key;
    }
    return NULL;
}

/* Does a claim that came before CLAIM, and waits, hold earlier records of a partition in which CLAIM would send some?
 * What waits must not be overtaken: the order of a partition would change.  SELF: CLAIM's own place among the waiters,
 * NULL: behind them all. */
static bool is_behind(const struct machine *machine, const struct claim *claim, const struct waiter *self)
{
    if (machine->first_waiter == self)
        return false;
    for (size_t index = 0, count; index < claim->record_count; index += count) {
        count = records_stretch(claim->records, claim->record_count, index);
        const struct record_key *key = last_new_of(claim, index, count);
        for (const struct waiter *waiter = machine->first_waiter; waiter != self && key != NULL;
             waiter = waiter->next) {
            if (comes_first(waiter, key))
                return true;
        }
    }
    return false;
}

/* Its time is over behind a waiter: told like a flight, for that is what holds the other one up. */
static void tell_as_flight(struct claim *claim)
{
    for (size_t i = 0; i < claim->record_count; i++) {
        if (claim->ret_verdicts[i] == VERDICT_NEW)
            claim->ret_verdicts[i] = VERDICT_IN_FLIGHT;
    }
}

/* ---- one claim again and again ---------------------------------------------------------------------------------- */

enum trial { TRIAL_ANSWERED, TRIAL_HINDERED, TRIAL_BEHIND };

/* Answers CLAIM; or says what hinders it, unless this is the LAST time that it is judged. */
static enum trial try_claim(struct machine *machine, struct claim *claim, const struct waiter *self,
                            bool is_last, struct open_range **ret_hindrance)
{
    begin_results(claim);
    struct judgement judgement = judge(machine, claim);
    enum store_status status = STORE_OK;
    size_t change_count = claims_count(&judgement) + judgement.assumed_count;
    bool is_held = judgement.hindrance != NULL && !judgement.is_conflict;
    bool is_overtaking =
        !is_held && !judgement.is_conflict && change_count > 0 && is_behind(machine, claim, self);
    *ret_hindrance = judgement.hindrance;
    if ((is_held || is_overtaking) && !is_last) {
        firsts_deinit(&judgement.firsts);
        return is_held ? TRIAL_HINDERED : TRIAL_BEHIND;
    }
    machine->figures.below_window_count += judgement.folded_count;
    if (judgement.is_conflict) {
        status = note_conflict(machine, &judgement);
    } else if (is_overtaking) {
        tell_as_flight(claim);
    } else if (!is_held) {
        if (change_count > 0 && (status = may_write(machine, claim, &judgement)) == STORE_OK)
            act(machine, claim, &judgement);
        else if (claim->record_count == 1 && judgement.reply_from != NULL)
            replies_give(machine, judgement.reply_from, claim->records[0].key.offset, claim);
    }
    firsts_deinit(&judgement.firsts);
    if (status == STORE_CROWDED)
        tell_unmet(machine, claim);
    machine->answers.claim(machine->answers.shell, claim, status);
    return TRIAL_ANSWERED;
}

void machine_claim(struct machine *machine, struct claim *claim)
{
    struct open_range *range = NULL;
    enum trial trial = try_claim(machine, claim, NULL, claim->wait_ms == 0, &range);
    if (trial == TRIAL_ANSWERED)
        return;
    struct waiter *waiter = waiters_add(machine, claim, trial == TRIAL_HINDERED ? range : NULL);
    if (waiter != NULL)
        note_lanes(waiter);
    else
        (void)try_claim(machine, claim, NULL, true, &range); /* no memory to wait in: answered as it stands */
}

void machine_wake(struct machine *machine)
{
    for (struct waiter *next, *waiter = machine->first_waiter; waiter != NULL; waiter = next) {
        struct open_range *range = NULL;
        bool is_over = waiter->deadline_ms <= machine->now.mono_ms;
        next = waiter->next;
        if ((waiter->range != NULL || waiter->is_behind) && !is_over)
            continue;
        enum trial trial = try_claim(machine, waiter->claim, waiter, is_over, &range);
        if (trial == TRIAL_ANSWERED)
            waiters_remove(machine, waiter);
        else
            waiters_wait_on(machine, waiter, trial == TRIAL_HINDERED ? range : NULL);
    }
}

void machine_refuse_waiters(struct machine *machine, enum store_status status)
{
    while (machine->first_waiter != NULL) {
        struct claim *claim = machine->first_waiter->claim;
        waiters_remove(machine, machine->first_waiter);
        begin_results(claim);
        machine->answers.claim(machine->answers.shell, claim, status);
    }
}
