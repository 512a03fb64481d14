/*
 * scripted_target.c - see scripted_target.h.
 */
#include "scripted_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include "batch_answer.h"
#include "fuzz.h"

enum { RECORDS_MAX = 4096, SENT_BYTES_MAX = 1 << 16, ANSWER_BYTES_MAX = 1 << 16 };

/* A record that the target has, or may have. */
struct had {
    char topic[TOPIC_BYTES_MAX];
    size_t topic_bytes;
    int32_t partition;
    int64_t offset;
    const struct flight *flight; /* that brought it; NULL: it has ended */
    bool is_free, is_applied;    /* known to be without effect, or with it */
    bool is_in_items;            /* the answer's body decides, which other targets check */
};

static struct had had[RECORDS_MAX];
static size_t had_count;
static struct flight *first, *last;
static const struct identifier *identifier;
static const struct settings *settings;
static bool is_once, is_split;
static uint64_t hash;

void target_begin(const struct identifier *new_identifier, const struct settings *new_settings,
                  bool is_once_now, bool is_split_now)
{
    identifier = new_identifier;
    settings = new_settings;
    is_once = is_once_now;
    is_split = is_split_now;
    first = last = NULL;
    had_count = 0;
    hash = 0;
}

bool target_is_waited_for(void)
{
    return first != NULL;
}

uint64_t target_hash(void)
{
    return hash;
}

static void note(struct slice bytes)
{
    hash = XXH3_64bits_withSeed(bytes.at, bytes.byte_count, hash);
}

/* ---- what was sent ---------------------------------------------------------------------------------------------- */

static struct had *had_find(const struct record_key *key)
{
    for (size_t i = 0; i < had_count; i++)
        if (had[i].offset == key->offset && had[i].partition == key->partition &&
            slice_equals(key->topic, slice_of(had[i].topic, had[i].topic_bytes)))
            return &had[i];
    return NULL;
}

static void take_record(const struct record_key *key, const struct flight *flight, bool is_in_items)
{
    struct had *found = had_find(key);
    assert(found == NULL || found->is_free);
    if (found == NULL && had_count < RECORDS_MAX)
        found = &had[had_count++];
    if (found == NULL)
        return;
    *found = (struct had){ .topic_bytes = key->topic.byte_count,
                           .partition = key->partition,
                           .offset = key->offset,
                           .flight = flight,
                           .is_in_items = is_in_items };
    memcpy(found->topic, key->topic.at, key->topic.byte_count);
}

/* The records in what was sent are found as the product finds them: whatever it would drop, it must not send. */
static void take_records(const struct request *like, struct slice body, const struct flight *flight)
{
    struct request request = *like;
    struct identified identified;
    union {
        const char *in;
        char *out;
    } pointer = { .in = body.at };
    request.body = pointer.out;
    request.body_bytes = body.byte_count;
    bool is_done = identify(identifier, &request, &identified);
    assert(is_done);
    bool is_in_items = batch_dialect_of(&request, &identified) != BATCH_PLAIN;
    for (size_t i = 0; i < identified.record_count && !identified.is_too_many; i++)
        take_record(&identified.records[i].key, flight, is_in_items);
    identified_deinit(&identified);
}

void target_check_applied(struct request *request)
{
    struct identified identified;
    if (!is_once || !request_is_write(request))
        return;
    bool is_done = identify(identifier, request, &identified);
    assert(is_done);
    for (size_t i = 0; i < identified.record_count && had_count < RECORDS_MAX; i++) {
        const struct had *found = had_find(&identified.records[i].key);
        assert(found != NULL && (found->is_applied || found->is_in_items));
    }
    identified_deinit(&identified);
}

static bool has_in_path(const struct request *request, const char *word)
{
    return memmem(request->head.path.at, request->head.path.byte_count, word, strlen(word)) != NULL;
}

/* What is sent is what came, but for what was left out.  A coded body is packed anew, and a poll for acknowledgements
 * asks only for those of the target's. */
