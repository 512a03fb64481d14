/*
 * test_memory.c - F-10 for the deciders: whichever allocation fails, the answer is "no memory" or the right one, and
 * nothing is left behind (AddressSanitizer's build sees the latter).
 *
 * A run computes a sum over all that its decider says, or 0 when it was told that there is no memory.  The first run
 * without a failure gives the sum that is right.
 */
#include "batch_answer.h"
#include "coding.h"
#include "failing_memory.h"
#include "identify.h"
#include "json_scan.h"
#include "plan.h"
#include "probe.h"
#include "settings.h"
#include "splunk_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { ALLOCATIONS_MAX = 100000 };

typedef uint64_t run_fn(void);

static void sum_bytes(uint64_t *sum, const void *bytes, size_t byte_count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < byte_count; i++)
        *sum = (*sum ^ at[i]) * 1099511628211u;
}

static void sum_number(uint64_t *sum, uint64_t number)
{
    sum_bytes(sum, &number, sizeof number);
}

static void sum_slice(uint64_t *sum, struct slice bytes)
{
    sum_number(sum, bytes.byte_count);
    sum_bytes(sum, bytes.at, bytes.byte_count);
}

/* How many allocations there were. */
static size_t fail_each_allocation(run_fn *run)
{
    uint64_t right = run();
    assert_true(right != 0);
    for (size_t count = 1; count < ALLOCATIONS_MAX; count++) {
        memory_fail_at(count);
        uint64_t sum = run();
        if (!memory_recover()) {
            assert_true(sum == right);
            return count - 1;
        }
        if (sum != 0 && sum != right)
            fail_msg("allocation %zu: another answer", count);
    }
    fail_msg("no end of allocations");
    return 0;
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static char *environment_of(const char *variable)
{
    union {
        const char *in;
        char *out;
    } pointer = { .in = variable };
    return pointer.out;
}

static uint64_t sum_of_settings(const struct settings *settings, char *const environment[])
{
    char *text = NULL;
    size_t byte_count = 0;
    uint64_t sum = 1;
    FILE *out = open_memstream(&text, &byte_count);
    assert_non_null(out);
    settings_print(settings, environment, out);
    fclose(out);
    sum_bytes(&sum, text, byte_count);
    free(text);
    return sum;
}

static uint64_t run_settings(void)
{
    char *environment[] = {
        environment_of("SINKONCE_TARGET=https://[::1]:9443/base/"),
        environment_of("SINKONCE_SCOPE=orders-to-erp"),
        environment_of("SINKONCE_LISTEN=127.0.0.1:8080"),
        environment_of("SINKONCE_TOPIC=header:x-topic,json:/a~1b/0,query:t,const:orders"),
        environment_of("SINKONCE_PARTITION=json:/p"),
        environment_of("SINKONCE_OFFSET=query:o,header:x-offset"),
        environment_of("SINKONCE_ID=json:/id"),
        environment_of("SINKONCE_ID_FORMAT=/t/{topic}/{partition}/{offset}"),
        environment_of("SINKONCE_IN_DOUBT=probe"),
        environment_of(
            "SINKONCE_PROBE_URL=http://erp:81/orders/{json:/id}?from={topic}-{partition}-{offset}"),
        environment_of("SINKONCE_PROBE_APPLIED=status:200-299"),
        environment_of("SINKONCE_PROBE_ABSENT=no-json:/found"),
        environment_of("SINKONCE_ADMIN_TOKEN=secret"),
        environment_of("SINKONCE_TARGET_PROXY=http://proxy:3128"),
        NULL,
    };
    struct settings settings;
    struct settings_mistakes mistakes;
    uint64_t sum = 0;
    if (settings_read(environment, &settings, &mistakes))
        sum = sum_of_settings(&settings, environment);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return sum;
}

static uint64_t run_mistakes(void)
{
    char *environment[] = {
        environment_of("SINKONCE_TARGET=ftp://x"),
        environment_of("SINKONCE_TOPICS=json:/t"),
        environment_of("SINKONCE_WAIT=5"),
        environment_of("SINKONCE_OFFSET=cookie:o"),
        environment_of("SINKONCE_SHAPE=square"),
        environment_of("SINKONCE_PORT_8080_TCP=x"),
        environment_of("SINKONCE_APPLIED_STATUS=2xx,x"),
        NULL,
    };
    struct settings settings;
    struct settings_mistakes mistakes;
    uint64_t sum = 1;
    bool is_good = settings_read(environment, &settings, &mistakes);
    assert_false(is_good); /* never taken for good for want of memory */
    for (size_t i = 0; i < mistakes.line_count; i++)
        sum_bytes(&sum, mistakes.lines[i], strlen(mistakes.lines[i]));
    for (size_t i = 0; i < mistakes.note_count; i++)
        sum_bytes(&sum, mistakes.notes[i], strlen(mistakes.notes[i]));
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return memory_has_failed() ? 0 : sum; /* a line may be missing then */
}

static void test_F10_settings_are_read_or_refused(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(run_settings) > 20);
    assert_true(fail_each_allocation(run_mistakes) > 5);
}

