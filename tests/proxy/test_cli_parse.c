/*
 * The command line into arguments, and every way in which it can be wrong.
 */
#include "cli_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { WORDS_MAX = 24 };

static struct cli_arguments arguments;

/* LINE is cut at its blanks. */
static const char *parse(const char *line)
{
    static char words[1024];
    char *argv[WORDS_MAX] = { NULL }, *rest = NULL;
    size_t count = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    assert_true(count < WORDS_MAX);
    return cli_parse(argv, &arguments);
}

static void assert_command(const char *line, const char *name)
{
    assert_null(parse(line));
    assert_string_equal(arguments.command->name, name);
}

/* What is said holds WORDS. */
static void assert_wrong(const char *line, const char *words)
{
    const char *why = parse(line);
    if (why == NULL || strstr(why, words) == NULL)
        fail_msg("\"%s\": \"%s\", without \"%s\"", line, why == NULL ? "right" : why, words);
}

static void test_no_argument_means_serve(void **state)
{
    (void)state;
    assert_command("", "serve");
}

static void test_the_first_word_of_a_group_means_its_list(void **state)
{
    (void)state;
    assert_command("in-doubt", "in-doubt list");
    assert_command("in-doubt --topic orders", "in-doubt list");
    assert_command("in-doubt list", "in-doubt list");
    assert_command("conflicts", "conflicts list");
    assert_command("config", "config print");
    assert_command("ledger", "ledger stat");
    assert_wrong("records", "needs one word more, as in \"records get\"");
}

static void test_help_and_version_have_their_usual_names(void **state)
{
    (void)state;
    assert_command("-h", "--help");
    assert_command("help", "--help");
    assert_command("-V", "--version");
    assert_command("help in-doubt resolve", "--help");
    assert_command("in-doubt resolve --help", "in-doubt resolve"); /* nothing else need be right */
    assert_non_null(arguments.values[OPTION_HELP]);
    assert_command("in-doubt resolve -h", "in-doubt resolve");
}

static void test_options_and_operands_may_be_mixed(void **state)
{
    (void)state;
    assert_command("in-doubt resolve --reason=seen 17 --applied", "in-doubt resolve");
    assert_int_equal(arguments.operand_count, 1);
    assert_string_equal(arguments.operands[0], "17");
    assert_string_equal(arguments.values[OPTION_REASON], "seen");
    assert_string_equal(arguments.values[OPTION_APPLIED], "");
    assert_null(arguments.values[OPTION_NOT_APPLIED]);
}

static void test_a_value_follows_its_option_or_an_equals_sign(void **state)
{
    (void)state;
    assert_command("partitions --topic orders --limit=7 --json", "partitions");
    assert_string_equal(arguments.values[OPTION_TOPIC], "orders");
    assert_string_equal(arguments.values[OPTION_LIMIT], "7");
    assert_command("explain --path /a=b --header X:1 --header Y:=2", "explain");
    assert_string_equal(arguments.values[OPTION_PATH], "/a=b");
    assert_int_equal(arguments.header_count, 2);
    assert_string_equal(arguments.headers[1], "Y:=2");
}

static void test_two_dashes_end_the_options_and_one_is_stdin(void **state)
{
    (void)state;
    assert_command("explain -- --file", "explain");
    assert_string_equal(arguments.operands[0], "--file");
    assert_command("explain -", "explain");
    assert_string_equal(arguments.operands[0], "-");
}

static void test_letters_stand_for_options(void **state)
{
    (void)state;
    assert_command("events -f", "events");
    assert_non_null(arguments.values[OPTION_FOLLOW]);
    assert_wrong("status -f", "not understood");
    assert_wrong("events -x", "not understood");
}

static void test_an_unknown_command_is_refused_with_what_may_be_meant(void **state)
{
    (void)state;
    assert_wrong("statsu", "did you mean status?");
    assert_wrong("in-dobt", "did you mean in-doubt?");
    assert_wrong("in-doubt lst", "did you mean in-doubt list?");
    assert_wrong("in-doubt 17", "is not a command");
    assert_wrong("config prnt", "did you mean config print?");
    assert_wrong("teleport", "sinkonce --help shows them all");
    assert_wrong("mna", "sinkonce --help shows them all"); /* hidden commands are no suggestion */
}

