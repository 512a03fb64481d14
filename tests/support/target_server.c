/*
 * target_server.c - see target_server.h.
 */
#include "target_server.h"
#include "target_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static void on_accept_cb(evutil_socket_t listening, short what, void *context)
{
    struct target_listener *listener = context;
    int one = 1;

    (void)what;
    for (;;) {
        int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        target_conn_new(listener->server, fd, listener->is_control);
    }
}

static bool listener_bind(struct target_listener *listener)
{
    int one = 1;
    struct sockaddr *address = (struct sockaddr *)&listener->address;

    if (address->sa_family == AF_UNIX)
        unlink(((struct sockaddr_un *)address)->sun_path);
    else
        setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener->fd, address, listener->address_length) != 0 || listen(listener->fd, 4096) != 0)
        return false;
    return address->sa_family == AF_UNIX ||
           getsockname(listener->fd, address, &listener->address_length) == 0;
}

bool target_listener_open(struct target_listener *listener)
{
    if (listener->event != NULL)
        return true;
    listener->fd = socket(listener->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0)
        return false;
    if (listener_bind(listener))
        listener->event =
            event_new(listener->server->base, listener->fd, EV_READ | EV_PERSIST, on_accept_cb, listener);
    if (listener->event == NULL) {
        int why = errno;
        close(listener->fd);
        errno = why;
        return false;
    }
    event_add(listener->event, NULL);
    return true;
}

void target_listener_close(struct target_listener *listener)
{
    if (listener->event == NULL)
        return;
    event_free(listener->event);
    listener->event = NULL;
    close(listener->fd);
}

int target_listener_port(const struct target_listener *listener)
{
    if (listener->address.ss_family != AF_INET)
        return 0;
    return ntohs(((const struct sockaddr_in *)&listener->address)->sin_port);
}

void target_server_held(struct target_server *server, void (*show)(void *context, const char *key),
                        void *context)
{
    struct target_conn *conn = TAILQ_FIRST(&server->conns);

    for (; conn != NULL; conn = target_conn_next(conn))
        if (!target_conn_is_control(conn) && target_conn_held(conn) != NULL)
            show(context, target_conn_held(conn));
}

void target_server_drop(struct target_server *server)
{
    struct target_conn *next = NULL;

    for (struct target_conn *conn = TAILQ_FIRST(&server->conns); conn != NULL; conn = next) {
        next = target_conn_next(conn);
        if (!target_conn_is_control(conn))
            target_conn_drop(conn);
    }
}
