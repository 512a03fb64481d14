/*
 * upstream_request.c - what is sent: one easy handle's options, the fields, the body, and the guard.
 *
 * The guard.  libcurl 7.88 sends a request again on a new connection when a reused one dies before the first byte of
 * an answer: for every method, up to five times, and reports success.  The prereq callback runs before each send; its
 * second call is refused.  Second fence: the body has a read callback and no seek callback, so that it cannot be
 * rewound.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clock.h"
#include "failpoint.h"
#include "metrics.h"
#include "upstream_internal.h"

/* Fields that libcurl would add when the client sent none; an entry without a value keeps them away. */
static const char *const removers[] = { "Accept", "Content-Type", "User-Agent", "Expect",
                                        "Proxy-Connection" };
enum { REMOVER_COUNT = sizeof removers / sizeof removers[0] };

/* Up to here head and body leave as one segment, which wakes the target once.  Far below what any socket takes at once. */
enum { CORK_BODY_BYTES_MAX = 8192 };

/* Framing is ours towards the target, whatever came (RFC 9112, 6). */
static bool is_field_ours(struct slice name)
{
    static const char *const names[] = { "content-length", "transfer-encoding", "host", "expect",
                                         "connection" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (http1_name_equals(name, names[i]))
            return true;
    return false;
}

/* ---- the guard and the body ---- */

/* The used connection that libcurl chose, when it can be trusted; else NULL.  libcurl 7.88 looks for a closed one only:
 * an answer that nobody asked for would be taken for the answer to this request.  And a close that came since libcurl
 * looked is seen here, and so is a name that has moved. */
static const struct idle_entry *trusted_connection(const struct transfer *transfer, uint64_t now_ns)
{
    char byte;
    const struct idle_entry *entry =
        idle_table_fresh(&transfer->upstream->connections, transfer->local_port, now_ns);
    bool is_quiet =
        entry != NULL && recv(entry->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    return is_quiet && upstream_name_has_peer(&transfer->upstream->name, entry->fd) ? entry : NULL;
}

static bool is_small_and_plain(const struct transfer *transfer)
{
    const struct flight *flight = transfer->flight;
    const struct settings *settings = transfer->upstream->settings;
    bool has_proxy = upstream_has_proxy(settings);
    return flight->body_bytes > 0 && flight->body_bytes <= CORK_BODY_BYTES_MAX &&
           !settings->target.is_https && !has_proxy;
}

/* 0: not a socket, or none of the internet. */
static int local_port_of(curl_socket_t fd)
{
    struct sockaddr_storage address;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    socklen_t byte_count = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(fd, (struct sockaddr *)&address, &byte_count) != 0)
        return 0;
    memcpy(&in, &address, sizeof in);
    memcpy(&in6, &address, sizeof in6);
    return ntohs(address.ss_family == AF_INET6 ? in6.sin6_port : in.sin_port);
}

/* Of two sockets that were tried side by side the port tells which one it is; where it is the first, nothing is gained. */
static void note_connected(struct transfer *transfer)
{
    metrics_add(COUNTER_TARGET_CONNECTS, 1);
    if (local_port_of(transfer->opened_fd) == transfer->local_port)
        upstream_socket_connected(transfer->upstream, transfer->opened_fd);
}

/* Marks the only moment after which bytes can leave. */
static int first_send(struct transfer *transfer)
{
    struct flight *flight = transfer->flight;
    uint64_t now_ns = clock_monotonic_ns();
    const struct idle_entry *entry =
        transfer->is_connection_new ? NULL : trusted_connection(transfer, now_ns);
    transfer->is_connection_stale = !transfer->is_connection_new && entry == NULL;
    transfer->is_stopped = flight_is_stopped(flight);
    if (transfer->is_stopped || transfer->is_connection_stale) {
        flight->attempt.is_first_refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    if (entry != NULL && is_small_and_plain(transfer))
        upstream_socket_cork(transfer->upstream, entry->fd);
    flight->sent_ns = now_ns;
    metrics_add(COUNTER_TARGET_ATTEMPTS, 1);
    if (transfer->is_connection_new)
        note_connected(transfer);
    return CURL_PREREQFUNC_OK;
}

static int prereq_cb(void *context, char *target_ip, char *local_ip, int target_port, int local_port)
{
    struct transfer *transfer = context;
    (void)target_ip, (void)local_ip, (void)target_port;
    transfer->local_port = local_port;
    if (++transfer->flight->attempt.prereq_count == 1)
        return first_send(transfer);
#ifdef BREAK_PREREQ_GUARD
    return CURL_PREREQFUNC_OK;
#else
    return CURL_PREREQFUNC_ABORT;
#endif
}

static size_t read_cb(char *room, size_t one, size_t count, void *context)
{
    struct transfer *transfer = context;
    const struct flight *flight = transfer->flight;
    size_t room_bytes = one * count, given = 0;
    if (transfer->body_bytes_given > 0 || flight->body_bytes <= room_bytes)
        FAILPOINT("mid_send"); /* the head has left, the body not in full */
    while (given < room_bytes && transfer->part_index < flight->part_count) {
        const struct slice *part = &flight->parts[transfer->part_index];
        size_t left = part->byte_count - transfer->part_offset;
        size_t piece = left < room_bytes - given ? left : room_bytes - given;
        if (piece > 0)
            memcpy(room + given, part->at + transfer->part_offset, piece);
        given += piece;
        transfer->part_offset += piece;
        if (transfer->part_offset == part->byte_count) {
            transfer->part_index++;
            transfer->part_offset = 0;
        }
    }
    transfer->body_bytes_given += given;
    return given;
}

/* libcurl's default, and the note that the connection is not a used one. */
static curl_socket_t open_socket_cb(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = context;
    (void)purpose;
    transfer->is_connection_new = true;
    struct name *name = &transfer->upstream->name;
    if (transfer->name_generation == name->generation)
        name->is_loaded = true; /* it got past the look-up: the cache has these addresses */
    curl_socket_t fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    transfer->opened_fd = fd;
    upstream_socket_opened(transfer->upstream, fd);
    return fd;
}

/* May come long after the transfer that opened it. */
static int close_socket_cb(void *context, curl_socket_t fd)
{
    upstream_socket_closing(context, fd);
    return close(fd);
}

/* ---- options that never change ---- */

static void set_connection(CURL *easy, const struct settings *settings)
{
    /* "" keeps http_proxy, all_proxy and no_proxy of the environment away; CURLOPT_PROXY(3). */
    bool has_proxy = upstream_has_proxy(settings);
    curl_easy_setopt(easy, CURLOPT_PROXY, has_proxy ? settings->target_proxy : "");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)settings->target_timeout_ms);
    /* Only tidies up: idle for its whole seconds plus one.  The guard is exact. */
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)(settings->target_idle_ms / MS_PER_S));
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, settings->target_idle_ms == 0 ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 32768L);
}

