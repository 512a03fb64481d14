/*
 * reply.c - the words behind reply.h.
 *
 * Never 4xx for a failure of our own (Vector, Fluent Bit and Logstash drop the data), never 3xx (some connectors count
 * it as delivered), never Set-Cookie.
 */
#include "reply.h"

#include <assert.h>
#include <stdio.h>

static const char body_end[] = "}\n";

static void field_add(struct reply_room *room, const char *name, const char *value)
{
    assert(room->reply.field_count < CONN_FIELDS_MAX);
    room->fields[room->reply.field_count++] = http1_field_of(name, value);
}

static void room_init(struct reply_room *room, int status)
{
    room->reply = (struct reply){ .status = status, .fields = room->fields };
}

enum dialect dialect_of(const struct request *request)
{
    static const char token[] = "insert_deduplication_token=";
    if (request_is_collector(request))
        return DIALECT_SPLUNK;
    const struct http1_head *head = &request->head;
    if (http1_field_find(head->fields, head->field_count, "x-clickhouse-user") != NULL ||
        http1_field_find(head->fields, head->field_count, "x-clickhouse-key") != NULL ||
        http1_field_find(head->fields, head->field_count, "x-clickhouse-database") != NULL ||
        (head->query.byte_count > 0 &&
         memmem(head->query.at, head->query.byte_count, token, sizeof token - 1) != NULL))
        return DIALECT_CLICKHOUSE;
    return DIALECT_PLAIN;
}

/* Appends to the body as long as there is room; what does not fit is left out. */
static size_t body_add(struct reply_room *room, size_t at, const char *text)
{
    size_t byte_count = strlen(text);
    if (at + byte_count >= sizeof room->body)
        return at;
    memcpy(room->body + at, text, byte_count);
    return at + byte_count;
}

/* Topics are [a-zA-Z0-9._-] and words are ours: nothing here needs an escape. */
static size_t body_records(struct reply_room *room, size_t at, const struct record *const named[],
                           size_t named_count, size_t total_count)
{
    char line[TOPIC_BYTES_MAX + 96];
    at = body_add(room, at, ",\"records\":[");
    for (size_t i = 0; i < named_count && i < REPLY_RECORDS_NAMED_MAX; i++) {
        const struct record_key *key = &named[i]->key;
        snprintf(line, sizeof line, "%s{\"topic\":\"%.*s\",\"partition\":%d,\"offset\":%lld}",
                 i == 0 ? "" : ",", (int)key->topic.byte_count, key->topic.at, (int)key->partition,
                 (long long)key->offset);
        at = body_add(room, at, line);
    }
    snprintf(line, sizeof line, "],\"total\":%zu", total_count);
    return body_add(room, at, line);
}

/* The finish's own line, open for more members. */
static size_t body_begin(struct reply_room *room, const struct finish_row *row)
{
    size_t at = body_add(room, 0, row->line), end_bytes = strlen(body_end);
    assert(at > end_bytes);
    return at - end_bytes;
}

static void body_plain(struct reply_room *room, const struct finish_row *row,
                       const struct record *const named[], size_t named_count, size_t total_count)
{
    size_t at = body_begin(room, row);
    if (named_count > 0)
        at = body_records(room, at, named, named_count, total_count);
    room->reply.body = slice_of(room->body, body_add(room, at, body_end));
    field_add(room, "Content-Type", "application/json");
}

static void body_splunk(struct reply_room *room, const struct finish_row *row)
{
    size_t at = body_add(room, 0, "{\"text\":\"Server is busy\",\"code\":9,\"sinkonce\":\"");
    room->reply.body = slice_of(room->body, body_add(room, body_add(room, at, row->label), "\"}\n"));
    field_add(room, "Content-Type", "application/json");
}

/* Code 210 is NETWORK_ERROR, which the ClickHouse sink gives back to Connect to try again. */
static void body_clickhouse(struct reply_room *room, const struct finish_row *row)
{
    size_t at = body_add(room, 0, "Code: 210. DB::Exception: ");
    room->reply.body = slice_of(room->body, body_add(room, body_add(room, at, row->words), "\n"));
    field_add(room, "Content-Type", "text/plain");
    field_add(room, "X-ClickHouse-Exception-Code", "210");
}

void reply_retry_after(char *room, size_t room_bytes, const struct settings *settings)
{
    snprintf(room, room_bytes, "%llu", (unsigned long long)((settings->retry_after_ms + 999) / 1000));
}

