/*
 * serve.c - starts everything in order, turns signals into a drain, stops in the opposite order.
 *
 *   ledger (every intent is in doubt before anybody can connect) -> loops -> admin port -> connectors' port -> ready
 *   SIGTERM -> drain.h -> exit 0
 *
 * Nothing is written only at shutdown: a kill is an ordinary way to stop.
 */
#include "serve.h"

#include <event2/event.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sysexits.h>

#include "acks.h"
#include "admin.h"
#include "clock.h"
#include "drain.h"
#include "last_wait.h"
#include "loop_library.h"
#include "metrics.h"
#include "prober.h"
#include "process.h"
#include "reload.h"
#include "serve_ledger.h"

enum { TICK_MS = 20 };

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
    struct loops loops;
    struct admin *admin;
    struct doors doors;
    struct event *signals[3], *hangup, *tick, *port_ready;
    struct program program;
    struct program_state state;
    struct program_controls controls;
    struct drain drain;
    struct ledger_told ledger_told;
    uint64_t ends_told_ns; /* when it was last told which certificates end soon */
    struct reload_course reload_course;
};

/* ---- while it runs ------------------------------------------------------------------------------------------- */

static void mode_set(void *context, enum mode mode)
{
    struct server *server = context;
    server->state.mode = mode;
    atomic_store(&server->program.mode, (int)mode);
}

static bool on_drain_set(void *context, bool is_draining, char ret_why[], size_t why_bytes_max)
{
    struct server *server = context;
    return drain_set(&server->drain, is_draining, ret_why, why_bytes_max);
}

static struct reload_parts reload_parts_of(struct server *server)
{
    return (struct reload_parts){ .course = &server->reload_course,
                                  .environment = server->environment,
                                  .program = &server->program,
                                  .state = &server->state,
                                  .loops = server->loops.at,
                                  .loop_count = server->loops.count,
                                  .admin = server->admin,
                                  .prober = server->prober };
}

static void hangup_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)what;
    const struct reload_parts parts = reload_parts_of(server);
    if (server->drain.life == LIFE_RUNNING)
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
        drain_stop(&server->drain);
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

static void tick_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    uint64_t now_ns = clock_monotonic_ns();
    (void)fd;
    (void)what;
    conn_sweep(admin_service(server->admin), now_ns);
    conn_sweep(admin_health_service(server->admin), now_ns);
    admin_tick(server->admin, now_ns);
    serve_ledger_tell(server->store, &server->ledger_told, now_ns);
    ends_tell(server, now_ns);
    const struct reload_parts parts = reload_parts_of(server);
    reload_tick(&parts, now_ns);
    if (drain_tick(&server->drain, now_ns))
        event_base_loopbreak(server->base);
}

static void port_cb(evutil_socket_t fd, short what, void *context)
{
    struct server *server = context;
    (void)fd;
    (void)what;
    store_port_deliver(server->port);
}

/* ---- start --------------------------------------------------------------------------------------------------- */

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
        (struct program_controls){ .context = server, .mode_set = mode_set, .drain_set = on_drain_set };
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
    return admin_start(server) && prober_start(server) && loops_start(&server->loops, &server->program) &&
           events_start(server);
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

/* Nobody turns the main loop any more.  What it did about signals is done again as before it turned: who asks once more
 * need not wait for a slow disk. */
static void signals_stop(struct server *server)
{
    process_hangup_hold();
    for (size_t i = 0; i < sizeof server->signals / sizeof server->signals[0]; i++) {
        if (server->signals[i] != NULL)
            event_free(server->signals[i]);
    }
}

/* One that was never drained ends because it could not start. */
static void server_stop(struct server *server, int code)
{
    struct last_wait last_wait;
    signals_stop(server);
    last_wait_begin(&last_wait, server->drain.life_until_ns, code);
    doors_close(&server->doors);
    loops_free(&server->loops);
    questions_finish(server);
    admin_free(server->admin);
    prober_free(server->prober);
    drain_deinit(&server->drain);
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
    last_wait_end(&last_wait);
    credentials_release(server->program.credentials);
}

/* From here on somebody comes in, so that it can also be emptied. */
static bool doors_start(struct server *server)
{
    server->doors = (struct doors){
        .base = server->base, .program = &server->program, .loops = &server->loops, .admin = server->admin
    };
    server->drain = (struct drain){
        .program = &server->program, .state = &server->state, .loops = &server->loops, .doors = &server->doors
    };
    return doors_open(&server->doors);
}

static int server_run(struct server *server)
{
    if (!parts_start(server)) {
        LOG_EVENT(LOG_LEVEL_ERROR, "server.stop", "out of memory, threads or descriptors at start",
                  log_integer("code", EX_OSERR));
        return EX_OSERR;
    }
    if (!doors_start(server))
        return EX_UNAVAILABLE;
    server->state.is_started = true;
    server->state.is_ready = true;
    process_hangup_release();
    LOG_EVENT(LOG_LEVEL_INFO, "server.ready", "ready for connectors",
              log_text("listen", listener_address(server->doors.data_listener)),
              log_text("admin", listener_address(server->doors.admin_listener)),
              log_text("target", server->settings->target.name),
              log_integer("workers", (int64_t)server->loops.count));
    event_base_dispatch(server->base);
    return EX_OK;
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
    process_prepare();
    json_object_seed(0);
    loop_library_init();
    upstream_global_init();
    LOG_EVENT(LOG_LEVEL_INFO, "server.start", "starting", log_text("version", SINKONCE_VERSION),
              log_text("libevent", event_get_version()), log_text("openssl", tls_version()),
              log_text("scope", settings->scope));
    if (!credentials_start(&server))
        return EX_CONFIG;
    int code = serve_ledger_open(settings, &server.store);
    if (code != EX_OK) {
        credentials_release(server.program.credentials);
        return code;
    }
    server.state.ledger_fades = serve_ledger_fades(settings->data_dir);
    code = server_run(&server);
    server_stop(&server, code);
    if (code == EX_OK)
        LOG_EVENT(LOG_LEVEL_INFO, "server.stop", "stopped", log_integer("code", EX_OK));
    return code;
}
