/*
 * conn.c - connections on bufferevents; the only file that names them.
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
 * One sweep a few times a second enforces the deadlines: a timer per connection and phase would cost more than it
 * tells.  While WORKING at most READ_AHEAD_BYTES of the next requests are taken in.
 *
 * With TLS all bytes go through the bufferevent, and its callbacks come in turns of their own: libevent would call them
 * from inside a write.
 */
#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "metrics.h"
#include "reply_head.h"

enum {
    READ_AHEAD_BYTES = 64 * 1024,
    BODY_ROOM_FIRST = 64 * 1024,   /* a Content-Length is not trusted further than this at first */
    DIRECT_READ_MAX = 1024 * 1024, /* fairness: how much of one body is read in one turn */
    LINGER_MS = 2000,              /* RFC 9112, 9.6: long enough for the peer to read the last reply */
    LINGER_BYTES_MAX = 1024 * 1024,
    TLS_RECORD_BYTES_MAX = 16 * 1024,
};

enum conn_state {
    CONN_HANDSHAKE,
    CONN_IDLE,
    CONN_HEAD,
    CONN_BODY,
    CONN_WORKING,
    CONN_WRITING,
    CONN_LINGERING,
    CONN_STATES
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

struct conn {
    struct conn_service *service;    /* borrowed */
    struct conn *next, *previous;    /* the service's list */
    struct bufferevent *bufferevent; /* owned */
    struct ssl_st *session;          /* the bufferevent's; NULL: no TLS */
    struct event *turn;              /* owned: goes on in a turn of its own, never from inside conn_reply() */
    struct request *request;         /* owned until on_request() */
    void *exchange;                  /* borrowed: who works on the present request */
    struct http1_chunks chunks;
    size_t body_room;
    uint64_t deadline_ns; /* of the present state; 0: none */
    uint64_t lingered_bytes;
    enum conn_state state;
    bool is_peer_trusted;
    bool is_closing;     /* after the present reply */
    bool is_half_closed; /* the peer sends nothing more */
    bool is_broken;      /* nothing more can be written */
    bool is_reading_paused;
    bool is_advancing; /* conn_advance() is on the stack */
    char peer[64];
};

static void conn_advance(struct conn *conn);

static void deadline_set(struct conn *conn, uint64_t after_ms)
{
    conn->deadline_ns = after_ms == 0 ? 0 : clock_monotonic_ns() + after_ms * NS_PER_MS;
}

static void conn_move(struct conn *conn, enum conn_state next)
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

bool request_room_take(struct request *request, size_t byte_count)
{
    struct body_pool *pool = request->pool;
    if (pool == NULL)
        return true;
    if (atomic_fetch_add(&pool->taken_bytes, byte_count) + byte_count > pool->bytes_max) {
        atomic_fetch_sub(&pool->taken_bytes, byte_count);
        return false;
    }
    request->pool_bytes += byte_count;
    metrics_gauge_add(GAUGE_BODY_BYTES, (int64_t)byte_count);
    return true;
}

void request_free(struct request *request)
{
    if (request == NULL)
        return;
    if (request->pool_bytes > 0) {
        atomic_fetch_sub(&request->pool->taken_bytes, request->pool_bytes);
        metrics_gauge_add(GAUGE_BODY_BYTES, -(int64_t)request->pool_bytes);
    }
    free(request->bytes);
    free(request->body);
    free(request);
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

/* ---- writing ------------------------------------------------------------------------------------------------- */

static void linger_start(struct conn *conn)
{
    conn_move(conn, CONN_LINGERING);
    if (conn->session != NULL)
        tls_session_close(conn->session);
    shutdown(bufferevent_getfd(conn->bufferevent), SHUT_WR);
    conn->is_reading_paused = false;
    bufferevent_enable(conn->bufferevent, EV_READ);
    event_active(conn->turn, EV_TIMEOUT, 0); /* bytes that are already here will not call back again */
}

/* The reply has left: the next request, or the end. */
static void reply_written(struct conn *conn)
{
    if (conn->is_closing || conn->service->is_draining) {
        linger_start(conn);
        return;
    }
    conn_move(conn, CONN_IDLE);
    if (conn->is_half_closed || evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) > 0)
        event_active(conn->turn, EV_TIMEOUT, 0);
}

/* Head and a small body together make one record.  Nothing is written before the loop turns. */
static bool write_by_tls(struct conn *conn, const struct iovec parts[], int part_count)
{
    struct evbuffer *output = bufferevent_get_output(conn->bufferevent);
    size_t byte_count = 0;
    bool is_added = true;
    for (int i = 0; i < part_count; i++)
        byte_count += parts[i].iov_len;
    bufferevent_disable(conn->bufferevent, EV_WRITE);
    if (evbuffer_expand(output, byte_count < TLS_RECORD_BYTES_MAX ? byte_count : TLS_RECORD_BYTES_MAX) != 0)
        return false;
    for (int i = 0; i < part_count && is_added; i++)
        is_added = evbuffer_add(output, parts[i].iov_base, parts[i].iov_len) == 0;
    return is_added && bufferevent_enable(conn->bufferevent, EV_WRITE) == 0;
}

/* Write PARTS, at once as far as the socket takes them; what is left goes through the bufferevent. */
static bool write_parts(struct conn *conn, struct iovec parts[], int part_count)
{
    struct evbuffer *output = bufferevent_get_output(conn->bufferevent);
    if (conn->session != NULL)
        return write_by_tls(conn, parts, part_count);
    ssize_t written = 0;
    if (evbuffer_get_length(output) == 0) {
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = (size_t)part_count };
        written = sendmsg(bufferevent_getfd(conn->bufferevent), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0 && errno != EAGAIN && errno != EINTR)
            return false;
    }
    size_t skip = written < 0 ? 0 : (size_t)written;
    for (int i = 0; i < part_count; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        if (evbuffer_add(output, (char *)parts[i].iov_base + skip, parts[i].iov_len - skip) != 0)
            return false;
        skip = 0;
    }
    return evbuffer_get_length(output) == 0 || bufferevent_enable(conn->bufferevent, EV_WRITE) == 0;
}

