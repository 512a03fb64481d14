/*
 * JSON answers as tables and lists for a terminal.
 */
#include "cli_print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static char *printed; /* owned: what the last call wrote */
static size_t printed_bytes;

static FILE *begin(void)
{
    free(printed);
    FILE *out = open_memstream(&printed, &printed_bytes);
    assert_non_null(out);
    return out;
}

static json_t *json_of(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void assert_members(const char *text, const char *expected)
{
    json_t *json = json_of(text);
    FILE *out = begin();
    cli_print_members(json, out);
    fclose(out);
    json_decref(json);
    assert_string_equal(printed, expected);
}

static const struct cli_column columns[] = { { "ID", "id", true },
                                             { "TOPIC", "topic", false },
                                             { "DETAIL", "detail", false } };

static void assert_table(const char *text, bool has_titles, const char *expected)
{
    json_t *json = json_of(text);
    FILE *out = begin();
    cli_print_table(json, columns, 3, has_titles, out);
    fclose(out);
    json_decref(json);
    assert_string_equal(printed, expected);
}

static void test_columns_are_as_wide_as_their_widest_cell(void **state)
{
    (void)state;
    assert_table("[{\"id\":\"7\",\"topic\":\"orders\",\"detail\":\"reset\"},"
                 "{\"id\":\"1234\",\"topic\":\"a\",\"detail\":\"\"}]",
                 true,
                 "  ID  TOPIC   DETAIL\n"
                 "   7  orders  reset\n"
                 "1234  a       -\n");
}

static void test_later_pages_have_no_titles(void **state)
{
    (void)state;
    assert_table("[{\"id\":\"7\",\"topic\":\"orders\",\"detail\":\"x\"}]", false, " 7  orders  x\n");
}

static void test_width_counts_characters_and_not_bytes(void **state)
{
    (void)state;
    assert_table("[{\"id\":1,\"topic\":\"\\u00e4\",\"detail\":\"x\"},{\"id\":2,\"topic\":\"abcdefg\","
                 "\"detail\":\"y\"}]",
                 true,
                 "ID  TOPIC    DETAIL\n"
                 " 1  \xc3\xa4        x\n"
                 " 2  abcdefg  y\n");
}

static void test_missing_and_null_members_are_a_dash(void **state)
{
    (void)state;
    assert_table("[{\"id\":null,\"topic\":true}]", false, " -  yes    -\n");
}

static void test_control_characters_never_reach_the_terminal(void **state)
{
    (void)state;
    assert_table("[{\"id\":1,\"topic\":\"a\\u001b[31mb\",\"detail\":\"c\\nd\\u007fe\\u009bf\\rg\"}]", false,
                 " 1  a?[31mb  c?d?e?f?g\n");
}

static void test_members_are_indented_below_their_object(void **state)
{
    (void)state;
    assert_members("{\"state\":\"ready\",\"ledger\":{\"used_bytes\":4096,\"full\":false}}",
                   "state                        ready\n"
                   "ledger\n"
                   "  used bytes                 4096\n"
                   "  full                       no\n");
}

static void test_lists_are_lines_and_an_empty_one_says_none(void **state)
{
    (void)state;
    assert_members("{\"warnings\":[\"One.\",\"Two.\"],\"more\":[]}", "warnings\n"
                                                                     "  - One.\n"
                                                                     "  - Two.\n"
                                                                     "more                         none\n");
}

static void test_a_deep_answer_ends(void **state)
{
    char text[2048] = "";
    (void)state;
    for (int i = 0; i < 100; i++)
        strcat(text, "{\"a\":");
    strcat(text, "1");
    for (int i = 0; i < 100; i++)
        strcat(text, "}");
    json_t *json = json_of(text);
    FILE *out = begin();
    cli_print_members(json, out);
    fclose(out);
    json_decref(json);
    assert_true(printed_bytes < 500);
}

static void test_long_lines_are_printed_whole(void **state)
{
    char text[3001], *expected = NULL;
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[1000] = '\n';
    assert_true(asprintf(&expected, "%s\n", text) > 0);
    FILE *out = begin();
    cli_print_lines(text, out);
    fclose(out);
    assert_string_equal(printed, expected);
    free(expected);
}

static int release(void **state)
{
    (void)state;
    free(printed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(test_later_pages_have_no_titles),
        cmocka_unit_test(test_width_counts_characters_and_not_bytes),
        cmocka_unit_test(test_missing_and_null_members_are_a_dash),
        cmocka_unit_test(test_control_characters_never_reach_the_terminal),
        cmocka_unit_test(test_members_are_indented_below_their_object),
        cmocka_unit_test(test_lists_are_lines_and_an_empty_one_says_none),
        cmocka_unit_test(test_a_deep_answer_ends),
        cmocka_unit_test(test_long_lines_are_printed_whole),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
