/*
 * cli_socket.c - connect until a deadline.
 */
#include "cli_socket.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
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
        *ret_why = "no answer in time";
    } else {
        socklen_t failure_bytes = sizeof failure;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &failure_bytes) == 0 && failure == 0)
            return fd;
        *ret_why = strerror(failure);
    }
    close(fd);
    return -1;
}

int cli_connect_host(const char *host, uint16_t port, uint64_t timeout_ms, const char **ret_why)
{
    const uint64_t deadline = now_ms() + timeout_ms;
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
