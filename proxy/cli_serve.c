/*
 * cli_serve.c - sinkonce serve: the settings, then the proxy.
 */
#include "cli_commands.h"
#include "reload.h"
#include "serve.h"
#include <sysexits.h>

int cli_serve(const struct cli_arguments *arguments)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    const bool is_good = settings_read(arguments->environment, &settings, &mistakes);
    log_init(is_good ? settings.log_level : LOG_LEVEL_WARN, is_good ? settings.log_format : LOG_FORMAT_AUTO);
    reload_log_mistakes(&mistakes); /* into the log: where serve runs, it is what is kept */
    settings_mistakes_deinit(&mistakes);
    const int code = is_good ? serve(&settings, arguments->environment) : EX_CONFIG;
    settings_deinit(&settings);
    return code;
}
