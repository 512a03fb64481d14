/*
 * test_json_walk.c - arrays and objects, step by step.
 */
#include "json_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* The elements of TEXT, a '|' behind each; "!" at the end: wrong; "+": more follows behind the bracket. */
static void walk_text(const char *text, char opening, char out[], size_t out_bytes_max)
{
    struct json_walk walk;
    struct slice name, value;
    size_t at = 0;
    out[0] = '\0';
    json_walk_open(&walk, slice_of_text(text), opening);
    while (json_walk_next(&walk)) {
        if (opening == '{' && !json_walk_name(&walk, &name))
            break;
        if (!json_walk_value(&walk, NULL, 0, &value))
            break;
        if (opening == '{')
            at += (size_t)snprintf(out + at, out_bytes_max - at, "%.*s=", (int)name.byte_count, name.at);
        at += (size_t)snprintf(out + at, out_bytes_max - at, "%.*s|", (int)value.byte_count, value.at);
    }
    if (walk.is_wrong)
        snprintf(out + at, out_bytes_max - at, "!");
    else if (!json_walk_is_last(&walk))
        snprintf(out + at, out_bytes_max - at, "+");
}

static const struct row {
    const char *text;
    char opening;
    const char *expected;
} rows[] = {
    { "[]", '[', "" },
    { " [ ] \n", '[', "" },
    { "[1,[2,{}],\"a,]\"]", '[', "1|[2,{}]|\"a,]\"|" },
    { " [ 1 ,\t2\r\n] ", '[', "1|2|" },
    { "[1]x", '[', "1|+" },
    { "[1,]", '[', "1|!" },
    { "[,1]", '[', "!" },
    { "[1 2]", '[', "1|!" },
    { "[1", '[', "1|!" },
    { "[", '[', "!" },
    { "[01]", '[', "0|!" },
    { "[1}", '[', "1|!" },
    { "", '[', "!" },
    { "{}", '[', "!" },
    { "[]", '{', "!" },
    { "{}", '{', "" },
    { "{\"a\":1,\"b\\\"\" : [] }", '{', "a=1|b\\\"=[]|" },
    { "{\"\":null}", '{', "=null|" },
    { "{\"a\" 1}", '{', "!" },
    { "{\"a\":}", '{', "!" },
    { "{a:1}", '{', "!" },
    { "{1:1}", '{', "!" },
    { "{\"a\":1,}", '{', "a=1|!" },
    { "{\"a\":1;\"b\":2}", '{', "a=1|!" },
    { "{\"a", '{', "!" },
    { "{\"a\":1]", '{', "a=1|!" },
};

static void test_each_text_is_walked_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[256];
        walk_text(rows[i].text, rows[i].opening, out, sizeof out);
        if (strcmp(out, rows[i].expected) != 0)
            fail_msg("%s gave %s", rows[i].text, out);
    }
}

static void test_a_container_inside_can_be_walked_too(void **state)
{
    struct json_walk outer, inner;
    struct slice name, value;
    unsigned count = 0;
    (void)state;
    json_walk_open(&outer, slice_of_text("{\"a\" : [1,2] , \"b\":3}"), '{');
    assert_true(json_walk_next(&outer) && json_walk_name(&outer, &name));
    json_walk_enter(&outer, &inner, '[');
    while (json_walk_next(&inner)) {
        assert_true(json_walk_value(&inner, NULL, 0, &value));
        count++;
    }
    assert_int_equal(count, 2);
    json_walk_join(&outer, &inner);
    assert_true(json_walk_next(&outer) && json_walk_name(&outer, &name) &&
                json_walk_value(&outer, NULL, 0, &value));
    assert_true(slice_equals_text(name, "b") && slice_equals_text(value, "3"));
    assert_false(json_walk_next(&outer));
    assert_false(outer.is_wrong);
}

static void test_nothing_at_all_is_no_container(void **state)
{
    struct json_walk walk;
    (void)state;
    json_walk_open(&walk, slice_of(NULL, 0), '[');
    assert_false(json_walk_next(&walk));
    assert_true(walk.is_wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_text_is_walked_or_refused),
        cmocka_unit_test(test_a_container_inside_can_be_walked_too),
        cmocka_unit_test(test_nothing_at_all_is_no_container),
    };
    return cmocka_run_group_tests_name("json_walk", tests, NULL, NULL);
}
