/*
 * test_plan.c - which bytes are sent on: all of them, or all but the coordinate fields.
 *
 * jansson says what an object without some of its members is; that the other bytes are untouched is checked here.
 */
#include "plan.h"

#include <jansson.h>
#include "json_scan.h"
#include "wish.h"

#define POST "POST /p HTTP/1.1\r\n"

struct bench {
    struct settings settings;
    struct identifier *identifier;
};

static struct bench bench;

static void bench_set(const struct wish *wish)
{
    settings_of(wish, &bench.settings);
    bench.identifier = identifier_new(&bench.settings);
    assert_non_null(bench.identifier);
}

static void bench_clear(void)
{
    identifier_free(bench.identifier);
    settings_release(&bench.settings);
}

static int bench_init(void **state)
{
    static const struct wish wish = { .topic = "json:/t", .partition = "json:/p", .offset = "json:/o" };
    (void)state;
    bench_set(&wish);
    return 0;
}

static int bench_deinit(void **state)
{
    (void)state;
    bench_clear();
    return 0;
}

struct sent {
    char *bytes; /* owned */
    size_t byte_count, record_count;
    bool is_rewritten;
};

/* What is sent of REQUEST, joined.  Release the bytes. */
static void send(const struct request *request, const enum verdict verdicts[], bool is_stripped,
                 struct sent *sent)
{
    struct identified identified;
    struct plan plan;
    assert_true(identify(bench.identifier, request, &identified));
    assert_true(plan_build(request, &identified, verdicts, is_stripped, &plan));
    *sent = (struct sent){ .bytes = calloc(1, request->body_bytes + 1),
                           .record_count = identified.record_count,
                           .is_rewritten = plan.is_rewritten };
    assert_non_null(sent->bytes);
    for (size_t i = 0; i < plan.part_count; i++) {
        assert_true(plan.parts[i].byte_count > 0);
        assert_true(plan.parts[i].at >= request->body);
        assert_true(plan.parts[i].at + plan.parts[i].byte_count <= request->body + request->body_bytes);
        memcpy(sent->bytes + sent->byte_count, plan.parts[i].at, plan.parts[i].byte_count);
        sent->byte_count += plan.parts[i].byte_count;
    }
    assert_int_equal(plan.body_bytes, sent->byte_count);
    plan_deinit(&plan);
    identified_deinit(&identified);
}

struct row {
    const char *name, *body, *stripped;
};

static const struct row rows[] = {
    { "the only members leave an empty object", "{\"t\":\"x\",\"p\":0,\"o\":1}", "{}" },
    { "first members take the comma behind them", "{\"t\":\"x\",\"p\":0,\"o\":1,\"a\":1}", "{\"a\":1}" },
    { "last members take the comma before them", "{\"a\":1,\"t\":\"x\",\"p\":0,\"o\":1}", "{\"a\":1}" },
    { "members in the middle leave one comma", "{\"a\":1,\"t\":\"x\",\"p\":0,\"o\":1,\"b\":2}",
      "{\"a\":1,\"b\":2}" },
    { "members apart", "{\"a\":1,\"t\":\"x\",\"b\":2,\"p\":0,\"c\":3,\"o\":1,\"d\":4}",
      "{\"a\":1,\"b\":2,\"c\":3,\"d\":4}" },
    { "first, middle and last", "{\"t\":\"x\",\"b\":2,\"p\":0,\"c\":3,\"o\":1}", "{\"b\":2,\"c\":3}" },
    { "first and last around one member", "{\"t\":\"x\",\"p\":0,\"b\":2,\"o\":1}", "{\"b\":2}" },
    { "white space between members stays even", "{ \"a\": 1, \"t\": \"x\", \"b\": 2, \"p\": 0, \"o\": 1 }",
      "{ \"a\": 1, \"b\": 2 }" },
    { "white space before commas", "{\"a\" : 1 , \"t\" : \"x\" , \"p\" : 0 , \"o\" : 1 , \"b\" : 2 }",
      "{\"a\" : 1 , \"b\" : 2 }" },
    { "lines go whole", "{\n  \"a\": 1,\n  \"t\": \"x\",\n  \"p\": 0,\n  \"o\": 1\n}\n",
      "{\n  \"a\": 1\n}\n" },
    { "lines in front go whole", "{\n  \"t\": \"x\",\n  \"p\": 0,\n  \"o\": 1,\n  \"a\": 1\n}\n",
      "{\n  \"a\": 1\n}\n" },
    { "commas and braces in strings are text", "{\"a\":\",}\",\"t\":\"x\",\"p\":0,\"b\":\"{,\",\"o\":1}",
      "{\"a\":\",}\",\"b\":\"{,\"}" },
    { "the same names deeper down stay", "{\"a\":{\"t\":1,\"p\":2},\"t\":\"x\",\"p\":0,\"o\":1}",
      "{\"a\":{\"t\":1,\"p\":2}}" },
    { "J-03 what stays keeps its spelling",
      "{\"a\":[0.1,-0,1e5,1.10],\"t\":\"x\",\"p\":0,\"s\":\"\\/\\u00e9\",\"a\":2,\"o\":1}",
      "{\"a\":[0.1,-0,1e5,1.10],\"s\":\"\\/\\u00e9\",\"a\":2}" },
};

