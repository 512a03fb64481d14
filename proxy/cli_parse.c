/*
 * cli_parse.c - see cli_parse.h.
 *
 *     in-doubt resolve   17   --applied --reason=seen     a name of one or two words, then operands and options mixed
 */
#include "cli_parse.h"
#include "admin_query.h"
#include "http1.h"
#include "json_scan.h"
#include "settings_spell.h"
#include <stdarg.h>
#include <stdio.h>

static char sentence[512];

static const char *wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
static const char *wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return sentence;
}

/* ---- values -------------------------------------------------------------------------------------------------- */

static bool number_is_within(const char *text, uint64_t low, uint64_t high)
{
    uint64_t number;
    return decimal_read(slice_of_text(text), high, &number) && number >= low;
}

/* One of the words in a list such as "same|new-topic". */
static bool is_one_of(const char *text, const char *list)
{
    const size_t bytes = strlen(text);
    for (const char *at = list; at != NULL; at = strchr(at, '|') == NULL ? NULL : strchr(at, '|') + 1) {
        if (strcspn(at, "|") == bytes && strncmp(at, text, bytes) == 0)
            return true;
    }
    return false;
}

static bool is_duration(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 15 && is_one_of(text + digits, "ms|s|m|h|d");
}

/* The admin port's rule for reasons: one line of printable bytes. */
static bool is_reason(const char *text)
{
    const size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    }
    return bytes >= 1 && bytes <= 120;
}

static bool is_header(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon != NULL && strpbrk(text, "\r\n") == NULL &&
           http1_token_is_valid(slice_of(text, (size_t)(colon - text)));
}

static bool value_is_right(enum cli_value value, const char *text)
{
    switch (value) {
    case VALUE_TOPIC:
        return topic_is_legal(slice_of_text(text));
    case VALUE_PARTITION:
        return number_is_within(text, 0, INT32_MAX);
    case VALUE_OFFSET:
    case VALUE_NUMBER:
        return number_is_within(text, 0, INT64_MAX);
    case VALUE_ID:
        return number_is_within(text, 0, UINT64_MAX);
    case VALUE_LIMIT:
        return number_is_within(text, 1, QUERY_LIMIT_MAX);
    case VALUE_DURATION:
        return is_duration(text);
    case VALUE_REASON:
        return is_reason(text);
    case VALUE_HEADER:
        return is_header(text);
    case VALUE_PATH:
        return text[0] == '/' && http1_target_is_valid(slice_of_text(text));
    case VALUE_METHOD:
        return http1_token_is_valid(slice_of_text(text));
    case VALUE_DECISION:
    case VALUE_SECTION:
        return is_one_of(text, cli_values[value].name);
    case VALUE_FILE:
    case VALUE_ADDRESS:
    case VALUE_COMMAND:
        return text[0] != '\0';
    case VALUE_NONE:
    case VALUE_COUNT:
        break;
    }
    return false;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static const char *plain_name(const char *word)
{
    if (strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return "--help";
    if (strcmp(word, "-V") == 0 || strcmp(word, "version") == 0)
        return "--version";
    return word;
}

static const char *refuse_command(const char *first, const char *second)
{
    char name[64], nearest_group[64] = "";
    snprintf(name, sizeof name, "%.30s%s%.30s", first, second == NULL ? "" : " ",
             second == NULL ? "" : second);
    struct spelling spelling = spelling_of(name), group = spelling_of(first);
    for (const struct cli_command *command = cli_command_rows; command->name != NULL; command++) {
        if (command->is_hidden)
            continue;
        spelling_offer(&spelling, command->name);
        snprintf(nearest_group, sizeof nearest_group, "%.*s", (int)strcspn(command->name, " "),
                 command->name);
        const size_t distance = group.distance;
        spelling_offer(&group, nearest_group);
        if (group.distance < distance)
            group.nearest = command->name; /* the table's, where the copy's bytes change */
    }
    if (spelling.nearest != NULL)
        return wrong("\"%s\" is not a command; did you mean %s?", name, spelling.nearest);
    if (group.nearest != NULL)
        return wrong("\"%s\" is not a command; did you mean %.*s?", first, (int)strcspn(group.nearest, " "),
                     group.nearest);
    return wrong("\"%s\" is not a command; sinkonce --help shows them all", first);
}

/* The command whose name is at the front of ARGV; RET_WORDS of it are the name.  NULL: *RET_WHY says why. */
static const struct cli_command *command_find(char *const argv[], size_t *ret_words, const char **ret_why)
{
    const char *first = plain_name(argv[0]), *second = argv[1];
    const struct cli_command *group = NULL, *any = NULL;
    const bool has_word = second != NULL && second[0] != '-';
    for (const struct cli_command *command = cli_command_rows; command->name != NULL; command++) {
        if (first[0] == '\0' || !cli_command_is_in(command, first))
            continue;
        const char *rest = command->name + strlen(first);
        *ret_words = rest[0] == '\0' ? 1 : 2;
        if (rest[0] == '\0' || (has_word && strcmp(rest + 1, second) == 0))
            return command;
        any = command;
        if (command->is_group_default)
            group = command;
    }
    *ret_words = 1;
    if (group != NULL && !has_word)
        return group;
    if (any == NULL || has_word)
        *ret_why = refuse_command(first, any == NULL ? NULL : second);
    else
        *ret_why = wrong("\"%s\" needs one word more, as in \"%s\"", first, any->name);
    return NULL;
}

/* ---- options and operands ------------------------------------------------------------------------------------ */

/* OPTION_COUNT: there is none of that name among those of the command. */
static enum cli_option option_find(const struct cli_command *command, const char *text, size_t name_bytes)
{
    const uint64_t known = cli_command_options(command);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct cli_option_row *row = &cli_options[i];
        const bool is_letter = row->letter != 0 && name_bytes == 2 && text[1] == row->letter;
        const bool is_name = strlen(row->name) == name_bytes && strncmp(row->name, text, name_bytes) == 0;
        if ((known & OPTION_BIT(i)) != 0 && (is_letter || is_name))
            return (enum cli_option)i;
    }
    return OPTION_COUNT;
}

static const char *refuse_option(const struct cli_command *command, const char *text)
{
    const uint64_t known = cli_command_options(command);
    struct spelling spelling = spelling_of(text);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if ((known & OPTION_BIT(i)) != 0)
            spelling_offer(&spelling, cli_options[i].name);
    }
    if (spelling.nearest != NULL)
        return wrong("\"%s\" is not understood; did you mean %s?", text, spelling.nearest);
    return wrong("\"%s\" is not understood; sinkonce %s --help shows what is", text, command->name);
}

