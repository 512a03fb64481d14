/*
 * cli_http.h - one question to the admin port of a running instance.
 */
#ifndef SINKONCE_CLI_HTTP_H
#define SINKONCE_CLI_HTTP_H

#include "cli_table.h"

/* Where to ask: SINKONCE_ADMIN_LISTEN or --admin, with the token and the certificates that belong to it. */
struct cli_server;

/* Read options and environment; only what belongs to the admin port must be right.  NULL: said on stderr; *RET_CODE is
 * the exit code. */
MUST_CHECK struct cli_server *cli_server_new(const struct cli_arguments *arguments, int *ret_code);
void cli_server_free(struct cli_server *server);
/* As the operator wrote it. */
const char *cli_server_name(const struct cli_server *server);

struct cli_answer {
    bool is_asked; /* the request, or a part of it, has left: without an answer nobody knows what became of it */
    int status;
    char *body; /* owned, ends with a zero */
    size_t body_bytes;
};

/* Send BODY as JSON, or none when it is NULL, and wait TIMEOUT_MS at most (0: for ever).  False: nobody answered, and
 * RET_WHY says why.  An answer of any status is an answer.  RET must be deinitialised in both cases. */
MUST_CHECK bool cli_http_ask(struct cli_server *server, const char *method, const char *path,
                             const char *body, uint64_t timeout_ms, struct cli_answer *ret, char ret_why[],
                             size_t why_bytes_max);
/* A GET through the socket of the health check (health_socket.h), when SERVER is the instance that shares our environment.
 * False also: it has no such socket. */
MUST_CHECK bool cli_http_ask_socket(struct cli_server *server, const char *path, uint64_t timeout_ms,
                                    struct cli_answer *ret, char ret_why[], size_t why_bytes_max);
void cli_answer_deinit(struct cli_answer *answer);

#endif
