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

#include "bearer.h"
#include "clock.h"
#include "exchange_state.h"
#include "failpoint.h"
#include "log.h"
#include "metrics.h"
#include "prober_context.h"
#include "reply_head.h"

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

void exchange_move(struct exchange *ex, enum exchange_state next)
{
    assert(may_become[ex->state] & (1u << next));
    ex->state = next;
}

static bool is_observed(const struct exchange *ex)
{
    return ex->mode == MODE_OBSERVE;
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
#ifndef BREAK_ALLOCATION
        if (ex == NULL)
            return NULL;
#endif
    }
    ex->loop = loop;
    ex->credentials = credentials_hold(loop->credentials);
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
#ifndef BREAK_RELEASE_BODY
    request_free(ex->request);
#endif
    credentials_release(ex->credentials);
    identified_deinit(&ex->identified);
    split_free(ex->parts);
    ack_poll_free(ex->poll);
    plan_deinit(&ex->plan);
    flight_deinit(&ex->flight);
    store_claim_deinit(&ex->claim);
    free(ex->contexts);
    free(ex->sent);
    free(ex->verdicts);
    free(ex->outcomes);
    free(ex->answer_opened);
    free(ex->made_body);
    /* What stands behind pass is large, and each request sets it anew: only what must be zero is made so. */
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
void exchange_finish(struct exchange *ex, enum finish finish)
{
    ex->finish = finish;
    exchange_move(ex, EX_DONE);
    FAILPOINT("before_reply");
    answer_send(ex);
    account_finish(ex);
    exchange_put(ex);
}

/* ---- settle -------------------------------------------------------------------------------------------------- */

enum doubt_cause doubt_cause_of(const struct flight *flight)
{
    if (flight->attempt_class == ATTEMPT_KNOWN)
        return DOUBT_STATUS;
    if (flight->error == ATTEMPT_ERROR_TIMEOUT)
        return DOUBT_TIMEOUT;
    return flight->error == ATTEMPT_ERROR_GUARD ? DOUBT_GUARD : DOUBT_NO_REPLY;
}

const char *doubt_words_of(const struct flight *flight)
{
    return flight->detail[0] != '\0' ? flight->detail : "the target's 2xx proves nothing of it";
}

/* What is kept to be given again, of requests with one record: never a body that is cut, or coded in a way that the
 * next client may not know. */
static struct stored_reply reply_to_keep(const struct exchange *ex)
{
    const struct flight *flight = &ex->flight;
    const struct http1_response *response = &flight->response;
    struct stored_reply kept = { 0 };
    if (ex->identified.site_count != 1 || ex->identified.record_count != 1 || ex->batch != BATCH_PLAIN ||
        ex->outcomes[0] != OUTCOME_APPLIED || flight->is_answer_damaged || response->status / 100 != 2 ||
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
        .cause = doubt_cause_of(&ex->flight),
        .detail = doubt_words_of(&ex->flight),
        .reply = reply_to_keep(ex),
        .done = exchange_on_settled,
    };
    store_settle(ex->loop->port, &ex->settlement);
}

/* Nothing is sent after all: give the claim back and say why. */
static void exchange_give_up(struct exchange *ex, enum finish why)
{
    if (ex->claim.ret_claim_id == 0) {
        exchange_finish(ex, why);
        return;
    }
    for (size_t i = 0; i < ex->identified.record_count; i++)
        ex->outcomes[i] = OUTCOME_NOT_SENT;
    ex->given_up = why;
    exchange_settle(ex);
}

static void exchange_on_settled(struct settlement *settlement, enum store_status status)
{
    struct exchange *ex = OWNER_OF(settlement, settlement);
    if (status != STORE_OK && !is_observed(ex))
        exchange_finish(ex, FINISH_LEDGER_FAILED);
    else if (ex->given_up != FINISH_NONE)
        exchange_finish(ex, ex->given_up);
    else
        exchange_finish(ex, answer_finish_of(ex));
}

/* ---- send ---------------------------------------------------------------------------------------------------- */

#ifdef BREAK_BODY_BYTES
#include <jansson.h>
/* The same JSON, but not the same bytes.  What it makes is never freed. */
static void dump_again(struct flight *flight)
{
    char *body = malloc(flight->body_bytes + 1), *at = body;
    for (size_t i = 0; i < flight->part_count; i++)
        at = mempcpy(at, flight->parts[i].at, flight->parts[i].byte_count);
    json_t *json = json_loadb(body, flight->body_bytes, 0, NULL);
    struct slice *part = malloc(sizeof *part);
    *part = json == NULL ? slice_of(body, flight->body_bytes) : slice_of_text(json_dumps(json, 0));
    flight->parts = part;
    flight->part_count = 1;
    flight->body_bytes = part->byte_count;
}
#endif

