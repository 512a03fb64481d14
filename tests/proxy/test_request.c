/*
 * test_request.c - the memory of a request: its own copy of the head, and room for a body out of a pool that all share.
 */
#include "request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { FIRST = REQUEST_BODY_ROOM_FIRST };

static const char peer[REQUEST_PEER_BYTES] = "192.0.2.1:50000";
static struct body_pool pool;

static struct request *begin(size_t pool_bytes)
{
    atomic_init(&pool.taken_bytes, 0);
    pool.bytes_max = pool_bytes;
    struct request *request = request_new(&pool, peer, true);
    assert_non_null(request);
    return request;
}

static size_t taken_bytes(void)
{
    return atomic_load(&pool.taken_bytes);
}

static void test_a_new_request_is_empty_and_knows_where_it_came_from(void **state)
{
    (void)state;
    struct request *request = begin(FIRST);
    assert_null(request->bytes);
    assert_null(request->body);
    assert_int_equal(request->body_bytes, 0);
    assert_string_equal(request->peer, peer);
    assert_true(request->is_trusted_peer);
    assert_true(request->started_ns > 0);
    request_free(request);
    request_free(NULL);
}

static void test_the_head_that_is_kept_needs_the_bytes_it_was_read_from_no_more(void **state)
{
    char bytes[] = "POST /orders?a=1 HTTP/1.1\r\nHost: target\r\nContent-Length: 2\r\nX: y\r\n\r\n{}";
    enum finish why = FINISH_NONE;
    (void)state;
    struct request *request = begin(FIRST);
    assert_int_equal(http1_head(bytes, sizeof bytes - 1, 4096, 4096, &request->head, &why), HTTP1_DONE);
    assert_true(request_head_keep(request, bytes));
    memset(bytes, '#', sizeof bytes);
    assert_int_equal(request->byte_count, sizeof bytes - 1 - 2);
    assert_true(slice_equals_text(request->head.method_text, "POST"));
    assert_true(slice_equals_text(request->head.target, "/orders?a=1"));
    assert_true(slice_equals_text(request->head.path, "/orders"));
    assert_true(slice_equals_text(request->head.query, "a=1"));
    assert_true(slice_equals_text(request->head.host, "target"));
    const struct http1_field *field = http1_field_find(request->head.fields, request->head.field_count, "x");
    assert_non_null(field);
    assert_true(slice_equals_text(field->name, "X"));
    assert_true(slice_equals_text(field->value, "y"));
    request_free(request);
}

