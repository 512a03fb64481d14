/*
 * test_dapr_answer.c - answers to Dapr's bulk subscriptions, per entry.
 */
#include "dapr_answer.h"

#include "batch_of.h"

/* Four entries, b first: 0 applied before, 1 and 2 sent, 3 without coordinates and sent. */
static const char *const entries[] = {
    "{\"entryId\":\"b\",\"event\":{\"entryId\":\"x\"}}",
    "{ \"event\":1, \"entryId\" : \"a\" }",
    "{\"entryId\":\"c\\\"\"}",
    "{\"entryId\":\"d\"}",
};

static void batch_fill(struct batch *batch, const char *const texts[], char body[], size_t body_bytes_max)
{
    size_t at = (size_t)snprintf(body, body_bytes_max, "{\"entries\":[");
    batch_init(batch, SHAPE_IS_ENVELOPE);
    for (int i = 0; i < 4; i++) {
        batch_add(batch, &(struct element){ .record = i == 3 ? UNKEYED : i, .is_sent = i > 0 });
        batch->sites[i].whole.begin = at;
        at += (size_t)snprintf(body + at, body_bytes_max - at, "%s", texts[i]);
        batch->sites[i].whole.end = at;
        at += (size_t)snprintf(body + at, body_bytes_max - at, ",");
    }
    batch->identified.body = slice_of(body, at);
}

struct row {
    const char *answer;
    bool is_fit;
    enum outcome outcomes[2]; /* of records 1 and 2 */
};

