/*
 * fuzz_batch.c - batches that this file has written itself, through the whole of what is decided about them: which
 * records they hold, what of them is sent, what the target's answer proves, what the connector is given.
 *
 *     elements --> identify() --> plan_build() --> sent --> batch_outcomes() --> batch_answer()
 *
 * Because it knows what it wrote, nothing is taken from what is tested: each element is found where it was put, with
 * the key that it was given; what is sent is exactly the elements that are not known, byte for byte with what stands
 * between them; each record gets the outcome that its own item says; the answer names each element once.
 *
 * The first byte chooses the form, the second stripping, coding and what is wrong with the answer; then three bytes each
 * describe an element: its coordinates, its text, what becomes of it.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "batch_answer.h"
#include "fuzz.h"
#include "outcome.h"
#include "plan.h"
#include "settings_of.h"

enum {
    HEADER_BYTES = 2,
    STEP_BYTES = 3,
    ELEMENTS_MAX = 24,
    TEXT_BYTES_MAX = 256,
    BODY_BYTES_MAX = 1 << 15,
    KEYS = 16
};

struct form {
    enum batch_dialect dialect;
    bool is_in_lines; /* an element goes with its line end; else with what stands in front of it */
    const char *path, *setting, *prefix, *suffix;
    const char *gaps[2]; /* between elements; of lines behind each */
};