static void test_row(void **state)
{
    const struct row *row = *state;
    struct request *request = request_of_texts(POST, row->body);
    struct sent sent;
    send(request, NULL, true, &sent);
    assert_int_equal(sent.record_count, 1);
    assert_string_equal(sent.bytes, row->stripped);
    assert_true(sent.is_rewritten);
    free(sent.bytes);
    send(request, NULL, false, &sent);
    assert_string_equal(sent.bytes, row->body);
    assert_false(sent.is_rewritten);
    free(sent.bytes);
    request_release(request);
}

/* ---- property: random objects -------------------------------------------------------------------------------- */

static uint32_t random_next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static const char *random_blank(uint32_t *seed)
{
    static const char *const blanks[] = { "", "", "", " ", "\n  ", "\t", " \r\n" };
    return blanks[random_next(seed) % (sizeof blanks / sizeof blanks[0])];
}

/* An object whose members come in any order: the coordinates and up to five others. */
static void random_object(uint32_t *seed, char text[], size_t size)
{
    static const char *const others[] = {
        "1.50", "\"a,}\\\"{\"", "[1, {\"t\":1}]", "null", "{\"o\": {}, \"p\":[ ]}", "\"\"", "-0e1", "true"
    };
    const char *names[8] = { "t", "p", "o" }, *values[8] = { "\"x-1\"", "\"7\"", "42" };
    static const char *const letters[] = { "a", "b", "c", "d", "e" };
    size_t count = 3 + random_next(seed) % 6, length = 0;
    for (size_t i = 3; i < count; i++) {
        names[i] = letters[i - 3];
        values[i] = others[random_next(seed) % (sizeof others / sizeof others[0])];
    }
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = random_next(seed) % (i + 1);
        const char *name = names[i], *value = values[i];
        names[i] = names[other];
        values[i] = values[other];
        names[other] = name;
        values[other] = value;
    }
    length += (size_t)snprintf(text, size, "%s{", random_blank(seed));
    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, size - length, "%s", random_blank(seed));
        length += (size_t)snprintf(text + length, size - length, "\"%s\"%s:", names[i], random_blank(seed));
        length += (size_t)snprintf(text + length, size - length, "%s%s", random_blank(seed), values[i]);
        length += (size_t)snprintf(text + length, size - length, "%s%s", random_blank(seed),
                                   i + 1 < count ? "," : "");
    }
    snprintf(text + length, size - length, "}%s", random_blank(seed));
}

/* LEFT is WHOLE with bytes left out, and one comma less for each of the three members; two when nothing stays. */
static void assert_only_members_went(const char *whole, const char *left)
{
    size_t comma_count = 0, left_commas = 0;
    const char *at = left;
    for (const char *c = whole; *c != '\0'; c++) {
        comma_count += *c == ',';
        if (*at == *c)
            at++;
    }
    if (*at != '\0')
        fail_msg("%s is not %s with bytes left out", left, whole);
    for (const char *c = left; *c != '\0'; c++)
        left_commas += *c == ',';
    size_t expected = strchr(left, '"') != NULL ? 3 : 2;
    if (comma_count - left_commas != expected)
        fail_msg("%zu commas went: %s -> %s", comma_count - left_commas, whole, left);
}

static void test_a_stripped_object_is_the_object_without_its_members(void **state)
{
    uint32_t seed = 7;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[1000];
        struct sent sent;
        random_object(&seed, text, sizeof text);
        struct request *request = request_of_texts(POST, text);
        send(request, NULL, true, &sent);
        assert_int_equal(sent.record_count, 1);
        json_t *expected = json_loads(text, 0, NULL), *found = json_loads(sent.bytes, 0, NULL);
        assert_non_null(expected);
        json_object_del(expected, "t");
        json_object_del(expected, "p");
        json_object_del(expected, "o");
        if (found == NULL || !json_equal(expected, found))
            fail_msg("%s -> %s", text, sent.bytes);
        assert_only_members_went(text, sent.bytes);
        json_decref(expected);
        json_decref(found);
        free(sent.bytes);
        send(request, NULL, false, &sent);
        assert_string_equal(sent.bytes, text);
        free(sent.bytes);
        request_release(request);
    }
}

/* ---- the rest ------------------------------------------------------------------------------------------------ */

