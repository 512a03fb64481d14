/*
 * fuzz_upstream.c - any bytes as a target's answer, in pieces, through the target client and libcurl: what counts as an
 * answer is one, and its body is the target's own, to the last byte.
 *
 * The first byte chooses the request, the second the size of the pieces; the rest is what the target says before it closes
 * the connection.  It listens on the loopback interface, because libcurl connects by itself.
 *   - one request, one done(), and never "not sent": the target has seen all of it
 *   - known only by a whole final head that our strict reader takes, with the same status and fields; not so where a line
 *     of the head begins with a NUL: libcurl 7.88 drops what came in one read with it, before it shows us any of it
 *   - a body that is called whole is the one that the framing says
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fuzz.h"
#include "upstream.h"

enum { HEADER_BYTES = 2, REQUEST_BYTES_MAX = 2048, ANSWER_BYTES_MAX = 3000, SPINS_MAX = 20000000 };

static struct event_base *base;
static struct upstream *upstream;
static int listening = -1;
static unsigned done_count;

static void on_done(struct flight *flight)
{
    (void)flight;
    done_count++;
}

/* A port that the system chooses. */
static unsigned listen_somewhere(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_bytes = sizeof address;
    listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int failed = bind(listening, (struct sockaddr *)&address, sizeof address) != 0 ||
                 listen(listening, 16) != 0 ||
                 getsockname(listening, (struct sockaddr *)&address, &address_bytes) != 0;
    assert(listening >= 0 && !failed);
    return ntohs(address.sin_port);
}

static void prepare(void)
{
    static struct settings settings;
    char target[64];
    char *environment[] = { target, (char[]){ "SINKONCE_TARGET_IDLE=0" },
                            (char[]){ "SINKONCE_MAX_RESPONSE=3000B" }, NULL };
    struct settings_mistakes mistakes;
    snprintf(target, sizeof target, "SINKONCE_TARGET=http://127.0.0.1:%u", listen_somewhere());
    bool is_read = settings_read(environment, &settings, &mistakes);
    assert(is_read && settings.response_bytes_max == ANSWER_BYTES_MAX);
    settings_mistakes_deinit(&mistakes);
    struct credentials *credentials = credentials_of(&settings, &mistakes);
    assert(credentials != NULL);
    settings_mistakes_deinit(&mistakes);
    upstream_global_init();
    base = event_base_new();
    assert(base != NULL);
    upstream = upstream_new(base, &settings, NULL, 4);
    assert(upstream != NULL);
    upstream_credentials_set(upstream, credentials);
    credentials_release(credentials);
}

/* ---- the target -------------------------------------------------------------------------------------------------- */

struct target {
    int fd; /* -1: nobody has come, or it is closed */
    char heard[REQUEST_BYTES_MAX];
    size_t heard_bytes, body_bytes;
    unsigned visit_count;
    struct slice left; /* to say */
    size_t piece_bytes;
    bool has_ended;
};

static bool has_heard_all(const struct target *target)
{
    const char *blank = memmem(target->heard, target->heard_bytes, "\r\n\r\n", 4);
    return blank != NULL && target->heard_bytes - (size_t)(blank + 4 - target->heard) == target->body_bytes;
}

static void hear(struct target *target)
{
    ssize_t got = recv(target->fd, target->heard + target->heard_bytes,
                       sizeof target->heard - target->heard_bytes, MSG_DONTWAIT);
    if (got > 0)
        target->heard_bytes += (size_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close(target->fd);
        target->fd = -1;
    }
}

static void speak(struct target *target)
{
    size_t count =
        target->left.byte_count < target->piece_bytes ? target->left.byte_count : target->piece_bytes;
    ssize_t sent = count == 0 ? 0 : send(target->fd, target->left.at, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
        target->left = slice_of(target->left.at + sent, target->left.byte_count - (size_t)sent);
    if (target->left.byte_count == 0 && !target->has_ended) {
        shutdown(target->fd, SHUT_WR);
        target->has_ended = true;
    }
}

static void target_turn(struct target *target)
{
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        target->visit_count++;
        assert(target->fd < 0 && target->visit_count == 1); /* what was sent once is not sent again */
        target->fd = fd;
    }
    if (target->fd >= 0)
        hear(target);
    if (target->fd >= 0 && has_heard_all(target))
        speak(target);
}

/* ---- what must have been understood ------------------------------------------------------------------------------ */

