/*
 * upstream_internal.h - what the files upstream*.c share; nobody else includes it.
 *
 *     upstream.c           queue, in-flight limit, start and end of a transfer
 *     upstream_loop.c      libcurl's sockets and timer as events of the loop
 *     upstream_name.c      the target's addresses, asked of the resolver
 *     upstream_request.c   what is sent: options, fields, body, the guard
 *     upstream_response.c  what comes back: head, body, why it ended
 *     upstream_idle.c      how long each connection has been idle
 * Threads: [loop], but for what is marked in struct name_query.
 */
#ifndef SINKONCE_UPSTREAM_INTERNAL_H
#define SINKONCE_UPSTREAM_INTERNAL_H

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include "resolver.h"
#include "upstream.h"
#include "upstream_idle.h"

/* One socket of libcurl.  Both events stand ready beforehand, so that the socket callback cannot fail. */
struct watch {
    struct event reading, writing;
    struct upstream *upstream; /* borrowed */
    curl_socket_t fd;
    bool is_reading, is_writing;
    bool is_own;               /* we opened the socket */
    bool is_connected;         /* from now on we are told when it is closed: it is watched till then */
    bool is_idle;              /* libcurl does not care for it now */
    struct watch *next;        /* in the free list */
    struct watch *next_corked; /* in the list of the sockets that hold bytes back */
};

/* A question that the resolver's thread answers, perhaps after the upstream has gone. */
struct name_query {
    struct lookup lookup; /* lent to the resolver while is_lent */
    pthread_mutex_t lock;
    bool is_lent; /* guarded by lock, as is what follows */
    bool is_answered;
    int wake_fd; /* an eventfd; -1: the upstream has gone, and done() releases this */
};

enum name_state { NAME_ASKED, NAME_KNOWN, NAME_FAILED };

/* Whom libcurl connects to: the target, or the proxy before it. */
struct name {
    char *host; /* owned; without brackets */
    uint16_t port;
    bool is_literal;
    enum name_state state;
    uint64_t asked_ns;
    char detail[96];
    char addresses[RESOLVER_ADDRESSES_BYTES_MAX];
    char entry_text[RESOLVER_ADDRESSES_BYTES_MAX + 300];
    struct curl_slist entry;  /* for CURLOPT_RESOLVE; its text is entry_text */
    unsigned generation;      /* counts changes of the addresses */
    bool is_loaded;           /* libcurl's cache has the present addresses */
    struct name_query *query; /* owned, or the resolver's when the upstream goes first */
    struct event wake;
};

/* One easy handle and what a flight needs around it.  Kept in a free list between flights. */
struct transfer {
    CURL *easy;                /* owned */
    struct upstream *upstream; /* borrowed */
    struct flight *flight;     /* borrowed while running, else NULL */
    struct transfer *next, *previous;
    /* request */
    struct curl_slist *nodes; /* owned: field_count and some more */
    size_t node_room;
    char *text; /* owned: what the nodes point to, and the request target */
    size_t text_room;
    char method[16]; /* as last set; "" when it has to be set again */
    size_t part_index, part_offset, body_bytes_given;
    int local_port;           /* of the connection, from the prereq on */
    unsigned name_generation; /* of the addresses when it started */
    unsigned credentials_generation;
    bool is_connection_new;   /* a socket was opened for it */
    curl_socket_t opened_fd;  /* the last one */
    bool is_connection_stale; /* the guard did not trust the used connection */
    bool is_stopped;          /* the guard saw the flight's stop */
    /* response */
    size_t head_bytes, head_room, answer_room;
    bool is_too_large, is_out_of_memory;
    uint32_t idle_limit_ms;
    char error[CURL_ERROR_SIZE];
};

struct flight_list {
    struct flight *first, *last;
};

struct upstream {
    struct event_base *base;         /* borrowed */
    const struct settings *settings; /* borrowed */
    struct credentials *credentials; /* held; NULL: no files of ours */
    unsigned credentials_generation; /* counts their changes */
    struct resolver *resolver;       /* borrowed */
    unsigned connections_max, in_flight_count;
    CURLM *multi;                         /* owned; NULL: to be started anew */
    struct event timer;                   /* libcurl's */
    struct event turn;                    /* delivers what ended without a transfer */
    struct event expiry;                  /* of the first in the queue */
    struct watch *watches, *free_watches; /* owned */
    struct watch **own_watches;           /* owned; by descriptor: those of the sockets that we opened */
    size_t own_watch_room;
    struct watch *corked;
    struct transfer *idle, *running; /* owned */
    struct flight_list queue, ended; /* lent by the callers */
    struct name name;
    struct idle_table connections;
    CURLU *url;              /* owned: scheme and authority only; the rest goes into the request target */
    char *target_prefix;     /* owned: what stands before the request's own target */
    bool is_handle_kept;     /* this libcurl's handles may be used again */
    bool is_library_running; /* inside libcurl: nothing may call it again */
};

static inline bool upstream_has_proxy(const struct settings *settings)
{
    return settings->target_proxy != NULL && settings->target_proxy[0] != '\0';
}

/* upstream.c */
/* After each call into libcurl that may have ended transfers.  IS_BROKEN: it failed, and every transfer ends. */
void upstream_collect(struct upstream *upstream, bool is_broken);
void upstream_pump(struct upstream *upstream); /* start what may start */

/* upstream_loop.c */
MUST_CHECK bool upstream_engine_start(struct upstream *upstream); /* if it does not run; false: no memory */
/* No transfer may run.  Its connections end; after a failure the only way to be sure of it. */
void upstream_engine_stop(struct upstream *upstream);
MUST_CHECK bool upstream_loop_init(struct upstream *upstream);
void upstream_loop_deinit(struct upstream *upstream);
/* For CURLOPT_OPENSOCKETFUNCTION, CURLOPT_PREREQFUNCTION and CURLOPT_CLOSESOCKETFUNCTION, inside the library: a socket
 * begins, is used for the first time, ends. */
void upstream_socket_opened(struct upstream *upstream, curl_socket_t fd);
void upstream_socket_connected(struct upstream *upstream, curl_socket_t fd);
void upstream_socket_closing(struct upstream *upstream, curl_socket_t fd);
/* Inside the library: what is written to FD leaves when the library returns, in one piece with what follows. */
void upstream_socket_cork(struct upstream *upstream, curl_socket_t fd);

/* upstream_name.c */
MUST_CHECK bool upstream_name_init(struct upstream *upstream);
void upstream_name_deinit(struct upstream *upstream);
enum name_state upstream_name_check(struct upstream *upstream, uint64_t now_ns);
/* Is FD connected to one of the present addresses? */
bool upstream_name_has_peer(const struct name *name, int fd);

/* upstream_request.c */
struct transfer *transfer_new(struct upstream *upstream); /* NULL: no memory */
void transfer_free(struct transfer *transfer);
/* Have the credentials changed since it started? */
bool transfer_is_outdated(const struct transfer *transfer);
MUST_CHECK bool transfer_fill(struct transfer *transfer); /* false: no memory */
bool flight_is_valid(const struct flight *flight);        /* nothing in it can end a line early */

/* upstream_response.c */
size_t transfer_on_header(char *line, size_t one, size_t byte_count, void *context);
size_t transfer_on_body(char *bytes, size_t one, size_t byte_count, void *context);
/* Set all results but the times, from what was observed; RC is libcurl's. */
void transfer_judge(struct transfer *transfer, CURLcode rc);
void flight_fail_unsent(struct flight *flight, enum attempt_error error, const char *detail);

#endif
