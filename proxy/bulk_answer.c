/*
 * bulk_answer.c - see bulk_answer.h.
 *
 * The items of an answer stand in the order of the actions that were sent, and position is the only link between them:
 *
 *     actions of the request     0 index   1 create   2 delete   3 index
 *     sent                       yes       no         yes        yes
 *     items of the target        0 index              1 delete   2 index      copied byte for byte
 *     items for the connector    0 index   (made up)  2 delete   3 index
 *
 * Each item is scanned by itself: an answer of megabytes never becomes a tree.
 */
#include "bulk_answer.h"

#include <assert.h>
#include <stdlib.h>

#include "json_walk.h"
#include "outcome.h"
#include "text.h"

/* One item of the target. */
struct item {
    struct slice whole;  /* {"index":{...}} as it stands */
    struct slice inside; /* {...} */
    struct slice id;     /* quotes left out; empty: none */
    int status;
    bool has_error;
    bool is_version_conflict; /* the error's type says so */
};

struct answer {
    struct slice took, ingest_took; /* as they stand; empty: none */
    bool denies_errors;             /* it says something else than "errors":true */
    struct item *items;             /* owned, a cell for each action; only those of sent ones mean anything */
    const struct item **of_record;  /* owned, a cell for each record: its item; NULL: it was not sent */
};

/* What a made-up item says, per kind: what a server says when that action has worked.  The high-level client of
 * Elasticsearch 7 asserts "created" or "updated" for index and create, and knows no other words than the server's. */
static const struct made_up {
    const char *name, *result;
    int status;
} made_ups[] = {
    [BULK_INDEX] = { "index", "updated", 200 },
    [BULK_CREATE] = { "create", "created", 201 },
    [BULK_UPDATE] = { "update", "noop", 200 },
    [BULK_DELETE] = { "delete", "deleted", 200 },
};

/* ---- reading ------------------------------------------------------------------------------------------------- */

enum { WANT_INSIDE, WANT_STATUS, WANT_ERROR, WANT_ERROR_TYPE, WANT_ID, WANTS };

static char name_status[] = "status", name_error[] = "error", name_type[] = "type", name_id[] = "_id";
static char name_index[] = "index", name_create[] = "create", name_update[] = "update",
            name_delete[] = "delete";

#define TOKENS(kind)                                                                                         \
    {                                                                                                        \
        [WANT_INSIDE] = { kind }, [WANT_STATUS] = { kind, name_status },                                     \
        [WANT_ERROR] = { kind, name_error }, [WANT_ERROR_TYPE] = { kind, name_error, name_type },            \
        [WANT_ID] = { kind, name_id },                                                                       \
    }
static char *const tokens[][WANTS][3] = {
    [BULK_INDEX] = TOKENS(name_index),
    [BULK_CREATE] = TOKENS(name_create),
    [BULK_UPDATE] = TOKENS(name_update),
    [BULK_DELETE] = TOKENS(name_delete),
};

static void wants_fill(struct json_want wants[WANTS], enum bulk_kind kind)
{
    static const size_t token_counts[] = {
        [WANT_INSIDE] = 1, [WANT_STATUS] = 2, [WANT_ERROR] = 2, [WANT_ERROR_TYPE] = 3, [WANT_ID] = 2
    };
    for (size_t i = 0; i < WANTS; i++)
        wants[i] = (struct json_want){ .tokens = tokens[kind][i], .token_count = token_counts[i] };
}

/* Is the member INSIDE belongs to the only one of the object WHOLE? */
static bool is_only_member(struct slice whole, const struct json_want *inside)
{
    const char *member_end = inside->member.at + inside->member.byte_count;
    const char *last = whole.at + whole.byte_count - 1;
    return whole.at[0] == '{' && json_is_blank(whole.at + 1, (size_t)(inside->member.at - whole.at - 1), 0) &&
           json_is_blank(member_end, (size_t)(last - member_end), 0);
}

