/*
 * cli_config.c - sinkonce config: the settings as they hold, as a file, as a table.
 */
#include "cli_commands.h"
#include <sysexits.h>

enum { ENVIRONMENT_MAX = 4096 };

/* Where samples are tried or a ledger is moved there may be no target yet: any will do. */
static char **with_target(char **environment)
{
    static char any[] = "SINKONCE_TARGET=http://localhost";
    static char *room[ENVIRONMENT_MAX];
    size_t count = 0;
    for (; environment[count] != NULL; count++) {
        if (strncmp(environment[count], "SINKONCE_TARGET=", 16) == 0 || count + 2 >= ENVIRONMENT_MAX)
            return environment;
        room[count] = environment[count];
    }
    room[count] = any;
    room[count + 1] = NULL;
    return room;
}

bool cli_settings_read(const struct cli_arguments *arguments, struct settings *ret)
{
    struct settings_mistakes mistakes;
    const bool is_good = settings_read(with_target(arguments->environment), ret, &mistakes);
    for (size_t i = 0; i < mistakes.line_count; i++)
        fprintf(stderr, "%s\n", mistakes.lines[i]);
    settings_mistakes_deinit(&mistakes);
    return is_good;
}

int cli_config_print(const struct cli_arguments *arguments)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    const bool is_good = settings_read(arguments->environment, &settings, &mistakes);
    cli_print_mistakes(&mistakes);
    if (is_good)
        settings_print(&settings, arguments->environment, stdout);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return is_good ? 0 : EX_CONFIG;
}

int cli_config_env(const struct cli_arguments *arguments)
{
    (void)arguments;
    settings_print_env(stdout);
    return 0;
}

int cli_config_docs(const struct cli_arguments *arguments)
{
    (void)arguments;
    settings_print_docs(stdout);
    return 0;
}
