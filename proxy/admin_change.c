/*
 * admin_change.c - what an operator decides: doubts resolved, conflicts settled.
 *
 * The body is read strictly: a member that is not known is refused by name, because a misspelt filter would change
 * more than was meant.  Every change tells the ledger who made it and why, which keeps it with its event, and the log.
 */
#include "admin_call.h"
#include <inttypes.h>
#include <stdio.h>
#include "admin_query.h"

/* ---- the body --------------------------------------------------------------------------------------------------- */

/* A member that may stand in the body; VALUE is borrowed from it, NULL when it is not there. */
struct member {
    const char *name;
    bool is_required;
    json_t *value;
};

/* NULL: already refused. */
static json_t *body_read(struct admin_call *call)
{
    json_error_t error;
    const struct request *request = call->request;
    json_t *body = json_loadb(request->body == NULL ? "" : request->body, request->body_bytes,
                              JSON_REJECT_DUPLICATES, &error);
    if (body == NULL) {
        admin_refuse(call, 400, "bad-json", NULL, "line %d, column %d (byte %d): %s", error.line,
                     error.column, error.position, error.text);
        return NULL;
    }
    if (!json_is_object(body)) {
        json_decref(body);
        admin_refuse(call, 400, "bad-json", NULL, "line 1, column 1 (byte 0): the body must be an object");
        return NULL;
    }
    return body;
}

static struct member *member_find(struct member members[], size_t member_count, const char *name)
{
    for (size_t i = 0; i < member_count; i++) {
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    }
    return NULL;
}

/* False: already refused. */
static bool members_get(struct admin_call *call, json_t *body, struct member members[], size_t member_count)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        struct member *member = member_find(members, member_count, name);
        if (member == NULL) {
            admin_refuse(call, 400, "unknown-field", NULL, "\"%.60s\" is not a field of this change", name);
            return false;
        }
        member->value = value;
    }
    for (size_t i = 0; i < member_count; i++) {
        if (members[i].is_required && members[i].value == NULL) {
            admin_refuse(call, 400, "field-missing", NULL, "\"%s\" is needed", members[i].name);
            return false;
        }
    }
    return true;
}

static bool refuse_value(struct admin_call *call, const struct member *member, const char *words)
{
    admin_refuse(call, 400, "bad-value", NULL, "\"%s\" must be %s", member->name, words);
    return false;
}

/* One of the two words. */
static bool word_get(struct admin_call *call, const struct member *member, const char *yes, const char *no,
                     bool *ret_is_yes)
{
    char words[64];
    const char *text = json_string_value(member->value);
    snprintf(words, sizeof words, "\"%s\" or \"%s\"", yes, no);
    if (text == NULL || (strcmp(text, yes) != 0 && strcmp(text, no) != 0))
        return refuse_value(call, member, words);
    *ret_is_yes = strcmp(text, yes) == 0;
    return true;
}

/* A JSON integer, or its digits as text for numbers that the sender's JSON would round. */
static bool number_get(struct admin_call *call, const struct member *member, uint64_t max,
                       uint64_t *ret_number)
{
    char words[64];
    const json_t *value = member->value;
    snprintf(words, sizeof words, "a whole number from 0 to %" PRIu64, max);
    if (json_is_string(value)) {
        struct slice digits = slice_of(json_string_value(value), json_string_length(value));
        return admin_number_read(digits, max, ret_number) || refuse_value(call, member, words);
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > max)
        return refuse_value(call, member, words);
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

static bool topic_get(struct admin_call *call, const struct member *member, char topic[TOPIC_BYTES_MAX + 1])
{
    const char *text = json_string_value(member->value);
    if (text == NULL || !topic_is_legal(slice_of(text, json_string_length(member->value))))
        return refuse_value(call, member, "the name of a Kafka topic");
    memcpy(topic, text, json_string_length(member->value) + 1);
    return true;
}

/* Why the operator does it; goes into an event and a log line, so that it is one line itself. */
static bool reason_get(struct admin_call *call, const struct member *member)
{
    const char *text = json_string_value(member->value);
    size_t bytes = text == NULL ? 0 : json_string_length(member->value);
    bool is_fine = bytes > 0 && bytes <= ADMIN_REASON_BYTES_MAX && strlen(text) == bytes;
    for (size_t i = 0; is_fine && i < bytes; i++)
        is_fine = (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    if (!is_fine)
        return refuse_value(call, member, "a text of 1 to 120 bytes on one line");
    memcpy(call->reason, text, bytes + 1);
    snprintf(call->question.detail, sizeof call->question.detail, "by %s: %s", call->request->peer, text);
    return true;
}

/* ---- what became of it ------------------------------------------------------------------------------------------ */

static void log_change(const struct admin_call *call, const char *result)
{
    const struct question *question = &call->question;
    LOG_EVENT(LOG_LEVEL_INFO, "admin.change", "an operator decided", log_text("peer", call->request->peer),
              log_slice("path", call->request->head.path), log_text("decision", result),
              log_text("reason", call->reason), log_integer("records", (int64_t)question->ret_count));
}

static void render_resolved(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status == QUESTION_NOT_FOUND) {
        admin_refuse(call, 404, "not-found", NULL, "nothing in doubt has the id %" PRIu64,
                     question->doubt_id);
        return;
    }
    if (question->ret_status == QUESTION_MISMATCH) {
        admin_answer_json(call, 409,
                          json_pack("{s:s, s:s, s:I, s:I}", "error", "count-mismatch", "detail",
                                    "the filter matches another number of records; nothing was changed",
                                    "expect_count", (json_int_t)question->expect_count, "count",
                                    (json_int_t)question->ret_count));
        return;
    }
    const char *resolution = question->is_applied ? "applied" : "not-applied";
    log_change(call, resolution);
    admin_answer_json(
        call, 200,
        json_pack("{s:s, s:I}", "resolution", resolution, "records", (json_int_t)question->ret_count));
}

static void render_decided(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status != QUESTION_OK) {
        admin_refuse(call, 404, "not-found", NULL, "no open conflict has the id %" PRIu64,
                     question->doubt_id);
        return;
    }
    const char *decision = question->is_new_topic ? "new-topic" : "same";
    log_change(call, decision);
    admin_answer_json(call, 200, json_pack("{s:s}", "decision", decision));
}

