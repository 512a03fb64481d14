/*
 * test_tls.c - files are whole and good, or are named with what is wrong; facts about certificates; handshakes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "papers.h"
#include "tls.h"
#include "tls_use.h"

static struct papers papers;

static int setup(void **state)
{
    static const struct paper all[] = {
        { "ca", NULL, NULL, -1, 90 },
        { "other-ca", NULL, NULL, -1, 30 },
        { "server", "ca", NULL, -1, 60 },
        { "old", "ca", NULL, -40, -10 },
        { "early", "ca", NULL, 5, 60 },
        { "client", "ca", NULL, -1, 60 },
        { "stranger", "other-ca", NULL, -1, 60 },
        { "locked", "ca", "opensesame", -1, 60 },
    };
    (void)state;
    papers_init(&papers);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        papers_make(&papers, &all[i]);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    papers_deinit(&papers);
    return 0;
}

static void file_write(const char *path, const char *text, const char *mode)
{
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void file_append(const char *path, const char *from_path)
{
    char text[8192];
    FILE *from = fopen(from_path, "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    file_write(path, text, "a");
}

/* Certificate, key and authorities by the names that they were made with; "-" none, "/..." a path. */
struct names {
    const char *certificate, *key, *ca, *password;
    bool is_server;
};

static struct tls *tls_of(struct names names, struct tls_fault *fault)
{
    const char *const given[TLS_PARTS] = { names.certificate, names.key, names.ca };
    char *made[TLS_PARTS] = { NULL };
    struct tls_files files = { .password = names.password, .is_server = names.is_server };
    for (size_t i = 0; i < TLS_PARTS; i++) {
        if (given[i] == NULL || given[i][0] == '/')
            files.paths[i] = given[i];
        else
            files.paths[i] = made[i] = papers_path(&papers, given[i], i == TLS_KEY ? "key" : "pem");
    }
    struct tls *tls = tls_new(&files, fault);
    for (size_t i = 0; i < TLS_PARTS; i++)
        free(made[i]);
    return tls;
}

static void assert_fault(struct names names, enum tls_part part, const char *words)
{
    struct tls_fault fault;
    struct tls *tls = tls_of(names, &fault);
    assert_null(tls);
    if (strstr(fault.words, words) == NULL)
        print_error("got: %s\n", fault.words);
    assert_non_null(strstr(fault.words, words));
    assert_int_equal(fault.part, part);
}

static struct tls *good(struct names names)
{
    struct tls_fault fault;
    struct tls *tls = tls_of(names, &fault);
    if (tls == NULL)
        print_error("got: %s\n", fault.words);
    assert_non_null(tls);
    return tls;
}

/* ---- files --------------------------------------------------------------------------------------------------- */

static void test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(void **state)
{
    char *broken = papers_path(&papers, "broken", "pem"), *empty = papers_path(&papers, "empty", "pem");
    char *pipe = papers_path(&papers, "pipe", "pem");
    (void)state;
    file_write(broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "w");
    file_write(empty, "", "w");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_fault((struct names){ "/nowhere", "server", NULL, NULL, true }, TLS_CERTIFICATE,
                 "names a file that cannot be read: No such file or directory (/nowhere)");
    assert_fault((struct names){ "/etc", "server", NULL, NULL, true }, TLS_CERTIFICATE,
                 "Is a directory (/etc)");
    assert_fault((struct names){ pipe, "server", NULL, NULL, true }, TLS_CERTIFICATE, "not an ordinary file");
    assert_fault((struct names){ empty, "server", NULL, NULL, true }, TLS_CERTIFICATE,
                 "there is none in PEM form");
    assert_fault((struct names){ broken, "server", NULL, NULL, true }, TLS_CERTIFICATE,
                 "names a file without a usable certificate");
    assert_fault((struct names){ "server", empty, NULL, NULL, true }, TLS_KEY,
                 "there is none in PEM form, or it is damaged");
    assert_fault((struct names){ "server", "/nowhere", NULL, NULL, true }, TLS_KEY, "No such file");
    assert_fault((struct names){ "server", "server", "/nowhere", NULL, true }, TLS_CA, "No such file");
    assert_fault((struct names){ "server", "server", empty, NULL, true }, TLS_CA,
                 "there is none in PEM form");
    assert_fault((struct names){ NULL, NULL, broken, NULL, false }, TLS_CA, "without a usable certificate");
    free(broken);
    free(empty);
    free(pipe);
}

static void test_a_key_of_another_certificate_is_refused(void **state)
{
    (void)state;
    assert_fault((struct names){ "server", "client", NULL, NULL, true }, TLS_KEY,
                 "does not belong to the certificate");
    assert_fault((struct names){ "server", "client", NULL, NULL, false }, TLS_KEY,
                 "does not belong to the certificate");
}

