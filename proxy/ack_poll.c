/*
 * ack_poll.c - acknowledgements of Splunk's Event Collector on their way through.
 *
 *   poll {"acks":[7,ours]} --> {"acks":[7]} to the target --> its answer --> what is true is settled --> {"acks":{...}}
 *
 * The connector hears "true" only once the ledger has it on disk.  Ids that were made up here are true at once.
 * Neighbours: acks.h keeps the open claims, exchange.c the rest of the story.
 */
#include <assert.h>
#include <stdlib.h>

#include "acks.h"
#include "clock.h"
#include "coding.h"
#include "exchange.h"
#include "exchange_state.h"
#include "log.h"
#include "metrics.h"
#include "splunk_answer.h"

struct ack_poll {
    struct exchange *ex; /* borrowed */
    int64_t *ids;        /* owned: all that were asked for */
    size_t id_count;
    int64_t *target_ids; /* owned: those of the target */
    size_t target_count;
    bool *is_done; /* owned: a cell for each of ids */
    char *opened;  /* owned: what came, without its content coding; NULL: it had none */
    char *body;    /* owned: what the target is asked, when it differs from what came */
    struct slice part;
    size_t open_count; /* settlements that are not on disk yet */
    bool is_answered;  /* the target's answer was read, or was not needed */
    bool is_unsettled;
    bool is_unread;     /* the poll itself is not understood: which ids it asks for */
    bool is_unreadable; /* a 2xx to words that are not understood, or in such: it must not be told on */
};

/* ---- claims that wait ---------------------------------------------------------------------------------------- */

static void expired_settled(struct settlement *settlement, enum store_status status)
{
    struct ack *ack = (struct ack *)(void *)((char *)settlement - offsetof(struct ack, settlement));
    struct loop *loop = ack->context;
    (void)status; /* the ledger goes on trying by itself; nobody waits for it here */
    loop->unwaited_count--;
    ack_free(ack);
}

static void ack_settle(struct store_port *port, struct ack *ack, enum outcome outcome, const char *detail,
                       void (*done)(struct settlement *settlement, enum store_status status))
{
    for (size_t i = 0; i < ack->record_count; i++) {
        ack->outcomes[i] = outcome;
        if (ack->verdicts[i] != VERDICT_NEW)
            continue;
        unsigned topic = metrics_topic(ack->records[i].key.topic);
        metrics_add_topic(COUNTER_RECORDS, topic, 1);
        metrics_add_topic(outcome == OUTCOME_APPLIED ? COUNTER_RECORDS_APPLIED : COUNTER_RECORDS_IN_DOUBT,
                          topic, 1);
    }
    ack->settlement = (struct settlement){ .claim_id = ack->claim_id,
                                           .records = ack->records,
                                           .verdicts = ack->verdicts,
                                           .outcomes = ack->outcomes,
                                           .record_count = ack->record_count,
                                           .cause = DOUBT_TIMEOUT,
                                           .detail = detail,
                                           .done = done };
    store_settle(port, &ack->settlement);
}

/* No exchange waits for it. */
static void ack_give_up(struct loop *loop, struct ack *ack, const char *detail)
{
    loop->unwaited_count++;
    ack->context = loop;
    ack_settle(loop->port, ack, OUTCOME_UNKNOWN, detail, expired_settled);
}

bool ack_claim_keep(struct exchange *ex)
{
    struct loop *loop = ex->loop;
    struct ack *replaced = NULL;
    enum acks_status status = acks_open(loop->program->acks, acks_channel_of(ex->request), ex->ack_id,
                                        ex->claim.ret_claim_id, ex->identified.records, ex->verdicts,
                                        ex->identified.record_count, clock_monotonic_ns(), &replaced);
    if (replaced != NULL)
        ack_give_up(loop, replaced, "the target began to count its acknowledgements anew");
    if (status == ACKS_OPENED)
        return true;
    for (size_t i = 0; i < ex->identified.record_count; i++)
        ex->outcomes[i] = OUTCOME_UNKNOWN;
    return false;
}