static const struct form forms[] = {
    { BATCH_PLAIN, false, "/p", NULL, "[", "]", { ",", " , " } },
    { BATCH_PLAIN, false, "/p", NULL, " [\n", "\r\n] ", { "\t,\n", "," } },
    { BATCH_PLAIN,
      false,
      "/p",
      "SINKONCE_ENVELOPE=/a/b",
      "{\"x\":[0],\"a\":{\"b\":[",
      "]},\"t\":\"u\"}",
      { ",", ", " } },
    { BATCH_DAPR, false, "/p", NULL, "{\"id\":\"1\",\"entries\":[", "],\"metadata\":{}}", { ",", " ," } },
    { BATCH_PLAIN, true, "/p", "SINKONCE_SHAPE=ndjson", "", "", { "\n", "\n\n" } },
    { BATCH_PLAIN, true, "/p", "SINKONCE_SHAPE=concat", "", "", { "", " \n\t" } },
    { BATCH_SPLUNK, true, "/services/collector/event", NULL, "", "", { "", "\n" } },
    { BATCH_PLAIN, false, "/p", "SINKONCE_SHAPE=separated", "<", ">", { ";;", ";;" } },
    { BATCH_BULK, true, "/i/_bulk", NULL, "", "", { "", "" } },
    { BATCH_PLAIN, true, "/", NULL, "INSERT INTO t FORMAT JSONEachRow\n", "", { "\n", "\n" } },
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

static struct settings all_settings[FORM_COUNT];
static struct identifier *identifiers[FORM_COUNT];

static void form_prepare(size_t which)
{
    static const char *const common[] = { "SINKONCE_TARGET=http://127.0.0.1:9",
                                          "SINKONCE_TOPIC=json:/t",
                                          "SINKONCE_PARTITION=json:/p",
                                          "SINKONCE_OFFSET=json:/o",
                                          "SINKONCE_SEPARATOR=;;",
                                          "SINKONCE_PREFIX=<",
                                          "SINKONCE_SUFFIX=>" };
    enum { COMMON = sizeof common / sizeof common[0], OF_ELEMENTS = 4 };
    bool is_separated = forms[which].prefix[0] == '<', is_dapr = forms[which].dialect == BATCH_DAPR;
    size_t common_count = is_separated ? COMMON : is_dapr ? 1 : OF_ELEMENTS;
    settings_of(common, common_count, &forms[which].setting, 1, &all_settings[which]);
    identifiers[which] = identifier_new(&all_settings[which]);
    assert(identifiers[which] != NULL);
}

/* ---- the batch --------------------------------------------------------------------------------------------------- */

struct text {
    char bytes[TEXT_BYTES_MAX];
    size_t byte_count;
};

struct element {
    struct text text, stripped; /* of a bulk request with its action */
    const char *gap;            /* in front of it; of lines behind it */
    bool is_keyed;
    unsigned key, word; /* what makes it the same record: coordinates, and the rest of it */
    uint8_t fate;
    size_t begin; /* in the body */
    size_t first; /* the element with the same key that comes first */
    bool is_sent;
};

static struct element elements[ELEMENTS_MAX];
static size_t element_count;
static const struct form *form;

static const char *const words[] = {
    "0",      "\"\"", "\"},{\\\"o\\\":1\"", "{\"t\":\"u\",\"p\":3,\"o\":9}", "[1,[2],{}]", "\"\\u00e9\\\\\"",
    "-1.5e3", "null",
};

/* COORDINATES are members, followed by a comma unless they stand alone. */
static void text_write(struct text *text, size_t index, const char *coordinates)
{
    const struct element *element = &elements[index];
    const char *word = words[element->word];
    int count = 0;
    if (form->dialect == BATCH_BULK)
        count = snprintf(text->bytes, sizeof text->bytes, "{\"%s\":{\"_id\":\"k%zu\"}}\n{%s\"x\":%s}\n",
                         element->fate >> 7 != 0 ? "create" : "index", index, coordinates, word);
    else if (form->dialect == BATCH_DAPR)
        count = snprintf(text->bytes, sizeof text->bytes,
                         "{\"entryId\":\"e%zu\",\"metadata\":{%s},\"event\":{\"x\":%s}}", index, coordinates,
                         word);
    else
        count = snprintf(text->bytes, sizeof text->bytes, "{%s\"x\":%s}", coordinates, word);
    assert(count > 0 && (size_t)count < sizeof text->bytes);
    text->byte_count = (size_t)count;
}

static void coordinates_write(char *room, size_t room_bytes, const struct element *element,
                              bool is_offset_first)
{
    unsigned partition = element->key / 8, offset = element->key % 8;
    if (form->dialect == BATCH_DAPR)
        snprintf(room, room_bytes, "\"__offset\":\"%u\",\"__partition\":\"%u\",\"__topic\":\"t\"", offset,
                 partition);
    else if (is_offset_first)
        snprintf(room, room_bytes, "\"o\":\"%u\",\"t\":\"t\",\"p\":%u,", offset, partition);
    else
        snprintf(room, room_bytes, "\"t\":\"t\",\"p\":%u,\"o\":%u,", partition, offset);
}

static void element_make(size_t index, const uint8_t step[STEP_BYTES])
{
    struct element *element = &elements[index];
    char coordinates[64] = "";
    *element = (struct element){ .is_keyed = (step[0] & 0xc0) != 0xc0,
                                 .key = step[0] % KEYS,
                                 .word = step[1] % 8,
                                 .gap = form->gaps[step[1] >> 7],
                                 .fate = step[2],
                                 .first = index };
    if (element->is_keyed)
        coordinates_write(coordinates, sizeof coordinates, element, (step[1] & 8) != 0);
    text_write(&element->text, index, coordinates);
    text_write(&element->stripped, index, "");
    for (size_t i = index; i > 0; i--)
        if (elements[i - 1].is_keyed && element->is_keyed && elements[i - 1].key == element->key)
            element->first = i - 1;
    bool is_known = (elements[element->first].fate & 1) != 0;
    element->is_sent = !element->is_keyed || (element->first == index && !is_known);
}

struct body {
    char bytes[BODY_BYTES_MAX];
    size_t byte_count;
};

static void add(struct body *body, const char *bytes, size_t byte_count)
{
    assert(byte_count <= sizeof body->bytes - body->byte_count);
    memcpy(body->bytes + body->byte_count, bytes, byte_count);
    body->byte_count += byte_count;
}

static void add_text(struct body *body, const char *text)
{
    add(body, text, strlen(text));
}

/* The whole body, or what is to be sent of it. */
static void body_write(struct body *body, bool is_whole, bool is_stripped)
{
    size_t written_count = 0;
    body->byte_count = 0;
    add_text(body, form->prefix);
    for (size_t i = 0; i < element_count; i++) {
        struct element *element = &elements[i];
        const struct text *text = is_stripped ? &element->stripped : &element->text;
        bool is_in = is_whole || element->is_sent;
        if (is_in && !form->is_in_lines && written_count > 0)
            add_text(body, element->gap);
        if (is_whole)
            element->begin = body->byte_count;
        if (is_in)
            add(body, text->bytes, text->byte_count);
        if (form->is_in_lines) { /* what is left out takes the first line end with it */
            const char *line_end = strchr(element->gap, '\n');
            add_text(body, is_in || line_end == NULL ? element->gap : line_end + 1);
        }
        written_count += is_in;
    }
    add_text(body, form->suffix);
}

/* ---- identification ---------------------------------------------------------------------------------------------- */

static void check_element(const struct identified *identified, size_t index)
{
    const struct element *element = &elements[index];
    const struct record_site *site = &identified->sites[index];
    if (identified->shape != SHAPE_IS_SINGLE) { /* else it is the whole body */
        assert(site->whole.begin == element->begin);
        assert(site->whole.end == element->begin + element->text.byte_count);
    }
    assert((site->record != NO_RECORD) == element->is_keyed);
    if (!element->is_keyed)
        return;
    const struct record_key *key = &identified->records[site->record].key;
    assert(slice_equals_text(key->topic, "t") && key->partition == (int32_t)(element->key / 8) &&
           key->offset == (int64_t)(element->key % 8));
    assert(site->is_repeat == (element->first != index));
    assert(site->record == identified->sites[element->first].record);
}

/* False: nothing of it may be sent, because two elements say that they are the same record and are not. */
static bool check_identified(const struct identified *identified)
{
    size_t record_count = 0;
    bool is_contradictory = false;
    for (size_t i = 0; i < element_count; i++) {
        record_count += elements[i].is_keyed && elements[i].first == i;
        is_contradictory = is_contradictory || elements[i].word != elements[elements[i].first].word;
    }
    assert(identified->record_count == record_count && !identified->is_too_many);
    assert(identified->site_count == (record_count == 0 ? 0 : element_count));
    assert(identified->is_contradictory == is_contradictory);
    for (size_t i = 0; i < identified->site_count; i++)
        check_element(identified, i);
    return !is_contradictory;
}

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static size_t sent_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < element_count; i++)
        count += elements[i].is_sent;
    return count;
}

