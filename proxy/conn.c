/*
 * conn.c - the life of a connection: its states and deadlines, what libevent tells, all connections of a service.
 *
 *   state       left when                        what is true meanwhile
 *   HANDSHAKE   TLS is agreed upon               nothing is read or written but by the library
 *   IDLE        the first byte arrives           nothing of a request is here
 *   HEAD        the empty line is here           bytes of a head are in the input
 *   BODY        the body is whole                REQUEST holds the head and what came of the body
 *   WORKING     conn_reply()                     the service has the request
 *   WRITING     the reply has left               nothing is read
 *   LINGERING   the peer closed, or time is up   the last reply has left, what still comes is thrown away
 *
 * conn_read.c and conn_write.c do what a state is about; here is decided which one is next.
 *
 * One sweep a few times a second enforces the deadlines: a timer per connection and phase would cost more than it
 * tells.
 *
 * With TLS all bytes go through the bufferevent, and its callbacks come in turns of their own: libevent would call them
 * from inside a write.
 */
#include "conn.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "conn_state.h"

enum {
    LINGER_MS = 2000, /* RFC 9112, 9.6: long enough for the peer to read the last reply */
    LINGER_BYTES_MAX = 1024 * 1024,
};

#define BIT(state) (1u << CONN_##state)
static const unsigned may_become[CONN_STATES] = {
    [CONN_HANDSHAKE] = BIT(IDLE),
    [CONN_IDLE] = BIT(HEAD) | BIT(LINGERING),
    [CONN_HEAD] = BIT(BODY) | BIT(WRITING) | BIT(IDLE),
    [CONN_BODY] = BIT(WORKING) | BIT(WRITING),
    [CONN_WORKING] = BIT(WRITING),
    [CONN_WRITING] = BIT(IDLE) | BIT(LINGERING),
    [CONN_LINGERING] = 0,
};

static void deadline_set(struct conn *conn, uint64_t after_ms)
{
    conn->deadline_ns = after_ms == 0 ? 0 : clock_monotonic_ns() + after_ms * NS_PER_MS;
}

void conn_move(struct conn *conn, enum conn_state next)
{
    const struct conn_service *service = conn->service;
    assert(may_become[conn->state] & (1u << next));
    conn->state = next;
    switch (next) {
    case CONN_HANDSHAKE:
        break;
    case CONN_IDLE:
        deadline_set(conn, service->idle_timeout_ms);
        break;
    case CONN_HEAD:
        deadline_set(conn, service->head_timeout_ms);
        break;
    case CONN_BODY:
        deadline_set(conn, service->body_timeout_ms);
        break;
    case CONN_WORKING:
        deadline_set(conn, 0);
        break;
    case CONN_WRITING:
        deadline_set(conn, service->write_timeout_ms);
        break;
    case CONN_LINGERING:
        deadline_set(conn, LINGER_MS);
        break;
    case CONN_STATES:
    default:
        assert(0);
    }
}

/* The one place that frees a connection. */
static void conn_free(struct conn *conn)
{
    struct conn_service *service = conn->service;
    if (conn->previous != NULL)
        conn->previous->next = conn->next;
    else
        service->first = conn->next;
    if (conn->next != NULL)
        conn->next->previous = conn->previous;
    service->conn_count--;
    void *exchange = conn->state == CONN_WORKING ? conn->exchange : NULL;
#ifdef BREAK_LEAK
    int leaked = dup(bufferevent_getfd(conn->bufferevent));
    (void)leaked;
#endif
    if (conn->turn != NULL)
        event_free(conn->turn);
    if (conn->session != NULL && conn->state == CONN_IDLE && !conn->is_broken)
        tls_session_close(conn->session);
    if (conn->bufferevent != NULL)
        bufferevent_free(conn->bufferevent);
    request_free(conn->request);
    conn_output_release(conn);
    free(conn);
    if (exchange != NULL)
        service->on_gone(service->context, exchange);
    service->on_closed(service->context);
}

/* The peer is gone, by error or in the middle of something. */
static void conn_abort(struct conn *conn)
{
    if (conn->state == CONN_HEAD || conn->state == CONN_BODY || conn->state == CONN_WRITING)
        conn->service->on_abort(conn->service->context, conn->peer, conn->state != CONN_WRITING);
    conn_free(conn);
}

void conn_exchange_set(struct conn *conn, void *exchange)
{
    conn->exchange = exchange;
}

