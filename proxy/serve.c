/*
 * serve.c - starts everything in order, turns signals into a drain, stops in the opposite order.
 *
 *   ledger (every intent is in doubt before anybody can connect) -> loops -> admin port -> connectors' port -> ready
 *   SIGTERM -> not ready -> delay -> stop accepting -> what is in flight ends, or time is up -> exit 0
 *
 * Nothing is written only at shutdown: a kill is an ordinary way to stop.
 */
#include "serve.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "acks.h"
#include "admin.h"
#include "clock.h"
#include "exchange_state.h"
#include "health_socket.h"
#include "listener.h"
#include "loop_library.h"
#include "metrics.h"
#include "prober.h"
#include "reload.h"
#include "reply_head.h"
#include "settings_url.h"

enum {
    LOOPS_MAX = 64,
    TICK_MS = 20,
    LAST_WORDS_MS =
        500, /* for replies that are written, but not taken yet, when nothing is in flight any more */
    ADMIN_CONNECTIONS_MAX = 64,
    LOCK_WAIT_MS = 3000, /* who holds the ledger's folder may only be looking: sinkonce check */
};

enum life { LIFE_RUNNING, LIFE_DELAY, LIFE_DRAINING, LIFE_OVER };

struct server {
    const struct settings *settings; /* borrowed */
    char *const *environment;        /* borrowed */
    struct event_base *base;         /* owned, as all below */
    struct store *store;
    struct store_port *port;
    struct identifier *identifier;
    struct resolver *resolver;
    struct acks *acks;
    struct prober *prober; /* NULL: another policy */
    struct loop *loops[LOOPS_MAX];
    size_t loop_count;
    struct admin *admin;
    struct listener *data_listener, *admin_listener, *health_listener; /* health: NULL: none */
    struct event *signals[3], *hangup, *tick, *port_ready;
    struct program program;
    struct program_state state;
    struct program_controls controls;
    struct listen_address
        drained_listen; /* owned: where to listen again; text NULL: not drained by an operator */
    enum life life;
    uint64_t life_until_ns;  /* of DELAY and DRAINING */
    uint64_t quiet_since_ns; /* nothing in flight since; 0: something is */
    uint64_t refusals_told;  /* by the ledger: as many have ended, and it was logged */
    uint64_t resumed_ns;     /* not before then is the next end logged */
    uint64_t ends_told_ns;   /* when it was last told which certificates end soon */
};

/* ---- connections --------------------------------------------------------------------------------------------- */

/* A short 503, best effort, without a loop's help. */
static void answer_crowd(int fd)
{
    const struct finish_row *row = &finish_rows[FINISH_TOO_MANY_CONNECTIONS];
    char body[160], words[512], thrown_away[4096];
    int body_bytes =
        snprintf(body, sizeof body, "{\"error\":\"%s\",\"detail\":\"%s\"}\n", row->label, row->words);
    int bytes = snprintf(words, sizeof words,
                         "HTTP/1.1 503 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                         "Retry-After: 1\r\nSinkonce-Outcome: busy\r\nConnection: close\r\n\r\n%s",
                         http_reason(503), body_bytes, body);
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

static struct loop *least_loaded(const struct server *server)
{
    struct loop *best = server->loops[0];
    for (size_t i = 1; i < server->loop_count; i++) {
        if (atomic_load(&server->loops[i]->connections) < atomic_load(&best->connections))
            best = server->loops[i];
    }
    return best;
}

static void on_connector(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    struct server *server = context;
    if (atomic_load(&server->program.connections) >= server->settings->connections_max) {
        turn_away(fd, server->program.credentials->tls[TLS_USE_LISTEN] != NULL);
        return;
    }
    if (!loop_accept(least_loaded(server), fd, peer, is_trusted_peer))
        LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, "limit.hit", "out of memory: a connection was closed",
                          log_text("limit", "memory"));
}

static void operator_accept(struct server *server, struct conn_service *service, int fd, const char *peer,
                            bool is_trusted_peer)
{
    /* Idle connections must not keep a health probe out: it would have the sidecar restarted. */
    if (service->conn_count >= ADMIN_CONNECTIONS_MAX && !conn_drop_idlest(service)) {
        close(fd);
        return;
    }
    if (!conn_new(server->base, fd, service, peer, is_trusted_peer))
        LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, "limit.hit", "out of memory: a connection was closed",
                          log_text("limit", "memory"));
}

