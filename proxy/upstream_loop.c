/*
 * upstream_loop.c - libcurl's multi_socket interface on libevent.
 *
 *     libcurl: "watch this socket", "call me in N ms"  -->  events of the loop
 *     an event fires  -->  curl_multi_socket_action(), then upstream_collect()
 *
 * libcurl asks for a socket when a transfer begins and drops it when it ends.  A socket that we opened and that is
 * connected stays watched for reading in between, which saves two calls into the kernel for each transfer; it is let go
 * when it is closed.  One that never got connected is closed without a word (libcurl 7.88): it is let go when dropped.
 *
 * libcurl must not be entered from its own callbacks: these only change events.  A socket callback that fails ends all
 * transfers of the multi handle, so ours never does: its events were made beforehand.
 */
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "upstream_internal.h"

static struct watch *own_watch(const struct upstream *upstream, curl_socket_t fd)
{
    return fd >= 0 && (size_t)fd < upstream->own_watch_room ? upstream->own_watches[fd] : NULL;
}

/* Where it fails nothing is held back. */
static void cork(curl_socket_t fd, int is_on)
{
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CORK, &is_on, sizeof is_on);
}

void upstream_socket_cork(struct upstream *upstream, curl_socket_t fd)
{
    struct watch *watch = own_watch(upstream, fd);
    assert(upstream->is_library_running);
    if (watch == NULL) /* nobody would tell us that it was closed */
        return;
    cork(fd, 1);
    watch->next_corked = upstream->corked;
    upstream->corked = watch;
}

/* Nothing is held back longer than libcurl runs, however little of a request the socket took. */
static void uncork_all(struct upstream *upstream)
{
    for (struct watch *watch = upstream->corked; watch != NULL; watch = watch->next_corked)
        cork(watch->fd, 0);
    upstream->corked = NULL;
}

static void corked_remove(struct upstream *upstream, const struct watch *watch)
{
    struct watch **at = &upstream->corked;
    while (*at != NULL && *at != watch)
        at = &(*at)->next_corked;
    if (*at != NULL)
        *at = watch->next_corked;
}

/* The only way into libcurl's engine.  It fails for want of memory, and then a transfer may be left without a socket,
 * all of them without a timer, and (7.88) the entry of a socket in a state that kills the process when its number is used
 * again. */
static void drive(struct upstream *upstream, curl_socket_t fd, int events)
{
    int running_count = 0;
    assert(!upstream->is_library_running);
    upstream->is_library_running = true;
    CURLMcode rc = curl_multi_socket_action(upstream->multi, fd, events, &running_count);
    uncork_all(upstream);
    upstream->is_library_running = false;
    upstream_collect(upstream, rc != CURLM_OK);
}

static void on_socket_cb(evutil_socket_t fd, short what, void *context)
{
    struct watch *watch = context;
    if (watch->is_idle) {
        /* A close, or bytes that nobody asked for: found when the connection is next looked at, and no news until then. */
        watch->is_reading = false;
        (void)event_del(&watch->reading);
        return;
    }
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
    watch->fd = fd;
    watch->is_own = watch->is_connected = watch->is_idle = false;
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

static bool make_own_room(struct upstream *upstream, size_t count)
{
    if (count <= upstream->own_watch_room)
        return true;
    struct watch **watches = realloc(upstream->own_watches, 2 * count * sizeof(struct watch *));
    if (watches == NULL)
        return false;
    for (size_t i = upstream->own_watch_room; i < 2 * count; i++)
        watches[i] = NULL;
    upstream->own_watches = watches;
    upstream->own_watch_room = 2 * count;
    return true;
}

/* Without memory the socket is watched like any other, from one word of libcurl to the next.  Where the number belonged
 * to a socket that was closed without a word, libcurl may go on with its watch: it becomes the new one's. */
void upstream_socket_opened(struct upstream *upstream, curl_socket_t fd)
{
    if (fd < 0 || !make_own_room(upstream, (size_t)fd + 1))
        return;
    struct watch *watch = upstream->own_watches[fd];
    if (watch != NULL)
        watch_set(watch, false, false);
    else
        watch = watch_get(upstream, fd);
    if (watch == NULL)
        return;
    watch->is_own = watch->is_idle = true;
    watch->is_connected = false;
    upstream->own_watches[fd] = watch;
}

void upstream_socket_connected(struct upstream *upstream, curl_socket_t fd)
{
    struct watch *watch = own_watch(upstream, fd);
    if (watch != NULL)
        watch->is_connected = true;
}

void upstream_socket_closing(struct upstream *upstream, curl_socket_t fd)
{
    struct watch *watch = own_watch(upstream, fd);
    if (watch == NULL)
        return;
    upstream->own_watches[fd] = NULL;
    corked_remove(upstream, watch);
    watch_put(watch);
}

static void socket_dropped(struct upstream *upstream, curl_socket_t fd, struct watch *watch)
{
    (void)curl_multi_assign(upstream->multi, fd, NULL);
    if (watch == NULL)
        return;
    watch->is_idle = true;
    if (watch->is_own && watch->is_connected) {
        watch_set(watch, watch->is_reading, false);
        return;
    }
    if (watch->is_own)
        upstream->own_watches[fd] = NULL;
    watch_put(watch); /* at once, not later: the number may belong to another socket in a moment */
}

static int socket_changed_cb(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context)
{
    struct upstream *upstream = context;
    struct watch *watch = socket_context;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        socket_dropped(upstream, fd, watch);
        return 0;
    }
    if (watch == NULL) {
        watch = own_watch(upstream, fd);
        if (watch == NULL)
            watch = watch_get(upstream, fd);
        (void)curl_multi_assign(upstream->multi, fd, watch);
    }
    if (watch != NULL) {
        watch->is_idle = false;
        watch_set(watch, (what & CURL_POLL_IN) != 0, (what & CURL_POLL_OUT) != 0);
    }
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
    /* A transfer has one socket, and two while it tries IPv6 and IPv4 side by side (RFC 8305); as many connections
     * may be idle. */
    size_t count = (size_t)upstream->connections_max * 3 + 2;
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

bool upstream_engine_start(struct upstream *upstream)
{
    CURLM *multi = upstream->multi != NULL ? upstream->multi : curl_multi_init();
    if (multi == NULL || multi == upstream->multi)
        return multi != NULL;
    upstream->multi = multi;
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed_cb);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, upstream);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed_cb);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, upstream);
    (void)curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    /* The default of four per handle would close and open connections in the middle of a load. */
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)upstream->connections_max);
    return true;
}

void upstream_engine_stop(struct upstream *upstream)
{
    if (upstream->multi != NULL)
        (void)curl_multi_cleanup(upstream->multi);
    upstream->multi = NULL;
    upstream->name.is_loaded = false; /* its cache of addresses is gone with it */
    (void)event_del(&upstream->timer);
}

bool upstream_loop_init(struct upstream *upstream)
{
    (void)evtimer_assign(&upstream->timer, upstream->base, on_timer_cb, upstream);
    return watches_new(upstream) && upstream_engine_start(upstream);
}

void upstream_loop_deinit(struct upstream *upstream)
{
    upstream_engine_stop(upstream);
    free(upstream->own_watches);
    free(upstream->watches);
    upstream->own_watches = NULL;
    upstream->watches = NULL;
}