static void check_bytes(const struct plan *plan, const struct identified *identified, struct slice expected)
{
    static struct body sent;
    sent.byte_count = 0;
    for (size_t i = 0; i < plan->part_count; i++)
        add(&sent, plan->parts[i].at, plan->parts[i].byte_count);
    struct slice bytes = slice_of(sent.bytes, sent.byte_count);
    char *opened = NULL;
    size_t opened_bytes;
    if (identified->decoded != NULL) {
        enum coding coding = identified->coding;
        enum coding_status status = coding_open(&coding, bytes, BODY_BYTES_MAX, &opened, &opened_bytes);
        assert(status == CODING_OK);
        bytes = slice_of(opened, opened_bytes);
    }
    assert(slice_equals(bytes, expected));
    free(opened);
}

static void check_plan(const struct request *request, const struct identified *identified,
                       const enum verdict verdicts[], bool is_stripped)
{
    static struct body expected;
    struct plan plan;
    size_t count = sent_count();
    bool is_built = plan_build(request, identified, verdicts, is_stripped, &plan);
    assert(is_built && plan.site_count == count);
    for (size_t i = 0; i < element_count; i++)
        assert(plan_site_is_sent(identified, verdicts, i) == elements[i].is_sent);
    body_write(&expected, false, is_stripped);
    if (count > 0)
        check_bytes(&plan, identified, slice_of(expected.bytes, expected.byte_count));
    assert(plan.is_rewritten || count == element_count);
    plan_deinit(&plan);
}

