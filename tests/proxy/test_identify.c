/*
 * test_identify.c - requests that are one record: raw requests of connectors, and one row for each rule.
 */
#include "identify.h"

#include "row_tests.h"
#include "wish.h"

struct answer {
    char text[400];      /* "rule topic/partition/offset", or "none" */
    char stripped[2000]; /* the body without the coordinate fields */
    char headers[200];   /* fields to strip, joined by spaces */
    record_mark mark;
};

static void answer_write(struct answer *answer, const struct request *request,
                         const struct identified *identified)
{
    memset(answer, 0, sizeof *answer);
    strcpy(answer->text, "none");
    if (identified->record_count > 0) {
        const struct record_key *key = &identified->records[0].key;
        assert_int_equal(identified->record_count, 1);
        assert_int_equal(identified->sites[0].whole.begin, 0);
        assert_int_equal(identified->sites[0].whole.end, request->body_bytes);
        snprintf(answer->text, sizeof answer->text, "%s %.*s/%ld/%lld", identified->rule,
                 (int)key->topic.byte_count, key->topic.at, (long)key->partition, (long long)key->offset);
        answer->mark = identified->records[0].mark;
    }
    size_t at = 0, written = 0;
    for (size_t i = 0; i <= identified->strip_range_count; i++) {
        bool is_last = i == identified->strip_range_count;
        size_t end = is_last ? request->body_bytes : identified->strip_ranges[i].begin;
        assert_true(at <= end && written + end - at < sizeof answer->stripped);
        if (end > at)
            memcpy(answer->stripped + written, request->body + at, end - at);
        written += end - at;
        at = is_last ? end : identified->strip_ranges[i].end;
    }
    for (size_t i = 0; i < identified->strip_header_count; i++) {
        strcat(answer->headers, i > 0 ? " " : "");
        strcat(answer->headers, identified->strip_headers[i]);
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
    answer_write(answer, request, &identified);
    identified_deinit(&identified);
    identifier_free(identifier);
    settings_release(&settings);
    request_release(request);
}

/* ---- raw requests of connectors ------------------------------------------------------------------------------ */

struct file_row {
    const char *name; /* of the file */
    const char *expected;
};

static const struct file_row file_rows[] = {
    { "aiven-single-json.http", "insert-field orders/0/100" },
    { "aiven-single-string.http", "none" },
    { "confluent-v2-headers.http", "x-kafka-headers orders/0/100" },
    { "confluent-v2-delete.http", "none" },
    { "redpanda-headers.http", "x-kafka-headers orders/0/100" },
    { "dapr-pubsub.http", "dapr-headers orders/0/100" },
    { "dapr-binding-chunked.http", "dapr-headers orders/0/100" },
    { "knative-kafkasource.http", "knative-headers orders/0/100" },
    { "knative-broker-event.http", "none" },
    { "lenses-headers-repeated.http", "none" },
    { "debezium-signed.http", "none" },
    { "splunk-config-check.http", "none" },
    { "splunk-ack-poll.http", "none" },
    { "splunk-health.http", "none" },
    { "splunk-raw.http", "none" },
    { "splunk-raw-breaker.http", "none" },
    { "thomaskwscott-map.http", "none" },
    { "thomaskwscott-string.http", "none" },
    { "thomaskwscott-batch.http", "none" },
    { "vector-health.http", "none" },
};

static void test_file(void **state)
{
    static const struct wish wish;
    const struct file_row *row = *state;
    struct answer answer;
    ask(&wish, request_of_file(row->name), &answer);
    assert_string_equal(answer.text, row->expected);
}

static void test_knative_broker_needs_a_configured_topic(void **state)
{
    static const struct wish wish = { .topic = "const:orders" };
    struct answer answer;
    (void)state;
    ask(&wish, request_of_file("knative-broker-event.http"), &answer);
    assert_string_equal(answer.text, "knative-headers orders/3/512");
}

static void test_knative_composites_are_read_from_ce_id(void **state)
{
    static const struct wish wish = { .id = "header:ce-id",
                                      .id_format = "partition:{partition}/offset:{offset}" };
    struct answer answer;
    (void)state;
    ask(&wish, request_of_file("knative-kafkasource.http"), &answer);
    assert_string_equal(answer.text, "knative-headers orders/0/100");
    assert_string_equal(answer.headers, "");
}

/* ---- one row for each rule ----------------------------------------------------------------------------------- */

#define POST    "POST /p HTTP/1.1\r\n"
#define X_KAFKA "x-kafka-topic: orders\r\nx-kafka-partition: 1\r\nx-kafka-offset: 2\r\n"
#define DAPR    "__topic: orders\r\n__partition: 1\r\n__offset: 2\r\n"
#define FIELDS  "\"__topic\":\"orders\",\"__partition\":1,\"__offset\":2"
#define CONFIGURED                                                                                           \
    {                                                                                                        \
        .topic = "json:/t", .partition = "json:/p", .offset = "json:/o"                                      \
    }
#define VECTOR_REST "\"source_type\":\"kafka\",\"headers\":{},\"message\":\"{}\",\"message_key\":null"
#define BIT_REST    "\"date\":1.5,\"error\":null,\"key\":null,\"payload\":\"{}\""
#define TPO         "\"topic\":\"orders\",\"partition\":1,\"offset\":2"

struct row {
    const char *name;
    struct wish wish;
    const char *head, *body;
    const char *expected;
    const char *stripped; /* NULL: the body as it came */
    const char *headers;  /* NULL: none */
};

static const struct row rows[] = {
    { "insert-field members are found wherever they stand",
      { 0 },
      POST,
      "{\"__offset\":2, \"a\":1, \"__topic\":\"orders\", \"__partition\":1}",
      "insert-field orders/1/2",
      "{\"a\":1}",
      NULL },
    { "numbers may be strings",
      { 0 },
      POST,
      "{\"__topic\":\"orders\",\"__partition\":\"1\",\"__offset\":\"9223372036854775807\"}",
      "insert-field orders/1/9223372036854775807",
      "{}",
      NULL },
    { "white space around the value is fine",
      { 0 },
      POST,
      " \r\n{" FIELDS "}\n\n",
      "insert-field orders/1/2",
      " \r\n{}\n\n",
      NULL },
    { "a topic with escapes is unescaped",
      { 0 },
      POST,
      "{\"__topic\":\"\\u006frders\",\"__partition\":1,\"__offset\":2}",
      "insert-field orders/1/2",
      "{}",
      NULL },
    { "J-02 an offset above 2^53 is exact",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":9007199254740993}",
      "insert-field t/0/9007199254740993",
      "{}",
      NULL },
    { "J-02 a number beyond 64 bits elsewhere harms nothing",
      { 0 },
      POST,
      "{\"n\":123456789012345678901234567890,\"x\":1e999," FIELDS "}",
      "insert-field orders/1/2",
      "{\"n\":123456789012345678901234567890,\"x\":1e999}",
      NULL },
    { "J-02 an offset of 2^63 is none",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":9223372036854775808}",
      "none",
      NULL,
      NULL },
    { "a partition of 2^31 is none",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":2147483648,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "a fraction is no offset",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":1.0}",
      "none",
      NULL,
      NULL },
    { "an exponent is no offset",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":1e2}",
      "none",
      NULL,
      NULL },
    { "a negative offset is none",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":-1}",
      "none",
      NULL,
      NULL },
    { "a leading zero is no offset",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":\"007\"}",
      "none",
      NULL,
      NULL },
    { "true is no partition",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":true,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "null is no offset",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0,\"__offset\":null}",
      "none",
      NULL,
      NULL },
    { "a topic must be legal",
      { 0 },
      POST,
      "{\"__topic\":\"a b\",\"__partition\":0,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "a topic may not be ..",
      { 0 },
      POST,
      "{\"__topic\":\"..\",\"__partition\":0,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "a topic must be a string",
      { 0 },
      POST,
      "{\"__topic\":12,\"__partition\":0,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "J-04 a topic with NUL is none",
      { 0 },
      POST,
      "{\"__topic\":\"t\\u0000\",\"__partition\":0,\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "J-01 a duplicate of a coordinate means none",
      { 0 },
      POST,
      "{" FIELDS ",\"__offset\":2}",
      "none",
      NULL,
      NULL },
    { "J-01 a duplicate in other letters means none",
      { 0 },
      POST,
      "{" FIELDS ",\"__\\u006fffset\":3}",
      "none",
      NULL,
      NULL },
    { "J-01 a duplicate of the timestamp means none",
      { 0 },
      POST,
      "{" FIELDS ",\"__timestamp\":1,\"__timestamp\":2}",
      "none",
      NULL,
      NULL },
    { "J-01 a duplicate on the path means none",
      { 0 },
      POST,
      "{\"fields\":{\"kafka_topic\":\"t\",\"kafka_partition\":\"0\",\"kafka_offset\":\"1\"},\"fields\":{}}",
      "none",
      NULL,
      NULL },
    { "J-01 a duplicate of another member harms nothing",
      { 0 },
      POST,
      "{\"a\":1,\"a\":2," FIELDS "}",
      "insert-field orders/1/2",
      "{\"a\":1,\"a\":2}",
      NULL },
    { "a set of which one is missing is none",
      { 0 },
      POST,
      "{\"__topic\":\"t\",\"__partition\":0}",
      "none",
      NULL,
      NULL },
    { "two halves of sets are none",
      { 0 },
      POST "x-kafka-topic: t\r\nx-kafka-partition: 0\r\n",
      "{\"__offset\":1}",
      "none",
      NULL,
      NULL },
    { "half a set beside a whole one harms nothing",
      { 0 },
      POST "x-kafka-topic: other\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      "{}",
      NULL },
    { "a body that is no JSON has none", { 0 }, POST, "{" FIELDS ",}", "none", NULL, NULL },
    { "J-09 a byte order mark means none", { 0 }, POST, "\xef\xbb\xbf{" FIELDS "}", "none", NULL, NULL },
    { "an empty body has none", { 0 }, POST, "", "none", NULL, NULL },
    { "a coded body is not looked into",
      { 0 },
      POST "Content-Encoding: gzip\r\n",
      "{" FIELDS "}",
      "none",
      NULL,
      NULL },
    { "an identity coding is none",
      { 0 },
      POST "Content-Encoding: Identity\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      "{}",
      NULL },
    { "PUT holds records",
      { 0 },
      "PUT /p HTTP/1.1\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      "{}",
      NULL },
    { "PATCH holds records",
      { 0 },
      "PATCH /p HTTP/1.1\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      "{}",
      NULL },
    { "DELETE holds records",
      { 0 },
      "DELETE /p HTTP/1.1\r\n" X_KAFKA,
      "",
      "x-kafka-headers orders/1/2",
      NULL,
      "x-kafka-topic x-kafka-partition x-kafka-offset" },
    { "GET holds none", { 0 }, "GET /p HTTP/1.1\r\n" X_KAFKA, "{" FIELDS "}", "none", NULL, NULL },
    { "OPTIONS holds none", { 0 }, "OPTIONS /p HTTP/1.1\r\n" X_KAFKA, "", "none", NULL, NULL },

    { "headers in any case",
      { 0 },
      POST "X-KAFKA-Topic: orders\r\nX-Kafka-Partition: 1\r\nX-Kafka-Offset: 2\r\n",
      "any",
      "x-kafka-headers orders/1/2",
      NULL,
      "x-kafka-topic x-kafka-partition x-kafka-offset" },
    { "headers on a body that is no JSON",
      { 0 },
      POST X_KAFKA,
      "{\"a\":",
      "x-kafka-headers orders/1/2",
      NULL,
      "x-kafka-topic x-kafka-partition x-kafka-offset" },
    { "headers on a coded body",
      { 0 },
      POST X_KAFKA "Content-Encoding: gzip\r\n",
      "\x1f\x8b",
      "x-kafka-headers orders/1/2",
      NULL,
      "x-kafka-topic x-kafka-partition x-kafka-offset" },
    { "a repeated header means none", { 0 }, POST X_KAFKA "X-Kafka-Offset: 2\r\n", "{}", "none", NULL, NULL },
    { "a list in a header is no number",
      { 0 },
      POST "x-kafka-topic: t\r\nx-kafka-partition: 0\r\nx-kafka-offset: 1, 2\r\n",
      "{}",
      "none",
      NULL,
      NULL },
    { "a whole set with one bad value is none even beside a good one",
      { 0 },
      POST "x-kafka-topic: t\r\nx-kafka-partition: 0\r\nx-kafka-offset: -1\r\n",
      "{" FIELDS "}",
      "none",
      NULL,
      NULL },
    { "header and body that agree",
      { 0 },
      POST X_KAFKA,
      "{" FIELDS ",\"a\":1}",
      "x-kafka-headers orders/1/2",
      "{\"a\":1}",
      "x-kafka-topic x-kafka-partition x-kafka-offset" },
    { "header and body that disagree mean none",
      { 0 },
      POST X_KAFKA,
      "{\"__topic\":\"orders\",\"__partition\":1,\"__offset\":3}",
      "none",
      NULL,
      NULL },
    { "two sets of headers that disagree mean none",
      { 0 },
      POST X_KAFKA "__topic: orders\r\n__partition: 1\r\n__offset: 3\r\n",
      "{}",
      "none",
      NULL,
      NULL },
    { "Dapr headers come with a timestamp",
      { 0 },
      POST DAPR "__timestamp: 1700000000000\r\n",
      "{}",
      "dapr-headers orders/1/2",
      NULL,
      "__topic __partition __offset __timestamp" },
    { "the topic of Knative stands behind the last hash",
      { 0 },
      POST "ce-source: /a#b#orders\r\nce-knativekafkapartition: 1\r\nce-knativekafkaoffset: 2\r\n",
      "{}",
      "knative-headers orders/1/2",
      NULL,
      "ce-knativekafkapartition ce-knativekafkaoffset" },

    { "Splunk fields of a single event",
      { 0 },
      POST,
      "{\"event\":\"x\",\"fields\":{\"kafka_offset\":\"2\",\"kafka_partition\":\"1\",\"h\":\"v\","
      "\"kafka_timestamp\":\"17\",\"kafka_topic\":\"orders\"}}",
      "splunk-fields orders/1/2",
      "{\"event\":\"x\",\"fields\":{\"h\":\"v\"}}",
      NULL },
    { "Splunk fields and event that agree",
      { 0 },
      POST,
      "{\"event\":{" FIELDS ",\"a\":1},\"fields\":{\"kafka_offset\":\"2\",\"kafka_partition\":\"1\","
      "\"kafka_topic\":\"orders\"}}",
      "splunk-fields orders/1/2",
      "{\"event\":{\"a\":1},\"fields\":{}}",
      NULL },
    { "Splunk fields and event that disagree mean none",
      { 0 },
      POST,
      "{\"event\":{" FIELDS "},\"fields\":{\"kafka_offset\":\"3\",\"kafka_partition\":\"1\","
      "\"kafka_topic\":\"orders\"}}",
      "none",
      NULL,
      NULL },
    { "the event alone is no default", { 0 }, POST, "{\"event\":{" FIELDS "}}", "none", NULL, NULL },

    { "Vector by its tell-tales",
      { 0 },
      POST,
      "{" VECTOR_REST "," TPO "}",
      "vector orders/1/2",
      "{" VECTOR_REST "}",
      NULL },
    { "Vector needs its source_type",
      { 0 },
      POST,
      "{\"source_type\":\"file\",\"headers\":{},\"message\":\"{}\",\"message_key\":null," TPO "}",
      "none",
      NULL,
      NULL },
    { "Vector needs its message_key",
      { 0 },
      POST,
      "{\"source_type\":\"kafka\",\"headers\":{},\"message\":\"{}\"," TPO "}",
      "none",
      NULL,
      NULL },
    { "Vector needs its headers",
      { 0 },
      POST,
      "{\"source_type\":\"kafka\",\"headers\":[],\"message\":\"{}\",\"message_key\":\"k\"," TPO "}",
      "none",
      NULL,
      NULL },
    { "Fluent Bit by its tell-tales",
      { 0 },
      POST,
      "{" BIT_REST "," TPO "}",
      "fluent-bit orders/1/2",
      "{" BIT_REST "}",
      NULL },
    { "Fluent Bit needs its error",
      { 0 },
      POST,
      "{\"date\":1.5,\"key\":null,\"payload\":\"{}\"," TPO "}",
      "none",
      NULL,
      NULL },
    { "Fluent Bit needs its date",
      { 0 },
      POST,
      "{\"error\":null,\"key\":null,\"payload\":\"{}\"," TPO "}",
      "none",
      NULL,
      NULL },
    { "topic, partition and offset alone may be anything", { 0 }, POST, "{" TPO "}", "none", NULL, NULL },

    { "configured pointers", CONFIGURED, POST, "{\"t\":\"a\",\"x\":{\"t\":1},\"p\":0,\"o\":7}",
      "configured a/0/7", "{\"x\":{\"t\":1}}", NULL },
    { "configured pointers leave the defaults out", CONFIGURED, POST X_KAFKA, "{" FIELDS "}", "none", NULL,
      NULL },
    { "locators are tried in order",
      { .topic = "header:x-t,json:/t,const:fallback", .partition = "query:p,const:4", .offset = "json:/o/0" },
      "POST /p?a=1&p=3 HTTP/1.1\r\n",
      "{\"t\":\"a\",\"o\":[5]}",
      "configured a/3/5",
      "{\"o\":[]}",
      NULL },
    { "a constant stands in for what is absent",
      { .topic = "header:x-t,const:fallback", .partition = "query:p,const:4", .offset = "json:/o" },
      "POST /p?pp=3 HTTP/1.1\r\n",
      "{\"o\":5}",
      "configured fallback/4/5",
      "{}",
      NULL },
    { "a bad value is not passed over for the next locator",
      { .topic = "const:t", .partition = "json:/p,const:4", .offset = "json:/o" },
      POST,
      "{\"p\":-1,\"o\":5}",
      "none",
      NULL,
      NULL },
    { "a query parameter is percent-decoded",
      { .topic = "query:a%b", .partition = "query:p", .offset = "query:o" },
      "POST /p?a%25b=my%2Dtopic&p=%31&o=2 HTTP/1.1\r\n",
      "x",
      "configured my-topic/1/2",
      NULL,
      NULL },
    { "a repeated query parameter means none",
      { .topic = "const:t", .partition = "query:p", .offset = "query:o" },
      "POST /p?p=1&o=2&o=2 HTTP/1.1\r\n",
      "x",
      "none",
      NULL,
      NULL },
    { "a query parameter without value is no number",
      { .topic = "const:t", .partition = "query:p", .offset = "query:o" },
      "POST /p?p=1&o HTTP/1.1\r\n",
      "x",
      "none",
      NULL,
      NULL },
    { "a query parameter with half an escape means none",
      { .topic = "const:t", .partition = "query:p", .offset = "query:o" },
      "POST /p?p=1&o=%3 HTTP/1.1\r\n",
      "x",
      "none",
      NULL,
      NULL },
    { "a composite in the path",
      { .id = "path", .id_format = "/t/{topic}/{partition}/{offset}" },
      "PUT /t/my-topic/3/41?x=1 HTTP/1.1\r\n",
      "x",
      "configured my-topic/3/41",
      NULL,
      NULL },
    { "a composite in a header",
      { .id = "header:Idempotency-Key", .id_format = "{topic}-{partition}-{offset}" },
      POST "idempotency-key: my-topic-3-41\r\n",
      "x",
      "configured my-topic/3/41",
      NULL,
      "idempotency-key" },
    { "a composite in JSON",
      { .id = "json:/id", .id_format = "{topic}+{partition}+{offset}" },
      POST,
      "{\"id\":\"a+3+41\",\"b\":1}",
      "configured a/3/41",
      "{\"b\":1}",
      NULL },
    { "a composite in the query",
      { .id = "query:k", .id_format = "{topic}+{partition}+{offset}" },
      "POST /p?k=a%2B3+41 HTTP/1.1\r\n",
      "x",
      "configured a/3/41",
      NULL,
      NULL },
    { "a value of another form is no composite",
      { .id = "json:/id", .id_format = "{topic}+{partition}+{offset}" },
      POST,
      "{\"id\":\"a+b+41\"," FIELDS "}",
      "none",
      NULL,
      NULL },
    { "a topic with the separators is split from the right",
      { .id = "header:k", .id_format = "{topic}-{partition}-{offset}" },
      POST "k: a-1-b-2-3\r\n",
      "x",
      "configured a-1-b/2/3",
      NULL,
      "k" },
    { "a composite without topic takes it from its locator",
      { .topic = "json:/t", .id = "header:k", .id_format = "{partition}:{offset}" },
      POST "k: 3:4\r\n",
      "{\"t\":\"a\"}",
      "configured a/3/4",
      "{}",
      "k" },
    { "composite and locator that disagree mean none",
      { .offset = "json:/o", .id = "header:k", .id_format = "{topic}-{partition}-{offset}" },
      POST "k: a-3-4\r\n",
      "{\"o\":5}",
      "none",
      NULL,
      NULL },
    { "a repeated header means none for a composite too",
      { .id = "header:k", .id_format = "{topic}-{partition}-{offset}" },
      POST "k: a-3-4\r\nK: a-3-4\r\n",
      "x",
      "none",
      NULL,
      NULL },
    { "one place for two coordinates is cut once",
      { .topic = "json:/t", .partition = "json:/n", .offset = "json:/n" },
      POST,
      "{\"a\":1,\"n\":5,\"t\":\"x\"}",
      "configured x/5/5",
      "{\"a\":1}",
      NULL },

    { "nothing is stripped from a body under SigV4",
      { 0 },
      POST X_KAFKA "Authorization: AWS4-HMAC-SHA256 Credential=x\r\n",
      "{" FIELDS "}",
      "x-kafka-headers orders/1/2",
      NULL,
      NULL },
    { "nothing is stripped under a webhook signature",
      { 0 },
      POST "webhook-signature: v1,x\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      NULL,
      NULL },
    { "nothing is stripped under a digest",
      { 0 },
      POST "Content-MD5: x\r\n",
      "{" FIELDS "}",
      "insert-field orders/1/2",
      NULL,
      NULL },
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct answer answer;
    ask(&row->wish, request_of_texts(row->head, row->body), &answer);
    assert_string_equal(answer.text, row->expected);
    assert_string_equal(answer.stripped, row->stripped != NULL ? row->stripped : row->body);
    assert_string_equal(answer.headers, row->headers != NULL ? row->headers : "");
}

