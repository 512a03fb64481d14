/*
 * test_batch_answer.c - which dialect a request speaks, and what holds for all of them.
 */
#include "batch_answer.h"

#include "batch_of.h"
#include "request_of.h"

static struct settings settings;

static int settings_init(void **state)
{
    (void)state;
    statuses_fill(&settings);
    return 0;
}

/* ---- dialects ------------------------------------------------------------------------------------------------ */

static enum batch_dialect dialect_of_text(const char *head, enum shape shape)
{
    struct request *request = request_of_texts(head, "{\"entryId\":\"0\"}");
    struct batch batch;
    batch_init(&batch, shape);
    batch_add(&batch, &(struct element){ .record = 0 });
    batch.sites[0].whole = (struct range){ 0, request->body_bytes };
    batch.identified.body = slice_of(request->body, request->body_bytes);
    enum batch_dialect dialect = batch_dialect_of(request, &batch.identified);
    request_release(request);
    return dialect;
}

static void test_shape_and_path_tell_the_dialect(void **state)
{
    (void)state;
    assert_int_equal(dialect_of_text("POST /_bulk HTTP/1.1\r\n", SHAPE_IS_BULK), BATCH_BULK);
    assert_int_equal(dialect_of_text("POST /services/collector/event HTTP/1.1\r\n", SHAPE_IS_CONCAT),
                     BATCH_SPLUNK);
    assert_int_equal(dialect_of_text("POST /base/services/collector HTTP/1.1\r\n", SHAPE_IS_SINGLE),
                     BATCH_SPLUNK);
    assert_int_equal(dialect_of_text("POST /services/collector/raw HTTP/1.1\r\n", SHAPE_IS_OPAQUE),
                     BATCH_SPLUNK);
    assert_int_equal(dialect_of_text("POST /orders-bulk HTTP/1.1\r\n", SHAPE_IS_ENVELOPE), BATCH_DAPR);
    assert_int_equal(dialect_of_text("POST /orders-bulk HTTP/1.1\r\n", SHAPE_IS_JSON_ARRAY), BATCH_PLAIN);
    assert_int_equal(dialect_of_text("POST /?x=/services/collector HTTP/1.1\r\n", SHAPE_IS_CONCAT),
                     BATCH_PLAIN);
}

/* ---- outcomes ------------------------------------------------------------------------------------------------ */

/* Records 1 and 2 are sent, record 0 is not. */
static void batch_fill(struct batch *batch, enum shape shape)
{
    batch_init(batch, shape);
    for (int i = 0; i < 3; i++)
        batch_add(batch, &(struct element){ .kind = BULK_INDEX, .id = "k", .record = i, .is_sent = i > 0 });
}

struct row {
    enum batch_dialect dialect;
    int status;
    const char *body;
    enum outcome first, second; /* of records 1 and 2 */
    int64_t ack_id;             /* -1: none */
};

