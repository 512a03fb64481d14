/*
 * explain.h - what the settings make of a sample request, in words and numbers: for POST /explain and sinkonce explain.
 *
 * Nothing is sent and nothing is asked: the ledger's verdicts are taken to be "new" for every record.
 */
#ifndef SINKONCE_EXPLAIN_H
#define SINKONCE_EXPLAIN_H

#include <jansson.h>
#include "request.h"
#include "settings.h"

enum { EXPLAIN_RECORDS_MAX = 1000, EXPLAIN_BODY_BYTES_MAX = 4096 };

/*
 * [any] NULL: no memory.  The caller releases it.
 *   decision  what would happen, in a sentence
 *   shape, rule, record_count, element_count, element_without_record_count, signed, cuttable; both counts of elements are
 *             null when no rule matched: they were not told apart
 *   reason    only when no rule matched: what the body is, as SINKONCE_UNKEYED=reject answers it; position, when it has one
 *   hint      only then: what to set
 *   records   the first EXPLAIN_RECORDS_MAX: topic, partition, offset, mark ("timestamp", "body", "none"), and the bytes
 *             [begin, end) of its element in the body, decoded when it came compressed
 *   sent      null when nothing would be; else method, target, fields (credentials hidden), body_bytes, rewritten, and
 *             body: at most EXPLAIN_BODY_BYTES_MAX of it when it is text, else null
 */
MUST_CHECK json_t *explain_json(const struct settings *settings, const struct request *request);

#endif
