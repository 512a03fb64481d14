/*
 * answer.c - which end an exchange comes to, and what the connector is told.
 *
 * The ends after a claim follow from the verdicts, those after the target's answer from the outcomes; the words stand
 * in tbl/finish.h.
 */
#include <assert.h>
#include <stdlib.h>

#include "acks.h"
#include "exchange_state.h"
#include "metrics.h"
#include "reply_head.h"

static bool any_verdict(const struct exchange *ex, enum verdict verdict)
{
    for (size_t i = 0; i < ex->identified.record_count; i++) {
        if (ex->verdicts[i] == verdict)
            return true;
    }
    return false;
}

enum finish answer_finish_of_verdicts(const struct exchange *ex)
{
    if (any_verdict(ex, VERDICT_CONFLICT))
        return FINISH_CONFLICT;
    if (any_verdict(ex, VERDICT_IN_DOUBT))
        return FINISH_IN_DOUBT;
    if (any_verdict(ex, VERDICT_IN_FLIGHT))
        return FINISH_IN_FLIGHT;
    return FINISH_NONE;
}

const struct flight *answer_flight(const struct exchange *ex)
{
    const struct flight *of_part = ex->parts != NULL ? split_flight(ex) : NULL;
    return of_part != NULL ? of_part : &ex->flight;
}

static enum finish finish_not_sent(const struct flight *flight)
{
    if (flight->error == ATTEMPT_ERROR_STOPPED) /* the ledger failed meanwhile, and may be back by now */
        return FINISH_LEDGER_FAILED;
    if (flight->error == ATTEMPT_ERROR_NONE) /* its connection had gone; no memory for another */
        return FINISH_NO_MEMORY;
    return flight->error == ATTEMPT_ERROR_QUEUE ? FINISH_TARGET_BUSY : FINISH_NOT_SENT;
}

/* Without records there is nothing to settle: what can be passed on is passed on. */
static enum finish finish_unkeyed(const struct flight *flight)
{
    switch (flight->attempt_class) {
    case ATTEMPT_NOT_SENT:
        return finish_not_sent(flight);
    case ATTEMPT_UNKNOWN:
        return FINISH_TARGET_LOST;
    case ATTEMPT_KNOWN:
    default:
        break;
    }
    if (flight->is_answer_damaged)
        return flight->error == ATTEMPT_ERROR_TOO_LARGE ? FINISH_BAD_ANSWER : FINISH_TARGET_LOST;
    return FINISH_FORWARDED;
}

static bool any_outcome(const struct exchange *ex, enum outcome outcome)
{
    for (size_t i = 0; i < ex->identified.record_count; i++) {
        if (ex->verdicts[i] == VERDICT_NEW && ex->outcomes[i] == outcome)
            return true;
    }
    return false;
}

/* Other dialects than the plain one tell it per record, inside a success. */
static bool is_refusal_hidden(const struct exchange *ex)
{
    if (ex->batch == BATCH_PLAIN)
        return true;
    return batch_hides_refusal(ex->batch, ex->answer, &ex->identified, ex->sent, ex->loop->program->settings);
}

/* The worst outcome decides: a doubt is told before a refusal, a refusal before a success. */
static enum finish finish_keyed(const struct exchange *ex, const struct flight *flight)
{
    if (any_outcome(ex, OUTCOME_UNKNOWN))
        return FINISH_IN_DOUBT;
    bool is_refused = any_outcome(ex, OUTCOME_NOT_APPLIED);
    if (flight->attempt_class == ATTEMPT_KNOWN && flight->response.status / 100 == 3)
        return FINISH_REDIRECTED;
    if (is_refused && flight->response.status < 400 && is_refusal_hidden(ex))
        return FINISH_REDIRECTED;
    if (is_refused && flight->response.status >= 400)
        return FINISH_REJECTED;
    if (any_outcome(ex, OUTCOME_NOT_SENT))
        return finish_not_sent(flight);
    if (flight->is_answer_damaged || flight->attempt_class != ATTEMPT_KNOWN ||
        flight->response.status / 100 != 2)
        return FINISH_APPLIED; /* a 409 that means "I have it" would be a failure to the connector */
    return ex->is_cut ? FINISH_PARTIAL : FINISH_FORWARDED;
}

/* Only elements without coordinates went: their answer is told in the words of the whole request. */
static enum finish finish_rest(const struct exchange *ex, const struct flight *flight)
{
    enum finish finish = finish_unkeyed(flight);
    if (finish != FINISH_FORWARDED)
        return finish;
    if (flight->response.status / 100 == 3) /* a connector that sends records may take it for a success */
        return FINISH_REDIRECTED;
    return ex->is_cut && flight->response.status / 100 == 2 ? FINISH_PARTIAL : finish;
}

