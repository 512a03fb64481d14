/*
 * target_conn.c - see target_conn.h and the drawing in target_server.h.
 *
 * A request stays in the read buffer until its answer is out, so that a write that is applied late still has its
 * bytes.  While a request is held the socket is not read: only the peer's leaving is noticed.  A connection is
 * freed at the end of the callback that ended it (is_ended), never under the feet of a caller.
 */
#include "target_conn.h"
#include "target_answer.h"
#include "target_bulk.h"
#include "target_control.h"
#include "target_key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

static const char plain_answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
static const char bad_answer[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

struct target_conn {
    TAILQ_ENTRY(target_conn) link;
    struct target_server *server; /* borrowed */
    int fd;
    bool is_control;
    bool is_held;    /* a request is whole and its answer not out */
    bool is_stalled; /* never to be answered */
    bool is_ended;   /* to be freed at the end of the callback */
    bool was_continued;
    bool is_late;           /* the request is applied after the delay */
    struct event *on_read;  /* owned */
    struct event *on_write; /* owned */
    struct event *on_timer; /* owned */
    struct event *on_gone;  /* owned: watched while nothing is read */
    char *in;               /* owned */
    char *scratch;          /* owned, as large as in */
    size_t in_length;
    size_t in_room;
    struct target_request request; /* points into in and scratch, while is_held */
    char key[TARGET_KEY_MAX];
    bool is_broken_off;          /* the answer will not be whole */
    size_t applied_max;          /* how many of its records take effect, while is_held */
    size_t record_number;        /* of the record that is told of now */
    struct target_answer answer; /* while is_held */
    size_t answer_sent;
};

const char *target_conn_held(const struct target_conn *conn)
{
    return conn->is_held ? conn->key : NULL;
}

struct target_conn *target_conn_next(struct target_conn *conn)
{
    return TAILQ_NEXT(conn, link);
}

bool target_conn_is_control(const struct target_conn *conn)
{
    return conn->is_control;
}

static void conn_free(struct target_conn *conn)
{
    TAILQ_REMOVE(&conn->server->conns, conn, link);
    if (!conn->is_control)
        target_counts_totals(conn->server->counts)->open--;
    event_free(conn->on_read);
    event_free(conn->on_write);
    event_free(conn->on_timer);
    event_free(conn->on_gone);
    if (conn->fd >= 0)
        close(conn->fd);
    free(conn->answer.bytes);
    free(conn->in);
    free(conn->scratch);
    free(conn);
}

static void conn_reap(struct target_conn *conn)
{
    if (conn->is_ended)
        conn_free(conn);
}

static void conn_reset(struct target_conn *conn)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    conn->is_ended = true;
}

static void conn_end(struct target_conn *conn, enum target_end end)
{
    if (end == END_RST) {
        conn_reset(conn);
    } else if (end == END_STALL) {
        conn->is_stalled = true;
        event_del(conn->on_read);
        event_add(conn->on_gone, NULL);
    } else {
        conn->is_ended = true;
    }
}

void target_conn_drop(struct target_conn *conn)
{
    conn_reset(conn);
    conn_free(conn);
}

static void request_forget(struct target_conn *conn)
{
    size_t used = conn->request.byte_count;

    free(conn->answer.bytes);
    conn->answer.bytes = NULL;
    conn->is_held = false;
    conn->was_continued = false;
    conn->in_length -= used;
    memmove(conn->in, conn->in + used, conn->in_length);
}

/* Send what is due of the answer; true once the request is done with. */
static bool answer_send(struct target_conn *conn)
{
    struct target_answer *answer = &conn->answer;

    while (conn->answer_sent < answer->length) {
        size_t until = answer->pause_at > conn->answer_sent ? answer->pause_at : answer->length;
        ssize_t sent =
            send(conn->fd, answer->bytes + conn->answer_sent, until - conn->answer_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            event_add(conn->on_write, NULL);
            return false;
        }
        if (sent < 0) {
            conn->is_ended = true;
            return false;
        }
        conn->answer_sent += (size_t)sent;
        if (conn->answer_sent == answer->pause_at && conn->answer_sent < answer->length) {
            struct timeval pause = { answer->pause_ms / 1000, (answer->pause_ms % 1000) * 1000 };
            event_add(conn->on_timer, &pause);
            return false;
        }
    }
    if (answer->is_last) {
        conn_end(conn, answer->end);
        return false;
    }
    request_forget(conn);
    return true;
}

static void apply_one(void *context, const char *key, struct target_text record)
{
    struct target_conn *conn = context;
    if (conn->record_number++ < conn->applied_max)
        target_counts_apply(conn->server->counts, key, record);
}

