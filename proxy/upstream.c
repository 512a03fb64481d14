/*
 * upstream.c - the queue before the target, and the life of a transfer.
 *
 *     upstream_send --> queue --> start: curl_multi_add_handle --> collect: curl_multi_info_read --> done()
 *                         +--> ended without a transfer: stopped, no address, no connection in time
 *
 * The queue is ours: libcurl's own lets a time-out fire late and counts waiting as transfer time.  Its limit on
 * connections is therefore never reached.
 */
#include "upstream.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"
#include "metrics.h"
#include "upstream_internal.h"

static void list_append(struct flight_list *list, struct flight *flight)
{
    flight->next = NULL;
    if (list->last != NULL)
        list->last->next = flight;
    else
        list->first = flight;
    list->last = flight;
}

static struct flight *list_take(struct flight_list *list)
{
    struct flight *flight = list->first;
    if (flight == NULL)
        return NULL;
    list->first = flight->next;
    if (list->first == NULL)
        list->last = NULL;
    flight->next = NULL;
    return flight;
}

/* ---- transfers ---- */

static struct transfer *transfer_get(struct upstream *upstream)
{
    struct transfer *transfer = upstream->idle;
    if (transfer == NULL)
        return transfer_new(upstream);
    upstream->idle = transfer->next;
    return transfer;
}

static void running_add(struct upstream *upstream, struct transfer *transfer)
{
    transfer->previous = NULL;
    transfer->next = upstream->running;
    if (transfer->next != NULL)
        transfer->next->previous = transfer;
    upstream->running = transfer;
    upstream->in_flight_count++;
    metrics_gauge_add(GAUGE_TARGET_IN_FLIGHT, 1);
}

static void running_remove(struct upstream *upstream, struct transfer *transfer)
{
    if (transfer->previous != NULL)
        transfer->previous->next = transfer->next;
    else
        upstream->running = transfer->next;
    if (transfer->next != NULL)
        transfer->next->previous = transfer->previous;
    assert(upstream->in_flight_count > 0);
    upstream->in_flight_count--;
    metrics_gauge_add(GAUGE_TARGET_IN_FLIGHT, -1);
}

/* A handle that saw an error may keep some of it (curl_easy_reset does not clear the rewind state in all versions):
 * only those that ended well are used again.  Connections are the multi handle's, and stay. */
static void transfer_put(struct transfer *transfer, bool is_clean)
{
    struct upstream *upstream = transfer->upstream;
    transfer->flight = NULL;
    if (!is_clean || !upstream->is_handle_kept) {
        transfer_free(transfer);
        return;
    }
    transfer->next = upstream->idle;
    upstream->idle = transfer;
}

/* ---- the end of a flight ---- */

static void flight_end_later(struct upstream *upstream, struct flight *flight)
{
    flight->ended_ns = clock_monotonic_ns();
    list_append(&upstream->ended, flight);
    event_active(&upstream->turn, EV_TIMEOUT, 0);
}

static void fail_unsent(struct upstream *upstream, struct flight *flight, enum attempt_error error,
                        const char *detail)
{
    flight_fail_unsent(flight, error, detail);
    flight_end_later(upstream, flight);
}

/* What ends while this runs, because done() sent the next flight, waits for another turn. */
static void deliver(struct upstream *upstream)
{
    struct flight_list ended = upstream->ended;
    struct flight *flight;
    upstream->ended = (struct flight_list){ NULL, NULL };
    while ((flight = list_take(&ended)) != NULL)
        flight->done(flight);
}

/* ---- start ---- */

static bool transfer_start(struct transfer *transfer)
{
    struct upstream *upstream = transfer->upstream;
    memset(&transfer->flight->attempt, 0, sizeof transfer->flight->attempt);
    return upstream_engine_start(upstream) && transfer_fill(transfer) &&
           curl_multi_add_handle(upstream->multi, transfer->easy) == CURLM_OK;
}

