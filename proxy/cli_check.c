/*
 * cli_check.c - sinkonce check: everything that would keep serve from starting, in one run.
 *
 * Every finding is printed; the exit code is that of the first kind in the order settings, ledger, target.
 */
#include "cli_commands.h"
#include "cli_socket.h"
#include "settings_url.h"
#include <sysexits.h>
#include <unistd.h>

void cli_print_mistakes(const struct settings_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->line_count; i++)
        fprintf(stderr, "%s\n", mistakes->lines[i]);
    for (size_t i = 0; i < mistakes->note_count; i++)
        fprintf(stderr, "note: %s\n", mistakes->notes[i]);
}

static int connect_to(const struct target_url *url, uint64_t timeout_ms, const char *role)
{
    const char *why = "";
    const int fd = cli_connect_host(url->host, url->port, timeout_ms, &why);
    if (fd < 0) {
        fprintf(stderr, "the %s %s port %u cannot be reached: %s\n", role, url->host, (unsigned)url->port,
                why);
        return EX_UNAVAILABLE;
    }
    close(fd);
    printf("%s: %s port %u accepts connections\n", role, url->host, (unsigned)url->port);
    return 0;
}

/* Behind a proxy only the proxy is ours to connect to. */
static int check_target(const struct settings *settings)
{
    struct target_url proxy = { 0 };
    int code = 0;
    if (*settings->target_proxy == '\0')
        return connect_to(&settings->target, settings->connect_timeout_ms, "target");
    if (proxy_url_parse(settings->target_proxy, &proxy) == NULL)
        code = connect_to(&proxy, settings->connect_timeout_ms, "proxy");
    target_url_deinit(&proxy);
    return code;
}

static int check_all(const struct settings *settings, bool is_whole, bool is_connecting)
{
    const bool has_folder = settings->data_dir != NULL;
    int folder_code = has_folder ? cli_folder_check(settings) : 0;
    if (is_whole && folder_code == 0)
        folder_code = cli_ledger_check(settings);
    const bool has_target = settings->target.text != NULL && settings->target_proxy != NULL;
    const int target_code = is_connecting && has_target ? check_target(settings) : 0;
    if (is_whole)
        puts("settings: ok");
    if (has_folder && folder_code == 0)
        printf("data folder: %s can be used\n", settings->data_dir);
    if (!is_whole)
        return EX_CONFIG;
    return folder_code != 0 ? folder_code : target_code;
}

int cli_check(const struct cli_arguments *arguments)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    const bool is_whole = settings_read(arguments->environment, &settings, &mistakes);
    cli_print_mistakes(&mistakes);
    const int code = check_all(&settings, is_whole, arguments->values[OPTION_CONNECT] != NULL);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return code;
}