static void fault_one(void *context, const char *key, struct target_text record)
{
    struct target_conn *conn = context;

    (void)record;
    target_counts_faulted(conn->server->counts, key, conn->record_number++ < conn->applied_max,
                          conn->is_broken_off);
}

static void each_record(struct target_conn *conn, target_key_fn *told)
{
    conn->record_number = 0;
    target_keys(&conn->request, told, conn);
}

static void note_key(void *context, const char *key, struct target_text record)
{
    struct target_conn *conn = context;

    (void)record;
    if (conn->key[0] == '\0')
        strcpy(conn->key, key); /* both TARGET_KEY_MAX */
}

static bool is_write(const struct target_request *request)
{
    return target_text_is(request->method, "POST") || target_text_is(request->method, "PUT") ||
           target_text_is(request->method, "PATCH") || target_text_is(request->method, "DELETE");
}

static void keep_last(struct target_conn *conn)
{
    struct target_server *server = conn->server;
    char *copy = server->keeps_last ? realloc(server->last, conn->request.byte_count) : NULL;

    if (copy == NULL)
        return;
    server->last = copy;
    server->last_length = conn->request.byte_count;
    memcpy(copy, conn->in, server->last_length);
}

/* GET /applied/KEY is answered 200 or 404: a target that can be asked. */
static struct target_answer answer_probe(struct target_conn *conn)
{
    static const char prefix[] = "/applied/";
    struct target_text path = conn->request.path;
    char key[TARGET_KEY_MAX];

    if (path.length < sizeof prefix || memcmp(path.bytes, prefix, sizeof prefix - 1) != 0)
        return target_answer_build(&conn->server->rules.none, &conn->request, 0);
    size_t length = path.length - (sizeof prefix - 1);
    length = length < sizeof key - 1 ? length : sizeof key - 1;
    memcpy(key, path.bytes + sizeof prefix - 1, length);
    key[length] = '\0';
    return target_answer_text(target_counts_of(conn->server->counts, key) != 0 ? 200 : 404, "", 0);
}

/* A request that no rule touches: applied and answered without further ado.  True when it is all done. */
static bool answer_plain(struct target_conn *conn)
{
    if (!conn->request.is_keepalive || send(conn->fd, plain_answer, sizeof plain_answer - 1, MSG_NOSIGNAL) !=
                                           (ssize_t)sizeof plain_answer - 1)
        return false;
    request_forget(conn);
    return true;
}

/* How many of the request's records RULE lets take effect. */
static size_t applied_max(const struct target_request *request, const struct target_rule *rule)
{
    if (!is_write(request) || !target_rule_applies(rule))
        return 0;
    if (rule->refused == 0 || !target_is_bulk(request))
        return SIZE_MAX;
    size_t count = target_action_count(request);
    return count > rule->refused ? count - rule->refused : 0;
}

static void request_note_fault(struct target_conn *conn, const struct target_rule *rule)
{
    target_counts_totals(conn->server->counts)->faulted++;
    conn->is_broken_off = rule->cut != CUT_NONE;
    each_record(conn, fault_one);
}

/* Act on the rule that the request met; true when the request is done with at once. */
static bool request_begin(struct target_conn *conn, const struct target_rule *rule)
{
    bool is_plain = rule == &conn->server->rules.none;

    conn->is_held = true;
    conn->answer_sent = 0;
    conn->applied_max = applied_max(&conn->request, rule);
    if (!is_plain)
        request_note_fault(conn, rule);
    conn->is_late = conn->applied_max != 0 && rule->is_applied_late;
    if (!conn->is_late)
        each_record(conn, apply_one);
    if (is_plain && is_write(&conn->request) && !target_is_bulk(&conn->request) && answer_plain(conn))
        return true;
    conn->answer = is_plain && !is_write(&conn->request)
                       ? answer_probe(conn)
                       : target_answer_build(rule, &conn->request, conn->applied_max);
    if (rule->delay_ms == 0)
        return answer_send(conn);
    struct timeval delay = { rule->delay_ms / 1000, (rule->delay_ms % 1000) * 1000 };
    event_add(conn->on_timer, &delay);
    event_del(conn->on_read);
    event_add(conn->on_gone, NULL);
    return false;
}

static bool request_on_whole(struct target_conn *conn)
{
    struct target_server *server = conn->server;

    if (conn->is_control) {
        conn->is_held = true;
        conn->answer_sent = 0;
        conn->answer = target_control(server, &conn->request);
        return answer_send(conn);
    }
    struct target_totals *totals = target_counts_totals(server->counts);
    totals->requests++;
    if (is_write(&conn->request)) {
        totals->writes++;
        keep_last(conn);
    }
    conn->key[0] = '\0';
    target_keys(&conn->request, note_key, conn);
    return request_begin(conn, target_rules_match(&server->rules, CUT_NONE, conn->request.method, conn->key));
}