/* One element alone, as each goes where a target takes one at a time. */
static void check_alone(const struct request *request, const struct identified *identified, size_t index,
                        bool is_stripped)
{
    static struct body expected;
    const struct element *element = &elements[index];
    const struct text *text = is_stripped ? &element->stripped : &element->text;
    const char *line_end = form->is_in_lines ? strchr(element->gap, '\n') : NULL;
    bool is_whole = identified->shape == SHAPE_IS_ENVELOPE;
    struct plan plan;
    bool is_built = plan_build_site(request, identified, index, is_stripped, &plan);
    assert(is_built && plan.site_count == 1);
    expected.byte_count = 0;
    add_text(&expected, is_whole || form->is_in_lines ? form->prefix : "");
    add(&expected, text->bytes, text->byte_count);
    if (line_end != NULL)
        add(&expected, element->gap, (size_t)(line_end - element->gap) + 1);
    add_text(&expected, is_whole ? form->suffix : "");
    if (identified->shape != SHAPE_IS_SINGLE)
        check_bytes(&plan, identified, slice_of(expected.bytes, expected.byte_count));
    plan_deinit(&plan);
}

/* ---- what the answer proves -------------------------------------------------------------------------------------- */

struct fate {
    int status;
    const char *dapr;
    enum outcome of_item, of_entry;
};

static const struct fate fates[] = {
    { 200, "SUCCESS", OUTCOME_APPLIED, OUTCOME_APPLIED },
    { 201, "RETRY", OUTCOME_APPLIED, OUTCOME_NOT_APPLIED },
    { 400, "DROP", OUTCOME_NOT_APPLIED, OUTCOME_NOT_APPLIED },
    { 429, "SUCCESS", OUTCOME_NOT_APPLIED, OUTCOME_APPLIED },
    { 500, "ODD", OUTCOME_UNKNOWN, OUTCOME_UNKNOWN },
    { 503, "SUCCESS", OUTCOME_NOT_APPLIED, OUTCOME_APPLIED },
    { 502, "", OUTCOME_UNKNOWN, OUTCOME_UNKNOWN },
    { 299, "SUCCESS", OUTCOME_APPLIED, OUTCOME_APPLIED },
};

static const struct fate *fate_of(size_t index)
{
    return &fates[elements[index].fate >> 1 & 7];
}

static bool is_failed(size_t index)
{
    return fate_of(index)->status >= 300;
}

/* DAMAGE 1: an item is missing, 2: there is one too many, 3: the end is missing. */
static void bulk_answer_write(struct body *answer, unsigned damage)
{
    char item[128];
    size_t item_count = 0, left = sent_count();
    bool has_error = false;
    add_text(answer, "{\"took\":7,\"items\":[");
    for (size_t i = 0; i < element_count; i++) {
        bool is_create = elements[i].fate >> 7 != 0;
        if (!elements[i].is_sent || (damage == 1 && left-- == 1))
            continue;
        snprintf(item, sizeof item, "%s{\"%s\":{\"n\":%zu,\"status\":%d%s}}", item_count++ > 0 ? " ,\n" : "",
                 is_create ? "create" : "index", i, fate_of(i)->status,
                 is_failed(i) ? ",\"error\":{\"type\":\"x\"}" : "");
        add_text(answer, item);
        has_error = has_error || is_failed(i);
    }
    if (damage == 2)
        add_text(answer, ",{\"index\":{\"status\":200}}");
    add_text(answer, has_error ? "],\"errors\":true" : "],\"errors\":false");
    add_text(answer, damage == 3 ? "" : "}");
}

static void dapr_answer_write(struct body *answer, unsigned damage)
{
    char entry[128];
    size_t written_count = 0;
    add_text(answer, "{\"statuses\":[");
    for (size_t i = element_count; i > 0; i--) {
        if (!elements[i - 1].is_sent)
            continue;
        snprintf(entry, sizeof entry, "%s{\"entryId\":\"e%zu\",\"status\":\"%s\"}",
                 written_count++ > 0 ? "," : "", i - 1, fate_of(i - 1)->dapr);
        add_text(answer, entry);
    }
    add_text(answer, damage == 3 ? "]" : "]}");
}

static void answer_write(struct body *answer, unsigned damage)
{
    answer->byte_count = 0;
    if (form->dialect == BATCH_BULK)
        bulk_answer_write(answer, damage);
    else if (form->dialect == BATCH_DAPR)
        dapr_answer_write(answer, damage);
    else if (form->dialect == BATCH_SPLUNK)
        add_text(answer, damage == 0 ? "{\"text\":\"Success\",\"code\":0}"
                                     : "{\"text\":\"Server is busy\",\"code\":9}");
    else
        add_text(answer, "ok");
}