void ack_sweep(struct loop *loop)
{
    struct ack *next = NULL;
    for (struct ack *ack = acks_take_expired(loop->program->acks, clock_monotonic_ns()); ack != NULL;
         ack = next) {
        next = ack->next;
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "record.in_doubt", "the target never acknowledged a batch",
                          log_integer("ack_id", ack->ack_id),
                          log_integer("records", (int64_t)ack->record_count));
        ack_give_up(loop, ack, "received, but never acknowledged");
    }
}

/* ---- a poll -------------------------------------------------------------------------------------------------- */

bool ack_poll_is(const struct exchange *ex)
{
    static const char path[] = "/services/collector/ack";
    const struct http1_head *head = &ex->request->head;
    const size_t bytes = sizeof path - 1;
    return head->method == HTTP1_POST && head->path.byte_count >= bytes &&
           memcmp(head->path.at + head->path.byte_count - bytes, path, bytes) == 0;
}

void ack_poll_free(struct ack_poll *poll)
{
    if (poll == NULL)
        return;
    free(poll->ids);
    free(poll->target_ids);
    free(poll->is_done);
    free(poll->opened);
    free(poll->body);
    free(poll);
}

/* False: no memory.  Ids of our own are marked done, the others are the target's. */
static bool ids_sort(struct ack_poll *poll, struct acks *acks)
{
    poll->target_ids = calloc(poll->id_count + 1, sizeof *poll->target_ids);
    poll->is_done = calloc(poll->id_count + 1, sizeof *poll->is_done);
    if (poll->target_ids == NULL || poll->is_done == NULL)
        return false;
    for (size_t i = 0; i < poll->id_count; i++) {
        poll->is_done[i] = acks_is_own(acks, poll->ids[i]);
        if (!poll->is_done[i])
            poll->target_ids[poll->target_count++] = poll->ids[i];
    }
    return true;
}

static void poll_go_on(struct ack_poll *poll)
{
    if (poll->open_count > 0)
        return;
    if (poll->is_unreadable)
        exchange_finish(poll->ex, FINISH_TARGET_LOST);
    else
        exchange_finish(poll->ex, poll->is_unsettled ? FINISH_LEDGER_FAILED : answer_finish_of(poll->ex));
}

static void done_settled(struct settlement *settlement, enum store_status status)
{
    struct ack *ack = (struct ack *)(void *)((char *)settlement - offsetof(struct ack, settlement));
    struct ack_poll *poll = ack->context;
    poll->is_unsettled = poll->is_unsettled || status != STORE_OK;
    poll->open_count--;
    ack_free(ack);
    poll_go_on(poll);
}

/* What the target says of its ids goes into the cells of all; then every claim that came true is settled. */
static bool answer_take(struct ack_poll *poll)
{
    struct exchange *ex = poll->ex;
    bool *is_done = calloc(poll->target_count + 1, sizeof *is_done);
    exchange_answer_open(ex);
    if (is_done == NULL ||
        !splunk_poll_answer_read(ex->answer, poll->target_ids, poll->target_count, is_done)) {
        free(is_done);
        return false;
    }
    for (size_t i = 0, target = 0; i < poll->id_count; i++) {
        if (target < poll->target_count && poll->ids[i] == poll->target_ids[target])
            poll->is_done[i] = is_done[target++];
    }
    struct ack *next = NULL;
    struct ack *first = acks_take_done(ex->loop->program->acks, acks_channel_of(ex->request),
                                       poll->target_ids, is_done, poll->target_count);
    free(is_done);
    for (struct ack *ack = first; ack != NULL; ack = ack->next)
        poll->open_count++;
    for (struct ack *ack = first; ack != NULL; ack = next) {
        next = ack->next;
        ack->context = poll;
        ack_settle(ex->loop->port, ack, OUTCOME_APPLIED, "", done_settled);
    }
    return true;
}