void exchange_flight_begin(struct flight *flight, const struct exchange *ex, const struct plan *plan,
                           const struct pass *pass, void (*done)(struct flight *flight))
{
    const struct request *request = ex->request;
    flight_deinit(flight);
    *flight = (struct flight){
        .method = request->head.method_text,
        .target = request->head.target,
        .fields = pass->fields,
        .field_count = pass->field_count,
        .host = pass->host,
        .parts = plan->parts,
        .part_count = plan->part_count,
        .body_bytes = plan->body_bytes,
        .has_body = request->head.framing != HTTP1_NO_BODY,
        .is_head_request = request->head.method == HTTP1_HEAD,
        .stop = ex->is_keyed && !is_observed(ex) ? store_failing(ex->loop->program->store) : NULL,
        .done = done,
    };
#ifdef BREAK_BODY_BYTES
    dump_again(flight);
#endif
    upstream_send(ex->loop->upstream, flight);
}

static void exchange_send(struct exchange *ex)
{
    exchange_move(ex, EX_FORWARDING);
    exchange_flight_begin(&ex->flight, ex, &ex->plan, &ex->pass, exchange_on_outcome);
}

/* Which elements go; false: no memory. */
static bool sent_note(struct exchange *ex, const enum verdict verdicts[])
{
    size_t site_count = ex->identified.site_count;
    if (site_count == 0)
        return true;
    ex->sent = calloc(site_count, sizeof *ex->sent);
    if (ex->sent == NULL)
        return false;
    for (size_t i = 0; i < site_count; i++) {
        ex->sent[i] = is_observed(ex) || plan_site_is_sent(&ex->identified, verdicts, i);
        ex->is_cut = ex->is_cut || !ex->sent[i];
    }
    return true;
}

/* Observing changes nothing: the whole body goes, repeats and coordinates included. */
static bool body_plan(struct exchange *ex, const enum verdict verdicts[])
{
    static const struct identified nothing;
    if (is_observed(ex))
        return plan_build(ex->request, &nothing, NULL, false, &ex->plan);
    bool is_stripped = ex->is_keyed && ex->loop->program->settings->is_stripped;
    return plan_build(ex->request, &ex->identified, verdicts, is_stripped, &ex->plan);
}

static bool is_split(const struct exchange *ex)
{
    return ex->loop->program->settings->split == SPLIT_RECORD && ex->batch == BATCH_PLAIN &&
           ex->plan.site_count > 1 && !ex->identified.is_uncuttable && !is_observed(ex);
}

/* Work out what goes to the target, and send it. */
static void exchange_forward(struct exchange *ex, const enum verdict verdicts[])
{
    const struct program *program = ex->loop->program;
    const struct settings *settings = program->settings;
    if (!body_plan(ex, verdicts) || !sent_note(ex, verdicts)) {
        exchange_give_up(ex, FINISH_NO_MEMORY);
        return;
    }
    if (ex->is_keyed && !is_observed(ex) && ex->plan.site_count == 0) {
        exchange_finish(ex, FINISH_DUPLICATE);
        return;
    }
    pass_build(&ex->pass, ex->request, &ex->identified, &ex->credentials->settings,
               settings->is_via_added ? program->via : NULL);
    if (ex->batch != BATCH_PLAIN)
        pass_drop(&ex->pass, "accept-encoding");
    ex->retries_left = settings->connect_retries;
    if (!is_split(ex))
        exchange_send(ex);
    else if (!split_start(ex))
        exchange_give_up(ex, FINISH_NO_MEMORY);
}

void exchange_answer_open(struct exchange *ex)
{
    const struct flight *flight = &ex->flight;
    const struct http1_field *field =
        http1_field_find(flight->response.fields, flight->response.field_count, "content-encoding");
    enum coding coding = field == NULL ? CODING_IDENTITY : coding_of(field->value);
    size_t opened_bytes = 0;
    ex->answer = slice_of(flight->answer, flight->answer_bytes);
    if (coding == CODING_IDENTITY)
        return;
    ex->answer = slice_of("", 0);
    if (coding_open(&coding, slice_of(flight->answer, flight->answer_bytes),
                    ex->loop->program->settings->response_bytes_max, &ex->answer_opened,
                    &opened_bytes) == CODING_OK)
        ex->answer = slice_of(ex->answer_opened, opened_bytes);
}

