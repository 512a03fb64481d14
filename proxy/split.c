/*
 * split.c - each element of a batch in a request of its own (SINKONCE_SPLIT=record).
 *
 *     lane (topic, partition):   part --> part --> part      one after the other, in the order of the request
 *     lane (topic, partition):   part --> part               lanes side by side, SPLIT_PARALLEL at most
 *
 * A part that ends is settled at once, so that a kill leaves in doubt what was on its way, and not what was done.  The
 * first failure stops its lane: what follows in the same partition must not overtake it.  Elements without coordinates
 * share a lane.  Neighbour: exchange.c, which starts it and goes on when all lanes have ended.
 */
#include <assert.h>
#include <stdlib.h>

#include "exchange_state.h"

/* A part on its way, and once it has ended the one whose failure is told: with its room for fields and answer it is a
 * hundred times as large as a part. */
struct sending {
    struct part *part; /* borrowed */
    struct plan plan;  /* owned parts */
    struct pass pass;
    struct flight flight;
    struct settlement settlement;
    uint64_t retries_left;
};

struct part {
    struct parts *split; /* borrowed */
    size_t site;
    struct lane *lane; /* borrowed */
    struct part *next; /* of the lane */
    enum outcome outcome;
    bool is_ended; /* its outcome is known */
};

struct lane {
    struct part *first; /* the next to be sent */
    struct lane *next;  /* of those that may send */
};

struct parts {
    struct exchange *ex; /* borrowed */
    struct part *parts;  /* owned: one for each element that is sent, in the order of the request */
    size_t part_count;
    struct lane *lanes; /* owned */
    size_t lane_count;
    struct lane *first_ready, *last_ready;
    size_t running_count;         /* lanes with a part on its way */
    struct sending *told;         /* owned: the failure that is told; NULL: none */
    enum verdict *rest;           /* owned: NEW for the records whose turn never came */
    struct settlement settlement; /* of the rest */
    bool is_unsettled;
    bool is_started;
};

#define OWNER_OF(member_pointer, type, member)                                                               \
    ((type *)(void *)((char *)(member_pointer)-offsetof(type, member)))

static void split_pump(struct parts *split);

static size_t record_of(const struct part *part)
{
    return part->split->ex->identified.sites[part->site].record;
}

static void lane_ready(struct parts *split, struct lane *lane)
{
    lane->next = NULL;
    if (split->last_ready != NULL)
        split->last_ready->next = lane;
    else
        split->first_ready = lane;
    split->last_ready = lane;
}

/* NULL: no memory. */
static struct sending *sending_new(struct part *part)
{
    const struct exchange *ex = part->split->ex;
    const struct settings *settings = ex->loop->program->settings;
    struct sending *sending = malloc(sizeof *sending);
    if (sending == NULL)
        return NULL;
    if (!plan_build_site(ex->request, &ex->identified, part->site, ex->is_keyed && settings->is_stripped,
                         &sending->plan)) {
        free(sending);
        return NULL;
    }
    sending->part = part;
    sending->retries_left = settings->connect_retries;
    memset(&sending->flight, 0, sizeof sending->flight);
    return sending;
}

static void sending_free(struct sending *sending)
{
    if (sending == NULL)
        return;
    plan_deinit(&sending->plan);
    flight_deinit(&sending->flight);
    free(sending);
}

/* ---- one part ------------------------------------------------------------------------------------------------ */

/* What the target said comes before what it did not say, and then what stands first in the request. */
static bool is_told_before(const struct sending *sending, const struct sending *other)
{
    bool is_known = sending->flight.attempt_class == ATTEMPT_KNOWN;
    if (other == NULL || is_known != (other->flight.attempt_class == ATTEMPT_KNOWN))
        return other == NULL || is_known;
    return sending->part < other->part;
}

/* At most one failure is told, so that no other answer is kept. */
static void sending_end(struct sending *sending)
{
    struct parts *split = sending->part->split;
    struct sending *over = sending;
    if (sending->part->outcome != OUTCOME_APPLIED && is_told_before(sending, split->told)) {
        over = split->told;
        split->told = sending;
    }
    sending_free(over);
}

/* A failure stops the lane: what follows keeps its place behind it. */
static void lane_go_on(struct sending *sending)
{
    struct part *part = sending->part;
    struct parts *split = part->split;
    split->running_count--;
    if (part->outcome == OUTCOME_APPLIED && part->lane->first != NULL)
        lane_ready(split, part->lane);
    sending_end(sending);
    split_pump(split);
}