static void test_an_encrypted_key_needs_its_password_and_nobody_is_asked(void **state)
{
    (void)state;
    assert_fault((struct names){ "locked", "locked", NULL, NULL, true }, TLS_KEY,
                 "it is encrypted, and there is no password for it");
    assert_fault((struct names){ "locked", "locked", NULL, "wrong", false }, TLS_KEY,
                 "the password does not open it");
    tls_free(good((struct names){ "locked", "locked", NULL, "opensesame", false }));
}

static void test_certificate_and_key_may_stand_in_one_file(void **state)
{
    char *both = papers_path(&papers, "both", "pem"), *key = papers_path(&papers, "server", "key");
    char *certificate = papers_path(&papers, "server", "pem");
    (void)state;
    file_append(both, key);
    file_append(both, certificate);
    tls_free(good((struct names){ both, both, NULL, NULL, true }));
    free(both);
    free(key);
    free(certificate);
}

static void test_a_key_that_everybody_can_read_is_noticed(void **state)
{
    char *key = papers_path(&papers, "server", "key");
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    (void)state;
    assert_false(tls_is_key_exposed(tls));
    tls_free(tls);
    assert_int_equal(chmod(key, 0604), 0);
    tls = good((struct names){ "server", "server", NULL, NULL, true });
    assert_true(tls_is_key_exposed(tls));
    tls_free(tls);
    assert_int_equal(chmod(key, 0600), 0);
    free(key);
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

static int64_t days_left(const struct tls *tls, enum tls_part part)
{
    return (tls_expiry_s(tls, part) - (int64_t)time(NULL) + 12 * 3600) / (24 * 3600);
}

static void test_a_chain_ends_with_its_first_link_and_authorities_with_the_last(void **state)
{
    char *chain = papers_path(&papers, "chain", "pem"), *bundle = papers_path(&papers, "bundle", "pem");
    char *parts[] = { papers_path(&papers, "server", "pem"), papers_path(&papers, "other-ca", "pem"),
                      papers_path(&papers, "ca", "pem") };
    (void)state;
    file_append(chain, parts[0]);
    file_append(chain, parts[1]);
    file_append(bundle, parts[1]);
    file_append(bundle, parts[2]);
    struct tls *tls = good((struct names){ chain, "server", bundle, NULL, true });
    assert_int_equal(days_left(tls, TLS_CERTIFICATE), 30);
    assert_int_equal(days_left(tls, TLS_CA), 90);
    assert_int_equal(tls_expiry_s(tls, TLS_KEY), 0);
    tls_free(tls);
    assert_int_equal(tls_expiry_s(NULL, TLS_CERTIFICATE), 0);
    for (size_t i = 0; i < 3; i++)
        free(parts[i]);
    free(chain);
    free(bundle);
}

static void test_an_end_is_near_in_the_last_fortnight_and_past_from_its_second_on(void **state)
{
    const int64_t end_s = 2000000000, fortnight_s = TLS_EXPIRY_WARNING_S;
    char words[256];
    (void)state;
    assert_int_equal(tls_end_of(0, end_s), TLS_END_FAR);
    assert_int_equal(tls_end_of(end_s, end_s - fortnight_s), TLS_END_FAR);
    assert_int_equal(tls_end_of(end_s, end_s - fortnight_s + 1), TLS_END_NEAR);
    assert_int_equal(tls_end_of(end_s, end_s - 1), TLS_END_NEAR);
    assert_int_equal(tls_end_of(end_s, end_s), TLS_END_PAST);
    tls_end_words(TLS_USE_ADMIN, TLS_CERTIFICATE, end_s, end_s - 1, words, sizeof words);
    assert_non_null(strstr(words, "SINKONCE_ADMIN_CERT_FILE: its certificate expires on 2033-05-18"));
    tls_end_words(TLS_USE_TARGET, TLS_CA, end_s, end_s, words, sizeof words);
    assert_non_null(
        strstr(words, "SINKONCE_TARGET_CA_FILE: the last of its certificates expired on 2033-05-18"));
    tls_end_words(TLS_USE_LISTEN, TLS_CERTIFICATE, end_s, 0, words, sizeof words);
    assert_string_equal(words, "");
}

static void test_a_certificate_may_begin_later(void **state)
{
    struct tls *tls = good((struct names){ "early", "early", NULL, NULL, true });
    (void)state;
    assert_true(tls_begin_s(tls) > (int64_t)time(NULL) + 4 * 24 * 3600);
    tls_free(tls);
}

/* ---- handshakes ---------------------------------------------------------------------------------------------- */

/* What a client does; NULL and 0: nothing special. */
struct client {
    const char *name; /* its certificate; NULL: none */
    const char *ca;
    const char *alpn;
    size_t alpn_bytes;
    int version_max;
};

struct meeting {
    SSL_CTX *context;
    SSL *server, *client;
    struct tls_fault fault;
    enum tls_failure failure;
    bool is_done;
    unsigned long error;
    char words[TLS_WORDS_MAX];
};

static void client_make(struct meeting *meeting, const struct client *client)
{
    struct names names = { client->name, client->name, client->ca, NULL, false };
    struct tls *tls = good(names);
    meeting->context = SSL_CTX_new(TLS_client_method());
    assert_true(tls_client_apply(tls, meeting->context));
    tls_free(tls);
    SSL_CTX_set_verify(meeting->context, SSL_VERIFY_PEER, NULL);
    if (client->version_max != 0) {
        SSL_CTX_set_max_proto_version(meeting->context, client->version_max);
        SSL_CTX_set_min_proto_version(meeting->context, 0);
        SSL_CTX_set_security_level(meeting->context, 0);
    }
    meeting->client = SSL_new(meeting->context);
    if (client->alpn != NULL)
        assert_int_equal(SSL_set_alpn_protos(meeting->client, (const unsigned char *)client->alpn,
                                             (unsigned)client->alpn_bytes),
                         0);
    SSL_set_connect_state(meeting->client);
}

/* Each end moves as long as it can; a server's error is kept as libevent would hand it over. */
static void meet(struct meeting *meeting, const struct tls *tls, const struct client *client)
{
    BIO *inner = NULL, *outer = NULL;
    *meeting = (struct meeting){ .server = tls_session_new(tls) };
    client_make(meeting, client);
    assert_int_equal(BIO_new_bio_pair(&inner, 65536, &outer, 65536), 1);
    SSL_set_bio(meeting->server, inner, inner);
    SSL_set_bio(meeting->client, outer, outer);
    SSL_set_accept_state(meeting->server);
    for (int i = 0; i < 10 && meeting->error == 0; i++) {
        ERR_clear_error();
        (void)SSL_do_handshake(meeting->client);
        ERR_clear_error();
        int done = SSL_do_handshake(meeting->server);
        meeting->error = done == 1 ? 0 : ERR_peek_error();
    }
    ERR_clear_error();
    meeting->is_done = SSL_is_init_finished(meeting->server) && meeting->error == 0;
    meeting->failure = tls_failure_of(meeting->server, meeting->error, meeting->words);
}

static void part(struct meeting *meeting)
{
    SSL_free(meeting->server);
    SSL_free(meeting->client);
    SSL_CTX_free(meeting->context);
}

static void assert_met(const struct tls *tls, struct client client)
{
    struct meeting meeting;
    meet(&meeting, tls, &client);
    if (!meeting.is_done)
        print_error("failed: %s\n", meeting.words);
    assert_true(meeting.is_done);
    part(&meeting);
}

static void assert_failed(const struct tls *tls, struct client client, enum tls_failure failure)
{
    struct meeting meeting;
    meet(&meeting, tls, &client);
    assert_false(meeting.is_done);
    if (meeting.failure != failure)
        print_error("failed as %d: %s\n", (int)meeting.failure, meeting.words);
    assert_int_equal(meeting.failure, failure);
    assert_true(meeting.words[0] != '\0');
    part(&meeting);
}

static void test_versions_from_1_2_on_are_spoken(void **state)
{
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    (void)state;
    assert_met(tls, (struct client){ .ca = "ca" });
    assert_met(tls, (struct client){ .ca = "ca", .version_max = TLS1_2_VERSION });
    assert_failed(tls, (struct client){ .ca = "ca", .version_max = TLS1_1_VERSION }, TLS_FAILED_OTHER);
    tls_free(tls);
}

static void test_only_http_1_1_is_agreed_upon(void **state)
{
    static const char http1[] = "\x02h2\x08http/1.1", http2[] = "\x02h2";
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    struct meeting meeting;
    const unsigned char *chosen = NULL;
    unsigned chosen_bytes = 0;
    (void)state;
    meet(&meeting, tls, &(struct client){ .ca = "ca", .alpn = http1, .alpn_bytes = sizeof http1 - 1 });
    SSL_get0_alpn_selected(meeting.client, &chosen, &chosen_bytes);
    assert_true(meeting.is_done);
    assert_int_equal(chosen_bytes, 8);
    assert_memory_equal(chosen, "http/1.1", 8);
    part(&meeting);
    assert_failed(tls, (struct client){ .ca = "ca", .alpn = http2, .alpn_bytes = sizeof http2 - 1 },
                  TLS_FAILED_OTHER);
    tls_free(tls);
}

static void test_a_client_must_show_what_our_authorities_have_signed(void **state)
{
    struct tls *tls = good((struct names){ "server", "server", "ca", NULL, true });
    (void)state;
    assert_met(tls, (struct client){ .ca = "ca", .name = "client" });
    assert_failed(tls, (struct client){ .ca = "ca" }, TLS_FAILED_CLIENT_CERTIFICATE);
    assert_failed(tls, (struct client){ .ca = "ca", .name = "stranger" }, TLS_FAILED_CLIENT_CERTIFICATE);
    assert_failed(tls, (struct client){ .ca = "ca", .name = "old" }, TLS_FAILED_CLIENT_CERTIFICATE);
    tls_free(tls);
}

static void test_a_client_that_does_not_accept_ours_is_told_apart(void **state)
{
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    (void)state;
    assert_failed(tls, (struct client){ .ca = "other-ca" }, TLS_FAILED_OUR_CERTIFICATE);
    tls_free(tls);
}

static void test_no_session_can_be_resumed(void **state)
{
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        struct meeting first, second;
        char byte;
        meet(&first, tls, &(struct client){ .ca = "ca", .version_max = version });
        (void)SSL_read(first.client, &byte, 1); /* tickets of 1.3 would come now */
        SSL_SESSION *session = SSL_get1_session(first.client);
        assert_false(version == TLS1_3_VERSION && SSL_SESSION_is_resumable(session));
        BIO *inner = NULL, *outer = NULL;
        second = (struct meeting){ .server = tls_session_new(tls) };
        client_make(&second, &(struct client){ .ca = "ca", .version_max = version });
        assert_int_equal(SSL_set_session(second.client, session), 1);
        assert_int_equal(BIO_new_bio_pair(&inner, 65536, &outer, 65536), 1);
        SSL_set_bio(second.server, inner, inner);
        SSL_set_bio(second.client, outer, outer);
        SSL_set_accept_state(second.server);
        for (int i = 0; i < 10; i++) {
            (void)SSL_do_handshake(second.client);
            (void)SSL_do_handshake(second.server);
        }
        assert_true(SSL_is_init_finished(second.server));
        assert_false(SSL_session_reused(second.server));
        SSL_SESSION_free(session);
        part(&first);
        part(&second);
    }
    tls_free(tls);
}

