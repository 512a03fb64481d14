/*
 * explain.c - see explain.h.
 *
 * Goes the way of exchange.c, identify, plan, pass, without its ledger and its target.
 */
#include "explain.h"
#include "broken.h"
#include "finish.h"
#include "pass.h"
#include "plan.h"
#include <stdlib.h>

/* ---- records ------------------------------------------------------------------------------------------------- */

static const char *shape_name(enum shape shape)
{
    switch (shape) {
    case SHAPE_IS_NONE:
        return "none";
    case SHAPE_IS_SINGLE:
        return "single";
    case SHAPE_IS_JSON_ARRAY:
        return "json-array";
    case SHAPE_IS_NDJSON:
        return "ndjson";
    case SHAPE_IS_CONCAT:
        return "concat";
    case SHAPE_IS_SEPARATED:
        return "separated";
    case SHAPE_IS_ENVELOPE:
        return "envelope";
    case SHAPE_IS_BULK:
        return "bulk";
    case SHAPE_IS_OPAQUE:
        return "opaque";
    }
    return "none";
}

static const char *mark_name(record_mark mark)
{
    if (mark == MARK_NONE)
        return "none";
    return (mark & 1u) != 0 ? "timestamp" : "body";
}

/* The element in which the record stands first; one opaque element stands for all records. */
static struct range range_of(const struct identified *identified, size_t record)
{
    for (size_t i = 0; i < identified->site_count; i++) {
        if (identified->sites[i].record == record)
            return identified->sites[i].whole;
    }
    return identified->site_count > 0 ? identified->sites[0].whole : (struct range){ 0, 0 };
}

static json_t *records_json(const struct identified *identified)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < identified->record_count && i < EXPLAIN_RECORDS_MAX; i++) {
        const struct record *record = &identified->records[i];
        const struct range range = range_of(identified, i);
        json_array_append_new(
            rows, json_pack("{s:s%, s:i, s:I, s:s, s:I, s:I}", "topic", record->key.topic.at,
                            record->key.topic.byte_count, "partition", (int)record->key.partition, "offset",
                            (json_int_t)record->key.offset, "mark", mark_name(record->mark), "begin",
                            (json_int_t)range.begin, "end", (json_int_t)range.end));
    }
    return rows;
}

static size_t without_record_count(const struct identified *identified)
{
    size_t count = 0;
    for (size_t i = 0; i < identified->site_count; i++)
        count += identified->sites[i].record == NO_RECORD;
    return count;
}

/* ---- what is sent -------------------------------------------------------------------------------------------- */

/* NULL becomes null: bytes that are not UTF-8. */
static json_t *text_json(struct slice text)
{
    json_t *json = json_stringn(text.byte_count == 0 ? "" : text.at, text.byte_count);
    return json == NULL ? json_null() : json;
}

static bool is_credential(struct slice name)
{
    return http1_name_equals(name, "authorization") || http1_name_equals(name, "cookie") ||
           http1_name_equals(name, "x-api-key") || http1_name_equals(name, "api-key") ||
           http1_name_equals(name, "dd-api-key");
}

static json_t *fields_json(const struct pass *pass)
{
    json_t *fields = json_array();
    for (size_t i = 0; i < pass->field_count; i++) {
        const struct http1_field *field = &pass->fields[i];
        const struct slice value = is_credential(field->name) ? slice_of_text("***") : field->value;
        json_array_append_new(
            fields, json_pack("{s:o, s:o}", "name", text_json(field->name), "value", text_json(value)));
    }
    return fields;
}

/* The first bytes of the body; a character may be cut at their end, and then the last bytes are left out. */
static json_t *body_json(const struct plan *plan)
{
    char bytes[EXPLAIN_BODY_BYTES_MAX];
    size_t used = 0;
    for (size_t i = 0; i < plan->part_count && used < sizeof bytes; i++) {
        const size_t room = sizeof bytes - used;
        const size_t more = plan->parts[i].byte_count < room ? plan->parts[i].byte_count : room;
        memcpy(bytes + used, plan->parts[i].at, more);
        used += more;
    }
    const bool is_whole = used == plan->body_bytes;
    for (size_t left_out = 0; left_out < 4 && left_out <= used; left_out++) {
        json_t *json = json_stringn(bytes, used - left_out);
        if (json != NULL || is_whole)
            return json != NULL ? json : json_null();
    }
    return json_null();
}