static void test_J_03_an_unkeyed_body_goes_as_it_came(void **state)
{
    static const char *const bodies[] = { "plain", "{\"a\" : 1.10,}", "[{\"t\":\"x\",\"p\":0,\"o\":1}", "" };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct request *request = request_of_texts(POST, bodies[i]);
        struct sent sent;
        send(request, NULL, true, &sent);
        assert_int_equal(sent.record_count, 0);
        assert_string_equal(sent.bytes, bodies[i]);
        assert_false(sent.is_rewritten);
        free(sent.bytes);
        request_release(request);
    }
}

static void test_J_03_every_raw_request_goes_as_it_came(void **state)
{
    static const char *const names[] = {
        "aiven-single-json.http",      "aiven-single-string.http",       "dapr-pubsub.http",
        "knative-kafkasource.http",    "redpanda-headers.http",          "debezium-signed.http",
        "newrelic-envelope-gzip.http", "splunk-event-gzip-chunked.http", "lenses-loop-trailing-comma.http",
        "thomaskwscott-map.http"
    };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct request *request = request_of_file(names[i]);
        struct sent sent;
        send(request, NULL, false, &sent);
        assert_int_equal(sent.byte_count, request->body_bytes);
        assert_memory_equal(sent.bytes, request->body, sent.byte_count);
        assert_false(sent.is_rewritten);
        free(sent.bytes);
        request_release(request);
    }
}

static void test_only_new_records_are_sent(void **state)
{
    static const enum verdict known[] = { VERDICT_APPLIED }, new[] = { VERDICT_NEW };
    static const char body[] = "{\"t\":\"x\",\"p\":0,\"o\":1,\"a\":1}";
    struct request *request = request_of_texts(POST, body);
    struct sent sent;
    (void)state;
    send(request, known, false, &sent);
    assert_int_equal(sent.byte_count, 0);
    assert_true(sent.is_rewritten);
    free(sent.bytes);
    send(request, new, false, &sent);
    assert_string_equal(sent.bytes, body);
    assert_false(sent.is_rewritten);
    free(sent.bytes);
    request_release(request);
}

/* ---- elements, cut one by one -------------------------------------------------------------------------------- */

#define T(o) "{\"t\":\"x\",\"p\":0,\"o\":" #o "}"

/* KEPT has a letter for each element in order: 'k' goes to the target, 'c' is cut. */
static const struct cut_row {
    const char *name;
    struct wish wish;
    const char *head, *body, *kept, *expected;
} cut_rows[] = {
#define PLACES .topic = "json:/t", .partition = "json:/p", .offset = "json:/o"
    { "the first of an array", { PLACES }, POST, "[" T(1) ", " T(2) "]", "ck", "[" T(2) "]" },
    { "the last of an array", { PLACES }, POST, "[" T(1) ", " T(2) "]", "kc", "[" T(1) "]" },
    { "the middle of an array",
      { PLACES },
      POST,
      "[" T(1) ", " T(2) " ,\n" T(3) "]",
      "kck",
      "[" T(1) " ,\n" T(3) "]" },
    { "all but the middle",
      { PLACES },
      POST,
      "[\n  " T(1) ",\n  " T(2) ",\n  " T(3) "\n]\n",
      "ckc",
      "[\n  " T(2) "\n]\n" },
    { "an array without any", { PLACES }, POST, "[\n" T(1) ",\n" T(2) "\n]", "cc", "[\n\n]" },
    { "a trailing comma stays", { PLACES }, POST, "[" T(1) "," T(2) " , ]", "kc", "[" T(1) " , ]" },
    { "a trailing comma of nothing goes", { PLACES }, POST, "[" T(1) "," T(2) " , ]", "cc", "[ ]" },
    { "elements without coordinates stay", { PLACES }, POST, "[1," T(1) ",{}," T(2) "]", "kckc", "[1,{}]" },
    { "an envelope stays around",
      { PLACES, .envelope = "/a" },
      POST,
      "{\"a\":[" T(1) "," T(2) ",],\"b\":[1,2]}",
      "ck",
      "{\"a\":[" T(2) ",],\"b\":[1,2]}" },
    { "a repeat goes by itself",
      { PLACES },
      POST,
      "[" T(1) "," T(1) "," T(2) "," T(1) "]",
      "kckc",
      "[" T(1) "," T(2) "]" },
    { "the first line", { PLACES }, POST, T(1) "\n" T(2) "\n", "ck", T(2) "\n" },
    { "the last line", { PLACES }, POST, T(1) "\n" T(2) "\n", "kc", T(1) "\n" },
    { "the last line without its end", { PLACES }, POST, T(1) "\r\n" T(2), "kc", T(1) "\r\n" },
    { "blank lines stay",
      { PLACES },
      POST,
      "\n" T(1) "\r\n\r\n " T(2) "\n\n" T(3) "\n",
      "ckc",
      "\n\r\n " T(2) "\n\n" },
    { "objects end to end", { PLACES }, POST, T(1) T(2) T(3), "kck", T(1) T(3) },
    { "objects with spaces between", { PLACES }, POST, T(1) " " T(2) " " T(3), "ckk", " " T(2) " " T(3) },
    { "a statement stays before its rows",
      { PLACES },
      POST,
      "INSERT INTO t\n FORMAT JSONEachRow\n" T(1) T(2),
      "ck",
      "INSERT INTO t\n FORMAT JSONEachRow\n" T(2) },
    { "one separator stays between two",
      { PLACES, .shape = SHAPE_SEPARATED, .separator = "|" },
      POST,
      T(1) "|" T(2) "|" T(3),
      "kck",
      T(1) "|" T(3) },
    { "prefix and suffix stay",
      { PLACES, .shape = SHAPE_SEPARATED, .separator = "|", .prefix = "<<", .suffix = ">>" },
      POST,
      "<<" T(1) "|" T(2) "|>>",
      "kc",
      "<<" T(1) "|>>" },
    { "an action goes with its source",
      { PLACES },
      "POST /_bulk HTTP/1.1\r\n",
      "{\"index\":{}}\n" T(1) "\n{\"delete\":{}}\n{\"create\":{}}\n" T(2) "\n",
      "ckk",
      "{\"delete\":{}}\n{\"create\":{}}\n" T(2) "\n" },
    { "a delete goes alone",
      { .id = "bulk-id", .id_format = "{topic}+{partition}+{offset}" },
      "POST /_bulk HTTP/1.1\r\n",
      "{\"delete\":{\"_id\":\"t+0+1\"}}\n\n{\"create\":{\"_id\":\"t+0+2\"}}\n{}\n",
      "ck",
      "\n{\"create\":{\"_id\":\"t+0+2\"}}\n{}\n" },
    { "a signed request goes whole",
      { PLACES },
      POST "Digest: x\r\n",
      "[" T(1) "," T(2) "," T(1) "]",
      "ckk",
      "[" T(1) "," T(2) "," T(1) "]" },
    { "a signed request goes not at all", { PLACES }, POST "Digest: x\r\n", "[" T(1) "," T(2) "]", "cc", "" },
    { "a token goes whole",
      { 0 },
      "POST /?insert_deduplication_token=t-0-1-2 HTTP/1.1\r\n",
      "ab",
      "k",
      "ab" },
    { "a token goes not at all",
      { 0 },
      "POST /?insert_deduplication_token=t-0-1-2 HTTP/1.1\r\n",
      "ab",
      "c",
      "" },
#undef PLACES
};