/* ---- records and what is sent ----------------------------------------------------------------------------------- */

struct sample {
    const char *head, *body;
    enum shape_setting shape;
    const char *separator, *envelope;
    bool is_named; /* coordinates where the settings say, not where they are by default */
};

#define POST "POST /p HTTP/1.1\r\nHost: h\r\n"
#define RECORD(offset)                                                                                       \
    "{\"__topic\":\"orders\",\"__partition\":3,\"__offset\":" offset ",\"v\":[1,{\"a\":\"b\"}]}"
static const struct sample samples[] = {
    { POST "\r\n", RECORD("41"), SHAPE_AUTO, "\n", NULL, false },
    { POST "\r\n", "[" RECORD("41") ", " RECORD("42") "," RECORD("41") ",{\"no\":1}]", SHAPE_AUTO, "\n", NULL,
      false },
    { POST "\r\n", RECORD("41") "\n" RECORD("42") "\n" RECORD("43") "\n", SHAPE_AUTO, "\n", NULL, false },
    { POST "\r\n", RECORD("41") RECORD("42"), SHAPE_CONCAT, "\n", NULL, false },
    { POST "\r\n", RECORD("41") ";" RECORD("42"), SHAPE_SEPARATED, ";", NULL, false },
    { POST "\r\n", "{\"data\":[" RECORD("41") "," RECORD("42") "],\"x\":1}", SHAPE_ENVELOPE, "\n", "/data",
      false },
    { "POST /i/_bulk HTTP/1.1\r\nHost: h\r\n\r\n",
      "{\"index\":{\"_id\":\"orders+3+41\"}}\n{\"a\":1}\n{\"delete\":{\"_id\":\"orders+3+42\",\"_index\":"
      "\"i\"}}\n",
      SHAPE_AUTO, "\n", NULL, false },
    { "PUT /?insert_deduplication_token=orders-3-41-49 HTTP/1.1\r\nHost: h\r\n\r\n", "rows", SHAPE_AUTO, "\n",
      NULL, false },
    { POST "ce-id: partition:3/offset:41\r\nce-source: /apis/v1/namespaces/d/kafkasources/k#orders\r\n"
           "ce-knativekafkapartition: 3\r\nce-knativekafkaoffset: 41\r\n\r\n",
      "{}", SHAPE_AUTO, "\n", NULL, false },
    { POST "\r\n", "{\"t\":\"or\\u0064ers\",\"p\":\"3\",\"o\":\"41\"}", SHAPE_AUTO, "\n", NULL, true },
    { POST "Digest: x\r\n\r\n", "[" RECORD("41") "]", SHAPE_AUTO, "\n", NULL, false },
};
enum { SAMPLE_COUNT = sizeof samples / sizeof samples[0], SITES_MAX = 8 };

static const struct sample *sample; /* of the run */
static bool is_packed;              /* its body comes compressed */

static bool text_set(char **ret, const char *text)
{
    *ret = strdup(text);
    return *ret != NULL;
}