/* What our files hold goes into the context of each connection: they are read when they are checked, and never in the
 * middle of a change. */
static CURLcode ssl_ctx_cb(CURL *easy, void *context, void *transfer_context)
{
    const struct transfer *transfer = transfer_context;
    const struct credentials *credentials = transfer->upstream->credentials;
    (void)easy;
    if (credentials == NULL || credentials->tls[TLS_USE_TARGET] == NULL)
        return CURLE_OK;
    return tls_client_apply(credentials->tls[TLS_USE_TARGET], context) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

/* False: libcurl was not built with OpenSSL. */
static bool set_tls(struct transfer *transfer)
{
    CURL *easy = transfer->easy;
    const struct settings *settings = transfer->upstream->settings;
    bool has_files = transfer->upstream->credentials != NULL &&
                     transfer->upstream->credentials->tls[TLS_USE_TARGET] != NULL;
    long verify = settings->is_target_verified ? 1L : 0L;
    bool has_own_authorities = settings->target_ca_file != NULL && settings->target_ca_file[0] != '\0';
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verify);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, verify * 2);
    /* One file and no folder: only then does libcurl keep what it has read, and the system's bundle takes
     * milliseconds.  Of our own authorities it must read and keep nothing: they come with the callback. */
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, has_own_authorities ? 0L : 300L);
    if (has_own_authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    if (has_files) /* a session from before a change of them would go on with what it began with */
        curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, transfer);
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, ssl_ctx_cb) == CURLE_OK;
}

