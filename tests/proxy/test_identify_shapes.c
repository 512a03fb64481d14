/*
 * test_identify_shapes.c - requests of several records: raw requests of connectors with the place of each element,
 * then shape by shape what is an element and what is none.
 */
#include "identify.h"

#include "row_tests.h"
#include "wish.h"

enum { TEXT_BYTES_MAX = 4096 };

/* "SHAPE rule: coordinates ..." with "-" for an element without record and "=" before one that repeats another. */
struct answer {
    char text[TEXT_BYTES_MAX];
    char places[TEXT_BYTES_MAX]; /* "begin-end begin-end" */
    bool is_signed, is_uncuttable, is_too_many, is_contradictory;
};

static const char *const shape_names[] = {
    [SHAPE_IS_NONE] = "none",         [SHAPE_IS_SINGLE] = "single", [SHAPE_IS_JSON_ARRAY] = "json-array",
    [SHAPE_IS_NDJSON] = "ndjson",     [SHAPE_IS_CONCAT] = "concat", [SHAPE_IS_SEPARATED] = "separated",
    [SHAPE_IS_ENVELOPE] = "envelope", [SHAPE_IS_BULK] = "bulk",     [SHAPE_IS_OPAQUE] = "opaque",
};

static void site_write(struct answer *answer, const struct identified *identified, size_t site_index)
{
    const struct record_site *site = &identified->sites[site_index];
    size_t at = strlen(answer->text), place_at = strlen(answer->places);
    assert_true(site->whole.begin <= site->whole.end && site->whole.end <= identified->body.byte_count);
    snprintf(answer->places + place_at, sizeof answer->places - place_at, "%s%zu-%zu",
             site_index > 0 ? " " : "", site->whole.begin, site->whole.end);
    if (site->record == NO_RECORD) {
        snprintf(answer->text + at, sizeof answer->text - at, " -");
        return;
    }
    assert_true(site->record < identified->record_count);
    const struct record_key *key = &identified->records[site->record].key;
    snprintf(answer->text + at, sizeof answer->text - at, " %s%.*s/%ld/%lld", site->is_repeat ? "=" : "",
             (int)key->topic.byte_count, key->topic.at, (long)key->partition, (long long)key->offset);
}

static void answer_write(struct answer *answer, const struct identified *identified)
{
    memset(answer, 0, sizeof *answer);
    answer->is_signed = identified->is_signed;
    answer->is_uncuttable = identified->is_uncuttable;
    answer->is_too_many = identified->is_too_many;
    answer->is_contradictory = identified->is_contradictory;
    assert_int_equal(identified->record_count == 0, identified->site_count == 0);
    if (identified->record_count == 0) {
        strcpy(answer->text, "none");
        return;
    }
    snprintf(answer->text, sizeof answer->text, "%s %s:", shape_names[identified->shape], identified->rule);
    for (size_t i = 0; i < identified->site_count; i++) {
        if (i > 0)
            assert_true(identified->sites[i].whole.begin >= identified->sites[i - 1].whole.end);
        site_write(answer, identified, i);
    }
}

/* Takes REQUEST over. */
static void ask(const struct wish *wish, struct request *request, struct answer *answer)
{
    struct settings settings;
    struct identified identified;
    settings_of(wish, &settings);
    struct identifier *identifier = identifier_new(&settings);
    assert_non_null(identifier);
    assert_true(identify(identifier, request, &identified));
    answer_write(answer, &identified);
    identified_deinit(&identified);
    identifier_free(identifier);
    settings_release(&settings);
    request_release(request);
}

/* ---- raw requests of connectors ------------------------------------------------------------------------------ */

#define ORDERS_2  " orders/0/100 orders/0/101"
#define ORDERS_3  ORDERS_2 " orders/0/102"
#define TPO_SHORT .topic = "json:/t", .partition = "json:/p", .offset = "json:/o"

