/*
 * cli_health.c - sinkonce health: asks a running instance, for a container's health check.
 *
 * It needs SINKONCE_ADMIN_LISTEN and nothing else, so that it works where the other settings are not at hand.
 */
#include "cli_commands.h"
#include "cli_socket.h"
#include <unistd.h>

enum { HEALTH_TIMEOUT_MS = 3000, ANSWER_BYTES_MAX = 4096 };

/* A wildcard is an address to listen on, not one to connect to. */
static const char *host_to_ask(const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

static bool is_ok(const char *answer, size_t byte_count)
{
    static const char ok[] = "HTTP/1.1 200 ";
    return byte_count >= sizeof ok - 1 && memcmp(answer, ok, sizeof ok - 1) == 0;
}

static int ask(const struct listen_address *address, const char *path)
{
    const uint64_t deadline = deadline_in(HEALTH_TIMEOUT_MS);
    const char *why = "";
    char request[128], answer[ANSWER_BYTES_MAX] = "";
    size_t answer_bytes = sizeof answer - 1;
    const int fd = address->is_unix
                       ? cli_connect_unix(address->host, deadline, &why)
                       : cli_connect_host(host_to_ask(address->host), address->port, deadline, &why);
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             path);
    const bool is_answered =
        fd >= 0 && cli_ask(fd, slice_of_text(request), answer, &answer_bytes, deadline, &why);
    if (fd >= 0)
        close(fd);
    if (is_answered && is_ok(answer, answer_bytes)) {
        puts("ok");
        return 0;
    }
    if (is_answered)
        fprintf(stderr, "sinkonce health: %s of %s answers: %.*s\n", path, address->text,
                (int)strcspn(answer, "\r\n"), answer);
    else
        fprintf(stderr, "sinkonce health: %s cannot be asked: %s\n", address->text, why);
    return 1;
}

static int ask_admin_port(char **envp, const char *path)
{
    struct settings settings;
    struct settings_mistakes mistakes;
    int code = 1;
    const bool is_whole = settings_read(envp, &settings, &mistakes);
    (void)is_whole; /* a mistake elsewhere is serve's to report */
    if (settings.admin_listen.text == NULL)
        fprintf(stderr, "sinkonce health: SINKONCE_ADMIN_LISTEN is not valid; see sinkonce check\n");
    else if (!settings.admin_listen.is_unix && settings.admin_listen.port == 0)
        fprintf(stderr,
                "sinkonce health: SINKONCE_ADMIN_LISTEN has port 0: nobody can know which one was taken\n");
    else
        code = ask(&settings.admin_listen, path);
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    return code;
}

int cli_health(int argc, char **argv, char **envp)
{
    const char *path = "/readyz";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--live") == 0)
            path = "/livez";
        else if (strcmp(argv[i], "--ready") == 0)
            path = "/readyz";
        else
            return cli_refuse(argv[0], argv[i]);
    }
    return ask_admin_port(envp, path);
}
