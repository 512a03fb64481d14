/*
 * target_conn.h - one connection of the counting target.
 */
#ifndef TARGET_CONN_H
#define TARGET_CONN_H

#include "target_server.h"

/* Takes FD over. */
void target_conn_new(struct target_server *server, int fd, bool is_control);

/* The first key of the request that is held back, or NULL. */
const char *target_conn_held(const struct target_conn *conn);
struct target_conn *target_conn_next(struct target_conn *conn);
bool target_conn_is_control(const struct target_conn *conn);
/* End it with a reset; CONN is gone afterwards. */
void target_conn_drop(struct target_conn *conn);

#endif
