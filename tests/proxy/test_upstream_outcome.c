/*
 * test_upstream_outcome.c - C-10: one scripted target per row, and what our client makes of it.  A1.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "upstream_bed.h"
#include "upstream_target.h"

/* ---- rows whose script is: read the request, say something, then close, reset or stall ---- */

enum then { THEN_CLOSE, THEN_RESET, THEN_STALL };
struct row {
    const char *name;
    const char *answer;
    enum then then;
    enum attempt_class class;
    int status;
    enum attempt_error error;
    bool is_damaged;
    const char *body;
};

#define HEAD200 "HTTP/1.1 200 OK\r\n"
static const struct row rows[] = {
    { "09 closed without a byte", "", THEN_CLOSE, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_CLOSED, false, "" },
    { "10 reset without a byte", "", THEN_RESET, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_CLOSED, false, "" },
    { "11 cut inside the status line", "HTTP/1.1 20", THEN_CLOSE, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_CLOSED,
      false, "" },
    { "12 cut inside the fields", HEAD200 "Content-Le", THEN_CLOSE, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_CLOSED,
      false, "" },
    { "12 cut after a whole field", HEAD200 "Content-Length: 0\r\n", THEN_CLOSE, ATTEMPT_UNKNOWN, 0,
      ATTEMPT_ERROR_CLOSED, false, "" },
    { "12 reset inside the fields", HEAD200 "Content-Le", THEN_RESET, ATTEMPT_UNKNOWN, 0,
      ATTEMPT_ERROR_CLOSED, false, "" },
    { "13 HTTP/0.9", "it worked", THEN_CLOSE, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_PROTOCOL, false, "" },
    { "13 status 9999", "HTTP/1.1 9999 OK\r\nContent-Length: 0\r\n\r\n", THEN_CLOSE, ATTEMPT_UNKNOWN, 0,
      ATTEMPT_ERROR_PROTOCOL, false, "" },
    { "14 negative Content-Length", HEAD200 "Content-Length: -5\r\n\r\n", THEN_CLOSE, ATTEMPT_UNKNOWN, 0,
      ATTEMPT_ERROR_PROTOCOL, false, "" },
    { "16 101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", THEN_CLOSE,
      ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_PROTOCOL, false, "" },
    { "19 body shorter than its length", HEAD200 "Content-Length: 10\r\n\r\nabc", THEN_CLOSE, ATTEMPT_KNOWN,
      200, ATTEMPT_ERROR_CLOSED, true, "abc" },
    { "19 body reset", "HTTP/1.1 201 Made\r\nContent-Length: 10\r\n\r\nabc", THEN_RESET, ATTEMPT_KNOWN, 201,
      ATTEMPT_ERROR_CLOSED, true, NULL },
    { "19 chunked body cut", HEAD200 "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", THEN_CLOSE, ATTEMPT_KNOWN,
      200, ATTEMPT_ERROR_CLOSED, true, "abc" },
    { "20 body ends with the connection", HEAD200 "\r\nabc", THEN_CLOSE, ATTEMPT_KNOWN, 200,
      ATTEMPT_ERROR_NONE, false, "abc" },
    { "21 silence after the request", "", THEN_STALL, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_TIMEOUT, false, "" },
    { "21 silence inside the head", HEAD200 "X: y", THEN_STALL, ATTEMPT_UNKNOWN, 0, ATTEMPT_ERROR_TIMEOUT,
      false, "" },
    { "21 silence inside the body", "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\nabc", THEN_STALL,
      ATTEMPT_KNOWN, 503, ATTEMPT_ERROR_TIMEOUT, true, "abc" },
    { "a whole answer", HEAD200 "Content-Length: 3\r\n\r\nabc", THEN_STALL, ATTEMPT_KNOWN, 200,
      ATTEMPT_ERROR_NONE, false, "abc" },
};

static void row_script(struct target *target, int fd, unsigned index)
{
    const struct row *row = target->context;
    struct target_request request;
    if (!target_read(target, fd, &request))
        return;
    target_write(fd, row->answer);
    if (row->then == THEN_STALL) {
        target_stall(target, fd);
    } else if (row->then == THEN_RESET) {
        usleep(
            50000); /* so that what was written arrives first; the class does not depend on it for these rows */
        target_reset(target, index);
    }
}

