/*
 * cli_token.h - the admin token of a command that gets it from a pipe or from stdin: --token-file <(...), --token-file -.
 *
 * A _FILE setting takes ordinary files alone: it is read again, and serve must not wait for it.  A command asks once, and
 * may wait a while for the program that has the token.
 */
#ifndef SINKONCE_CLI_TOKEN_H
#define SINKONCE_CLI_TOKEN_H

#include <stdbool.h>
#include <stdint.h>
#include "settings.h"

enum { CLI_TOKEN_BYTES_MAX = 4096 /* that of SINKONCE_ADMIN_TOKEN */ };

/* "-" or a pipe. */
bool cli_token_is_stream(const char *path);
/* All that comes from there, less a line end behind it.  At most WAIT_MS are waited for its end.  Returns NULL, or why there
 * is no token; then TOKEN is empty. */
MUST_CHECK const char *cli_token_read(const char *path, uint64_t wait_ms,
                                      char token[CLI_TOKEN_BYTES_MAX + 1]);

#endif