static void part_settled(struct settlement *settlement, enum store_status status)
{
    struct sending *sending = OWNER_OF(settlement, struct sending, settlement);
    struct parts *split = sending->part->split;
    split->is_unsettled = split->is_unsettled || status != STORE_OK;
    lane_go_on(sending);
}

static void part_end(struct sending *sending, enum outcome outcome)
{
    struct part *part = sending->part;
    struct exchange *ex = part->split->ex;
    size_t record = record_of(part);
    part->outcome = outcome;
    part->is_ended = true;
    if (record == NO_RECORD || ex->claim.ret_claim_id == 0) {
        lane_go_on(sending);
        return;
    }
    ex->outcomes[record] = outcome;
    sending->settlement = (struct settlement){ .claim_id = ex->claim.ret_claim_id,
                                               .records = &ex->identified.records[record],
                                               .verdicts = &ex->verdicts[record],
                                               .outcomes = &ex->outcomes[record],
                                               .record_count = 1,
                                               .cause = doubt_cause_of(&sending->flight),
                                               .detail = doubt_words_of(&sending->flight),
                                               .done = part_settled };
    store_settle(ex->loop->port, &sending->settlement);
}

static void part_on_outcome(struct flight *flight);

static void part_fly(struct sending *sending)
{
    exchange_flight_begin(&sending->flight, sending->part->split->ex, &sending->plan, &sending->pass,
                          part_on_outcome);
}

static void part_on_outcome(struct flight *flight)
{
    struct sending *sending = OWNER_OF(flight, struct sending, flight);
    struct exchange *ex = sending->part->split->ex;
    if (flight->sent_ns != 0)
        ex->target_ns += flight->ended_ns - flight->sent_ns;
    if (flight_may_go_again(flight) && sending->retries_left > 0) {
        sending->retries_left--;
        part_fly(sending);
        return;
    }
    int status = flight->attempt_class == ATTEMPT_KNOWN ? flight->response.status : 0;
    part_end(sending, outcome_of(flight->attempt_class, status, ex->loop->program->settings));
}

/* False: no memory; nothing was sent. */
static bool part_start(struct part *part)
{
    const struct exchange *ex = part->split->ex;
    const struct settings *settings = ex->loop->program->settings;
    struct sending *sending = sending_new(part);
    size_t record = record_of(part);
    if (sending == NULL)
        return false;
    pass_build(&sending->pass, ex->request, NULL, &ex->credentials->settings,
               settings->is_via_added ? ex->loop->program->via : NULL);
    if (record != NO_RECORD)
        pass_key_add(&sending->pass, &ex->identified.records[record], settings);
    part_fly(sending);
    return true;
}

/* ---- all lanes ----------------------------------------------------------------------------------------------- */

static void rest_settled(struct settlement *settlement, enum store_status status)
{
    struct parts *split = OWNER_OF(settlement, struct parts, settlement);
    split->is_unsettled = split->is_unsettled || status != STORE_OK;
    exchange_on_split(split->ex);
}

/* Records whose turn never came, because one before them failed: free again. */
static bool rest_find(struct parts *split)
{
    const struct exchange *ex = split->ex;
    bool is_any = false;
    for (size_t i = 0; i < split->part_count; i++) {
        size_t record = record_of(&split->parts[i]);
        if (split->parts[i].is_ended || record == NO_RECORD)
            continue;
        split->rest[record] = VERDICT_NEW;
        ex->outcomes[record] = OUTCOME_NOT_SENT;
        is_any = true;
    }
    return is_any && ex->claim.ret_claim_id != 0;
}

/* All lanes have ended.  [loop] from a callback of the last part or, with no memory for any, from nowhere. */
static void split_end(struct parts *split)
{
    struct exchange *ex = split->ex;
    if (!rest_find(split)) {
        exchange_on_split(ex);
        return;
    }
    split->settlement = (struct settlement){ .claim_id = ex->claim.ret_claim_id,
                                             .records = ex->identified.records,
                                             .verdicts = split->rest,
                                             .outcomes = ex->outcomes,
                                             .record_count = ex->identified.record_count,
                                             .detail = "",
                                             .done = rest_settled };
    store_settle(ex->loop->port, &split->settlement);
}

static void split_pump(struct parts *split)
{
    size_t parallel = (size_t)split->ex->loop->program->settings->split_parallel;
    /* A ledger that does not take a result cannot be trusted: nothing more is sent. */
    while (split->running_count < parallel && split->first_ready != NULL && !split->is_unsettled) {
        struct lane *lane = split->first_ready;
        split->first_ready = lane->next;
        if (split->first_ready == NULL)
            split->last_ready = NULL;
        struct part *part = lane->first;
        if (!part_start(part)) /* the lane stays where it is: its rest is given back */
            continue;
        lane->first = part->next;
        split->running_count++;
    }
    if (split->running_count == 0 && split->is_started)
        split_end(split);
}