static const char *option_set(struct cli_arguments *ret, enum cli_option option, const char *text)
{
    const struct cli_option_row *row = &cli_options[option];
    if (row->value != VALUE_NONE && !value_is_right(row->value, text))
        return wrong("%s must be %s", row->name, cli_values[row->value].words);
    if (option == OPTION_HEADER) {
        if (ret->header_count == HEADERS_MAX)
            return wrong("--header is given more than %d times", HEADERS_MAX);
        ret->headers[ret->header_count++] = text;
    } else if (ret->values[option] != NULL && row->value != VALUE_NONE) {
        return wrong("%s is given twice", row->name);
    }
    ret->values[option] = text;
    return NULL;
}

/* Take the option at the front of *ARGV, and its value. */
static const char *option_take(struct cli_arguments *ret, char *const **argv)
{
    const char *text = *(*argv)++;
    const size_t name_bytes = strcspn(text, "=");
    const bool has_equals = text[name_bytes] == '=';
    const enum cli_option option = option_find(ret->command, text, name_bytes);
    if (option == OPTION_COUNT)
        return refuse_option(ret->command, text);
    if (cli_options[option].value == VALUE_NONE)
        return has_equals ? wrong("%s takes no value", cli_options[option].name)
                          : option_set(ret, option, "");
    if (has_equals)
        return option_set(ret, option, text + name_bytes + 1);
    if (**argv == NULL)
        return wrong("%s needs a value: %s", cli_options[option].name,
                     cli_values[cli_options[option].value].words);
    return option_set(ret, option, *(*argv)++);
}

static const char *operand_take(struct cli_arguments *ret, const char *text)
{
    const struct cli_command *command = ret->command;
    const size_t index = ret->operand_count;
    if (index == command->operands_max)
        return wrong("\"%s\" is not understood; sinkonce %s --help shows what is", text, command->name);
    if (!value_is_right(command->operands[index], text))
        return wrong("\"%s\" is not understood: %s must be %s", text,
                     cli_values[command->operands[index]].name, cli_values[command->operands[index]].words);
    ret->operands[ret->operand_count++] = text;
    return NULL;
}

static const char *missing(const struct cli_arguments *arguments)
{
    const struct cli_command *command = arguments->command;
    if (arguments->operand_count < command->operands_min)
        return wrong("%s is missing: %s", cli_values[command->operands[arguments->operand_count]].name,
                     cli_values[command->operands[arguments->operand_count]].words);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if ((command->required & OPTION_BIT(i)) != 0 && arguments->values[i] == NULL)
            return wrong("%s is missing: %s", cli_options[i].name, cli_values[cli_options[i].value].words);
    }
    return NULL;
}

const char *cli_parse(char *const argv[], struct cli_arguments *ret)
{
    static char serve[] = "serve";
    static char *const only_serve[] = { serve, NULL };
    size_t word_count = 0;
    const char *why = NULL;
    bool is_operands_only = false;
    *ret = (struct cli_arguments){ .command = NULL };
    if (argv[0] == NULL)
        argv = only_serve;
    ret->command = command_find(argv, &word_count, &why);
    for (argv += word_count; why == NULL && *argv != NULL;) {
        if (!is_operands_only && strcmp(*argv, "--") == 0) {
            is_operands_only = true;
            argv++;
        } else if (!is_operands_only && (*argv)[0] == '-' && (*argv)[1] != '\0') {
            why = option_take(ret, &argv);
        } else {
            why = operand_take(ret, *argv++);
        }
    }
    if (why == NULL && ret->values[OPTION_HELP] == NULL)
        why = missing(ret);
    return why;
}
