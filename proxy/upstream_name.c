/*
 * upstream_name.c - the addresses that libcurl is to connect to.
 *
 * libcurl never looks a name up itself: 7.88 waited ten seconds for a silent server with a time limit of 500 ms, and the
 * loop with it.  The resolver's thread answers; an eventfd wakes the loop.  Addresses stay in use while a newer
 * look-up runs, so that a silent name server stops nothing that works; one that says "no such name" does.
 *
 * Once the addresses have changed, a connection to one that is not among them any more is not used again: under a steady
 * load none is ever idle for too long, and the old target would go on getting all of it.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "clock.h"
#include "upstream_internal.h"

/* How often the resolver is asked; its own memory decides when a server is. */
enum { ASK_INTERVAL_MS = 1000 };

static void query_free(struct name_query *query)
{
    (void)pthread_mutex_destroy(&query->lock);
    free(query);
}

/* [resolver] */
static void query_done_cb(struct lookup *lookup)
{
    struct name_query *query = lookup->owner;
    (void)pthread_mutex_lock(&query->lock);
    bool is_orphan = query->wake_fd < 0;
    query->is_lent = false;
    query->is_answered = true;
    if (!is_orphan)
        (void)eventfd_write(query->wake_fd, 1); /* cannot be full: one question at a time */
    (void)pthread_mutex_unlock(&query->lock);
    if (is_orphan)
        query_free(query);
}

static void name_take_answer(struct name *name)
{
    const struct lookup *lookup = &name->query->lookup;
    name->state = lookup->is_found ? NAME_KNOWN : NAME_FAILED;
    if (!lookup->is_found) {
        memcpy(name->detail, lookup->detail, sizeof name->detail);
        name->addresses[0] = '\0';
        return;
    }
    if (strcmp(name->addresses, lookup->addresses) == 0)
        return;
    memcpy(name->addresses, lookup->addresses, sizeof name->addresses);
    (void)snprintf(name->entry_text, sizeof name->entry_text, "%s:%u:%s", name->host, name->port,
                   name->addresses);
    name->entry = (struct curl_slist){ .data = name->entry_text };
    name->is_loaded = false;
    name->generation++;
}

static void name_ask(struct upstream *upstream, uint64_t now_ns)
{
    struct name *name = &upstream->name;
    struct name_query *query = name->query;
    (void)pthread_mutex_lock(&query->lock);
    bool is_busy = query->is_lent || query->is_answered;
    query->is_lent = query->is_lent || !is_busy;
    (void)pthread_mutex_unlock(&query->lock);
    if (is_busy)
        return;
    name->asked_ns = now_ns;
    if (!resolver_ask(upstream->resolver, &query->lookup))
        return;
    query->is_lent = false; /* was not lent after all */
    name_take_answer(name);
}

static void on_wake_cb(evutil_socket_t fd, short what, void *context)
{
    struct upstream *upstream = context;
    struct name_query *query = upstream->name.query;
    eventfd_t count;
    (void)what;
    (void)eventfd_read(fd, &count);
    (void)pthread_mutex_lock(&query->lock);
    bool is_answered = query->is_answered;
    query->is_answered = false;
    (void)pthread_mutex_unlock(&query->lock);
    if (is_answered)
        name_take_answer(&upstream->name);
    upstream_pump(upstream);
}

enum name_state upstream_name_check(struct upstream *upstream, uint64_t now_ns)
{
    struct name *name = &upstream->name;
    if (name->is_literal)
        return NAME_KNOWN;
    if (name->asked_ns == 0 || now_ns - name->asked_ns >= (uint64_t)ASK_INTERVAL_MS * NS_PER_MS) {
        if (name->state == NAME_FAILED)
            name->state = NAME_ASKED;
        name_ask(upstream, now_ns);
    }
    return name->state;
}

static bool has_address(const char *addresses, const char *address)
{
    size_t byte_count = strlen(address);
    for (const char *at = addresses; *at != '\0'; at += strspn(at, ",")) {
        size_t other_bytes = strcspn(at, ",");
        if (other_bytes == byte_count && memcmp(at, address, byte_count) == 0)
            return true;
        at += other_bytes;
    }
    return false;
}

bool upstream_name_has_peer(const struct name *name, int fd)
{
    struct sockaddr_storage peer;
    socklen_t byte_count = sizeof peer;
    char text[RESOLVER_ADDRESS_BYTES_MAX];
    if (name->is_literal || name->generation <= 1) /* these were the addresses from the first */
        return true;
    memset(&peer, 0, sizeof peer);
    return getpeername(fd, (struct sockaddr *)&peer, &byte_count) == 0 &&
           resolver_address_write((struct sockaddr *)&peer, byte_count, text) &&
           has_address(name->addresses, text);
}

/* Host and port of the setting's proxy; false: no memory, or not a URL. */
static bool proxy_take_apart(struct name *name, const char *proxy)
{
    char *host = NULL, *port = NULL;
    CURLU *url = curl_url();
    bool is_good =
        url != NULL &&
        curl_url_set(url, CURLUPART_URL, proxy, CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
        curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK;
    if (is_good) {
        size_t length = strlen(host);
        bool is_bracketed = length > 2 && host[0] == '[';
        name->host = is_bracketed ? strndup(host + 1, length - 2) : strdup(host);
        /* libcurl's own default for a proxy without a port (CURLOPT_PROXY). */
        name->port = 1080;
        if (curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK)
            name->port = (uint16_t)strtoul(port, NULL, 10);
    }
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    return is_good && name->host != NULL;
}

static bool name_set(struct name *name, const struct settings *settings)
{
    if (upstream_has_proxy(settings)) {
        if (!proxy_take_apart(name, settings->target_proxy))
            return false;
    } else {
        name->port = settings->target.port;
        name->host = strdup(settings->target.host);
        if (name->host == NULL)
            return false;
    }
    name->is_literal = resolver_is_literal(name->host);
    return true;
}

bool upstream_name_init(struct upstream *upstream)
{
    struct name *name = &upstream->name;
    if (!name_set(name, upstream->settings))
        return false;
    if (name->is_literal)
        return true;
    struct name_query *query = calloc(1, sizeof *query);
    int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (query == NULL || wake_fd < 0) {
        free(query);
        if (wake_fd >= 0)
            (void)close(wake_fd);
        return false;
    }
    (void)pthread_mutex_init(&query->lock, NULL);
    query->wake_fd = wake_fd;
    query->lookup = (struct lookup){ .host = name->host, .done = query_done_cb, .owner = query };
    name->query = query;
    (void)event_assign(&name->wake, upstream->base, wake_fd, EV_READ | EV_PERSIST, on_wake_cb, upstream);
    return event_add(&name->wake, NULL) == 0;
}

void upstream_name_deinit(struct upstream *upstream)
{
    struct name *name = &upstream->name;
    struct name_query *query = name->query;
    if (query != NULL) {
        (void)event_del(&name->wake);
        (void)pthread_mutex_lock(&query->lock);
        bool is_lent = query->is_lent;
        (void)close(query->wake_fd);
        query->wake_fd = -1;
        (void)pthread_mutex_unlock(&query->lock);
        if (!is_lent)
            query_free(query);
    }
    name->query = NULL;
    free(name->host);
    name->host = NULL;
}