static json_t *sent_json(const struct settings *settings, const struct request *request,
                         const struct identified *identified)
{
    static const struct identified nothing;
    struct plan plan;
    struct pass pass;
    const bool is_found = identified->record_count > 0 && settings->mode == MODE_ENFORCE;
    json_t *json = NULL;
    pass_build(&pass, request, is_found ? identified : NULL, settings, NULL);
    if (plan_build(request, is_found ? identified : &nothing, NULL, is_found && settings->is_stripped, &plan))
        json = json_pack("{s:o, s:o, s:o, s:I, s:b, s:o}", "method", text_json(request->head.method_text),
                         "target", text_json(request->head.target), "fields", fields_json(&pass),
                         "body_bytes", (json_int_t)plan.body_bytes, "rewritten", (int)plan.is_rewritten,
                         "body", body_json(&plan));
    plan_deinit(&plan);
    return json;
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

/* Why exchange.c refuses it; NULL: it does not. */
static const char *refusal_of(const struct settings *settings, const struct identified *identified)
{
    if (settings->mode != MODE_ENFORCE)
        return NULL;
    if (identified->is_too_many)
        return finish_rows[FINISH_TOO_MANY_RECORDS].words;
    if (identified->is_too_large)
        return finish_rows[FINISH_BODY_TOO_LARGE].words;
    if (identified->is_contradictory && !identified->is_uncuttable)
        return finish_rows[FINISH_CONTRADICTION].words;
    bool is_unkeyed = identified->record_count == 0;
    return is_unkeyed && settings->is_unkeyed_rejected ? finish_rows[FINISH_UNKEYED_REFUSED].words : NULL;
}

/* What becomes of its records.  Single ones are never mixed, signed or not. */
static const char *decide_enforced(const struct identified *identified)
{
    if (!identified->is_uncuttable || (identified->site_count < 2 && identified->record_count < 2))
        return "records that are new are sent on; those that the target has are left out";
    if (without_record_count(identified) == 0)
        return "it is signed or opaque and cannot be cut: it is sent on when all its records are new, "
               "left out when the target has them all, and gets 503 when it is mixed";
    return "it is signed or opaque and cannot be cut: it is sent on when all its records are new; once the "
           "target has one of them it gets 503, because nobody knows whether it has what has no coordinates";
}

/* What exchange.c does with it; the sentence of a refusal is the refusal's own. */
static const char *decide(const struct settings *settings, const struct identified *identified,
                          bool *ret_is_sent)
{
    const char *refusal = refusal_of(settings, identified);
    *ret_is_sent = refusal == NULL;
    if (refusal != NULL)
        return refusal;
    if (settings->mode == MODE_OFF)
        return "SINKONCE_MODE is off: it is sent on, and nothing is remembered";
    if (identified->record_count == 0)
        return "no rule matched: it is sent on untouched, as often as it comes";
    return settings->mode == MODE_ENFORCE
               ? decide_enforced(identified)
               : "SINKONCE_MODE is observe: it is sent on whole, and what would have been left out is "
                 "counted";
}

static json_t *count_json(const struct identified *identified, size_t count)
{
    return identified->site_count == 0 ? json_null() : json_integer((json_int_t)count);
}

/* Connect's JsonConverter wraps each value unless it is told not to.  The tree of a large body would be larger still. */
static bool is_wrapped(struct slice body)
{
    enum { LOOK_BYTES_MAX = 64 * 1024 };
    bool is_small = body.byte_count > 0 && body.byte_count <= LOOK_BYTES_MAX;
    json_t *json = is_small ? json_loadb(body.at, body.byte_count, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *value = json_is_array(json) ? json_array_get(json, 0) : json;
    bool is_wrapped = json_object_get(value, "schema") != NULL && json_object_get(value, "payload") != NULL;
    json_decref(json);
    return is_wrapped;
}

/* Where it looked in vain. */
static void add_unmatched(json_t *json, const struct identified *identified)
{
    if (identified->record_count > 0 || identified->is_too_many || identified->is_too_large)
        return;
    const struct broken broken = broken_find(identified);
    json_object_set_new(json, "reason", json_string(broken.reason));
    if (broken.has_position)
        json_object_set_new(json, "position", json_integer((json_int_t)broken.position));
    json_object_set_new(
        json, "hint",
        json_string(is_wrapped(identified->body)
                        ? "Connect has wrapped it into schema and payload: set "
                          "value.converter.schemas.enable=false, or SINKONCE_TOPIC=json:/payload/__topic "
                          "and the other two alike"
                        : "name the places with SINKONCE_TOPIC, SINKONCE_PARTITION, "
                          "SINKONCE_OFFSET, or with SINKONCE_ID"));
}

static json_t *identified_json(const struct settings *settings, const struct request *request,
                               const struct identified *identified)
{
    bool is_sent;
    const char *decision = decide(settings, identified, &is_sent);
    json_t *sent = is_sent ? sent_json(settings, request, identified) : json_null();
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:I, s:o, s:o, s:b, s:b, s:o, s:o}", "decision", decision, "shape",
        shape_name(identified->shape), "rule", identified->rule == NULL ? "" : identified->rule,
        "record_count", (json_int_t)identified->record_count, "element_count",
        count_json(identified, identified->site_count), "element_without_record_count",
        count_json(identified, without_record_count(identified)), "signed", (int)identified->is_signed,
        "cuttable", (int)!identified->is_uncuttable, "records", records_json(identified), "sent", sent);
    add_unmatched(json, identified);
    return json;
}

json_t *explain_json(const struct settings *settings, const struct request *request)
{
    struct identified identified;
    json_t *json = NULL;
    struct identifier *identifier = identifier_new(settings);
    if (identifier == NULL)
        return NULL;
    if (identify(identifier, request, &identified))
        json = identified_json(settings, request, &identified);
    identified_deinit(&identified);
    identifier_free(identifier);
    return json;
}