static void start(struct upstream *upstream, struct flight *flight)
{
    struct transfer *transfer = transfer_get(upstream);
    if (transfer == NULL) {
        fail_unsent(upstream, flight, ATTEMPT_ERROR_CONNECT, "out of memory");
        return;
    }
    transfer->flight = flight;
    flight->transfer = transfer;
    if (!transfer_start(transfer)) {
        flight->transfer = NULL;
        transfer_put(transfer, false);
        fail_unsent(upstream, flight, ATTEMPT_ERROR_CONNECT, "out of memory");
        return;
    }
    running_add(upstream, transfer);
}

/* False: the first of the queue has to wait. */
static bool start_first(struct upstream *upstream, uint64_t now_ns)
{
    const struct flight *first = upstream->queue.first;
    enum name_state name = NAME_KNOWN;
    bool is_stopped = flight_is_stopped(first); /* once: it may change at any time */
    if (!is_stopped) {
        name = upstream_name_check(upstream, now_ns);
        if (name == NAME_ASKED ||
            (name == NAME_KNOWN && upstream->in_flight_count == upstream->connections_max))
            return false;
    }
    struct flight *flight = list_take(&upstream->queue);
    if (is_stopped)
        fail_unsent(upstream, flight, ATTEMPT_ERROR_STOPPED, "stopped before it was sent");
    else if (name == NAME_FAILED)
        fail_unsent(upstream, flight, ATTEMPT_ERROR_DNS, upstream->name.detail);
    else
        start(upstream, flight);
    return true;
}

static void expire(struct upstream *upstream, uint64_t now_ns)
{
    const uint64_t limit_ns = upstream->settings->connect_timeout_ms * NS_PER_MS;
    while (upstream->queue.first != NULL && now_ns - upstream->queue.first->queued_ns >= limit_ns) {
        struct flight *flight = list_take(&upstream->queue);
        if (!upstream->name.is_literal && upstream->name.state == NAME_ASKED)
            fail_unsent(upstream, flight, ATTEMPT_ERROR_DNS, "the name server did not answer in time");
        else
            fail_unsent(upstream, flight, ATTEMPT_ERROR_QUEUE,
                        "no connection to the target became free in time");
    }
}

/* The time limit is one for all: the first in the queue is the first to expire. */
static void expiry_arm(struct upstream *upstream, uint64_t now_ns)
{
    if (upstream->queue.first == NULL || event_pending(&upstream->expiry, EV_TIMEOUT, NULL))
        return;
    uint64_t end_ns = upstream->queue.first->queued_ns + upstream->settings->connect_timeout_ms * NS_PER_MS;
    uint64_t left_us = end_ns > now_ns ? (end_ns - now_ns) / 1000 + 1 : 0;
    struct timeval left = { (time_t)(left_us / 1000000), (suseconds_t)(left_us % 1000000) };
    if (event_add(&upstream->expiry, &left) != 0)
        event_active(&upstream->expiry, EV_TIMEOUT, 0); /* no memory: too early is better than never */
}

void upstream_pump(struct upstream *upstream)
{
    if (upstream->queue.first == NULL)
        return;
    uint64_t now_ns = clock_monotonic_ns();
    while (upstream->queue.first != NULL && start_first(upstream, now_ns))
        ;
    expiry_arm(upstream, now_ns);
}

static void on_expiry_cb(evutil_socket_t fd, short what, void *context)
{
    struct upstream *upstream = context;
    (void)fd, (void)what;
    expire(upstream, clock_monotonic_ns());
    upstream_pump(upstream);
}

static void on_turn_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    deliver(context);
    upstream_pump(context);
}

/* ---- end ---- */

/* The guard stopped it because the used connection was not good any more: nothing was sent, so once more on a new one.
 * False: no memory. */
static bool restart(struct transfer *transfer)
{
    return transfer_start(transfer);
}

