/*
 * test_cli_token.c - a token from a pipe: in pieces, too long, none, and never the last word.
 */
#include "cli_token.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 60000, SHORT_MS = 20 };

static char folder[] = "/tmp/test_cli_token.XXXXXX";
static char path[64];
static char token[CLI_TOKEN_BYTES_MAX + 1];
static int writer; /* of the pipe at PATH; -1: nobody */

/* Nobody has opened it for writing when it is read. */
static int setup(void **state)
{
    (void)state;
    writer = -1;
    strcpy(folder, "/tmp/test_cli_token.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/pipe", folder);
    return mkfifo(path, 0600);
}

static int teardown(void **state)
{
    (void)state;
    if (writer >= 0)
        close(writer);
    unlink(path);
    return rmdir(folder);
}

/* What BYTES become that another process writes as soon as somebody reads. */
static const char *read_of(const char *bytes, size_t byte_count)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = open(path, O_WRONLY | O_CLOEXEC); /* waits for the reader */
        _exit(fd >= 0 && write(fd, bytes, byte_count) == (ssize_t)byte_count ? 0 : 1);
    }
    const char *why = cli_token_read(path, LONG_MS, token);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return why;
}

static void test_pipes_and_stdin_are_streams_and_files_are_not(void **state)
{
    (void)state;
    assert_true(cli_token_is_stream("-"));
    assert_true(cli_token_is_stream(path));
    assert_false(cli_token_is_stream(folder));
    assert_false(cli_token_is_stream("/dev/zero"));
    assert_false(cli_token_is_stream("/nowhere"));
}

static void test_a_token_is_read_up_to_the_end_of_the_pipe_and_without_its_line_end(void **state)
{
    (void)state;
    assert_null(read_of("s3cret\n", 7));
    assert_string_equal(token, "s3cret");
    assert_null(read_of("old\nnew\n", 8));
    assert_string_equal(token, "old\nnew");
}

static void test_what_is_no_token_is_refused(void **state)
{
    static char bytes[CLI_TOKEN_BYTES_MAX + 2];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    assert_string_equal(read_of("\n", 1), "it is empty");
    assert_string_equal(read_of("s3\0t", 4), "it holds a zero byte");
    assert_string_equal(token, "");
    assert_string_equal(read_of(bytes, CLI_TOKEN_BYTES_MAX + 1), "it holds more than 4096 bytes");
    assert_string_equal(read_of(bytes, CLI_TOKEN_BYTES_MAX + 2), "it holds more than 4096 bytes");
    assert_null(read_of(bytes, CLI_TOKEN_BYTES_MAX));
    bytes[CLI_TOKEN_BYTES_MAX] = '\n';
    assert_null(read_of(bytes, CLI_TOKEN_BYTES_MAX + 1));
    assert_int_equal(strlen(token), CLI_TOKEN_BYTES_MAX);
    assert_string_equal(cli_token_read("/nowhere", LONG_MS, token), "No such file or directory");
}

static void test_a_pipe_without_a_writer_or_without_an_end_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    assert_string_equal(cli_token_read(path, SHORT_MS, token), "it has not come to its end in time");
    writer = open(path, O_RDWR | O_CLOEXEC); /* and never closed */
    assert_int_equal(write(writer, "s3cret\n", 7), 7);
    assert_string_equal(cli_token_read(path, SHORT_MS, token), "it has not come to its end in time");
    assert_string_equal(token, "");
}

static void test_a_terminal_is_not_read(void **state)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    (void)state;
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        skip();
    assert_string_equal(cli_token_read(ptsname(terminal), LONG_MS, token),
                        "it is a terminal, which would show the token");
    close(terminal);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_pipes_and_stdin_are_streams_and_files_are_not),
        TEST(test_a_token_is_read_up_to_the_end_of_the_pipe_and_without_its_line_end),
        TEST(test_what_is_no_token_is_refused),
        TEST(test_a_pipe_without_a_writer_or_without_an_end_is_not_waited_for_for_ever),
        TEST(test_a_terminal_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
