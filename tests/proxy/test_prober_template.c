/*
 * test_prober_template.c - the URL of a probe: no record chooses the host, adds a segment or asks for another record.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "probe.h"
#include "store.h"

static struct probe_template url;
static char context[RECORD_CONTEXT_BYTES_MAX];
static size_t context_bytes;

static void set(const char *text)
{
    probe_template_deinit(&url);
    assert_null(probe_template_parse(text, &url));
    context_bytes = 0;
}

static void keep(const char *json)
{
    probe_context_write(&url, slice_of_text(json), context, sizeof context, &context_bytes);
}

static bool render(char out[], size_t out_bytes_max)
{
    const struct probe_subject subject = { .scope = slice_of_text("main"),
                                           .topic = slice_of_text("a.b_c-d"),
                                           .context = slice_of(context, context_bytes),
                                           .partition = 3,
                                           .offset = INT64_MAX };
    return probe_template_render(&url, &subject, out, out_bytes_max);
}

static void assert_renders(const char *expected)
{
    char out[512];
    assert_true(render(out, sizeof out));
    assert_string_equal(out, expected);
}

static void assert_unknown(const char *json)
{
    char out[512];
    keep(json);
    if (render(out, sizeof out))
        fail_msg("%s became %s", json, out);
}

static void test_coordinates_replace_their_placeholders(void **state)
{
    (void)state;
    set("http://h:1/x/{scope}/{topic}/{partition}?o={offset}&o={offset}");
    assert_string_equal(url.base, "http://h:1");
    assert_renders("/x/main/a.b_c-d/3?o=9223372036854775807&o=9223372036854775807");
}

static void test_a_path_alone_is_one_at_the_target(void **state)
{
    (void)state;
    set("/{offset}");
    assert_string_equal(url.base, "");
    assert_renders("/9223372036854775807");
}

static void test_values_of_the_record_are_encoded_whatever_they_hold(void **state)
{
    (void)state;
    set("/o/{json:/a~1b/0}/{json:/n}?{json:/a~1b/0}={json:/t}");
    keep("{\"a/b\":[\"x/../y?z#\\u00e9 %\"],\"n\":-9007199254740993.50e1,\"t\":true}");
    assert_renders(
        "/o/x%2F..%2Fy%3Fz%23%C3%A9%20%25/-9007199254740993.50e1?x%2F..%2Fy%3Fz%23%C3%A9%20%25=true");
    assert_int_equal(url.pointer_count, 3); /* the same one twice is one */
}

static void test_a_value_that_names_no_record_alone_asks_nothing(void **state)
{
    (void)state;
    set("/o/{json:/id}");
    const char *const records[] = { "{}",
                                    "{\"id\":\"\"}",
                                    "{\"id\":null}",
                                    "{\"id\":\".\"}",
                                    "{\"id\":\"..\"}",
                                    "{\"id\":[]}",
                                    "{\"id\":{}}",
                                    "{\"id\":1,\"id\":2}",
                                    "{\"id\":\"a\\u0000b\"}",
                                    "{\"id\":1",
                                    "{\"id\":1} x",
                                    "no JSON",
                                    "" };
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        assert_unknown(records[i]);
    keep("{\"id\":\"...\"}");
    assert_renders("/o/...");
}

static void test_values_kept_for_other_pointers_are_not_used(void **state)
{
    (void)state;
    char out[64];
    set("/o/{json:/id}");
    keep("{\"id\":1,\"no\":2}");
    probe_template_deinit(&url);
    assert_null(probe_template_parse("/o/{json:/no}", &url));
    assert_false(render(out, sizeof out));
    probe_template_deinit(&url);
    assert_null(probe_template_parse("/other/{json:/id}?{offset}", &url));
    assert_true(render(out, sizeof out));
}

static void test_what_was_kept_may_be_damaged_and_then_asks_nothing(void **state)
{
    (void)state;
    char out[64];
    set("/o/{json:/a}/{json:/b}");
    keep("{\"a\":\"x\",\"b\":\"y\"}");
    size_t whole = context_bytes;
    assert_renders("/o/x/y");
    for (context_bytes = 0; context_bytes < whole; context_bytes++)
        assert_false(render(out, sizeof out));
}

static void test_what_does_not_fit_is_not_kept_and_not_asked(void **state)
{
    (void)state;
    char json[400], out[4096];
    set("/o/{json:/a}");
    snprintf(json, sizeof json, "{\"a\":\"%0*d\"}", PROBE_VALUE_BYTES_MAX + 1, 0);
    assert_unknown(json);
    snprintf(json, sizeof json, "{\"a\":\"%0*d\"}", PROBE_VALUE_BYTES_MAX, 0);
    keep(json);
    assert_true(render(out, sizeof out));
    assert_int_equal(strlen(out), 3 + PROBE_VALUE_BYTES_MAX);
    assert_true(render(out, 3 + PROBE_VALUE_BYTES_MAX + 1));
    assert_false(render(out, 3 + PROBE_VALUE_BYTES_MAX));
    probe_context_write(&url, slice_of_text(json), context, 100, &context_bytes);
    assert_int_equal(context_bytes, 0);
}

static int tear_down(void **state)
{
    (void)state;
    probe_template_deinit(&url);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_coordinates_replace_their_placeholders, tear_down),
        cmocka_unit_test_teardown(test_a_path_alone_is_one_at_the_target, tear_down),
        cmocka_unit_test_teardown(test_values_of_the_record_are_encoded_whatever_they_hold, tear_down),
        cmocka_unit_test_teardown(test_a_value_that_names_no_record_alone_asks_nothing, tear_down),
        cmocka_unit_test_teardown(test_values_kept_for_other_pointers_are_not_used, tear_down),
        cmocka_unit_test_teardown(test_what_was_kept_may_be_damaged_and_then_asks_nothing, tear_down),
        cmocka_unit_test_teardown(test_what_does_not_fit_is_not_kept_and_not_asked, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