static void on_operator(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    struct server *server = context;
    operator_accept(server, admin_service(server->admin), fd, peer, is_trusted_peer);
}

static void on_health_check(void *context, int fd, const char *peer, bool is_trusted_peer)
{
    struct server *server = context;
    operator_accept(server, admin_health_service(server->admin), fd, peer, is_trusted_peer);
}

/* ---- life ---------------------------------------------------------------------------------------------------- */

static void drain_begin(struct server *server)
{
    server->life = LIFE_DRAINING;
    server->life_until_ns = clock_monotonic_ns() + server->settings->drain_timeout_ms * NS_PER_MS;
    listener_free(server->data_listener);
    server->data_listener = NULL;
    for (size_t i = 0; i < server->loop_count; i++)
        loop_drain(server->loops[i]);
}

static void stop_requested(struct server *server)
{
    if (server->life != LIFE_RUNNING) {
        LOG_EVENT(LOG_LEVEL_WARN, "server.stop", "stopped at once by a second signal",
                  log_integer("code", EX_OK));
        _exit(EX_OK);
    }
    LOG_EVENT(LOG_LEVEL_INFO, "drain.start", "stopping: what is in flight may end",
              log_integer("in_flight", (int64_t)atomic_load(&server->program.in_flight)));
    server->state.is_draining = true;
    server->state.is_ready = false;
    server->life = LIFE_DELAY;
    server->life_until_ns = clock_monotonic_ns() + server->settings->drain_delay_ms * NS_PER_MS;
    if (server->settings->drain_delay_ms == 0)
        drain_begin(server);
}

/* ---- what an operator changes ---------------------------------------------------------------------------------- */

static void mode_set(void *context, enum mode mode)
{
    struct server *server = context;
    server->state.mode = mode;
    atomic_store(&server->program.mode, (int)mode);
}

/* Where the port was any free one, the one that connectors know is kept. */
static bool drain_by_operator(struct server *server, char ret_why[], size_t why_bytes_max)
{
    const char *wrong =
        server->drained_listen.text != NULL
            ? NULL
            : listen_address_parse(listener_address(server->data_listener), &server->drained_listen);
    if (wrong != NULL) {
        listen_address_deinit(&server->drained_listen);
        server->drained_listen = (struct listen_address){ .text = NULL };
        snprintf(ret_why, why_bytes_max, "the address %s", wrong);
        return false;
    }
    listener_free(server->data_listener);
    server->data_listener = NULL;
    server->state.is_draining = true;
    server->state.is_ready = false;
    for (size_t i = 0; i < server->loop_count; i++)
        loop_drain(server->loops[i]);
    return true;
}

static bool resume_by_operator(struct server *server, char ret_why[], size_t why_bytes_max)
{
    if (server->drained_listen.text == NULL)
        return true;
    if (server->data_listener == NULL)
        server->data_listener =
            listener_new(server->base, &server->drained_listen, on_connector, server, ret_why, why_bytes_max);
    if (server->data_listener == NULL)
        return false;
    for (size_t i = 0; i < server->loop_count; i++) {
        if (!loop_resume(server->loops[i])) {
            snprintf(ret_why, why_bytes_max, "out of memory: some connections still drain");
            return false;
        }
    }
    listen_address_deinit(&server->drained_listen);
    server->drained_listen = (struct listen_address){ .text = NULL };
    server->state.is_draining = false;
    server->state.is_ready = true;
    return true;
}

static bool drain_set(void *context, bool is_draining, char ret_why[], size_t why_bytes_max)
{
    struct server *server = context;
    if (server->life != LIFE_RUNNING) {
        snprintf(ret_why, why_bytes_max, "the program is stopping");
        return false;
    }
    if (is_draining && server->drained_listen.text != NULL)
        return true;
    return is_draining ? drain_by_operator(server, ret_why, why_bytes_max)
                       : resume_by_operator(server, ret_why, why_bytes_max);
}