static void test_a_body_gets_room_by_doubling_and_no_more_than_its_bound(void **state)
{
    (void)state;
    struct request *request = begin(100 * FIRST);
    assert_int_equal(request_body_grow(request, 0, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, 0);
    assert_int_equal(request_body_grow(request, 1, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, FIRST);
    request->body_bytes = FIRST;
    assert_int_equal(request_body_grow(request, 1, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, 2 * FIRST);
    assert_int_equal(request_body_grow(request, FIRST, 9 * FIRST), FINISH_NONE); /* it is there */
    assert_int_equal(request->body_room, 2 * FIRST);
    request->body_bytes = 2 * FIRST;
    assert_int_equal(request_body_grow(request, 3 * FIRST, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, 8 * FIRST);
    request->body_bytes = 8 * FIRST;
    assert_int_equal(request_body_grow(request, FIRST, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, 9 * FIRST);
    assert_int_equal(taken_bytes(), 9 * FIRST);
    memset(request->body, 'x', 9 * FIRST);
    request_free(request);
    assert_int_equal(taken_bytes(), 0);
}

static void test_a_small_body_takes_only_what_it_needs(void **state)
{
    (void)state;
    struct request *request = begin(100 * FIRST);
    assert_int_equal(request_body_grow(request, 7, 7), FINISH_NONE);
    assert_int_equal(request->body_room, 7);
    assert_int_equal(taken_bytes(), 7);
    request_free(request);
}

static void test_bodies_together_stay_within_the_pool_and_what_is_there_stays_whole(void **state)
{
    (void)state;
    struct request *request = begin(3 * FIRST);
    struct request *other = request_new(&pool, peer, false);
    assert_non_null(other);
    assert_int_equal(request_body_grow(request, FIRST, 9 * FIRST), FINISH_NONE);
    assert_int_equal(request_body_grow(other, FIRST, 9 * FIRST), FINISH_NONE);
    memset(request->body, 'a', FIRST);
    request->body_bytes = FIRST;
    other->body_bytes = FIRST;
    assert_int_equal(request_body_grow(request, 1, 9 * FIRST), FINISH_NONE); /* up to the pool's last byte */
    assert_int_equal(taken_bytes(), 3 * FIRST);
    assert_int_equal(request_body_grow(other, 1, 9 * FIRST), FINISH_BUSY);
    assert_int_equal(other->body_room, FIRST);
    assert_int_equal(taken_bytes(), 3 * FIRST);
    assert_false(request_room_take(other, 1));
    assert_int_equal(request->body[FIRST - 1], 'a');
    request_free(request);
    assert_int_equal(taken_bytes(), FIRST);
    assert_int_equal(request_body_grow(other, 1, 9 * FIRST), FINISH_NONE);
    request_free(other);
    assert_int_equal(taken_bytes(), 0);
}

static void test_alone_a_request_gets_what_it_needs_and_keeps_others_out(void **state)
{
    (void)state;
    struct request *request = begin(2 * FIRST);
    struct request *other = request_new(&pool, peer, false);
    assert_non_null(other);
    assert_int_equal(request_body_grow(request, FIRST, 9 * FIRST), FINISH_NONE);
    assert_true(request_room_take(request, 3 * FIRST));
    assert_true(body_pool_is_full(&pool));
    assert_false(request_room_take(other, 1));
    assert_int_equal(taken_bytes(), 4 * FIRST);
    request_free(request);
    assert_true(request_room_take(other, 1));
    request_free(other);
    assert_int_equal(taken_bytes(), 0);
}

static void test_what_is_there_anyhow_keeps_out_what_comes_next(void **state)
{
    (void)state;
    struct request *request = begin(2 * FIRST);
    body_pool_add(&pool, 2 * FIRST);
    assert_false(body_pool_is_full(&pool));
    body_pool_add(&pool, FIRST);
    assert_true(body_pool_is_full(&pool));
    assert_int_equal(request_body_grow(request, 1, 9 * FIRST), FINISH_BUSY);
    body_pool_give_back(&pool, 2 * FIRST);
    assert_false(body_pool_is_full(&pool));
    assert_int_equal(request_body_grow(request, 1, 9 * FIRST), FINISH_NONE);
    body_pool_give_back(&pool, FIRST);
    request_free(request);
    assert_int_equal(taken_bytes(), 0);
    body_pool_add(NULL, 1);
    body_pool_give_back(NULL, 1);
}

static void test_without_a_pool_only_the_bodys_own_bound_counts(void **state)
{
    (void)state;
    struct request *request = request_new(NULL, peer, false);
    assert_non_null(request);
    assert_true(request_room_take(request, SIZE_MAX));
    assert_int_equal(request_body_grow(request, 10 * FIRST, 10 * FIRST), FINISH_NONE);
    assert_int_equal(request->body_room, 10 * FIRST);
    request_free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_request_is_empty_and_knows_where_it_came_from),
        cmocka_unit_test(test_the_head_that_is_kept_needs_the_bytes_it_was_read_from_no_more),
        cmocka_unit_test(test_a_body_gets_room_by_doubling_and_no_more_than_its_bound),
        cmocka_unit_test(test_a_small_body_takes_only_what_it_needs),
        cmocka_unit_test(test_bodies_together_stay_within_the_pool_and_what_is_there_stays_whole),
        cmocka_unit_test(test_alone_a_request_gets_what_it_needs_and_keeps_others_out),
        cmocka_unit_test(test_what_is_there_anyhow_keeps_out_what_comes_next),
        cmocka_unit_test(test_without_a_pool_only_the_bodys_own_bound_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