#define STATUS(id, status) "{\"entryId\":\"" id "\",\"status\":\"" status "\"}"
#define APPLIED            OUTCOME_APPLIED
#define NOT_APPLIED        OUTCOME_NOT_APPLIED
#define UNKNOWN            OUTCOME_UNKNOWN
static const struct row rows[] = {
    { "", true, { APPLIED, APPLIED } },
    { " \r\n", true, { APPLIED, APPLIED } },
    { "{\"statuses\":[" STATUS("a", "SUCCESS") "," STATUS("c\\\"", "RETRY") "]}",
      true,
      { APPLIED, NOT_APPLIED } },
    { "{\"statuses\":[" STATUS("c\\\"", "DROP") "," STATUS("a", "SUCCESS") "]}",
      true,
      { APPLIED, NOT_APPLIED } },
    { "{\"statuses\":[" STATUS("a", "") "," STATUS("c\\\"", "success") "]}", true, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[" STATUS("a", "SUCCESS") "]}", true, { APPLIED, UNKNOWN } },
    { "{\"statuses\":[" STATUS("a", "SUCCESS") "," STATUS("a", "RETRY") "]}", true, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[{\"entryId\":\"a\"},{\"status\":\"SUCCESS\"},null,7]}", true, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[{\"entryId\":7,\"status\":\"SUCCESS\"}]}", true, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[{\"entryId\":\"a\",\"status\":\"RETRY\",\"status\":\"SUCCESS\"}]}",
      true,
      { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[]}", true, { UNKNOWN, UNKNOWN } },
    { "{\"status\":\"SUCCESS\"}", false, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":{}}", false, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[]", false, { UNKNOWN, UNKNOWN } },
    { "{\"statuses\":[],\"statuses\":[]}", false, { UNKNOWN, UNKNOWN } },
    { "ok", false, { UNKNOWN, UNKNOWN } },
};

static void test_each_entry_is_judged_by_its_own_status_A8(void **state)
{
    char body[512];
    struct batch batch;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        batch_fill(&batch, entries, body, sizeof body);
        bool is_fit =
            dapr_outcomes(slice_of_text(rows[i].answer), &batch.identified, batch.sent, batch.outcomes);
        if (is_fit != rows[i].is_fit)
            fail_msg("%s", rows[i].answer);
        for (size_t k = 0; k < 2; k++) {
            if (batch.outcomes[1 + k] != (is_fit ? rows[i].outcomes[k] : OUTCOME_NOT_SENT))
                fail_msg("%s: %d", rows[i].answer, (int)batch.outcomes[1 + k]);
        }
        assert_int_equal(batch.outcomes[0], OUTCOME_NOT_SENT);
    }
}

static void expect_answer(bool has_answer, const char *answer, const char *expected)
{
    char body[512], *bytes;
    size_t byte_count;
    struct batch batch;
    batch_fill(&batch, entries, body, sizeof body);
    for (int i = 0; !has_answer && i < 4; i++)
        batch.sent[i] = false;
    bool is_fit =
        dapr_answer(has_answer, slice_of_text(answer), &batch.identified, batch.sent, &bytes, &byte_count);
    assert_true(is_fit == (expected != NULL));
    if (!is_fit)
        return;
    assert_int_equal(byte_count, strlen(expected));
    assert_memory_equal(bytes, expected, byte_count);
    free(bytes);
}

static void test_every_entry_is_named_in_the_order_of_the_request(void **state)
{
    (void)state;
    expect_answer(false, "",
                  "{\"statuses\":[" STATUS("b", "SUCCESS") "," STATUS("a", "SUCCESS") "," STATUS(
                      "c\\\"", "SUCCESS") "," STATUS("d", "SUCCESS") "]}");
    expect_answer(true, "",
                  "{\"statuses\":[" STATUS("b", "SUCCESS") "," STATUS("a", "SUCCESS") "," STATUS(
                      "c\\\"", "SUCCESS") "," STATUS("d", "SUCCESS") "]}");
    expect_answer(
        true,
        "{\"statuses\":[" STATUS("d", "DROP") ",{\"status\":\"RETRY\", \"entryId\":\"c\\\"\"}," STATUS(
            "a", "SUCCESS") "," STATUS("b", "RETRY") "," STATUS("z", "RETRY") "]}",
        "{\"statuses\":[" STATUS("b", "SUCCESS") "," STATUS(
            "a", "SUCCESS") ",{\"status\":\"RETRY\", \"entryId\":\"c\\\"\"}," STATUS("d", "DROP") "]}");
}

static void test_an_answer_that_leaves_out_an_entry_cannot_be_completed(void **state)
{
    (void)state;
    expect_answer(true, "{\"statuses\":[" STATUS("a", "SUCCESS") "," STATUS("d", "SUCCESS") "]}", NULL);
    expect_answer(true, "nonsense", NULL);
}

static void test_entries_that_cannot_be_told_apart_prove_nothing(void **state)
{
    static const char *const twice[] = { "{\"entryId\":\"a\"}", "{\"entryId\":\"b\"}", "{\"entryId\":\"b\"}",
                                         "{\"entryId\":\"d\"}" };
    static const char *const without[] = { "{\"entryId\":\"a\"}", "{\"entryId\":\"b\"}", "{\"entryId\":1}",
                                           "{\"entryId\":\"d\"}" };
    char body[512];
    struct batch batch;
    (void)state;
    batch_fill(&batch, twice, body, sizeof body);
    assert_false(dapr_outcomes(slice_of_text(""), &batch.identified, batch.sent, batch.outcomes));
    batch_fill(&batch, without, body, sizeof body);
    assert_false(dapr_outcomes(slice_of_text(""), &batch.identified, batch.sent, batch.outcomes));
    assert_true(dapr_is_bulk(&batch.identified));
}

static void test_an_envelope_without_entry_ids_is_not_daprs(void **state)
{
    static const char *const rows_of_others[] = { "{\"id\":1}", "{\"id\":2}", "{}", "{}" };
    char body[512];
    struct batch batch;
    (void)state;
    batch_fill(&batch, rows_of_others, body, sizeof body);
    assert_false(dapr_is_bulk(&batch.identified));
    batch_fill(&batch, entries, body, sizeof body);
    assert_true(dapr_is_bulk(&batch.identified));
    batch.identified.shape = SHAPE_IS_JSON_ARRAY;
    assert_false(dapr_is_bulk(&batch.identified));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_entry_is_judged_by_its_own_status_A8),
        cmocka_unit_test(test_every_entry_is_named_in_the_order_of_the_request),
        cmocka_unit_test(test_an_answer_that_leaves_out_an_entry_cannot_be_completed),
        cmocka_unit_test(test_entries_that_cannot_be_told_apart_prove_nothing),
        cmocka_unit_test(test_an_envelope_without_entry_ids_is_not_daprs),
    };
    return cmocka_run_group_tests_name("dapr_answer", tests, NULL, NULL);
}