static const struct file_row {
    const char *name;
    struct wish wish;
    const char *expected, *places;
} file_rows[] = {
    { "aiven-batch-json-array.http", { 0 }, "json-array insert-field:" ORDERS_2, "1-94 95-188" },
    { "aiven-batch-json-array-overlap.http",
      { 0 },
      "json-array insert-field: orders/0/101 orders/0/102 orders/0/103",
      "1-94 95-188 189-282" },
    { "aiven-batch-json-array-one.http", { 0 }, "json-array insert-field: orders/0/102", "1-94" },
    { "aiven-batch-json-array-mixed.http",
      { 0 },
      "json-array insert-field: orders/0/100 orders/1/40 payments/0/7 orders/0/9007199254740993 orders/1/41",
      "1-94 95-187 188-281 282-388 389-481" },
    { "confluent-v1-array.http", { 0 }, "json-array insert-field:" ORDERS_3, "1-94 95-188 189-282" },
    { "vector-array.http", { 0 }, "json-array vector:" ORDERS_2 " orders/1/40", "1-158 159-329 330-499" },
    { "fluentbit-array.http", { 0 }, "json-array fluent-bit:" ORDERS_2, "1-118 119-236" },
    { "datadog-array-gzip.http", { 0 }, "json-array datadog-message:" ORDERS_2, "1-157 158-314" },
    { "edge-array-repeated-record.http",
      { 0 },
      "json-array insert-field: orders/0/100 =orders/0/100 orders/0/101 =orders/0/100",
      "1-94 95-188 189-282 283-376" },
    { "aiven-batch-newline.http", { 0 }, "ndjson insert-field:" ORDERS_2, "0-93 94-187" },
    { "aiven-batch-newline.http",
      { .shape = SHAPE_SEPARATED },
      "separated insert-field:" ORDERS_2,
      "0-93 94-187" },
    { "aiven-batch-newline.http",
      { .shape = SHAPE_SEPARATED, .suffix = "\n" },
      "separated insert-field:" ORDERS_2,
      "0-93 94-187" },
    { "vector-ndjson.http", { 0 }, "ndjson vector:" ORDERS_2, "0-157 158-328" },
    { "splunk-event.http", { 0 }, "ndjson splunk-fields:" ORDERS_2, "0-342 343-685" },
    { "splunk-event-string.http", { 0 }, "ndjson splunk-fields:" ORDERS_2, "0-260 261-521" },
    { "splunk-event-gzip-chunked.http", { 0 }, "ndjson splunk-fields:" ORDERS_2, "0-342 343-685" },
    { "splunk-event.http", { .shape = SHAPE_CONCAT }, "concat splunk-fields:" ORDERS_2, "0-342 343-685" },
    { "fluentbit-json-stream.http", { 0 }, "concat fluent-bit:" ORDERS_2, "0-117 117-234" },
    { "clickhouse-v1-jsoneachrow-token.http",
      { 0 },
      "concat insert-field:" ORDERS_3,
      "39-132 132-225 225-318" },
    { "clickhouse-v2-jsoneachrow-token.http", { 0 }, "concat insert-field:" ORDERS_3, "0-93 93-186 186-279" },
    { "clickhouse-v1-jsoneachrow-token.http",
      { .shape = SHAPE_OPAQUE },
      "opaque clickhouse-token: orders/0/100",
      "0-318" },
    { "aiven-batch-comma.http",
      { .shape = SHAPE_SEPARATED, .separator = "," },
      "separated insert-field:" ORDERS_2,
      "0-93 94-187" },
    { "aiven-batch-comma.http", { 0 }, "none", "" },
    { "aiven-batch-envelope.http",
      { .envelope = "/rows" },
      "envelope insert-field:" ORDERS_2,
      "9-102 103-196" },
    { "aiven-batch-envelope.http",
      { .envelope = "/rows", .shape = SHAPE_ENVELOPE },
      "envelope insert-field:" ORDERS_2,
      "9-102 103-196" },
    { "aiven-batch-envelope.http",
      { .shape = SHAPE_SEPARATED, .prefix = "{\"rows\":[", .suffix = "]}", .separator = "," },
      "separated insert-field:" ORDERS_2,
      "9-102 103-196" },
    { "lenses-loop-trailing-comma.http",
      { .envelope = "/data", TPO_SHORT },
      "envelope configured:" ORDERS_3,
      "12-88 92-168 172-248" },
    { "dapr-bulk.http", { 0 }, "envelope dapr-bulk:" ORDERS_3, "12-482 483-953 954-1424" },
    { "dapr-bulk.http",
      { .envelope = "/entries" },
      "envelope dapr-bulk:" ORDERS_3,
      "12-482 483-953 954-1424" },
    { "newrelic-envelope-gzip.http",
      { 0 },
      "envelope new-relic: orders/0/12 orders/0/13",
      "108-292 293-477" },
    { "newrelic-envelope-gzip.http",
      { .envelope = "/0/logs", .shape = SHAPE_ENVELOPE },
      "envelope new-relic: orders/0/12 orders/0/13",
      "108-292 293-477" },
    { "es-bulk-key-ignore.http", { 0 }, "bulk bulk-id:" ORDERS_2, "0-95 95-190" },
    { "es-bulk-key-ignore.http",
      { .id = "bulk-id", .id_format = "{topic}+{partition}+{offset}" },
      "bulk configured:" ORDERS_2,
      "0-95 95-190" },
    { "es-bulk-key-ignore-mixed.http",
      { 0 },
      "bulk bulk-id: Orders.EU/2/5 orders/0/100 Orders.EU/11/9007199254740993",
      "0-99 99-194 194-309" },
    { "es-bulk-external-version.http", { 0 }, "none", "" },
    { "es-bulk-external-version.http",
      { .topic = "const:orders", .partition = "const:3" },
      "bulk insert-field: orders/3/100 orders/3/101",
      "0-125 125-250" },
    { "es-bulk-external-version-smt.http", { 0 }, "bulk insert-field:" ORDERS_2, "0-175 175-350" },
    { "es-bulk-create.http", { 0 }, "bulk bulk-id:" ORDERS_2, "0-131 131-262" },
    { "es-bulk-delete.http",
      { 0 },
      "bulk insert-field: orders/0/100 - orders/0/102",
      "0-175 175-257 257-432" },
    { "es-bulk-delete.http",
      { .topic = "const:orders", .partition = "const:0" },
      "bulk insert-field: orders/0/100 orders/0/101 orders/0/102",
      "0-175 175-257 257-432" },
    { "es-bulk-update.http", { 0 }, "bulk insert-field:" ORDERS_2, "0-269 269-538" },
    { "es-bulk-autogenerated-id.http", { 0 }, "none", "" },
    { "es-bulk-autogenerated-id-smt.http", { 0 }, "bulk insert-field:" ORDERS_2, "0-124 124-248" },
    { "opensearch-bulk-tpo-id.http", { 0 }, "bulk bulk-id:" ORDERS_2, "0-121 121-242" },
    { "opensearch-bulk-sigv4.http", { 0 }, "bulk bulk-id:" ORDERS_2, "0-121 121-242" },
    { "splunk-event-notrack.http", { 0 }, "none", "" },
    { "splunk-ack-poll.http", { 0 }, "none", "" },
    { "thomaskwscott-batch.http", { 0 }, "none", "" },
};

