/*
 * cli_man.c - sinkonce(8) and sinkonce-env(5) in mdoc, from the tables of commands and settings.
 *
 * conf/man holds what this prints; a test compares them.  Source of the form: mdoc(7).
 */
#include "cli_commands.h"

/* A page without a date is no page; it changes with releases, not with every build. */
#define PAGE_DATE "November 30, 2026"

/* ---- text ---------------------------------------------------------------------------------------------------- */

/* A backslash begins an escape; a dot or an apostrophe at the start of a line begins a request. */
static void print_bytes(const char *text, size_t bytes, bool is_line_start)
{
    if (is_line_start && bytes > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else
            putchar(text[i]);
    }
}

/* Each sentence on a line of its own, which lets the formatter set the space between them. */
static void print_sentences(const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, ".  ");
        const size_t bytes = end == NULL ? strlen(text) : (size_t)(end - text) + 1;
        print_bytes(text, bytes, true);
        if (end == NULL && bytes > 0 && text[bytes - 1] != '.')
            putchar('.');
        putchar('\n');
        text += bytes;
        text += strspn(text, " ");
    }
}

static void print_head(const char *title, int section, const char *name, const char *words)
{
    printf(".\\\" Made by: sinkonce man %d\n.Dd " PAGE_DATE "\n.Dt %s %d\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n",
           section, title, section, name, words);
}

/* ---- sinkonce(8) --------------------------------------------------------------------------------------------- */

static void print_value(enum cli_value value)
{
    if (value != VALUE_NONE)
        printf(" Ar %s", cli_values[value].name);
}

static void print_option(const struct cli_option_row *row, bool is_optional)
{
    fputs(is_optional ? " Oo" : "", stdout);
    printf(" Fl -%s", row->name + 2);
    print_value(row->value);
    fputs(is_optional ? " Oc" : "", stdout);
}

/* The arguments of a macro line: names, operands, options. */
static void print_synopsis(const struct cli_command *command)
{
    const bool is_option = command->name[0] == '-';
    printf(is_option ? " Fl %s" : " Cm %s", command->name + is_option);
    for (size_t i = 0; i < command->operands_max; i++) {
        const bool is_required = cli_operand_is_required(command, i);
        fputs(is_required ? "" : " Oo", stdout);
        print_value(command->operands[i]);
        fputs(is_required ? "" : " Oc", stdout);
    }
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if ((command->options & OPTION_BIT(i)) != 0)
            print_option(&cli_options[i], (command->required & OPTION_BIT(i)) == 0);
    }
    putchar('\n');
}

static void print_commands(void)
{
    puts(".Sh COMMANDS\n"
         "The first word of a group alone means its list:\n"
         ".Cm in-doubt\n"
         "is\n"
         ".Cm in-doubt list .\n"
         ".Bl -tag -width Ds");
    for (const struct cli_command *command = cli_command_rows; command->name != NULL; command++) {
        if (command->is_hidden)
            continue;
        fputs(".It", stdout);
        print_synopsis(command);
        print_sentences(command->words);
        if (command->is_client)
            puts("Asks the admin port.");
    }
    puts(".El");
}

static void print_option_list(uint64_t options)
{
    puts(".Bl -tag -width Ds");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct cli_option_row *row = &cli_options[i];
        if ((options & OPTION_BIT(i)) == 0)
            continue;
        fputs(".It", stdout);
        if (row->letter != 0)
            printf(" Fl %c ,", row->letter);
        print_option(row, false);
        putchar('\n');
        print_sentences(row->words);
        if (row->value != VALUE_NONE)
            printf("It must be %s.\n", cli_values[row->value].words);
    }
    puts(".El");
}

static void print_options(void)
{
    puts(".Sh OPTIONS\n"
         "A value follows its option or an equals sign.\n"
         "Commands that ask the admin port of a running instance take these:");
    print_option_list(cli_client_options);
    puts(".Pp\nThe others belong to the commands that name them:");
    print_option_list(~cli_client_options);
}

static void print_surroundings(void)
{
    puts(".Sh ENVIRONMENT\n"
         "All settings come from the environment; see\n"
         ".Xr sinkonce-env 5 .\n"
         "Commands that ask the admin port read\n"
         ".Ev SINKONCE_ADMIN_LISTEN ,\n"
         ".Ev SINKONCE_ADMIN_TOKEN\n"
         "or\n"
         ".Ev SINKONCE_ADMIN_TOKEN_FILE ,\n"
         "and\n"
         ".Ev SINKONCE_ADMIN_CERT_FILE ,\n"
         "which makes them use TLS.\n"
         ".Sh FILES\n"
         ".Bl -tag -width Ds\n"
         ".It Pa /var/lib/sinkonce\n"
         "the ledger, unless\n"
         ".Ev SINKONCE_DATA_DIR\n"
         "names another folder.\n"
         "It belongs to one process.\n"
         ".It Pa health.sock\n"
         "in that folder: the socket that\n"
         ".Cm health\n"
         "asks, in the service's own environment, where the admin port wants client certificates.\n"
         ".El");
}

