/*
 * target_control.h - the control port of the counting target: it is asked and told over GET, on a port of its
 * own, so that nothing forwarded can reach it.
 *
 *   /set?RULE    this rule alone (target_rules.h); /add?RULE one more; /clear none
 *   /stats       totals; /counters totals and the count of each key; /count?KEY of one key
 *   /held        first keys of the requests held back now; /faulted the requests that met a rule
 *   /last        the last write, byte for byte as it came
 *   /refuse      connections are refused; /listen they are accepted again, on the same port
 *   /drop        open connections are reset; /reset forgets counters, keys and rules (the journal stays)
 */
#ifndef TARGET_CONTROL_H
#define TARGET_CONTROL_H

#include "target_answer.h"
#include "target_server.h"

struct target_answer target_control(struct target_server *server, const struct target_request *request);

#endif
