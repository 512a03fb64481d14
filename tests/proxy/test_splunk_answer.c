/*
 * test_splunk_answer.c - answers of the Event Collector, and the bodies of acknowledgement polls.
 */
#include "splunk_answer.h"

#include "batch_of.h"

struct row {
    const char *body;
    enum splunk_proof proof;
    int64_t ack_id;
};

static const struct row rows[] = {
    { "{\"text\":\"Success\",\"code\":0}", SPLUNK_ACCEPTED, -7 },
    { " {\"code\" : 0 , \"text\":\"Success\"}\n", SPLUNK_ACCEPTED, -7 },
    { "{\"text\":\"Success\",\"code\":0,\"ackId\":null}", SPLUNK_ACCEPTED, -7 },
    { "{\"text\":\"Success\",\"code\":0,\"ackId\":0}", SPLUNK_ACKNOWLEDGES, 0 },
    { "{\"text\":\"Success\",\"code\":0,\"ackId\":7}", SPLUNK_ACKNOWLEDGES, 7 },
    { "{\"ackId\":9223372036854775807,\"code\":0}", SPLUNK_ACKNOWLEDGES, INT64_MAX },
    { "{\"ackId\":9223372036854775808,\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"ackId\":-1,\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"ackId\":\"7\",\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"ackId\":7.0,\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"ackId\":7,\"ackId\":8,\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"ackId\":7}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"text\":\"Success\"}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"text\":\"Server is busy\",\"code\":9}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"code\":\"0\"}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"code\":0.0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"code\":9,\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"a\":{\"code\":0}}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"code\":0}{\"code\":0}", SPLUNK_PROVES_NOTHING, -7 },
    { "{\"code\":0", SPLUNK_PROVES_NOTHING, -7 },
    { "[0]", SPLUNK_SILENT, -7 },
    { "<html>", SPLUNK_SILENT, -7 },
    { "", SPLUNK_SILENT, -7 },
};

static void test_only_code_0_proves_and_an_ack_id_puts_it_off(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t ack_id = -7;
        if (splunk_read(slice_of_text(rows[i].body), &ack_id) != rows[i].proof || ack_id != rows[i].ack_id)
            fail_msg("%s", rows[i].body);
    }
}

static void expect_text(char *body, size_t byte_count, const char *expected)
{
    assert_int_equal(byte_count, strlen(expected));
    assert_memory_equal(body, expected, byte_count);
    free(body);
}

static void test_a_made_up_success_has_an_ack_id_when_one_is_given(void **state)
{
    char *body;
    size_t byte_count;
    (void)state;
    assert_true(splunk_success(-1, &body, &byte_count));
    expect_text(body, byte_count, "{\"text\":\"Success\",\"code\":0}");
    assert_true(splunk_success(INT64_C(4611686018427387905), &body, &byte_count));
    expect_text(body, byte_count, "{\"text\":\"Success\",\"code\":0,\"ackId\":4611686018427387905}");
}

static void expect_poll(const char *body, const int64_t expected[], size_t expected_count)
{
    int64_t *ids;
    size_t count;
    assert_true(splunk_poll_read(slice_of_text(body), &ids, &count));
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++)
        assert_true(ids[i] == expected[i]);
    free(ids);
}

static void test_a_poll_names_its_ids_once_and_in_order(void **state)
{
    (void)state;
    expect_poll("{\"acks\":[7,8]}", (const int64_t[]){ 7, 8 }, 2);
    expect_poll(" { \"acks\" : [ 8 , 7,8 , -1 ] } ", (const int64_t[]){ -1, 7, 8 }, 3);
    expect_poll("{\"acks\":[4611686018427387905,9223372036854775807,0]}",
                (const int64_t[]){ 0, INT64_C(4611686018427387905), INT64_MAX }, 3);
    expect_poll("{\"acks\":[]}", NULL, 0);
}