#define BULK_BODY   "{\"items\":[{\"index\":{\"status\":201}},{\"index\":{\"status\":429,\"error\":{}}}]}"
#define SUCCESS     "{\"text\":\"Success\",\"code\":0}"
#define APPLIED     OUTCOME_APPLIED
#define NOT_APPLIED OUTCOME_NOT_APPLIED
#define UNKNOWN     OUTCOME_UNKNOWN
static const struct row rows[] = {
    { BATCH_PLAIN, 200, "", APPLIED, APPLIED, -1 },
    { BATCH_PLAIN, 200, "{\"errors\":true}", APPLIED, APPLIED, -1 },
    { BATCH_PLAIN, 400, "", NOT_APPLIED, NOT_APPLIED, -1 },
    { BATCH_PLAIN, 500, "", UNKNOWN, UNKNOWN, -1 },
    { BATCH_BULK, 200, BULK_BODY, APPLIED, NOT_APPLIED, -1 },
    { BATCH_BULK, 200, "", UNKNOWN, UNKNOWN, -1 },
    { BATCH_BULK, 204, "", UNKNOWN, UNKNOWN, -1 },
    { BATCH_BULK, 200, "{\"items\":[{\"index\":{\"status\":201}}]}", UNKNOWN, UNKNOWN, -1 },
    { BATCH_BULK, 413, BULK_BODY, NOT_APPLIED, NOT_APPLIED, -1 },
    { BATCH_BULK, 500, BULK_BODY, UNKNOWN, UNKNOWN, -1 },
    { BATCH_SPLUNK, 200, SUCCESS, APPLIED, APPLIED, -1 },
    { BATCH_SPLUNK, 200, "{\"text\":\"Success\",\"code\":0,\"ackId\":7}", UNKNOWN, UNKNOWN, 7 },
    { BATCH_SPLUNK, 200, "{\"text\":\"Incorrect index\",\"code\":7}", UNKNOWN, UNKNOWN, -1 },
    { BATCH_SPLUNK, 200, "", APPLIED, APPLIED, -1 }, /* not the collector's words: the status decides */
    { BATCH_SPLUNK, 200, "ok", APPLIED, APPLIED, -1 },
    { BATCH_SPLUNK, 200, "{\"text\":\"Succ", UNKNOWN, UNKNOWN, -1 },
    { BATCH_SPLUNK, 503, "{\"text\":\"Server is busy\",\"code\":9}", NOT_APPLIED, NOT_APPLIED, -1 },
    { BATCH_SPLUNK, 403, "{\"text\":\"Success\",\"code\":0,\"ackId\":7}", NOT_APPLIED, NOT_APPLIED, -1 },
};

static void test_the_status_decides_unless_it_says_success(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct batch batch;
        bool has_ack_id = true;
        int64_t ack_id = -1;
        batch_fill(&batch, row->dialect == BATCH_BULK ? SHAPE_IS_BULK : SHAPE_IS_CONCAT);
        batch_outcomes(row->dialect, row->status, slice_of_text(row->body), &batch.identified, batch.sent,
                       &settings, batch.outcomes, &has_ack_id, &ack_id);
        if (batch.outcomes[0] != OUTCOME_NOT_SENT || batch.outcomes[1] != row->first ||
            batch.outcomes[2] != row->second || has_ack_id != (row->ack_id >= 0) || ack_id != row->ack_id)
            fail_msg("row %zu", i);
    }
}

static void test_a_status_that_is_set_to_applied_needs_the_same_proof(void **state)
{
    struct settings lenient = settings;
    struct batch batch;
    bool has_ack_id;
    int64_t ack_id;
    (void)state;
    lenient.applied_status.bits[409 / 64] |= UINT64_C(1) << (409 % 64);
    batch_fill(&batch, SHAPE_IS_BULK);
    batch_outcomes(BATCH_BULK, 409, slice_of_text(""), &batch.identified, batch.sent, &lenient,
                   batch.outcomes, &has_ack_id, &ack_id);
    assert_int_equal(batch.outcomes[1], OUTCOME_UNKNOWN);
}

