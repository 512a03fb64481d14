/*
 * cli_config.c - sinkonce config: the settings as they hold, as a file, as a table.
 */
#include "cli_commands.h"
#include <sysexits.h>

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
