/*
 * fuzz_exchange.c - connectors, a target and operators in any order: the whole way of a request through the program,
 * from the socket to the socket, on one thread and before a ledger in memory.
 *
 *     connector --socket pair--> conn.c --> exchange.c --> scripted target
 *                                              fake store
 *
 * Each connection's requests are read a second time from all that was said on it, by the codec alone.  What must hold:
 *   - the service is handed these requests, in their order, and none behind one that is refused, or is the last
 *   - each gets one answer, in their order, and the target's answer comes back to the request that it belongs to
 *   - only what was handed over is sent, once, with bytes of its own, and no record that the target may have already
 *   - the same bytes in smaller pieces are sent and answered alike
 *   - at the end nothing is left: no connection, no request, no memory of bodies
 *
 * The input's first byte chooses the settings, the second the size of the smaller pieces (0: no second run).  The rest is
 * steps, separated by 0x01: a letter, and what it works with.
 *   w BYTES  the present connector says them      n        another connector comes, and is the present one
 *   p OFFSETS, l OFFSETS, b OFFSETS  it sends a batch: JSON array, chunked lines, bulk request
 *   c N      connector N is the present one       h, r     it ends its side; it leaves
 *   a BYTES  the target answers them              k, K     200; the digits that follow are the items' statuses or the status
 *   x, u     it cannot be reached; it is lost     s, S     the sweep; every deadline has passed
 *   d, D     draining begins, ends                i        the connection that is idle longest makes room
 *   t        batches that were never acknowledged become doubts
 *   B        200, with a body larger than a socket takes  f  all connections are ended at once
 * In a batch's OFFSETS "-" is an element without coordinates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>
#include "acks.h"
#include "exchange.h"
#include "fuzz.h"
#include "log.h"
#include "scripted_target.h"
#include "settings_of.h"
#include "silent_log.h"

enum {
    CLIENTS_MAX = 4,
    STEPS_MAX = 200,
    HANDED_MAX = 1024,
    HEAD_BYTES_MAX = 1024,
    BODY_BYTES_MAX = 4096,
    SAID_BYTES_MAX = 1 << 17,
    HEARD_BYTES_MAX = 1 << 20
};

/* ---- what is around an exchange ---------------------------------------------------------------------------------- */

void log_access(struct slice line)
{
    assert_one_line(line);
}

enum { WORLD_SETTINGS_MAX = 4 };

static const char *const worlds[][WORLD_SETTINGS_MAX] = {
    { NULL },
    { "SINKONCE_SPLIT=record", "SINKONCE_SPLIT_PARALLEL=2" },
    { "SINKONCE_STRIP=on", "SINKONCE_UNKEYED=reject" },
    { "SINKONCE_MODE=observe" },
    { "SINKONCE_CLIENT_TOKEN=t0ken-t0ken-t0ken" },
    { "SINKONCE_MAX_IN_FLIGHT=1", "SINKONCE_MAX_RECORDS=2" },
    { "SINKONCE_MODE=off" },
    { "SINKONCE_IN_DOUBT=retry", "SINKONCE_KEY_HEADER=Idempotency-Key" },
};
enum { WORLD_COUNT = sizeof worlds / sizeof worlds[0] };

static struct settings all_settings[WORLD_COUNT];
static struct identifier *identifiers[WORLD_COUNT];

static void world_make(size_t which)
{
    static const char *const common[] = { "SINKONCE_TARGET=http://127.0.0.1:9",
                                          "SINKONCE_TOPIC=json:/t,header:t",
                                          "SINKONCE_PARTITION=json:/p,const:0",
                                          "SINKONCE_OFFSET=json:/o,header:o",
                                          "SINKONCE_WAIT=0",
                                          "SINKONCE_MAX_HEAD=1024B",
                                          "SINKONCE_MAX_BODY=4096B" };
    enum { COMMON = sizeof common / sizeof common[0] };
    settings_of(common, COMMON, worlds[which], WORLD_SETTINGS_MAX, &all_settings[which]);
    identifiers[which] = identifier_new(&all_settings[which]);
    assert(identifiers[which] != NULL);
}

/* ---- connectors -------------------------------------------------------------------------------------------------- */

