/*
 * doors.c - the listening sockets, and who comes in where.
 */
#include "doors.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exchange_state.h"
#include "health_socket.h"
#include "reply_head.h"
#include "settings_url.h"

enum { ADMIN_CONNECTIONS_MAX = 64 };

/* ---- who comes in ------------------------------------------------------------------------------------------------ */

/* A short 503, best effort, without a loop's help. */
static void answer_crowd(int fd)
{
    const struct finish_row *row = &finish_rows[FINISH_TOO_MANY_CONNECTIONS];
    char words[512], thrown_away[4096];
    int bytes = snprintf(words, sizeof words,
                         "HTTP/1.1 503 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                         "Retry-After: 1\r\nSinkonce-Outcome: busy\r\nConnection: close\r\n\r\n%s",
                         http_reason(503), strlen(row->line), row->line);
    if (send(fd, words, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(fd, SHUT_WR);
    while (recv(fd, thrown_away, sizeof thrown_away, MSG_DONTWAIT) > 0)
        continue; /* unread bytes would turn the close into a reset, and the answer would be lost */
}

/* Over the cap.  With TLS no word could be said before a handshake, which costs more than is left. */
static void turn_away(int fd, bool is_tls)
{
    if (!is_tls)
        answer_crowd(fd);
    close(fd);
    account_refused(FINISH_TOO_MANY_CONNECTIONS);
    LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "limit.hit", finish_rows[FINISH_TOO_MANY_CONNECTIONS].words,
                      log_text("limit", "SINKONCE_MAX_CONNECTIONS"));
}

static void on_connector(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    const struct doors *doors = context;
    if (atomic_load(&doors->program->connections) >= doors->program->settings->connections_max) {
        turn_away(fd, doors->program->credentials->tls[TLS_USE_LISTEN] != NULL);
        return;
    }
    if (!loop_accept(loops_least_loaded(doors->loops), fd, peer, is_trusted_peer))
        LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, "limit.hit", "out of memory: a connection was closed",
                          log_text("limit", "memory"));
}

static void operator_accept(const struct doors *doors, struct conn_service *service, int fd, const char *peer,
                            bool is_trusted_peer)
{
    /* Idle connections must not keep a health probe out: it would have the sidecar restarted. */
    if (service->conn_count >= ADMIN_CONNECTIONS_MAX && !conn_drop_idlest(service)) {
        close(fd);
        return;
    }
    if (!conn_new(doors->base, fd, service, peer, is_trusted_peer))
        LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, "limit.hit", "out of memory: a connection was closed",
                          log_text("limit", "memory"));
}

static void on_operator(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    const struct doors *doors = context;
    operator_accept(doors, admin_service(doors->admin), fd, peer, is_trusted_peer);
}

static void on_health_check(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    const struct doors *doors = context;
    operator_accept(doors, admin_health_service(doors->admin), fd, peer, is_trusted_peer);
}

/* ---- open and closed --------------------------------------------------------------------------------------------- */

/* Only where the admin port wants what a health check may not have.  The folder is locked: what lies there is ours. */
static void health_open(struct doors *doors)
{
    const struct settings *settings = doors->program->settings;
    struct listen_address address;
    char why[256] = "";
    if (settings->admin_client_ca_file[0] == '\0')
        return;
    const char *wrong = health_socket_address(settings->data_dir, &address);
    if (wrong == NULL) {
        doors->health_listener = listener_new(doors->base, &address, on_health_check, doors, why, sizeof why);
        if (doors->health_listener != NULL)
            (void)chmod(address.host, 0600); /* as the ledger's files, whatever the umask */
        listen_address_deinit(&address);
    }
    if (doors->health_listener == NULL)
        LOG_EVENT(LOG_LEVEL_WARN, "config.risky",
                  "there is no socket for sinkonce health: it must show a certificate at the admin port",
                  log_text("detail", wrong != NULL ? wrong : why));
}

bool doors_open_data(struct doors *doors, const struct listen_address *address, char ret_why[],
                     size_t why_bytes_max)
{
    doors->data_listener = listener_new(doors->base, address, on_connector, doors, ret_why, why_bytes_max);
    return doors->data_listener != NULL;
}

void doors_close_data(struct doors *doors)
{
    listener_free(doors->data_listener);
    doors->data_listener = NULL;
}

bool doors_open(struct doors *doors)
{
    const struct settings *settings = doors->program->settings;
    char why[256] = "";
    doors->admin_listener =
        listener_new(doors->base, &settings->admin_listen, on_operator, doors, why, sizeof why);
    if (doors->admin_listener == NULL || !doors_open_data(doors, &settings->listen, why, sizeof why)) {
        LOG_EVENT(LOG_LEVEL_ERROR, "server.stop", "an address cannot be listened on",
                  log_text("detail", why));
        return false;
    }
    health_open(doors);
    return true;
}

void doors_close(struct doors *doors)
{
    doors_close_data(doors);
    listener_free(doors->admin_listener);
    listener_free(doors->health_listener);
    doors->admin_listener = doors->health_listener = NULL;
}
