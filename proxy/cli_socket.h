/*
 * cli_socket.h - does anything listen there?  For commands; the proxy itself has conn.h and upstream.h.
 */
#ifndef SINKONCE_CLI_SOCKET_H
#define SINKONCE_CLI_SOCKET_H

#include <stdint.h>
#include "slice.h"

/* A connected, non-blocking descriptor, or -1 and in RET_WHY what went wrong (static).  The search for the host's
 * addresses takes as long as it takes; TIMEOUT_MS, which begins before it, is for connecting to them. */
MUST_CHECK int cli_connect_host(const char *host, uint16_t port, uint64_t timeout_ms, const char **ret_why);

#endif
