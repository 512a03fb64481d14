/*
 * cli.c - finds the command, runs it, and makes sure that its output arrived.
 */
#include "cli.h"
#include "cli_commands.h"
#include "serve.h"
#include "settings_spell.h"
#include <errno.h>
#include <sysexits.h>

static int run_serve(int argc, char **argv, char **envp);
static int run_config(int argc, char **argv, char **envp);
static int run_help(int argc, char **argv, char **envp);
static int run_version(int argc, char **argv, char **envp);

static const struct command {
    const char *name, *arguments, *words;
    int (*run)(int argc, char **argv, char **envp);
} commands[] = {
    { "serve", "", "run the proxy; what sinkonce does without a command", run_serve },
    { "check", "[--connect]",
      "report all that is wrong with settings and data folder, and the target if asked", cli_check },
    { "config", "[print|env|docs]", "settings as they hold and where each comes from; as a file; as a table",
      run_config },
    { "health", "[--live|--ready]", "ask the running instance; exit code 0 or 1", cli_health },
    { "--version", "", "versions of sinkonce and its libraries", run_version },
    { "--help", "", "this text", run_help },
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

int cli_refuse(const char *command, const char *argument)
{
    fprintf(stderr, "sinkonce %s: \"%s\" is not understood; sinkonce --help shows the arguments\n", command,
            argument);
    return EXIT_USAGE;
}

/* ---- serve --------------------------------------------------------------------------------------------------- */

/* Into the log and not beside it: where serve runs, the log is what is kept. */
static void log_mistakes(const struct settings_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->line_count; i++)
        log_event(LOG_LEVEL_ERROR, "config.invalid", mistakes->lines[i], NULL, 0);
    for (size_t i = 0; i < mistakes->note_count; i++)
        log_event(LOG_LEVEL_WARN, "config.risky", mistakes->notes[i], NULL, 0);
}

static int run_serve(int argc, char **argv, char **envp)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    if (argc > 1)
        return cli_refuse(argv[0], argv[1]);
    const bool is_good = settings_read(envp, &settings, &mistakes);
    log_init(is_good ? settings.log_level : LOG_LEVEL_WARN, is_good ? settings.log_format : LOG_FORMAT_AUTO);
    log_mistakes(&mistakes);
    settings_mistakes_deinit(&mistakes);
    const int code = is_good ? serve(&settings) : EX_CONFIG;
    settings_deinit(&settings);
    return code;
}

/* ---- config -------------------------------------------------------------------------------------------------- */

static int print_settings(char **envp)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    const bool is_good = settings_read(envp, &settings, &mistakes);
    cli_print_mistakes(&mistakes);
    if (is_good)
        settings_print(&settings, envp, stdout);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return is_good ? 0 : EX_CONFIG;
}

static int run_config(int argc, char **argv, char **envp)
{
    const char *form = argc > 1 ? argv[1] : "print";
    if (argc > 2)
        return cli_refuse(argv[0], argv[2]);
    if (strcmp(form, "print") == 0)
        return print_settings(envp);
    if (strcmp(form, "env") == 0)
        settings_print_env(stdout);
    else if (strcmp(form, "docs") == 0)
        settings_print_docs(stdout);
    else
        return cli_refuse(argv[0], argv[1]);
    return 0;
}

/* ---- help and version ---------------------------------------------------------------------------------------- */

static int run_version(int argc, char **argv, char **envp)
{
    (void)envp;
    return argc > 1 ? cli_refuse(argv[0], argv[1]) : cli_version();
}

static int run_help(int argc, char **argv, char **envp)
{
    (void)argc;
    (void)argv;
    (void)envp;
    puts("sinkonce stands between a Kafka sink connector and its HTTP target and lets each record through "
         "once.\n\n"
         "usage: sinkonce [command]\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %-16s %s\n", commands[i].name, commands[i].arguments, commands[i].words);
    puts("\nSettings come from the environment only.  [_FILE]: a secret; NAME_FILE gives the path of a file "
         "with it.");
    settings_print_help(stdout);
    puts("\nExit codes: 0 done, 1 not healthy, 2 wrong command line, 69 target unreachable, 74 ledger "
         "unreadable or\n"
         "output failed, 75 ledger locked, 78 wrong settings.");
    return 0;
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

static const struct command *find(const char *name)
{
    if (strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        name = "--help";
    if (strcmp(name, "-V") == 0 || strcmp(name, "version") == 0)
        name = "--version";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int refuse_command(const char *name)
{
    struct spelling spelling = spelling_of(name);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        spelling_offer(&spelling, commands[i].name);
    if (spelling.nearest != NULL)
        fprintf(stderr, "sinkonce: \"%s\" is not a command; did you mean %s?\n", name, spelling.nearest);
    else
        fprintf(stderr, "sinkonce: \"%s\" is not a command; sinkonce --help shows them all\n", name);
    return EXIT_USAGE;
}

int cli_main(int argc, char **argv, char **envp)
{
    static char serve_name[] = "serve";
    char *only_serve[] = { serve_name, NULL };
    const struct command *command = argc > 1 ? find(argv[1]) : &commands[0];
    if (command == NULL)
        return refuse_command(argv[1]);
    const int code = argc > 1 ? command->run(argc - 1, argv + 1, envp) : command->run(1, only_serve, envp);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "sinkonce: stdout cannot be written: %s\n", strerror(errno));
    return code == 0 ? EX_IOERR : code;
}