/* Each part had an answer of its own.  A doubt is told first, then the failure of a part, whether it has coordinates or
 * not: what is not told is not sent again. */
static enum finish finish_split(const struct exchange *ex)
{
    const struct flight *flight = split_flight(ex);
    if (any_outcome(ex, OUTCOME_UNKNOWN))
        return FINISH_IN_DOUBT;
    if (flight == NULL) /* a part that was never sent although none failed had no memory */
        return split_is_whole(ex) ? FINISH_APPLIED : FINISH_NO_MEMORY;
    if (flight->attempt_class == ATTEMPT_KNOWN && flight->response.status < 400)
        return FINISH_REDIRECTED;
    bool is_refused = flight->attempt_class == ATTEMPT_KNOWN && any_outcome(ex, OUTCOME_NOT_APPLIED);
    return is_refused ? FINISH_REJECTED : finish_unkeyed(flight);
}

enum finish answer_finish_of(const struct exchange *ex)
{
    const struct flight *flight = answer_flight(ex);
    if (!ex->is_keyed || ex->mode == MODE_OBSERVE)
        return finish_unkeyed(flight);
    if (ex->parts != NULL)
        return finish_split(ex);
    return ex->claim.ret_claim_id == 0 ? finish_rest(ex, flight) : finish_keyed(ex, flight);
}

/* Is record I a reason for the end that its request came to? */
static bool is_reason(const struct exchange *ex, size_t i)
{
    switch ((int)ex->finish) {
    case FINISH_CONTRADICTION:
        return i == ex->identified.contradicted;
    case FINISH_PARTITIONS_FULL:
        return ex->verdicts[i] == VERDICT_UNMET;
    case FINISH_UNCUTTABLE:
        return ex->verdicts[i] == VERDICT_APPLIED;
    case FINISH_CONFLICT:
        return ex->verdicts[i] == VERDICT_CONFLICT;
    case FINISH_IN_FLIGHT:
        return ex->verdicts[i] == VERDICT_IN_FLIGHT;
    case FINISH_IN_DOUBT:
        if (ex->claim.ret_claim_id == 0)
            return ex->verdicts[i] == VERDICT_IN_DOUBT;
        return ex->verdicts[i] == VERDICT_NEW && ex->outcomes[i] == OUTCOME_UNKNOWN;
    default:
        return false;
    }
}

size_t answer_reasons(const struct exchange *ex, const struct record *ret_named[], size_t named_max)
{
    size_t count = 0;
    for (size_t i = 0; i < ex->identified.record_count; i++) {
        if (!is_reason(ex, i))
            continue;
        if (count < named_max)
            ret_named[count] = &ex->identified.records[i];
        count++;
    }
    return count;
}

static void answer_own(const struct exchange *ex, struct reply_room *room, enum finish finish)
{
    const struct record *named[REPLY_RECORDS_NAMED_MAX];
    if (finish == FINISH_UNKEYED_REFUSED) {
        const struct broken broken = broken_find(&ex->identified);
        reply_unkeyed(room, &broken);
        return;
    }
    size_t total = answer_reasons(ex, named, REPLY_RECORDS_NAMED_MAX);
    size_t named_count = total < REPLY_RECORDS_NAMED_MAX ? total : REPLY_RECORDS_NAMED_MAX;
    reply_own(room, finish, ex->dialect, ex->loop->program->settings, named, named_count, total);
}

/* The target's answer on its way back.  A body that ended early is left out: it must not look whole. */
static void answer_pass(struct exchange *ex, struct reply_room *room)
{
    struct flight *of_part = ex->parts != NULL ? split_flight(ex) : NULL;
    struct flight *flight = of_part != NULL ? of_part : &ex->flight;
    bool is_damaged = flight->is_answer_damaged;
    char *body = is_damaged ? NULL : flight->answer;
    if (!is_damaged)
        flight->answer = NULL; /* taken by conn_reply() */
    reply_pass(room, &flight->response, body, is_damaged ? 0 : flight->answer_bytes, flight->is_head_request,
               is_damaged ? finish_rows[ex->finish].outcome : NULL);
}

/* A connector that waits for acknowledgements must get an id that will be acknowledged. */
static int64_t own_ack_id(const struct exchange *ex)
{
    if (ex->batch != BATCH_SPLUNK || acks_channel_of(ex->request).byte_count == 0)
        return -1;
    return acks_make_id(ex->loop->program->acks);
}

