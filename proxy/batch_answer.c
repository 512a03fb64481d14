/*
 * batch_answer.c - which dialect a request speaks, and what holds for all of them; see batch_answer.h.
 *
 * How each dialect is read and written stands in bulk_answer.c, splunk_answer.c and dapr_answer.c.
 */
#include "batch_answer.h"

#include "bulk_answer.h"
#include "dapr_answer.h"
#include "outcome.h"
#include "splunk_answer.h"

enum batch_dialect batch_dialect_of(const struct request *request, const struct identified *identified)
{
    if (identified->shape == SHAPE_IS_BULK)
        return BATCH_BULK;
    if (request_is_collector(request))
        return BATCH_SPLUNK;
    return dapr_is_bulk(identified) ? BATCH_DAPR : BATCH_PLAIN;
}

static bool has_media_type(const struct http1_head *head, const char *name)
{
    static const char media_type[] = "application/vnd.elasticsearch+";
    const struct http1_field *field = http1_field_find(head->fields, head->field_count, name);
    return field != NULL && field->value.byte_count > 0 &&
           memmem(field->value.at, field->value.byte_count, media_type, sizeof media_type - 1) != NULL;
}

bool batch_needs_product(const struct request *request)
{
    const struct http1_head *head = &request->head;
    return http1_field_find(head->fields, head->field_count, "x-elastic-client-meta") != NULL ||
           has_media_type(head, "accept") || has_media_type(head, "content-type");
}

/* ---- outcomes ------------------------------------------------------------------------------------------------ */

/* The element of an opaque request stands for all of its records. */
static void outcomes_fill(const struct identified *identified, const bool sent[], enum outcome outcome,
                          enum outcome outcomes[])
{
    bool is_opaque = identified->shape == SHAPE_IS_OPAQUE && identified->site_count > 0 && sent[0];
    for (size_t i = 0; is_opaque && i < identified->record_count; i++)
        outcomes[i] = outcome;
    for (size_t i = 0; i < identified->site_count; i++) {
        if (sent[i] && identified->sites[i].record != NO_RECORD)
            outcomes[identified->sites[i].record] = outcome;
    }
}

static bool is_success(int status)
{
    return status >= 200 && status <= 299;
}

/* OF_STATUS is what the status alone says. */
static enum outcome splunk_outcome(enum outcome of_status, struct slice body, bool *ret_has_ack_id,
                                   int64_t *ret_ack_id)
{
    enum splunk_proof proof = splunk_read(body, ret_ack_id);
    *ret_has_ack_id = proof == SPLUNK_ACKNOWLEDGES;
    if (proof == SPLUNK_SILENT)
        return of_status;
    return proof == SPLUNK_ACCEPTED ? OUTCOME_APPLIED : OUTCOME_UNKNOWN;
}

void batch_outcomes(enum batch_dialect dialect, int status, struct slice body,
                    const struct identified *identified, const bool sent[], const struct settings *settings,
                    enum outcome outcomes[], bool *ret_has_ack_id, int64_t *ret_ack_id)
{
    enum outcome outcome = outcome_of(ATTEMPT_KNOWN, status, settings);
    bool is_read = false;
    *ret_has_ack_id = false;
    /* What would prove all of a batch by its status alone must prove it record by record. */
    if (dialect != BATCH_PLAIN && (is_success(status) || outcome == OUTCOME_APPLIED)) {
        enum outcome of_status = outcome;
        outcome = OUTCOME_UNKNOWN;
        if (dialect == BATCH_BULK)
            is_read = bulk_outcomes(body, identified, sent, settings, outcomes);
        else if (dialect == BATCH_DAPR)
            is_read = dapr_outcomes(body, identified, sent, outcomes);
        else
            outcome = splunk_outcome(of_status, body, ret_has_ack_id, ret_ack_id);
    }
    if (!is_read)
        outcomes_fill(identified, sent, outcome, outcomes);
}

bool batch_hides_refusal(enum batch_dialect dialect, struct slice answer, const struct identified *identified,
                         const bool sent[], const struct settings *settings)
{
    return dialect == BATCH_BULK && bulk_hides_refusal(answer, identified, sent, settings);
}

/* ---- the answer ---------------------------------------------------------------------------------------------- */

static bool is_all_sent(const struct identified *identified, const bool sent[])
{
    for (size_t i = 0; i < identified->site_count; i++) {
        if (!sent[i])
            return false;
    }
    return true;
}

bool batch_answer(enum batch_dialect dialect, int answer_status, struct slice answer,
                  const struct identified *identified, const bool sent[], int64_t ack_id, char **ret_body,
                  size_t *ret_body_bytes, const char **ret_content_type)
{
    bool has_answer = answer_status != 0;
    *ret_body = NULL;
    *ret_body_bytes = 0;
    *ret_content_type = has_answer ? NULL : "application/json";
    /* A refusal stays the target's own: the retry finds the records that were left out as known again. */
    if (dialect == BATCH_PLAIN || (has_answer && !is_success(answer_status)))
        return true;
    if (has_answer && is_all_sent(identified, sent))
        return dialect != BATCH_BULK || bulk_answer_whole(answer, identified, sent, ret_body, ret_body_bytes);
    if (dialect == BATCH_BULK)
        return bulk_answer(has_answer, answer, identified, sent, ret_body, ret_body_bytes);
    if (dialect == BATCH_SPLUNK) /* the acknowledgement of what was sent stands for the batch */
        return has_answer || splunk_success(ack_id, ret_body, ret_body_bytes);
    /* An app that answers with nothing may label it with anything. */
    *ret_content_type = "application/json";
    return dapr_answer(has_answer, answer, identified, sent, ret_body, ret_body_bytes);
}