static void test_file(void **state)
{
    const struct file_row *row = *state;
    struct answer answer;
    ask(&row->wish, request_of_file(row->name), &answer);
    assert_string_equal(answer.text, row->expected);
    assert_string_equal(answer.places, row->places);
}

/* ---- shape by shape ------------------------------------------------------------------------------------------ */

#define POST "POST /p HTTP/1.1\r\n"
#define BULK "POST /_bulk HTTP/1.1\r\n"
#define R(o) "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":" #o "}"
#define BAD  "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":-1}"
#define ENTRY(o)                                                                                             \
    "{\"entryId\":\"" #o "\",\"metadata\":{\"__topic\":\"t\",\"__partition\":\"0\",\"__offset\":\"" #o "\"}" \
    "}"

static const struct row {
    const char *name;
    struct wish wish;
    const char *head, *body;
    const char *expected;
} rows[] = {
    { "an array in white space",
      { 0 },
      POST,
      " [ " R(1) " ,\r\n" R(2) "\t]\n",
      "json-array insert-field: t/0/1 t/0/2" },
    { "a comma behind the last element",
      { 0 },
      POST,
      "[" R(1) "," R(2) " , ]",
      "json-array insert-field: t/0/1 t/0/2" },
    { "two commas behind the last are no array", { 0 }, POST, "[" R(1) ",,]", "none" },
    { "a comma alone is no array", { 0 }, POST, "[,]", "none" },
    { "a comma before the first is no array", { 0 }, POST, "[," R(1) "]", "none" },
    { "no comma between is no array", { 0 }, POST, "[" R(1) R(2) "]", "none" },
    { "an array that is cut has none", { 0 }, POST, "[" R(1) "," R(2), "none" },
    { "an array with bytes behind has none", { 0 }, POST, "[" R(1) "]x", "none" },
    { "an element that is no JSON spoils all", { 0 }, POST, "[" R(1) ",{\"a\":}]", "none" },
    { "an empty array has none", { 0 }, POST, "[]", "none" },
    { "elements without coordinates have a place",
      { 0 },
      POST,
      "[1," R(1) ",{},[" R(2) "],\"x\"]",
      "json-array insert-field: - t/0/1 - - -" },
    { "elements with bad coordinates have a place",
      { 0 },
      POST,
      "[" BAD "," R(1) "]",
      "json-array insert-field: - t/0/1" },
    { "an array of none is unkeyed", { 0 }, POST, "[1,2,{\"a\":3}]", "none" },
    { "one in an array is no single record", { .shape = SHAPE_SINGLE }, POST, "[" R(1) "]", "none" },
    { "pointers with an index do not look into inner arrays",
      { .topic = "json:/0", .partition = "json:/1", .offset = "json:/2" },
      POST,
      "[[\"t\",1,2]]",
      "none" },
    { "a batch whose headers say it all is one record",
      { 0 },
      POST "x-kafka-topic: orders\r\nx-kafka-partition: 1\r\nx-kafka-offset: 2\r\n",
      "[" R(1) "," R(2) "]",
      "single x-kafka-headers: orders/1/2" },
    { "a batch with a repeated header has none",
      { 0 },
      POST "x-kafka-topic: orders\r\nx-kafka-partition: 1\r\nx-kafka-offset: 2\r\nx-kafka-offset: 3\r\n",
      "[" R(1) "," R(2) "]",
      "none" },
    { "the topic may stand in a header, the rest in each element",
      { .partition = "json:/p", .offset = "json:/o" },
      POST "x-kafka-topic: t\r\n",
      "[{\"p\":1,\"o\":2},{\"p\":1,\"o\":3}]",
      "json-array x-kafka-headers: t/1/2 t/1/3" },
    { "constants fill what elements lack",
      { .topic = "const:t", .partition = "json:/p,const:7" },
      POST,
      "[{\"p\":1,\"__offset\":2},{\"__offset\":3}]",
      "json-array insert-field: t/1/2 t/7/3" },
    { "a coded body of an unknown coding is not looked into",
      { 0 },
      POST "Content-Encoding: br\r\n",
      "[" R(1) "]",
      "none" },
    { "two codings are none that can be opened",
      { 0 },
      POST "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
      "[" R(1) "]",
      "none" },
    { "a body that is no gzip is not looked into",
      { 0 },
      POST "Content-Encoding: gzip\r\n",
      "[" R(1) "]",
      "none" },

    { "lines without the last line end", { 0 }, POST, R(1) "\n" R(2), "ndjson insert-field: t/0/1 t/0/2" },
    { "blank lines between",
      { 0 },
      POST,
      "\n" R(1) "\r\n\r\n \n" R(2) "\r\n\n",
      "ndjson insert-field: t/0/1 t/0/2" },
    { "objects end to end", { 0 }, POST, R(1) R(2) "\n" R(3), "concat insert-field: t/0/1 t/0/2 t/0/3" },
    { "a line that is cut spoils all", { 0 }, POST, R(1) "\n{\"__topic\":\"t\"", "none" },
    { "a line that is no JSON spoils all", { 0 }, POST, R(1) "\nhello\n", "none" },
    { "scalars on lines of their own have a place",
      { 0 },
      POST,
      R(1) "\n17\n" R(2),
      "ndjson insert-field: t/0/1 - t/0/2" },
    { "scalars without lines spoil all", { 0 }, POST, R(1) "17" R(2), "none" },
    { "lines may begin with a scalar when they are asked for",
      { .shape = SHAPE_NDJSON },
      POST,
      "17\n" R(1),
      "ndjson insert-field: - t/0/1" },
    { "asked for lines do not hold two values", { .shape = SHAPE_NDJSON }, POST, R(1) R(2), "none" },
    { "asked for lines do not hold a value that runs over them",
      { .shape = SHAPE_NDJSON },
      POST,
      R(1) "\n{\n}",
      "none" },
    { "values may run over lines",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\n\"__partition\":0,\n\"__offset\":1}\n" R(2),
      "ndjson insert-field: t/0/1 t/0/2" },
    { "one value in many lines is one record", { 0 }, POST, "\n" R(1) "\n", "single insert-field: t/0/1" },
    { "objects after a statement on the same line",
      { 0 },
      POST,
      "insert into t settings x=1 format JSONEachRow " R(1) R(2),
      "concat insert-field: t/0/1 t/0/2" },
    { "a statement of another format is none", { 0 }, POST, "INSERT INTO t FORMAT CSV\n" R(1), "none" },

    { "a separator inside of a string is text",
      { .shape = SHAPE_SEPARATED, .separator = "|" },
      POST,
      "{\"__topic\":\"t\",\"a\":\"|\\\"|\",\"__partition\":0,\"__offset\":1}|" R(2),
      "separated insert-field: t/0/1 t/0/2" },
    { "white space around separated objects",
      { .shape = SHAPE_SEPARATED, .separator = " | " },
      POST,
      " " R(1) "  | " R(2) " ",
      "separated insert-field: t/0/1 t/0/2" },
    { "separated texts have a place",
      { .shape = SHAPE_SEPARATED, .separator = ";" },
      POST,
      "a;" R(1) ";;b;",
      "separated insert-field: - t/0/1 - -" },
    { "a separated object that is cut spoils all",
      { .shape = SHAPE_SEPARATED, .separator = ";" },
      POST,
      R(1) ";{\"a\":",
      "none" },
    { "bytes behind a separated object spoil all",
      { .shape = SHAPE_SEPARATED, .separator = ";" },
      POST,
      R(1) "x;" R(2),
      "none" },
    { "a missing prefix spoils all",
      { .shape = SHAPE_SEPARATED, .separator = ",", .prefix = "<" },
      POST,
      R(1) "," R(2),
      "none" },
    { "a missing suffix spoils all",
      { .shape = SHAPE_SEPARATED, .separator = ",", .suffix = ">" },
      POST,
      R(1) "," R(2),
      "none" },
    { "prefix and suffix may not overlap",
      { .shape = SHAPE_SEPARATED, .prefix = "aa", .suffix = "aa" },
      POST,
      "aaa",
      "none" },

    { "an envelope deep inside",
      { .envelope = "/a/1/r~1s" },
      POST,
      "{\"x\":[1],\"a\":[0,{\"r/s\":[" R(1) ",]},2],\"y\":{}} ",
      "envelope insert-field: t/0/1" },
    { "an envelope whose name has escapes",
      { .envelope = "/rows" },
      POST,
      "{\"\\u0072ows\":[" R(1) "]}",
      "envelope insert-field: t/0/1" },
    { "J-01 an envelope of which there are two is none",
      { .envelope = "/rows", .shape = SHAPE_ENVELOPE },
      POST,
      "{\"rows\":[" R(1) "],\"rows\":[" R(2) "]}",
      "none" },
    { "J-01 a way to the envelope that stands twice is none",
      { .envelope = "/a/rows", .shape = SHAPE_ENVELOPE },
      POST,
      "{\"a\":{\"rows\":[" R(1) "]},\"a\":{}}",
      "none" },
    { "an envelope that is no array is none",
      { .envelope = "/rows", .shape = SHAPE_ENVELOPE },
      POST,
      "{\"rows\":{\"a\":" R(1) "}}",
      "none" },
    { "an envelope that is cut has none",
      { .envelope = "/rows", .shape = SHAPE_ENVELOPE },
      POST,
      "{\"rows\":[" R(1) "]",
      "none" },
    { "an envelope with bytes behind has none",
      { .envelope = "/rows", .shape = SHAPE_ENVELOPE },
      POST,
      "{\"rows\":[" R(1) "]}}",
      "none" },
    { "without the envelope another shape is found",
      { .envelope = "/rows" },
      POST,
      R(1),
      "single insert-field: t/0/1" },
    { "without the envelope an array is found",
      { .envelope = "/rows" },
      POST,
      "[" R(1) "]",
      "json-array insert-field: t/0/1" },
    { "entries of another kind are no Dapr",
      { 0 },
      POST,
      "{\"entries\":[{\"metadata\":{\"__topic\":\"t\",\"__partition\":\"0\",\"__offset\":\"1\"}}]}",
      "none" },
    { "entries of Dapr",
      { 0 },
      POST,
      "{\"entries\":[" ENTRY(1) "," ENTRY(2) "]}",
      "envelope dapr-bulk: t/0/1 t/0/2" },
    { "entries beside coordinates leave a single record",
      { 0 },
      POST,
      "{\"entries\":[1],\"__topic\":\"t\",\"__partition\":0,\"__offset\":1}",
      "single insert-field: t/0/1" },
    { "several New Relic envelopes are not taken apart",
      { 0 },
      POST,
      "[{\"logs\":[]},{\"logs\":[]}]",
      "none" },

    { "an action of another name spoils all",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"t+0+1\"}}\n{}\n{\"upsert\":{}}\n{}\n",
      "none" },
    { "an action with two members spoils all",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"t+0+1\"},\"create\":{}}\n{}\n",
      "none" },
    { "an action without its source spoils all", { 0 }, BULK, "{\"index\":{\"_id\":\"t+0+1\"}}\n", "none" },
    { "a source without its line end spoils all",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"t+0+1\"}}\n{}",
      "none" },
    { "a last action without its line end spoils all",
      { 0 },
      BULK,
      "{\"delete\":{\"_id\":\"t+0+1\"}}\n{\"delete\":{}}",
      "none" },
    { "a source over two lines spoils all", { 0 }, BULK, "{\"index\":{\"_id\":\"t+0+1\"}}\n{\n}\n", "none" },
    { "a source that is an array spoils all", { 0 }, BULK, "{\"index\":{\"_id\":\"t+0+1\"}}\n[]\n", "none" },
    { "an action that is no object spoils all", { 0 }, BULK, "{\"index\":1}\n{}\n", "none" },
    { "blank lines between actions are passed over",
      { 0 },
      BULK,
      "\n{\"index\":{\"_id\":\"t+0+1\"}}\r\n{}\r\n\n{\"delete\":{\"_id\":\"t+0+2\"}}\n \n",
      "bulk bulk-id: t/0/1 t/0/2" },
    { "an id is split from the right", { 0 }, BULK, "{\"delete\":{\"_id\":\"t+0+1+2\"}}\n", "none" },
    { "an id that could be no topic says nothing",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"a b+0+2\"}}\n" R(1) "\n",
      "bulk insert-field: t/0/1" },
    { "an id of another form is none",
      { 0 },
      BULK,
      "{\"delete\":{\"_id\":\"t+0+x\"}}\n{\"delete\":{\"_id\":\"t+0+1\"}}\n",
      "bulk bulk-id: - t/0/1" },
    { "an id that is a number is none",
      { 0 },
      BULK,
      "{\"delete\":{\"_id\":1}}\n{\"delete\":{\"_id\":\"t+0+1\"}}\n",
      "bulk bulk-id: - t/0/1" },
    { "J-01 an id that stands twice is none",
      { 0 },
      BULK,
      "{\"delete\":{\"_id\":\"t+0+1\",\"_id\":\"t+0+1\"}}\n{\"delete\":{\"_id\":\"t+0+1\"}}\n",
      "bulk bulk-id: - t/0/1" },
    { "a format of the operator's own",
      { .id = "bulk-id", .id_format = "{topic}:{partition}:{offset}" },
      BULK,
      "{\"delete\":{\"_id\":\"t:0:1\"}}\n{\"delete\":{\"_id\":\"t+0+1\"}}\n",
      "bulk configured: t/0/1 -" },
    { "id and source that agree",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"t+0+1\"}}\n" R(1) "\n",
      "bulk insert-field: t/0/1" },
    { "id and source that disagree mean none",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"t+0+2\"}}\n" R(1) "\n"
                                               "{\"index\":{}}\n" R(3) "\n",
      "bulk insert-field: - t/0/3" },
    { "version and source that disagree mean none",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"k\",\"version\":2,\"version_type\":\"external\"}}\n" R(1) "\n"
                                                                                       "{\"index\":{}}\n" R(
                                                                                           3) "\n",
      "bulk insert-field: - t/0/3" },
    { "an internal version says nothing",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"k\",\"version\":2}}\n" R(
          1) "\n"
             "{\"index\":{\"version\":2,\"version_type\":\"internal\"}}\n" R(3) "\n",
      "bulk insert-field: t/0/1 t/0/3" },
    { "a version that is no number means none",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"k\",\"version\":1.5,\"version_type\":\"external_gte\"}}\n" R(
          1) "\n"
             "{\"index\":{}}\n" R(3) "\n",
      "bulk insert-field: - t/0/3" },
    { "a version is an offset beside topic and partition of the source",
      { 0 },
      BULK,
      "{\"index\":{\"_id\":\"k\",\"version\":\"8\",\"version_type\":\"external_gte\"}}\n{\"__topic\":\"t\","
      "\"__partition\":0}\n",
      "bulk insert-field: t/0/8" },
    { "an update looks into its document",
      { .topic = "json:/t", .partition = "json:/p", .offset = "json:/o" },
      BULK,
      "{\"update\":{\"_id\":\"k\"}}\n{\"doc\":{\"t\":\"a\",\"p\":1,\"o\":2}}\n{\"update\":{\"_id\":\"k\"}}\n{"
      "\"t\":\"a\",\"p\":1,\"o\":3}\n",
      "bulk configured: a/1/2 -" },
    { "document and upsert that disagree mean none",
      { 0 },
      BULK,
      "{\"update\":{}}\n{\"doc\":" R(1) ",\"upsert\":" R(2) "}\n{\"update\":{}}\n{\"doc\":" R(
          3) ",\"upsert\":{\"a\":1}}\n",
      "bulk insert-field: - t/0/3" },
    { "a bulk request for one index",
      { 0 },
      "POST /orders/_bulk HTTP/1.1\r\n",
      "{\"create\":{}}\n" R(1) "\n",
      "bulk insert-field: t/0/1" },
    { "another path is no bulk request",
      { 0 },
      "POST /_bulk/x HTTP/1.1\r\n",
      "{\"create\":{}}\n" R(1) "\n",
      "none" },
    { "a slash behind the path changes nothing",
      { 0 },
      "POST /orders/_bulk/ HTTP/1.1\r\n",
      "{\"create\":{}}\n" R(1) "\n",
      "bulk insert-field: t/0/1" },
    { "lines of which none is an action are what they were on any path",
      { 0 },
      POST,
      "{\"create\":1}\n" R(1) "\n{\"index\":{}}\n",
      "ndjson insert-field: - t/0/1 -" },
    { "objects that stand on one line with an action are no bulk request",
      { 0 },
      POST,
      "{\"create\":{}}" R(1) "\n",
      "concat insert-field: - t/0/1" },
    { "another path is one when the operator says so",
      { .shape = SHAPE_BULK },
      "POST /es HTTP/1.1\r\n",
      "{\"create\":{}}\n" R(1) "\n",
      "bulk insert-field: t/0/1" },

    { "a token is a range when the rows say nothing",
      { 0 },
      "POST /?insert_deduplication_token=my-topic-3-7-9 HTTP/1.1\r\n",
      "\x01\x02rowbinary",
      "opaque clickhouse-token: my-topic/3/7" },
    { "a token is a range when rows are JSON without coordinates",
      { 0 },
      "POST /?insert_deduplication_token=t-3-7-9 HTTP/1.1\r\n",
      "{\"a\":1}{\"a\":2}",
      "opaque clickhouse-token: t/3/7" },
    { "a token of another form is none",
      { 0 },
      "POST /?insert_deduplication_token=t-3-9-7 HTTP/1.1\r\n",
      "x",
      "none" },
    { "a token without topic is none",
      { 0 },
      "POST /?insert_deduplication_token=3-7-9 HTTP/1.1\r\n",
      "x",
      "none" },
    { "a token that stands twice is none",
      { 0 },
      "POST /?insert_deduplication_token=t-3-7-9&insert_deduplication_token=t-3-7-9 HTTP/1.1\r\n",
      "x",
      "none" },
    { "one key for the whole request",
      { .shape = SHAPE_OPAQUE, .topic = "const:t", .partition = "query:p", .offset = "header:o" },
      "POST /?p=3 HTTP/1.1\r\no: 8\r\n",
      "[" R(1) "]",
      "opaque configured: t/3/8" },
    { "a whole request is not looked into", { .shape = SHAPE_OPAQUE }, POST, R(1), "none" },
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct answer answer;
    ask(&row->wish, request_of_texts(row->head, row->body), &answer);
    assert_string_equal(answer.text, row->expected);
    assert_false(answer.is_too_many);
}

