/*
 * exchange.c - the story of one request; the drawing stands in exchange_state.h.
 *
 * Deciders say what is in a request, which bytes go on, what an answer proves and what is told to the connector; the
 * ledger and the target client do.  This file only puts them in order:
 *   nothing is sent before the intent is on disk, no success is told before the result is.
 */
#include "exchange.h"

#include <assert.h>
#include <stdlib.h>

#include "clock.h"
#include "exchange_state.h"
#include "failpoint.h"
#include "log.h"
#include "metrics.h"

enum { SPARES_MAX = 256 };

#define BIT(state) (1u << EX_##state)
static const unsigned may_become[EX_STATES] = {
    [EX_NEW] = BIT(CLAIMING) | BIT(FORWARDING) | BIT(DONE),
    [EX_CLAIMING] = BIT(FORWARDING) | BIT(SETTLING) | BIT(DONE),
    [EX_FORWARDING] = BIT(FORWARDING) | BIT(SETTLING) | BIT(DONE),
    [EX_SETTLING] = BIT(DONE),
    [EX_DONE] = 0,
};

static void exchange_on_claimed(struct claim *claim, enum store_status status);
static void exchange_on_outcome(struct flight *flight);
static void exchange_on_settled(struct settlement *settlement, enum store_status status);

#define OWNER_OF(member_pointer, member)                                                                     \
    ((struct exchange *)(void *)((char *)(member_pointer)-offsetof(struct exchange, member)))

static void exchange_move(struct exchange *ex, enum exchange_state next)
{
    assert(may_become[ex->state] & (1u << next));
    ex->state = next;
}

/* ---- life ---------------------------------------------------------------------------------------------------- */

static struct exchange *exchange_get(struct loop *loop)
{
    struct exchange *ex = loop->spare_exchanges;
    if (ex != NULL) {
        loop->spare_exchanges = ex->next_spare;
        loop->spare_count--;
    } else {
        ex = calloc(1, sizeof *ex);
        if (ex == NULL)
            return NULL;
    }
    ex->loop = loop;
    ex->state = EX_NEW;
    atomic_fetch_add(&loop->program->in_flight, 1);
    metrics_gauge_add(GAUGE_REQUESTS_IN_FLIGHT, 1);
    return ex;
}

/* The one place that frees what an exchange owns.  Nothing of it is lent to anybody any more. */
static void exchange_put(struct exchange *ex)
{
    struct loop *loop = ex->loop;
    assert(ex->state == EX_DONE);
    request_free(ex->request);
    identified_deinit(&ex->identified);
    plan_deinit(&ex->plan);
    flight_deinit(&ex->flight);
    store_claim_deinit(&ex->claim);
    free(ex->verdicts);
    free(ex->outcomes);
    if (loop->spare_count < SPARES_MAX) {
        memset(ex, 0, offsetof(struct exchange, pass));
        memset(&ex->flight, 0, sizeof ex->flight);
        ex->target_ns = 0;
        ex->answered_status = 0;
        ex->next_spare = loop->spare_exchanges;
        loop->spare_exchanges = ex;
        loop->spare_count++;
    } else {
        free(ex);
    }
    metrics_gauge_add(GAUGE_REQUESTS_IN_FLIGHT, -1);
    atomic_fetch_sub(&loop->program->in_flight, 1);
}

void exchange_free_spares(struct loop *loop)
{
    while (loop->spare_exchanges != NULL) {
        struct exchange *ex = loop->spare_exchanges;
        loop->spare_exchanges = ex->next_spare;
        free(ex);
    }
}

/* Each end: one answer, one account, one place that frees. */
static void exchange_finish(struct exchange *ex, enum finish finish)
{
    ex->finish = finish;
    exchange_move(ex, EX_DONE);
    FAILPOINT("before_reply");
    answer_send(ex);
    account_finish(ex);
    exchange_put(ex);
}

/* ---- settle -------------------------------------------------------------------------------------------------- */

