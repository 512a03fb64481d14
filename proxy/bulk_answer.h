/*
 * bulk_answer.h - answers of the bulk API of Elasticsearch and OpenSearch.  Private to batch_answer.c and its tests.
 *
 * Contracts as for batch_outcomes() and batch_answer(), for BATCH_BULK and a status of 2xx or 0.
 */
#ifndef SINKONCE_BULK_ANSWER_H
#define SINKONCE_BULK_ANSWER_H

#include "batch_answer.h"

/* False: the answer does not hold exactly one well-formed item per sent action, or no memory; OUTCOMES is untouched. */
MUST_CHECK bool bulk_outcomes(struct slice body, const struct identified *identified, const bool sent[],
                              const struct settings *settings, enum outcome outcomes[]);

/* HAS_ANSWER false: nothing was sent, every item is made up. */
MUST_CHECK bool bulk_answer(bool has_answer, struct slice answer, const struct identified *identified,
                            const bool sent[], char **ret_body, size_t *ret_body_bytes);

/* The answer to a request that was sent whole: *RET_BODY is NULL and it passes as it came, unless it says that there are
 * no errors and an item has one.  Clients that trust the word would not look at the items (OpenSearch's do), so it becomes
 * "errors":true, and no other byte changes.  An answer that does not fit passes as well.  False: no memory. */
MUST_CHECK bool bulk_answer_whole(struct slice answer, const struct identified *identified, const bool sent[],
                                  char **ret_body, size_t *ret_body_bytes);

/* An item that was refused without an "error": every client takes it for delivered.  True also when it cannot be known:
 * no memory. */
bool bulk_hides_refusal(struct slice answer, const struct identified *identified, const bool sent[],
                        const struct settings *settings);

#endif