static struct slice joined(const struct flight *flight, const struct request *request)
{
    static char sent[SENT_BYTES_MAX];
    size_t at = 0;
    bool is_made_anew =
        http1_field_find(request->head.fields, request->head.field_count, "content-encoding") != NULL ||
        has_in_path(request, "/services/collector/ack");
    for (size_t i = 0; i < flight->part_count; i++) {
        struct slice part = flight->parts[i];
        if (!is_made_anew)
            assert_inside(part, request->body, request->body_bytes);
        assert(part.byte_count <= sizeof sent - at);
        if (part.byte_count > 0)
            memcpy(sent + at, part.at, part.byte_count);
        at += part.byte_count;
    }
    assert(at == flight->body_bytes);
    return slice_of(sent, at);
}

static void check_fields(const struct flight *flight)
{
    assert(http1_token_is_valid(flight->method));
    assert(http1_target_is_valid(flight->target) || slice_equals_text(flight->target, "*"));
    assert(flight->host.byte_count == 0 || http1_host_is_valid(flight->host));
    for (size_t i = 0; i < flight->field_count; i++) {
        assert(http1_token_is_valid(flight->fields[i].name) && http1_value_is_valid(flight->fields[i].value));
        assert(!http1_name_equals(flight->fields[i].name, "transfer-encoding") &&
               !http1_name_equals(flight->fields[i].name, "content-length") &&
               !http1_name_equals(flight->fields[i].name, "connection"));
    }
}

void upstream_send(struct upstream *upstream, struct flight *flight)
{
    struct handed *handed = handed_of(flight);
    (void)upstream;
    assert(handed != NULL && handed->is_open);
    assert(is_split || handed->sent_count == 0);
    handed->sent_count++;
    struct slice body = joined(flight, &handed->request);
    assert(flight->has_body || body.byte_count == 0);
    check_fields(flight);
    note(flight->method);
    note(flight->target);
    note(body);
    if (is_once && request_is_write(&handed->request))
        take_records(&handed->request, body, flight);
    flight->next = NULL;
    if (last != NULL)
        last->next = flight;
    else
        first = flight;
    last = flight;
}

void flight_deinit(struct flight *flight)
{
    free(flight->head_bytes);
    free(flight->answer);
    flight->head_bytes = flight->answer = NULL;
    flight->answer_bytes = 0;
}

const char *attempt_error_name(enum attempt_error error)
{
    (void)error;
    return "scripted";
}

/* ---- how it ends ------------------------------------------------------------------------------------------------ */

static struct flight *take_first(void)
{
    struct flight *flight = first;
    first = flight->next;
    if (first == NULL)
        last = NULL;
    return flight;
}

/* Before done(): there it may be sent again. */
static void end(struct flight *flight, enum outcome outcome)
{
    struct handed *handed = handed_of(flight);
    for (size_t i = 0; i < had_count; i++) {
        if (had[i].flight != flight)
            continue;
        had[i].flight = NULL;
        had[i].is_applied = outcome == OUTCOME_APPLIED;
        had[i].is_free = outcome == OUTCOME_NOT_SENT || outcome == OUTCOME_NOT_APPLIED ||
                         (had[i].is_in_items && flight->attempt_class == ATTEMPT_KNOWN);
    }
    if (outcome == OUTCOME_NOT_SENT)
        handed->sent_count--;
    flight->done(flight);
}

void target_fail(enum attempt_class attempt_class, enum attempt_error error)
{
    if (first == NULL)
        return;
    struct flight *flight = take_first();
    flight->attempt_class = attempt_class;
    flight->error = error;
    flight->sent_ns = attempt_class == ATTEMPT_NOT_SENT ? 0 : 1;
    flight->ended_ns = 2;
    end(flight, attempt_class == ATTEMPT_NOT_SENT ? OUTCOME_NOT_SENT : OUTCOME_UNKNOWN);
}