static enum doubt_cause cause_of(const struct flight *flight)
{
    if (flight->attempt_class == ATTEMPT_KNOWN)
        return DOUBT_STATUS;
    if (flight->error == ATTEMPT_ERROR_TIMEOUT)
        return DOUBT_TIMEOUT;
    return flight->error == ATTEMPT_ERROR_GUARD ? DOUBT_GUARD : DOUBT_NO_REPLY;
}

/* What is kept to be given again: never a body that is cut, or coded in a way that the next client may not know. */
static struct stored_reply reply_to_keep(const struct exchange *ex)
{
    const struct flight *flight = &ex->flight;
    const struct http1_response *response = &flight->response;
    struct stored_reply kept = { 0 };
    if (ex->identified.record_count != 1 || ex->outcomes[0] != OUTCOME_APPLIED || flight->is_answer_damaged ||
        http1_field_find(response->fields, response->field_count, "content-encoding") != NULL)
        return kept;
    const struct http1_field *type =
        http1_field_find(response->fields, response->field_count, "content-type");
    kept.status = response->status;
    kept.content_type = type != NULL ? type->value : slice_of("", 0);
    kept.body = slice_of(flight->answer, flight->answer_bytes);
    return kept;
}

static void exchange_settle(struct exchange *ex)
{
    exchange_move(ex, EX_SETTLING);
    ex->settlement = (struct settlement){
        .claim_id = ex->claim.ret_claim_id,
        .records = ex->identified.records,
        .verdicts = ex->verdicts,
        .outcomes = ex->outcomes,
        .record_count = ex->identified.record_count,
        .cause = cause_of(&ex->flight),
        .detail = ex->flight.detail,
        .reply = reply_to_keep(ex),
        .done = exchange_on_settled,
    };
    store_settle(ex->loop->port, &ex->settlement);
}

/* Nothing could be sent for want of memory: give the claim back. */
static void exchange_give_up(struct exchange *ex)
{
    if (ex->claim.ret_claim_id == 0) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    for (size_t i = 0; i < ex->identified.record_count; i++)
        ex->outcomes[i] = OUTCOME_NOT_SENT;
    ex->flight.error = ATTEMPT_ERROR_NONE;
    ex->flight.attempt_class = ATTEMPT_NOT_SENT;
    exchange_settle(ex);
}

static void exchange_on_settled(struct settlement *settlement, enum store_status status)
{
    struct exchange *ex = OWNER_OF(settlement, settlement);
    bool is_observed = ex->loop->program->settings->mode == MODE_OBSERVE;
    if (status != STORE_OK && !is_observed) {
        exchange_finish(ex, FINISH_LEDGER_FAILED);
        return;
    }
    enum outcome outcome = OUTCOME_APPLIED;
    for (size_t i = 0; i < ex->identified.record_count; i++) {
        if (ex->verdicts[i] == VERDICT_NEW)
            outcome = ex->outcomes[i];
    }
    exchange_finish(ex, answer_finish_of(ex, outcome));
}

/* ---- send ---------------------------------------------------------------------------------------------------- */

static void exchange_send(struct exchange *ex)
{
    const struct request *request = ex->request;
    exchange_move(ex, EX_FORWARDING);
    flight_deinit(&ex->flight);
    ex->flight = (struct flight){
        .method = request->head.method_text,
        .target = request->head.target,
        .fields = ex->pass.fields,
        .field_count = ex->pass.field_count,
        .host = ex->pass.host,
        .parts = ex->plan.parts,
        .part_count = ex->plan.part_count,
        .body_bytes = ex->plan.body_bytes,
        .has_body = request->head.framing != HTTP1_NO_BODY,
        .is_head_request = request->head.method == HTTP1_HEAD,
        .done = exchange_on_outcome,
    };
    upstream_send(ex->loop->upstream, &ex->flight);
}