/* Everything was dropped: the success of the dialect.  An answer that is kept came to a request of another form, and
 * means nothing to a client that reads items. */
static void answer_duplicate(struct exchange *ex, struct reply_room *room)
{
    const struct settings *settings = ex->loop->program->settings;
    const char *type = "";
    size_t bytes = 0;
    if (ex->batch == BATCH_PLAIN) {
        reply_success(room, ex->finish, DIALECT_PLAIN, &ex->claim.ret_reply, true, settings);
        return;
    }
    if (!batch_answer(ex->batch, 0, slice_of("", 0), &ex->identified, ex->sent, own_ack_id(ex),
                      &ex->made_body, &bytes, &type)) {
        answer_own(ex, room, FINISH_NO_MEMORY);
        return;
    }
    const struct stored_reply made = { 200, slice_of_text(type), slice_of(ex->made_body, bytes) };
    reply_success(room, ex->finish, DIALECT_PLAIN, &made, true, settings);
    if (ex->batch == BATCH_BULK && batch_needs_product(ex->request))
        reply_product_add(room);
}

/* In place of the target's body, when there is one. */
static void answer_body_made(struct exchange *ex, struct reply_room *room, size_t bytes, const char *type)
{
    if (ex->made_body == NULL)
        return;
    free(room->reply.body_owned);
    room->reply.body_owned = NULL;
    reply_body_set(room, slice_of(ex->made_body, bytes), type);
}

/* Nothing was dropped: as it came, unless it contradicts itself. */
static void answer_forwarded(struct exchange *ex, struct reply_room *room)
{
    const struct flight *flight = answer_flight(ex);
    const char *type = NULL;
    size_t bytes = 0;
    bool is_read = ex->batch == BATCH_BULK && ex->claim.ret_claim_id != 0 && ex->parts == NULL &&
                   ex->mode == MODE_ENFORCE;
    if (is_read && !batch_answer(ex->batch, flight->response.status, ex->answer, &ex->identified, ex->sent,
                                 -1, &ex->made_body, &bytes, &type)) {
        answer_own(ex, room, FINISH_NO_MEMORY);
        return;
    }
    answer_pass(ex, room);
    answer_body_made(ex, room, bytes, type);
    if (ex->made_body != NULL) /* not the target's own words any more: an item has an error */
        reply_outcome_add(room, finish_rows[FINISH_REJECTED].outcome);
}

/* Some were dropped, the target has answered for the others with 2xx. */
static void answer_partial(struct exchange *ex, struct reply_room *room)
{
    const struct flight *flight = answer_flight(ex);
    const char *type = NULL;
    size_t bytes = 0;
    if (ex->batch == BATCH_SPLUNK) { /* its code and ackId mean the batch as it is now */
        answer_pass(ex, room);
        reply_outcome_add(room, finish_rows[FINISH_PARTIAL].outcome);
        return;
    }
    if (!batch_answer(ex->batch, flight->response.status, ex->answer, &ex->identified, ex->sent, -1,
                      &ex->made_body, &bytes, &type)) {
        answer_own(ex, room, FINISH_TARGET_LOST); /* its answer does not fit what it was sent */
        return;
    }
    answer_pass(ex, room);
    answer_body_made(ex, room, bytes, type);
    reply_outcome_add(room, finish_rows[FINISH_PARTIAL].outcome);
}

static void answer_build(struct exchange *ex, struct reply_room *room)
{
    const struct settings *settings = ex->loop->program->settings;
    if (ex->poll != NULL && ack_poll_answer(ex, room))
        return;
    switch ((int)ex->finish) {
    case FINISH_FORWARDED:
        answer_forwarded(ex, room);
        break;
    case FINISH_REJECTED:
        answer_pass(ex, room);
        break;
    case FINISH_PARTIAL:
        answer_partial(ex, room);
        break;
    case FINISH_APPLIED:
        reply_success(room, ex->finish, ex->dialect, NULL, false, settings);
        break;
    case FINISH_DUPLICATE:
        answer_duplicate(ex, room);
        break;
    default:
        answer_own(ex, room, ex->finish);
    }
}

void answer_send(struct exchange *ex)
{
    struct reply_room room;
    struct conn *conn = ex->conn;
    if (conn == NULL)
        return;
    answer_build(ex, &room);
    if (ex->request->head.method == HTTP1_HEAD)
        reply_leave_body_out(&room.reply);
    ex->answered_status = room.reply.status;
    ex->conn = NULL;
    metrics_request((int)ex->request->head.method, room.reply.status);
    conn_reply(conn, &room.reply);
}