static void poll_on_outcome(struct flight *flight)
{
    struct exchange *ex = (struct exchange *)(void *)((char *)flight - offsetof(struct exchange, flight));
    struct ack_poll *poll = ex->poll;
    if (flight->sent_ns != 0)
        ex->target_ns += flight->ended_ns - flight->sent_ns;
    bool is_read = flight->attempt_class == ATTEMPT_KNOWN && !flight->is_answer_damaged &&
                   flight->response.status / 100 == 2;
    poll->is_answered = is_read && answer_take(poll);
    bool is_ours = poll->target_count < poll->id_count || acks_open_count(ex->loop->program->acks) > 0;
    poll->is_unreadable = is_read && is_ours && (poll->is_unread || !poll->is_answered);
    poll_go_on(poll);
}

/* The target is asked for its own ids only; a body of nothing else goes on as it came. */
static bool poll_send(struct ack_poll *poll)
{
    struct exchange *ex = poll->ex;
    const struct program *program = ex->loop->program;
    size_t bytes = 0;
    poll->part = slice_of(ex->request->body, ex->request->body_bytes);
    if (poll->target_count < poll->id_count) {
        if (!splunk_poll_write(poll->target_ids, poll->target_count, &poll->body, &bytes))
            return false;
        poll->part = slice_of(poll->body, bytes);
    }
    pass_build(&ex->pass, ex->request, NULL, &ex->credentials->settings,
               program->settings->is_via_added ? program->via : NULL);
    pass_drop(&ex->pass, "accept-encoding");
    if (poll->body != NULL)
        pass_drop(&ex->pass, "content-encoding");
    exchange_move(ex, EX_FORWARDING);
    const struct plan plan = { .parts = &poll->part, .part_count = 1, .body_bytes = poll->part.byte_count };
    exchange_flight_begin(&ex->flight, ex, &plan, &ex->pass, poll_on_outcome);
    return true;
}

/* The ids that are asked for; none when they cannot be read: then it is the target's to refuse. */
static void ids_read(struct ack_poll *poll)
{
    const struct request *request = poll->ex->request;
    const struct http1_field *field =
        http1_field_find(request->head.fields, request->head.field_count, "content-encoding");
    enum coding coding = field == NULL ? CODING_IDENTITY : coding_of(field->value);
    struct slice body = slice_of(request->body, request->body_bytes);
    size_t opened_bytes = 0;
    if (coding != CODING_IDENTITY &&
        coding_open(&coding, body, poll->ex->loop->program->settings->body_bytes_max, &poll->opened,
                    &opened_bytes) == CODING_OK)
        body = slice_of(poll->opened, opened_bytes);
    poll->is_unread = !splunk_poll_read(body, &poll->ids, &poll->id_count);
    if (poll->is_unread)
        poll->id_count = 0;
}

void ack_poll_begin(struct exchange *ex)
{
    struct ack_poll *poll = calloc(1, sizeof *poll);
    ex->poll = poll;
    if (poll == NULL) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    poll->ex = ex;
    ids_read(poll);
    if (!ids_sort(poll, ex->loop->program->acks)) {
        exchange_finish(ex, FINISH_NO_MEMORY);
        return;
    }
    if (poll->id_count > 0 && poll->target_count == 0) {
        poll->is_answered = true;
        exchange_finish(ex, FINISH_APPLIED);
    } else if (!poll_send(poll)) {
        exchange_finish(ex, FINISH_NO_MEMORY);
    }
}

bool ack_poll_answer(struct exchange *ex, struct reply_room *room)
{
    struct ack_poll *poll = ex->poll;
    size_t bytes = 0;
    bool has_own = poll->target_count < poll->id_count;
    if (!poll->is_answered || poll->is_unsettled || !has_own ||
        (ex->finish != FINISH_FORWARDED && ex->finish != FINISH_APPLIED))
        return false;
    if (!splunk_poll_answer_write(poll->ids, poll->is_done, poll->id_count, &ex->made_body, &bytes)) {
        reply_own(room, FINISH_NO_MEMORY, ex->dialect, ex->loop->program->settings, NULL, 0, 0);
        return true;
    }
    const struct stored_reply made = { 200, slice_of_text("application/json"),
                                       slice_of(ex->made_body, bytes) };
    reply_success(room, FINISH_FORWARDED, DIALECT_PLAIN, &made, false, ex->loop->program->settings);
    return true;
}