/* Nothing more will come from the peer.  A half close after a whole request is legal: it still gets its answer. */
static void input_ended(struct conn *conn)
{
    switch (conn->state) {
    case CONN_HANDSHAKE:
    case CONN_IDLE:
    case CONN_LINGERING:
        conn_free(conn);
        break;
    case CONN_HEAD:
        conn_abort(conn);
        break;
    case CONN_BODY: /* shorter than announced: RFC 9112, 8 */
        conn_refuse(conn, FINISH_BAD_REQUEST);
        break;
    case CONN_WORKING:
    case CONN_WRITING: /* requests that came before the end still get their answers */
        conn->is_closing =
            conn->is_closing || evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) == 0;
        break;
    case CONN_STATES:
    default:
        assert(0);
    }
}

static void discard(struct conn *conn)
{
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    conn->lingered_bytes += evbuffer_get_length(input);
    evbuffer_drain(input, evbuffer_get_length(input));
    if (conn->lingered_bytes > LINGER_BYTES_MAX || conn->is_half_closed)
        conn_free(conn);
}

/* Go on as far as the bytes that are here allow.  May free CONN. */
static void conn_advance(struct conn *conn)
{
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    if (conn->is_advancing)
        return;
    conn->is_advancing = true;
    bool is_going_on = true;
    while (is_going_on) {
        switch (conn->state) {
        case CONN_IDLE:
            is_going_on = evbuffer_get_length(input) > 0;
            if (is_going_on)
                conn_move(conn, CONN_HEAD);
            break;
        case CONN_HEAD:
            is_going_on = conn_read_head(conn);
            break;
        case CONN_BODY:
            is_going_on = conn_read_body(conn);
            break;
        case CONN_HANDSHAKE:
        case CONN_WORKING:
        case CONN_WRITING:
        case CONN_LINGERING:
        case CONN_STATES:
        default:
            is_going_on = false;
        }
    }
    conn->is_advancing = false;
    if (conn->state == CONN_LINGERING) {
        discard(conn);
        return;
    }
    conn_read_bound(conn);
    if (conn->is_half_closed)
        input_ended(conn);
}

/* ---- what libevent tells ------------------------------------------------------------------------------------- */

static void read_cb(struct bufferevent *bufferevent, void *context)
{
    (void)bufferevent;
    conn_advance(context);
}

static void turn_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    conn_advance(context);
}

/* The output is empty. */
static void write_cb(struct bufferevent *bufferevent, void *context)
{
    struct conn *conn = context;
    bufferevent_disable(bufferevent, EV_WRITE);
    if (conn->state == CONN_WRITING)
        conn_written(conn);
}

/* Bytes of a request are here, if only in the kernel: it came before the end and gets its answer. */
static bool has_input(const struct conn *conn)
{
    int waiting = 0;
    if (evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) > 0)
        return true;
    return ioctl(bufferevent_getfd(conn->bufferevent), FIONREAD, &waiting) == 0 && waiting > 0;
}

static void handshake_done(struct conn *conn)
{
    conn_move(conn, CONN_IDLE);
    bufferevent_disable(conn->bufferevent, EV_WRITE);
    if (bufferevent_enable(conn->bufferevent, EV_READ) != 0)
        conn_give_up(conn); /* no memory: it would never be heard */
    else if (conn->service->is_draining && !has_input(conn))
        conn_linger(conn);
}

static void handshake_failed(struct conn *conn, bool is_late)
{
    const struct conn_service *service = conn->service;
    char words[TLS_WORDS_MAX] = "time is up";
    enum tls_failure failure = TLS_FAILED_TIMEOUT;
    if (!is_late)
        failure = tls_failure_of(conn->session, bufferevent_get_openssl_error(conn->bufferevent), words);
    service->on_handshake_failed(service->context, conn->peer, failure, words);
    conn_free(conn);
}

static void event_cb(struct bufferevent *bufferevent, short what, void *context)
{
    struct conn *conn = context;
    (void)bufferevent;
    if (what & BEV_EVENT_CONNECTED) {
        handshake_done(conn);
        return;
    }
    if (conn->state == CONN_HANDSHAKE) {
        handshake_failed(conn, false);
        return;
    }
    if (what & BEV_EVENT_ERROR) {
        conn->is_broken = true;
        /* With TLS libevent may tell of the error and not of the bytes before it. */
        if (conn->session != NULL && conn->state != CONN_LINGERING && !conn->is_half_closed)
            conn_advance(conn);
        conn_abort(conn);
        return;
    }
    if (what & BEV_EVENT_EOF) {
        conn->is_half_closed = true;
        conn_advance(conn);
    }
}