/* What the answer to element INDEX says of its record. */
static enum outcome expected_outcome(size_t index, unsigned damage)
{
    switch (form->dialect) {
    case BATCH_BULK:
        return damage != 0 ? OUTCOME_UNKNOWN : fate_of(index)->of_item;
    case BATCH_DAPR:
        return damage == 3 ? OUTCOME_UNKNOWN : fate_of(index)->of_entry;
    case BATCH_SPLUNK:
        return damage != 0 ? OUTCOME_UNKNOWN : OUTCOME_APPLIED;
    case BATCH_PLAIN:
    default:
        return OUTCOME_APPLIED;
    }
}

static void check_outcomes(const struct identified *identified, const enum outcome outcomes[],
                           unsigned damage)
{
    for (size_t i = 0; i < element_count; i++) {
        const struct element *element = &elements[i];
        if (!element->is_keyed || element->first != i)
            continue;
        enum outcome outcome = outcomes[identified->sites[i].record];
        assert(outcome == (element->is_sent ? expected_outcome(i, damage) : OUTCOME_NOT_SENT));
    }
}

/* ---- what the connector is given --------------------------------------------------------------------------------- */

/* A repeat shares the fate of the element that was sent for it. */
static void check_item(json_t *item, size_t index)
{
    const struct element *element = &elements[index];
    json_t *inside = json_object_get(item, element->fate >> 7 != 0 ? "create" : "index");
    bool has_error = json_object_get(inside, "error") != NULL;
    json_int_t status = json_integer_value(json_object_get(inside, "status"));
    assert(json_object_size(item) == 1 && json_is_object(inside));
    if (element->is_sent) {
        assert(json_integer_value(json_object_get(inside, "n")) == (json_int_t)index);
        assert(status == fate_of(index)->status && has_error == is_failed(index));
    } else {
        bool is_failed_before = elements[element->first].is_sent && is_failed(element->first);
        assert(has_error == is_failed_before && (status >= 200 && status <= 299) == !is_failed_before);
        assert(json_object_get(inside, "n") == NULL || is_failed_before);
    }
}

static void check_items(json_t *answer)
{
    json_t *items = json_object_get(answer, "items");
    bool has_error = false;
    assert(json_array_size(items) == element_count);
    for (size_t i = 0; i < element_count; i++) {
        check_item(json_array_get(items, i), i);
        has_error = has_error || (elements[elements[i].first].is_sent && is_failed(elements[i].first));
    }
    assert(json_is_boolean(json_object_get(answer, "errors")));
    assert(json_is_true(json_object_get(answer, "errors")) == has_error);
}

static void check_entries(json_t *answer)
{
    json_t *statuses = json_object_get(answer, "statuses");
    bool is_named[ELEMENTS_MAX] = { false };
    assert(json_array_size(statuses) == element_count);
    for (size_t i = 0; i < element_count; i++) {
        const char *id = json_string_value(json_object_get(json_array_get(statuses, i), "entryId"));
        const char *status = json_string_value(json_object_get(json_array_get(statuses, i), "status"));
        size_t index;
        assert(id != NULL && status != NULL && sscanf(id, "e%zu", &index) == 1 && index < element_count);
        assert(!is_named[index]);
        is_named[index] = true;
        if (elements[index].is_sent)
            assert(strcmp(status, fate_of(index)->dapr) == 0);
        else if (!elements[elements[index].first].is_sent)
            assert(strcmp(status, "SUCCESS") == 0);
    }
}

