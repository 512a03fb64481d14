/*
 * splunk_answer.h - bodies of Splunk's HTTP Event Collector: answers, for batch_answer.c, and polls for acknowledgements,
 * for ack_poll.c.
 */
#ifndef SINKONCE_SPLUNK_ANSWER_H
#define SINKONCE_SPLUNK_ANSWER_H

#include "batch_answer.h"

enum splunk_proof {
    SPLUNK_PROVES_NOTHING, /* says that something is wrong, or cannot be read while an acknowledgement may be due */
    SPLUNK_SILENT,         /* nothing about the batch: not the collector's words, so the status alone decides */
    SPLUNK_ACCEPTED,       /* "code" 0 and no acknowledgement to come */
    SPLUNK_ACKNOWLEDGES,   /* "code" 0; the acknowledgement *RET_ACK_ID will tell */
};

/* What the body of a 2xx answer proves. */
enum splunk_proof splunk_read(struct slice body, int64_t *ret_ack_id);

/* {"text":"Success","code":0}, with ACK_ID >= 0 also "ackId".  False: no memory. */
MUST_CHECK bool splunk_success(int64_t ack_id, char **ret_body, size_t *ret_body_bytes);

/* A poll for acknowledgements: {"acks":[7,4611686018427387905]}.  RET_IDS is owned by the caller, comes
 * in ascending order and names each id once.  False: it is no such poll, or no memory: pass it on as it is. */
MUST_CHECK bool splunk_poll_read(struct slice body, int64_t **ret_ids, size_t *ret_count);
/* The body of a poll for IDS. */
MUST_CHECK bool splunk_poll_write(const int64_t ids[], size_t id_count, char **ret_body, size_t *ret_body_bytes);
/* The target's answer {"acks":{"7":true}}.  IDS is ascending, each once; RET_IS_DONE has a cell for each: ids that the
 * answer does not name, or names with anything but true, are false.  False: it is no such answer. */
MUST_CHECK bool splunk_poll_answer_read(struct slice body, const int64_t ids[], size_t id_count, bool ret_is_done[]);
/* {"acks":{...}} and no other member. */
MUST_CHECK bool splunk_poll_answer_write(const int64_t ids[], const bool is_done[], size_t id_count, char **ret_body,
                                  size_t *ret_body_bytes);

#endif