/* ---- ranges -------------------------------------------------------------------------------------------------- */

struct bench {
    struct settings settings;
    struct identifier *identifier;
    struct identified identified;
};

static void bench_read(struct bench *bench, const struct wish *wish, struct request *request)
{
    settings_of(wish, &bench->settings);
    bench->identifier = identifier_new(&bench->settings);
    assert_non_null(bench->identifier);
    assert_true(identify(bench->identifier, request, &bench->identified));
}

static void bench_release(struct bench *bench)
{
    identified_deinit(&bench->identified);
    identifier_free(bench->identifier);
    settings_release(&bench->settings);
}

static void test_a_token_stands_for_each_offset_of_its_range(void **state)
{
    static const struct wish wish = { .records_max = 3 };
    struct bench bench;
    struct request *request =
        request_of_texts("POST /?insert_deduplication_token=a-b-3-7-9 HTTP/1.1\r\n", "\x01");
    (void)state;
    bench_read(&bench, &wish, request);
    assert_int_equal(bench.identified.record_count, 3);
    assert_int_equal(bench.identified.site_count, 1);
    assert_true(bench.identified.is_uncuttable);
    for (size_t i = 0; i < 3; i++) {
        const struct record *record = &bench.identified.records[i];
        assert_true(slice_equals_text(record->key.topic, "a-b"));
        assert_int_equal(record->key.partition, 3);
        assert_int_equal(record->key.offset, 7 + i);
        assert_int_equal(record->mark, MARK_NONE);
    }
    bench_release(&bench);
    request_release(request);
}

