/*
 * test_broken.c - where a body stops being what its sender meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "broken.h"

static struct broken broken_of(const char *body)
{
    const struct identified identified = { .body = slice_of_text(body) };
    return broken_find(&identified);
}

static void assert_broken_at(const char *body, size_t position)
{
    struct broken broken = broken_of(body);
    assert_true(broken.has_position);
    assert_int_equal(broken.position, position);
}

static void test_the_first_wrong_byte_is_named(void **state)
{
    (void)state;
    assert_broken_at("[{\"a\":1},{\"a\":tru}]", 14);
    assert_broken_at("{\"a\":1}\n{\"a\":01}\n", 14);
    assert_broken_at("{\"a\":1}{\"a\"", 11);
    assert_broken_at("[1,", 3);
}

static void test_what_is_well_formed_has_no_position(void **state)
{
    (void)state;
    assert_false(broken_of("[{\"a\":1}]").has_position);
    assert_false(broken_of("{\"a\":1}\n{\"b\":2}\n").has_position);
    assert_false(broken_of("").has_position);
    assert_false(broken_of("Struct{a=1}").has_position);
}

static void test_every_reason_can_stand_in_json_unescaped(void **state)
{
    static const char *const bodies[] = { "", "x", "[1", "{}" };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_null(strpbrk(broken_of(bodies[i]).reason, "\"\\\n"));
}

static void test_a_body_that_could_not_be_opened_says_so(void **state)
{
    const struct identified identified = { .body = slice_of_text("\x1f\x8b"), .coding = CODING_OTHER };
    (void)state;
    assert_non_null(strstr(broken_find(&identified).reason, "content coding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_wrong_byte_is_named),
        cmocka_unit_test(test_what_is_well_formed_has_no_position),
        cmocka_unit_test(test_every_reason_can_stand_in_json_unescaped),
        cmocka_unit_test(test_a_body_that_could_not_be_opened_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
