/*
 * loop.c - the thread behind loop.h: start, tasks from other threads, the ledger's answers, a tick.
 */
#include "loop.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "exchange.h"
#include "metrics.h"

enum { TICK_MS = 200 };

static void tasks_run(struct loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct loop_task *task = loop->first_task;
    loop->first_task = loop->last_task = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (task != NULL) {
        struct loop_task *next = task->next;
        task->run(loop, task);
        task = next;
    }
}

static void wake_cb(evutil_socket_t fd, short what, void *context)
{
    uint64_t count = 0;
    (void)what;
    if (read(fd, &count, sizeof count) > 0)
        tasks_run(context);
}

static void port_cb(evutil_socket_t fd, short what, void *context)
{
    struct loop *loop = context;
    (void)fd;
    (void)what;
    store_port_deliver(loop->port);
}

static void tick_cb(evutil_socket_t fd, short what, void *context)
{
    struct loop *loop = context;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t due_ns = loop->ticked_ns + (uint64_t)TICK_MS * NS_PER_MS;
    (void)fd;
    (void)what;
    if (loop->ticked_ns != 0)
        metrics_observe(HISTOGRAM_EVENT_LOOP_LAG, now_ns > due_ns ? now_ns - due_ns : 0);
    loop->ticked_ns = now_ns;
    conn_sweep(&loop->service, now_ns);
    if (loop->index == 0) /* one is enough: the acknowledgements are shared */
        ack_sweep(loop);
}

static bool loop_start(struct loop *loop, unsigned connections_max)
{
    const struct program *program = loop->program;
    const struct timeval tick = { 0, TICK_MS * 1000 };
    loop->base = event_base_new();
    loop->port = store_port_new(program->store);
    if (loop->base == NULL || loop->port == NULL)
        return false;
    loop->upstream = upstream_new(loop->base, program->settings, program->resolver, connections_max);
    if (loop->upstream != NULL)
        upstream_credentials_set(loop->upstream, loop->credentials);
    loop->wake = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, wake_cb, loop);
    loop->port_ready = event_new(loop->base, store_port_fd(loop->port), EV_READ | EV_PERSIST, port_cb, loop);
    loop->tick = event_new(loop->base, -1, EV_PERSIST, tick_cb, loop);
    return loop->upstream != NULL && loop->wake != NULL && loop->port_ready != NULL && loop->tick != NULL &&
           event_add(loop->wake, NULL) == 0 && event_add(loop->port_ready, NULL) == 0 &&
           event_add(loop->tick, &tick) == 0;
}

/* What is lent to the ledger comes back before its port goes. */
static void settlements_finish(struct loop *loop)
{
    while (loop->unwaited_count > 0) {
        struct pollfd port = { .fd = store_port_fd(loop->port), .events = POLLIN };
        if (poll(&port, 1, -1) > 0)
            store_port_deliver(loop->port);
    }
}

/* [loop] What was made on this thread is freed on it. */
static void loop_stop(struct loop *loop)
{
    conn_free_all(&loop->service);
    upstream_free(loop->upstream);
    settlements_finish(loop);
    exchange_free_spares(loop);
    struct event *events[] = { loop->wake, loop->port_ready, loop->tick };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i] != NULL)
            event_free(events[i]);
    }
    store_port_free(loop->port);
    if (loop->base != NULL)
        event_base_free(loop->base);
}

struct start {
    struct loop *loop;
    unsigned connections_max;
};

static void *loop_main(void *context)
{
    struct start *start = context;
    struct loop *loop = start->loop;
    bool is_started = loop_start(loop, start->connections_max);
    free(start);
    pthread_mutex_lock(&loop->lock);
    loop->start = is_started ? LOOP_RUNS : LOOP_FAILED;
    pthread_cond_signal(&loop->started);
    pthread_mutex_unlock(&loop->lock);
    if (is_started)
        event_base_dispatch(loop->base);
    loop_stop(loop);
    return NULL;
}