struct client {
    int fd; /* -1: it has left */
    char peer[8];
    char said[SAID_BYTES_MAX];
    size_t said_bytes, read_bytes; /* read: as far as requests were handed over */
    char heard[HEARD_BYTES_MAX];
    size_t heard_bytes, understood_bytes;
    unsigned handed_count, answered_count;
    uint64_t hash; /* of its answers, in order */
    enum finish refused;
    bool is_half_closed;
    bool is_last; /* the request that was handed over said that no other follows */
    bool is_cut;  /* an answer may be missing: it has left, or was given up in the middle */
};

static struct client clients[CLIENTS_MAX];
static size_t client_count;
static struct client *present;

static struct handed handed[HANDED_MAX];
static size_t handed_count;

static struct program program;
static struct loop loop;
static struct conn_service own; /* the exchange's service, behind ours */
static size_t event_count;      /* something went on */
static bool was_drained;

static struct client *client_of(const char *peer)
{
    for (size_t i = 0; i < client_count; i++)
        if (strcmp(clients[i].peer, peer) == 0)
            return &clients[i];
    return NULL;
}

static struct handed *handed_find(unsigned client, unsigned index)
{
    for (size_t i = 0; i < handed_count; i++)
        if (handed[i].client == client && handed[i].index == index)
            return &handed[i];
    return NULL;
}

/* The method lies in the head of its request; memory of requests that have ended may be used again by later ones. */
struct handed *handed_of(const struct flight *flight)
{
    for (size_t i = handed_count; i > 0; i--) {
        const struct request *request = &handed[i - 1].request;
        if (flight->method.at == request->head.method_text.at)
            return &handed[i - 1];
    }
    return NULL;
}

/* The body of HEAD in REST, as far as it is here. */
static enum http1_status body_read(const struct http1_head *head, struct slice rest,
                                   char body[BODY_BYTES_MAX], size_t *ret_body_bytes, size_t *ret_used,
                                   enum finish *ret_why)
{
    struct http1_chunks chunks = { 0 };
    enum http1_status status = HTTP1_MORE;
    size_t taken = 1;
    *ret_body_bytes = *ret_used = 0;
    if (head->framing != HTTP1_CHUNKED) {
        if (rest.byte_count < head->body_bytes)
            return HTTP1_MORE;
        *ret_body_bytes = *ret_used = (size_t)head->body_bytes;
        if (*ret_used > 0)
            memcpy(body, rest.at, *ret_used);
        return HTTP1_DONE;
    }
    while (status == HTTP1_MORE && taken > 0) {
        struct slice piece;
        status = http1_chunk(&chunks, rest.at + *ret_used, rest.byte_count - *ret_used, BODY_BYTES_MAX,
                             &taken, &piece, ret_why);
        if (piece.byte_count > 0)
            memcpy(body + *ret_body_bytes, piece.at, piece.byte_count);
        *ret_body_bytes += piece.byte_count;
        *ret_used += taken;
    }
    return status;
}

struct next {
    struct http1_head head;
    bool has_head;
    char body[BODY_BYTES_MAX];
    size_t body_bytes, byte_count;
    enum finish why;
};

/* The request that begins at byte FROM of what CLIENT has said, read without a connection. */
static enum http1_status next_read(const struct client *client, size_t from, struct next *next)
{
    struct slice rest = slice_of(client->said + from, client->said_bytes - from);
    size_t used;
    next->why = FINISH_NONE;
    next->has_head = false;
    enum http1_status status =
        http1_head(rest.at, rest.byte_count, HEAD_BYTES_MAX, BODY_BYTES_MAX, &next->head, &next->why);
    if (status != HTTP1_DONE)
        return status;
    next->has_head = true;
    next->why = own.on_head(own.context, &next->head);
    if (next->why != FINISH_NONE)
        return HTTP1_REFUSED;
    rest = slice_of(rest.at + next->head.byte_count, rest.byte_count - next->head.byte_count);
    status = body_read(&next->head, rest, next->body, &next->body_bytes, &used, &next->why);
    next->byte_count = next->head.byte_count + used;
    return status;
}

