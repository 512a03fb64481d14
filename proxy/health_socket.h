/*
 * health_socket.h - where sinkonce health asks an instance whose admin port wants certificates of its clients.
 *
 * A Unix socket beside the ledger, on which only the probes are answered: who may use it may read the ledger, and no
 * certificate, key or token is needed.  So what lies broken on the disk, and is whole in the memory of the instance, makes
 * nobody call it dead.
 */
#ifndef SINKONCE_HEALTH_SOCKET_H
#define SINKONCE_HEALTH_SOCKET_H

#include "settings.h"

/* NULL: RET is the socket's address, to be released with listen_address_deinit().  Else why there is none (static). */
MUST_CHECK const char *health_socket_address(const char *data_dir, struct listen_address *ret);

#endif