static void test_a_range_wider_than_the_setting_is_too_many(void **state)
{
    static const struct wish wish = { .records_max = 3 };
    struct answer answer;
    (void)state;
    ask(&wish, request_of_texts("POST /?insert_deduplication_token=t-3-7-10 HTTP/1.1\r\n", "x"), &answer);
    assert_true(answer.is_too_many);
    ask(&wish,
        request_of_texts("POST /?insert_deduplication_token=t-3-0-9223372036854775807 HTTP/1.1\r\n", "x"),
        &answer);
    assert_true(answer.is_too_many);
}

static void test_more_elements_than_the_setting_are_too_many_once_one_is_a_record(void **state)
{
    static const struct wish wish = { .records_max = 2 };
    struct answer answer;
    (void)state;
    ask(&wish, request_of_texts(POST, "[" R(1) "," R(2) "]"), &answer);
    assert_false(answer.is_too_many);
    ask(&wish, request_of_texts(POST, "[" R(1) "," R(2) "," R(3) "]"), &answer);
    assert_true(answer.is_too_many);
    ask(&wish, request_of_texts(POST, "[" R(1) ",2,3]"), &answer);
    assert_true(answer.is_too_many);
    ask(&wish, request_of_texts(POST, "[1,2,3," R(1) "]"), &answer);
    assert_true(answer.is_too_many);
    ask(&wish, request_of_texts(POST, "[1,2,3]"), &answer);
    assert_false(answer.is_too_many);
    assert_string_equal(answer.text, "none");
}

