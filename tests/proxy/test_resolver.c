/*
 * test_resolver.c - look-ups against a getaddrinfo() of our own, which can be silent: C-25.
 *
 * The definition here takes the place of the C library's in the whole program, libcurl included.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "clock.h"
#include "upstream_bed.h"
#include "upstream_target.h"

static atomic_uint call_count;
static atomic_int failure;    /* what look-ups end with; 0: they do not fail */
static atomic_int move_count; /* of moving.test */
static atomic_int leap_s;     /* how far the clock that never jumps has jumped */
static sem_t silence;         /* a silent server answers when this is posted */

/* Also in place of the C library's: an answer is kept for longer than a test may take. */
int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long rc = syscall(SYS_clock_gettime, clock, ret);
    if (rc == 0 && clock == CLOCK_MONOTONIC)
        ret->tv_sec += atomic_load(&leap_s);
    return (int)rc;
}

static void answers_grow_old(void)
{
    atomic_fetch_add(&leap_s, RESOLVER_TTL_MS / 1000 + 1);
}

static struct addrinfo *address_new(const char *text, struct addrinfo *next)
{
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)(info + 1);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)(info + 1);
    info->ai_next = next;
    info->ai_addr = (struct sockaddr *)(void *)(info + 1);
    info->ai_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
    info->ai_addr->sa_family = (sa_family_t)info->ai_family;
    info->ai_addrlen = info->ai_family == AF_INET ? sizeof *v4 : sizeof *v6;
    (void)inet_pton(info->ai_family, text,
                    info->ai_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr);
    return info;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    (void)service, (void)hints;
    atomic_fetch_add(&call_count, 1);
    if (strcmp(host, "silent.test") == 0)
        while (sem_wait(&silence) != 0)
            ;
    if (strcmp(host, "missing.test") == 0)
        return EAI_NONAME;
    if (atomic_load(&failure) != 0)
        return atomic_load(&failure);
    int moves = strcmp(host, "moving.test") == 0 ? atomic_load(&move_count) : 0;
    *ret = moves < 2 ? address_new("127.0.0.1", NULL) : NULL;
    if (moves > 0)
        *ret = address_new("127.0.0.2", *ret);
    if (strcmp(host, "both.test") == 0)
        *ret = address_new("::1", *ret);
    return 0;
}

void freeaddrinfo(struct addrinfo *info)
{
    while (info != NULL) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}

/* ---- the resolver alone ---- */

struct inquiry {
    struct lookup lookup;
    sem_t is_done;
};

static void inquiry_done(struct lookup *lookup)
{
    struct inquiry *inquiry = lookup->owner;
    (void)sem_post(&inquiry->is_done);
}

static void inquiry_init(struct inquiry *inquiry, const char *host)
{
    memset(inquiry, 0, sizeof *inquiry);
    inquiry->lookup = (struct lookup){ .host = host, .done = inquiry_done, .owner = inquiry };
    (void)sem_init(&inquiry->is_done, 0, 0);
}

/* True: given at once. */
static bool inquiry_ask(struct resolver *resolver, struct inquiry *inquiry, const char *host)
{
    inquiry_init(inquiry, host);
    if (resolver_ask(resolver, &inquiry->lookup))
        return true;
    while (sem_wait(&inquiry->is_done) != 0)
        ;
    return false;
}

static void test_literal_addresses_need_no_look_up(void **state)
{
    struct resolver *resolver = resolver_new();
    struct inquiry inquiry;
    unsigned before = call_count;
    (void)state;
    assert_true(inquiry_ask(resolver, &inquiry, "10.1.2.3"));
    assert_true(inquiry.lookup.is_found);
    assert_string_equal(inquiry.lookup.addresses, "10.1.2.3");
    assert_true(inquiry_ask(resolver, &inquiry, "fe80::1"));
    assert_string_equal(inquiry.lookup.addresses, "[fe80::1]");
    assert_int_equal(call_count, before);
    resolver_free(resolver);
}

static void test_an_answer_is_kept_and_given_at_once(void **state)
{
    struct resolver *resolver = resolver_new();
    struct inquiry inquiry;
    unsigned before = call_count;
    (void)state;
    assert_false(inquiry_ask(resolver, &inquiry, "both.test"));
    assert_true(inquiry.lookup.is_found);
    assert_string_equal(inquiry.lookup.addresses, "[::1],127.0.0.1");
    assert_true(inquiry_ask(resolver, &inquiry, "both.test"));
    assert_string_equal(inquiry.lookup.addresses, "[::1],127.0.0.1");
    assert_int_equal(call_count, before + 1);
    resolver_free(resolver);
}