static void outcomes_note(struct exchange *ex)
{
    const struct flight *flight = &ex->flight;
    const struct settings *settings = ex->loop->program->settings;
    int status = flight->attempt_class == ATTEMPT_KNOWN ? flight->response.status : 0;
    if (flight->attempt_class == ATTEMPT_KNOWN && ex->batch != BATCH_PLAIN) {
        exchange_answer_open(ex);
        if (flight->is_answer_damaged) /* what is missing may be an ackId, or an item that failed */
            ex->answer = slice_of("{", 1);
        batch_outcomes(ex->batch, status, ex->answer, &ex->identified, ex->sent, settings, ex->outcomes,
                       &ex->has_ack_id, &ex->ack_id);
        return;
    }
    enum outcome outcome = outcome_of(flight->attempt_class, status, settings);
    for (size_t i = 0; i < ex->identified.record_count; i++)
        ex->outcomes[i] = outcome;
}

static void exchange_on_outcome(struct flight *flight)
{
    struct exchange *ex = OWNER_OF(flight, flight);
    FAILPOINT("after_response");
    if (flight->sent_ns != 0)
        ex->target_ns += flight->ended_ns - flight->sent_ns;
    if (flight_may_go_again(flight) && ex->retries_left > 0) {
        ex->retries_left--;
        exchange_send(ex);
        return;
    }
    if (ex->outcomes != NULL)
        outcomes_note(ex);
    if (ex->claim.ret_claim_id == 0)
        exchange_finish(ex, answer_finish_of(ex));
    else if (ex->has_ack_id && ack_claim_keep(ex))
        exchange_finish(ex, ex->is_cut ? FINISH_PARTIAL : FINISH_FORWARDED);
    else
        exchange_settle(ex);
}

void exchange_on_split(struct exchange *ex)
{
    exchange_finish(ex, split_is_unsettled(ex) ? FINISH_LEDGER_FAILED : answer_finish_of(ex));
}

/* ---- claim --------------------------------------------------------------------------------------------------- */

/* A request that cannot be cut goes whole, or is dropped whole. */
static bool is_torn(const struct exchange *ex)
{
    const struct identified *identified = &ex->identified;
    size_t applied_count = identified->record_count - ex->claim.ret_new_count;
    bool has_other = ex->claim.ret_new_count > 0;
    for (size_t i = 0; i < identified->site_count && !has_other; i++)
        has_other = identified->sites[i].record == NO_RECORD;
    return identified->is_uncuttable && applied_count > 0 && has_other;
}

static void exchange_on_claimed(struct claim *claim, enum store_status status)
{
    struct exchange *ex = OWNER_OF(claim, claim);
    free(ex->contexts);
    ex->contexts = NULL;
    claim->contexts = NULL;
    static const enum finish finish_of[] = { [STORE_FULL] = FINISH_LEDGER_FULL,
                                             [STORE_FAILED] = FINISH_LEDGER_FAILED,
                                             [STORE_BUSY] = FINISH_DOUBTS_FULL,
                                             [STORE_CROWDED] = FINISH_PARTITIONS_FULL };
    if (status != STORE_OK) {
        claim->ret_claim_id = 0;
        if (is_observed(ex)) /* a plain proxy that only looks on must not stop for its notebook */
            exchange_forward(ex, NULL);
        else
            exchange_finish(ex, finish_of[status]);
        return;
    }
    enum finish finish = answer_finish_of_verdicts(ex);
    if (is_observed(ex))
        exchange_forward(ex, NULL);
    else if (finish != FINISH_NONE)
        exchange_finish(ex, finish);
    else if (is_torn(ex))
        exchange_give_up(ex, FINISH_UNCUTTABLE);
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
    if (settings->in_doubt == IN_DOUBT_PROBE && settings->probe_url.pointer_count > 0) {
        ex->contexts = probe_contexts_new(&settings->probe_url, &ex->identified);
        if (ex->contexts == NULL) {
            exchange_finish(ex, FINISH_NO_MEMORY);
            return;
        }
    }
    exchange_move(ex, EX_CLAIMING);
    ex->claim = (struct claim){
        .records = ex->identified.records,
        .record_count = record_count,
        .contexts = ex->contexts,
        .wait_ms = is_observed(ex) ? 0 : (uint32_t)settings->wait_ms,
        .done = exchange_on_claimed,
        .ret_verdicts = ex->verdicts,
    };
    store_claim(ex->loop->port, &ex->claim);
}