/* ---- what bulk answers repeat -------------------------------------------------------------------------------- */

static void test_actions_say_what_an_answer_repeats(void **state)
{
    static const struct wish wish;
    struct bench bench;
    struct request *request =
        request_of_texts("POST /from%2Durl/_bulk HTTP/1.1\r\n",
                         "{\"index\":{\"_index\":\"a\\u0062\",\"_id\":\"k\\\"1\",\"version\":7,\"version_"
                         "type\":\"external\"}}\n" R(7) "\n"
                                                        "{\"update\":{\"version\":\"8\"}}\n{\"doc\":{}}\n{"
                                                        "\"delete\":{\"_id\":\"x\"}}\n{\"create\":{}}\n{}\n");
    (void)state;
    bench_read(&bench, &wish, request);
    const struct bulk_action *actions = bench.identified.actions;
    assert_int_equal(bench.identified.site_count, 4);
    assert_int_equal(actions[0].kind, BULK_INDEX);
    assert_true(slice_equals_text(actions[0].index, "a\\u0062"));
    assert_true(slice_equals_text(actions[0].id, "k\\\"1"));
    assert_true(slice_equals_text(actions[0].version, "7"));
    assert_true(actions[0].is_version_external);
    assert_int_equal(actions[1].kind, BULK_UPDATE);
    assert_true(slice_equals_text(actions[1].index, "from%2Durl"));
    assert_int_equal(actions[1].id.byte_count, 0);
    assert_true(slice_equals_text(actions[1].version, "8"));
    assert_false(actions[1].is_version_external);
    assert_int_equal(actions[2].kind, BULK_DELETE);
    assert_int_equal(actions[2].version.byte_count, 0);
    assert_int_equal(actions[3].kind, BULK_CREATE);
    bench_release(&bench);
    request_release(request);
}

