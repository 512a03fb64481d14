/*
 * settings_url.h - takes apart the URLs and addresses that an operator sets.
 *
 * A decider, and stricter than the RFCs where two readers of the same URL might disagree about its host.
 */
#ifndef SINKONCE_SETTINGS_URL_H
#define SINKONCE_SETTINGS_URL_H

#include "settings.h"

/* NULL when TEXT was understood, else what is wrong, in words that follow the setting's name (static).  RET must be
 * released in both cases. */
const char *target_url_parse(const char *text, struct target_url *ret);
/* The same for a proxy's URL: with user and password if need be, with a port, without path and query. */
const char *proxy_url_parse(const char *text, struct target_url *ret);
void target_url_deinit(struct target_url *url);

/* HOST:PORT, [IPV6]:PORT or unix:/path; port 0 is any free one. */
const char *listen_address_parse(const char *text, struct listen_address *ret);
void listen_address_deinit(struct listen_address *address);

#endif
