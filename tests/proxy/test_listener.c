/*
 * test_listener.c - a listener of which the descriptors run out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "listener.h"
#include "log.h"
#include "settings_url.h"

enum { FREE_FDS_MAX = 64 };

struct bed {
    struct event_base *base;
    struct listener *listener;
    int accepted_fds[4], accepted_count;
    int taken_fds[FREE_FDS_MAX], taken_count;
    struct rlimit limit_before;
};

static void on_accepted(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    struct bed *bed = context;
    assert_true(is_trusted_peer);
    assert_memory_equal(peer, "127.0.0.1:", strlen("127.0.0.1:"));
    bed->accepted_fds[bed->accepted_count++] = fd;
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    struct listen_address address;
    char why[256];
    log_init(LOG_LEVEL_ERROR, LOG_FORMAT_JSON);
    assert_null(listen_address_parse("127.0.0.1:0", &address));
    bed->base = event_base_new();
    bed->listener = listener_new(bed->base, &address, on_accepted, bed, why, sizeof why);
    listen_address_deinit(&address);
    assert_non_null(bed->listener);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &bed->limit_before), 0);
    *state = bed;
    return 0;
}

static void fd_give_back(struct bed *bed)
{
    close(bed->taken_fds[--bed->taken_count]);
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    while (bed->taken_count > 0)
        fd_give_back(bed);
    while (bed->accepted_count > 0)
        close(bed->accepted_fds[--bed->accepted_count]);
    setrlimit(RLIMIT_NOFILE, &bed->limit_before);
    listener_free(bed->listener);
    event_base_free(bed->base);
    free(bed);
    return 0;
}

static int client_new(const struct bed *bed)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const char *port = strrchr(listener_address(bed->listener), ':') + 1;
    to.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Leave no descriptor to the process. */
static void fds_take_all(struct bed *bed)
{
    int highest = open("/dev/null", O_RDONLY | O_CLOEXEC), fd;
    struct rlimit limit = { (rlim_t)highest + 2, bed->limit_before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    bed->taken_fds[bed->taken_count++] = highest;
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        assert_true(bed->taken_count < FREE_FDS_MAX);
        bed->taken_fds[bed->taken_count++] = fd;
    }
    assert_int_equal(errno, EMFILE);
}

static bool is_ended(int client_fd)
{
    char byte;
    ssize_t got = recv(client_fd, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

/* What is ready now; then what the next pause's end brings. */
static void turn(struct bed *bed, bool is_pause_over)
{
    event_base_loop(bed->base, is_pause_over ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
    event_base_loop(bed->base, EVLOOP_NONBLOCK);
}

static void test_H_46_who_waits_is_accepted_when_the_shortage_ends_within_a_rest(void **state)
{
    struct bed *bed = *state;
    int client = client_new(bed);
    fds_take_all(bed);
    turn(bed, false);
    assert_int_equal(bed->accepted_count, 0);
    assert_false(is_ended(client));
    fd_give_back(bed);
    turn(bed, true);
    assert_int_equal(bed->accepted_count, 1);
    assert_false(is_ended(client));
    close(client);
}

static void test_H_46_one_that_waits_is_ended_in_each_rest_of_a_shortage_that_lasts(void **state)
{
    struct bed *bed = *state;
    int first = client_new(bed), second = client_new(bed);
    fds_take_all(bed);
    turn(bed, false);
    turn(bed, true);
    assert_true(is_ended(first));
    assert_false(is_ended(second));
    turn(bed, true);
    assert_true(is_ended(second));
    assert_int_equal(bed->accepted_count, 0);
    close(first);
    close(second);
}

static void test_H_46_each_shortage_begins_with_a_rest(void **state)
{
    struct bed *bed = *state;
    int first = client_new(bed), second = client_new(bed);
    fds_take_all(bed);
    turn(bed, false);
    fd_give_back(bed);
    turn(bed, true); /* takes the descriptor for the first, and has none for the second */
    assert_int_equal(bed->accepted_count, 1);
    assert_false(is_ended(first));
    assert_false(is_ended(second));
    turn(bed, true);
    assert_true(is_ended(second));
    close(first);
    close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_H_46_who_waits_is_accepted_when_the_shortage_ends_within_a_rest,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            test_H_46_one_that_waits_is_ended_in_each_rest_of_a_shortage_that_lasts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_H_46_each_shortage_begins_with_a_rest, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