static void print_exit_status(void)
{
    puts(".Sh EXIT STATUS\n"
         ".Bl -tag -width Ds\n"
         ".It 0\n"
         "Done.\n"
         ".It 1\n"
         "Refused, not found, or not healthy; the reason is on the standard error.\n"
         ".It 2\n"
         "The command line is wrong.\n"
         ".It 69\n"
         "The running instance, or with\n"
         ".Cm check Fl -connect\n"
         "the target, cannot be reached; or an address cannot be listened on.\n"
         ".It 71\n"
         "No memory, threads or descriptors are left for the start, or no memory for a command.\n"
         ".It 74\n"
         "The ledger cannot be read, or output cannot be written.\n"
         ".It 75\n"
         "Another process has the ledger.\n"
         ".It 78\n"
         "The settings are wrong; every mistake is named.\n"
         ".El");
}

static void print_examples(void)
{
    puts(".Sh EXAMPLES\n"
         "What needs a person, and what is in doubt:\n"
         ".Bd -literal -offset indent\n"
         "sinkonce status\n"
         "sinkonce in-doubt\n"
         ".Ed\n"
         ".Pp\n"
         "The target has the record of doubt 17:\n"
         ".Bd -literal -offset indent\n"
         "sinkonce in-doubt resolve 17 --applied --reason \"order 4711 is there\"\n"
         ".Ed\n"
         ".Pp\n"
         "It has none of the 40 records of a topic that are in doubt:\n"
         ".Bd -literal -offset indent\n"
         "sinkonce in-doubt resolve --topic orders --expect 40 \\e\n"
         "    --not-applied --reason \"the target was restored from a backup\"\n"
         ".Ed\n"
         ".Pp\n"
         "Which records are found in a request:\n"
         ".Bd -literal -offset indent\n"
         "sinkonce explain --header \"X-Kafka-Topic: orders\" body.json\n"
         ".Ed");
}

static void print_commands_page(void)
{
    print_head("SINKONCE", 8, "sinkonce", "let each record of a Kafka sink connector through once");
    puts(".Sh SYNOPSIS\n"
         ".Nm\n"
         ".Op Ar command\n"
         ".Op Ar argument ...\n"
         ".Sh DESCRIPTION\n"
         ".Nm\n"
         "stands between a Kafka sink connector and its HTTP target.\n"
         "It keeps a ledger of the records that the target has, drops those that are delivered again, and "
         "holds those\n"
         "of which nobody can know whether they were applied.\n"
         "Without a command it is\n"
         ".Cm serve .\n"
         ".Pp\n"
         "What was asked for goes to the standard output, everything else to the standard error.");
    print_commands();
    print_options();
    print_surroundings();
    print_exit_status();
    print_examples();
    puts(".Sh SEE ALSO\n.Xr sinkonce-env 5");
}

/* ---- sinkonce-env(5) ----------------------------------------------------------------------------------------- */

static void print_setting(const struct settings_view *view, void *context)
{
    const char **group = context;
    if (strcmp(*group, view->group) != 0) {
        printf("%s.Ss %s\n.Bl -tag -width Ds\n", **group == '\0' ? "" : ".El\n", view->group);
        *group = view->group;
    }
    printf(".It Ev %s\n", view->name);
    print_sentences(view->words);
    if (view->is_secret)
        printf("A secret:\n.Ev %s_FILE\ngives the path of a file that holds it.\n", view->name);
    if (view->default_text == NULL) {
        puts("It is required.");
    } else if (view->default_text[0] != '\0') {
        fputs("The default is\n.Ql ", stdout);
        print_bytes(view->default_text, strlen(view->default_text), false);
        puts(" .");
    }
}

/* The table is shown by way of the least that makes a whole set of settings. */
static void print_settings_page(void)
{
    static char only_target[] = "SINKONCE_TARGET=http://localhost";
    char *environment[] = { only_target, NULL };
    struct settings settings;
    struct settings_mistakes mistakes;
    const char *group = "";
    print_head("SINKONCE-ENV", 5, "sinkonce-env", "settings of sinkonce");
    puts(".Sh DESCRIPTION\n"
         "All settings of\n"
         ".Xr sinkonce 8\n"
         "are environment variables.\n"
         "An empty value is no value: the default holds.\n"
         "Times and sizes carry a unit, as in\n"
         ".Ql 250ms ,\n"
         ".Ql 5s ,\n"
         ".Ql 2m ,\n"
         ".Ql 1h ,\n"
         ".Ql 1d\n"
         "and\n"
         ".Ql 4KiB ,\n"
         ".Ql 16MiB ,\n"
         ".Ql 1GiB ;\n"
         "0 needs none.\n"
         "Every mistake is printed before the program ends with 78, and so is a name that begins with\n"
         ".Ev SINKONCE_\n"
         "and is not known.");
    const bool is_good = settings_read(environment, &settings, &mistakes);
    if (is_good)
        settings_visit(&settings, environment, print_setting, &group);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    puts(".El\n"
         ".Sh SEE ALSO\n"
         ".Xr sinkonce 8");
}

int cli_man(const struct cli_arguments *arguments)
{
    if (arguments->operands[0][0] == '8')
        print_commands_page();
    else
        print_settings_page();
    return 0;
}