/* An item of KIND, whose object WHOLE was scanned with WANTS. */
static bool item_fill(struct slice whole, const struct json_want wants[WANTS], struct item *ret_item)
{
    const struct json_want *inside = &wants[WANT_INSIDE], *status = &wants[WANT_STATUS];
    const struct json_want *error = &wants[WANT_ERROR], *type = &wants[WANT_ERROR_TYPE],
                           *id = &wants[WANT_ID];
    uint64_t number;
    if (inside->kind != JSON_IS_OBJECT || !is_only_member(whole, inside) || status->is_ambiguous ||
        error->is_ambiguous || status->kind != JSON_IS_NUMBER || !decimal_read(status->text, 599, &number) ||
        number < 100)
        return false;
    *ret_item = (struct item){
        .whole = whole,
        .inside = inside->text,
        .status = (int)number,
        .has_error = error->kind != JSON_IS_MISSING && error->kind != JSON_IS_NULL,
        .is_version_conflict = type->kind == JSON_IS_STRING && !type->is_ambiguous &&
                               slice_equals_text(type->text, "\"version_conflict_engine_exception\""),
    };
    if (id->kind == JSON_IS_STRING && !id->is_ambiguous)
        ret_item->id = slice_of(id->text.at + 1, id->text.byte_count - 2);
    return true;
}

/* The next item, which answers an action of KIND.  An index action with "op_type":"create" is answered as create. */
static bool item_read(struct json_walk *walk, enum bulk_kind kind, struct item *ret_item)
{
    struct json_want wants[WANTS];
    struct slice whole;
    wants_fill(wants, kind);
    if (!json_walk_value(walk, wants, WANTS, &whole))
        return false;
    if (kind == BULK_INDEX && wants[WANT_INSIDE].kind == JSON_IS_MISSING) {
        size_t end;
        wants_fill(wants, BULK_CREATE);
        if (json_scan(whole.at, whole.byte_count, wants, WANTS, &end) != JSON_DONE)
            return false;
    }
    return item_fill(whole, wants, ret_item);
}

/* The first action from SITE on that was sent; site_count: none. */
static size_t next_sent(const struct identified *identified, const bool sent[], size_t site)
{
    while (site < identified->site_count && !sent[site])
        site++;
    return site;
}

static bool has_escape(struct slice text)
{
    return text.byte_count > 0 && memchr(text.at, '\\', text.byte_count) != NULL;
}

/* Both are known, and spelled without escapes: then they can be compared as they stand. */
static bool is_other_id(struct slice id, struct slice of_action)
{
    return id.byte_count > 0 && of_action.byte_count > 0 && !has_escape(id) && !has_escape(of_action) &&
           !slice_equals(id, of_action);
}

/* The item of SITE carries the id of another action.  An id that is nobody's proves nothing: an ingest pipeline may
 * have set it. */
static bool is_out_of_place(const struct identified *identified, const bool sent[], size_t site,
                            struct slice id)
{
    for (size_t i = 0; i < identified->site_count; i++) {
        if (i != site && sent[i] && slice_equals(identified->actions[i].id, id))
            return true;
    }
    return false;
}

/* One item per sent action, no more and no fewer. */
static bool items_read(struct json_walk *walk, const struct identified *identified, const bool sent[],
                       struct item items[])
{
    bool is_order_checked = false;
    size_t site = next_sent(identified, sent, 0);
    while (json_walk_next(walk)) {
        if (site == identified->site_count || !item_read(walk, identified->actions[site].kind, &items[site]))
            return false;
        /* Once is enough: when items are not in our order, the first that differs is somebody else's. */
        if (!is_order_checked && is_other_id(items[site].id, identified->actions[site].id)) {
            is_order_checked = true;
            if (is_out_of_place(identified, sent, site, items[site].id))
                return false;
        }
        site = next_sent(identified, sent, site + 1);
    }
    return !walk->is_wrong && site == identified->site_count;
}

