/*
 * loop.h - one event loop on a thread of its own, with all that belongs to it.
 *
 * A loop owns its connections, its exchanges, its port of the ledger and its part of the target's connections.  Other
 * threads only post tasks to it.
 */
#ifndef SINKONCE_LOOP_H
#define SINKONCE_LOOP_H

#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include "conn.h"
#include "credentials.h"
#include "identify.h"
#include "resolver.h"
#include "settings.h"
#include "store.h"
#include "upstream.h"

struct acks;
struct exchange;
struct loop;

/* What all loops share; constant but for the atomics. */
struct program {
    const struct settings *settings;     /* borrowed; of secrets the credentials know better */
    struct credentials *credentials;     /* [main] held: for what starts from now on */
    const struct identifier *identifier; /* borrowed */
    struct store *store;                 /* borrowed */
    struct resolver *resolver;           /* borrowed */
    struct acks *acks;                   /* borrowed: open acknowledgements, shared by all loops */
    atomic_size_t in_flight;             /* requests that are not answered and settled yet */
    atomic_size_t connections;
    atomic_int mode;         /* enum mode; each request keeps the one that it found */
    struct body_pool bodies; /* of connectors' requests */
    char via[64];            /* "1.1 sinkonce-0123abcd": pseudonym with the instance's id */
};

enum loop_start { LOOP_STARTS, LOOP_RUNS, LOOP_FAILED };

struct loop_task {
    struct loop_task *next;
    void (*run)(struct loop *loop, struct loop_task *task); /* [loop] frees TASK */
};

struct loop {
    struct program *program;          /* borrowed */
    struct event_base *base;          /* owned */
    struct store_port *port;          /* owned */
    struct upstream *upstream;        /* owned */
    struct credentials *credentials;  /* held: for what begins from now on */
    struct conn_service service;      /* the data port */
    struct exchange *spare_exchanges; /* owned: free list */
    size_t spare_count;
    size_t unwaited_count;     /* settlements that are lent to the ledger and that no exchange waits for */
    atomic_size_t connections; /* of this loop: the acceptor takes the least */
    atomic_size_t credentials_taken; /* how often others came into use */
    /* loop.c's */
    pthread_t thread;
    unsigned index;
    uint64_t ticked_ns;                     /* when the tick came last; 0: never */
    struct event *wake, *port_ready, *tick; /* owned */
    int wake_fd;                            /* owned */
    pthread_mutex_t lock;
    struct loop_task *first_task, *last_task; /* guarded by lock */
    struct loop_task stop;                    /* ready beforehand: the end must not want memory */
    pthread_cond_t started;                   /* guarded by lock */
    enum loop_start start;                    /* guarded by lock */
};

/* [main] Start a loop; NULL: no memory, no thread.  CONNECTIONS_MAX: its part of the target's connections. */
MUST_CHECK struct loop *loop_new(struct program *program, unsigned index, unsigned connections_max);
/* [main] Ends the thread and frees all; exchanges that still run are left as INTENT. */
void loop_free(struct loop *loop);
void loop_post(struct loop *loop, struct loop_task *task); /* [any] TASK is moved in */
/* [main] Hand an accepted connection over.  False: no memory, FD is closed. */
MUST_CHECK bool loop_accept(struct loop *loop, int fd, const char *peer, bool is_trusted_peer);
void loop_drain(struct loop *loop); /* [main] conn_drain_all() on the loop's thread */
/* [main] A task that lets what begins from now on use CREDENTIALS, which it holds; it must be posted.  NULL: no memory.
 * Once it has run, credentials_taken is one more. */
MUST_CHECK struct loop_task *loop_credentials_task(struct credentials *credentials);
void loop_credentials_task_free(struct loop_task *task); /* one that was not posted; NULL is fine */
/* [main] Connections are kept open again.  False: no memory, it drains on. */
MUST_CHECK bool loop_resume(struct loop *loop);

#endif