static void send_flat(struct target_conn *conn, const char *text)
{
    if (send(conn->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        conn->is_ended = true;
}

static void conn_serve(struct target_conn *conn)
{
    while (!conn->is_held && !conn->is_ended && conn->in_length != 0) {
        enum target_request_status status =
            target_request_read(conn->in, conn->in_length, conn->scratch, &conn->request);
        if (status == TARGET_REQUEST_BAD) {
            send_flat(conn, bad_answer);
            conn->is_ended = true;
        } else if (status == TARGET_REQUEST_MORE_BODY && conn->request.expects_continue &&
                   !conn->was_continued) {
            conn->was_continued = true;
            send_flat(conn, go_on);
        }
        if (status != TARGET_REQUEST_WHOLE || !request_on_whole(conn))
            break;
    }
}

static bool in_grow(struct target_conn *conn)
{
    if (conn->in_room - conn->in_length >= READ_BYTES)
        return true;
    size_t room = conn->in_room == 0 ? READ_BYTES : conn->in_room * 2;
    char *in = realloc(conn->in, room);
    if (in != NULL)
        conn->in = in;
    char *scratch = realloc(conn->scratch, room);
    if (scratch != NULL)
        conn->scratch = scratch;
    if (in == NULL || scratch == NULL)
        return false;
    conn->in_room = room;
    return conn->in_room - conn->in_length >= READ_BYTES || in_grow(conn);
}

static bool ends_early(struct target_conn *conn, enum target_cut moment)
{
    struct target_rules *rules = &conn->server->rules;
    struct target_rule *rule = target_rules_match(rules, moment, (struct target_text){ "", 0 }, "");

    if (conn->is_control || rule == &rules->none)
        return false;
    target_counts_totals(conn->server->counts)->faulted++;
    target_counts_faulted(conn->server->counts, "", false, true);
    conn_end(conn, rule->end);
    return true;
}

static void on_read_cb(evutil_socket_t fd, short what, void *context)
{
    struct target_conn *conn = context;

    (void)what;
    if (conn->is_held) { /* more is coming while the answer is on its way out: it waits in the socket */
        event_del(conn->on_read);
        event_add(conn->on_gone, NULL);
        return;
    }
    ssize_t got = in_grow(conn) ? recv(fd, conn->in + conn->in_length, READ_BYTES, 0) : 0;
    bool is_first = conn->in_length == 0;
    if (got > 0)
        conn->in_length += (size_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN))
        conn->is_ended = true;
    else if (got > 0 && !(is_first && ends_early(conn, CUT_REQUEST)))
        conn_serve(conn);
    conn_reap(conn);
}

/* The answer can go on: the delay or pause is over, or the socket takes more. */
static void on_due_cb(evutil_socket_t fd, short what, void *context)
{
    struct target_conn *conn = context;

    (void)fd;
    (void)what;
    if (conn->is_late) {
        conn->is_late = false;
        each_record(conn, apply_one);
    }
    if (answer_send(conn)) {
        event_del(conn->on_gone);
        event_add(conn->on_read, NULL);
        conn_serve(conn);
    }
    conn_reap(conn);
}

/* The peer left.  A slow target works on regardless: what it holds is still applied. */
static void on_gone_cb(evutil_socket_t fd, short what, void *context)
{
    struct target_conn *conn = context;

    (void)fd;
    (void)what;
    event_del(conn->on_gone);
    if (conn->is_stalled || !conn->is_held)
        conn->is_ended = true;
    conn_reap(conn);
}

void target_conn_new(struct target_server *server, int fd, bool is_control)
{
    struct target_conn *conn = calloc(1, sizeof *conn);

    if (conn == NULL)
        abort();
    conn->server = server;
    conn->fd = fd;
    conn->is_control = is_control;
    conn->on_read = event_new(server->base, fd, EV_READ | EV_PERSIST, on_read_cb, conn);
    conn->on_write = event_new(server->base, fd, EV_WRITE, on_due_cb, conn);
    conn->on_timer = evtimer_new(server->base, on_due_cb, conn);
    conn->on_gone = event_new(server->base, fd, EV_CLOSED | EV_PERSIST, on_gone_cb, conn);
    if (conn->on_read == NULL || conn->on_write == NULL || conn->on_timer == NULL || conn->on_gone == NULL)
        abort();
    TAILQ_INSERT_TAIL(&server->conns, conn, link);
    event_add(conn->on_read, NULL);
    if (!is_control) {
        target_counts_totals(server->counts)->connections++;
        target_counts_totals(server->counts)->open++;
        ends_early(conn, CUT_ACCEPT);
    }
    conn_reap(conn);
}