static void test_the_only_element_of_an_opaque_request_stands_for_all_records(void **state)
{
    struct batch batch;
    bool has_ack_id;
    int64_t ack_id;
    (void)state;
    batch_init(&batch, SHAPE_IS_OPAQUE);
    batch_add(&batch, &(struct element){ .record = 0, .is_sent = true });
    batch.identified.record_count = 3;
    batch_outcomes(BATCH_PLAIN, 200, slice_of_text(""), &batch.identified, batch.sent, &settings,
                   batch.outcomes, &has_ack_id, &ack_id);
    for (int i = 0; i < 3; i++)
        assert_int_equal(batch.outcomes[i], OUTCOME_APPLIED);
    assert_int_equal(batch.outcomes[3], OUTCOME_NOT_SENT);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static bool answer(struct batch *batch, enum batch_dialect dialect, int status, const char *text,
                   int64_t ack_id, char **ret_body, const char **ret_type)
{
    size_t byte_count;
    char *body;
    if (!batch_answer(dialect, status, slice_of_text(text), &batch->identified, batch->sent, ack_id, &body,
                      &byte_count, ret_type))
        return false;
    *ret_body = body != NULL ? strndup(body, byte_count) : NULL;
    free(body);
    return true;
}

static void expect_unchanged(struct batch *batch, enum batch_dialect dialect, int status, const char *text)
{
    const char *type;
    char *body;
    assert_true(answer(batch, dialect, status, text, -1, &body, &type));
    assert_null(body);
    assert_null(type);
}

static void test_a_refusal_and_a_whole_batch_are_answered_by_the_target(void **state)
{
    struct batch batch;
    (void)state;
    batch_fill(&batch, SHAPE_IS_BULK);
    expect_unchanged(&batch, BATCH_BULK, 429, "busy");
    expect_unchanged(&batch, BATCH_DAPR, 404, "");
    expect_unchanged(&batch, BATCH_PLAIN, 200, "x");
    expect_unchanged(&batch, BATCH_SPLUNK, 200, "{\"code\":0,\"ackId\":7}");
    batch.sent[0] = true;
    expect_unchanged(&batch, BATCH_BULK, 200, BULK_BODY);
}

static void test_a_batch_that_was_left_out_is_answered_in_its_dialect(void **state)
{
    struct batch batch;
    const char *type;
    char *body;
    (void)state;
    batch_fill(&batch, SHAPE_IS_BULK);
    batch.sent[1] = batch.sent[2] = false;
    assert_true(answer(&batch, BATCH_BULK, 0, "", -1, &body, &type));
    assert_non_null(
        strstr(body, "{\"took\":0,\"errors\":false,\"items\":[{\"index\":{\"_index\":\"orders\""));
    assert_string_equal(type, "application/json");
    free(body);
    assert_true(answer(&batch, BATCH_SPLUNK, 0, "", -1, &body, &type));
    assert_string_equal(body, SUCCESS);
    free(body);
    assert_true(answer(&batch, BATCH_SPLUNK, 0, "", 7, &body, &type));
    assert_string_equal(body, "{\"text\":\"Success\",\"code\":0,\"ackId\":7}");
    free(body);
    assert_true(answer(&batch, BATCH_PLAIN, 0, "", -1, &body, &type));
    assert_null(body);
}

static void test_an_answer_that_does_not_fit_is_not_completed(void **state)
{
    struct batch batch;
    const char *type;
    char *body = NULL;
    (void)state;
    batch_fill(&batch, SHAPE_IS_BULK);
    assert_false(answer(&batch, BATCH_BULK, 200, "{\"items\":[]}", -1, &body, &type));
    assert_true(answer(&batch, BATCH_BULK, 200, BULK_BODY, -1, &body, &type));
    assert_null(type);
    free(body);
}

static bool needs_product(const char *fields)
{
    char head[256];
    snprintf(head, sizeof head, "POST /_bulk HTTP/1.1\r\n%s", fields);
    struct request *request = request_of_texts(head, "");
    bool is_needed = batch_needs_product(request);
    request_release(request);
    return is_needed;
}

static void test_clients_that_look_for_the_product_are_known_by_their_fields(void **state)
{
    (void)state;
    assert_true(needs_product("Accept: application/vnd.elasticsearch+json; compatible-with=9\r\n"));
    assert_true(needs_product("content-type: application/vnd.elasticsearch+x-ndjson;compatible-with=8\r\n"));
    assert_true(needs_product("X-Elastic-Client-Meta: es=9.1.0,jv=17\r\n"));
    assert_false(needs_product("Accept: application/json\r\nContent-Type: application/json\r\n"));
    assert_false(needs_product("User-Agent: opensearch-java\r\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shape_and_path_tell_the_dialect),
        cmocka_unit_test(test_the_status_decides_unless_it_says_success),
        cmocka_unit_test(test_a_status_that_is_set_to_applied_needs_the_same_proof),
        cmocka_unit_test(test_the_only_element_of_an_opaque_request_stands_for_all_records),
        cmocka_unit_test(test_a_refusal_and_a_whole_batch_are_answered_by_the_target),
        cmocka_unit_test(test_a_batch_that_was_left_out_is_answered_in_its_dialect),
        cmocka_unit_test(test_an_answer_that_does_not_fit_is_not_completed),
        cmocka_unit_test(test_clients_that_look_for_the_product_are_known_by_their_fields),
    };
    return cmocka_run_group_tests_name("batch_answer", tests, settings_init, NULL);
}