static void collect_one(struct upstream *upstream, struct transfer *transfer, CURLcode rc)
{
    struct flight *flight = transfer->flight;
    curl_socket_t fd = CURL_SOCKET_BAD;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET, &fd);
    (void)curl_multi_remove_handle(upstream->multi, transfer->easy);
    if (flight->attempt.prereq_count == 1 && transfer->is_connection_stale && !transfer->is_stopped &&
        restart(transfer))
        return;
    flight->ended_ns = clock_monotonic_ns();
    transfer_judge(transfer, rc);
    bool is_clean =
        rc == CURLE_OK && flight->attempt_class == ATTEMPT_KNOWN && !transfer_is_outdated(transfer);
    if (is_clean && transfer->local_port > 0 && fd != CURL_SOCKET_BAD)
        idle_table_note(&upstream->connections, transfer->local_port, fd, transfer->idle_limit_ms,
                        flight->ended_ns);
    if (flight->sent_ns != 0)
        metrics_observe(HISTOGRAM_TARGET_DURATION, flight->ended_ns - flight->sent_ns);
    flight->transfer = NULL;
    running_remove(upstream, transfer);
    transfer_put(transfer, is_clean);
    list_append(&upstream->ended, flight);
}

/* And the engine with them: what it has noted is not to be trusted. */
static void end_running(struct upstream *upstream)
{
    struct transfer *transfer;
    while ((transfer = upstream->running) != NULL) {
        transfer->is_out_of_memory = true;
        transfer->is_connection_stale = false; /* no restart: it would end here again */
        collect_one(upstream, transfer, CURLE_OUT_OF_MEMORY);
    }
    upstream_engine_stop(upstream);
}

void upstream_collect(struct upstream *upstream, bool is_broken)
{
    const CURLMsg *message;
    int left = 0;
    while ((message = curl_multi_info_read(upstream->multi, &left)) != NULL) {
        char *context = NULL;
        CURLcode rc = message->data.result; /* MESSAGE dies with the handle's removal */
        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        collect_one(upstream, (struct transfer *)(void *)context, rc);
    }
    if (is_broken)
        end_running(upstream);
    deliver(upstream);
    upstream_pump(upstream);
}

/* ---- the doors ---- */

void upstream_global_init(void)
{
    /* libcurl would write the session keys of every connection there. */
    (void)unsetenv("SSLKEYLOGFILE");
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT);
    assert(rc == CURLE_OK);
}

/* Taken apart once: libcurl would do it anew for each request. */
static CURLU *url_new(const struct target_url *target)
{
    bool is_v6 = strchr(target->host, ':') != NULL;
    char *text = NULL;
    if (asprintf(&text, "%s://%s%s%s:%u/", target->is_https ? "https" : "http", is_v6 ? "[" : "",
                 target->host, is_v6 ? "]" : "", target->port) < 0)
        return NULL;
    CURLU *url = curl_url();
    if (url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK) {
        curl_url_cleanup(url);
        url = NULL;
    }
    free(text);
    return url;
}

static bool urls_make(struct upstream *upstream)
{
    const struct settings *settings = upstream->settings;
    const struct target_url *target = &settings->target;
    /* A proxy is spoken to in absolute form (RFC 9112, 3.2.2); with TLS there is a tunnel instead. */
    bool is_absolute = !target->is_https && upstream_has_proxy(settings);
    if (asprintf(&upstream->target_prefix, "%s%s%s", is_absolute ? "http://" : "",
                 is_absolute ? target->authority : "", target->base_path) < 0)
        upstream->target_prefix = NULL;
    upstream->url = url_new(target);
    return upstream->target_prefix != NULL && upstream->url != NULL;
}

/* Before 8.1.1 libcurl keeps a pointer to the last field of an answer whose fields it has freed, and joins a next answer
 * to it that begins with a folded line: the target could make it free the same memory twice (curl's issue 11101). */
