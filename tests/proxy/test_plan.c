/*
 * test_plan.c - which bytes are sent on: all of them, or all but the coordinate fields.
 *
 * jansson says what an object without some of its members is; that the other bytes are untouched is checked here.
 */
#include "plan.h"

#include <jansson.h>
#include "request_of.h"

#define POST "POST /p HTTP/1.1\r\n"

/* Where topic, partition and offset are. */
static const char *const places[] = { "json:/t", "json:/p", "json:/o" };

static void settings_of(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->records_max = 1;
    assert_null(locator_list_parse(places[0], false, &settings->topic));
    assert_null(locator_list_parse(places[1], false, &settings->partition));
    assert_null(locator_list_parse(places[2], false, &settings->offset));
}

struct bench {
    struct settings settings;
    struct identifier *identifier;
};

static struct bench bench;

static int bench_init(void **state)
{
    (void)state;
    settings_of(&bench.settings);
    bench.identifier = identifier_new(&bench.settings);
    return bench.identifier == NULL;
}

static int bench_deinit(void **state)
{
    (void)state;
    identifier_free(bench.identifier);
    locator_list_deinit(&bench.settings.topic);
    locator_list_deinit(&bench.settings.partition);
    locator_list_deinit(&bench.settings.offset);
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
    static const char *const bodies[] = { "plain", "{\"a\" : 1.10,}", "[{\"t\":\"x\",\"p\":0,\"o\":1}]", "" };
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

/* What the shapes of many records will hand over. */
static void test_records_between_other_bytes_are_cut_one_by_one(void **state)
{
    static char body[] = "[AxA,BB,CyC]";
    static struct record records[3];
    static struct record_site sites[] = { { { 1, 4 }, 0, false, 0, 1 },
                                          { { 5, 7 }, 1, false, 1, 0 },
                                          { { 8, 11 }, 2, false, 1, 1 } };
    static struct range ranges[] = { { 2, 3 }, { 9, 10 } };
    static const enum verdict verdicts[] = { VERDICT_NEW, VERDICT_APPLIED, VERDICT_NEW };
    struct request *request = request_of_texts(POST, body);
    struct identified identified = {
        .records = records, .sites = sites, .record_count = 3, .strip_ranges = ranges, .strip_range_count = 2
    };
    struct plan plan;
    char joined[20] = "";
    (void)state;
    assert_true(plan_build(request, &identified, verdicts, true, &plan));
    for (size_t i = 0; i < plan.part_count; i++)
        strncat(joined, plan.parts[i].at, plan.parts[i].byte_count);
    assert_string_equal(joined, "[AA,,CC]");
    plan_deinit(&plan);
    request_release(request);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stripped_object_is_the_object_without_its_members),
        cmocka_unit_test(test_J_03_an_unkeyed_body_goes_as_it_came),
        cmocka_unit_test(test_J_03_every_raw_request_goes_as_it_came),
        cmocka_unit_test(test_only_new_records_are_sent),
        cmocka_unit_test(test_records_between_other_bytes_are_cut_one_by_one),
    };
    static struct row row_states[sizeof rows / sizeof rows[0]];
    struct CMUnitTest row_tests[sizeof rows / sizeof rows[0]] = { 0 };
    memcpy(row_states, rows, sizeof rows);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        row_tests[i] = (struct CMUnitTest){ .name = rows[i].name,
                                            .test_func = test_row,
                                            .initial_state = &row_states[i] };
    int failed_count = cmocka_run_group_tests_name("cuts", row_tests, bench_init, bench_deinit);
    return failed_count + cmocka_run_group_tests_name("plans", tests, bench_init, bench_deinit);
}
