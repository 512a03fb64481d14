/*
 * conn_read.c - from the bytes of a connection to whole requests: head, body, and how much is taken in ahead.
 *
 * While a request is worked on, at most READ_AHEAD_BYTES of the next ones are taken in.
 */
#include "conn_state.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <sys/socket.h>

#include "clock.h"

enum {
    READ_AHEAD_BYTES = 64 * 1024,
    DIRECT_READ_MAX = 1024 * 1024, /* fairness: how much of one body is read in one turn */
};

bool conn_read_head(struct conn *conn)
{
    const struct conn_service *service = conn->service;
    struct evbuffer *input = bufferevent_get_input(conn->bufferevent);
    size_t byte_count = evbuffer_get_length(input);
    if (byte_count > service->head_bytes_max) /* one more tells that it is too large */
        byte_count = service->head_bytes_max + 1;
    const char *bytes = (const char *)evbuffer_pullup(input, (ev_ssize_t)byte_count);
    if (bytes != NULL && conn->request == NULL) /* else an earlier part of its head has begun it */
        conn->request = request_new(service->bodies, conn->peer, conn->is_trusted_peer);
    if (bytes == NULL || conn->request == NULL) {
        conn_refuse(conn, FINISH_NO_MEMORY);
        return true;
    }
    enum finish why = FINISH_NONE;
    struct request *request = conn->request;
    switch (http1_head(bytes, byte_count, service->head_bytes_max, service->body_bytes_max, &request->head,
                       &why)) {
    case HTTP1_MORE:
        return false;
    case HTTP1_REFUSED:
        conn_refuse(conn, why);
        return true;
    case HTTP1_DONE:
        break;
    }
    if (!request_head_keep(request, bytes)) {
        conn_refuse(conn, FINISH_NO_MEMORY);
        return true;
    }
    evbuffer_drain(input, request->byte_count);
    conn->is_closing = !request->head.is_kept_alive;
    why = service->on_head == NULL ? FINISH_NONE : service->on_head(service->context, &request->head);
    if (why != FINISH_NONE) {
        conn_refuse(conn, why);
        return true;
    }
    memset(&conn->chunks, 0, sizeof conn->chunks);
    conn_move(conn, CONN_BODY);
    bool is_body_awaited = request->head.framing == HTTP1_CHUNKED || request->head.body_bytes > 0;
    if (request->head.is_continue_expected && is_body_awaited && evbuffer_get_length(input) == 0)
        conn_write_continue(conn);
    return true;
}

/* An error is reported once: the bufferevent, asking after us, would take it for the end of a half close. */
static void connection_broke(struct conn *conn)
{
    bufferevent_disable(conn->bufferevent, EV_READ);
    conn->is_reading_paused = false; /* not to be resumed */
    conn_give_up(conn);
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
        if (want > REQUEST_BODY_ROOM_FIRST)
            want = REQUEST_BODY_ROOM_FIRST;
        enum finish why = request_body_grow(request, want, length);
        if (why != FINISH_NONE) {
            conn_refuse(conn, why);
            return true;
        }
        want = request->body_room - request->body_bytes;
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
            why = request_body_grow(request, body.byte_count,
                                    limit < REQUEST_BODY_ROOM_FIRST ? REQUEST_BODY_ROOM_FIRST : limit);
        if (why != FINISH_NONE) {
            conn_refuse(conn, why);
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

bool conn_read_body(struct conn *conn)
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

/* As much is taken in as a head may have, and one byte that tells that it is too large.  The library's own mark is not
 * used: without memory for it, it reads through a null pointer (libevent 2.1.12, bufferevent_setwatermark()); and with
 * TLS it stops in the middle of a record, while no event tells of bytes that the library holds. */
void conn_read_bound(struct conn *conn)
{
    size_t head_bytes_max = conn->service->head_bytes_max;
    size_t bytes_max = head_bytes_max >= READ_AHEAD_BYTES ? head_bytes_max + 1 : READ_AHEAD_BYTES;
    bool is_full = evbuffer_get_length(bufferevent_get_input(conn->bufferevent)) >= bytes_max;
    if (is_full == conn->is_reading_paused)
        return;
    conn->is_reading_paused = is_full;
    if (is_full) {
        bufferevent_disable(conn->bufferevent, EV_READ);
    } else if (bufferevent_enable(conn->bufferevent, EV_READ) != 0) {
        conn->is_closing = true; /* no memory: it would never be heard again */
        conn_give_up(conn);
    }
}