/* The coordinates, and LEVEL_COUNT - 1 arrays beside them. */
static void ask_deep(size_t level_count, struct answer *answer)
{
    static const struct wish wish;
    char body[2000] = "{" FIELDS ",\"x\":";
    memset(body + strlen(body), '[', level_count - 1);
    memset(body + strlen(body), ']', level_count - 1);
    strcat(body, "}");
    ask(&wish, request_of_texts(POST, body), answer);
}

static void test_J_05_a_body_of_512_levels_is_read_and_one_of_513_is_not(void **state)
{
    struct answer answer;
    (void)state;
    ask_deep(511, &answer);
    assert_string_equal(answer.text, "insert-field orders/1/2");
    ask_deep(512, &answer);
    assert_string_equal(answer.text, "insert-field orders/1/2");
    ask_deep(513, &answer);
    assert_string_equal(answer.text, "none");
}

/* ---- identity marks ------------------------------------------------------------------------------------------ */

static record_mark mark_with(const struct wish *wish, const char *head, const char *body)
{
    struct answer answer;
    ask(wish, request_of_texts(head, body), &answer);
    assert_string_not_equal(answer.text, "none");
    return answer.mark;
}

static record_mark mark_of(enum identity_setting identity, const char *head, const char *body)
{
    struct wish wish = { .identity = identity };
    return mark_with(&wish, head, body);
}