/* ---- signatures, marks, sizes -------------------------------------------------------------------------------- */

static void test_a_signed_request_is_uncuttable(void **state)
{
    static const char *const heads[] = { "Authorization: AWS4-HMAC-SHA256 x\r\n",
                                         "webhook-signature: v1\r\n",
                                         "Digest: x\r\n",
                                         "Content-Digest: x\r\n",
                                         "Content-MD5: x\r\n",
                                         "x-amz-content-sha256: x\r\n",
                                         "Signature: x\r\n" };
    static const struct wish wish;
    struct answer answer;
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char head[200];
        snprintf(head, sizeof head, POST "%s", heads[i]);
        ask(&wish, request_of_texts(head, "[" R(1) "]"), &answer);
        assert_true(answer.is_signed);
        assert_true(answer.is_uncuttable);
    }
    ask(&wish, request_of_texts(POST "Authorization: Bearer x\r\n", "[" R(1) "]"), &answer);
    assert_false(answer.is_signed);
    assert_false(answer.is_uncuttable);
}

static void test_a_bulk_answer_that_is_filtered_cannot_be_put_together_again(void **state)
{
    static const struct wish wish;
    struct answer answer;
    (void)state;
    ask(&wish, request_of_texts("POST /_bulk?filter_path=items HTTP/1.1\r\n", "{\"create\":{}}\n" R(1) "\n"),
        &answer);
    assert_string_equal(answer.text, "bulk insert-field: t/0/1");
    assert_true(answer.is_uncuttable);
    assert_false(answer.is_signed);
}

/* A request whose body is packed once, while FIELDS say how. */
static struct request *packed_request(const char *fields, const char *body)
{
    char head[300];
    struct slice part = slice_of_text(body);
    snprintf(head, sizeof head, POST "%s", fields);
    struct request *request = request_of_texts(head, "");
    free(request->body);
    assert_int_equal(coding_pack(CODING_GZIP, &part, 1, &request->body, &request->body_bytes), CODING_OK);
    return request;
}

static void test_a_body_is_opened_once_to_a_limit(void **state)
{
    static const struct wish all, small = { .body_bytes_max = 20 };
    struct answer answer;
    (void)state;
    ask(&all, packed_request("Content-Encoding: GZip\r\n", "[" R(1) "," R(2) "]"), &answer);
    assert_string_equal(answer.text, "json-array insert-field: t/0/1 t/0/2");
    ask(&all, packed_request("Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", R(1)), &answer);
    assert_string_equal(answer.text, "single insert-field: t/0/1");
    ask(&all, packed_request("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", R(1)), &answer);
    assert_string_equal(answer.text, "none");
    ask(&all, packed_request("Content-Encoding: gzip, gzip\r\n", R(1)), &answer);
    assert_string_equal(answer.text, "none");
    ask(&small, packed_request("Content-Encoding: gzip\r\n", R(1)), &answer);
    assert_string_equal(answer.text, "none");
}

static record_mark mark_of(const char *head, const char *body, size_t record)
{
    static const struct wish wish;
    struct bench bench;
    struct request *request = request_of_texts(head, body);
    bench_read(&bench, &wish, request);
    assert_true(record < bench.identified.record_count);
    record_mark mark = bench.identified.records[record].mark;
    bench_release(&bench);
    request_release(request);
    return mark;
}

static void test_a_record_has_the_same_mark_in_every_shape(void **state)
{
#define A1      "{\"a\":1," FIELDS1 "}"
#define FIELDS1 "\"__topic\":\"t\",\"__partition\":0,\"__offset\":1"
    record_mark mark = mark_of(POST, A1, 0);
    (void)state;
    assert_int_not_equal(mark, MARK_NONE);
    assert_int_equal(mark, mark_of(POST, "[" R(5) ", " A1 "]", 1));
    assert_int_equal(mark, mark_of(POST, R(5) "\n" A1 "\n", 1));
    assert_int_equal(mark, mark_of(BULK, "{\"index\":{\"_id\":\"k\"}}\n" A1 "\n", 0));
    assert_int_not_equal(mark, mark_of(POST, "[" R(5) ",{\"a\":2," FIELDS1 "}]", 1));
    assert_int_equal(
        mark_of(BULK, "{\"update\":{}}\n{\"doc\":" A1 ",\"upsert\":" A1 "}\n", 0),
        mark_of(BULK, "{\"update\":{}}\n{\"doc\":{" FIELDS1 ",\"a\":1},\"upsert\":{\"a\":1," FIELDS1 "}}\n",
                0));
}