/* Order of the lanes: by topic and partition, elements without coordinates first; inside a lane that of the request. */
static int part_compare(const void *left, const void *right)
{
    const struct part *a = *(struct part *const *)left, *b = *(struct part *const *)right;
    const struct record *records = a->split->ex->identified.records;
    size_t record_a = record_of(a), record_b = record_of(b);
    if (record_a == NO_RECORD || record_b == NO_RECORD) {
        int order = (record_b == NO_RECORD) - (record_a == NO_RECORD);
        return order != 0 ? order : (a->site > b->site) - (a->site < b->site);
    }
    const struct record_key *key_a = &records[record_a].key, *key_b = &records[record_b].key;
    size_t shorter =
        key_a->topic.byte_count < key_b->topic.byte_count ? key_a->topic.byte_count : key_b->topic.byte_count;
    int order = memcmp(key_a->topic.at, key_b->topic.at, shorter);
    if (order == 0)
        order = (key_a->topic.byte_count > key_b->topic.byte_count) -
                (key_a->topic.byte_count < key_b->topic.byte_count);
    if (order == 0)
        order = (key_a->partition > key_b->partition) - (key_a->partition < key_b->partition);
    return order != 0 ? order : (a->site > b->site) - (a->site < b->site);
}

static bool is_same_lane(const struct part *a, const struct part *b)
{
    const struct record *records = a->split->ex->identified.records;
    size_t record_a = record_of(a), record_b = record_of(b);
    if (record_a == NO_RECORD || record_b == NO_RECORD)
        return record_a == record_b;
    return slice_equals(records[record_a].key.topic, records[record_b].key.topic) &&
           records[record_a].key.partition == records[record_b].key.partition;
}

/* ORDERED holds the parts lane by lane. */
static void lanes_build(struct parts *split, struct part *const ordered[])
{
    for (size_t i = 0; i < split->part_count; i++) {
        struct part *part = ordered[i];
        bool is_first = i == 0 || !is_same_lane(ordered[i - 1], part);
        struct lane *lane = is_first ? &split->lanes[split->lane_count++] : ordered[i - 1]->lane;
        part->lane = lane;
        if (is_first) {
            lane->first = part;
            lane_ready(split, lane);
        } else {
            ordered[i - 1]->next = part;
        }
    }
}

static void parts_build(struct parts *split, struct part *ordered[])
{
    const struct exchange *ex = split->ex;
    for (size_t i = 0; i < ex->identified.site_count; i++) {
        if (!ex->sent[i])
            continue;
        struct part *part = &split->parts[split->part_count];
        part->split = split;
        part->site = i;
        ordered[split->part_count++] = part;
    }
    qsort(ordered, split->part_count, sizeof *ordered, part_compare);
}

void split_free(struct parts *split)
{
    if (split == NULL)
        return;
    sending_free(split->told);
    free(split->parts);
    free(split->lanes);
    free(split->rest);
    free(split);
}

bool split_start(struct exchange *ex)
{
    size_t count = ex->plan.site_count;
    struct parts *split = calloc(1, sizeof *split);
    struct part **ordered = calloc(count, sizeof(struct part *));
    ex->parts = split;
    if (split != NULL) {
        split->ex = ex;
        split->parts = calloc(count, sizeof *split->parts);
        split->lanes = calloc(count, sizeof *split->lanes);
        split->rest = calloc(ex->identified.record_count, sizeof *split->rest);
    }
    if (split == NULL || ordered == NULL || split->parts == NULL || split->lanes == NULL ||
        split->rest == NULL) {
        free(ordered);
        return false;
    }
    for (size_t i = 0; i < ex->identified.record_count; i++)
        split->rest[i] = VERDICT_APPLIED;
    parts_build(split, ordered);
    lanes_build(split, ordered);
    free(ordered);
    exchange_move(ex, EX_FORWARDING);
    split_pump(split);
    split->is_started = split->running_count > 0;
    return split->is_started;
}

struct flight *split_flight(const struct exchange *ex)
{
    return ex->parts->told == NULL ? NULL : &ex->parts->told->flight;
}

bool split_is_whole(const struct exchange *ex)
{
    const struct parts *split = ex->parts;
    for (size_t i = 0; i < split->part_count; i++) {
        if (!split->parts[i].is_ended || split->parts[i].outcome != OUTCOME_APPLIED)
            return false;
    }
    return true;
}

bool split_is_unsettled(const struct exchange *ex)
{
    return ex->parts->is_unsettled;
}