/* ---- the changes ------------------------------------------------------------------------------------------------ */

void admin_on_resolve_one(struct admin_call *call)
{
    struct member members[] = { { "resolution", true, NULL }, { "reason", true, NULL } };
    struct question *question = &call->question;
    json_t *body = body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_RESOLVE_ONE;
    question->doubt_id = call->id;
    bool is_fine = members_get(call, body, members, 2) &&
                   word_get(call, &members[0], "applied", "not-applied", &question->is_applied) &&
                   reason_get(call, &members[1]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_resolved);
}

enum { RESOLUTION, EXPECT_COUNT, REASON, TOPIC, PARTITION, FROM, TO, FILTER_MEMBER_COUNT };

/* Each part of the filter only narrows the one before it: offsets mean nothing without their partition. */
static bool filter_get(struct admin_call *call, const struct member members[])
{
    struct question *question = &call->question;
    uint64_t partition = 0, first = 0, last = 0;
    question->first = question->last = -1;
    if (members[PARTITION].value != NULL && members[TOPIC].value == NULL)
        return refuse_value(call, &members[PARTITION], "given together with \"topic\"");
    if ((members[FROM].value == NULL) != (members[TO].value == NULL))
        return refuse_value(call, &members[FROM], "given together with \"to\"");
    if (members[FROM].value != NULL && members[PARTITION].value == NULL)
        return refuse_value(call, &members[FROM], "given together with \"partition\"");
    if (members[TOPIC].value != NULL && !topic_get(call, &members[TOPIC], question->topic))
        return false;
    if (members[PARTITION].value != NULL) {
        if (!number_get(call, &members[PARTITION], INT32_MAX, &partition))
            return false;
        question->partition = (int32_t)partition;
    }
    if (members[FROM].value == NULL)
        return true;
    if (!number_get(call, &members[FROM], INT64_MAX, &first) ||
        !number_get(call, &members[TO], INT64_MAX, &last))
        return false;
    if (first > last)
        return refuse_value(call, &members[FROM], "at most \"to\"");
    question->first = (int64_t)first;
    question->last = (int64_t)last;
    return true;
}

void admin_on_resolve_many(struct admin_call *call)
{
    struct member members[FILTER_MEMBER_COUNT] = {
        [RESOLUTION] = { "resolution", true, NULL },
        [EXPECT_COUNT] = { "expect_count", true, NULL },
        [REASON] = { "reason", true, NULL },
        [TOPIC] = { "topic", false, NULL },
        [PARTITION] = { "partition", false, NULL },
        [FROM] = { "from", false, NULL },
        [TO] = { "to", false, NULL },
    };
    struct question *question = &call->question;
    json_t *body = body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_RESOLVE;
    bool is_fine = members_get(call, body, members, FILTER_MEMBER_COUNT) && filter_get(call, members) &&
                   word_get(call, &members[RESOLUTION], "applied", "not-applied", &question->is_applied) &&
                   number_get(call, &members[EXPECT_COUNT], INT64_MAX, &question->expect_count) &&
                   reason_get(call, &members[REASON]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_resolved);
}

void admin_on_decide(struct admin_call *call)
{
    struct member members[] = { { "decision", true, NULL }, { "reason", true, NULL } };
    struct question *question = &call->question;
    json_t *body = body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_DECIDE;
    question->doubt_id = call->id;
    bool is_fine = members_get(call, body, members, 2) &&
                   word_get(call, &members[0], "new-topic", "same", &question->is_new_topic) &&
                   reason_get(call, &members[1]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_decided);
}