static bool handles_forget(void)
{
    enum { FIXED_IN = 0x080101 };
    return curl_version_info(CURLVERSION_NOW)->version_num >= FIXED_IN;
}

struct upstream *upstream_new(struct event_base *base, const struct settings *settings,
                              struct resolver *resolver, unsigned connections_max)
{
    assert(connections_max > 0);
    struct upstream *upstream = calloc(1, sizeof *upstream);
    if (upstream == NULL)
        return NULL;
    upstream->base = base;
    upstream->settings = settings;
    upstream->resolver = resolver;
    upstream->connections_max = connections_max;
    upstream->is_handle_kept = handles_forget();
    (void)evtimer_assign(&upstream->turn, base, on_turn_cb, upstream);
    (void)evtimer_assign(&upstream->expiry, base, on_expiry_cb, upstream);
    if (upstream_loop_init(upstream) && urls_make(upstream) && upstream_name_init(upstream) &&
        idle_table_init(&upstream->connections, connections_max))
        return upstream;
    upstream_free(upstream);
    return NULL;
}

static void idle_free(struct upstream *upstream)
{
    while (upstream->idle != NULL) {
        struct transfer *transfer = upstream->idle;
        upstream->idle = transfer->next;
        transfer_free(transfer);
    }
}

/* A connection that is not in the table is not trusted.  The handles are made anew with the options that belong to the
 * new credentials. */
void upstream_credentials_set(struct upstream *upstream, struct credentials *credentials)
{
    struct credentials *old = upstream->credentials;
    assert(!upstream->is_library_running);
    upstream->credentials = credentials_hold(credentials);
    upstream->credentials_generation++;
    idle_free(upstream);
    idle_table_clear(&upstream->connections);
    credentials_release(old);
}

void upstream_free(struct upstream *upstream)
{
    if (upstream == NULL)
        return;
    assert(!upstream->is_library_running);
    while (upstream->running != NULL) {
        struct transfer *transfer = upstream->running;
        running_remove(upstream, transfer);
        (void)curl_multi_remove_handle(upstream->multi, transfer->easy);
        transfer->flight->transfer = NULL;
        transfer_free(transfer);
    }
    idle_free(upstream);
    (void)event_del(&upstream->turn);
    (void)event_del(&upstream->expiry);
    upstream_name_deinit(upstream);
    upstream_loop_deinit(upstream);
    idle_table_deinit(&upstream->connections);
    curl_url_cleanup(upstream->url);
    free(upstream->target_prefix);
    credentials_release(upstream->credentials);
    free(upstream);
}

static void results_clear(struct flight *flight)
{
    memset(&flight->attempt, 0, sizeof flight->attempt);
    flight->attempt_class = ATTEMPT_NOT_SENT;
    flight->error = ATTEMPT_ERROR_NONE;
    flight->detail[0] = '\0';
    flight->head_bytes = flight->answer = NULL;
    flight->answer_bytes = 0;
    flight->response.status = 0;
    flight->response.field_count = 0;
    flight->response.is_length_known = false;
    flight->is_answer_damaged = false;
    flight->sent_ns = flight->ended_ns = 0;
    flight->transfer = NULL;
}

void upstream_send(struct upstream *upstream, struct flight *flight)
{
    assert(flight->done != NULL);
    assert(!upstream->is_library_running);
    results_clear(flight);
    flight->upstream = upstream;
    flight->queued_ns = clock_monotonic_ns();
    if (!flight_is_valid(flight)) {
        fail_unsent(upstream, flight, ATTEMPT_ERROR_PROTOCOL, "not a valid request; nothing was sent");
        return;
    }
    list_append(&upstream->queue, flight);
    upstream_pump(upstream);
}

void flight_deinit(struct flight *flight)
{
    free(flight->head_bytes);
    free(flight->answer);
    flight->head_bytes = flight->answer = NULL;
    flight->answer_bytes = 0;
}