static void hangup_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)what;
    const struct reload_parts parts = { .environment = server->environment,
                                        .program = &server->program,
                                        .state = &server->state,
                                        .loops = server->loops,
                                        .loop_count = server->loop_count,
                                        .admin = server->admin,
                                        .prober = server->prober };
    if (server->life == LIFE_RUNNING)
        reload(&parts);
}

/* Called once for each signal that came since the last turn.  All SIGHUPs of a turn are one: were each obeyed, more would
 * come meanwhile than are obeyed, and nothing else would ever get its turn. */
static void signal_cb(evutil_socket_t number, short what, void *context)
{
    struct server *server = context;
    (void)what;
    if (number == SIGHUP)
        event_active(server->hangup, EV_TIMEOUT, 0);
    else
        stop_requested(server);
}

static bool is_quiet(struct server *server, uint64_t now_ns)
{
    if (atomic_load(&server->program.in_flight) > 0) {
        server->quiet_since_ns = 0;
        return false;
    }
    if (server->quiet_since_ns == 0)
        server->quiet_since_ns = now_ns;
    return atomic_load(&server->program.connections) == 0 ||
           now_ns - server->quiet_since_ns > (uint64_t)LAST_WORDS_MS * NS_PER_MS;
}

static void drain_check(struct server *server, uint64_t now_ns)
{
    if (is_quiet(server, now_ns)) {
        server->life = LIFE_OVER;
        event_base_loopbreak(server->base);
    } else if (now_ns >= server->life_until_ns) {
        LOG_EVENT(LOG_LEVEL_WARN, "drain.timeout",
                  "time is up: what is in flight will be in doubt at the next start",
                  log_integer("in_flight", (int64_t)atomic_load(&server->program.in_flight)));
        _exit(EX_OK);
    }
}

/* Once a day: who only looks at logs should hear of it in time.  At the start the settings' own check has told. */
static void ends_tell(struct server *server, uint64_t now_ns)
{
    const uint64_t day_ns = (uint64_t)24 * 3600 * MS_PER_S * NS_PER_MS;
    if (server->ends_told_ns == 0)
        server->ends_told_ns = now_ns;
    if (now_ns - server->ends_told_ns < day_ns)
        return;
    server->ends_told_ns = now_ns;
    reload_log_ends(server->program.credentials);
}

/* Who read that the ledger fails should also read that it does no more.  One that comes and goes is told of now and
 * then, but its last end always. */
static void ledger_tell(struct server *server, uint64_t now_ns)
{
    const uint64_t pause_ns = (uint64_t)10 * MS_PER_S * NS_PER_MS;
    struct store_figures figures;
    store_figures_get(server->store, &figures);
    if (figures.refusal_count == server->refusals_told || figures.is_full || figures.is_failing ||
        now_ns < server->resumed_ns)
        return;
    LOG_EVENT(LOG_LEVEL_INFO, "ledger.resumed", "the ledger takes new writes again",
              log_integer("refused_ms", (int64_t)figures.refusal_ms),
              log_integer("times", (int64_t)(figures.refusal_count - server->refusals_told)),
              log_text("detail", figures.failure));
    server->refusals_told = figures.refusal_count;
    server->resumed_ns = now_ns + pause_ns;
}

static void tick_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    uint64_t now_ns = clock_monotonic_ns();
    (void)fd;
    (void)what;
    conn_sweep(admin_service(server->admin), now_ns);
    conn_sweep(admin_health_service(server->admin), now_ns);
    admin_tick(server->admin, now_ns);
    ledger_tell(server, now_ns);
    ends_tell(server, now_ns);
    if (server->life == LIFE_DELAY && now_ns >= server->life_until_ns)
        drain_begin(server);
    if (server->life == LIFE_DRAINING)
        drain_check(server, now_ns);
}

static void port_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)what;
    store_port_deliver(server->port);
}

/* ---- start --------------------------------------------------------------------------------------------------- */

