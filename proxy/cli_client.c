/*
 * cli_client.c - see cli_client.h.
 */
#include "cli_client.h"
#include "cli_commands.h"
#include "cli_print.h"
#include <stdlib.h>
#include <sysexits.h>

/* A backup of a large ledger takes minutes. */
enum { TIMEOUT_MS = 60 * 1000, BACKUP_TIMEOUT_MS = 6 * 3600 * 1000 };

int cli_client_init(struct cli_client *ret, const struct cli_arguments *arguments)
{
    int code = 0;
    *ret = (struct cli_client){ .arguments = arguments, .is_json = arguments->values[OPTION_JSON] != NULL };
    ret->server = cli_server_new(arguments, &code);
    return ret->server == NULL ? code : 0;
}

void cli_client_deinit(struct cli_client *client)
{
    cli_server_free(client->server);
    client->server = NULL;
}

static void complain(const struct cli_client *client)
{
    fprintf(stderr, "sinkonce %s: ", client->arguments->command->name);
}

/* What the admin port says of a refusal, with both counts when they differ. */
static void print_refusal(const struct cli_client *client, const struct cli_answer *answer)
{
    json_t *json = json_loadb(answer->body, answer->body_bytes, 0, NULL);
    const json_t *expected = json_object_get(json, "expect_count"), *count = json_object_get(json, "count");
    const char *detail = json_string_value(json_object_get(json, "detail"));
    complain(client);
    fprintf(stderr, "%s answers %d: ", cli_server_name(client->server), answer->status);
    cli_print_text(detail != NULL ? detail : "it gives no reason", stderr);
    if (json_is_integer(expected) && json_is_integer(count))
        fprintf(stderr, "; it would be %" JSON_INTEGER_FORMAT ", not %" JSON_INTEGER_FORMAT,
                json_integer_value(count), json_integer_value(expected));
    fputc('\n', stderr);
    if (client->is_json && json != NULL)
        fprintf(stderr, "%.*s\n", (int)strcspn(answer->body, "\r\n"), answer->body);
    json_decref(json);
}

static void print_as_it_came(const struct cli_answer *answer)
{
    fwrite(answer->body, 1, answer->body_bytes, stdout);
    if (answer->body_bytes == 0 || answer->body[answer->body_bytes - 1] != '\n')
        putchar('\n');
}

static int judge(const struct cli_client *client, const struct cli_answer *answer, json_t **ret_answer)
{
    if (answer->status < 200 || answer->status > 299) {
        print_refusal(client, answer);
        return EXIT_REFUSED;
    }
    *ret_answer = json_loadb(answer->body, answer->body_bytes, 0, NULL);
    if (!json_is_object(*ret_answer)) {
        json_decref(*ret_answer);
        *ret_answer = NULL;
        complain(client);
        fprintf(stderr, "%s gives an answer that is not understood; is it the admin port of sinkonce?\n",
                cli_server_name(client->server));
        return EXIT_REFUSED;
    }
    if (client->is_json)
        print_as_it_came(answer);
    return 0;
}

int cli_client_ask(struct cli_client *client, const char *method, const char *path, json_t *body,
                   json_t **ret_answer)
{
    struct cli_answer answer;
    char why[512];
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    const uint64_t timeout_ms = strcmp(path, "/backup") == 0 ? BACKUP_TIMEOUT_MS : TIMEOUT_MS;
    int code = EX_UNAVAILABLE;
    *ret_answer = NULL;
    if (body != NULL && text == NULL) {
        json_decref(body);
        return EX_OSERR;
    }
    if (cli_http_ask(client->server, method, path, text, timeout_ms, &answer, why, sizeof why)) {
        code = judge(client, &answer, ret_answer);
    } else {
        complain(client);
        fprintf(stderr, "%s %s: %s%s\n", cli_server_name(client->server),
                answer.is_asked ? "has not answered" : "cannot be asked", why,
                answer.is_asked && strcmp(method, "GET") != 0
                    ? "; it may still do what was asked: look before you ask again"
                    : "");
    }
    cli_answer_deinit(&answer);
    free(text);
    json_decref(body);
    return code;
}
