/*
 * target_server.h - the counting target's listeners and connections.
 *
 *   accept --> reading --> [delay] --> answering --> reading ...
 *                 |           |            |
 *                 +-----------+------------+--> ended: close, reset, or stalled until the peer leaves
 *
 * One thread, one event loop.  A request is applied (target_counts.h) before the first byte of its answer.
 */
#ifndef TARGET_SERVER_H
#define TARGET_SERVER_H

#include "target_counts.h"
#include "target_rules.h"

#include <event2/event.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

struct target_conn;
TAILQ_HEAD(target_conn_list, target_conn);

struct target_listener {
    struct target_server *server; /* borrowed */
    struct event *event;          /* owned; NULL: refuses */
    int fd;
    struct sockaddr_storage address; /* with the real port */
    socklen_t address_length;
    bool is_control;
};

struct target_server {
    struct event_base *base;      /* owned */
    struct target_counts *counts; /* owned */
    struct target_rules rules;
    struct target_conn_list conns;
    struct target_listener writes;
    struct target_listener control;
    char *last; /* owned: the last write as it came */
    size_t last_length;
    bool keeps_last;
};

/* Listen on what listener->address says; the port chosen is written back.  False: errno says why. */
bool target_listener_open(struct target_listener *listener);
/* From now on connections are refused; open ones stay. */
void target_listener_close(struct target_listener *listener);
int target_listener_port(const struct target_listener *listener);

/* Calls SHOW with the first key of each request that is held back now. */
void target_server_held(struct target_server *server, void (*show)(void *context, const char *key),
                        void *context);

/* End every connection of connectors with a reset. */
void target_server_drop(struct target_server *server);

#endif