static void loop_release(struct loop *loop)
{
    credentials_release(loop->credentials);
    if (loop->wake_fd >= 0)
        close(loop->wake_fd);
    pthread_cond_destroy(&loop->started);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

struct loop *loop_new(struct program *program, unsigned index, unsigned connections_max)
{
    struct loop *loop = calloc(1, sizeof *loop);
    struct start *start = calloc(1, sizeof *start);
    if (loop == NULL || start == NULL) {
        free(loop);
        free(start);
        return NULL;
    }
    loop->program = program;
    loop->index = index;
    loop->credentials = credentials_hold(program->credentials);
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_mutex_init(&loop->lock, NULL);
    pthread_cond_init(&loop->started, NULL);
    exchange_service_init(loop);
    *start = (struct start){ loop, connections_max };
    if (loop->wake_fd < 0 || pthread_create(&loop->thread, NULL, loop_main, start) != 0) {
        free(start);
        loop_release(loop);
        return NULL;
    }
    pthread_mutex_lock(&loop->lock);
    while (loop->start == LOOP_STARTS)
        pthread_cond_wait(&loop->started, &loop->lock);
    bool is_started = loop->start == LOOP_RUNS;
    pthread_mutex_unlock(&loop->lock);
    if (!is_started) {
        pthread_join(loop->thread, NULL);
        loop_release(loop);
        return NULL;
    }
    return loop;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
    const uint64_t one = 1;
    task->next = NULL;
    pthread_mutex_lock(&loop->lock);
    if (loop->last_task != NULL)
        loop->last_task->next = task;
    else
        loop->first_task = task;
    loop->last_task = task;
    pthread_mutex_unlock(&loop->lock);
    if (write(loop->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is full, so the loop is awake already */
}

struct accept_task {
    struct loop_task task; /* first: the loop sees only this */
    int fd;
    bool is_trusted_peer;
    char peer[64];
};

static void accept_run(struct loop *loop, struct loop_task *task)
{
    struct accept_task *accepted = (struct accept_task *)task;
    if (conn_new(loop->base, accepted->fd, &loop->service, accepted->peer, accepted->is_trusted_peer)) {
        if (loop->service.is_draining)
            conn_drain_all(&loop->service);
    } else {
        loop->service.on_closed(loop->service.context);
    }
    free(accepted);
}

bool loop_accept(struct loop *loop, int fd, const char *peer, bool is_trusted_peer)
{
    struct accept_task *accepted = calloc(1, sizeof *accepted);
    if (accepted == NULL) {
        close(fd);
        return false;
    }
    accepted->task.run = accept_run;
    accepted->fd = fd;
    accepted->is_trusted_peer = is_trusted_peer;
    memcpy(accepted->peer, peer, strnlen(peer, sizeof accepted->peer - 1));
    atomic_fetch_add(&loop->connections, 1);
    atomic_fetch_add(&loop->program->connections, 1);
    metrics_gauge_add(GAUGE_CONNECTIONS, 1);
    loop_post(loop, &accepted->task);
    return true;
}

static void drain_run(struct loop *loop, struct loop_task *task)
{
    conn_drain_all(&loop->service);
    free(task);
}

static void stop_run(struct loop *loop, struct loop_task *task)
{
    (void)task; /* the loop's own: stopping takes no memory */
    event_base_loopbreak(loop->base);
}

static bool task_post(struct loop *loop, void (*run)(struct loop *loop, struct loop_task *task))
{
    struct loop_task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return false;
    task->run = run;
    loop_post(loop, task);
    return true;
}

void loop_drain(struct loop *loop)
{
    if (!task_post(loop, drain_run))
        return; /* no memory: its connections end with the process */
}

struct credentials_task {
    struct loop_task task;           /* first: the loop sees only this */
    struct credentials *credentials; /* held */
};

static void credentials_run(struct loop *loop, struct loop_task *task)
{
    struct credentials_task *change = (struct credentials_task *)task;
    credentials_release(loop->credentials);
    loop->credentials = change->credentials;
    loop->service.tls = loop->credentials->tls[TLS_USE_LISTEN];
    upstream_credentials_set(loop->upstream, loop->credentials);
    atomic_fetch_add(&loop->credentials_taken, 1);
    free(change);
}

struct loop_task *loop_credentials_task(struct credentials *credentials)
{
    struct credentials_task *change = calloc(1, sizeof *change);
    if (change == NULL)
        return NULL;
    change->task.run = credentials_run;
    change->credentials = credentials_hold(credentials);
    return &change->task;
}

void loop_credentials_task_free(struct loop_task *task)
{
    struct credentials_task *change = (struct credentials_task *)task;
    if (change == NULL)
        return;
    credentials_release(change->credentials);
    free(change);
}

static void resume_run(struct loop *loop, struct loop_task *task)
{
    loop->service.is_draining = false;
    free(task);
}

bool loop_resume(struct loop *loop)
{
    return task_post(loop, resume_run);
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    loop->stop.run = stop_run;
    loop_post(loop, &loop->stop);
    pthread_join(loop->thread, NULL);
    loop_release(loop);
}
