/*
 * fuzz_cli_parse.c - any command line: a command whose arguments are all there and all from it, or one sentence.
 *
 * The input is words separated by zero bytes, without the program's name.
 */
#include <stdlib.h>
#include "cli_parse.h"
#include "fuzz.h"

enum { WORDS_MAX = 80 };

/* TEXT is the end of one of the words, or the empty text of a flag. */
static void check_from(char *const argv[], const char *text)
{
    for (size_t i = 0; argv[i] != NULL; i++)
        if (text >= argv[i] && text <= argv[i] + strlen(argv[i]))
            return;
    assert(text[0] == '\0');
}

static void check_arguments(char *const argv[], const struct cli_arguments *arguments)
{
    const struct cli_command *command = arguments->command;
    const uint64_t known = cli_command_options(command);
    bool is_help = arguments->values[OPTION_HELP] != NULL;
    assert(arguments->operand_count <= command->operands_max && command->operands_max <= OPERANDS_MAX);
    assert(is_help || arguments->operand_count >= command->operands_min);
    assert(arguments->header_count <= HEADERS_MAX);
    for (size_t i = 0; i < arguments->operand_count; i++)
        check_from(argv, arguments->operands[i]);
    for (size_t i = 0; i < arguments->header_count; i++)
        check_from(argv, arguments->headers[i]);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        bool is_given = arguments->values[i] != NULL;
        assert(!is_given || (known & OPTION_BIT(i)) != 0);
        assert(is_given || is_help || (command->required & OPTION_BIT(i)) == 0);
        if (is_given)
            check_from(argv, arguments->values[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    char *argv[WORDS_MAX + 1];
    size_t count = 0;
    struct cli_arguments arguments;
    char *words = malloc(input_bytes + 1);
    assert(words != NULL);
    memcpy(words, input, input_bytes);
    words[input_bytes] = '\0';
    for (size_t at = 0; at < input_bytes && count < WORDS_MAX; at += strlen(words + at) + 1)
        argv[count++] = words + at;
    argv[count] = NULL;
    const char *why = cli_parse(argv, &arguments);
    assert(why == NULL || why[0] != '\0');
    assert(why != NULL || arguments.command != NULL);
    if (why == NULL)
        check_arguments(argv, &arguments);
    free(words);
    return 0;
}