/* Work out what goes to the target, and send it. */
static void exchange_forward(struct exchange *ex, const enum verdict verdicts[])
{
    const struct program *program = ex->loop->program;
    const struct settings *settings = program->settings;
    if (!plan_build(ex->request, &ex->identified, verdicts, ex->is_keyed && settings->is_stripped,
                    &ex->plan)) {
        exchange_give_up(ex);
        return;
    }
    pass_build(&ex->pass, ex->request, &ex->identified, settings,
               settings->is_via_added ? program->via : NULL);
    ex->retries_left = settings->connect_retries;
    exchange_send(ex);
}

static void exchange_on_outcome(struct flight *flight)
{
    struct exchange *ex = OWNER_OF(flight, flight);
    const struct settings *settings = ex->loop->program->settings;
    FAILPOINT("after_response");
    if (flight->sent_ns != 0)
        ex->target_ns += flight->ended_ns - flight->sent_ns;
    if (flight->attempt_class == ATTEMPT_NOT_SENT && flight->error != ATTEMPT_ERROR_QUEUE &&
        ex->retries_left > 0) {
        ex->retries_left--;
        exchange_send(ex);
        return;
    }
    int status = flight->attempt_class == ATTEMPT_KNOWN ? flight->response.status : 0;
    enum outcome outcome = outcome_of(flight->attempt_class, status, settings);
    for (size_t i = 0; i < ex->identified.record_count; i++)
        ex->outcomes[i] = outcome;
    if (ex->claim.ret_claim_id != 0)
        exchange_settle(ex);
    else
        exchange_finish(ex, answer_finish_of(ex, outcome));
}

/* ---- claim --------------------------------------------------------------------------------------------------- */

static void exchange_on_claimed(struct claim *claim, enum store_status status)
{
    struct exchange *ex = OWNER_OF(claim, claim);
    bool is_observed = ex->loop->program->settings->mode == MODE_OBSERVE;
    static const enum finish finish_of[] = { [STORE_FULL] = FINISH_LEDGER_FULL,
                                             [STORE_FAILED] = FINISH_LEDGER_FAILED,
                                             [STORE_BUSY] = FINISH_DOUBTS_FULL };
    if (status != STORE_OK) {
        claim->ret_claim_id = 0;
        if (is_observed) /* a plain proxy that only looks on must not stop for its notebook */
            exchange_forward(ex, NULL);
        else
            exchange_finish(ex, finish_of[status]);
        return;
    }
    enum finish finish = answer_finish_of_verdicts(ex);
    if (is_observed)
        exchange_forward(ex, NULL);
    else if (finish != FINISH_NONE)
        exchange_finish(ex, finish);
    else
        exchange_forward(ex, ex->verdicts);
}

static void exchange_claim(struct exchange *ex)
{
    const struct settings *settings = ex->loop->program->settings;
    size_t record_count = ex->identified.record_count;
    ex->verdicts = calloc(record_count, sizeof *ex->verdicts);
    ex->outcomes = calloc(record_count, sizeof *ex->outcomes);
    if (ex->verdicts == NULL || ex->outcomes == NULL) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    exchange_move(ex, EX_CLAIMING);
    ex->claim = (struct claim){
        .records = ex->identified.records,
        .record_count = record_count,
        .wait_ms = settings->mode == MODE_OBSERVE ? 0 : (uint32_t)settings->wait_ms,
        .done = exchange_on_claimed,
        .ret_verdicts = ex->verdicts,
    };
    store_claim(ex->loop->port, &ex->claim);
}

/* ---- begin --------------------------------------------------------------------------------------------------- */

static bool is_write(const struct request *request)
{
    enum http1_method method = request->head.method;
    return method == HTTP1_POST || method == HTTP1_PUT || method == HTTP1_PATCH || method == HTTP1_DELETE;
}