static void set_callbacks(struct transfer *transfer)
{
    CURL *easy = transfer->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, prereq_cb);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket_cb);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket_cb);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer->upstream);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_cb);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, transfer_on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, transfer_on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
}

struct transfer *transfer_new(struct upstream *upstream)
{
    struct transfer *transfer = calloc(1, sizeof *transfer);
    CURL *easy = curl_easy_init();
    if (transfer == NULL || easy == NULL) {
        free(transfer);
        curl_easy_cleanup(easy);
        return NULL;
    }
    transfer->easy = easy;
    transfer->upstream = upstream;
    set_connection(easy, upstream->settings);
    set_callbacks(transfer);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (!set_tls(transfer) || curl_easy_setopt(easy, CURLOPT_CURLU, upstream->url) != CURLE_OK) {
        transfer_free(transfer);
        return NULL;
    }
    return transfer;
}

void transfer_free(struct transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    free(transfer->nodes);
    free(transfer->text);
    free(transfer);
}

bool transfer_is_outdated(const struct transfer *transfer)
{
    return transfer->credentials_generation != transfer->upstream->credentials_generation;
}

/* ---- options of one request ---- */

bool flight_is_valid(const struct flight *flight)
{
    /* The codec has looked already.  libcurl sends any line end in these as it is, so we look once more. */
    if (!http1_token_is_valid(flight->method) || !http1_value_is_valid(flight->host))
        return false;
    if (!slice_equals_text(flight->target, "*") && !http1_target_is_valid(flight->target))
        return false;
    for (size_t i = 0; i < flight->field_count; i++)
        if (!http1_token_is_valid(flight->fields[i].name) || !http1_value_is_valid(flight->fields[i].value))
            return false;
    return true;
}

/* The arena is sized first and filled then: nodes point into it. */
static bool make_room(struct transfer *transfer)
{
    const struct flight *flight = transfer->flight;
    const struct upstream *upstream = transfer->upstream;
    size_t nodes = flight->field_count + REMOVER_COUNT + 2;
    size_t text = 512 + flight->host.byte_count + flight->method.byte_count + flight->target.byte_count +
                  strlen(upstream->target_prefix) + strlen(upstream->settings->target.base_query);
    for (size_t i = 0; i < flight->field_count; i++)
        text += flight->fields[i].name.byte_count + flight->fields[i].value.byte_count + 4;
    if (nodes > transfer->node_room) {
        struct curl_slist *larger = realloc(transfer->nodes, nodes * sizeof *larger);
        if (larger == NULL)
            return false;
        transfer->nodes = larger;
        transfer->node_room = nodes;
    }
    if (text > transfer->text_room) {
        char *larger = realloc(transfer->text, text);
        if (larger == NULL)
            return false;
        transfer->text = larger;
        transfer->text_room = text;
    }
    return true;
}

/* A place in the arena; make_room() has counted. */
struct pen {
    char *at;
    struct curl_slist *node;
};

static void put(struct pen *pen, struct slice bytes)
{
    if (bytes.byte_count > 0)
        memcpy(pen->at, bytes.at, bytes.byte_count);
    pen->at += bytes.byte_count;
}

/* One list entry.  "Name: value" is sent as it is; "Name;" sends "Name:"; "Name:" keeps libcurl's own away
 * (CURLOPT_HTTPHEADER(3)). */
static void put_entry(struct pen *pen, struct slice name, const char *separator, struct slice value)
{
    *pen->node = (struct curl_slist){ .data = pen->at, .next = pen->node + 1 };
    pen->node++;
    put(pen, name);
    put(pen, slice_of_text(separator));
    put(pen, value);
    *pen->at++ = '\0';
}