static bool members_read(struct slice body, const struct identified *identified, const bool sent[],
                         struct answer *answer)
{
    struct json_walk walk, items;
    struct slice name, value;
    bool has_items = false;
    json_walk_open(&walk, body, '{');
    while (json_walk_next(&walk)) {
        if (!json_walk_name(&walk, &name))
            return false;
        if (slice_equals_text(name, "items")) {
            json_walk_enter(&walk, &items, '[');
            if (has_items || !items_read(&items, identified, sent, answer->items))
                return false;
            has_items = true;
            json_walk_join(&walk, &items);
            continue;
        }
        if (!json_walk_value(&walk, NULL, 0, &value))
            return false;
        if (slice_equals_text(name, "took"))
            answer->took = value;
        else if (slice_equals_text(name, "ingest_took"))
            answer->ingest_took = value;
        else if (slice_equals_text(name, "errors"))
            answer->denies_errors = answer->denies_errors || !slice_equals_text(value, "true");
    }
    return !walk.is_wrong && has_items && json_walk_is_last(&walk);
}

/* Release with answer_deinit() in either case. */
static bool answer_read(struct slice body, const struct identified *identified, const bool sent[],
                        struct answer *ret_answer)
{
    *ret_answer = (struct answer){
        .items = calloc(identified->site_count + 1, sizeof *ret_answer->items),
        .of_record = calloc(identified->record_count + 1, sizeof *ret_answer->of_record),
    };
    if (ret_answer->items == NULL || ret_answer->of_record == NULL ||
        !members_read(body, identified, sent, ret_answer))
        return false;
    for (size_t i = 0; i < identified->site_count; i++) {
        if (sent[i] && identified->sites[i].record != NO_RECORD)
            ret_answer->of_record[identified->sites[i].record] = &ret_answer->items[i];
    }
    return true;
}

static void answer_deinit(struct answer *answer)
{
    free(answer->items);
    free(answer->of_record);
}

/* ---- outcomes ------------------------------------------------------------------------------------------------ */

/* A decimal number that ends ID, and the '+' before it; ID is what stands before both. */
static bool plus_number_take(struct slice *id, uint64_t max, uint64_t *ret_number)
{
    size_t plus = id->byte_count;
    while (plus > 0 && id->at[plus - 1] != '+')
        plus--;
    if (plus == 0 || !decimal_read(slice_of(id->at + plus, id->byte_count - plus), max, ret_number))
        return false;
    id->byte_count = plus - 1;
    return true;
}

/* TOPIC+PARTITION+OFFSET, as sinks write it whose keys are ignored. */
static bool is_plus_id(struct slice id, const struct record_key *key)
{
    uint64_t partition, offset;
    return plus_number_take(&id, INT64_MAX, &offset) && plus_number_take(&id, INT32_MAX, &partition) &&
           (int32_t)partition == key->partition && (int64_t)offset == key->offset &&
           slice_equals(id, key->topic);
}

static bool is_formatted_id(struct slice id, const struct record_key *key, const struct id_format *format)
{
    struct id_value value;
    if (format->text == NULL || !id_format_match(format, id, &value))
        return false;
    return value.partition == key->partition && value.offset == key->offset &&
           (value.topic.byte_count == 0 || slice_equals(value.topic, key->topic));
}

/* The conflict is with the record itself: its own id, or a version of it that is as new. */
static bool is_conflict_with_itself(const struct item *item, const struct bulk_action *action,
                                    const struct record_key *key, const struct settings *settings)
{
    if (item->status != 409 || !item->is_version_conflict)
        return false;
    if (action->is_version_external)
        return true;
    return action->kind == BULK_CREATE &&
           (is_plus_id(action->id, key) || is_formatted_id(action->id, key, &settings->id_format));
}

static enum outcome outcome_of_item(const struct item *item, const struct bulk_action *action,
                                    const struct record_key *key, const struct settings *settings)
{
    if (is_conflict_with_itself(item, action, key, settings))
        return OUTCOME_APPLIED;
    /* "not_found" is no error of a delete: what it wanted is so, and clients count it as done. */
    if (action->kind == BULK_DELETE && item->status == 404 && !item->has_error)
        return OUTCOME_APPLIED;
    enum outcome outcome = outcome_of(ATTEMPT_KNOWN, item->status, settings);
    return outcome == OUTCOME_APPLIED && item->has_error ? OUTCOME_UNKNOWN : outcome;
}

