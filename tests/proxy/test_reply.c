/*
 * test_reply.c - the answers of our own, and the target's on its way back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <jansson.h>
#include "reply.h"

static const struct settings settings = { .retry_after_ms = 1500, .duplicate_status = 200 };

static const struct http1_field *field(const struct reply_room *room, const char *name)
{
    return http1_field_find(room->reply.fields, room->reply.field_count, name);
}

static void assert_field(const struct reply_room *room, const char *name, const char *value)
{
    const struct http1_field *found = field(room, name);
    assert_non_null(found);
    assert_true(slice_equals_text(found->value, value));
}

static void test_every_failure_of_our_own_is_never_a_redirection_and_5xx_or_a_refusal(void **state)
{
    (void)state;
    for (int finish = FINISH_NONE + 1; finish < FINISH_COUNT; finish++) {
        const struct finish_row *row = &finish_rows[finish];
        assert_true(row->status == 0 || row->status / 100 != 3);
        assert_true(row->words[0] != '\0');
    }
}

static void test_503_says_when_to_come_back_rounded_up(void **state)
{
    struct reply_room room;
    (void)state;
    reply_own(&room, FINISH_BUSY, DIALECT_PLAIN, &settings, NULL, 0, 0);
    assert_int_equal(room.reply.status, 503);
    assert_field(&room, "retry-after", "2");
    assert_field(&room, "sinkonce-outcome", "busy");
    assert_null(field(&room, "set-cookie"));
}

static void test_doubt_names_at_most_ten_records_and_the_total(void **state)
{
    static char topic[TOPIC_BYTES_MAX];
    struct record records[REPLY_RECORDS_NAMED_MAX];
    const struct record *named[REPLY_RECORDS_NAMED_MAX];
    struct reply_room room;
    (void)state;
    memset(topic, 't', sizeof topic);
    for (size_t i = 0; i < REPLY_RECORDS_NAMED_MAX; i++) {
        records[i] = (struct record){ { slice_of(topic, sizeof topic), INT32_MAX, INT64_MAX }, MARK_NONE };
        named[i] = &records[i];
    }
    reply_own(&room, FINISH_IN_DOUBT, DIALECT_PLAIN, &settings, named, REPLY_RECORDS_NAMED_MAX, 500);
    json_t *body = json_loadb(room.reply.body.at, room.reply.body.byte_count, 0, NULL);
    assert_non_null(body);
    assert_string_equal(json_string_value(json_object_get(body, "error")), "in-doubt");
    assert_int_equal(json_integer_value(json_object_get(body, "total")), 500);
    json_t *list = json_object_get(body, "records");
    assert_int_equal(json_array_size(list), REPLY_RECORDS_NAMED_MAX);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 9), "offset")), INT64_MAX);
    json_decref(body);
}

static void test_splunk_is_told_in_its_own_words(void **state)
{
    struct reply_room room;
    (void)state;
    reply_own(&room, FINISH_IN_DOUBT, DIALECT_SPLUNK, &settings, NULL, 0, 0);
    json_t *body = json_loadb(room.reply.body.at, room.reply.body.byte_count, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(body, "code")), 9);
    assert_string_equal(json_string_value(json_object_get(body, "text")), "Server is busy");
    json_decref(body);
}

static void test_clickhouse_gets_a_code_that_connect_tries_again(void **state)
{
    struct reply_room room;
    (void)state;
    reply_own(&room, FINISH_NOT_SENT, DIALECT_CLICKHOUSE, &settings, NULL, 0, 0);
    assert_field(&room, "x-clickhouse-exception-code", "210");
    assert_memory_equal(room.reply.body.at, "Code: 210. DB::Exception:", 25);
}

static void test_duplicate_gets_the_stored_answer_and_is_marked(void **state)
{
    struct reply_room room;
    struct stored_reply stored = { 201, slice_of_text("application/json"), slice_of_text("{\"id\":7}") };
    (void)state;
    reply_success(&room, FINISH_DUPLICATE, DIALECT_PLAIN, &stored, true, &settings);
    assert_int_equal(room.reply.status, 201);
    assert_field(&room, "content-type", "application/json");
    assert_field(&room, "idempotency-replayed", "true");
    assert_field(&room, "sinkonce-outcome", "duplicate");
    assert_true(slice_equals_text(room.reply.body, "{\"id\":7}"));
}

static void test_duplicate_without_a_stored_answer_is_an_empty_success(void **state)
{
    struct reply_room room;
    struct stored_reply none = { 0 };
    (void)state;
    reply_success(&room, FINISH_DUPLICATE, DIALECT_PLAIN, &none, true, &settings);
    assert_int_equal(room.reply.status, 200);
    assert_int_equal(room.reply.body.byte_count, 0);
    assert_null(field(&room, "content-type"));
}

static struct http1_response response_of(const char *text)
{
    static struct http1_response response;
    assert_int_equal(http1_response(text, strlen(text), &response), HTTP1_DONE);
    return response;
}

static void test_R_04_answer_passes_less_hop_by_hop_fields_and_our_own_names(void **state)
{
    struct reply_room room;
    struct http1_response response =
        response_of("HTTP/1.1 200 Fine\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
                    "Content-Length: 2\r\nDate: Mon, 30 Nov 2026 00:00:00 GMT\r\nX-A: 1\r\nx-a: 2\r\n"
                    "Sinkonce-Outcome: duplicate\r\nIdempotency-Replayed: true\r\n\r\n");
    (void)state;
    char *body = malloc(2);
    memcpy(body, "ok", 2);
    reply_pass(&room, &response, body, 2, false, NULL);
    assert_int_equal(room.reply.field_count, 3);
    assert_true(room.reply.has_date);
    assert_true(slice_equals_text(room.reply.fields[1].value, "1"));
    assert_true(slice_equals_text(room.reply.fields[2].name, "x-a"));
    assert_ptr_equal(room.reply.body_owned, body);
    free(body);
}

static void test_R_20_head_keeps_the_length_and_204_has_none(void **state)
{
    struct reply_room room;
    struct http1_response head = response_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    (void)state;
    reply_pass(&room, &head, NULL, 0, true, NULL);
    assert_true(room.reply.is_body_left_out && room.reply.has_length);
    assert_int_equal(room.reply.length, 9);
    struct http1_response empty = response_of("HTTP/1.1 204 No Content\r\n\r\n");
    reply_pass(&room, &empty, NULL, 0, false, NULL);
    assert_true(room.reply.is_body_left_out && !room.reply.has_length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_failure_of_our_own_is_never_a_redirection_and_5xx_or_a_refusal),
        cmocka_unit_test(test_503_says_when_to_come_back_rounded_up),
        cmocka_unit_test(test_doubt_names_at_most_ten_records_and_the_total),
        cmocka_unit_test(test_splunk_is_told_in_its_own_words),
        cmocka_unit_test(test_clickhouse_gets_a_code_that_connect_tries_again),
        cmocka_unit_test(test_duplicate_gets_the_stored_answer_and_is_marked),
        cmocka_unit_test(test_duplicate_without_a_stored_answer_is_an_empty_success),
        cmocka_unit_test(test_R_04_answer_passes_less_hop_by_hop_fields_and_our_own_names),
        cmocka_unit_test(test_R_20_head_keeps_the_length_and_204_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