static void test_a_missing_name_is_told_in_words_and_kept_for_a_moment(void **state)
{
    struct resolver *resolver = resolver_new();
    struct inquiry inquiry;
    (void)state;
    assert_false(inquiry_ask(resolver, &inquiry, "missing.test"));
    assert_false(inquiry.lookup.is_found);
    assert_non_null(strstr(inquiry.lookup.detail, "not found"));
    assert_true(inquiry_ask(resolver, &inquiry, "missing.test"));
    assert_false(inquiry.lookup.is_found);
    usleep(1100000);
    unsigned before = call_count;
    assert_false(inquiry_ask(resolver, &inquiry, "missing.test"));
    assert_int_equal(call_count, before + 1);
    resolver_free(resolver);
}

static void test_what_was_found_holds_until_somebody_who_knows_says_otherwise(void **state)
{
    static const int at_a_loss[] = { EAI_AGAIN, EAI_FAIL, EAI_SYSTEM, EAI_MEMORY };
    static const int answers[] = { EAI_NONAME, EAI_NODATA };
    struct resolver *resolver = resolver_new();
    struct inquiry inquiry;
    (void)state;
    atomic_store(&failure, EAI_AGAIN);
    assert_false(inquiry_ask(resolver, &inquiry, "target.test"));
    assert_false(inquiry.lookup.is_found); /* nothing was known before */
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        atomic_store(&failure, 0);
        answers_grow_old();
        assert_false(inquiry_ask(resolver, &inquiry, "target.test"));
        assert_true(inquiry.lookup.is_found);
        for (size_t k = 0; k < sizeof at_a_loss / sizeof at_a_loss[0]; k++) {
            atomic_store(&failure, at_a_loss[k]);
            answers_grow_old();
            assert_false(inquiry_ask(resolver, &inquiry, "target.test"));
            assert_true(inquiry.lookup.is_found);
            assert_string_equal(inquiry.lookup.addresses, "127.0.0.1");
            assert_true(inquiry_ask(resolver, &inquiry, "target.test")); /* not asked again at once */
            assert_true(inquiry.lookup.is_found);
        }
        atomic_store(&failure, answers[i]);
        answers_grow_old();
        assert_false(inquiry_ask(resolver, &inquiry, "target.test"));
        assert_false(inquiry.lookup.is_found);
    }
    atomic_store(&failure, 0);
    resolver_free(resolver);
}

static void test_questions_about_one_name_share_a_look_up(void **state)
{
    struct resolver *resolver = resolver_new();
    struct inquiry inquiries[5];
    unsigned before = call_count;
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        inquiry_init(&inquiries[i], "silent.test");
        assert_false(resolver_ask(resolver, &inquiries[i].lookup));
    }
    (void)sem_post(&silence);
    for (size_t i = 0; i < 5; i++) {
        while (sem_wait(&inquiries[i].is_done) != 0)
            ;
        assert_true(inquiries[i].lookup.is_found);
    }
    assert_int_equal(call_count, before + 1);
    resolver_free(resolver);
}

static void test_c25_a_silent_server_does_not_hold_up_the_end(void **state)
{
    struct resolver *resolver = resolver_new();
    struct inquiry running, waiting;
    (void)state;
    unsigned before = call_count;
    inquiry_init(&running, "silent.test");
    inquiry_init(&waiting, "missing.test");
    assert_false(resolver_ask(resolver, &running.lookup));
    while (call_count == before)
        usleep(1000);
    assert_false(resolver_ask(resolver, &waiting.lookup));
    resolver_free(resolver); /* would hang here */
    assert_int_equal(sem_trywait(&running.is_done), 0);
    assert_int_equal(sem_trywait(&waiting.is_done), 0);
    assert_false(running.lookup.is_found);
    (void)sem_post(&silence); /* lets the thread go, which finds nobody */
    usleep(20000);
}

/* ---- an upstream that needs a name ---- */

static void test_a_flight_waits_for_its_name_and_libcurl_looks_nothing_up(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    unsigned before = call_count;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "both.test", target.port);
    bed_start(&bed, 4);
    for (int i = 0; i < 3; i++) {
        trip_run(&trip, &bed, "POST", "/write", "12345");
        assert_string_equal(class_name(trip.flight.attempt_class), "known");
        assert_false(trip.is_from_inside);
        flight_deinit(&trip.flight);
    }
    assert_int_equal(call_count, before + 1);
    assert_int_equal(target.connection_count, 1);
    bed_stop(&bed);
    target_stop(&target);
}

static void test_a1_c10_row_02_a_missing_name_is_not_sent_and_found_later(void **state)
{
    struct target target;
    struct bed bed;
    struct trip trip;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "target.test", target.port);
    bed_start(&bed, 4);
    atomic_store(&failure, EAI_NONAME);
    for (int i = 0; i < 2; i++) {
        trip_run(&trip, &bed, "POST", "/write", "12345");
        assert_string_equal(class_name(trip.flight.attempt_class), "not_sent");
        assert_int_equal(trip.flight.error, ATTEMPT_ERROR_DNS);
        assert_non_null(strstr(trip.flight.detail, "not found"));
    }
    atomic_store(&failure, 0);
    bed_spin_ms(&bed, 1100);
    trip_run(&trip, &bed, "POST", "/write", "12345");
    assert_string_equal(class_name(trip.flight.attempt_class), "known");
    flight_deinit(&trip.flight);
    bed_stop(&bed);
    target_stop(&target);
}