static struct curl_slist *put_fields(struct transfer *transfer, struct pen *pen)
{
    const struct flight *flight = transfer->flight;
    const struct slice none = { "", 0 };
    pen->node = transfer->nodes;
    if (flight->host.byte_count > 0)
        put_entry(pen, slice_of_text("Host"), ": ", flight->host);
    for (size_t i = 0; i < flight->field_count; i++) {
        const struct http1_field *field = &flight->fields[i];
        if (!is_field_ours(field->name))
            put_entry(pen, field->name, field->value.byte_count > 0 ? ": " : ";", field->value);
    }
    for (size_t i = 0; i < REMOVER_COUNT; i++) {
        const struct slice name = slice_of_text(removers[i]);
        bool is_sent = false;
        for (size_t k = 0; k < flight->field_count && !is_sent; k++)
            is_sent =
                slice_equals_caseless(flight->fields[k].name, name) && !is_field_ours(flight->fields[k].name);
        if (!is_sent)
            put_entry(pen, name, ":", none);
    }
    /* RFC 9112, 9.3: whoever keeps no connection says so. */
    if (transfer->upstream->settings->target_idle_ms == 0)
        put_entry(pen, slice_of_text("Connection"), ": ", slice_of_text("close"));
    pen->node[-1].next = NULL;
    return transfer->nodes;
}

/* Base path, the request's own target byte for byte, and between its path and query the base query. */
static const char *put_target(struct transfer *transfer, struct pen *pen)
{
    const char *start = pen->at;
    const struct slice target = transfer->flight->target;
    const char *base_query = transfer->upstream->settings->target.base_query;
    if (slice_equals_text(target, "*")) {
        put(pen, slice_of_text("*"));
        *pen->at++ = '\0';
        return start;
    }
    const char *mark = memchr(target.at, '?', target.byte_count);
    size_t path_bytes = mark == NULL ? target.byte_count : (size_t)(mark - target.at);
    put(pen, slice_of_text(transfer->upstream->target_prefix));
    put(pen, slice_of(target.at, path_bytes));
    if (base_query[0] != '\0') {
        put(pen, slice_of_text("?"));
        put(pen, slice_of_text(base_query));
        if (mark != NULL)
            put(pen, slice_of_text("&"));
    } else if (mark != NULL) {
        put(pen, slice_of_text("?"));
    }
    if (mark != NULL)
        put(pen, slice_of(mark + 1, target.byte_count - path_bytes - 1));
    *pen->at++ = '\0';
    return start;
}

/* POST only tells libcurl that there is a body of known length; the method's name goes as it came. */
static bool set_method(struct transfer *transfer, struct pen *pen)
{
    const struct flight *flight = transfer->flight;
    CURL *easy = transfer->easy;
    if (flight->has_body) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)flight->body_bytes);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    if (flight->is_head_request)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (slice_equals_text(flight->method, transfer->method))
        return true;
    const char *text = pen->at;
    put(pen, flight->method);
    *pen->at++ = '\0';
    transfer->method[0] = '\0';
    if (curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, text) != CURLE_OK)
        return false;
    if (flight->method.byte_count < sizeof transfer->method)
        memcpy(transfer->method, text, flight->method.byte_count + 1);
    return true;
}

bool transfer_fill(struct transfer *transfer)
{
    struct upstream *upstream = transfer->upstream;
    if (!make_room(transfer))
        return false;
    CURL *easy = transfer->easy;
    struct pen pen = { .at = transfer->text };
    transfer->part_index = transfer->part_offset = transfer->body_bytes_given = 0;
    transfer->local_port = 0;
    transfer->name_generation = upstream->name.generation;
    transfer->credentials_generation = upstream->credentials_generation;
    transfer->is_connection_new = false;
    transfer->head_bytes = transfer->head_room = transfer->answer_room = 0;
    transfer->is_too_large = transfer->is_out_of_memory = false;
    transfer->idle_limit_ms = idle_limit_ms(upstream->settings->target_idle_ms, IDLE_TIMEOUT_NONE);
    transfer->error[0] = '\0';
    bool is_fresh = upstream->settings->target_idle_ms == 0 || transfer->is_connection_stale;
    transfer->is_connection_stale = false;
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, is_fresh ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, put_fields(transfer, &pen));
    bool is_named = !upstream->name.is_literal && !upstream->name.is_loaded;
    curl_easy_setopt(easy, CURLOPT_RESOLVE, is_named ? &upstream->name.entry : NULL);
    return set_method(transfer, &pen) &&
           curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, put_target(transfer, &pen)) == CURLE_OK;
}
