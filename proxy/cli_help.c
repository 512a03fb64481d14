/*
 * cli_help.c - --help of the program and of each command, from the table.
 */
#include "cli_commands.h"

enum { TEXT_WIDTH = 100, NAME_WIDTH = 26 };

/* TEXT in lines of TEXT_WIDTH at most, all but the first indented. */
static void print_wrapped(const char *text, int indent)
{
    int column = indent;
    while (*text != '\0') {
        const int bytes = (int)strcspn(text, " ");
        if (column > indent && column + 1 + bytes > TEXT_WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", bytes, text);
        text += bytes;
        text += strspn(text, " ");
    }
    putchar('\n');
}

/* "sinkonce in-doubt resolve [ID] [--topic TOPIC] ..." */
static void print_usage(const struct cli_command *command)
{
    printf("sinkonce %s", command->name);
    for (size_t i = 0; i < command->operands_max; i++) {
        const bool is_required = cli_operand_is_required(command, i);
        printf(is_required ? " %s" : " [%s]", cli_values[command->operands[i]].name);
    }
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct cli_option_row *row = &cli_options[i];
        if ((command->options & OPTION_BIT(i)) == 0)
            continue;
        const bool is_required = (command->required & OPTION_BIT(i)) != 0;
        printf(" %s%s%s%s%s", is_required ? "" : "[", row->name, row->value != VALUE_NONE ? " " : "",
               cli_values[row->value].name, is_required ? "" : "]");
    }
    fputs(command->is_client ? " [--json] [--admin ADDRESS] ...\n" : "\n", stdout);
}

static void print_option(enum cli_option option)
{
    const struct cli_option_row *row = &cli_options[option];
    char letter[8] = "";
    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", row->letter);
    const int used = printf("  %s%s%s%s", letter, row->name, row->value != VALUE_NONE ? " " : "",
                            cli_values[row->value].name);
    printf("%*s", used < NAME_WIDTH ? NAME_WIDTH - used : 1, "");
    print_wrapped(row->words, NAME_WIDTH);
}

static void help_one(const struct cli_command *command)
{
    const uint64_t options = cli_command_options(command);
    fputs("usage: ", stdout);
    print_usage(command);
    putchar('\n');
    print_wrapped(command->words, 0);
    putchar('\n');
    for (size_t i = 0; i < command->operands_max; i++)
        printf("  %-*s%s\n", NAME_WIDTH - 2, cli_values[command->operands[i]].name,
               cli_values[command->operands[i]].words);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if ((options & OPTION_BIT(i)) != 0)
            print_option((enum cli_option)i);
    }
}

static void help_all(void)
{
    puts("sinkonce stands between a Kafka sink connector and its HTTP target and lets each record through "
         "once.\n\n"
         "usage: sinkonce [command]\n");
    for (const struct cli_command *command = cli_command_rows; command->name != NULL; command++) {
        if (command->is_hidden)
            continue;
        printf("  %-*s", NAME_WIDTH - 8, command->name);
        print_wrapped(command->words, NAME_WIDTH - 6);
    }
    puts("\nsinkonce COMMAND --help says what a command takes.  A list is also what its first word alone "
         "means: "
         "sinkonce\n"
         "in-doubt.");
    puts("\nSettings come from the environment only.  [_FILE]: a secret; NAME_FILE gives the path of a file "
         "with it.");
    settings_print_help(stdout);
    puts("\nExit codes: 0 done, 1 refused, not found or not healthy, 2 wrong command line,\n"
         "69 target or instance unreachable, or an address in use, 71 no memory or descriptors,\n"
         "74 ledger unreadable or output failed, 75 ledger locked, 78 wrong settings.");
}

/* sinkonce help in-doubt, sinkonce help in-doubt resolve */
static int help_named(const struct cli_arguments *arguments)
{
    char name[64];
    bool is_found = false;
    const bool has_two = arguments->operand_count == 2;
    snprintf(name, sizeof name, "%.30s%s%.30s", arguments->operands[0], has_two ? " " : "",
             has_two ? arguments->operands[1] : "");
    for (const struct cli_command *command = cli_command_rows; command->name != NULL; command++) {
        if (!cli_command_is_in(command, name))
            continue;
        if (is_found)
            putchar('\n');
        help_one(command);
        is_found = true;
    }
    return is_found ? 0 : cli_refuse(arguments->command, "\"%s\" is not a command", name);
}

int cli_help(const struct cli_arguments *arguments)
{
    const struct cli_command *command = arguments->command;
    if (command->run != cli_help)
        help_one(command);
    else if (arguments->operand_count > 0)
        return help_named(arguments);
    else
        help_all();
    return 0;
}
