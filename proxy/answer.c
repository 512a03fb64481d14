/*
 * answer.c - which end an exchange comes to, and what the connector is told.
 *
 * The ends after a claim follow from the verdicts, those after the target's answer from the outcome; the words stand
 * in tbl/finish.h.
 */
#include <assert.h>

#include "exchange_state.h"
#include "metrics.h"

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
    return ex->claim.ret_new_count == 0 ? FINISH_DUPLICATE : FINISH_NONE;
}

static enum finish finish_not_sent(const struct exchange *ex)
{
    if (ex->flight.error == ATTEMPT_ERROR_NONE)
        return FINISH_NO_MEMORY;
    return ex->flight.error == ATTEMPT_ERROR_QUEUE ? FINISH_TARGET_BUSY : FINISH_NOT_SENT;
}

/* Without records there is nothing to settle: what can be passed on is passed on. */
static enum finish finish_unkeyed(const struct exchange *ex)
{
    switch (ex->flight.attempt_class) {
    case ATTEMPT_NOT_SENT:
        return finish_not_sent(ex);
    case ATTEMPT_UNKNOWN:
        return FINISH_TARGET_LOST;
    case ATTEMPT_KNOWN:
    default:
        break;
    }
    if (ex->flight.is_answer_damaged)
        return ex->flight.error == ATTEMPT_ERROR_TOO_LARGE ? FINISH_BAD_ANSWER : FINISH_TARGET_LOST;
    return FINISH_FORWARDED;
}

enum finish answer_finish_of(const struct exchange *ex, enum outcome outcome)
{
    if (!ex->is_keyed || ex->loop->program->settings->mode == MODE_OBSERVE)
        return finish_unkeyed(ex);
    switch (outcome) {
    case OUTCOME_APPLIED:
        return ex->flight.is_answer_damaged ? FINISH_APPLIED : FINISH_FORWARDED;
    case OUTCOME_NOT_APPLIED:
        return ex->flight.response.status < 400 ? FINISH_REDIRECTED : FINISH_REJECTED;
    case OUTCOME_NOT_SENT:
        return finish_not_sent(ex);
    case OUTCOME_UNKNOWN:
    default:
        return FINISH_IN_DOUBT;
    }
}

/* The first few records that are the reason for the answer, for its body. */
static size_t name_records(const struct exchange *ex, const struct record *named[], size_t *ret_total)
{
    size_t named_count = 0;
    *ret_total = 0;
    bool is_sent = ex->claim.ret_claim_id != 0;
    for (size_t i = 0; ex->verdicts != NULL && i < ex->identified.record_count; i++) {
        enum verdict verdict = ex->verdicts[i];
        bool is_reason = is_sent ? verdict == VERDICT_NEW
                                 : verdict == VERDICT_IN_DOUBT || verdict == VERDICT_IN_FLIGHT ||
                                       verdict == VERDICT_CONFLICT;
        if (!is_reason)
            continue;
        (*ret_total)++;
        if (named_count < REPLY_RECORDS_NAMED_MAX)
            named[named_count++] = &ex->identified.records[i];
    }
    return named_count;
}

static void answer_own(const struct exchange *ex, struct reply_room *room)
{
    const struct record *named[REPLY_RECORDS_NAMED_MAX];
    size_t total = 0;
    bool is_about_records =
        ex->finish == FINISH_IN_DOUBT || ex->finish == FINISH_IN_FLIGHT || ex->finish == FINISH_CONFLICT;
    size_t named_count = is_about_records ? name_records(ex, named, &total) : 0;
    reply_own(room, ex->finish, ex->dialect, ex->loop->program->settings, named, named_count, total);
}

/* The target's answer on its way back.  A body that ended early is left out: it must not look whole. */
static void answer_pass(struct exchange *ex, struct reply_room *room)
{
    struct flight *flight = &ex->flight;
    bool is_damaged = flight->is_answer_damaged;
    char *body = is_damaged ? NULL : flight->answer;
    if (!is_damaged)
        flight->answer = NULL; /* taken by conn_reply() */
    reply_pass(room, &flight->response, body, is_damaged ? 0 : flight->answer_bytes, flight->is_head_request,
               is_damaged ? finish_rows[ex->finish].outcome : NULL);
}

static void answer_build(struct exchange *ex, struct reply_room *room)
{
    const struct settings *settings = ex->loop->program->settings;
    switch ((int)ex->finish) {
    case FINISH_FORWARDED:
    case FINISH_REJECTED:
        answer_pass(ex, room);
        break;
    case FINISH_APPLIED:
        reply_success(room, ex->finish, ex->dialect, NULL, false, settings);
        break;
    case FINISH_DUPLICATE:
        reply_success(room, ex->finish, ex->dialect, &ex->claim.ret_reply, true, settings);
        break;
    default:
        answer_own(ex, room);
    }
}

void answer_send(struct exchange *ex)
{
    struct reply_room room;
    struct conn *conn = ex->conn;
    if (conn == NULL)
        return;
    answer_build(ex, &room);
    if (ex->request->head.method == HTTP1_HEAD && !room.reply.is_body_left_out) {
        room.reply.is_body_left_out = true;
        room.reply.has_length = true;
        room.reply.length = room.reply.body.byte_count;
    }
    ex->answered_status = room.reply.status;
    ex->conn = NULL;
    metrics_request((int)ex->request->head.method, room.reply.status);
    conn_reply(conn, &room.reply);
}