/* A letter decides for a record where it stands first. */
static void verdicts_of(const struct identified *identified, const char *kept, enum verdict verdicts[])
{
    for (size_t i = 0; i < identified->record_count; i++)
        verdicts[i] = kept[0] == 'k' ? VERDICT_NEW : VERDICT_APPLIED;
    for (size_t i = 0; identified->shape != SHAPE_IS_OPAQUE && i < identified->site_count; i++)
        if (identified->sites[i].record != NO_RECORD && !identified->sites[i].is_repeat)
            verdicts[identified->sites[i].record] = kept[i] == 'k' ? VERDICT_NEW : VERDICT_APPLIED;
}

static void test_cut_row(void **state)
{
    const struct cut_row *row = *state;
    struct request *request = request_of_texts(row->head, row->body);
    struct identified identified;
    struct plan plan;
    enum verdict verdicts[8];
    char joined[1000] = "";
    bench_set(&row->wish);
    assert_true(identify(bench.identifier, request, &identified));
    assert_int_equal(identified.site_count, strlen(row->kept));
    verdicts_of(&identified, row->kept, verdicts);
    assert_true(plan_build(request, &identified, verdicts, false, &plan));
    for (size_t i = 0; i < plan.part_count; i++)
        strncat(joined, plan.parts[i].at, plan.parts[i].byte_count);
    assert_string_equal(joined, row->expected);
    assert_int_equal(plan.body_bytes, strlen(row->expected));
    assert_int_equal(plan.is_rewritten, strcmp(row->body, row->expected) != 0);
    plan_deinit(&plan);
    identified_deinit(&identified);
    bench_clear();
    request_release(request);
}

/* ---- one element alone --------------------------------------------------------------------------------------- */

