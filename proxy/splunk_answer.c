/*
 * splunk_answer.c - see splunk_answer.h, and the last part of batch_answer.h.
 *
 * Source: Splunk, "About HTTP Event Collector Indexer Acknowledgment"; the sink connector reads "ackId" and the keys of
 * "acks" as signed 64-bit numbers and refuses any member beside "acks".
 */
#include "splunk_answer.h"

#include <assert.h>
#include <stdlib.h>

#include "json_walk.h"
#include "text.h"

static char name_code[] = "code", name_ack_id[] = "ackId", name_acks[] = "acks";
static char *const code_tokens[] = { name_code }, *const ack_id_tokens[] = { name_ack_id };
static char *const acks_tokens[] = { name_acks };

/* One JSON value and nothing else. */
static bool read_whole(struct slice body, struct json_want wants[], size_t want_count)
{
    size_t end;
    return json_scan(body.at, body.byte_count, wants, want_count, &end) == JSON_DONE &&
           json_is_blank(body.at, body.byte_count, end);
}

enum splunk_proof splunk_read(struct slice body, int64_t *ret_ack_id)
{
    struct json_want wants[] = { { .tokens = code_tokens, .token_count = 1 },
                                 { .tokens = ack_id_tokens, .token_count = 1 } };
    uint64_t number;
    size_t begin = json_blank_end(body, 0);
    if (begin == body.byte_count || body.at[begin] != '{')
        return SPLUNK_SILENT; /* a target that only behaves like the collector */
    if (!read_whole(body, wants, 2) || wants[0].kind != JSON_IS_NUMBER || wants[0].is_ambiguous ||
        !slice_equals_text(wants[0].text, "0") || wants[1].is_ambiguous)
        return SPLUNK_PROVES_NOTHING;
    if (wants[1].kind == JSON_IS_MISSING || wants[1].kind == JSON_IS_NULL)
        return SPLUNK_ACCEPTED;
    if (wants[1].kind != JSON_IS_NUMBER || !decimal_read(wants[1].text, INT64_MAX, &number))
        return SPLUNK_PROVES_NOTHING;
    *ret_ack_id = (int64_t)number;
    return SPLUNK_ACKNOWLEDGES;
}

bool splunk_success(int64_t ack_id, char **ret_body, size_t *ret_body_bytes)
{
    struct text text = { 0 };
    text_add_chars(&text, "{\"text\":\"Success\",\"code\":0");
    if (ack_id >= 0) {
        text_add_chars(&text, ",\"ackId\":");
        text_add_number(&text, ack_id);
    }
    text_add_chars(&text, "}");
    return text_take(&text, ret_body, ret_body_bytes);
}

/* ---- acknowledgement polls ----------------------------------------------------------------------------------- */

/* A whole number, perhaps negative: the connector reads an answer without "ackId" as -1, and asks for it. */
static bool id_read(struct slice text, int64_t *ret_id)
{
    uint64_t number;
    bool is_negative = text.byte_count > 0 && text.at[0] == '-';
    if (is_negative)
        text = slice_of(text.at + 1, text.byte_count - 1);
    if (!decimal_read(text, INT64_MAX, &number))
        return false;
    *ret_id = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

/* The value of the only member "acks" of BODY's object; EMPTY: it is not there. */
static struct slice acks_of(struct slice body, enum json_kind kind)
{
    struct json_want want = { .tokens = acks_tokens, .token_count = 1 };
    if (!read_whole(body, &want, 1) || want.kind != kind || want.is_ambiguous)
        return slice_of(NULL, 0);
    return want.text;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* Ascending, each once. */
static size_t ids_sort(int64_t ids[], size_t id_count)
{
    size_t kept_count = 0;
    if (id_count > 0)
        qsort(ids, id_count, sizeof ids[0], compare_ids);
    for (size_t i = 0; i < id_count; i++) {
        if (kept_count == 0 || ids[i] != ids[kept_count - 1])
            ids[kept_count++] = ids[i];
    }
    return kept_count;
}

/* The ids of the array; IDS may be NULL, to count them.  False: one is no id. */
static bool ids_read(struct slice array, int64_t ids[], size_t *ret_count)
{
    struct json_walk walk;
    struct slice text;
    size_t count = 0;
    json_walk_open(&walk, array, '[');
    while (json_walk_next(&walk)) {
        int64_t id;
        if (!json_walk_value(&walk, NULL, 0, &text) || !id_read(text, &id))
            return false;
        if (ids != NULL)
            ids[count] = id;
        count++;
    }
    *ret_count = count;
    return !walk.is_wrong;
}

bool splunk_poll_read(struct slice body, int64_t **ret_ids, size_t *ret_count)
{
    struct slice array = acks_of(body, JSON_IS_ARRAY);
    size_t count;
    if (array.byte_count == 0 || !ids_read(array, NULL, &count))
        return false;
    int64_t *ids = calloc(count + 1, sizeof *ids);
    if (ids == NULL)
        return false;
    if (!ids_read(array, ids, &count)) {
        free(ids);
        return false;
    }
    *ret_ids = ids;
    *ret_count = ids_sort(ids, count);
    return true;
}

bool splunk_poll_write(const int64_t ids[], size_t id_count, char **ret_body, size_t *ret_body_bytes)
{
    struct text text = { 0 };
    text_add_chars(&text, "{\"acks\":[");
    for (size_t i = 0; i < id_count; i++) {
        if (i > 0)
            text_add_chars(&text, ",");
        text_add_number(&text, ids[i]);
    }
    text_add_chars(&text, "]}");
    return text_take(&text, ret_body, ret_body_bytes);
}

/* Says for each id that OBJECT names with a value that is true or not, as IS_TRUE wants it, that it IS_TRUE. */
static bool answers_note(struct slice object, const int64_t ids[], size_t id_count, bool is_true,
                         bool is_done[])
{
    struct json_walk walk;
    struct slice name, value;
    json_walk_open(&walk, object, '{');
    while (json_walk_next(&walk)) {
        int64_t id;
        if (!json_walk_name(&walk, &name) || !json_walk_value(&walk, NULL, 0, &value))
            return false;
        if (slice_equals_text(value, "true") != is_true || id_count == 0 || !id_read(name, &id))
            continue;
        const int64_t *found = bsearch(&id, ids, id_count, sizeof ids[0], compare_ids);
        if (found != NULL)
            is_done[found - ids] = is_true;
    }
    return !walk.is_wrong;
}

bool splunk_poll_answer_read(struct slice body, const int64_t ids[], size_t id_count, bool ret_is_done[])
{
    struct slice object = acks_of(body, JSON_IS_OBJECT);
    for (size_t i = 0; i < id_count; i++) {
        assert(i == 0 || ids[i - 1] < ids[i]);
        ret_is_done[i] = false;
    }
    /* Twice, so that an id that is named both true and false is not done, in whatever order. */
    return object.byte_count > 0 && answers_note(object, ids, id_count, true, ret_is_done) &&
           answers_note(object, ids, id_count, false, ret_is_done);
}

bool splunk_poll_answer_write(const int64_t ids[], const bool is_done[], size_t id_count, char **ret_body,
                              size_t *ret_body_bytes)
{
    struct text text = { 0 };
    text_add_chars(&text, "{\"acks\":{");
    for (size_t i = 0; i < id_count; i++) {
        text_add_chars(&text, i > 0 ? ",\"" : "\"");
        text_add_number(&text, ids[i]);
        text_add_chars(&text, is_done[i] ? "\":true" : "\":false");
    }
    text_add_chars(&text, "}}");
    return text_take(&text, ret_body, ret_body_bytes);
}
