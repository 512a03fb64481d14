/*
 * reply.h - the answers that sinkonce makes itself, and the target's answer on its way back.
 *
 * A decider: a finish, some records and settings in; status, fields and body out.
 */
#ifndef SINKONCE_REPLY_H
#define SINKONCE_REPLY_H

#include "broken.h"
#include "conn.h"
#include "settings.h"
#include "store.h"

enum { REPLY_RECORDS_NAMED_MAX = 10, REPLY_BODY_BYTES_MAX = 4096 };

/* Room for one answer; reply's slices point into it, into the table of finishes or into the target's answer. */
struct reply_room {
    struct reply reply;
    struct http1_field fields[CONN_FIELDS_MAX];
    char body[REPLY_BODY_BYTES_MAX];
    char retry_after[24];
};

/* In whose words a failure is told (each client's own parser decides what it does with a 503). */
enum dialect {
    DIALECT_PLAIN,      /* one line of JSON */
    DIALECT_SPLUNK,     /* HTTP Event Collector: {"text":...,"code":9} */
    DIALECT_CLICKHOUSE, /* X-ClickHouse-Exception-Code: 210 makes Connect try again */
};
enum dialect dialect_of(const struct request *request);

/* The value of Retry-After. */
void reply_retry_after(char *room, size_t room_bytes, const struct settings *settings);

/* A failure of our own, or a refusal: the finish's status and words.  NAMED are at most REPLY_RECORDS_NAMED_MAX
 * records that caused it, TOTAL_COUNT how many there are. */
void reply_own(struct reply_room *room, enum finish finish, enum dialect dialect,
               const struct settings *settings, const struct record *const named[], size_t named_count,
               size_t total_count);

/* The refusal of a write without coordinates: 422 with the reason and, when the body is broken, the position of the
 * first wrong byte. */
void reply_unkeyed(struct reply_room *room, const struct broken *broken);

/* A success for records that the target has: the stored answer when there is one, else the setting's status and an
 * empty body (a made-up body breaks Knative and shows up in Confluent's success topic).  IS_REPLAYED adds
 * Idempotency-Replayed. */
void reply_success(struct reply_room *room, enum finish finish, enum dialect dialect,
                   const struct stored_reply *stored, bool is_replayed, const struct settings *settings);

/* The target's own answer: its fields but hop-by-hop, framing and our own names, its body as received.  BODY is taken
 * by conn_reply() later.  OUTCOME: Sinkonce-Outcome, or NULL. */
void reply_pass(struct reply_room *room, const struct http1_response *response, char *body, size_t body_bytes,
                bool is_head_request, const char *outcome);

/* Give ROOM another body; CONTENT_TYPE NULL: the field that is there stays.  A Content-Encoding is left out. */
void reply_body_set(struct reply_room *room, struct slice body, const char *content_type);
void reply_outcome_add(struct reply_room *room, const char *outcome);

/* What clients of Elasticsearch look for in every answer. */
void reply_product_add(struct reply_room *room);

#endif
