/*
 * conn_write.c - replies and refusals on their way out, and the end of a connection behind the last of them.
 */
#include "conn_state.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "reply_head.h"

enum { TLS_RECORD_BYTES_MAX = 16 * 1024 };

void conn_linger(struct conn *conn)
{
    conn_move(conn, CONN_LINGERING);
    if (conn->session != NULL)
        tls_session_close(conn->session);
    shutdown(bufferevent_getfd(conn->bufferevent), SHUT_WR);
    conn->is_reading_paused = false;
    bufferevent_enable(conn->bufferevent, EV_READ);
    event_active(conn->turn, EV_TIMEOUT, 0); /* bytes that are already here will not call back again */
}

/* Whoever reads slowly keeps others out, and does not fill the memory. */
static void output_hold(struct conn *conn, size_t byte_count)
{
    conn->held_bytes = byte_count;
    body_pool_add(conn->service->bodies, byte_count);
}

void conn_output_release(struct conn *conn)
{
    if (conn->held_bytes > 0)
        body_pool_give_back(conn->service->bodies, conn->held_bytes);
    conn->held_bytes = 0;
}

void conn_written(struct conn *conn)
{
    conn_output_release(conn);
    if (conn->is_closing || conn->service->is_draining) {
        conn_linger(conn);
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

void conn_write_continue(struct conn *conn)
{
    static char words[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec part = { words, sizeof words - 1 };
    if (!write_parts(conn, &part, 1))
        conn_give_up(conn);
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
        conn_give_up(conn);
        return;
    }
    size_t left_bytes = evbuffer_get_length(bufferevent_get_output(conn->bufferevent));
    if (left_bytes == 0)
        conn_written(conn);
    else
        output_hold(conn, left_bytes);
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

void conn_refuse(struct conn *conn, enum finish why)
{
    const struct finish_row *row = &finish_rows[why];
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
                           .body = slice_of_text(row->line),
                           .is_closing = true };
    if (is_head_request(conn->request))
        reply_leave_body_out(&reply);
    request_free(conn->request);
    conn->request = NULL;
    conn->service->on_refused(conn->service->context, conn->peer, why);
    reply_send(conn, &reply);
}