/* ---- begin --------------------------------------------------------------------------------------------------- */

/* What stands beside the body: the opened one, and the lists of its records with what the claim and the plan add to each.
 * Short lists are not worth counting. */
static bool room_take(struct exchange *ex)
{
    enum { LIST_BYTES_FREE = 4096 };
    const struct identified *identified = &ex->identified;
    size_t each_bytes = sizeof *ex->verdicts + sizeof *ex->outcomes + sizeof *ex->sent;
    size_t list_bytes = identified_list_bytes(identified) + identified->site_count * each_bytes;
    size_t byte_count = identified->decoded == NULL ? 0 : identified->body.byte_count;
    byte_count += list_bytes > LIST_BYTES_FREE ? list_bytes : 0;
    return byte_count == 0 || request_room_take(ex->request, byte_count);
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
    if (ex->mode == MODE_OFF || !request_is_write(ex->request)) {
        exchange_forward(ex, NULL);
        return;
    }
    if (ack_poll_is(ex)) {
        ack_poll_begin(ex);
        return;
    }
    if (!identify(program->identifier, ex->request, &ex->identified)) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    ex->is_keyed = ex->identified.record_count > 0;
    if (!room_take(ex)) {
        exchange_finish(ex, FINISH_BUSY);
        return;
    }
    ex->batch = batch_dialect_of(ex->request, &ex->identified);
    if (ex->identified.is_too_many && !is_observed(ex))
        exchange_finish(ex, FINISH_TOO_MANY_RECORDS);
    else if (ex->identified.is_too_large && !is_observed(ex)) /* what cannot be read may hold known records */
        exchange_finish(ex, FINISH_BODY_TOO_LARGE);
    else if (ex->identified.is_contradictory && !ex->identified.is_uncuttable && !is_observed(ex))
        exchange_finish(ex, FINISH_CONTRADICTION);
    else if (ex->is_keyed)
        exchange_claim(ex);
    else if (settings->is_unkeyed_rejected && ex->mode == MODE_ENFORCE)
        exchange_finish(ex, FINISH_UNKEYED_REFUSED);
    else
        exchange_forward(ex, NULL);
}

static void refuse_at_once(const struct loop *loop, struct conn *conn, struct request *request,
                           enum finish why)
{
    struct reply_room room;
    reply_own(&room, why, dialect_of(request), loop->program->settings, NULL, 0, 0);
    if (request->head.method == HTTP1_HEAD)
        reply_leave_body_out(&room.reply);
    account_refused(why);
    metrics_request((int)request->head.method, room.reply.status);
    request_free(request);
    conn_reply(conn, &room.reply);
}

static enum finish exchange_on_head(void *context, const struct http1_head *head)
{
    const struct loop *loop = context;
    const char *token = loop->credentials->settings.client_token;
    return token[0] == '\0' || bearer_opens(head, token) ? FINISH_NONE : FINISH_UNAUTHORIZED;
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
    if (atomic_load(&program->in_flight) >= program->settings->in_flight_max ||
        body_pool_is_full(&program->bodies)) {
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
    ex->mode = (enum mode)atomic_load(&program->mode);
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

static void on_handshake_failed(void *context, const char *peer, enum tls_failure failure, const char *words)
{
    (void)context;
    tls_failure_tell("SINKONCE_LISTEN", peer, failure, words);
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
        .bodies = &loop->program->bodies,
        .body_bytes_max = settings->body_bytes_max,
        .head_timeout_ms = settings->head_timeout_ms,
        .body_timeout_ms = settings->body_timeout_ms,
        .idle_timeout_ms = settings->idle_timeout_ms,
        .write_timeout_ms = WRITE_TIMEOUT_MS,
        .tls = loop->credentials->tls[TLS_USE_LISTEN],
        .on_head = exchange_on_head,
        .on_request = exchange_on_request,
        .on_gone = exchange_on_gone,
        .on_refused = on_refused,
        .on_handshake_failed = on_handshake_failed,
        .on_abort = on_abort,
        .on_closed = on_closed,
    };
    reply_retry_after(loop->service.retry_after, sizeof loop->service.retry_after, settings);
}