static bool settings_make(struct settings *settings)
{
    *settings = (struct settings){ .shape = sample->shape, .records_max = 100, .body_bytes_max = 1 << 20 };
    if (sample->is_named && (locator_list_parse("json:/t", false, &settings->topic) != NULL ||
                             locator_list_parse("json:/p", false, &settings->partition) != NULL ||
                             locator_list_parse("json:/o", false, &settings->offset) != NULL))
        return false;
    if (sample->envelope != NULL && locator_pointer_parse(sample->envelope, &settings->envelope) != NULL)
        return false;
    return text_set(&settings->separator, sample->separator) && text_set(&settings->prefix, "") &&
           text_set(&settings->suffix, "");
}

static bool sum_plan(uint64_t *sum, bool is_built, struct plan *plan)
{
    sum_number(sum, plan->body_bytes);
    for (size_t i = 0; is_built && i < plan->part_count; i++)
        sum_slice(sum, plan->parts[i]);
    plan_deinit(plan);
    return is_built;
}

static bool sum_plans(uint64_t *sum, const struct request *request, const struct identified *identified)
{
    static const enum verdict verdicts[SITES_MAX] = { VERDICT_APPLIED, VERDICT_NEW, VERDICT_APPLIED };
    struct plan plan;
    for (int kind = 0; kind < 3; kind++) {
        bool is_built = plan_build(request, identified, kind == 0 ? NULL : verdicts, kind == 2, &plan);
        if (!sum_plan(sum, is_built, &plan))
            return false;
    }
    for (size_t i = 0; i < identified->site_count; i++) {
        bool is_built = plan_build_site(request, identified, i, true, &plan);
        if (!sum_plan(sum, is_built, &plan))
            return false;
    }
    return true;
}

static bool sum_identified(uint64_t *sum, const struct request *request, const struct identified *identified)
{
    for (size_t i = 0; i < identified->record_count; i++) {
        const struct record *record = &identified->records[i];
        sum_slice(sum, record->key.topic);
        sum_number(sum, (uint64_t)record->key.offset);
        sum_number(sum, record->mark);
    }
    sum_number(sum, identified->site_count);
    return sum_plans(sum, request, identified);
}

static bool sum_request(uint64_t *sum, const struct identifier *identifier, struct slice body)
{
    struct request request = { 0 };
    struct identified identified;
    enum finish why;
    union {
        const char *in;
        char *out;
    } pointer = { .in = body.at };
    char head[600];
    snprintf(head, sizeof head, "%.*s%s\r\n", (int)strlen(sample->head) - 2, sample->head,
             is_packed ? "Content-Encoding: gzip\r\n" : "");
    assert_int_equal(http1_head(head, strlen(head), sizeof head, 1 << 20, &request.head, &why), HTTP1_DONE);
    request.body = pointer.out;
    request.body_bytes = body.byte_count;
    bool is_done = identify(identifier, &request, &identified);
    if (is_done)
        is_done = sum_identified(sum, &request, &identified);
    identified_deinit(&identified);
    return is_done;
}

static uint64_t run_sample(void)
{
    struct settings settings;
    struct slice body = slice_of_text(sample->body);
    struct identifier *identifier = NULL;
    char *packed = NULL;
    uint64_t sum = 1;
    bool is_done = settings_make(&settings);
    if (is_done)
        identifier = identifier_new(&settings);
    is_done = identifier != NULL;
    if (is_done && is_packed) {
        struct slice part = body;
        is_done = coding_pack(CODING_GZIP, &part, 1, &packed, &body.byte_count) == CODING_OK;
        body.at = packed;
    }
    is_done = is_done && sum_request(&sum, identifier, body);
    if (is_done || packed != NULL)
        free(packed);
    identifier_free(identifier);
    settings_deinit(&settings);
    return is_done ? sum : 0;
}

static void test_F10_records_are_found_and_cut_out_or_not_at_all(void **state)
{
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        sample = &samples[i];
        for (int packed = 0; packed < 2; packed++) {
            is_packed = packed == 1;
            count += fail_each_allocation(run_sample);
        }
    }
    assert_true(count > 500);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

static const char bulk_body[] = "{\"index\":{\"_id\":\"orders+3+41\"}}\n{\"a\":1}\n"
                                "{\"index\":{\"_id\":\"orders+3+42\"}}\n{\"a\":2}\n";