/* The last part of the path, durably; its parent must be there.  What goes wrong the ledger will say better. */
static void folder_make(const char *folder)
{
    char path[PATH_MAX];
    if (mkdir(folder, 0700) != 0)
        return;
    snprintf(path, sizeof path, "%s", folder);
    int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* What the prober resolves, the ledger only holds. */
static enum doubt_policy policy_of(enum doubt_setting setting)
{
    return setting == IN_DOUBT_PROBE ? POLICY_HOLD : (enum doubt_policy)setting;
}

static int ledger_open(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct store_options options = {
        .folder = settings->data_dir,
        .scope = settings->scope,
        .ledger_bytes_max = settings->ledger_bytes_max,
        .is_missing_refused = settings->is_ledger_missing_refused,
        .policy = policy_of(settings->in_doubt),
        .in_doubt_max = settings->in_doubt_max,
        .partitions_max = settings->partitions_max,
        .marks = (uint32_t)settings->marks,
        .is_identity_checked = settings->identity != IDENTITY_OFF,
        .window = settings->window,
        .is_first_sight_held = settings->is_first_sight_held,
        .replies = (uint32_t)settings->replies,
        .reply_bytes_max = (uint32_t)settings->reply_bytes,
        .commit_delay_us = (uint32_t)settings->commit_delay_ms * 1000,
        .lock_wait_ms = LOCK_WAIT_MS,
    };
    char why[512] = "";
    if (!settings->is_ledger_missing_refused)
        folder_make(settings->data_dir);
    enum store_open_status status = store_open(&options, &server->store, why, sizeof why);
    if (status == STORE_OPENED)
        return EX_OK;
    LOG_EVENT(LOG_LEVEL_ERROR, status == STORE_LOCKED ? "ledger.locked" : "ledger.error", why,
              log_text("folder", settings->data_dir));
    return status == STORE_LOCKED ? EX_TEMPFAIL : EX_IOERR;
}

static void ledger_log(const struct server *server)
{
    struct store_figures figures;
    store_figures_get(server->store, &figures);
    LOG_EVENT(LOG_LEVEL_INFO, figures.boot_count <= 1 ? "ledger.created" : "ledger.open",
              figures.boot_count <= 1 ? "a new ledger: every record is unknown to it" : "the ledger is open",
              log_text("id", store_id(server->store)), log_integer("boot", (int64_t)figures.boot_count),
              log_integer("in_doubt", (int64_t)figures.in_doubt_records),
              log_integer("used_bytes", (int64_t)figures.used_bytes));
    if (figures.in_doubt_records > 0)
        LOG_EVENT(LOG_LEVEL_WARN, "ledger.recovered",
                  "records are in doubt; see GET /in-doubt of the admin port",
                  log_integer("in_doubt", (int64_t)figures.in_doubt_records));
}

static bool loops_start(struct server *server)
{
    size_t wanted = (size_t)server->settings->workers;
    uint64_t connections = server->settings->target_connections;
    for (size_t i = 0; i < wanted && i < LOOPS_MAX; i++) {
        unsigned part = (unsigned)((connections + wanted - 1) / wanted);
        server->loops[i] = loop_new(&server->program, (unsigned)i, part);
        if (server->loops[i] == NULL)
            return false;
        server->loop_count++;
    }
    return true;
}

static bool events_start(struct server *server)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
    const struct timeval tick = { 0, TICK_MS * 1000 };
    server->hangup = event_new(server->base, -1, 0, hangup_cb, server);
    if (server->hangup == NULL)
        return false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        server->signals[i] = evsignal_new(server->base, numbers[i], signal_cb, server);
        if (server->signals[i] == NULL || event_add(server->signals[i], NULL) != 0)
            return false;
    }
    server->tick = event_new(server->base, -1, EV_PERSIST, tick_cb, server);
    server->port_ready =
        event_new(server->base, store_port_fd(server->port), EV_READ | EV_PERSIST, port_cb, server);
    return server->tick != NULL && server->port_ready != NULL && event_add(server->tick, &tick) == 0 &&
           event_add(server->port_ready, NULL) == 0;
}

static struct acks *acks_start(const struct settings *settings)
{
    enum { OPEN_MAX = 10000 };
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return NULL;
    return acks_new(OPEN_MAX, settings->ack_timeout_ms * NS_PER_MS, random);
}

static bool admin_start(struct server *server)
{
    server->controls =
        (struct program_controls){ .context = server, .mode_set = mode_set, .drain_set = drain_set };
    const struct admin_parts parts = { .settings = server->settings,
                                       .store = server->store,
                                       .port = server->port,
                                       .state = &server->state,
                                       .controls = &server->controls };
    server->admin = admin_new(&parts);
    if (server->admin != NULL)
        admin_credentials_set(server->admin, server->program.credentials);
    return server->admin != NULL;
}