static const struct site_row {
    const char *name;
    struct wish wish;
    const char *head, *body;
    size_t site;
    bool is_stripped;
    const char *expected;
} site_rows[] = {
#define PLACES .topic = "json:/t", .partition = "json:/p", .offset = "json:/o"
    { "of an array the bare element", { PLACES }, POST, "[ " T(1) ", " T(2) "]", 1, false, T(2) },
    { "stripped of its coordinates",
      { PLACES },
      POST,
      "[" T(1) ", {\"a\":1,\"t\":\"x\",\"p\":0,\"o\":2}]",
      1,
      true,
      "{\"a\":1}" },
    { "of lines the line", { PLACES }, POST, "\n" T(1) "\r\n" T(2) "\n", 0, false, T(1) "\r\n" },
    { "of lines the last line as it is", { PLACES }, POST, T(1) "\n" T(2), 1, false, T(2) },
    { "of values behind a statement with the statement",
      { PLACES },
      POST,
      "INSERT INTO t FORMAT JSONEachRow\n" T(1) T(2),
      1,
      false,
      "INSERT INTO t FORMAT JSONEachRow\n" T(2) },
    { "of an envelope the envelope around it",
      { PLACES, .envelope = "/a" },
      POST,
      "{\"a\":[ " T(1) "," T(2) "," T(3) " ],\"b\":1}",
      1,
      false,
      "{\"a\":[ " T(2) " ],\"b\":1}" },
    { "of separated pieces the piece",
      { PLACES, .shape = SHAPE_SEPARATED, .separator = "|", .prefix = "<", .suffix = ">" },
      POST,
      "<" T(1) "|" T(2) ">",
      0,
      false,
      T(1) },
    { "of a bulk request the action",
      { PLACES },
      "POST /_bulk HTTP/1.1\r\n",
      "{\"index\":{}}\n" T(1) "\n{\"delete\":{}}\n",
      0,
      false,
      "{\"index\":{}}\n" T(1) "\n" },
    { "of one record all", { PLACES }, POST, " " T(1) " ", 0, false, " " T(1) " " },
#undef PLACES
};

static void test_site_row(void **state)
{
    const struct site_row *row = *state;
    struct request *request = request_of_texts(row->head, row->body);
    struct identified identified;
    struct plan plan;
    char joined[1000] = "";
    bench_set(&row->wish);
    assert_true(identify(bench.identifier, request, &identified));
    assert_true(plan_build_site(request, &identified, row->site, row->is_stripped, &plan));
    for (size_t i = 0; i < plan.part_count; i++)
        strncat(joined, plan.parts[i].at, plan.parts[i].byte_count);
    assert_string_equal(joined, row->expected);
    assert_int_equal(plan.site_count, 1);
    plan_deinit(&plan);
    identified_deinit(&identified);
    bench_clear();
    request_release(request);
}

/* ---- property: random batches -------------------------------------------------------------------------------- */

enum { ELEMENTS_MAX = 9, ELEMENT_BYTES_MAX = 1000, BATCH_BYTES_MAX = 32768 };

/* A batch and what it is made of. */
struct batch {
    struct wish wish;
    const char *head;
    size_t count;
    char elements[ELEMENTS_MAX][ELEMENT_BYTES_MAX];
    char body[BATCH_BYTES_MAX];
};

static void put(struct batch *batch, const char *text)
{
    assert_true(strlen(batch->body) + strlen(text) < sizeof batch->body);
    strcat(batch->body, text);
}

/* An object without line ends, or something else.  One in four offsets comes again. */
static void random_element(uint32_t *seed, bool is_record, char text[ELEMENT_BYTES_MAX])
{
    static const char *const others[] = { "{}", "{\"a\":[{\"t\":\"x\",\"p\":1,\"o\":2}]}",
                                          "{\"t\":\"x\",\"p\":0}" };
    static const char *const values[] = { "123456789012345678901234567890.5", "\"|,]}\\\"\\n{[\"",
                                          "{\"k\":1,\"k\":1}", "[ 1 ,\t2 ]", "null" };
    if (!is_record) {
        strcpy(text, others[random_next(seed) % 3]);
        return;
    }
    uint32_t offset = random_next(seed) % 30, order = random_next(seed) % 3;
    char fields[200], rest[200];
    snprintf(fields, sizeof fields, "\"t\":\"%s\",\"p\" :%u,\"o\": \"%u\"", offset % 2 ? "x" : "topic-2",
             (unsigned)offset % 3, (unsigned)offset);
    snprintf(rest, sizeof rest, "\"a\" : %s", values[random_next(seed) % 5]);
    snprintf(text, ELEMENT_BYTES_MAX,
             order == 0   ? "{%s, %s}"
             : order == 1 ? "{ %2$s,%1$s}"
                          : "{%s , %s, \"t2\":0 }",
             fields, rest);
}

static const char *line_blank(uint32_t *seed)
{
    static const char *const ends[] = { "\n", "\n", "\r\n", "\n\n", "\n \r\n" };
    return ends[random_next(seed) % (sizeof ends / sizeof ends[0])];
}

static void array_put(struct batch *batch, uint32_t *seed)
{
    put(batch, "[");
    for (size_t i = 0; i < batch->count; i++) {
        put(batch, random_blank(seed));
        put(batch, batch->elements[i]);
        put(batch, random_blank(seed));
        put(batch, i + 1 < batch->count ? "," : "");
    }
    put(batch, random_next(seed) % 4 == 0 ? ", ]" : "]");
}