/* False: no memory. */
static bool conn_connect(struct conn *conn, struct event_base *base, int fd)
{
    const struct conn_service *service = conn->service;
    conn->turn = event_new(base, -1, 0, turn_cb, conn);
    if (conn->turn == NULL)
        return false;
    if (service->tls == NULL) {
        conn->bufferevent = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
        return conn->bufferevent != NULL;
    }
    conn->session = tls_session_new(service->tls);
    if (conn->session == NULL)
        return false;
    conn->bufferevent = /* takes the session, also when it fails */
        bufferevent_openssl_socket_new(base, fd, conn->session, BUFFEREVENT_SSL_ACCEPTING,
                                       BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    return conn->bufferevent != NULL;
}

static void conn_enlist(struct conn *conn)
{
    struct conn_service *service = conn->service;
    conn->next = service->first;
    if (service->first != NULL)
        service->first->previous = conn;
    service->first = conn;
    service->conn_count++;
}

/* False: no memory, here or in the kernel; it would never be heard. */
static bool conn_begin(struct conn *conn)
{
    const struct conn_service *service = conn->service;
    bool has_tls = conn->session != NULL;
    conn->state = has_tls ? CONN_HANDSHAKE : CONN_IDLE;
    deadline_set(conn, has_tls ? service->head_timeout_ms : service->idle_timeout_ms);
    bufferevent_setcb(conn->bufferevent, read_cb, write_cb, event_cb, conn);
    if (has_tls)
        return true;
    bufferevent_disable(conn->bufferevent, EV_WRITE);
    return bufferevent_enable(conn->bufferevent, EV_READ) == 0;
}

bool conn_new(struct event_base *base, int fd, struct conn_service *service, const char *peer,
              bool is_trusted_peer)
{
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        close(fd);
        return false;
    }
    conn->service = service;
    if (!conn_connect(conn, base, fd) || !conn_begin(conn)) {
        if (conn->bufferevent == NULL)
            close(fd);
        else
            bufferevent_free(conn->bufferevent);
        if (conn->turn != NULL)
            event_free(conn->turn);
        free(conn);
        return false;
    }
    conn->is_trusted_peer = is_trusted_peer;
    snprintf(conn->peer, sizeof conn->peer, "%s", peer);
    conn_enlist(conn);
    return true;
}

/* ---- all of a service ---------------------------------------------------------------------------------------- */

static void deadline_passed(struct conn *conn)
{
    if (conn->state == CONN_HANDSHAKE) {
        handshake_failed(conn, true);
        return;
    }
    bool is_request_late =
        conn->deadline_ns != CONN_GIVEN_UP && (conn->state == CONN_HEAD || conn->state == CONN_BODY);
    if (is_request_late)
        conn_refuse(conn, FINISH_REQUEST_TIMEOUT);
    else
        conn_abort(conn);
}

void conn_sweep(struct conn_service *service, uint64_t now_ns)
{
    struct conn *next = NULL;
    for (struct conn *conn = service->first; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->deadline_ns != 0 && conn->deadline_ns <= now_ns)
            deadline_passed(conn);
    }
}

bool conn_drop_idlest(struct conn_service *service)
{
    struct conn *idlest = NULL;
    for (struct conn *conn = service->first; conn != NULL; conn = conn->next) {
        bool is_waiting = conn->state == CONN_HANDSHAKE || conn->state == CONN_IDLE ||
                          conn->state == CONN_HEAD || conn->state == CONN_BODY;
        if (is_waiting && (idlest == NULL || conn->deadline_ns < idlest->deadline_ns))
            idlest = conn;
    }
    if (idlest != NULL)
        conn_abort(idlest);
    return idlest != NULL;
}

void conn_drain_all(struct conn_service *service)
{
    service->is_draining = true;
    struct conn *next = NULL;
    for (struct conn *conn = service->first; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->state == CONN_IDLE && !has_input(conn))
            conn_linger(conn);
    }
}

void conn_free_all(struct conn_service *service)
{
    while (service->first != NULL)
        conn_free(service->first);
}