static void test_an_unknown_option_is_refused_with_what_may_be_meant(void **state)
{
    (void)state;
    assert_wrong("partitions --topik a", "did you mean --topic?");
    assert_wrong("status --topic a", "not understood"); /* of another command */
    assert_wrong("check --conect", "did you mean --connect?");
}

static void test_values_are_checked(void **state)
{
    static const char *const lines[] = {
        "partitions --topic a/b",
        "partitions --topic ..",
        "partitions --limit 0",
        "partitions --limit 1001",
        "partitions --limit 1e3",
        "records get orders 2147483648 1",
        "records get orders -- -1 1",
        "records get orders 1 9223372036854775808",
        "records get orders 1 +1",
        "in-doubt resolve 18446744073709551616 --applied --reason x",
        "in-doubt resolve one --applied --reason x",
        "in-doubt resolve 1 --applied --reason=",
        "conflicts decide 1 other --reason x",
        "conflicts decide 1 sam --reason x",
        "replay open --topic a --partition 0 --from 1 --to 2 --for 10 --reason x",
        "replay open --topic a --partition 0 --from 1 --to 2 --for m --reason x",
        "replay open --topic a --partition 0 --from 1 --to 2 --for 5min --reason x",
        "explain --header nothing",
        "explain --header :v",
        "explain --path in",
        "explain --method P/T",
        "man 3",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_wrong(lines[i], "must be");
    assert_command("records get a.b_C-1 2147483647 9223372036854775807", "records get");
    assert_command("conflicts decide 18446744073709551615 new-topic --reason x", "conflicts decide");
    assert_command("replay open --topic a --partition 0 --from 1 --to 2 --for 90s --reason x", "replay open");
}

static void test_what_is_missing_is_named(void **state)
{
    (void)state;
    assert_wrong("records get", "TOPIC is missing");
    assert_wrong("records get orders 1", "OFFSET is missing");
    assert_wrong("in-doubt resolve 17 --applied", "--reason is missing");
    assert_wrong("forget --topic a --reason b", "--expect is missing");
    assert_wrong("partitions --topic", "--topic needs a value");
}

static void test_what_is_too_much_is_refused(void **state)
{
    (void)state;
    assert_wrong("serve now", "\"now\" is not understood");
    assert_wrong("partitions --topic a --topic b", "given twice");
    assert_wrong("status --json=1", "takes no value");
    assert_wrong("config env more", "\"more\" is not understood");
    assert_command("status --json --json", "status");
}

/* Otherwise one of them could never be called, or one would be two. */
static void test_the_table_names_each_command_once_and_one_list_a_group(void **state)
{
    (void)state;
    for (const struct cli_command *a = cli_command_rows; a->name != NULL; a++) {
        assert_true(a->words[0] != '\0' && a->run != NULL);
        assert_int_equal(a->required & ~a->options, 0);
        assert_true(a->operands_min <= a->operands_max && a->operands_max <= OPERANDS_MAX);
        for (size_t i = 0; i < a->operands_max; i++)
            assert_true(a->operands[i] != VALUE_NONE);
        for (const struct cli_command *b = a + 1; b->name != NULL; b++) {
            const bool is_same_group = strcspn(a->name, " ") == strcspn(b->name, " ") &&
                                       strncmp(a->name, b->name, strcspn(a->name, " ")) == 0;
            assert_string_not_equal(a->name, b->name);
            assert_false(is_same_group && a->is_group_default && b->is_group_default);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_argument_means_serve),
        cmocka_unit_test(test_the_first_word_of_a_group_means_its_list),
        cmocka_unit_test(test_help_and_version_have_their_usual_names),
        cmocka_unit_test(test_options_and_operands_may_be_mixed),
        cmocka_unit_test(test_a_value_follows_its_option_or_an_equals_sign),
        cmocka_unit_test(test_two_dashes_end_the_options_and_one_is_stdin),
        cmocka_unit_test(test_letters_stand_for_options),
        cmocka_unit_test(test_an_unknown_command_is_refused_with_what_may_be_meant),
        cmocka_unit_test(test_an_unknown_option_is_refused_with_what_may_be_meant),
        cmocka_unit_test(test_values_are_checked),
        cmocka_unit_test(test_what_is_missing_is_named),
        cmocka_unit_test(test_what_is_too_much_is_refused),
        cmocka_unit_test(test_the_table_names_each_command_once_and_one_list_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
