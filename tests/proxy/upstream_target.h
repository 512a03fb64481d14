/*
 * upstream_target.h - a target on raw sockets that does byte for byte what a script says, and counts.
 *
 * One thread per connection, so that a script is a plain sequence of reads and writes.  A request counts as begun with
 * its first byte and as whole with its last: what counts against "sent once" is the first of them.
 */
#ifndef SINKONCE_UPSTREAM_TARGET_H
#define SINKONCE_UPSTREAM_TARGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { TARGET_CONNECTIONS_MAX = 1024, TARGET_SEEN_BYTES_MAX = 1 << 20 };

struct target;
/* One connection from its accept on; the descriptor is closed after it returns.  INDEX counts connections from 0. */
typedef void target_script(struct target *target, int fd, unsigned index);

struct target {
    int listen_fd, port;
    pthread_t acceptor;
    pthread_t threads[TARGET_CONNECTIONS_MAX];
    int fds[TARGET_CONNECTIONS_MAX]; /* guarded by lock; -1: closed */
    unsigned connection_count;
    pthread_mutex_t lock;
    target_script *script;
    void *context;                        /* the script's */
    atomic_uint begun_count, whole_count; /* requests other than those for /warm */
    atomic_bool is_ending;
    char *seen; /* guarded by lock: bytes of all requests, heads and bodies, in order of their ends */
    size_t seen_bytes;
};

/* One request as it was read. */
struct target_request {
    char head[16384];
    size_t head_bytes, body_bytes;
    bool is_warm;
};

void target_start(struct target *target, target_script *script, void *context);
void target_stop(struct target *target);
/* False: the peer has gone before the request was whole. */
bool target_read(struct target *target, int fd, struct target_request *ret_request);
/* Read the head and HALF of the body's bytes only. */
bool target_read_half(struct target *target, int fd, struct target_request *ret_request);
void target_write(int fd, const char *text);
void target_write_bytes(int fd, const char *bytes, size_t byte_count);
void target_reset(struct target *target, unsigned index); /* the close that follows sends RST */
void target_stall(struct target *target, int fd); /* until the peer leaves or the test ends; reads nothing */
bool target_has_seen(struct target *target, const char *text);

/* Answers every request with 200 and the body "ok", on kept connections. */
target_script target_answer_ok;
#define TARGET_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#endif
