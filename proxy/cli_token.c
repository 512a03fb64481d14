/*
 * cli_token.c - reads until the end, but neither for ever nor without end.
 */
#include "cli_token.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "clock.h"

enum { ROOM_BYTES = CLI_TOKEN_BYTES_MAX + 2 /* a line end, and one more to see that it is too long */ };

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool cli_token_is_stream(const char *path)
{
    struct stat file;
    return is_stdin(path) || (stat(path, &file) == 0 && S_ISFIFO(file.st_mode));
}

/* A pipe that nobody has opened for writing yet reads as ended, and is waited for all the same: poll() knows better. */
static const char *bytes_read(int fd, uint64_t wait_ms, char bytes[ROOM_BYTES], size_t *ret_count)
{
    const uint64_t until_ns = clock_monotonic_ns() + wait_ms * NS_PER_MS;
    for (*ret_count = 0; *ret_count < ROOM_BYTES;) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        uint64_t now_ns = clock_monotonic_ns();
        int wait = now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0;
        int count = poll(&ready, 1, wait);
        if (count == 0)
            return "it has not come to its end in time";
        ssize_t got = count < 0 ? -1 : read(fd, bytes + *ret_count, ROOM_BYTES - *ret_count);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return strerror(errno);
        if (got == 0)
            break;
        *ret_count += got > 0 ? (size_t)got : 0;
    }
    return NULL;
}

static const char *token_of(char bytes[ROOM_BYTES], size_t count, char token[CLI_TOKEN_BYTES_MAX + 1])
{
    if (count > 0 && bytes[count - 1] == '\n')
        count--;
    if (count == 0)
        return "it is empty";
    if (count > CLI_TOKEN_BYTES_MAX)
        return "it holds more than 4096 bytes";
    if (memchr(bytes, '\0', count) != NULL)
        return "it holds a zero byte";
    memcpy(token, bytes, count);
    token[count] = '\0';
    return NULL;
}

const char *cli_token_read(const char *path, uint64_t wait_ms, char token[CLI_TOKEN_BYTES_MAX + 1])
{
    char bytes[ROOM_BYTES];
    size_t count;
    token[0] = '\0';
    int fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return strerror(errno);
    const char *why =
        isatty(fd) ? "it is a terminal, which would show the token" : bytes_read(fd, wait_ms, bytes, &count);
    if (why == NULL)
        why = token_of(bytes, count, token);
    if (fd != STDIN_FILENO)
        close(fd);
    explicit_bzero(bytes, sizeof bytes);
    return why;
}