static void test_a_timestamp_is_the_mark(void **state)
{
    record_mark mark = mark_of_timestamp(UINT64_C(1700000000000));
    (void)state;
    assert_int_equal(mark_of(IDENTITY_AUTO, POST, "{" FIELDS ",\"__timestamp\":1700000000000}"), mark);
    assert_int_equal(mark_of(IDENTITY_AUTO, POST, "{" FIELDS ",\"__timestamp\":\"1700000000000\"}"), mark);
    assert_int_equal(mark_of(IDENTITY_TIMESTAMP, POST, "{" FIELDS ",\"__timestamp\":1700000000000}"), mark);
    assert_int_equal(mark_of(IDENTITY_AUTO, POST DAPR "__timestamp: 1700000000000\r\n", "{}"), mark);
    struct wish wish = { .timestamp = "json:/ts" };
    assert_int_equal(mark_with(&wish, POST, "{" FIELDS ",\"ts\":1700000000000}"), mark);
    assert_int_equal(mark_with(&wish, POST X_KAFKA, "{\"ts\":1700000000000}"), mark);
}

static void test_without_a_timestamp_the_bytes_are_the_mark(void **state)
{
    (void)state;
    record_mark mark = mark_of(IDENTITY_AUTO, POST, "{\"a\":1," FIELDS "}");
    assert_int_not_equal(mark, MARK_NONE);
    assert_int_equal(mark & 1u, 0);
    assert_int_not_equal(mark, mark_of(IDENTITY_AUTO, POST, "{\"a\":2," FIELDS "}"));
    assert_int_equal(mark, mark_of(IDENTITY_BODY, POST, "{\"a\":1," FIELDS ",\"__timestamp\":17}"));
}