static void random_batch(uint32_t *seed, struct batch *batch)
{
    static const struct wish wish = { .topic = "json:/t", .partition = "json:/p", .offset = "json:/o" };
    unsigned form = random_next(seed) % 6;
    *batch =
        (struct batch){ .wish = wish, .head = POST, .count = 2 + random_next(seed) % (ELEMENTS_MAX - 1) };
    for (size_t i = 0; i < batch->count; i++)
        random_element(seed, i == 0 || random_next(seed) % 5 > 0, batch->elements[i]);
    if (form == 0) {
        array_put(batch, seed);
        put(batch, random_blank(seed));
    } else if (form == 1) {
        batch->wish.envelope = "/data/0";
        put(batch, " {\"a\":[1,2],\"data\" : [");
        array_put(batch, seed);
        put(batch, ",[\"b\"]], \"c\":{}}\n");
    } else if (form == 2) {
        put(batch, random_blank(seed));
        for (size_t i = 0; i < batch->count; i++) {
            put(batch, batch->elements[i]);
            put(batch, i + 1 < batch->count || random_next(seed) % 2 ? line_blank(seed) : "");
        }
    } else if (form == 3) {
        put(batch, random_next(seed) % 2 ? "INSERT INTO t\n FORMAT JSONEachRow\n" : "");
        for (size_t i = 0; i < batch->count; i++) {
            put(batch, batch->elements[i]);
            put(batch, i == 0 ? "" : random_blank(seed));
        }
    } else if (form == 4) {
        batch->wish.shape = SHAPE_SEPARATED;
        batch->wish.separator = "|,";
        batch->wish.prefix = "<{";
        batch->wish.suffix = "}>\n";
        put(batch, "<{");
        for (size_t i = 0; i < batch->count; i++) {
            put(batch, i > 0 ? "|," : "");
            put(batch, batch->elements[i]);
        }
        put(batch, random_next(seed) % 3 ? "}>\n" : "|,}>\n");
    } else {
        batch->head = "POST /i/_bulk HTTP/1.1\r\n";
        for (size_t i = 0; i < batch->count; i++) {
            put(batch, "{\"index\" : {\"_id\":\"k\"}}\n");
            put(batch, batch->elements[i]);
            put(batch, "\n");
        }
    }
}

/* A request of that body in one of the codings. */
static struct request *batch_request(const struct batch *batch, enum coding coding, const char *body,
                                     size_t body_bytes)
{
    static const char *const names[] = { [CODING_IDENTITY] = "identity",
                                         [CODING_GZIP] = "gzip",
                                         [CODING_DEFLATE] = "deflate",
                                         [CODING_DEFLATE_RAW] = "deflate",
                                         [CODING_ZSTD] = "zstd" };
    char head[200];
    struct slice part = slice_of(body, body_bytes);
    snprintf(head, sizeof head, "%sContent-Encoding: %s\r\n", batch->head, names[coding]);
    struct request *request = request_of_texts(head, "");
    free(request->body);
    if (coding == CODING_IDENTITY) {
        request->body = strndup(body, body_bytes);
        request->body_bytes = body_bytes;
    } else {
        assert_int_equal(coding_pack(coding, &part, 1, &request->body, &request->body_bytes), CODING_OK);
    }
    return request;
}

/* What was sent, opened. */
static char *sent_text(const struct plan *plan, enum coding coding)
{
    size_t at = 0;
    char *bytes = calloc(1, plan->body_bytes + 1), *text = NULL;
    assert_non_null(bytes);
    for (size_t i = 0; i < plan->part_count; i++) {
        memcpy(bytes + at, plan->parts[i].at, plan->parts[i].byte_count);
        at += plan->parts[i].byte_count;
    }
    assert_int_equal(at, plan->body_bytes);
    if (coding == CODING_IDENTITY || at == 0)
        return bytes;
    size_t text_bytes;
    assert_int_equal(coding_open(&coding, slice_of(bytes, at), BATCH_BYTES_MAX, &text, &text_bytes),
                     CODING_OK);
    free(bytes);
    bytes = strndup(text, text_bytes);
    free(text);
    return bytes;
}

/* Which offsets go: by a bit for each. */
static void verdicts_by_offset(const struct identified *identified, uint32_t applied, enum verdict verdicts[])
{
    for (size_t i = 0; i < identified->record_count; i++)
        verdicts[i] = (applied >> identified->records[i].key.offset) & 1u ? VERDICT_APPLIED : VERDICT_NEW;
}

