/*
 * cli_client.h - a question of a command and its answer: refusals become sentences and exit codes.
 */
#ifndef SINKONCE_CLI_CLIENT_H
#define SINKONCE_CLI_CLIENT_H

#include <jansson.h>
#include "cli_http.h"

enum { EXIT_REFUSED = 1 };

/* One command that asks. */
struct cli_client {
    const struct cli_arguments *arguments;
    struct cli_server *server; /* owned */
    bool is_json;              /* print answers as they come */
};

/* 0, or the exit code; then the reason has been said.  RET must be deinitialised in both cases. */
MUST_CHECK int cli_client_init(struct cli_client *ret, const struct cli_arguments *arguments);
void cli_client_deinit(struct cli_client *client);

/* Ask, and print the answer as it came when that is wanted.  BODY is taken; NULL: no body.  0: *RET_ANSWER is the
 * caller's to release.  Else it is NULL and the return value the exit code: 1 refused, 69 nobody answered. */
MUST_CHECK int cli_client_ask(struct cli_client *client, const char *method, const char *path, json_t *body,
                              json_t **ret_answer);

#endif