static void row_check(const struct row *row, const struct trip *trip)
{
    const struct flight *flight = &trip->flight;
    if (flight->attempt_class != row->class || flight->error != row->error ||
        flight->is_answer_damaged != row->is_damaged)
        fail_msg("%s: %s, error %s, damaged %d, \"%s\"", row->name, class_name(flight->attempt_class),
                 attempt_error_name(flight->error), flight->is_answer_damaged, flight->detail);
    if (row->class == ATTEMPT_KNOWN)
        assert_int_equal(flight->response.status, row->status);
    if (row->body != NULL) {
        assert_int_equal(flight->answer_bytes, strlen(row->body));
        assert_memory_equal(flight->answer == NULL ? "" : flight->answer, row->body, strlen(row->body));
    }
    assert_true((flight->error == ATTEMPT_ERROR_NONE) == (flight->detail[0] == '\0'));
    assert_true(flight->sent_ns >= flight->queued_ns && flight->ended_ns >= flight->sent_ns);
}

static void test_c10_rows_09_to_21_what_ends_after_the_send(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct target target;
        struct bed bed;
        struct trip trip;
        struct row row = rows[i];
        target_start(&target, row_script, &row);
        bed_init(&bed, "127.0.0.1", target.port);
        bed.settings.target_timeout_ms = row.then == THEN_STALL ? 300 : 10000;
        bed_start(&bed, 2);
        trip_run(&trip, &bed, "POST", "/write", "12345");
        row_check(&row, &trip);
        assert_int_equal(target.begun_count, 1);
        flight_deinit(&trip.flight);
        bed_stop(&bed);
        target_stop(&target);
    }
}

/* ---- rows of larger or odd answers ---- */

static void nul_script(struct target *target, int fd, unsigned index)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n";
    struct target_request request;
    (void)index;
    if (target_read(target, fd, &request))
        target_write_bytes(fd, answer, sizeof answer - 1);
}

static void huge_head_script(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    if (!target_read(target, fd, &request))
        return;
    target_write(fd, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 400; i++) {
        char line[1026];
        memset(line, 'a', sizeof line);
        memcpy(line, "X: ", 3);
        memcpy(line + sizeof line - 2, "\r\n", 2);
        target_write_bytes(fd, line, sizeof line);
    }
    target_write(fd, "\r\n");
}