/* Send BODY without the records whose offsets are APPLIED.  Release the text. */
static char *cut(const struct batch *batch, enum coding coding, const char *body, uint32_t applied,
                 bool is_stripped)
{
    struct identified identified;
    struct plan plan;
    enum verdict verdicts[ELEMENTS_MAX];
    struct request *request = batch_request(batch, coding, body, strlen(body));
    bench_set(&batch->wish);
    assert_true(identify(bench.identifier, request, &identified));
    verdicts_by_offset(&identified, applied, verdicts);
    assert_true(plan_build(request, &identified, verdicts, is_stripped, &plan));
    char *text = sent_text(&plan, coding);
    assert_int_equal(plan.is_rewritten, strcmp(text, body) != 0);
    if (!plan.is_rewritten && plan.part_count > 0)
        assert_ptr_equal(plan.parts[0].at, request->body);
    plan_deinit(&plan);
    identified_deinit(&identified);
    bench_clear();
    request_release(request);
    return text;
}

/* Should element INDEX go?  One that repeats an earlier one never does. */
static bool is_expected(const struct batch *batch, size_t index, uint32_t applied)
{
    json_t *element = json_loads(batch->elements[index], JSON_DECODE_INT_AS_REAL, NULL);
    const char *digits = json_string_value(json_object_get(element, "o"));
    bool is_sent = true;
    if (digits != NULL) {
        uint32_t offset = (uint32_t)strtoul(digits, NULL, 10);
        is_sent = ((applied >> offset) & 1u) == 0;
        for (size_t i = 0; i < index && is_sent; i++) {
            json_t *other = json_loads(batch->elements[i], JSON_DECODE_INT_AS_REAL, NULL);
            const char *again = json_string_value(json_object_get(other, "o"));
            is_sent = again == NULL || strcmp(again, digits) != 0;
            json_decref(other);
        }
    }
    json_decref(element);
    return is_sent;
}

/* BODY is what TEXT says, with nothing but gaps besides: the expected elements byte for byte and in order. */
static void assert_elements(const struct batch *batch, const char *text, uint32_t applied)
{
    const char *at = text;
    size_t cut_bytes = 0, cut_count = 0, sent_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (!is_expected(batch, i, applied)) {
            cut_bytes += strlen(batch->elements[i]);
            cut_count++;
            continue;
        }
        at = strstr(at, batch->elements[i]);
        if (at == NULL)
            fail_msg("%s\nlost element %zu:\n%s", batch->body, i, text);
        at += strlen(batch->elements[i]);
        sent_count++;
    }
    /* Besides the elements at most ten bytes of gaps go with each; an action line of a bulk request is 25. */
    size_t lost_bytes = strlen(batch->body) - strlen(text);
    if (lost_bytes < cut_bytes || lost_bytes > cut_bytes + 25 * cut_count)
        fail_msg("%s\nlost %zu bytes for %zu:\n%s", batch->body, lost_bytes, cut_bytes, text);
    if (cut_count == 0)
        assert_string_equal(text, batch->body);
    assert_true(sent_count + cut_count == batch->count);
}

/* What is sent holds as many elements of the same shape as it should, by the same reader. */
static void assert_shape(const struct batch *batch, const char *text, uint32_t applied)
{
    struct identified before, after;
    struct request *whole = request_of_texts(batch->head, batch->body);
    struct request *left = request_of_texts(batch->head, text);
    size_t expected = 0, record_count = 0;
    bench_set(&batch->wish);
    assert_true(identify(bench.identifier, whole, &before));
    assert_true(identify(bench.identifier, left, &after));
    assert_int_equal(before.site_count, batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        bool is_sent = is_expected(batch, i, applied);
        expected += is_sent;
        record_count += is_sent && before.sites[i].record != NO_RECORD;
    }
    /* One value alone is no batch, and one without records has no elements. */
    if (expected > 1 && record_count > 0 && after.site_count != expected)
        fail_msg("%s\nholds %zu elements, not %zu:\n%s", batch->body, after.site_count, expected, text);
    for (size_t i = 0; i < after.record_count; i++)
        assert_int_equal((applied >> after.records[i].key.offset) & 1u, 0);
    identified_deinit(&before);
    identified_deinit(&after);
    bench_clear();
    request_release(whole);
    request_release(left);
}

/* The array as jansson sees it, with a comma behind the last element taken out by hand. */
static json_t *array_load(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *end = strstr(copy, ", ]"); end != NULL; end = strstr(end + 1, ", ]"))
        if (strspn(end + 3, " \r\n\t") == strlen(end + 3))
            end[0] = ' ';
    json_t *array = json_loads(copy, JSON_DECODE_INT_AS_REAL, NULL);
    free(copy);
    return array;
}

static void assert_array(const struct batch *batch, const char *text, uint32_t applied, bool is_stripped)
{
    json_t *expected = array_load(batch->body), *found = array_load(text);
    assert_non_null(expected);
    for (size_t i = batch->count; i-- > 0;) {
        json_t *element = json_array_get(expected, i);
        bool is_record = json_object_get(element, "o") != NULL;
        if (!is_expected(batch, i, applied))
            json_array_remove(expected, i);
        else if (is_stripped && is_record) {
            json_object_del(element, "t");
            json_object_del(element, "p");
            json_object_del(element, "o");
        }
    }
    if (found == NULL || !json_equal(expected, found))
        fail_msg("%s\n->\n%s", batch->body, text);
    json_decref(expected);
    json_decref(found);
}