void conn_exchange_set(struct conn *conn, void *exchange)
{
    conn->exchange = exchange;
}

/* WORKING, or a state in which a request is refused, to WRITING and further. */
static void reply_send(struct conn *conn, const struct reply *reply)
{
    conn->is_closing = conn->is_closing || reply->is_closing || conn->service->is_draining;
    conn->exchange = NULL;
    conn_move(conn, CONN_WRITING);
    size_t head_bytes = 0;
    char *head = reply_head_new(reply, conn->is_closing, &head_bytes);
    bool is_written = false;
    if (head != NULL) {
        struct iovec parts[2] = { { head, head_bytes }, { NULL, 0 } };
        int part_count = 1;
        if (reply_has_body(reply) && reply->body.byte_count > 0) {
            parts[1].iov_base = (void *)(uintptr_t)reply->body.at;
            parts[1].iov_len = reply->body.byte_count;
            part_count = 2;
        }
        is_written = write_parts(conn, parts, part_count);
    }
    free(head);
    free(reply->body_owned);
    if (!is_written) { /* the socket is broken or memory is short: in a turn of its own, the caller holds CONN */
        conn->deadline_ns = 1;
        return;
    }
    if (evbuffer_get_length(bufferevent_get_output(conn->bufferevent)) == 0)
        reply_written(conn);
}

void conn_reply(struct conn *conn, const struct reply *reply)
{
    assert(conn->state == CONN_WORKING);
    reply_send(conn, reply);
}

/* False also for a request whose head has not been read. */
static bool is_head_request(const struct request *request)
{
    return request != NULL && request->bytes != NULL && request->head.method == HTTP1_HEAD;
}