static void early_413_script(struct target *target, int fd, unsigned index)
{
    char head[100];
    (void)index;
    (void)!read(fd, head, sizeof head);
    atomic_fetch_add(&target->begun_count, 1);
    target_write(fd, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    target_stall(target, fd);
}

static void run_against(target_script *script, const char *body, size_t body_bytes, struct trip *ret_trip)
{
    struct target target;
    struct bed bed;
    target_start(&target, script, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed_start(&bed, 2);
    trip_init(ret_trip, &bed, "POST", "/write", body, body_bytes);
    trip_send(ret_trip);
    trip_wait(ret_trip);
    assert_int_equal(target.begun_count, 1);
    flight_deinit(&ret_trip->flight);
    bed_stop(&bed);
    target_stop(&target);
}

static void test_c10_rows_14_and_15_a_bad_or_endless_head_is_unknown(void **state)
{
    struct trip trip;
    (void)state;
    run_against(nul_script, "12345", 5, &trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "unknown");
    run_against(huge_head_script, "12345", 5, &trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "unknown");
}

static void test_c10_row_22_an_early_413_is_known(void **state)
{
    struct trip trip;
    const size_t body_bytes = 20 << 20;
    char *body = calloc(1, body_bytes);
    (void)state;
    assert_non_null(body);
    run_against(early_413_script, body, body_bytes, &trip);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    assert_int_equal(trip.flight.response.status, 413);
    free(body);
}

/* Rows 17 and 18 are C-01 to C-06 in test_upstream.c; row 06 cannot happen, its place is taken by C-23. */

/* ---- rows of which nothing can have left: NOT_SENT (A1) ---- */

static void assert_not_sent(struct bed *bed, enum attempt_error error)
{
    struct trip trip;
    bed_start(bed, 2);
    trip_run(&trip, bed, "POST", "/write", "12345");
    if (trip.flight.attempt_class != ATTEMPT_NOT_SENT || trip.flight.error != error)
        fail_msg("%s, error %s, \"%s\"", class_name(trip.flight.attempt_class),
                 attempt_error_name(trip.flight.error), trip.flight.detail);
    assert_int_equal(trip.flight.sent_ns, 0);
    assert_true(trip.flight.detail[0] != '\0');
    flight_deinit(&trip.flight);
    bed_stop(bed);
}

static int listening(int backlog, int *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    if (backlog >= 0)
        assert_int_equal(listen(fd, backlog), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &address_bytes), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void test_c10_row_03_a1_refused_is_not_sent(void **state)
{
    struct bed bed;
    int port, fd = listening(-1, &port); /* bound and never listening: nobody else can take it */
    (void)state;
    bed_init(&bed, "127.0.0.1", port);
    assert_not_sent(&bed, ATTEMPT_ERROR_CONNECT);
    (void)close(fd);
}

static void test_c10_row_04_a1_c28_a_full_backlog_is_not_sent(void **state)
{
    struct bed bed;
    int port, fillers[4], fd = listening(0, &port);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    (void)state;
    address.sin_port = htons((uint16_t)port);
    for (size_t i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fillers[i], (struct sockaddr *)&address, sizeof address);
    }
    bed_init(&bed, "127.0.0.1", port);
    bed.settings.connect_timeout_ms = 200;
    assert_not_sent(&bed, ATTEMPT_ERROR_CONNECT);
    for (size_t i = 0; i < 4; i++)
        (void)close(fillers[i]);
    (void)close(fd);
}

static void test_c10_row_02_a1_a_name_that_is_not_there_is_not_sent(void **state)
{
    struct bed bed;
    (void)state;
    bed_init(&bed, "nowhere.invalid", 80); /* RFC 6761, 6.4: never resolves */
    assert_not_sent(&bed, ATTEMPT_ERROR_DNS);
}

static void test_c10_row_05_a1_tls_to_a_plain_port_is_not_sent(void **state)
{
    struct target target;
    struct bed bed;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "127.0.0.1", target.port);
    bed.settings.target.is_https = true;
    bed.settings.connect_timeout_ms = 500; /* the plain target waits for the end of a head that never comes */
    bed_start(&bed, 2);
    struct trip trip;
    trip_run(&trip, &bed, "POST", "/write", "12345");
    assert_string_equal(class_name(trip.flight.attempt_class), "not_sent");
    assert_int_equal(trip.flight.sent_ns, 0);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
}

/* ---- with a real TLS server: the openssl program, as its own process ---- */

struct tls_server {
    pid_t pid;
    int port;
    char folder[32], certificate[64], key[64];
};

static bool make_certificate(struct tls_server *server)
{
    char command[512];
    (void)snprintf(server->folder, sizeof server->folder, "/tmp/sinkonce-tls-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    (void)snprintf(server->certificate, sizeof server->certificate, "%s/cert.pem", server->folder);
    (void)snprintf(server->key, sizeof server->key, "%s/key.pem", server->folder);
    (void)snprintf(
        command, sizeof command,
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1 "
        "-addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s >/dev/null 2>&1",
        server->key, server->certificate);
    return system(command) == 0;
}

static void serve_tls(const struct tls_server *server, int out, bool is_verifying)
{
    char *const arguments[] = { strdup("openssl"),
                                strdup("s_server"),
                                strdup("-accept"),
                                strdup("127.0.0.1:0"),
                                strdup("-cert"),
                                strdup(server->certificate),
                                strdup("-key"),
                                strdup(server->key),
                                strdup("-tls1_3"),
                                strdup("-www"),
                                strdup("-CAfile"),
                                strdup(server->certificate),
                                is_verifying ? strdup("-Verify") : NULL,
                                strdup("1"),
                                strdup("-verify_return_error"),
                                NULL };
    (void)dup2(out, STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    (void)execvp("openssl", arguments);
    _exit(127);
}

/* False: no openssl program here. */
static bool tls_start(struct tls_server *server, bool is_verifying)
{
    int ends[2];
    char line[256];
    if (!make_certificate(server) || pipe(ends) != 0)
        return false;
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        serve_tls(server, ends[1], is_verifying);
    (void)close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    server->port = 0;
    while (server->port == 0 && fgets(line, sizeof line, out) != NULL) /* "ACCEPT 127.0.0.1:40123" */
        if (strncmp(line, "ACCEPT ", 7) == 0)
            server->port = (int)strtoul(strrchr(line, ':') + 1, NULL, 10);
    (void)fclose(out);
    return server->port != 0;
}

static void tls_stop(struct tls_server *server)
{
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL);
        (void)waitpid(server->pid, NULL, 0);
    }
    (void)unlink(server->certificate);
    (void)unlink(server->key);
    (void)rmdir(server->folder);
}

static void tls_bed(struct bed *bed, const struct tls_server *server)
{
    bed_init(bed, "127.0.0.1", server->port);
    bed->settings.target.is_https = true;
}

static void
test_c10_row_05_a1_an_untrusted_certificate_is_not_sent_and_a_trusted_one_is_spoken_to(void **state)
{
    struct tls_server server = { 0 };
    struct bed bed;
    struct trip trip;
    (void)state;
    if (!tls_start(&server, false)) {
        tls_stop(&server);
        skip();
    }
    tls_bed(&bed, &server);
    assert_not_sent(&bed, ATTEMPT_ERROR_TLS);
    tls_bed(&bed, &server);
    bed.settings.target_ca_file = server.certificate;
    bed_start(&bed, 2);
    trip_run(&trip, &bed, "GET", "/", NULL);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    tls_bed(&bed, &server);
    bed.settings.is_target_verified = false;
    bed_start(&bed, 2);
    trip_run(&trip, &bed, "GET", "/", NULL);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    tls_stop(&server);
}

static void test_c10_row_08_a_missing_client_certificate_is_unknown_and_a_given_one_is_used(void **state)
{
    struct tls_server server = { 0 };
    struct bed bed;
    struct trip trip;
    (void)state;
    if (!tls_start(&server, true)) {
        tls_stop(&server);
        skip();
    }
    tls_bed(&bed, &server);
    bed.settings.target_ca_file = server.certificate;
    bed_start(&bed, 2);
    trip_run(&trip, &bed, "POST", "/write", "12345");
    /* TLS 1.3: the client is done before the server has looked; bytes were written. */
    assert_string_equal(class_name(trip.flight.attempt_class), "unknown");
    assert_int_equal(trip.flight.attempt.prereq_count, 1);
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    bed.settings.target_cert_file = server.certificate;
    bed.settings.target_key_file = server.key;
    bed_start(&bed, 2);
    trip_run(&trip, &bed, "GET", "/", NULL);
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    tls_stop(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c10_rows_09_to_21_what_ends_after_the_send),
        cmocka_unit_test(test_c10_rows_14_and_15_a_bad_or_endless_head_is_unknown),
        cmocka_unit_test(test_c10_row_22_an_early_413_is_known),
        cmocka_unit_test(test_c10_row_03_a1_refused_is_not_sent),
        cmocka_unit_test(test_c10_row_04_a1_c28_a_full_backlog_is_not_sent),
        cmocka_unit_test(test_c10_row_02_a1_a_name_that_is_not_there_is_not_sent),
        cmocka_unit_test(test_c10_row_05_a1_tls_to_a_plain_port_is_not_sent),
        cmocka_unit_test(
            test_c10_row_05_a1_an_untrusted_certificate_is_not_sent_and_a_trusted_one_is_spoken_to),
        cmocka_unit_test(test_c10_row_08_a_missing_client_certificate_is_unknown_and_a_given_one_is_used),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    upstream_global_init();
    return cmocka_run_group_tests_name("upstream_outcome", tests, NULL, NULL);
}