static void test_any_subset_is_cut_and_nothing_else_in_every_shape_and_coding(void **state)
{
    static const enum coding codings[] = { CODING_IDENTITY, CODING_GZIP, CODING_DEFLATE, CODING_DEFLATE_RAW,
                                           CODING_ZSTD };
    uint32_t seed = 11;
    struct batch batch;
    (void)state;
    for (int i = 0; i < 6000; i++) {
        random_batch(&seed, &batch);
        uint32_t applied = random_next(&seed) | (random_next(&seed) % 4 == 0 ? random_next(&seed) << 8 : 0);
        enum coding coding = codings[i % 10 < 5 ? i % 10 : 0];
        char *text = cut(&batch, coding, batch.body, applied, false);
        assert_elements(&batch, text, applied);
        assert_shape(&batch, text, applied);
        if (batch.body[0] == '[')
            assert_array(&batch, text, applied, false);
        free(text);
        text = cut(&batch, coding, batch.body, applied, true);
        if (batch.body[0] == '[')
            assert_array(&batch, text, applied, true);
        assert_null(strstr(text, "\"p\" :"));
        free(text);
    }
}

static void test_Z_05_cut_in_two_steps_is_cut_in_one(void **state)
{
    uint32_t seed = 5;
    struct batch batch;
    (void)state;
    for (int i = 0; i < 6000; i++) {
        random_batch(&seed, &batch);
        uint32_t first = random_next(&seed), second = random_next(&seed);
        char *once = cut(&batch, CODING_IDENTITY, batch.body, first | second, false);
        char *half = cut(&batch, CODING_IDENTITY, batch.body, first, false);
        char *twice = cut(&batch, CODING_IDENTITY, half, first | second, false);
        char *again = cut(&batch, CODING_IDENTITY, half, first, false);
        assert_string_equal(half, again);
        /* A single value that is left over is no batch any more: it goes with what surrounds it. */
        if (strlen(twice) > 0 && strcmp(once, twice) != 0)
            fail_msg("%s\n%s\n%s\n%s", batch.body, half, once, twice);
        free(once);
        free(half);
        free(twice);
        free(again);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stripped_object_is_the_object_without_its_members),
        cmocka_unit_test(test_J_03_an_unkeyed_body_goes_as_it_came),
        cmocka_unit_test(test_J_03_every_raw_request_goes_as_it_came),
        cmocka_unit_test(test_only_new_records_are_sent),
    };
    static const struct CMUnitTest batch_tests[] = {
        cmocka_unit_test(test_any_subset_is_cut_and_nothing_else_in_every_shape_and_coding),
        cmocka_unit_test(test_Z_05_cut_in_two_steps_is_cut_in_one),
    };
    static struct row row_states[sizeof rows / sizeof rows[0]];
    static struct cut_row cut_states[sizeof cut_rows / sizeof cut_rows[0]];
    static struct site_row site_states[sizeof site_rows / sizeof site_rows[0]];
    struct CMUnitTest row_tests[sizeof rows / sizeof rows[0]] = { 0 };
    struct CMUnitTest cut_tests[sizeof cut_rows / sizeof cut_rows[0]] = { 0 };
    struct CMUnitTest site_tests[sizeof site_rows / sizeof site_rows[0]] = { 0 };
    memcpy(row_states, rows, sizeof rows);
    memcpy(cut_states, cut_rows, sizeof cut_rows);
    memcpy(site_states, site_rows, sizeof site_rows);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        row_tests[i] = (struct CMUnitTest){ .name = rows[i].name,
                                            .test_func = test_row,
                                            .initial_state = &row_states[i] };
    for (size_t i = 0; i < sizeof cut_rows / sizeof cut_rows[0]; i++)
        cut_tests[i] = (struct CMUnitTest){ .name = cut_rows[i].name,
                                            .test_func = test_cut_row,
                                            .initial_state = &cut_states[i] };
    for (size_t i = 0; i < sizeof site_rows / sizeof site_rows[0]; i++)
        site_tests[i] = (struct CMUnitTest){ .name = site_rows[i].name,
                                             .test_func = test_site_row,
                                             .initial_state = &site_states[i] };
    int failed_count = cmocka_run_group_tests_name("fields", row_tests, bench_init, bench_deinit);
    failed_count += cmocka_run_group_tests_name("elements", cut_tests, NULL, NULL);
    failed_count += cmocka_run_group_tests_name("one element", site_tests, NULL, NULL);
    failed_count += cmocka_run_group_tests_name("plans", tests, bench_init, bench_deinit);
    return failed_count + cmocka_run_group_tests_name("batches", batch_tests, NULL, NULL);
}
