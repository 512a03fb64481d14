/*
 * splunk_answer.h - answers of Splunk's HTTP Event Collector.  Private to batch_answer.c and its tests; the bodies of
 * acknowledgement polls stand in batch_answer.h.
 */
#ifndef SINKONCE_SPLUNK_ANSWER_H
#define SINKONCE_SPLUNK_ANSWER_H

#include "batch_answer.h"

enum splunk_proof {
    SPLUNK_PROVES_NOTHING,  /* says that something is wrong, or cannot be read while an acknowledgement may be due */
    SPLUNK_SILENT,          /* nothing about the batch: not the collector's words, so the status alone decides */
    SPLUNK_ACCEPTED,     /* "code" 0 and no acknowledgement to come */
    SPLUNK_ACKNOWLEDGES, /* "code" 0; the acknowledgement *RET_ACK_ID will tell */
};

/* What the body of a 2xx answer proves. */
enum splunk_proof splunk_read(struct slice body, int64_t *ret_ack_id);

/* {"text":"Success","code":0}, with ACK_ID >= 0 also "ackId".  False: no memory. */
MUST_CHECK bool splunk_success(int64_t ack_id, char **ret_body, size_t *ret_body_bytes);

#endif