/* COUNT elements in TOPIC_COUNT topics, each second one a repeat; all of the same offset when IS_ONE_OFFSET. */
static char *many_of(size_t count, size_t topic_count, bool is_one_offset)
{
    size_t room = count * 64 + 3, at = 0;
    char *body = malloc(room);
    assert_non_null(body);
    body[at++] = '[';
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(body + at, room - at,
                               "%s{\"__topic\":\"t%zu\",\"__partition\":1,\"__offset\":%zu}",
                               i > 0 ? "," : "", (i / 2) % topic_count, is_one_offset ? 7 : i / 2);
    strcpy(body + at, "]");
    return body;
}

/* A search through all earlier records or topics would take minutes. */
static void test_100000_elements_are_told_apart_by_tables(void **state)
{
    static const struct wish wish;
    static const size_t topic_counts[] = { 1, 7, 50000, 50000 };
    (void)state;
    for (size_t i = 0; i < sizeof topic_counts / sizeof topic_counts[0]; i++) {
        struct bench bench;
        char *body = many_of(100000, topic_counts[i], i == 3);
        char *text;
        assert_true(asprintf(&text, POST "Host: t\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body) > 0);
        struct request *request = calloc(1, sizeof *request);
        enum finish why;
        assert_non_null(request);
        assert_int_equal(http1_head(text, strlen(text), 1 << 16, 1 << 24, &request->head, &why), HTTP1_DONE);
        request->bytes = text;
        request->body = body;
        request->body_bytes = strlen(body);
        bench_read(&bench, &wish, request);
        assert_int_equal(bench.identified.site_count, 100000);
        assert_int_equal(bench.identified.record_count, 50000);
        for (size_t site = 0; site < 100000; site++) {
            assert_int_equal(bench.identified.sites[site].record, site / 2);
            assert_int_equal(bench.identified.sites[site].is_repeat, site % 2);
        }
        assert_int_equal(bench.identified.records[49999].key.offset, i == 3 ? 7 : 49999);
        bench_release(&bench);
        request_release(request);
    }
}

/* Without a timestamp the bytes are the mark.  An entry's id is its place in the request, another one in each batch. */
#define DAPR_ENTRY(id, event)                                                                                \
    "{\"entryId\":\"" id "\",\"event\":" event ","                                                           \
    "\"metadata\":{\"__offset\":\"2\",\"__partition\":\"1\",\"__topic\":\"t\"}}"

static void test_an_entry_of_dapr_is_the_same_record_at_any_place(void **state)
{
    static const struct wish wish;
    struct answer answer;
    (void)state;
    ask(&wish, request_of_texts(POST, "{\"entries\":[" DAPR_ENTRY("0", "1") "," DAPR_ENTRY("1", "1") "]}"),
        &answer);
    assert_string_equal(answer.text, "envelope dapr-bulk: t/1/2 =t/1/2");
    assert_false(answer.is_contradictory);
    ask(&wish, request_of_texts(POST, "{\"entries\":[" DAPR_ENTRY("0", "1") "," DAPR_ENTRY("1", "2") "]}"),
        &answer);
    assert_true(answer.is_contradictory);
}

/* A body that only began like an envelope is read anew, and what was seen in it until then counts for nothing. */
#define ROW(offset, content)                                                                                 \
    "{\"__topic\":\"t\",\"__partition\":1,\"__offset\":" offset ",\"content\":" content "}"
#define ROWS(offset, first, second)                                                                          \
    "{\"__topic\":\"t\",\"__partition\":1,\"__offset\":" offset                                              \
    ",\"rows\":[" ROW("7", first) "," ROW("7", second) "]}"

static void test_a_shape_that_was_given_up_leaves_no_contradiction(void **state)
{
    static const struct wish wish = { .envelope = "/rows" };
    struct answer answer;
    (void)state;
    ask(&wish, request_of_texts(POST, ROWS("1", "1", "2")), &answer);
    assert_string_equal(answer.text, "envelope insert-field: t/1/7 =t/1/7");
    assert_true(answer.is_contradictory);
    ask(&wish, request_of_texts(POST, ROWS("1", "1", "2") "\n" ROWS("2", "3", "4") "\n"), &answer);
    assert_string_equal(answer.text, "ndjson insert-field: t/1/1 t/1/2");
    assert_false(answer.is_contradictory);
}

/* ---- main ---------------------------------------------------------------------------------------------------- */

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_stands_for_each_offset_of_its_range),
        cmocka_unit_test(test_a_range_wider_than_the_setting_is_too_many),
        cmocka_unit_test(test_more_elements_than_the_setting_are_too_many_once_one_is_a_record),
        cmocka_unit_test(test_actions_say_what_an_answer_repeats),
        cmocka_unit_test(test_a_signed_request_is_uncuttable),
        cmocka_unit_test(test_a_bulk_answer_that_is_filtered_cannot_be_put_together_again),
        cmocka_unit_test(test_a_body_is_opened_once_to_a_limit),
        cmocka_unit_test(test_a_record_has_the_same_mark_in_every_shape),
        cmocka_unit_test(test_an_entry_of_dapr_is_the_same_record_at_any_place),
        cmocka_unit_test(test_a_shape_that_was_given_up_leaves_no_contradiction),
        cmocka_unit_test(test_100000_elements_are_told_apart_by_tables),
    };
    ROW_TESTS(row_tests, rows, test_row);
    ROW_TESTS(file_tests, file_rows, test_file);
    int failed_count = cmocka_run_group_tests_name("raw requests", file_tests, NULL, NULL);
    failed_count += cmocka_run_group_tests_name("elements", row_tests, NULL, NULL);
    return failed_count + cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}