bool bulk_outcomes(struct slice body, const struct identified *identified, const bool sent[],
                   const struct settings *settings, enum outcome outcomes[])
{
    struct answer answer;
    bool is_fit = answer_read(body, identified, sent, &answer);
    for (size_t i = 0; is_fit && i < identified->site_count; i++) {
        size_t record = identified->sites[i].record;
        if (sent[i] && record != NO_RECORD)
            outcomes[record] = outcome_of_item(&answer.items[i], &identified->actions[i],
                                               &identified->records[record].key, settings);
    }
    answer_deinit(&answer);
    return is_fit;
}

bool bulk_hides_refusal(struct slice body, const struct identified *identified, const bool sent[],
                        const struct settings *settings)
{
    struct answer answer;
    bool is_hidden = !answer_read(body, identified, sent, &answer);
    for (size_t i = 0; !is_hidden && i < identified->site_count; i++) {
        size_t record = identified->sites[i].record;
        is_hidden = sent[i] && record != NO_RECORD && !answer.items[i].has_error &&
                    outcome_of_item(&answer.items[i], &identified->actions[i],
                                    &identified->records[record].key, settings) == OUTCOME_NOT_APPLIED;
    }
    answer_deinit(&answer);
    return is_hidden;
}

/* ---- writing ------------------------------------------------------------------------------------------------- */

