/*
 * cli_serve.c - sinkonce serve: the settings, then the proxy.
 */
#include "cli_commands.h"
#include "serve.h"
#include <sysexits.h>

/* Into the log and not beside it: where serve runs, the log is what is kept. */
static void log_mistakes(const struct settings_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->line_count; i++)
        log_event(LOG_LEVEL_ERROR, "config.invalid", mistakes->lines[i], NULL, 0);
    for (size_t i = 0; i < mistakes->note_count; i++)
        log_event(LOG_LEVEL_WARN, "config.risky", mistakes->notes[i], NULL, 0);
}

int cli_serve(const struct cli_arguments *arguments)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    const bool is_good = settings_read(arguments->environment, &settings, &mistakes);
    log_init(is_good ? settings.log_level : LOG_LEVEL_WARN, is_good ? settings.log_format : LOG_FORMAT_AUTO);
    log_mistakes(&mistakes);
    settings_mistakes_deinit(&mistakes);
    const int code = is_good ? serve(&settings) : EX_CONFIG;
    settings_deinit(&settings);
    return code;
}