void reply_own(struct reply_room *room, enum finish finish, enum dialect dialect,
               const struct settings *settings, const struct record *const named[], size_t named_count,
               size_t total_count)
{
    const struct finish_row *row = &finish_rows[finish];
    assert(row->status != 0 && row->status / 100 != 3);
    room_init(room, row->status);
    if (dialect == DIALECT_SPLUNK)
        body_splunk(room, row);
    else if (dialect == DIALECT_CLICKHOUSE)
        body_clickhouse(room, row);
    else
        body_plain(room, row, named, named_count, total_count);
    if (row->status == 503) {
        reply_retry_after(room->retry_after, sizeof room->retry_after, settings);
        field_add(room, "Retry-After", room->retry_after);
    }
    if (row->outcome != NULL)
        field_add(room, "Sinkonce-Outcome", row->outcome);
}

void reply_unkeyed(struct reply_room *room, const struct broken *broken)
{
    const struct finish_row *row = &finish_rows[FINISH_UNKEYED_REFUSED];
    char position[48] = "";
    if (broken->has_position)
        snprintf(position, sizeof position, ",\"position\":%zu", broken->position);
    room_init(room, row->status);
    size_t at = body_begin(room, row);
    at = body_add(room, body_add(room, at, ",\"reason\":\""), broken->reason);
    at = body_add(room, body_add(room, body_add(room, at, "\""), position), body_end);
    room->reply.body = slice_of(room->body, at);
    field_add(room, "Content-Type", "application/json");
    field_add(room, "Sinkonce-Outcome", row->outcome);
}

void reply_success(struct reply_room *room, enum finish finish, enum dialect dialect,
                   const struct stored_reply *stored, bool is_replayed, const struct settings *settings)
{
    const struct finish_row *row = &finish_rows[finish];
    if (stored != NULL && stored->status != 0) {
        room_init(room, stored->status);
        room->reply.body = stored->body;
        if (stored->content_type.byte_count > 0)
            room->fields[room->reply.field_count++] =
                (struct http1_field){ slice_of_text("Content-Type"), stored->content_type };
    } else {
        room_init(room, (int)settings->duplicate_status);
        if (dialect == DIALECT_SPLUNK) {
            room->reply.body = slice_of_text("{\"text\":\"Success\",\"code\":0}");
            field_add(room, "Content-Type", "application/json");
        }
    }
    if (row->outcome != NULL)
        field_add(room, "Sinkonce-Outcome", row->outcome);
    if (is_replayed)
        field_add(room, "Idempotency-Replayed", "true");
}

/* Our own names in the target's answer would make an operator believe what we did not say. */
static bool is_ours(struct slice name)
{
    return http1_name_equals(name, "idempotency-replayed") ||
           (name.byte_count >= 9 && http1_name_equals(slice_of(name.at, 9), "sinkonce-"));
}

void reply_pass(struct reply_room *room, const struct http1_response *response, char *body, size_t body_bytes,
                bool is_head_request, const char *outcome)
{
    room_init(room, response->status);
    for (size_t i = 0; i < response->field_count; i++) {
        const struct http1_field *field = &response->fields[i];
        if (http1_name_equals(field->name, "content-length") || is_ours(field->name) ||
            http1_field_is_hop_by_hop(field->name, response->fields, response->field_count))
            continue;
        room->reply.has_date = room->reply.has_date || http1_name_equals(field->name, "date");
        room->fields[room->reply.field_count++] = *field;
    }
    if (outcome != NULL)
        field_add(room, "Sinkonce-Outcome", outcome);
    room->reply.is_body_left_out = is_head_request || response->status == 204 || response->status == 304;
    room->reply.has_length = room->reply.is_body_left_out && response->is_length_known;
    room->reply.length = response->length_bytes;
    room->reply.body = slice_of(body, body_bytes);
    room->reply.body_owned = body;
}

static void field_drop(struct reply_room *room, const char *lower_case_name)
{
    size_t kept = 0;
    for (size_t i = 0; i < room->reply.field_count; i++) {
        if (!http1_name_equals(room->fields[i].name, lower_case_name))
            room->fields[kept++] = room->fields[i];
    }
    room->reply.field_count = kept;
}

void reply_body_set(struct reply_room *room, struct slice body, const char *content_type)
{
    room->reply.body = body;
    field_drop(room, "content-encoding");
    if (content_type == NULL)
        return;
    field_drop(room, "content-type");
    field_add(room, "Content-Type", content_type);
}

void reply_outcome_add(struct reply_room *room, const char *outcome)
{
    field_drop(room, "sinkonce-outcome");
    field_add(room, "Sinkonce-Outcome", outcome);
}

void reply_product_add(struct reply_room *room)
{
    field_add(room, "X-Elastic-Product", "Elasticsearch");
}