/* ---- the service between the connections and the exchanges ------------------------------------------------------- */

static void on_request(void *context, struct conn *conn, struct request **request)
{
    struct client *client = client_of((*request)->peer);
    static struct next next;
    event_count++;
    enum http1_status status = next_read(client, client->read_bytes, &next);
    assert(status == HTTP1_DONE && client->refused == FINISH_NONE && !client->is_last);
    client->is_last = !next.head.is_kept_alive;
    const struct http1_head *head = &(*request)->head;
    assert(slice_equals(head->method_text, next.head.method_text) &&
           slice_equals(head->target, next.head.target));
    assert(head->field_count == next.head.field_count);
    assert(slice_equals(slice_of((*request)->body, (*request)->body_bytes),
                        slice_of(next.body, next.body_bytes)));
    assert(handed_count < HANDED_MAX);
    handed[handed_count++] = (struct handed){ .client = (unsigned)(client - clients),
                                              .index = client->handed_count++,
                                              .said_at = client->read_bytes,
                                              .request = **request,
                                              .is_open = true };
    client->read_bytes += next.byte_count;
    own.on_request(context, conn, request);
}

static void on_refused(void *context, const char *peer, enum finish why)
{
    struct client *client = client_of(peer);
    static struct next next;
    event_count++;
    assert(client->refused == FINISH_NONE);
    client->refused = why;
    if (why != FINISH_BUSY && why != FINISH_REQUEST_TIMEOUT) {
        enum http1_status status = next_read(client, client->read_bytes, &next);
        bool is_short = status == HTTP1_MORE && next.has_head && client->is_half_closed;
        assert(is_short ? why == FINISH_BAD_REQUEST : status == HTTP1_REFUSED && why == next.why);
    }
    own.on_refused(context, peer, why);
}