static void exchange_begin(struct exchange *ex)
{
    const struct program *program = ex->loop->program;
    const struct settings *settings = program->settings;
    if (settings->is_via_added && pass_is_loop(ex->request, program->via)) {
        exchange_finish(ex, FINISH_LOOP);
        return;
    }
    if (pass_ends_here(ex->request)) {
        exchange_finish(ex, FINISH_OPTIONS);
        return;
    }
    if (settings->mode == MODE_OFF || !is_write(ex->request)) {
        exchange_forward(ex, NULL);
        return;
    }
    if (!identify(program->identifier, ex->request, &ex->identified)) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    ex->is_keyed = ex->identified.record_count > 0;
    if (ex->identified.is_too_many)
        exchange_finish(ex, FINISH_TOO_MANY_RECORDS);
    else if (ex->is_keyed)
        exchange_claim(ex);
    else if (settings->is_unkeyed_rejected && settings->mode == MODE_ENFORCE)
        exchange_finish(ex, FINISH_UNKEYED_REFUSED);
    else
        exchange_forward(ex, NULL);
}

static void refuse_at_once(const struct loop *loop, struct conn *conn, struct request *request,
                           enum finish why)
{
    struct reply_room room;
    reply_own(&room, why, dialect_of(request), loop->program->settings, NULL, 0, 0);
    account_refused(why);
    metrics_request((int)request->head.method, room.reply.status);
    request_free(request);
    conn_reply(conn, &room.reply);
}

static void exchange_on_request(void *context, struct conn *conn, struct request **request_taken)
{
    struct loop *loop = context;
    const struct program *program = loop->program;
    struct request *request = *request_taken;
    *request_taken = NULL;
    if (loop->service.is_draining) {
        refuse_at_once(loop, conn, request, FINISH_DRAINING);
        return;
    }
    if (atomic_load(&program->in_flight) >= program->settings->in_flight_max) {
        refuse_at_once(loop, conn, request, FINISH_BUSY);
        return;
    }
    struct exchange *ex = exchange_get(loop);
    if (ex == NULL) {
        refuse_at_once(loop, conn, request, FINISH_NO_MEMORY);
        return;
    }
    ex->conn = conn;
    ex->request = request;
    ex->dialect = dialect_of(request);
    conn_exchange_set(conn, ex);
    exchange_begin(ex);
}

/* ---- what the connection tells ------------------------------------------------------------------------------- */

static void exchange_on_gone(void *context, void *exchange)
{
    struct exchange *ex = exchange;
    (void)context;
    ex->conn = NULL;
    metrics_add(COUNTER_ABORTS_WAITING, 1);
    LOG_EVENT_LIMITED(LOG_LEVEL_INFO, "client.abort",
                      "the connector left before its answer; the exchange with the target goes on",
                      log_text("peer", ex->request->peer));
}

static void on_refused(void *context, const char *peer, enum finish why)
{
    (void)context;
    account_refused(why);
    LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "http.refused", finish_rows[why].words, log_text("peer", peer),
                      log_text("reason", finish_rows[why].label));
}

static void on_abort(void *context, const char *peer, bool is_reading)
{
    (void)context;
    (void)peer;
    metrics_add(is_reading ? COUNTER_ABORTS_READING : COUNTER_ABORTS_WRITING, 1);
}

static void on_closed(void *context)
{
    struct loop *loop = context;
    atomic_fetch_sub(&loop->connections, 1);
    atomic_fetch_sub(&loop->program->connections, 1);
    metrics_gauge_add(GAUGE_CONNECTIONS, -1);
}

void exchange_service_init(struct loop *loop)
{
    enum { WRITE_TIMEOUT_MS = 30000 };
    const struct settings *settings = loop->program->settings;
    loop->service = (struct conn_service){
        .context = loop,
        .head_bytes_max = settings->head_bytes_max,
        .body_bytes_max = settings->body_bytes_max,
        .head_timeout_ms = settings->head_timeout_ms,
        .body_timeout_ms = settings->body_timeout_ms,
        .idle_timeout_ms = settings->idle_timeout_ms,
        .write_timeout_ms = WRITE_TIMEOUT_MS,
        .on_request = exchange_on_request,
        .on_gone = exchange_on_gone,
        .on_refused = on_refused,
        .on_abort = on_abort,
        .on_closed = on_closed,
    };
}
