/*
 * cli_socket.c - connect, send, read; every step ends at the deadline.
 */
#include "cli_socket.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char no_time[] = "no answer in time";

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t deadline_in(uint64_t ms)
{
    return now_ms() + ms;
}

/* False: the deadline came first. */
static bool wait_for(int fd, short events, uint64_t deadline)
{
    for (;;) {
        const uint64_t now = now_ms();
        struct pollfd watched = { .fd = fd, .events = events };
        const uint64_t left = now >= deadline ? 0 : deadline - now;
        const int count = poll(&watched, 1, (int)(left < 60000 ? left : 60000));
        if (count > 0)
            return true;
        if ((count < 0 && errno != EINTR) || left == 0)
            return false;
    }
}

static int connect_to(int family, const struct sockaddr *address, socklen_t address_bytes, uint64_t deadline,
                      const char **ret_why)
{
    const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int failure = 0;
    if (fd < 0) {
        *ret_why = strerror(errno);
        return -1;
    }
    if (connect(fd, address, address_bytes) == 0)
        return fd;
    if (errno != EINPROGRESS) {
        *ret_why = strerror(errno);
    } else if (!wait_for(fd, POLLOUT, deadline)) {
        *ret_why = no_time;
    } else {
        socklen_t failure_bytes = sizeof failure;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &failure_bytes) == 0 && failure == 0)
            return fd;
        *ret_why = strerror(failure);
    }
    close(fd);
    return -1;
}

int cli_connect_host(const char *host, uint16_t port, uint64_t deadline, const char **ret_why)
{
    char service[8];
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    int fd = -1;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    const int failure = getaddrinfo(host, service, &wanted, &found);
    if (failure != 0) {
        *ret_why = failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure);
        return -1;
    }
    for (const struct addrinfo *next = found; next != NULL && fd < 0; next = next->ai_next)
        fd = connect_to(next->ai_family, next->ai_addr, next->ai_addrlen, deadline, ret_why);
    freeaddrinfo(found);
    return fd;
}

int cli_connect_unix(const char *path, uint64_t deadline, const char **ret_why)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) {
        *ret_why = strerror(ENAMETOOLONG);
        return -1;
    }
    strcpy(address.sun_path, path);
    return connect_to(AF_UNIX, (const struct sockaddr *)&address, sizeof address, deadline, ret_why);
}

static bool send_whole(int fd, struct slice bytes, uint64_t deadline)
{
    while (bytes.byte_count > 0) {
        const ssize_t sent = send(fd, bytes.at, bytes.byte_count, MSG_NOSIGNAL);
        if (sent > 0)
            bytes = slice_of(bytes.at + sent, bytes.byte_count - (size_t)sent);
        else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLOUT, deadline))
            return false;
    }
    return true;
}

bool cli_ask(int fd, struct slice request, char answer[], size_t *ret_count, uint64_t deadline,
             const char **ret_why)
{
    const size_t room = *ret_count;
    *ret_count = 0;
    *ret_why = "the connection was closed without an answer";
    if (!send_whole(fd, request, deadline))
        return false;
    while (*ret_count < room) {
        if (!wait_for(fd, POLLIN, deadline)) {
            *ret_why = no_time;
            break;
        }
        const ssize_t got = recv(fd, answer + *ret_count, room - *ret_count, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            break;
        if (got > 0)
            *ret_count += (size_t)got;
    }
    return *ret_count > 0;
}