/* Answer WHY and close: the bytes after it cannot be trusted to be a request. */
static void refuse(struct conn *conn, enum finish why)
{
    char body[256];
    const struct finish_row *row = &finish_rows[why];
    int bytes = snprintf(body, sizeof body, "{\"error\":\"%s\",\"detail\":\"%s\"}\n", row->label, row->words);
    struct http1_field fields[4] = { { slice_of_text("Content-Type"), slice_of_text("application/json") } };
    size_t field_count = 1;
    if (why == FINISH_METHOD_REFUSED)
        fields[field_count++] =
            (struct http1_field){ slice_of_text("Allow"),
                                  slice_of_text("GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH") };
    if (row->status == 401)
        fields[field_count++] = (struct http1_field){ slice_of_text("WWW-Authenticate"),
                                                      slice_of_text("Bearer realm=\"sinkonce\"") };
    if (row->outcome != NULL)
        fields[field_count++] =
            (struct http1_field){ slice_of_text("Sinkonce-Outcome"), slice_of_text(row->outcome) };
    if (row->status == 503)
        fields[field_count++] =
            (struct http1_field){ slice_of_text("Retry-After"), slice_of_text(conn->service->retry_after) };
    struct reply reply = { .status = row->status,
                           .fields = fields,
                           .field_count = field_count,
                           .body = slice_of(body, (size_t)bytes),
                           .is_closing = true };
    if (is_head_request(conn->request))
        reply_leave_body_out(&reply);
    request_free(conn->request);
    conn->request = NULL;
    conn->service->on_refused(conn->service->context, conn->peer, why);
    reply_send(conn, &reply);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static struct slice moved(struct slice slice, const char *from, char *to)
{
    return slice.byte_count == 0 ? slice_of(to, 0) : slice_of(to + (slice.at - from), slice.byte_count);
}

/* Let the head's slices point into the request's own copy. */
static void head_move(struct http1_head *head, const char *from, char *to)
{
    struct slice *own[] = { &head->method_text, &head->target, &head->path, &head->query, &head->host };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        *own[i] = moved(*own[i], from, to);
    for (size_t i = 0; i < head->field_count; i++) {
        head->fields[i].name = moved(head->fields[i].name, from, to);
        head->fields[i].value = moved(head->fields[i].value, from, to);
    }
}

static bool request_begin(struct conn *conn)
{
    if (conn->request == NULL) {
        conn->request = malloc(sizeof *conn->request);
        if (conn->request == NULL)
            return false;
        struct request *request = conn->request;
        request->bytes = NULL;
        request->body = NULL;
        request->byte_count = request->body_bytes = 0;
        request->pool = conn->service->bodies;
        request->pool_bytes = 0;
        request->started_ns = clock_monotonic_ns();
        request->is_trusted_peer = conn->is_peer_trusted;
        memcpy(request->peer, conn->peer, sizeof request->peer);
    }
    return true;
}

static void continue_write(struct conn *conn)
{
    static char words[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec part = { words, sizeof words - 1 };
    if (!write_parts(conn, &part, 1))
        conn->deadline_ns = 1;
}

/* True: something happened, go on. */
static bool read_head(struct conn *conn)
{
    const struct conn_service *service = conn->service;
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    size_t byte_count = evbuffer_get_length(input);
    if (byte_count > service->head_bytes_max) /* one more tells that it is too large */
        byte_count = service->head_bytes_max + 1;
    const char *bytes = (const char *)evbuffer_pullup(input, (ev_ssize_t)byte_count);
    if (bytes == NULL || !request_begin(conn)) {
        refuse(conn, FINISH_NO_MEMORY);
        return true;
    }
    enum finish why = FINISH_NONE;
    struct request *request = conn->request;
    switch (http1_head(bytes, byte_count, service->head_bytes_max, service->body_bytes_max, &request->head,
                       &why)) {
    case HTTP1_MORE:
        return false;
    case HTTP1_REFUSED:
        refuse(conn, why);
        return true;
    case HTTP1_DONE:
        break;
    }
    request->byte_count = request->head.byte_count;
    request->bytes = malloc(request->byte_count);
    if (request->bytes == NULL) {
        refuse(conn, FINISH_NO_MEMORY);
        return true;
    }
    memcpy(request->bytes, bytes, request->byte_count);
    head_move(&request->head, bytes, request->bytes);
    evbuffer_drain(input, request->byte_count);
    conn->is_closing = !request->head.is_kept_alive;
    why = service->on_head == NULL ? FINISH_NONE : service->on_head(service->context, &request->head);
    if (why != FINISH_NONE) {
        refuse(conn, why);
        return true;
    }
    memset(&conn->chunks, 0, sizeof conn->chunks);
    conn->body_room = 0;
    conn_move(conn, CONN_BODY);
    bool is_body_awaited = request->head.framing == HTTP1_CHUNKED || request->head.body_bytes > 0;
    if (request->head.is_continue_expected && is_body_awaited && evbuffer_get_length(input) == 0)
        continue_write(conn);
    return true;
}

/* Room for MORE bytes behind the body, growing by doubling up to LIMIT; FINISH_NONE, or why there is none. */
static enum finish body_grow(struct conn *conn, size_t more, size_t limit)
{
    struct request *request = conn->request;
    size_t wanted = request->body_bytes + more;
    if (wanted <= conn->body_room)
        return FINISH_NONE;
    size_t room = conn->body_room == 0 ? BODY_ROOM_FIRST : conn->body_room;
    while (room < wanted)
        room *= 2;
    if (room > limit)
        room = limit;
    if (!request_room_take(request, room - conn->body_room))
        return FINISH_BUSY;
    char *body = realloc(request->body, room);
    if (body == NULL)
        return FINISH_NO_MEMORY;
    request->body = body;
    conn->body_room = room;
    return FINISH_NONE;
}

/* An error is reported once: the bufferevent, asking after us, would take it for the end of a half close. */
static void connection_broke(struct conn *conn)
{
    bufferevent_disable(conn->bufferevent, EV_READ);
    conn->is_reading_paused = false; /* not to be resumed */
    conn->deadline_ns = 1;
}

/* What is in the input, then straight from the socket: bufferevents of 2.1 read 4 KiB at a time. */
static ssize_t body_take(struct conn *conn, char room[], size_t room_bytes)
{
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    if (evbuffer_get_length(input) > 0)
        return evbuffer_remove(input, room, room_bytes);
    if (conn->session == NULL)
        return recv(bufferevent_getfd(conn->bufferevent), room, room_bytes, MSG_DONTWAIT);
    errno = EAGAIN;
    return -1;
}

static bool read_body_of_length(struct conn *conn)
{
    struct request *request = conn->request;
    size_t length = (size_t)request->head.body_bytes;
    size_t budget = DIRECT_READ_MAX;
    while (request->body_bytes < length) {
        size_t want = length - request->body_bytes;
        if (want > BODY_ROOM_FIRST)
            want = BODY_ROOM_FIRST;
        enum finish why = body_grow(conn, want, length);
        if (why != FINISH_NONE) {
            refuse(conn, why);
            return true;
        }
        want = conn->body_room - request->body_bytes;
        ssize_t got = body_take(conn, request->body + request->body_bytes, want);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            connection_broke(conn);
        if (got <= 0) /* nothing more is here, or an end that the bufferevent will report */
            return false;
        request->body_bytes += (size_t)got;
        budget = budget > (size_t)got ? budget - (size_t)got : 0;
        if (budget == 0 && request->body_bytes < length) { /* others first; all may be here already */
            event_active(conn->turn, EV_TIMEOUT, 0);
            return false;
        }
    }
    return true;
}

/* True: the body is whole, or the request was refused (the state tells). */
static bool read_body_of_chunks(struct conn *conn)
{
    struct request *request = conn->request;
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    size_t limit = (size_t)conn->service->body_bytes_max;
    for (;;) {
        struct evbuffer_iovec piece = { NULL, 0 };
        if (evbuffer_peek(input, -1, NULL, &piece, 1) < 1)
            return false;
        size_t taken = 0;
        struct slice body = { NULL, 0 };
        enum finish why = FINISH_NONE;
        enum http1_status status =
            http1_chunk(&conn->chunks, piece.iov_base, piece.iov_len, limit, &taken, &body, &why);
        if (status != HTTP1_REFUSED)
            why = body_grow(conn, body.byte_count, limit < BODY_ROOM_FIRST ? BODY_ROOM_FIRST : limit);
        if (why != FINISH_NONE) {
            refuse(conn, why);
            return true;
        }
        if (body.byte_count > 0)
            memcpy(request->body + request->body_bytes, body.at, body.byte_count);
        request->body_bytes += body.byte_count;
        evbuffer_drain(input, taken);
        if (status == HTTP1_DONE)
            return true;
        if (taken == 0)
            return false;
    }
}

static bool read_body(struct conn *conn)
{
    bool is_over = true;
    if (conn->request->head.framing == HTTP1_LENGTH)
        is_over = read_body_of_length(conn);
    else if (conn->request->head.framing == HTTP1_CHUNKED)
        is_over = read_body_of_chunks(conn);
    if (!is_over || conn->state != CONN_BODY)
        return is_over;
    conn_move(conn, CONN_WORKING);
    conn->request->whole_ns = clock_monotonic_ns();
    struct request *request = conn->request;
    conn->request = NULL;
    conn->service->on_request(conn->service->context, conn, &request);
    assert(request == NULL);
    return true;
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
        refuse(conn, FINISH_BAD_REQUEST);
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

/* As much is taken in as a head may have, and one byte that tells that it is too large.  The library's own mark is not
 * used: without memory for it, it reads through a null pointer (libevent 2.1.12, bufferevent_setwatermark()); and with
 * TLS it stops in the middle of a record, while no event tells of bytes that the library holds. */
static void reading_bound(struct conn *conn)
{
    size_t head_bytes_max = conn->service->head_bytes_max;
    size_t bytes_max = head_bytes_max >= READ_AHEAD_BYTES ? head_bytes_max + 1 : READ_AHEAD_BYTES;
    bool is_full = evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) >= bytes_max;
    if (is_full == conn->is_reading_paused)
        return;
    conn->is_reading_paused = is_full;
    if (is_full)
        bufferevent_disable(conn->bufferevent, EV_READ);
    else if (bufferevent_enable(conn->bufferevent, EV_READ) !=
             0) { /* no memory: it would never be heard again */
        conn->is_closing = true;
        conn->deadline_ns = 1;
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
            is_going_on = read_head(conn);
            break;
        case CONN_BODY:
            is_going_on = read_body(conn);
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
    reading_bound(conn);
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
        reply_written(conn);
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
        conn->deadline_ns = 1; /* no memory: it would never be heard */
    else if (conn->service->is_draining && !has_input(conn))
        linger_start(conn);
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
    conn->is_peer_trusted = is_trusted_peer;
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
    bool is_request_late = conn->deadline_ns != 1 && (conn->state == CONN_HEAD || conn->state == CONN_BODY);
    if (is_request_late)
        refuse(conn, FINISH_REQUEST_TIMEOUT);
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
            linger_start(conn);
    }
}

void conn_free_all(struct conn_service *service)
{
    while (service->first != NULL)
        conn_free(service->first);
}