static void test_what_is_no_poll_is_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "[]",
        "{}",
        "{\"acks\":{}}",
        "{\"acks\":7}",
        "{\"acks\":[\"7\"]}",
        "{\"acks\":[7.5]}",
        "{\"acks\":[1e3]}",
        "{\"acks\":[9223372036854775808]}",
        "{\"acks\":[7]",
        "{\"acks\":[7]}x",
        "{\"acks\":[7],\"acks\":[8]}",
        "{\"acks\":[7,]}",
        "{\"acks\":[-]}",
        "{\"acks\":[null]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        int64_t *ids;
        size_t count;
        if (splunk_poll_read(slice_of_text(bodies[i]), &ids, &count))
            fail_msg("%s", bodies[i]);
    }
}

static void test_polls_and_their_answers_are_written_with_no_other_member(void **state)
{
    const int64_t ids[] = { -1, 7, INT64_C(4611686018427387905) };
    const bool is_done[] = { false, false, true };
    char *body;
    size_t byte_count;
    (void)state;
    assert_true(splunk_poll_write(ids, 3, &body, &byte_count));
    expect_text(body, byte_count, "{\"acks\":[-1,7,4611686018427387905]}");
    assert_true(splunk_poll_write(ids, 0, &body, &byte_count));
    expect_text(body, byte_count, "{\"acks\":[]}");
    assert_true(splunk_poll_answer_write(ids, is_done, 3, &body, &byte_count));
    expect_text(body, byte_count, "{\"acks\":{\"-1\":false,\"7\":false,\"4611686018427387905\":true}}");
    assert_true(splunk_poll_answer_write(ids, is_done, 0, &body, &byte_count));
    expect_text(body, byte_count, "{\"acks\":{}}");
}

/* Bits of DONE are those of ids 5, 7 and 9. */
static const struct answer_row {
    const char *body;
    bool is_good;
    unsigned done;
} answer_rows[] = {
    { "{\"acks\":{\"5\":true,\"7\":false,\"9\":true}}", true, 5 },
    { "{\"acks\":{\"9\":true,\"5\":false}}", true, 4 },
    { "{ \"acks\" : { \"7\" : true } , \"more\" : 1 }", true, 2 },
    { "{\"acks\":{\"6\":true,\"x\":true,\"\":true,\"07\":true,\"7.0\":true}}", true, 0 },
    { "{\"acks\":{\"5\":1,\"7\":\"true\",\"9\":null}}", true, 0 },
    { "{\"acks\":{\"5\":true,\"5\":false,\"7\":false,\"7\":true,\"9\":true,\"9\":true}}", true, 4 },
    { "{\"acks\":{}}", true, 0 },
    { "{\"acks\":[5]}", false, 0 },
    { "{\"acks\":{\"5\":true}", false, 0 },
    { "{\"acks\":{\"5\":true},\"acks\":{}}", false, 0 },
    { "{\"text\":\"ACK is disabled\",\"code\":14}", false, 0 },
    { "", false, 0 },
};

static void test_only_true_is_done(void **state)
{
    const int64_t ids[] = { 5, 7, 9 };
    (void)state;
    for (size_t i = 0; i < sizeof answer_rows / sizeof answer_rows[0]; i++) {
        bool is_done[] = { true, true, true };
        bool is_good = splunk_poll_answer_read(slice_of_text(answer_rows[i].body), ids, 3, is_done);
        unsigned done = is_done[0] * 1u + is_done[1] * 2u + is_done[2] * 4u;
        if (is_good != answer_rows[i].is_good || done != answer_rows[i].done)
            fail_msg("%s: %u", answer_rows[i].body, done);
    }
    assert_true(splunk_poll_answer_read(slice_of_text("{\"acks\":{\"5\":true}}"), NULL, 0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_code_0_proves_and_an_ack_id_puts_it_off),
        cmocka_unit_test(test_a_made_up_success_has_an_ack_id_when_one_is_given),
        cmocka_unit_test(test_a_poll_names_its_ids_once_and_in_order),
        cmocka_unit_test(test_what_is_no_poll_is_refused),
        cmocka_unit_test(test_polls_and_their_answers_are_written_with_no_other_member),
        cmocka_unit_test(test_only_true_is_done),
    };
    return cmocka_run_group_tests_name("splunk_answer", tests, NULL, NULL);
}
