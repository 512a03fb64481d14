/*
 * admin_body.c - reads the JSON body of a change, and says what is wrong with it.
 *
 * Strict: a member that is not known is refused by name, because a misspelt filter would change more than was meant.
 */
#include "admin_body.h"
#include <inttypes.h>
#include <stdio.h>
#include "json_scan.h"

/* NULL: already refused. */
json_t *admin_body_read(struct admin_call *call)
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

static struct admin_member *member_find(struct admin_member members[], size_t member_count, const char *name)
{
    for (size_t i = 0; i < member_count; i++) {
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    }
    return NULL;
}

/* False: already refused. */
bool admin_members_get(struct admin_call *call, json_t *body, struct admin_member members[],
                       size_t member_count)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        struct admin_member *member = member_find(members, member_count, name);
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

bool admin_refuse_value(struct admin_call *call, const struct admin_member *member, const char *words)
{
    admin_refuse(call, 400, "bad-value", NULL, "\"%s\" must be %s", member->name, words);
    return false;
}

/* One of the two words. */
bool admin_word_get(struct admin_call *call, const struct admin_member *member, const char *yes,
                    const char *no, bool *ret_is_yes)
{
    char words[64];
    const char *text = json_string_value(member->value);
    snprintf(words, sizeof words, "\"%s\" or \"%s\"", yes, no);
    if (text == NULL || (strcmp(text, yes) != 0 && strcmp(text, no) != 0))
        return admin_refuse_value(call, member, words);
    *ret_is_yes = strcmp(text, yes) == 0;
    return true;
}

/* A JSON integer, or its digits as text for numbers that the sender's JSON would round. */
bool admin_number_get(struct admin_call *call, const struct admin_member *member, uint64_t max,
                      uint64_t *ret_number)
{
    char words[64];
    const json_t *value = member->value;
    snprintf(words, sizeof words, "a whole number from 0 to %" PRIu64, max);
    if (json_is_string(value)) {
        struct slice digits = slice_of(json_string_value(value), json_string_length(value));
        return decimal_read(digits, max, ret_number) || admin_refuse_value(call, member, words);
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > max)
        return admin_refuse_value(call, member, words);
    *ret_number = (uint64_t)json_integer_value(value);
    return true;
}

bool admin_topic_get(struct admin_call *call, const struct admin_member *member,
                     char topic[TOPIC_BYTES_MAX + 1])
{
    const char *text = json_string_value(member->value);
    if (text == NULL || !topic_is_legal(slice_of(text, json_string_length(member->value))))
        return admin_refuse_value(call, member, "the name of a Kafka topic");
    memcpy(topic, text, json_string_length(member->value) + 1);
    return true;
}

/* Goes into an event and a log line, so that it is one line itself. */
bool admin_reason_get(struct admin_call *call, const struct admin_member *member)
{
    if (member->value == NULL) {
        snprintf(call->question.detail, sizeof call->question.detail, "by %s", call->request->peer);
        return true;
    }
    const char *text = json_string_value(member->value);
    size_t bytes = text == NULL ? 0 : json_string_length(member->value);
    bool is_fine = bytes > 0 && bytes <= ADMIN_REASON_BYTES_MAX && strlen(text) == bytes;
    for (size_t i = 0; is_fine && i < bytes; i++)
        is_fine = (unsigned char)text[i] >= 0x20 && text[i] != 0x7f;
    if (!is_fine)
        return admin_refuse_value(call, member, "a text of 1 to 120 bytes on one line");
    memcpy(call->reason, text, bytes + 1);
    snprintf(call->question.detail, sizeof call->question.detail, "by %s: %s", call->request->peer, text);
    return true;
}
