/*
 * health_socket.h - where sinkonce health asks an instance whose admin port wants certificates of its clients.
 *
 * A Unix socket beside the ledger, on which only the probes are answered, without certificate, key or token: whoever can
 * reach it can read the ledger anyway.  So an instance that holds good certificates in its memory does not look dead
 * because the files on the disk have gone bad since.
 */
#ifndef SINKONCE_HEALTH_SOCKET_H
#define SINKONCE_HEALTH_SOCKET_H

#include "settings.h"

/* NULL: RET is the socket's address, to be released with listen_address_deinit().  Else why there is none (static). */
MUST_CHECK const char *health_socket_address(const char *data_dir, struct listen_address *ret);

#endif