static void test_coordinates_are_no_part_of_the_hash(void **state)
{
    (void)state;
    record_mark mark = mark_of(IDENTITY_AUTO, POST, "{\"a\":1,\"b\":2," FIELDS "}");
    assert_int_equal(mark, mark_of(IDENTITY_AUTO, POST, "{" FIELDS ",\"a\":1,\"b\":2}"));
    assert_int_equal(mark, mark_of(IDENTITY_AUTO, POST,
                                   "{\"__offset\":77,\"a\":1,\"__topic\":\"x\",\"b\":2,\"__partition\":0}"));
    assert_int_equal(mark, mark_of(IDENTITY_AUTO, POST X_KAFKA, "{\"a\":1,\"b\":2}"));
    assert_int_equal(mark, mark_of(IDENTITY_AUTO, "PUT /other HTTP/1.1\r\n" X_KAFKA, "{\"a\":1,\"b\":2}"));
}

static void test_a_signed_body_has_the_same_mark(void **state)
{
    (void)state;
    assert_int_equal(mark_of(IDENTITY_AUTO, POST, "{\"a\":1," FIELDS "}"),
                     mark_of(IDENTITY_AUTO, POST "Digest: x\r\n", "{\"a\":1," FIELDS "}"));
}

static void test_a_timestamp_that_is_none_leaves_the_hash(void **state)
{
    (void)state;
    record_mark mark = mark_of(IDENTITY_AUTO, POST, "{" FIELDS ",\"__timestamp\":\"2023-11-14\"}");
    assert_int_equal(mark & 1u, 0);
    assert_int_not_equal(mark, mark_of(IDENTITY_AUTO, POST, "{" FIELDS ",\"__timestamp\":\"2023-11-15\"}"));
    assert_int_equal(mark_of(IDENTITY_TIMESTAMP, POST, "{" FIELDS ",\"__timestamp\":-1}"), MARK_NONE);
}