static void check_answer(const struct identified *identified, const bool sent[], struct slice answer,
                         unsigned damage)
{
    char *body;
    size_t body_bytes;
    const char *type;
    bool has_answer = sent_count() > 0;
    bool is_made = batch_answer(form->dialect, has_answer ? 200 : 0, answer, identified, sent, -1, &body,
                                &body_bytes, &type);
    bool is_known = form->dialect == BATCH_BULK   ? damage == 0
                    : form->dialect == BATCH_DAPR ? damage != 3
                                                  : true;
    bool is_own = form->dialect == BATCH_BULK || form->dialect == BATCH_DAPR;
    if (has_answer && is_own && sent_count() < element_count)
        assert(is_made == is_known || form->dialect == BATCH_DAPR);
    if (!is_made || body == NULL)
        return;
    json_error_t error;
    json_t *json = json_loadb(body, body_bytes, JSON_REJECT_DUPLICATES, &error);
    assert(json_is_object(json));
    if (form->dialect == BATCH_BULK)
        check_items(json);
    else if (form->dialect == BATCH_DAPR)
        check_entries(json);
    json_decref(json);
    free(body);
}

static void check_way_back(const struct identified *identified, unsigned damage)
{
    static struct body answer;
    enum outcome outcomes[ELEMENTS_MAX];
    bool sent[ELEMENTS_MAX], has_ack_id;
    int64_t ack_id;
    for (size_t i = 0; i < element_count; i++) {
        outcomes[i] = OUTCOME_NOT_SENT;
        sent[i] = elements[i].is_sent;
    }
    answer_write(&answer, damage);
    struct slice bytes = slice_of(answer.bytes, answer.byte_count);
    if (sent_count() > 0) {
        batch_outcomes(form->dialect, 200, bytes, identified, sent, &all_settings[form - forms], outcomes,
                       &has_ack_id, &ack_id);
        assert(!has_ack_id);
        check_outcomes(identified, outcomes, damage);
    }
    check_answer(identified, sent, bytes, damage);
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

/* The body is owned by the request; release it. */
static void request_make(struct request *request, const struct body *body, bool is_coded, char head[],
                         size_t head_bytes)
{
    enum finish why;
    int count = snprintf(head, head_bytes, "POST %s HTTP/1.1\r\nHost: h\r\n%s\r\n", form->path,
                         is_coded ? "Content-Encoding: gzip\r\n" : "");
    *request = (struct request){ .bytes = head };
    enum http1_status status = http1_head(head, (size_t)count, 1000, BODY_BYTES_MAX, &request->head, &why);
    assert(status == HTTP1_DONE);
    const struct slice part = slice_of(body->bytes, body->byte_count);
    if (is_coded) {
        enum coding_status packed = coding_pack(CODING_GZIP, &part, 1, &request->body, &request->body_bytes);
        assert(packed == CODING_OK);
        return;
    }
    request->body = malloc(body->byte_count + 1);
    assert(request->body != NULL);
    memcpy(request->body, body->bytes, body->byte_count);
    request->body_bytes = body->byte_count;
}

static void run(bool is_coded, bool is_stripped, unsigned damage)
{
    static struct body body;
    char head[256];
    struct request request;
    struct identified identified;
    enum verdict verdicts[ELEMENTS_MAX];
    body_write(&body, true, false);
    request_make(&request, &body, is_coded, head, sizeof head);
    bool is_done = identify(identifiers[form - forms], &request, &identified);
    assert(is_done);
    if (check_identified(&identified) && identified.site_count > 0) {
        assert(batch_dialect_of(&request, &identified) == form->dialect);
        for (size_t i = 0; i < element_count; i++)
            if (elements[i].is_keyed)
                verdicts[identified.sites[i].record] =
                    elements[elements[i].first].is_sent ? VERDICT_NEW : VERDICT_APPLIED;
        check_plan(&request, &identified, verdicts, is_stripped);
        for (size_t i = 0; i < element_count; i++)
            check_alone(&request, &identified, i, is_stripped);
        check_way_back(&identified, damage);
    }
    identified_deinit(&identified);
    free(request.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    if (input_bytes < HEADER_BYTES + STEP_BYTES)
        return 0;
    form = &forms[input[0] % FORM_COUNT];
    if (identifiers[form - forms] == NULL)
        form_prepare((size_t)(form - forms));
    element_count = 0;
    for (size_t at = HEADER_BYTES; at + STEP_BYTES <= input_bytes && element_count < ELEMENTS_MAX;
         at += STEP_BYTES)
        element_make(element_count++, input + at);
    run((input[1] & 1) != 0, (input[1] & 2) != 0, input[1] >> 2 & 3);
    return 0;
}