/* Send until the connection is no more what it was, or often enough; how often the target had it. */
static unsigned send_while_known(struct bed *bed, unsigned times)
{
    unsigned known_count = 0;
    struct trip trip;
    for (bool is_known = true; is_known && known_count < times;) {
        trip_run(&trip, bed, "POST", "/write", "12345");
        is_known = trip.flight.attempt_class == ATTEMPT_KNOWN;
        known_count += is_known;
        flight_deinit(&trip.flight);
        bed_spin_ms(bed, 5);
    }
    return known_count;
}

static void test_a_connection_is_used_as_long_as_its_address_is_one_of_the_targets(void **state)
{
    enum { TIMES = 200 }; /* a look-up on another thread is through long before */
    struct target target;
    struct bed bed;
    (void)state;
    target_start(&target, target_answer_ok, NULL);
    bed_init(&bed, "moving.test", target.port);
    bed.settings.target_idle_ms = 3600000;
    bed_start(&bed, 4);
    assert_int_equal(send_while_known(&bed, 1), 1);
    for (int moves = 1; moves <= 2; moves++) {
        unsigned before = call_count;
        atomic_store(&move_count, moves);
        answers_grow_old();
        unsigned known_count = send_while_known(&bed, TIMES);
        assert_true(call_count > before);
        assert_int_equal(target.connection_count, 1);
        if (moves == 1) /* to another address and the old one */
            assert_int_equal(known_count, TIMES);
        else /* nobody listens at the other one */
            assert_true(known_count < TIMES);
    }
    atomic_store(&move_count, 0);
    bed_stop(&bed);
    target_stop(&target);
}

static void count_turn(evutil_socket_t fd, short what, void *context)
{
    unsigned *turn_count = context;
    (void)fd, (void)what;
    (*turn_count)++;
}

static void test_c25_silent_dns_ends_in_time_and_the_loop_runs_on(void **state)
{
    struct bed bed;
    struct trip trip;
    unsigned turn_count = 0;
    const struct timeval often = { 0, 10000 };
    (void)state;
    bed_init(&bed, "silent.test", 80);
    bed.settings.connect_timeout_ms = 500;
    bed_start(&bed, 4);
    struct event *ticker = event_new(bed.base, -1, EV_PERSIST, count_turn, &turn_count);
    (void)event_add(ticker, &often);
    trip_run(&trip, &bed, "POST", "/write", "12345");
    assert_string_equal(class_name(trip.flight.attempt_class), "not_sent");
    assert_int_equal(trip.flight.error, ATTEMPT_ERROR_DNS);
    /* Not how fast, but whether at all: a loop that stood still would have counted one or two. */
    assert_true(turn_count >= 5);
    event_free(ticker);
    bed_stop(&bed); /* the look-up still runs */
    (void)sem_post(&silence);
    usleep(20000);
}

static void test_c25_an_upstream_may_end_before_its_look_up(void **state)
{
    struct bed bed;
    struct trip trip;
    unsigned before = call_count;
    (void)state;
    bed_init(&bed, "silent.test", 80);
    bed_start(&bed, 4);
    trip_init(&trip, &bed, "POST", "/write", "12345", 5);
    trip_send(&trip);
    while (call_count == before)
        usleep(1000);
    upstream_free(bed.upstream);
    (void)sem_post(&silence); /* the answer finds its asker gone */
    usleep(50000);
    resolver_free(bed.resolver);
    event_base_free(bed.base);
    assert_int_equal(trip.done_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literal_addresses_need_no_look_up),
        cmocka_unit_test(test_an_answer_is_kept_and_given_at_once),
        cmocka_unit_test(test_a_missing_name_is_told_in_words_and_kept_for_a_moment),
        cmocka_unit_test(test_what_was_found_holds_until_somebody_who_knows_says_otherwise),
        cmocka_unit_test(test_questions_about_one_name_share_a_look_up),
        cmocka_unit_test(test_c25_a_silent_server_does_not_hold_up_the_end),
        cmocka_unit_test(test_a_flight_waits_for_its_name_and_libcurl_looks_nothing_up),
        cmocka_unit_test(test_a1_c10_row_02_a_missing_name_is_not_sent_and_found_later),
        cmocka_unit_test(test_a_connection_is_used_as_long_as_its_address_is_one_of_the_targets),
        cmocka_unit_test(test_c25_silent_dns_ends_in_time_and_the_loop_runs_on),
        cmocka_unit_test(test_c25_an_upstream_may_end_before_its_look_up),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sem_init(&silence, 0, 0);
    upstream_global_init();
    return cmocka_run_group_tests_name("resolver", tests, NULL, NULL);
}
