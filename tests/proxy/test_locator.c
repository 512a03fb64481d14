/*
 * test_locator.c - what an operator may write, and what a composite value says.
 */
#include "locator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_an_empty_text_is_an_empty_list(void **state)
{
    struct locator_list list;
    (void)state;
    assert_null(locator_list_parse("", false, &list));
    assert_int_equal(list.count, 0);
    locator_list_deinit(&list);
    assert_null(locator_list_parse("  ", true, &list));
    assert_int_equal(list.count, 0);
    locator_list_deinit(&list);
}

static void test_all_kinds_are_read_in_order(void **state)
{
    struct locator_list list;
    (void)state;
    assert_null(
        locator_list_parse("header:X-Kafka-Topic, json:/a/b~1c~0d/ ,query:t,const:orders", false, &list));
    assert_int_equal(list.count, 4);
    assert_int_equal(list.items[0].kind, LOCATOR_HEADER);
    assert_string_equal(list.items[0].text, "x-kafka-topic");
    assert_int_equal(list.items[1].kind, LOCATOR_JSON);
    assert_string_equal(list.items[1].text, "/a/b~1c~0d/");
    assert_int_equal(list.items[1].token_count, 3);
    assert_string_equal(list.items[1].tokens[0], "a");
    assert_string_equal(list.items[1].tokens[1], "b/c~d");
    assert_string_equal(list.items[1].tokens[2], "");
    assert_int_equal(list.items[2].kind, LOCATOR_QUERY);
    assert_string_equal(list.items[2].text, "t");
    assert_int_equal(list.items[3].kind, LOCATOR_CONST);
    assert_string_equal(list.items[3].text, "orders");
    locator_list_deinit(&list);
}

static void test_a_composite_is_one_place(void **state)
{
    struct locator_list list;
    (void)state;
    assert_null(locator_list_parse("path", true, &list));
    assert_int_equal(list.items[0].kind, LOCATOR_PATH);
    locator_list_deinit(&list);
    assert_null(locator_list_parse("header:ce-id", true, &list));
    assert_int_equal(list.items[0].kind, LOCATOR_HEADER);
    locator_list_deinit(&list);
}

static void test_wrong_locators_are_refused_with_words(void **state)
{
    static const struct {
        const char *text;
        bool is_composite;
        const char *words; /* part of them */
    } wrong[] = {
        { "header:a,,query:b", false, "empty entry" },
        { "header:a,", false, "empty entry" },
        { ",", false, "empty entry" },
        { "orders", false, "needs header:NAME" },
        { "path", false, "needs header:NAME" },
        { "Header:a", false, "needs header:NAME" },
        { "header:", false, "nothing behind its colon" },
        { "query:", false, "nothing behind its colon" },
        { "const:", false, "nothing behind its colon" },
        { "header:a b", false, "no field name can hold" },
        { "header:a:b", false, "no field name can hold" },
        { "json:", false, "begins with '/'" },
        { "json:a", false, "begins with '/'" },
        { "json:/a~", false, "neither ~0 nor ~1" },
        { "json:/a~2", false, "neither ~0 nor ~1" },
        { "json:/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", false, "more than 16 levels" },
        { "query:1,query:2,query:3,query:4,query:5,query:6,query:7,query:8,query:9", false, "more than 8" },
        { "header:a,header:b", true, "one place only" },
        { "const:a", true, "path or bulk-id" },
        { "bulk-id", false, "needs header:NAME" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct locator_list list;
        const char *words = locator_list_parse(wrong[i].text, wrong[i].is_composite, &list);
        if (words == NULL || strstr(words, wrong[i].words) == NULL)
            fail_msg("%s: %s", wrong[i].text, words == NULL ? "accepted" : words);
        locator_list_deinit(&list);
    }
}

static void test_the_id_of_a_bulk_action_is_a_composite(void **state)
{
    struct locator_list list;
    (void)state;
    assert_null(locator_list_parse("bulk-id", true, &list));
    assert_int_equal(list.items[0].kind, LOCATOR_BULK_ID);
    locator_list_deinit(&list);
}

static void test_a_pointer_alone_needs_no_prefix(void **state)
{
    struct locator_list list;
    (void)state;
    assert_null(locator_pointer_parse("/0/a~1b", &list));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].kind, LOCATOR_JSON);
    assert_int_equal(list.items[0].token_count, 2);
    assert_string_equal(list.items[0].tokens[1], "a/b");
    locator_list_deinit(&list);
    assert_non_null(strstr(locator_pointer_parse("rows", &list), "begins with '/'"));
    locator_list_deinit(&list);
}

static void test_wrong_formats_are_refused_with_words(void **state)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        { "orders", "needs {partition} and {offset}" },
        { "{topic}+{offset}", "needs {partition} and {offset}" },
        { "{topic}{partition}-{offset}", "separator" },
        { "{partition}{offset}", "separator" },
        { "{topic}-{partition}-{offset}-{offset}", "twice" },
        { "{topic}-{key}-{partition}-{offset}", "knows only" },
        { "{topic}-{partition-{offset}", "knows only" },
        { "{topic}-partition}-{offset}", "without its '{'" },
        { "{topic}-v2{partition}-{offset}", "digit next to" },
        { "{topic}-{partition}-{offset}0", "digit next to" },
        { "{partition}1-{offset}", "digit next to" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct id_format format;
        const char *words = id_format_parse(wrong[i].text, &format);
        if (words == NULL || strstr(words, wrong[i].words) == NULL)
            fail_msg("%s: %s", wrong[i].text, words == NULL ? "accepted" : words);
        id_format_deinit(&format);
    }
}

