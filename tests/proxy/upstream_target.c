/*
 * upstream_target.c - see the header.  Anything that goes wrong here is a broken test and aborts.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include "upstream_target.h"

struct connection {
    struct target *target;
    int fd;
    unsigned index;
};

static void *connection_main(void *context)
{
    struct connection connection = *(struct connection *)context;
    struct target *target = connection.target;
    free(context);
    target->script(target, connection.fd, connection.index);
    pthread_mutex_lock(&target->lock);
    close(connection.fd);
    target->fds[connection.index] = -1;
    pthread_mutex_unlock(&target->lock);
    return NULL;
}

static void *acceptor_main(void *context)
{
    struct target *target = context;
    for (;;) {
        int fd = accept4(target->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0 && errno == EINTR)
            continue;
        if (fd < 0)
            return NULL; /* shut down */
        int yes = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct connection *connection = malloc(sizeof *connection);
        assert(connection != NULL);
        pthread_mutex_lock(&target->lock);
        unsigned index = target->connection_count++;
        assert(index < TARGET_CONNECTIONS_MAX);
        *connection = (struct connection){ target, fd, index };
        target->fds[index] = fd;
        int rc = pthread_create(&target->threads[index], NULL, connection_main, connection);
        assert(rc == 0);
        pthread_mutex_unlock(&target->lock);
    }
}

void target_start(struct target *target, target_script *script, void *context)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t address_bytes = sizeof address;
    memset(target, 0, sizeof *target);
    target->script = script;
    target->context = context;
    target->seen = calloc(1, TARGET_SEEN_BYTES_MAX);
    assert(target->seen != NULL);
    pthread_mutex_init(&target->lock, NULL);
    target->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = bind(target->listen_fd, (struct sockaddr *)&address, sizeof address);
    assert(rc == 0);
    rc = listen(target->listen_fd, 512);
    assert(rc == 0);
    rc = getsockname(target->listen_fd, (struct sockaddr *)&address, &address_bytes);
    assert(rc == 0);
    target->port = ntohs(address.sin_port);
    rc = pthread_create(&target->acceptor, NULL, acceptor_main, target);
    assert(rc == 0);
}

void target_stop(struct target *target)
{
    atomic_store(&target->is_ending, true);
    shutdown(target->listen_fd, SHUT_RDWR);
    pthread_join(target->acceptor, NULL);
    close(target->listen_fd);
    pthread_mutex_lock(&target->lock);
    for (unsigned i = 0; i < target->connection_count; i++)
        if (target->fds[i] >= 0)
            shutdown(target->fds[i], SHUT_RDWR);
    pthread_mutex_unlock(&target->lock);
    for (unsigned i = 0; i < target->connection_count; i++)
        pthread_join(target->threads[i], NULL);
    pthread_mutex_destroy(&target->lock);
    free(target->seen);
}

static void note_seen(struct target *target, const char *bytes, size_t byte_count)
{
    pthread_mutex_lock(&target->lock);
    if (target->seen_bytes + byte_count < TARGET_SEEN_BYTES_MAX) {
        memcpy(target->seen + target->seen_bytes, bytes, byte_count);
        target->seen_bytes += byte_count;
    }
    pthread_mutex_unlock(&target->lock);
}

/* Byte by byte: nothing of the next request is taken. */
static bool read_head(struct target *target, int fd, struct target_request *request)
{
    memset(request, 0, sizeof *request);
    while (request->head_bytes < sizeof request->head - 1) {
        if (read(fd, request->head + request->head_bytes, 1) != 1)
            return false;
        request->head_bytes++;
        if (request->head_bytes == 10) {
            request->is_warm = memcmp(request->head, "GET /warm ", 10) == 0;
            if (!request->is_warm)
                atomic_fetch_add(&target->begun_count, 1);
        }
        if (request->head_bytes >= 4 && memcmp(request->head + request->head_bytes - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static size_t announced_bytes(const struct target_request *request)
{
    const char *field = strcasestr(request->head, "\r\ncontent-length:");
    return field == NULL ? 0 : strtoul(field + 17, NULL, 10);
}

static bool read_part(struct target *target, int fd, struct target_request *request, bool is_half)
{
    char bytes[65536];
    if (!read_head(target, fd, request))
        return false;
    if (!request->is_warm)
        note_seen(target, request->head, request->head_bytes);
    size_t wanted = announced_bytes(request) / (is_half ? 2 : 1);
    while (request->body_bytes < wanted) {
        size_t left = wanted - request->body_bytes;
        ssize_t count = read(fd, bytes, left < sizeof bytes ? left : sizeof bytes);
        if (count <= 0)
            return false;
        note_seen(target, bytes, (size_t)count);
        request->body_bytes += (size_t)count;
    }
    if (!request->is_warm && !is_half)
        atomic_fetch_add(&target->whole_count, 1);
    return true;
}

bool target_read(struct target *target, int fd, struct target_request *ret_request)
{
    return read_part(target, fd, ret_request, false);
}

bool target_read_half(struct target *target, int fd, struct target_request *ret_request)
{
    return read_part(target, fd, ret_request, true);
}

void target_write_bytes(int fd, const char *bytes, size_t byte_count)
{
    while (byte_count > 0) {
        ssize_t count = send(fd, bytes, byte_count, MSG_NOSIGNAL);
        if (count <= 0)
            return; /* the peer has gone */
        bytes += count;
        byte_count -= (size_t)count;
    }
}

void target_write(int fd, const char *text)
{
    target_write_bytes(fd, text, strlen(text));
}

void target_reset(struct target *target, unsigned index)
{
    struct linger at_once = { .l_onoff = 1 };
    pthread_mutex_lock(&target->lock);
    setsockopt(target->fds[index], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    pthread_mutex_unlock(&target->lock);
}

void target_stall(struct target *target, int fd)
{
    struct pollfd watch = { .fd = fd, .events = POLLRDHUP };
    while (!atomic_load(&target->is_ending) && poll(&watch, 1, 20) == 0)
        ;
}

bool target_has_seen(struct target *target, const char *text)
{
    pthread_mutex_lock(&target->lock);
    bool is_seen = memmem(target->seen, target->seen_bytes, text, strlen(text)) != NULL;
    pthread_mutex_unlock(&target->lock);
    return is_seen;
}

void target_answer_ok(struct target *target, int fd, unsigned index)
{
    struct target_request request;
    (void)index;
    while (target_read(target, fd, &request))
        target_write(fd, TARGET_OK);
}