static void test_a_session_outlives_what_it_was_made_from(void **state)
{
    struct tls *tls = good((struct names){ "server", "server", "ca", NULL, true });
    struct ssl_st *session = tls_session_new(tls);
    (void)state;
    tls_free(tls);
    assert_non_null(SSL_get_certificate(session));
    SSL_free(session);
}

static void test_what_is_no_tls_is_told_apart(void **state)
{
    static const char request[] = "POST / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct tls *tls = good((struct names){ "server", "server", NULL, NULL, true });
    struct ssl_st *session = tls_session_new(tls);
    char words[TLS_WORDS_MAX];
    (void)state;
    SSL_set_bio(session, BIO_new_mem_buf(request, sizeof request - 1), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(session);
    ERR_clear_error();
    assert_int_equal(SSL_do_handshake(session), -1);
    assert_int_equal(tls_failure_of(session, ERR_peek_error(), words), TLS_FAILED_PLAIN);
    assert_int_equal(tls_failure_of(session, 0, words), TLS_FAILED_CLOSED);
    ERR_clear_error();
    SSL_free(session);
    tls_free(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_that_cannot_be_used_is_named_with_what_is_wrong),
        cmocka_unit_test(test_a_key_of_another_certificate_is_refused),
        cmocka_unit_test(test_an_encrypted_key_needs_its_password_and_nobody_is_asked),
        cmocka_unit_test(test_certificate_and_key_may_stand_in_one_file),
        cmocka_unit_test(test_a_key_that_everybody_can_read_is_noticed),
        cmocka_unit_test(test_a_chain_ends_with_its_first_link_and_authorities_with_the_last),
        cmocka_unit_test(test_an_end_is_near_in_the_last_fortnight_and_past_from_its_second_on),
        cmocka_unit_test(test_a_certificate_may_begin_later),
        cmocka_unit_test(test_versions_from_1_2_on_are_spoken),
        cmocka_unit_test(test_only_http_1_1_is_agreed_upon),
        cmocka_unit_test(test_a_client_must_show_what_our_authorities_have_signed),
        cmocka_unit_test(test_a_client_that_does_not_accept_ours_is_told_apart),
        cmocka_unit_test(test_no_session_can_be_resumed),
        cmocka_unit_test(test_a_session_outlives_what_it_was_made_from),
        cmocka_unit_test(test_what_is_no_tls_is_told_apart),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