static void test_identity_off_leaves_no_mark(void **state)
{
    (void)state;
    assert_int_equal(mark_of(IDENTITY_OFF, POST, "{" FIELDS ",\"__timestamp\":17}"), MARK_NONE);
    assert_int_equal(mark_of(IDENTITY_OFF, POST X_KAFKA, "{}"), MARK_NONE);
    assert_int_equal(mark_of(IDENTITY_TIMESTAMP, POST X_KAFKA, "{}"), MARK_NONE);
}

#define SPLUNK(channel, time)                                                                                \
    "{\"event\":\"x\",\"fields\":{\"kafka_offset\":\"2\",\"kafka_partition\":\"1\",\"hec-channel\":"         \
    "\"" channel "\",\"kafka_timestamp\":\"" time "\",\"kafka_topic\":\"orders\"}}"

static void test_what_changes_between_deliveries_is_not_hashed(void **state)
{
    (void)state;
    record_mark mark = mark_of(IDENTITY_AUTO, POST, SPLUNK("a", "null"));
    assert_int_equal(mark & 1u, 0);
    assert_int_equal(mark, mark_of(IDENTITY_AUTO, POST, SPLUNK("bcd", "null")));
    assert_int_equal(mark_of(IDENTITY_AUTO, POST, SPLUNK("a", "17")), mark_of_timestamp(17));
    assert_int_equal(
        mark_of(IDENTITY_AUTO, POST, "{\"date\":1.5,\"error\":null,\"key\":null,\"payload\":\"{}\"," TPO "}"),
        mark_of(IDENTITY_AUTO, POST,
                "{\"date\":2.75,\"error\":null,\"key\":null,\"payload\":\"{}\"," TPO "}"));
}