/* The first head that is final and whole; false: there is none. */
static bool head_find(struct slice said, struct http1_response *ret_response, struct slice *ret_rest)
{
    for (;;) {
        const char *blank = said.byte_count == 0 ? NULL : memmem(said.at, said.byte_count, "\r\n\r\n", 4);
        if (blank == NULL)
            return false;
        size_t head_bytes = (size_t)(blank - said.at) + 4;
        if (http1_response(said.at, head_bytes, ret_response) != HTTP1_DONE)
            return false;
        said = slice_of(said.at + head_bytes, said.byte_count - head_bytes);
        *ret_rest = said;
        if (ret_response->status >= 200 || ret_response->status == 101)
            return true;
    }
}

/* What our own strict decoder does not take is left to libcurl's. */
static void check_chunks(const struct flight *flight, struct slice rest)
{
    static char body[ANSWER_BYTES_MAX + 1];
    struct http1_chunks chunks = { 0 };
    enum http1_status status = HTTP1_MORE;
    enum finish why;
    size_t body_bytes = 0, taken = 1;
    while (status == HTTP1_MORE && taken > 0) {
        struct slice piece;
        status = http1_chunk(&chunks, rest.at, rest.byte_count, ANSWER_BYTES_MAX, &taken, &piece, &why);
        if (piece.byte_count > 0)
            memcpy(body + body_bytes, piece.at, piece.byte_count);
        body_bytes += piece.byte_count;
        rest = slice_of(rest.at + taken, rest.byte_count - taken);
    }
    if (status == HTTP1_DONE)
        assert(slice_equals(slice_of(flight->answer, flight->answer_bytes), slice_of(body, body_bytes)));
}

static void check_body(const struct flight *flight, const struct http1_response *response, struct slice rest)
{
    bool has_none = flight->is_head_request || response->status == 204 || response->status == 304;
    if (has_none) {
        assert(flight->answer_bytes == 0);
    } else if (http1_field_find(response->fields, response->field_count, "transfer-encoding") != NULL) {
        check_chunks(flight, rest);
    } else {
        size_t byte_count = response->is_length_known ? (size_t)response->length_bytes : rest.byte_count;
        assert(byte_count <= rest.byte_count);
        assert(slice_equals(slice_of(flight->answer, flight->answer_bytes), slice_of(rest.at, byte_count)));
    }
}

static bool has_line_of_nul(struct slice said)
{
    return said.byte_count > 0 && memmem(said.at, said.byte_count, "\n", 2) != NULL;
}

static void check_flight(const struct flight *flight, struct slice said)
{
    struct http1_response response;
    struct slice rest = slice_of("", 0);
    assert(flight->attempt_class != ATTEMPT_NOT_SENT);
    assert(flight->answer_bytes <= ANSWER_BYTES_MAX);
    if (flight->attempt_class != ATTEMPT_KNOWN || has_line_of_nul(said))
        return;
    bool is_found = head_find(said, &response, &rest);
    assert(is_found && response.status == flight->response.status && response.status >= 200);
    assert(response.field_count == flight->response.field_count);
    for (size_t i = 0; i < response.field_count; i++)
        assert(slice_equals(response.fields[i].name, flight->response.fields[i].name) &&
               slice_equals(response.fields[i].value, flight->response.fields[i].value));
    if (!flight->is_answer_damaged)
        check_body(flight, &response, rest);
}

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static void run(struct flight *flight, struct target *target)
{
    done_count = 0;
    upstream_send(upstream, flight);
    for (unsigned spin = 0; done_count == 0; spin++) {
        assert(spin < SPINS_MAX);
        event_base_loop(base, EVLOOP_NONBLOCK);
        target_turn(target);
    }
    for (int i = 0; i < 3; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    target_turn(target);
    assert(done_count == 1 && target->visit_count == 1 && has_heard_all(target));
    if (target->fd >= 0)
        close(target->fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    static const char *const methods[] = { "POST", "HEAD", "GET", "DELETE" };
    static const char body[] = "{\"t\":\"t\"}";
    const struct slice part = slice_of_text(body);
    if (input_bytes < HEADER_BYTES)
        return 0;
    if (upstream == NULL)
        prepare();
    const char *method = methods[input[0] % 4];
    bool has_body = input[0] % 4 == 0;
    struct slice said = slice_of((const char *)input + HEADER_BYTES, input_bytes - HEADER_BYTES);
    struct target target = { .fd = -1,
                             .body_bytes = has_body ? part.byte_count : 0,
                             .left = said,
                             .piece_bytes = input[1] == 0 ? SIZE_MAX : input[1] };
    struct flight flight = { .method = slice_of_text(method),
                             .target = slice_of_text("/p?q"),
                             .parts = &part,
                             .part_count = has_body,
                             .body_bytes = has_body ? part.byte_count : 0,
                             .has_body = has_body,
                             .is_head_request = input[0] % 4 == 1,
                             .done = on_done };
    run(&flight, &target);
    check_flight(&flight, said);
    flight_deinit(&flight);
    return 0;
}
