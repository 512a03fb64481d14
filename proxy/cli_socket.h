/*
 * cli_socket.h - one connection with a time limit, for commands; the proxy itself has conn.h and upstream.h.
 */
#ifndef SINKONCE_CLI_SOCKET_H
#define SINKONCE_CLI_SOCKET_H

#include <stdint.h>
#include "slice.h"

/* A moment on the monotonic clock, MS from now. */
uint64_t deadline_in(uint64_t ms);

/* A connected, non-blocking descriptor, or -1 and in RET_WHY what went wrong (static). */
MUST_CHECK int cli_connect_host(const char *host, uint16_t port, uint64_t deadline, const char **ret_why);
MUST_CHECK int cli_connect_unix(const char *path, uint64_t deadline, const char **ret_why);

/* Send REQUEST and read up to RET_COUNT bytes of the answer, until its end, the room's end or the deadline.  False
 * with RET_WHY when nothing came. */
MUST_CHECK bool cli_ask(int fd, struct slice request, char answer[], size_t *ret_count, uint64_t deadline,
                        const char **ret_why);

#endif
