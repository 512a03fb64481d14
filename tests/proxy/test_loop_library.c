/*
 * test_loop_library.c - libevent warns and gives up, each in a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "log.h"
#include "loop_library.h"

enum { SAID_BYTES_MAX = 4096 };

/* What WORK says on stderr, and how its process ends. */
static int told_by(void (*work)(void), char said[SAID_BYTES_MAX])
{
    int ends[2], status;
    size_t byte_count = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
        loop_library_init();
        work();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], said + byte_count, SAID_BYTES_MAX - 1 - byte_count)) > 0)
        byte_count += (size_t)got;
    close(ends[0]);
    said[byte_count] = '\0';
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* The first line of *SAID, which goes on behind it, is of LEVEL and holds DETAIL. */
static void expect_line(const char **said, const char *level, const char *detail)
{
    const char *end = strchr(*said, '\n');
    assert_non_null(end);
    json_t *line = json_loadb(*said, (size_t)(end - *said), 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "event")), "loop.library");
    assert_string_equal(json_string_value(json_object_get(line, "level")), level);
    if (detail != NULL)
        assert_non_null(strstr(json_string_value(json_object_get(line, "detail")), detail));
    json_decref(line);
    *said = end + 1;
}

static void inside(evutil_socket_t fd, short what, void *base)
{
    (void)fd;
    (void)what;
    event_base_loop(base, EVLOOP_NONBLOCK); /* which it is already in */
}

static void warn(void)
{
    struct event_base *base = event_base_new();
    event_base_once(base, -1, EV_TIMEOUT, inside, base, NULL);
    event_base_dispatch(base);
    event_base_free(base);
}

static void give_up(void)
{
    struct event never_set_up;
    event_enable_debug_mode();
    memset(&never_set_up, 0, sizeof never_set_up);
    never_set_up.ev_base = event_base_new();
    event_add(&never_set_up, NULL);
}

static void test_a_warning_of_the_library_is_a_line_of_our_log(void **state)
{
    char bytes[SAID_BYTES_MAX];
    const char *said = bytes;
    (void)state;
    const int status = told_by(warn, bytes);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_line(&said, "warn", "reentrant");
    assert_string_equal(said, "");
}

static void test_H_47_a_fatal_error_of_the_library_is_logged_and_ends_the_process(void **state)
{
    char bytes[SAID_BYTES_MAX];
    const char *said = bytes;
    (void)state;
    const int status = told_by(give_up, bytes);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    expect_line(&said, "error", "non-initialized event");
    expect_line(&said, "error", NULL);
    assert_string_equal(said, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_warning_of_the_library_is_a_line_of_our_log),
        cmocka_unit_test(test_H_47_a_fatal_error_of_the_library_is_logged_and_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
