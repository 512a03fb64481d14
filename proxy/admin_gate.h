/*
 * admin_gate.h - may this request change something?  The one gate of the admin port.
 *
 * A decider.  Where a request comes from is enough (loopback, Unix socket) or a token is; in both cases a browser that
 * was lured here by a foreign page is kept out.
 */
#ifndef SINKONCE_ADMIN_GATE_H
#define SINKONCE_ADMIN_GATE_H

#include "request.h"

enum gate {
    GATE_OPEN,
    GATE_NO_TOKEN_SET,   /* from beyond loopback, and no token is configured: 403 */
    GATE_NOT_AUTHORIZED, /* from beyond loopback, without the token or with a wrong one: 401 */
    GATE_FOREIGN_HOST,   /* Host is a name that anybody's DNS may point here: 403 */
    GATE_FOREIGN_ORIGIN, /* sent by a page of another origin: 403 */
    GATE_COUNT
};

/* TOKEN is the setting, "" when none. */
enum gate admin_gate(const struct request *request, const char *token);
/* The word for logs and the body's "error", and the sentence that says what to do. */
const char *admin_gate_label(enum gate gate);
const char *admin_gate_sentence(enum gate gate);
int admin_gate_status(enum gate gate);

/* True for an IP literal or localhost, with or without a port (RFC 9110, 7.2). */
bool admin_host_is_local_name(struct slice host);

#endif