static void test_the_longest_topic_is_found_and_a_longer_one_is_not(void **state)
{
    static const struct wish wish;
    struct answer answer;
    char topic[300], body[400];
    (void)state;
    memset(topic, 't', sizeof topic);
    topic[TOPIC_BYTES_MAX] = '\0';
    snprintf(body, sizeof body, "{\"__topic\":\"%s\",\"__partition\":0,\"__offset\":1}", topic);
    ask(&wish, request_of_texts(POST, body), &answer);
    assert_non_null(strstr(answer.text, topic));
    memset(topic, 't', sizeof topic);
    topic[TOPIC_BYTES_MAX + 1] = '\0';
    snprintf(body, sizeof body, "{\"__topic\":\"%s\",\"__partition\":0,\"__offset\":1}", topic);
    ask(&wish, request_of_texts(POST, body), &answer);
    assert_string_equal(answer.text, "none");
}

static void test_full_lists_of_pointers_fit_beside_the_defaults(void **state)
{
    static const char eight[] =
        "json:/%1$s1,json:/%1$s2,json:/%1$s3,json:/%1$s4,json:/%1$s5,json:/%1$s6,json:/%1$s7,"
        "json:/%1$s8";
    char topic[200], partition[200], offset[200], timestamp[200];
    struct answer answer;
    (void)state;
    snprintf(topic, sizeof topic, eight, "t");
    snprintf(partition, sizeof partition, eight, "p");
    snprintf(offset, sizeof offset, eight, "o");
    snprintf(timestamp, sizeof timestamp, eight, "s");
    struct wish all = { .topic = topic,
                        .partition = partition,
                        .offset = offset,
                        .timestamp = timestamp,
                        .id = "json:/id",
                        .id_format = "{topic}-{partition}-{offset}" };
    ask(&all, request_of_texts(POST, "{\"t8\":\"a\",\"p8\":1,\"o8\":2,\"s8\":3}"), &answer);
    assert_string_equal(answer.text, "configured a/1/2");
    assert_int_equal(answer.mark, mark_of_timestamp(3));
    struct wish most = { .topic = topic, .partition = partition, .timestamp = timestamp };
    ask(&most, request_of_texts(POST, "{\"t8\":\"a\",\"p8\":1,\"__offset\":2,\"s8\":3}"), &answer);
    assert_string_equal(answer.text, "insert-field a/1/2");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_J_05_a_body_of_512_levels_is_read_and_one_of_513_is_not),
        cmocka_unit_test(test_knative_broker_needs_a_configured_topic),
        cmocka_unit_test(test_knative_composites_are_read_from_ce_id),
        cmocka_unit_test(test_a_timestamp_is_the_mark),
        cmocka_unit_test(test_without_a_timestamp_the_bytes_are_the_mark),
        cmocka_unit_test(test_coordinates_are_no_part_of_the_hash),
        cmocka_unit_test(test_a_signed_body_has_the_same_mark),
        cmocka_unit_test(test_a_timestamp_that_is_none_leaves_the_hash),
        cmocka_unit_test(test_identity_off_leaves_no_mark),
        cmocka_unit_test(test_what_changes_between_deliveries_is_not_hashed),
        cmocka_unit_test(test_the_longest_topic_is_found_and_a_longer_one_is_not),
        cmocka_unit_test(test_full_lists_of_pointers_fit_beside_the_defaults),
    };
    ROW_TESTS(row_tests, rows, test_row);
    ROW_TESTS(file_tests, file_rows, test_file);
    int failed_count = cmocka_run_group_tests_name("requests of connectors", file_tests, NULL, NULL);
    failed_count += cmocka_run_group_tests_name("rules", row_tests, NULL, NULL);
    return failed_count + cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
