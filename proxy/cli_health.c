/*
 * cli_health.c - sinkonce health: asks a running instance, for a container's health check.
 *
 * It needs what the admin port's settings say and nothing else, so that it works where the others are not at hand.  A port
 * that wants certificates is asked through its socket, so that none is needed; where there is none, with what there is.
 */
#include "cli_client.h"
#include "cli_commands.h"

enum { HEALTH_TIMEOUT_MS = 3000 };

static bool is_answered_by(struct cli_server *server, const char *path, struct cli_answer *ret, char why[],
                           size_t why_bytes_max)
{
    if (cli_http_ask_socket(server, path, HEALTH_TIMEOUT_MS, ret, why, why_bytes_max))
        return true;
    cli_answer_deinit(ret);
    return cli_http_ask(server, "GET", path, NULL, HEALTH_TIMEOUT_MS, ret, why, why_bytes_max);
}

static int ask(struct cli_server *server, const char *path)
{
    struct cli_answer answer;
    char why[512];
    const bool is_answered = is_answered_by(server, path, &answer, why, sizeof why);
    const bool is_ok = is_answered && answer.status == 200;
    if (is_ok)
        puts("ok");
    else if (is_answered)
        fprintf(stderr, "sinkonce health: %s of %s answers %d\n", path, cli_server_name(server),
                answer.status);
    else
        fprintf(stderr, "sinkonce health: %s cannot be asked: %s\n", cli_server_name(server), why);
    cli_answer_deinit(&answer);
    return is_ok ? 0 : EXIT_REFUSED;
}

/* Docker reserves all exit codes but 0 and 1. */
int cli_health(const struct cli_arguments *arguments)
{
    int code;
    struct cli_server *server = cli_server_new(arguments, &code);
    if (server == NULL)
        return EXIT_REFUSED;
    code = ask(server, arguments->values[OPTION_LIVE] != NULL ? "/livez" : "/readyz");
    cli_server_free(server);
    return code;
}
