/*
 * batch_answer.h - answers to requests that hold several records: what they prove for each, and what the connector is
 * given when some records were left out.
 *
 * A decider: bytes in, outcomes and bytes out.  Bodies are identity coded.  Dialects: bulk (Elasticsearch, OpenSearch),
 * Splunk's HTTP Event Collector, Dapr's bulk subscribe, everything else.
 */
#ifndef SINKONCE_BATCH_ANSWER_H
#define SINKONCE_BATCH_ANSWER_H

#include "identify.h"
#include "settings.h"
#include "store.h"

enum batch_dialect { BATCH_PLAIN, BATCH_BULK, BATCH_SPLUNK, BATCH_DAPR };
enum batch_dialect batch_dialect_of(const struct request *request, const struct identified *identified);

/*
 * What a complete answer with STATUS proves for each element that was sent.  OUTCOMES has a cell per record of
 * IDENTIFIED; only those of sent elements are written.  SENT has a cell per element (site).
 *   BULK    per item, by the item's status and the two status settings: 2xx without "error" is applied, with it unknown;
 *           a version conflict (409) of a create whose _id is the record's coordinates, or of external versioning, is
 *           applied; so is a delete whose document was not there (404 without "error").
 *           A 2xx answer that does not hold exactly one well-formed item per sent action proves nothing: all unknown.
 *   SPLUNK  2xx proves the batch with "code" 0; with acknowledgement ("ackId") nothing is proved yet: *RET_ACK_ID
 *           is set, and the outcome is left to the acknowledgement (acks.h); a body that is no JSON object is not the
 *           collector's, so the status decides
 *   DAPR    2xx with "statuses": SUCCESS applied, DROP and RETRY not applied, per entry; anything else, and an entry
 *           that is not named, unknown; no body: all applied
 *   PLAIN   the status decides for all
 * A status that is not 2xx decides for all, as in PLAIN; where the settings call it applied, the body must prove it.
 */
void batch_outcomes(enum batch_dialect dialect, int status, struct slice body, const struct identified *identified,
                    const bool sent[], const struct settings *settings, enum outcome outcomes[], bool *ret_has_ack_id,
                    int64_t *ret_ack_id);

/*
 * The answer for the connector when elements were left out (or all of them: ANSWER_STATUS 0, nothing was sent).
 * *RET_BODY is owned by the caller; NULL: the target's own body goes on unchanged (nothing was left out, or its status
 * is not 2xx), or, when nothing was sent, an empty one.  *RET_CONTENT_TYPE is static, or NULL for the target's own.
 * False: no memory, or the target's answer does not fit what was sent.
 *   BULK    one item per action of the request in its order: the target's own bytes for those that were sent, made-up
 *           ones for those that were left out; a repeat of a record whose item has an error has the same error.
 *           "errors" is recomputed; no other member but took, ingest_took, errors, items.  With nothing left out the
 *           target's own, but for "errors":false beside an item with an error: that becomes true
 *   SPLUNK  nothing sent: {"text":"Success","code":0}, with ACK_ID >= 0 also "ackId"; else NULL, the target's "ackId"
 *           stands for the batch
 *   DAPR    every entry named: the target's statuses, SUCCESS for those that were left out
 *   PLAIN   NULL
 * An element without coordinates is always sent.
 */
MUST_CHECK bool batch_answer(enum batch_dialect dialect, int answer_status, struct slice answer,
                             const struct identified *identified, const bool sent[], int64_t ack_id,
                             char **ret_body, size_t *ret_body_bytes, const char **ret_content_type);

/* Does a 2xx of the target hide that it refused a record?  Of BULK, an item that was refused without an "error": every
 * client takes it for delivered.  True also when it cannot be known: no memory. */
bool batch_hides_refusal(enum batch_dialect dialect, struct slice answer, const struct identified *identified,
                         const bool sent[], const struct settings *settings);

/* Clients of Elasticsearch from 8 on refuse a 2xx without the field "X-Elastic-Product: Elasticsearch".  True when REQUEST
 * is from one of them: an answer that is made up for it must carry that field.  The target need not have said it yet: a
 * client that sends only duplicates after a restart would never get past them. */
bool batch_needs_product(const struct request *request);

#endif
