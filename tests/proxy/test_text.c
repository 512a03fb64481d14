/*
 * test_text.c - text that grows, and the memory that it may not get.
 */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_pieces_stand_one_behind_the_other(void **state)
{
    struct text text = { 0 };
    char *bytes;
    size_t byte_count;
    (void)state;
    text_add_chars(&text, "a");
    text_add(&text, slice_of(NULL, 0));
    text_add_number(&text, INT64_MIN);
    text_add(&text, slice_of("b\0c", 3));
    assert_true(text_take(&text, &bytes, &byte_count));
    assert_int_equal(byte_count, 24);
    assert_memory_equal(bytes, "a-9223372036854775808b\0c", 24);
    free(bytes);
    assert_null(text.bytes);
    text_deinit(&text);
}

static void test_any_length_is_kept(void **state)
{
    struct text text = { 0 };
    char *bytes;
    size_t byte_count;
    (void)state;
    for (int i = 0; i < 10000; i++)
        text_add_chars(&text, i % 2 == 0 ? "even " : "odd ");
    assert_true(text_take(&text, &bytes, &byte_count));
    assert_int_equal(byte_count, 45000);
    assert_memory_equal(bytes + 44991, "even odd ", 9);
    free(bytes);
}

static void test_memory_that_is_missing_is_told_once(void **state)
{
    struct text text = { 0 };
    char *bytes = (char *)&text;
    size_t byte_count = 1;
    (void)state;
    text_add_chars(&text, "before");
    text_reserve(&text, PTRDIFF_MAX); /* more than any allocator gives */
    text_add_chars(&text, "behind");
    assert_false(text_take(&text, &bytes, &byte_count));
    assert_null(bytes);
    assert_int_equal(byte_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_stand_one_behind_the_other),
        cmocka_unit_test(test_any_length_is_kept),
        cmocka_unit_test(test_memory_that_is_missing_is_told_once),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
