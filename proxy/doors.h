/*
 * doors.h - the listening sockets, and who comes in where.
 *
 *     connectors' port ---------> the loop with the fewest connections; above SINKONCE_MAX_CONNECTIONS: a short 503
 *     admin port, health socket -> the main loop; above 64 connections the idlest makes room
 *
 * Threads: [main].
 */
#ifndef SINKONCE_DOORS_H
#define SINKONCE_DOORS_H

#include "admin.h"
#include "listener.h"
#include "loops.h"

/* The first four are borrowed, and outlive the doors; the listeners are NULL at first. */
struct doors {
    struct event_base *base;
    const struct program *program;
    const struct loops *loops;
    struct admin *admin;
    struct listener *data_listener, *admin_listener, *health_listener; /* owned; NULL: closed */
};

/* Open all that the settings ask for.  False: it is logged why not. */
MUST_CHECK bool doors_open(struct doors *doors);
void doors_close(struct doors *doors); /* all; what has been accepted stays */

/* The connectors' port alone, which is closed.  False: RET_WHY says what went wrong. */
MUST_CHECK bool doors_open_data(struct doors *doors, const struct listen_address *address, char ret_why[],
                                size_t why_bytes_max);
void doors_close_data(struct doors *doors); /* it may be closed */

#endif