static void on_abort(void *context, const char *peer, bool is_reading)
{
    client_of(peer)->is_cut = true;
    event_count++;
    own.on_abort(context, peer, is_reading);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* The exchange has freed its request: from what was said it is read again. */
static void check_delivered(const struct client *client, const struct handed *request)
{
    static struct next next;
    enum http1_status status = next_read(client, request->said_at, &next);
    assert(status == HTTP1_DONE);
    struct request again = { .head = next.head, .body = next.body, .body_bytes = next.body_bytes };
    target_check_applied(&again);
}

static void check_answer(struct client *client, const struct http1_response *answer, struct slice body)
{
    unsigned from_client, from_index;
    const struct http1_field *flight = http1_field_find(answer->fields, answer->field_count, "x-flight");
    char text[32] = "";
    assert(client->answered_count < client->handed_count + (client->refused != FINISH_NONE));
    if (flight != NULL && flight->value.byte_count < sizeof text) {
        memcpy(text, flight->value.at, flight->value.byte_count);
        if (sscanf(text, "%u-%u", &from_client, &from_index) == 2)
            assert(from_client == (unsigned)(client - clients) && from_index == client->answered_count);
    }
    struct handed *request = handed_find((unsigned)(client - clients), client->answered_count);
    if (request != NULL) {
        request->is_open = false;
        if (answer->status < 300)
            check_delivered(client, request);
    } else {
        assert(answer->status == finish_rows[client->refused].status);
    }
    client->answered_count++;
    client->hash += (uint64_t)answer->status;
    client->hash = XXH3_64bits_withSeed(body.at, body.byte_count, client->hash);
}

/* Only the request says whether a body follows (RFC 9110, 6.4.1). */
static bool is_head_next(const struct client *client)
{
    static struct next next;
    const struct handed *request = handed_find((unsigned)(client - clients), client->answered_count);
    if (request != NULL)
        return request->request.head.method == HTTP1_HEAD;
    (void)next_read(client, client->read_bytes, &next);
    return next.has_head && next.head.method == HTTP1_HEAD;
}

/* False: no whole answer is here. */
static bool answer_read(struct client *client)
{
    const char *at = client->heard + client->understood_bytes;
    size_t byte_count = client->heard_bytes - client->understood_bytes;
    const char *blank = memmem(at, byte_count, "\r\n\r\n", 4);
    struct http1_response answer;
    if (blank == NULL)
        return false;
    size_t head_bytes = (size_t)(blank - at) + 4;
    enum http1_status status = http1_response(at, head_bytes, &answer);
    assert(status == HTTP1_DONE);
    bool is_final = answer.status >= 200;
    bool has_body = is_final && answer.status != 204 && answer.status != 304 && !is_head_next(client);
    assert(!has_body || answer.is_length_known);
    size_t body_bytes = has_body ? (size_t)answer.length_bytes : 0;
    if (byte_count - head_bytes < body_bytes)
        return false;
    if (is_final)
        check_answer(client, &answer, slice_of(at + head_bytes, body_bytes));
    client->understood_bytes += head_bytes + body_bytes;
    return true;
}

static void listen_to(struct client *client)
{
    for (;;) {
        assert(client->heard_bytes < sizeof client->heard);
        ssize_t got = client->fd < 0 ? 0
                                     : recv(client->fd, client->heard + client->heard_bytes,
                                            sizeof client->heard - client->heard_bytes, MSG_DONTWAIT);
        if (got <= 0)
            break;
        client->heard_bytes += (size_t)got;
        event_count++;
    }
    while (answer_read(client)) {
    }
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

/* Until nothing goes on any more.  A settlement may be followed by that of the rest of its request. */
static void pump(void)
{
    size_t before;
    do {
        before = event_count;
        event_base_loop(loop.base, EVLOOP_NONBLOCK);
        for (int i = 0; i < 3; i++)
            store_port_deliver(loop.port);
        for (size_t i = 0; i < client_count; i++)
            listen_to(&clients[i]);
    } while (event_count != before);
}

static void client_come(void)
{
    int fds[2];
    if (client_count == CLIENTS_MAX)
        return;
    int failed = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), room = 4096;
    failed |= setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    assert(failed == 0);
    struct client *client = present = &clients[client_count++];
    memset(client, 0, offsetof(struct client, said));
    memset(&client->said_bytes, 0, sizeof client->said_bytes + sizeof client->read_bytes);
    memset(&client->heard_bytes, 0, sizeof *client - offsetof(struct client, heard_bytes));
    client->fd = fds[0];
    snprintf(client->peer, sizeof client->peer, "%zu", client_count);
    atomic_fetch_add(&loop.connections, 1);
    atomic_fetch_add(&program.connections, 1);
    bool is_made = conn_new(loop.base, fds[1], &loop.service, client->peer, true);
    assert(is_made);
    if (loop.service.is_draining)
        conn_drain_all(&loop.service);
}

/* Where it hears nothing more, what is under way to it is lost with it. */
static void client_leave(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->is_half_closed = client->is_cut = true;
}

/* In pieces of PIECE_BYTES, each of which is read before the next one comes. */
static void say(struct client *client, struct slice bytes, size_t piece_bytes)
{
    if (client->fd < 0 || client->is_half_closed ||
        bytes.byte_count > sizeof client->said - client->said_bytes)
        return;
    while (bytes.byte_count > 0) {
        size_t count = bytes.byte_count < piece_bytes ? bytes.byte_count : piece_bytes;
        memcpy(client->said + client->said_bytes, bytes.at, count);
        client->said_bytes += count;
        if (send(client->fd, bytes.at, count, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)count)
            client->is_cut = client->is_cut || client->refused == FINISH_NONE; /* it is closed from there */
        bytes = slice_of(bytes.at + count, bytes.byte_count - count);
        pump();
    }
}

/* One batch with a record for each byte of OFFSETS. */
static void say_batch(struct client *client, char kind, struct slice offsets, size_t piece_bytes)
{
    static char body[BODY_BYTES_MAX * 2], bytes[BODY_BYTES_MAX * 3];
    size_t used = 0;
    for (size_t i = 0; i < offsets.byte_count && i < 32; i++) {
        char record[64];
        int count = offsets.at[i] == '-' ? snprintf(record, sizeof record, "{\"x\":%zu}", i)
                                         : snprintf(record, sizeof record, "{\"t\":\"t\",\"p\":0,\"o\":%d}",
                                                    offsets.at[i] & 15);
        used += (size_t)(kind == 'p'   ? sprintf(body + used, "%c%s", i == 0 ? '[' : ',', record)
                         : kind == 'l' ? sprintf(body + used, "%x\r\n%s\n\r\n", (unsigned)count + 1, record)
                                       : sprintf(body + used, "{\"index\":{\"_id\":\"t+0+%d\"}}\n%s\n",
                                                 offsets.at[i] & 15, record));
    }
    used += (size_t)sprintf(body + used, "%s",
                            kind == 'p'   ? used > 0 ? "]" : "[]"
                            : kind == 'l' ? "0\r\n\r\n"
                                          : "");
    const char *path = kind == 'b' ? "/i/_bulk" : "/p";
    int count = kind == 'l'
                    ? sprintf(bytes, "POST %s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%s",
                              path, body)
                    : sprintf(bytes, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%.*s", path,
                              used, (int)used, body);
    say(client, slice_of(bytes, (size_t)count), piece_bytes);
}

static int status_of(struct slice digits)
{
    int status = 0;
    for (size_t i = 0; i < digits.byte_count && i < 3; i++)
        status = status * 10 + (digits.at[i] & 15) % 10;
    return status >= 200 && status <= 599 ? status : 200;
}

static void step_of_connector(char letter, struct slice with, size_t piece_bytes)
{
    switch (letter) {
    case 'n':
        client_come();
        break;
    case 'c':
        present = &clients[(with.byte_count > 0 ? (uint8_t)with.at[0] : 0) % client_count];
        break;
    case 'h':
        if (present->fd >= 0)
            shutdown(present->fd, SHUT_WR);
        present->is_half_closed = true;
        break;
    case 'r':
        client_leave(present);
        break;
    case 'p':
    case 'l':
    case 'b':
        say_batch(present, letter, with, piece_bytes);
        break;
    default:
        say(present, with, piece_bytes);
    }
}

/* False: it is none of these. */
static bool step_of_others(char letter, struct slice with)
{
    switch (letter) {
    case 'a':
        target_answer(with);
        return true;
    case 'k':
        target_answer_status(200, with);
        return true;
    case 'K':
        target_answer_status(status_of(with), slice_of("", 0));
        return true;
    case 'B':
        target_answer_large();
        return true;
    case 'f':
        for (size_t i = 0; i < client_count; i++)
            clients[i].is_cut = true;
        conn_free_all(&loop.service);
        return true;
    case 'x':
        target_fail(ATTEMPT_NOT_SENT, ATTEMPT_ERROR_CONNECT);
        return true;
    case 'u':
        target_fail(ATTEMPT_UNKNOWN, ATTEMPT_ERROR_CLOSED);
        return true;
    case 's':
        conn_sweep(&loop.service, 2);
        return true;
    case 'S':
        conn_sweep(&loop.service, UINT64_MAX);
        return true;
    case 't':
        ack_sweep(&loop);
        return true;
    case 'd':
        was_drained = true;
        conn_drain_all(&loop.service);
        return true;
    case 'D':
        loop.service.is_draining = false;
        return true;
    case 'i':
        (void)conn_drop_idlest(&loop.service);
        return true;
    default:
        return false;
    }
}

static void run_steps(struct slice steps, size_t piece_bytes)
{
    for (size_t i = 0; i < STEPS_MAX && steps.byte_count > 0; i++) {
        const char *end = memchr(steps.at, 1, steps.byte_count);
        size_t byte_count = end == NULL ? steps.byte_count : (size_t)(end - steps.at);
        struct slice with = slice_of(steps.at + 1, byte_count > 0 ? byte_count - 1 : 0);
        char letter = byte_count > 0 ? steps.at[0] : 's';
        if (!step_of_others(letter, with))
            step_of_connector(letter, with, piece_bytes);
        pump();
        size_t used = byte_count + (end != NULL);
        steps = slice_of(steps.at + used, steps.byte_count - used);
    }
}

static void begin(size_t world)
{
    const struct settings *settings = &all_settings[world];
    struct store_options options = { .folder = "/nonexistent",
                                     .scope = "s",
                                     .policy =
                                         settings->in_doubt == IN_DOUBT_RETRY ? POLICY_RETRY : POLICY_HOLD,
                                     .in_doubt_max = 1000,
                                     .marks = 1000,
                                     .is_identity_checked = true,
                                     .window = 1000000,
                                     .replies = 100,
                                     .reply_bytes_max = 100 };
    struct settings_mistakes mistakes;
    char why[256];
    program =
        (struct program){ .settings = settings, .identifier = identifiers[world], .via = "1.1 sinkonce-0" };
    program.bodies.bytes_max = BODY_BYTES_MAX * 2;
    atomic_store(&program.mode, (int)settings->mode);
    program.credentials = credentials_of(settings, &mistakes);
    settings_mistakes_deinit(&mistakes);
    program.acks = acks_new(16, 0, 1); /* each is late as soon as the sweep comes */
    enum store_open_status opened = store_open(&options, &program.store, why, sizeof why);
    assert(opened == STORE_OPENED && program.credentials != NULL && program.acks != NULL);
    loop = (struct loop){ .program = &program, .base = event_base_new() };
    loop.port = store_port_new(program.store);
    loop.credentials = credentials_hold(program.credentials);
    assert(loop.base != NULL && loop.port != NULL);
    exchange_service_init(&loop);
    own = loop.service;
    loop.service.on_request = on_request;
    loop.service.on_refused = on_refused;
    loop.service.on_abort = on_abort;
    client_count = handed_count = 0;
    was_drained = false;
    target_begin(identifiers[world], settings,
                 settings->in_doubt == IN_DOUBT_HOLD && settings->mode == MODE_ENFORCE &&
                     !settings->is_stripped,
                 settings->split == SPLIT_RECORD);
    client_come();
}

/* Who is still there has been answered: what was handed over, and one request more when that was refused. */
static void check_client(const struct client *client)
{
    static struct next next;
    if (client->is_cut)
        return;
    assert(client->answered_count == client->handed_count + (client->refused != FINISH_NONE));
    assert(client->understood_bytes == client->heard_bytes);
    bool is_over = client->refused != FINISH_NONE || was_drained;
    if (!is_over && next_read(client, client->read_bytes, &next) ==
                        HTTP1_REFUSED) /* its answers may have said that they are the last */
        assert(client->handed_count > 0);
}

static void end(void)
{
    while (target_is_waited_for()) {
        target_fail(ATTEMPT_UNKNOWN, ATTEMPT_ERROR_TIMEOUT);
        pump();
    }
    for (size_t i = 0; i < client_count; i++)
        check_client(&clients[i]);
    conn_free_all(&loop.service);
    pump();
    assert(loop.service.conn_count == 0 && loop.service.first == NULL);
    assert(atomic_load(&program.in_flight) == 0 && atomic_load(&program.bodies.taken_bytes) == 0);
    assert(atomic_load(&program.connections) == 0 && atomic_load(&loop.connections) == 0);
    for (size_t i = 0; i < client_count; i++)
        client_leave(&clients[i]);
    exchange_free_spares(&loop);
    acks_free(program.acks);
    credentials_release(loop.credentials);
    credentials_release(program.credentials);
    store_port_free(loop.port);
    store_close(program.store);
    event_base_free(loop.base);
}

struct told {
    uint64_t sent, answers[CLIENTS_MAX];
    size_t client_count;
};

static struct told run(size_t world, struct slice steps, size_t piece_bytes)
{
    struct told told = { 0 };
    begin(world);
    run_steps(steps, piece_bytes);
    end();
    told.sent = target_hash();
    told.client_count = client_count;
    for (size_t i = 0; i < client_count; i++)
        told.answers[i] = clients[i].hash;
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    if (input_bytes < 2)
        return 0;
    size_t world = input[0] % WORLD_COUNT;
    if (identifiers[world] == NULL)
        world_make(world);
    struct slice steps = slice_of((const char *)input + 2, input_bytes - 2);
    struct told whole = run(world, steps, SAID_BYTES_MAX);
    if (input[1] % 32 == 0)
        return 0;
    struct told pieces = run(world, steps, input[1] % 32);
    assert(memcmp(&whole, &pieces, sizeof whole) == 0);
    return 0;
}