/* The body is what follows the head, cut where Content-Length says. */
static void answer_body(struct flight *flight, struct slice rest)
{
    const struct http1_response *response = &flight->response;
    bool has_body = !flight->is_head_request && response->status != 204 && response->status != 304;
    if (!has_body)
        rest.byte_count = 0;
    else if (response->is_length_known && rest.byte_count > response->length_bytes)
        rest.byte_count = (size_t)response->length_bytes;
    flight->is_answer_damaged =
        has_body && response->is_length_known && rest.byte_count < response->length_bytes;
    flight->answer = malloc(rest.byte_count + 1);
    assert(flight->answer != NULL);
    if (rest.byte_count > 0)
        memcpy(flight->answer, rest.at, rest.byte_count);
    flight->answer_bytes = rest.byte_count;
    flight->error = flight->is_answer_damaged ? ATTEMPT_ERROR_CLOSED : ATTEMPT_ERROR_NONE;
}

void target_answer(struct slice bytes)
{
    const char *blank = bytes.byte_count == 0 ? NULL : memmem(bytes.at, bytes.byte_count, "\r\n\r\n", 4);
    if (first == NULL)
        return;
    size_t head_bytes = blank == NULL ? 0 : (size_t)(blank - bytes.at) + 4;
    struct http1_response response;
    char *copy = malloc(head_bytes + 1);
    assert(copy != NULL);
    if (head_bytes > 0)
        memcpy(copy, bytes.at, head_bytes);
    if (http1_response(copy, head_bytes, &response) != HTTP1_DONE || response.status < 200) {
        free(copy);
        target_fail(ATTEMPT_UNKNOWN, ATTEMPT_ERROR_PROTOCOL);
        return;
    }
    struct flight *flight = take_first();
    flight->attempt_class = ATTEMPT_KNOWN;
    flight->response = response;
    flight->head_bytes = copy;
    flight->sent_ns = 1;
    flight->ended_ns = 2;
    answer_body(flight, slice_of(bytes.at + head_bytes, bytes.byte_count - head_bytes));
    end(flight, outcome_of(ATTEMPT_KNOWN, response.status, settings));
}

static size_t bulk_body(char *room, size_t room_bytes, const struct flight *flight, struct slice statuses)
{
    static const int of_digit[] = { 200, 201, 404, 409, 429, 500, 503, 400 };
    size_t line_count = 0, used;
    bool has_error = false;
    for (size_t i = 0; i < flight->part_count; i++)
        for (size_t k = 0; k < flight->parts[i].byte_count; k++)
            line_count += flight->parts[i].at[k] == '\n';
    used = (size_t)snprintf(room, room_bytes, "{\"took\":1,\"items\":[");
    for (size_t i = 0; i < line_count / 2 && used + 200 < room_bytes; i++) {
        size_t digit = i < statuses.byte_count ? (uint8_t)statuses.at[i] % 8 : 0;
        used += (size_t)snprintf(room + used, room_bytes - used,
                                 "%s{\"index\":{\"_id\":\"%zu\",\"status\":%d%s}}", i == 0 ? "" : ",", i,
                                 of_digit[digit], digit < 2 ? "" : ",\"error\":{}");
        has_error = has_error || digit >= 2;
    }
    return used +
           (size_t)snprintf(room + used, room_bytes - used, "],\"errors\":%s}", has_error ? "true" : "false");
}

void target_answer_status(int status, struct slice statuses)
{
    static char answer[ANSWER_BYTES_MAX], body[ANSWER_BYTES_MAX / 2];
    if (first == NULL)
        return;
    const struct handed *handed = handed_of(first);
    bool is_bulk = has_in_path(&handed->request, "_bulk");
    size_t body_bytes =
        is_bulk ? bulk_body(body, sizeof body, first, statuses) : (size_t)snprintf(body, sizeof body, "ok");
    int answer_bytes = snprintf(answer, sizeof answer,
                                "HTTP/1.1 %03d \r\nX-Flight: %u-%u\r\nContent-Length: %zu\r\n\r\n%.*s",
                                status, handed->client, handed->index, body_bytes, (int)body_bytes, body);
    target_answer(slice_of(answer, (size_t)answer_bytes));
}

void target_answer_large(void)
{
    enum { LARGE_BYTES = 60000 };
    static char answer[ANSWER_BYTES_MAX];
    int head_bytes =
        snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE_BYTES);
    memset(answer + head_bytes, 'x', LARGE_BYTES);
    target_answer(slice_of(answer, (size_t)head_bytes + LARGE_BYTES));
}