static bool prober_start(struct server *server)
{
    if (server->settings->in_doubt != IN_DOUBT_PROBE)
        return true;
    server->prober = prober_new(server->base, server->settings, server->program.credentials, server->store,
                                server->port, server->resolver);
    return server->prober != NULL;
}

static bool parts_start(struct server *server)
{
    server->base = event_base_new();
    server->port = store_port_new(server->store);
    server->identifier = identifier_new(server->settings);
    server->resolver = resolver_new();
    server->acks = acks_start(server->settings);
    if (server->base == NULL || server->port == NULL || server->identifier == NULL ||
        server->resolver == NULL || server->acks == NULL)
        return false;
    server->program.settings = server->settings;
    server->program.identifier = server->identifier;
    server->program.store = server->store;
    server->program.resolver = server->resolver;
    server->program.acks = server->acks;
    server->program.bodies.bytes_max = (size_t)server->settings->all_body_bytes_max;
    snprintf(server->program.via, sizeof server->program.via, "1.1 sinkonce-%.8s", store_id(server->store));
    atomic_store(&server->program.mode, (int)server->settings->mode);
    server->state.mode = server->settings->mode;
    return admin_start(server) && prober_start(server) && loops_start(server) && events_start(server);
}

/* Only where the admin port wants what a health check may not have.  The folder is locked: what lies there is ours. */
static void health_start(struct server *server)
{
    struct listen_address address;
    char why[256] = "";
    if (server->settings->admin_client_ca_file[0] == '\0')
        return;
    const char *wrong = health_socket_address(server->settings->data_dir, &address);
    if (wrong == NULL) {
        server->health_listener =
            listener_new(server->base, &address, on_health_check, server, why, sizeof why);
        if (server->health_listener != NULL)
            (void)chmod(address.host, 0600); /* as the ledger's files, whatever the umask */
        listen_address_deinit(&address);
    }
    if (server->health_listener == NULL)
        LOG_EVENT(LOG_LEVEL_WARN, "config.risky",
                  "there is no socket for sinkonce health: it must show a certificate at the admin port",
                  log_text("detail", wrong != NULL ? wrong : why));
}

static bool listen_start(struct server *server)
{
    const struct settings *settings = server->settings;
    char why[256] = "";
    server->admin_listener =
        listener_new(server->base, &settings->admin_listen, on_operator, server, why, sizeof why);
    if (server->admin_listener != NULL)
        server->data_listener =
            listener_new(server->base, &settings->listen, on_connector, server, why, sizeof why);
    if (server->data_listener != NULL)
        return true;
    LOG_EVENT(LOG_LEVEL_ERROR, "server.stop", "an address cannot be listened on", log_text("detail", why));
    return false;
}

/* ---- stop ---------------------------------------------------------------------------------------------------- */

/* Questions that are lent to the ledger come back before their owner goes. */
static void questions_finish(struct server *server)
{
    struct pollfd port = { .events = POLLIN };
    if (server->admin == NULL)
        return;
    port.fd = store_port_fd(server->port);
    conn_free_all(admin_service(server->admin));
    conn_free_all(admin_health_service(server->admin));
    prober_stop(server->prober);
    while (admin_open_count(server->admin) + prober_open_count(server->prober) > 0) {
        if (poll(&port, 1, -1) > 0)
            store_port_deliver(server->port);
    }
}

static void server_stop(struct server *server)
{
    listener_free(server->data_listener);
    listener_free(server->admin_listener);
    listener_free(server->health_listener);
    for (size_t i = 0; i < server->loop_count; i++)
        loop_free(server->loops[i]);
    questions_finish(server);
    admin_free(server->admin);
    prober_free(server->prober);
    listen_address_deinit(&server->drained_listen);
    for (size_t i = 0; i < sizeof server->signals / sizeof server->signals[0]; i++) {
        if (server->signals[i] != NULL)
            event_free(server->signals[i]);
    }
    if (server->hangup != NULL)
        event_free(server->hangup);
    if (server->tick != NULL)
        event_free(server->tick);
    if (server->port_ready != NULL)
        event_free(server->port_ready);
    store_port_free(server->port);
    acks_free(server->acks);
    identifier_free(server->identifier);
    if (server->resolver != NULL)
        resolver_free(server->resolver);
    if (server->base != NULL)
        event_base_free(server->base);
    store_close(server->store);
    credentials_release(server->program.credentials);
}

