/*
 * serve.h - the running sidecar, from open ledger to drained.
 */
#ifndef SINKONCE_SERVE_H
#define SINKONCE_SERVE_H

#include "settings.h"

/* [main] Runs until SIGTERM or SIGINT; returns the exit code of sysexits.h: 0, 69 (an address cannot be bound), 71, 74
 * (ledger unreadable), 75 (ledger locked), 78 (a certificate has gone bad since the settings were checked).  ENVIRONMENT is
 * read again at SIGHUP. */
int serve(const struct settings *settings, char *const environment[]);

#endif
