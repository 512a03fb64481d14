/*
 * upstream_loop.c - libcurl's multi_socket interface on libevent.
 *
 *     libcurl: "watch this socket", "call me in N ms"  -->  events of the loop
 *     an event fires  -->  curl_multi_socket_action(), then upstream_collect()
 *
 * libcurl must not be entered from its own callbacks: these only change events.  A socket callback that fails ends all
 * transfers of the multi handle, so ours never does: its events were made beforehand.
 */
#include <assert.h>
#include <stdlib.h>
#include "upstream_internal.h"

/* The only way into libcurl's engine. */
static void drive(struct upstream *upstream, curl_socket_t fd, int events)
{
    int running_count = 0;
    assert(!upstream->is_library_running);
    upstream->is_library_running = true;
    (void)curl_multi_socket_action(upstream->multi, fd, events, &running_count);
    upstream->is_library_running = false;
    upstream_collect(upstream);
}

static void on_socket_cb(evutil_socket_t fd, short what, void *context)
{
    struct watch *watch = context;
    drive(watch->upstream, fd, (what & EV_READ) != 0 ? CURL_CSELECT_IN : CURL_CSELECT_OUT);
}

static void on_timer_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    drive(context, CURL_SOCKET_TIMEOUT, 0);
}

/* Adding comes before taking away: the kernel then sees one change and not a removal with an addition.  An add that
 * fails (no memory) leaves the transfer to its deadline: an unknown outcome, never a wrong one. */
static void watch_set(struct watch *watch, bool is_reading, bool is_writing)
{
    if (is_reading && !watch->is_reading)
        watch->is_reading = event_add(&watch->reading, NULL) == 0;
    if (is_writing && !watch->is_writing)
        watch->is_writing = event_add(&watch->writing, NULL) == 0;
    if (!is_reading && watch->is_reading)
        (void)event_del(&watch->reading);
    if (!is_writing && watch->is_writing)
        (void)event_del(&watch->writing);
    watch->is_reading = watch->is_reading && is_reading;
    watch->is_writing = watch->is_writing && is_writing;
}

static struct watch *watch_get(struct upstream *upstream, curl_socket_t fd)
{
    struct watch *watch = upstream->free_watches;
    if (watch == NULL)
        return NULL;
    upstream->free_watches = watch->next;
    (void)event_assign(&watch->reading, upstream->base, fd, EV_READ | EV_PERSIST, on_socket_cb, watch);
    (void)event_assign(&watch->writing, upstream->base, fd, EV_WRITE | EV_PERSIST, on_socket_cb, watch);
    return watch;
}

static void watch_put(struct watch *watch)
{
    watch_set(watch, false, false);
    watch->next = watch->upstream->free_watches;
    watch->upstream->free_watches = watch;
}

static int socket_changed_cb(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct upstream *upstream = context;
    struct watch *watch = socket_context;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        /* At once, not later: the number may belong to another socket in a moment. */
        if (watch != NULL)
            watch_put(watch);
        (void)curl_multi_assign(upstream->multi, fd, NULL);
        return 0;
    }
    if (watch == NULL) {
        watch = watch_get(upstream, fd);
        (void)curl_multi_assign(upstream->multi, fd, watch);
    }
    if (watch != NULL)
        watch_set(watch, (what & CURL_POLL_IN) != 0, (what & CURL_POLL_OUT) != 0);
    return 0;
}

static int timer_changed_cb(CURLM *multi, long timeout_ms, void *context)
{
    struct upstream *upstream = context;
    (void)multi;
    if (timeout_ms < 0) {
        (void)event_del(&upstream->timer);
        return 0;
    }
    /* 0 is the next turn of the loop, never a call from in here. */
    struct timeval delay = { timeout_ms / 1000, (timeout_ms % 1000) * 1000 };
    if (event_add(&upstream->timer, &delay) != 0)
        event_active(&upstream->timer, EV_TIMEOUT, 0); /* no memory: too early is better than never */
    return 0;
}

static bool watches_new(struct upstream *upstream)
{
    /* A transfer has one socket, and two while it tries IPv6 and IPv4 side by side (RFC 8305). */
    size_t count = (size_t)upstream->connections_max * 2 + 2;
    upstream->watches = calloc(count, sizeof *upstream->watches);
    if (upstream->watches == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        upstream->watches[i].upstream = upstream;
        upstream->watches[i].next = upstream->free_watches;
        upstream->free_watches = &upstream->watches[i];
    }
    return true;
}

bool upstream_loop_init(struct upstream *upstream)
{
    (void)evtimer_assign(&upstream->timer, upstream->base, on_timer_cb, upstream);
    upstream->multi = curl_multi_init();
    if (upstream->multi == NULL || !watches_new(upstream))
        return false;
    CURLM *multi = upstream->multi;
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed_cb);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, upstream);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed_cb);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, upstream);
    (void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    /* The default of four per handle would close and open connections in the middle of a load. */
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)upstream->connections_max);
    return true;
}

void upstream_loop_deinit(struct upstream *upstream)
{
    if (upstream->multi != NULL)
        (void)curl_multi_cleanup(upstream->multi);
    upstream->multi = NULL;
    (void)event_del(&upstream->timer);
    free(upstream->watches);
    upstream->watches = NULL;
}
