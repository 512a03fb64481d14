/*
 * dapr_answer.h - answers to Dapr's bulk subscriptions.  Private to batch_answer.c and its tests.
 *
 * Contracts as for batch_outcomes() and batch_answer(), for BATCH_DAPR and a status of 2xx or 0.
 */
#ifndef SINKONCE_DAPR_ANSWER_H
#define SINKONCE_DAPR_ANSWER_H

#include "batch_answer.h"

/* Is it such a request?  Each element has an "entryId"; the first one is looked at. */
bool dapr_is_bulk(const struct identified *identified);

/* False: the answer or the request cannot be read, or no memory; OUTCOMES is untouched. */
MUST_CHECK bool dapr_outcomes(struct slice body, const struct identified *identified, const bool sent[],
                              enum outcome outcomes[]);

/* HAS_ANSWER false: nothing was sent. */
MUST_CHECK bool dapr_answer(bool has_answer, struct slice body, const struct identified *identified,
                            const bool sent[], char **ret_body, size_t *ret_body_bytes);

#endif