/* An index name of the request's URL as JSON text.  Escapes above ASCII stay as they are: no server has such names. */
static void add_url_name(struct text *text, struct slice name)
{
    for (size_t i = 0; i < name.byte_count; i++) {
        char c = name.at[i];
        int high = c == '%' && i + 2 < name.byte_count ? hex_digit(name.at[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(name.at[i + 2]) : -1;
        int byte = high * 16 + low;
        if (low >= 0 && byte >= ' ' && byte < 0x7f) {
            c = (char)byte;
            i += 2;
        }
        if (c == '"' || c == '\\')
            text_add_chars(text, "\\");
        text_add(text, slice_of(&c, 1));
    }
}

/* Names of action lines are JSON text already; those of the URL are not. */
static void add_index(struct text *text, const struct identified *identified, struct slice name)
{
    const char *body = identified->body.at;
    bool is_of_body = name.byte_count > 0 && name.at >= body && name.at < body + identified->body.byte_count;
    if (is_of_body)
        text_add(text, name);
    else
        add_url_name(text, name);
}

/* The 7.x client refuses an item without an id, even where the request has none: then the coordinates name it. */
static void add_id(struct text *text, struct slice id, const struct record_key *key)
{
    if (id.byte_count > 0) {
        text_add(text, id);
        return;
    }
    text_add(text, key->topic);
    text_add_chars(text, "+");
    text_add_number(text, key->partition);
    text_add_chars(text, "+");
    text_add_number(text, key->offset);
}

static void add_made_up(struct text *text, const struct identified *identified, size_t site)
{
    const struct bulk_action *action = &identified->actions[site];
    const struct made_up *made_up = &made_ups[action->kind];
    uint64_t version = 1;
    assert(identified->sites[site].record != NO_RECORD);
    text_add_chars(text, "{\"");
    text_add_chars(text, made_up->name);
    text_add_chars(text, "\":{\"_index\":\"");
    add_index(text, identified, action->index);
    text_add_chars(text, "\",\"_type\":\"_doc\",\"_id\":\"");
    add_id(text, action->id, &identified->records[identified->sites[site].record].key);
    text_add_chars(text, "\",\"_version\":");
    if (!decimal_read(action->version, INT64_MAX, &version))
        version = 1;
    text_add_number(text, (int64_t)version);
    text_add_chars(text, ",\"result\":\"");
    text_add_chars(text, made_up->result);
    text_add_chars(text, "\",\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\"_seq_no\":0,"
                         "\"_primary_term\":1,\"status\":");
    text_add_number(text, made_up->status);
    text_add_chars(text, "}}");
}

/* What the target said of the record of SITE: of this element, or of the first of the same record; NULL: nothing. */
static const struct item *item_of(const struct answer *answer, const struct identified *identified,
                                  size_t site)
{
    size_t record = identified->sites[site].record;
    if (answer->items == NULL)
        return NULL;
    return record == NO_RECORD ? &answer->items[site] : answer->of_record[record];
}

static bool has_errors(const struct answer *answer, const struct identified *identified)
{
    for (size_t i = 0; i < identified->site_count; i++) {
        const struct item *item = item_of(answer, identified, i);
        if (item != NULL && item->has_error)
            return true;
    }
    return false;
}

static void add_item(struct text *text, const struct answer *answer, const struct identified *identified,
                     bool is_sent, size_t site)
{
    const struct item *item = item_of(answer, identified, site);
    if (is_sent) {
        text_add(text, item->whole);
        return;
    }
    if (item == NULL || !item->has_error) {
        add_made_up(text, identified, site);
        return;
    }
    /* A repeat of a record that has failed: it must not look delivered here. */
    text_add_chars(text, "{\"");
    text_add_chars(text, made_ups[identified->actions[site].kind].name);
    text_add_chars(text, "\":");
    text_add(text, item->inside);
    text_add_chars(text, "}");
}

static bool is_number(struct slice text)
{
    uint64_t number;
    return decimal_read(text, INT64_MAX, &number);
}

/* Any other member makes the 7.x client throw. */
static void add_head(struct text *text, const struct answer *answer, bool is_with_errors)
{
    text_add_chars(text, "{\"took\":");
    text_add(text, is_number(answer->took) ? answer->took : slice_of_text("0"));
    if (is_number(answer->ingest_took)) {
        text_add_chars(text, ",\"ingest_took\":");
        text_add(text, answer->ingest_took);
    }
    text_add_chars(text, is_with_errors ? ",\"errors\":true,\"items\":[" : ",\"errors\":false,\"items\":[");
}

enum { HEAD_BYTES = 96, MADE_UP_BYTES = 224 }; /* room made ahead; more is had when it is needed */

bool bulk_answer(bool has_answer, struct slice body, const struct identified *identified, const bool sent[],
                 char **ret_body, size_t *ret_body_bytes)
{
    struct answer answer = { 0 };
    struct text text = { 0 };
    size_t made_up_count = 0;
    if (has_answer && !answer_read(body, identified, sent, &answer)) {
        answer_deinit(&answer);
        return false;
    }
    for (size_t i = 0; i < identified->site_count; i++)
        made_up_count += !sent[i];
    text_reserve(&text, HEAD_BYTES + (has_answer ? body.byte_count : 0) + made_up_count * MADE_UP_BYTES);
    add_head(&text, &answer, has_errors(&answer, identified));
    for (size_t i = 0; i < identified->site_count; i++) {
        if (i > 0)
            text_add_chars(&text, ",");
        add_item(&text, &answer, identified, sent[i], i);
    }
    text_add_chars(&text, "]}");
    answer_deinit(&answer);
    return text_take(&text, ret_body, ret_body_bytes);
}

/* BODY, which has been read well, with true for every word of it about errors. */
static void add_with_errors(struct text *text, struct slice body)
{
    struct json_walk walk;
    struct slice name, value;
    const char *from = body.at;
    json_walk_open(&walk, body, '{');
    while (json_walk_next(&walk) && json_walk_name(&walk, &name) && json_walk_value(&walk, NULL, 0, &value)) {
        if (!slice_equals_text(name, "errors"))
            continue;
        text_add(text, slice_of(from, (size_t)(value.at - from)));
        text_add_chars(text, "true");
        from = value.at + value.byte_count;
    }
    text_add(text, slice_of(from, (size_t)(body.at + body.byte_count - from)));
}

bool bulk_answer_whole(struct slice body, const struct identified *identified, const bool sent[],
                       char **ret_body, size_t *ret_body_bytes)
{
    struct answer answer;
    struct text text = { 0 };
    *ret_body = NULL;
    *ret_body_bytes = 0;
    bool is_contradictory = answer_read(body, identified, sent, &answer) && answer.denies_errors &&
                            has_errors(&answer, identified);
    bool has_memory = answer.items != NULL && answer.of_record != NULL;
    answer_deinit(&answer);
    if (!is_contradictory)
        return has_memory;
    text_reserve(&text, body.byte_count);
    add_with_errors(&text, body);
    return text_take(&text, ret_body, ret_body_bytes);
}