/* Connections, target and files together may need more than the usual soft limit of 1,024. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            LOG_EVENT(LOG_LEVEL_WARN, "limit.hit", "the limit of file descriptors cannot be raised",
                      log_integer("soft", (int64_t)limit.rlim_cur));
    }
}

/* Before there is an event for it, SIGHUP would end the program: who renews certificates may send it at any time.  It
 * waits, and is obeyed once all is there; the threads that are started meanwhile leave it to this one. */
static void hangup_hold(bool is_held)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

/* Nothing is lost: who is asked to end before the listeners are there has promised nothing. */
static void on_early_end(int number)
{
    (void)number;
    _exit(EX_OK);
}

/* Before there are events for them, process 1 of a container would never hear of SIGTERM and SIGINT
 * (pid_namespaces(7)), and a start may wait: for the ledger's folder, or for a slow disk. */
static void early_end_allow(void)
{
    const struct sigaction end = { .sa_handler = on_early_end };
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGINT, &end, NULL);
}

static int server_run(struct server *server)
{
    if (!parts_start(server)) {
        LOG_EVENT(LOG_LEVEL_ERROR, "server.stop", "out of memory, threads or descriptors at start",
                  log_integer("code", EX_OSERR));
        return EX_OSERR;
    }
    if (!listen_start(server))
        return EX_UNAVAILABLE;
    health_start(server);
    server->state.is_started = true;
    server->state.is_ready = true;
    hangup_hold(false);
    LOG_EVENT(LOG_LEVEL_INFO, "server.ready", "ready for connectors",
              log_text("listen", listener_address(server->data_listener)),
              log_text("admin", listener_address(server->admin_listener)),
              log_text("target", server->settings->target.text),
              log_integer("workers", (int64_t)server->loop_count));
    event_base_dispatch(server->base);
    LOG_EVENT(LOG_LEVEL_INFO, "server.stop", "stopped", log_integer("code", EX_OK));
    return EX_OK;
}

/* A large body's memory goes back to the system with it.  Left alone, glibc learns from the first one that is freed to
 * keep such blocks, and a sidecar stays as large as its busiest moment was.  What a wave of small requests takes, some
 * 50 KB each and most of it libcurl's buffers, stays: the next wave would have every page cleared anew. */
static void memory_tune(void)
{
    enum { LARGE_BYTES = 1024 * 1024, WAVE_BYTES = 4 * 1024 * 1024 };
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, WAVE_BYTES);
#endif
}

static bool credentials_start(struct server *server)
{
    const struct settings *settings = server->settings;
    struct settings_mistakes mistakes;
    server->program.credentials = credentials_of(settings, &mistakes);
    reload_log_mistakes(&mistakes);
    settings_mistakes_deinit(&mistakes);
    metrics_gauge_set(GAUGE_TARGET_UNVERIFIED, settings->target.is_https && !settings->is_target_verified);
    return server->program.credentials != NULL;
}

int serve(const struct settings *settings, char *const environment[])
{
    static struct server server; /* one process, one server; too large for a stack */
    memset(&server, 0, sizeof server);
    server.settings = settings;
    server.environment = environment;
    server.state.started_ms = clock_unix_ms();
    signal(SIGPIPE, SIG_IGN);
    early_end_allow();
    json_object_seed(0);
    loop_library_init();
    upstream_global_init();
    descriptors_raise();
    memory_tune();
    hangup_hold(true);
    LOG_EVENT(LOG_LEVEL_INFO, "server.start", "starting", log_text("version", SINKONCE_VERSION),
              log_text("libevent", event_get_version()), log_text("openssl", tls_version()),
              log_text("scope", settings->scope));
    if (!credentials_start(&server))
        return EX_CONFIG;
    int code = ledger_open(&server);
    if (code != EX_OK) {
        credentials_release(server.program.credentials);
        return code;
    }
    ledger_log(&server);
    code = server_run(&server);
    server_stop(&server);
    return code;
}