static void test_no_format_is_none(void **state)
{
    struct id_format format;
    (void)state;
    assert_null(id_format_parse("", &format));
    assert_null(format.text);
    assert_int_equal(format.part_count, 0);
    id_format_deinit(&format);
}

struct match_row {
    const char *format, *value;
    const char *expected; /* topic/partition/offset, "" when it does not match */
};

static const struct match_row match_rows[] = {
    { "{topic}+{partition}+{offset}", "orders+0+100", "orders/0/100" },
    { "{topic}+{partition}+{offset}", "a+1+b+0+100", "a+1+b/0/100" },
    { "{topic}+{partition}+{offset}", "orders+2147483647+9223372036854775807",
      "orders/2147483647/9223372036854775807" },
    { "{topic}+{partition}+{offset}", "orders+2147483648+1", "" },
    { "{topic}+{partition}+{offset}", "orders+0+9223372036854775808", "" },
    { "{topic}+{partition}+{offset}", "orders+0+", "" },
    { "{topic}+{partition}+{offset}", "orders++1", "" },
    { "{topic}+{partition}+{offset}", "+0+1", "" },
    { "{topic}+{partition}+{offset}", "0+1", "" },
    { "{topic}+{partition}+{offset}", "orders+00+1", "" },
    { "{topic}+{partition}+{offset}", "orders+0+01", "" },
    { "{topic}+{partition}+{offset}", "orders+-1+1", "" },
    { "{topic}+{partition}+{offset}", "orders+0+1 ", "" },
    { "{topic}+{partition}+{offset}", "", "" },
    { "{topic}-{partition}-{offset}", "my-topic-7-3-5", "my-topic-7/3/5" },
    { "/t/{topic}/{partition}/{offset}", "/t/orders/3/41", "orders/3/41" },
    { "/t/{topic}/{partition}/{offset}", "/t/orders/3/41/", "" },
    { "/t/{topic}/{partition}/{offset}", "/x/orders/3/41", "" },
    { "/t/{topic}/{partition}/{offset}/end", "/t/orders/3/41/end", "orders/3/41" },
    { "partition:{partition}/offset:{offset}", "partition:0/offset:100", "/0/100" },
    { "partition:{partition}/offset:{offset}", "partition:0/offset:100x", "" },
    { "partition:{partition}/offset:{offset}", "xpartition:0/offset:100", "" },
    { "{offset}@{partition}", "100@3", "/3/100" },
    { "{offset}@{partition}", "1@100@3", "" },
    { "{partition}-{offset}-{topic}", "3-5-my-topic-9", "my-topic-9/3/5" },
    { "{partition}-{topic}-{offset}", "3-my-topic-9", "my-topic/3/9" },
    { "{partition}-{topic}-{offset}", "3--9", "" },
    { "{partition}-{topic}-{offset}", "3-9", "" },
    { "<{topic}>{partition}:{offset}<", "<o>1:2<", "o/1/2" },
    { "<{topic}>{partition}:{offset}<", "<", "" },
};

static void test_composites_are_split_from_the_outside(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof match_rows / sizeof match_rows[0]; i++) {
        const struct match_row *row = &match_rows[i];
        struct id_format format;
        struct id_value value;
        char found[300] = "";
        assert_null(id_format_parse(row->format, &format));
        /* Of the exact size, so that a sanitizer sees every byte read too far. */
        size_t byte_count = strlen(row->value);
        char *copy = malloc(byte_count + 1);
        assert_non_null(copy);
        memcpy(copy, row->value, byte_count);
        if (id_format_match(&format, slice_of(copy, byte_count), &value))
            snprintf(found, sizeof found, "%.*s/%ld/%lld", (int)value.topic.byte_count,
                     value.topic.byte_count > 0 ? value.topic.at : "", (long)value.partition,
                     (long long)value.offset);
        if (strcmp(found, row->expected) != 0)
            fail_msg("%s on %s: \"%s\"", row->value, row->format, found);
        free(copy);
        id_format_deinit(&format);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_text_is_an_empty_list),
        cmocka_unit_test(test_all_kinds_are_read_in_order),
        cmocka_unit_test(test_a_composite_is_one_place),
        cmocka_unit_test(test_wrong_locators_are_refused_with_words),
        cmocka_unit_test(test_the_id_of_a_bulk_action_is_a_composite),
        cmocka_unit_test(test_a_pointer_alone_needs_no_prefix),
        cmocka_unit_test(test_wrong_formats_are_refused_with_words),
        cmocka_unit_test(test_no_format_is_none),
        cmocka_unit_test(test_composites_are_split_from_the_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
