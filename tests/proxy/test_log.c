/*
 * test_log.c - lines on real descriptors: levels, forms, several threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "log.h"

enum { THREADS = 4, LINES_EACH = 50, CAUGHT_BYTES_MAX = 1 << 20 };

struct caught {
    int fd, kept, file;
    char bytes[CAUGHT_BYTES_MAX];
};

/* From here on FD is a file. */
static void catch_output(struct caught *caught, int fd)
{
    char path[] = "/tmp/sinkonce-test-XXXXXX";
    caught->fd = fd;
    caught->kept = dup(fd);
    caught->file = mkstemp(path);
    assert_true(caught->kept >= 0 && caught->file >= 0);
    unlink(path);
    assert_int_equal(fcntl(caught->file, F_SETFL, O_APPEND), 0);
    dup2(caught->file, fd);
}

/* FD is what it was; what was written to it stands in BYTES. */
static void let_go(struct caught *caught)
{
    dup2(caught->kept, caught->fd);
    close(caught->kept);
    const ssize_t got = pread(caught->file, caught->bytes, sizeof caught->bytes - 1, 0);
    assert_true(got >= 0);
    caught->bytes[got] = '\0';
    close(caught->file);
}

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static struct caught caught;

static void test_a_level_that_is_off_writes_nothing(void **state)
{
    (void)state;
    catch_output(&caught, STDERR_FILENO);
    log_init(LOG_LEVEL_WARN, LOG_FORMAT_JSON);
    log_event(LOG_LEVEL_INFO, "server.ready", "not this", NULL, 0);
    LOG_EVENT(LOG_LEVEL_WARN, "limit.hit", "but this", log_integer("limit", 3));
    log_level_set(LOG_LEVEL_DEBUG);
    LOG_EVENT(LOG_LEVEL_DEBUG, "loop.stall", "and this", log_text("loop", "1"));
    let_go(&caught);
    assert_int_equal(count_lines(caught.bytes), 2);
    assert_null(strstr(caught.bytes, "not this"));
    assert_non_null(strstr(caught.bytes, "\"event\":\"limit.hit\",\"msg\":\"but this\",\"limit\":3}\n"));
    assert_non_null(strstr(caught.bytes, "\"level\":\"debug\""));
}

static void test_auto_is_json_where_there_is_no_terminal(void **state)
{
    (void)state;
    catch_output(&caught, STDERR_FILENO);
    log_init(LOG_LEVEL_INFO, LOG_FORMAT_AUTO);
    log_event(LOG_LEVEL_INFO, "a.b", "c", NULL, 0);
    log_init(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    log_event(LOG_LEVEL_INFO, "a.b", "c", NULL, 0);
    let_go(&caught);
    assert_int_equal(caught.bytes[0], '{');
    assert_non_null(strstr(caught.bytes, "Z info a.b: c\n"));
}

static void test_a_limited_event_is_written_once(void **state)
{
    (void)state;
    catch_output(&caught, STDERR_FILENO);
    log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    for (int i = 0; i < 100; i++)
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "target.error", "refused", log_integer("i", i));
    let_go(&caught);
    assert_int_equal(count_lines(caught.bytes), 1);
}

static void test_errno_is_left_as_it_was(void **state)
{
    (void)state;
    log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    const int kept = dup(STDERR_FILENO);
    close(STDERR_FILENO); /* nowhere to write: the line is dropped, nothing else happens */
    errno = EMFILE;
    log_event(LOG_LEVEL_ERROR, "a.b", "c", NULL, 0);
    const int errno_after = errno;
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(errno_after, EMFILE);
}

static void *write_lines(void *argument)
{
    char padding[900];
    memset(padding, *(const char *)argument, sizeof padding);
    for (int i = 0; i < LINES_EACH; i++) {
        LOG_EVENT(LOG_LEVEL_INFO, "a.b", "c", log_slice("padding", slice_of(padding, sizeof padding)));
        LOG_EVENT_LIMITED(LOG_LEVEL_INFO, "threads.limited", "d", log_integer("i", i));
    }
    return NULL;
}

static void test_lines_of_several_threads_never_mix(void **state)
{
    static char letters[THREADS] = { 'a', 'b', 'c', 'd' };
    pthread_t threads[THREADS];
    size_t limited_count = 0;
    (void)state;
    catch_output(&caught, STDERR_FILENO);
    log_init(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &letters[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    let_go(&caught);
    char *rest = caught.bytes;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        const char *padding = json_string_value(json_object_get(object, "padding"));
        if (padding == NULL)
            limited_count++;
        else
            assert_int_equal(strspn(padding, (const char[]){ padding[0], '\0' }), 900);
        json_decref(object);
    }
    assert_int_equal(limited_count, 1);
}

static void test_the_access_log_goes_to_stdout_with_a_line_end(void **state)
{
    (void)state;
    fflush(stdout);
    catch_output(&caught, STDOUT_FILENO);
    log_access(slice_of("{\"a\":1}...", 7));
    log_access(slice_of("{\"b\":2}", 7));
    let_go(&caught);
    assert_string_equal(caught.bytes, "{\"a\":1}\n{\"b\":2}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_level_that_is_off_writes_nothing),
        cmocka_unit_test(test_auto_is_json_where_there_is_no_terminal),
        cmocka_unit_test(test_a_limited_event_is_written_once),
        cmocka_unit_test(test_errno_is_left_as_it_was),
        cmocka_unit_test(test_lines_of_several_threads_never_mix),
        cmocka_unit_test(test_the_access_log_goes_to_stdout_with_a_line_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