static const char bulk_said[] =
    "{\"took\":3,\"errors\":false,\"items\":[{\"index\":{\"_id\":\"orders+3+42\",\"status\":201}}]}";

static uint64_t sum_of_answer(const struct identified *identified)
{
    static const bool sent[SITES_MAX] = { false, true };
    struct settings settings = { 0 };
    enum outcome outcomes[SITES_MAX] = { OUTCOME_NOT_SENT, OUTCOME_NOT_SENT };
    bool has_ack_id;
    int64_t ack_id;
    char *body = NULL;
    const char *content_type;
    size_t body_bytes = 0;
    uint64_t sum = 1;
    settings.applied_status.bits[3] = UINT64_MAX; /* 192 to 255 */
    batch_outcomes(BATCH_BULK, 200, slice_of_text(bulk_said), identified, sent, &settings, outcomes,
                   &has_ack_id, &ack_id);
    if (!batch_answer(BATCH_BULK, 200, slice_of_text(bulk_said), identified, sent, -1, &body, &body_bytes,
                      &content_type))
        return 0;
    sum_bytes(&sum, body, body_bytes);
    sum_number(&sum, outcomes[1]);
    free(body);
    if (outcomes[1] != OUTCOME_APPLIED) /* for want of memory: unknown, and nothing better */
        assert_int_equal(outcomes[1], OUTCOME_UNKNOWN);
    return outcomes[1] == OUTCOME_APPLIED ? sum : 0;
}

static uint64_t run_bulk_answer(void)
{
    static const struct sample bulk = {
        "POST /i/_bulk HTTP/1.1\r\nHost: h\r\n\r\n", bulk_body, SHAPE_AUTO, "\n", NULL, false
    };
    struct settings settings;
    struct request request = { 0 };
    struct identified identified;
    enum finish why;
    union {
        const char *in;
        char *out;
    } pointer = { .in = bulk_body };
    uint64_t sum = 0;
    sample = &bulk;
    struct identifier *identifier = settings_make(&settings) ? identifier_new(&settings) : NULL;
    assert_int_equal(http1_head(bulk.head, strlen(bulk.head), 1000, 1000, &request.head, &why), HTTP1_DONE);
    request.body = pointer.out;
    request.body_bytes = strlen(bulk_body);
    if (identifier != NULL) {
        if (identify(identifier, &request, &identified))
            sum = sum_of_answer(&identified);
        identified_deinit(&identified);
    }
    identifier_free(identifier);
    settings_deinit(&settings);
    return sum;
}

static uint64_t run_poll(void)
{
    int64_t *ids;
    size_t id_count, body_bytes;
    char *body;
    uint64_t sum = 1;
    if (!splunk_poll_read(slice_of_text("{\"acks\":[9,8,7,6,5,4,3,2,1,0,9]}"), &ids, &id_count))
        return 0;
    sum_bytes(&sum, ids, id_count * sizeof ids[0]);
    bool is_written = splunk_poll_write(ids, id_count, &body, &body_bytes);
    if (is_written) {
        sum_bytes(&sum, body, body_bytes);
        free(body);
    }
    free(ids);
    return is_written ? sum : 0;
}

static uint64_t run_template(void)
{
    static const char context[] = "";
    struct probe_template url;
    const struct probe_subject subject = { slice_of_text("s"), slice_of_text("orders"), slice_of(context, 0),
                                           3, 41 };
    char out[200];
    uint64_t sum = 0;
    if (probe_template_parse("http://erp:81/o/{topic}/{partition}?o={offset}&s={scope}", &url) == NULL &&
        probe_template_render(&url, &subject, out, sizeof out)) {
        sum = 1;
        sum_bytes(&sum, out, strlen(out));
    }
    probe_template_deinit(&url);
    return sum;
}

static void test_F10_answers_are_right_or_unknown(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(run_bulk_answer) > 10);
    assert_true(fail_each_allocation(run_poll) > 1);
    assert_true(fail_each_allocation(run_template) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_F10_settings_are_read_or_refused),
        cmocka_unit_test(test_F10_records_are_found_and_cut_out_or_not_at_all),
        cmocka_unit_test(test_F10_answers_are_right_or_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
