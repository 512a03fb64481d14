/*
 * listener.c - accept loops that survive a shortage of descriptors.
 */
#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

enum { BACKLOG = 1024, ACCEPTS_PER_TURN = 64, PAUSE_MS = 100 };

struct listener {
    struct event *readable, *pause; /* owned */
    listener_accepted_fn *accepted;
    void *context; /* borrowed */
    int fd;
    int spare_fd;        /* given up to accept and close one connection when descriptors run out */
    bool is_short;       /* no descriptor was left for the last connection that asked for one */
    char unix_path[108]; /* "": none; unlinked at the end */
    char address[128];
};

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_UNIX)
        return true;
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    struct sockaddr_in6 in6;
    memcpy(&in6, address, sizeof in6);
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
        return in6.sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static void address_text(const struct sockaddr *address, socklen_t bytes, char text[], size_t text_bytes)
{
    char host[64], port[16];
    if (address->sa_family == AF_UNIX)
        snprintf(text, text_bytes, "unix");
    else if (getnameinfo(address, bytes, host, sizeof host, port, sizeof port,
                         NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(text, text_bytes, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
    else
        snprintf(text, text_bytes, "unknown");
}

static void hand_over(struct listener *listener, int fd, const struct sockaddr *address, socklen_t bytes)
{
    char peer[64];
    const int on = 1;
    address_text(address, bytes, peer, sizeof peer);
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    listener->accepted(listener->context, fd, peer, is_loopback(address));
}

/* End the connection that waits longest, on the spare descriptor: its client learns at once what no wait would tell. */
static void shed_one(struct listener *listener)
{
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor is left: rest a little, or the loop would spin on a socket that stays readable.  Who waits is sent away
 * only when the rest before has freed nothing: a burst of connections that are gone again costs nobody else his own. */
static void descriptors_short(struct listener *listener)
{
    const struct timeval rest = { 0, PAUSE_MS * 1000 };
    LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, "limit.hit",
                      "no file descriptor is left for a connection; raise the limit",
                      log_text("limit", "descriptors"));
    if (listener->is_short)
        shed_one(listener);
    listener->is_short = true;
    /* Never deaf: without memory for the timer it goes on without a rest. */
    if (event_add(listener->pause, &rest) == 0)
        event_del(listener->readable);
}

/* True: one was accepted, there may be more. */
static bool accept_one(struct listener *listener)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    memset(&address, 0, sizeof address);
    int fd = accept4(listener->fd, (struct sockaddr *)&address, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        listener->is_short = false;
        hand_over(listener, fd, (struct sockaddr *)&address, bytes);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        descriptors_short(listener);
    return errno == ECONNABORTED || errno == EINTR;
}

static void readable_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(context); i++)
        continue;
}

static void pause_cb(evutil_socket_t fd, short what, void *context)
{
    const struct timeval rest = { 0, PAUSE_MS * 1000 };
    struct listener *listener = context;
    (void)fd;
    (void)what;
    if (event_add(listener->readable, NULL) != 0)
        event_add(listener->pause, &rest); /* takes no memory: its place in the loop's heap is free again */
}

/* False: somebody listens at ADDRESS, and errno says so.  What a kill left behind is taken away. */
static bool path_make_free(const struct sockaddr_un *address)
{
    struct stat old;
    if (lstat(address->sun_path, &old) != 0 || !S_ISSOCK(old.st_mode))
        return true;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool is_deaf =
        connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
    close(fd);
    if (is_deaf)
        unlink(address->sun_path);
    errno = EADDRINUSE;
    return is_deaf;
}

static int socket_unix(const char *path, struct listener *listener)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (!path_make_free(&address))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    snprintf(listener->unix_path, sizeof listener->unix_path, "%s", path);
    return fd;
}

static int socket_bound(const struct addrinfo *info)
{
    const int on = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static int socket_tcp(const struct listen_address *address)
{
    char port[16];
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    if (getaddrinfo(address->host, port, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *info = found; info != NULL && fd < 0; info = info->ai_next)
        fd = socket_bound(info);
    int why = errno;
    freeaddrinfo(found);
    errno = why;
    return fd;
}

static void bound_address(struct listener *listener, const struct listen_address *address)
{
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof bound;
    if (address->is_unix || getsockname(listener->fd, (struct sockaddr *)&bound, &bytes) != 0)
        snprintf(listener->address, sizeof listener->address, "%.120s", address->text);
    else
        address_text((struct sockaddr *)&bound, bytes, listener->address, sizeof listener->address);
}

static bool listener_open(struct listener *listener, struct event_base *base,
                          const struct listen_address *address)
{
    listener->fd = address->is_unix ? socket_unix(address->host, listener) : socket_tcp(address);
    if (listener->fd < 0 || listen(listener->fd, BACKLOG) != 0)
        return false;
    bound_address(listener, address);
    listener->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    listener->readable = event_new(base, listener->fd, EV_READ | EV_PERSIST, readable_cb, listener);
    listener->pause = evtimer_new(base, pause_cb, listener);
    errno = ENOMEM;
    return listener->readable != NULL && listener->pause != NULL && event_add(listener->readable, NULL) == 0;
}

static void listener_close(struct listener *listener)
{
    if (listener->readable != NULL)
        event_free(listener->readable);
    if (listener->pause != NULL)
        event_free(listener->pause);
    if (listener->fd >= 0)
        close(listener->fd);
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
    if (listener->unix_path[0] != '\0')
        unlink(listener->unix_path);
    free(listener);
}

struct listener *listener_new(struct event_base *base, const struct listen_address *address,
                              listener_accepted_fn *accepted, void *context, char ret_why[],
                              size_t why_bytes_max)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        snprintf(ret_why, why_bytes_max, "out of memory");
        return NULL;
    }
    listener->fd = listener->spare_fd = -1;
    listener->accepted = accepted;
    listener->context = context;
    if (!listener_open(listener, base, address)) {
        snprintf(ret_why, why_bytes_max, "%s: %s", address->text, strerror(errno));
        listener_close(listener);
        return NULL;
    }
    return listener;
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}

void listener_free(struct listener *listener)
{
    if (listener == NULL)
        return;
    for (int i = 0; i < BACKLOG && accept_one(listener); i++)
        continue;
    listener_close(listener);
}
