/*
 * upstream_response.c - what comes back, and why it ended.
 *
 * The head counts once its empty line has come: libcurl reports success and the status for a head that was cut off.
 * One malformed head passes unseen: where a line behind the status line begins with a NUL byte, libcurl 7.88 drops it and
 * all that it has read with it (its loop over the lines ends at a NUL), and we are shown a head without these lines.
 * What the attempt proves is decided in outcome.c.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"
#include "failpoint.h"
#include "metrics.h"
#include "upstream_internal.h"

/* Room for WANTED bytes; false: no memory, and what is there stays. */
static bool grow(char **bytes, size_t *room, size_t wanted)
{
    if (wanted <= *room)
        return true;
    size_t larger = *room * 2 > wanted ? *room * 2 : wanted;
    char *moved = realloc(*bytes, larger);
    if (moved == NULL)
        return false;
    *bytes = moved;
    *room = larger;
    return true;
}

/* How long the connection may be kept after this answer. */
static void note_idle_limit(struct transfer *transfer)
{
    static const char old[] = "HTTP/1.0";
    const struct flight *flight = transfer->flight;
    const struct http1_response *response = &flight->response;
    const struct http1_field *keep_alive =
        http1_field_find(response->fields, response->field_count, "keep-alive");
    if (keep_alive != NULL)
        transfer->idle_limit_ms = idle_limit_ms(transfer->upstream->settings->target_idle_ms,
                                                idle_timeout_seconds(keep_alive->value));
    /* On such a connection libcurl would send the next request as HTTP/1.0 too. */
    if (strncmp(flight->head_bytes, old, sizeof old - 1) == 0)
        transfer->idle_limit_ms = 0;
}

/* A head is whole.  False: it cannot be trusted, and the connection must end. */
static bool head_is_good(struct transfer *transfer)
{
    struct flight *flight = transfer->flight;
    struct http1_response *response = &flight->response;
    flight->attempt.is_framing_consistent =
        http1_response(flight->head_bytes, transfer->head_bytes, response) == HTTP1_DONE;
    if (!flight->attempt.is_framing_consistent) {
        flight->attempt.is_head_complete = true;
        return false;
    }
    if (response->status < 200 && response->status != 101) {
        transfer->head_bytes = 0; /* not the answer yet (RFC 9110, 15.2) */
        flight->attempt.is_framing_consistent = false;
        return true;
    }
    flight->attempt.is_head_complete = true;
    flight->attempt.is_upgrade = response->status == 101;
    if (flight->attempt.is_upgrade)
        return false; /* libcurl 7.88 would wait for another head until the deadline */
    note_idle_limit(transfer);
    return true;
}

size_t transfer_on_header(char *line, size_t one, size_t byte_count, void *context)
{
    struct transfer *transfer = context;
    struct flight *flight = transfer->flight;
    byte_count *= one;
    if (transfer->head_bytes == 0)
        FAILPOINT("after_send"); /* the first line of an answer: the target has the request */
    if (flight->attempt.is_head_complete)
        return byte_count; /* trailers: dropped (RFC 9110, 6.5) */
    size_t room_wanted = transfer->head_bytes + byte_count;
    if (!grow(&flight->head_bytes, &transfer->head_room, room_wanted < 512 ? 512 : room_wanted)) {
        transfer->is_out_of_memory = true;
        return 0;
    }
    memcpy(flight->head_bytes + transfer->head_bytes, line, byte_count);
    transfer->head_bytes += byte_count;
    bool is_end =
        (byte_count == 2 && line[0] == '\r' && line[1] == '\n') || (byte_count == 1 && line[0] == '\n');
    return !is_end || head_is_good(transfer) ? byte_count : 0;
}

size_t transfer_on_body(char *bytes, size_t one, size_t byte_count, void *context)
{
    struct transfer *transfer = context;
    struct flight *flight = transfer->flight;
    const struct http1_response *response = &flight->response;
    uint64_t bytes_max = transfer->upstream->settings->response_bytes_max;
    byte_count *= one;
    uint64_t whole = flight->answer_bytes + byte_count;
    if (flight->attempt.is_head_complete && response->is_length_known && response->length_bytes > whole)
        whole = response->length_bytes; /* one allocation for all of it */
    if (whole > bytes_max) {
        transfer->is_too_large = true;
        return 0;
    }
    if (!grow(&flight->answer, &transfer->answer_room, (size_t)whole)) {
        transfer->is_out_of_memory = true;
        return 0;
    }
    memcpy(flight->answer + flight->answer_bytes, bytes, byte_count);
    flight->answer_bytes += byte_count;
    return byte_count;
}

const char *attempt_error_name(enum attempt_error error)
{
    static const char *const names[] = {
        [ATTEMPT_ERROR_NONE] = "none",         [ATTEMPT_ERROR_DNS] = "dns",
        [ATTEMPT_ERROR_CONNECT] = "connect",   [ATTEMPT_ERROR_TLS] = "tls",
        [ATTEMPT_ERROR_QUEUE] = "queue",       [ATTEMPT_ERROR_TIMEOUT] = "timeout",
        [ATTEMPT_ERROR_CLOSED] = "closed",     [ATTEMPT_ERROR_GUARD] = "second_send_stopped",
        [ATTEMPT_ERROR_PROTOCOL] = "protocol", [ATTEMPT_ERROR_TOO_LARGE] = "too_large",
        [ATTEMPT_ERROR_STOPPED] = "stopped",
    };
    return names[error];
}

static void error_count(enum attempt_error error)
{
    static const int counters[] = {
        [ATTEMPT_ERROR_NONE] = -1,
        [ATTEMPT_ERROR_STOPPED] = -1,
        [ATTEMPT_ERROR_DNS] = COUNTER_TARGET_ERROR_DNS,
        [ATTEMPT_ERROR_CONNECT] = COUNTER_TARGET_ERROR_CONNECT,
        [ATTEMPT_ERROR_TLS] = COUNTER_TARGET_ERROR_TLS,
        [ATTEMPT_ERROR_QUEUE] = COUNTER_TARGET_ERROR_QUEUE,
        [ATTEMPT_ERROR_TIMEOUT] = COUNTER_TARGET_ERROR_TIMEOUT,
        [ATTEMPT_ERROR_CLOSED] = COUNTER_TARGET_ERROR_CLOSED,
        [ATTEMPT_ERROR_GUARD] = COUNTER_TARGET_ERROR_GUARD,
        [ATTEMPT_ERROR_PROTOCOL] = COUNTER_TARGET_ERROR_PROTOCOL,
        [ATTEMPT_ERROR_TOO_LARGE] = COUNTER_TARGET_ERROR_PROTOCOL,
    };
    if (counters[error] >= 0)
        metrics_add((enum counter)counters[error], 1);
}

static bool is_tls_error(CURLcode rc)
{
    static const CURLcode codes[] = {
        CURLE_SSL_CONNECT_ERROR,        CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CERTPROBLEM,          CURLE_SSL_CIPHER,
        CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_ISSUER_ERROR,
        CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_SSL_CLIENTCERT,           CURLE_SSL_ENGINE_NOTFOUND,
        CURLE_SSL_ENGINE_SETFAILED,     CURLE_USE_SSL_FAILED,
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (rc == codes[i])
            return true;
    return false;
}

static enum attempt_error error_before_send(CURLcode rc)
{
    if (rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_RESOLVE_PROXY)
        return ATTEMPT_ERROR_DNS;
    return is_tls_error(rc) ? ATTEMPT_ERROR_TLS : ATTEMPT_ERROR_CONNECT;
}

static enum attempt_error error_after_send(const struct transfer *transfer, CURLcode rc)
{
    const struct attempt *attempt = &transfer->flight->attempt;
    if (transfer->is_too_large)
        return ATTEMPT_ERROR_TOO_LARGE;
    if (attempt->prereq_count > 1 || rc == CURLE_SEND_FAIL_REWIND)
        return ATTEMPT_ERROR_GUARD;
    if (attempt->is_upgrade || (attempt->is_head_complete && !attempt->is_framing_consistent))
        return ATTEMPT_ERROR_PROTOCOL;
    if (rc == CURLE_OK)
        return attempt->is_head_complete ? ATTEMPT_ERROR_NONE : ATTEMPT_ERROR_CLOSED;
    if (rc == CURLE_OPERATION_TIMEDOUT)
        return ATTEMPT_ERROR_TIMEOUT;
    if (rc == CURLE_GOT_NOTHING || rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR ||
        rc == CURLE_PARTIAL_FILE)
        return ATTEMPT_ERROR_CLOSED;
    return is_tls_error(rc) ? ATTEMPT_ERROR_TLS : ATTEMPT_ERROR_PROTOCOL;
}

static const char *words_of(const struct transfer *transfer, enum attempt_error error, CURLcode rc)
{
    if (transfer->is_out_of_memory)
        return "out of memory";
    switch (error) {
    case ATTEMPT_ERROR_TIMEOUT:
        return "time ran out";
    case ATTEMPT_ERROR_CLOSED:
        return rc == CURLE_RECV_ERROR || rc == CURLE_SEND_ERROR ? "connection reset" : "connection closed";
    case ATTEMPT_ERROR_GUARD:
        return "second send stopped; the connection was lost";
    case ATTEMPT_ERROR_PROTOCOL:
        return transfer->flight->attempt.is_upgrade ? "the target changed protocols"
                                                    : "not a valid HTTP answer";
    case ATTEMPT_ERROR_TOO_LARGE:
        return "larger than SINKONCE_MAX_RESPONSE:";
    case ATTEMPT_ERROR_TLS:
        return "TLS failed";
    case ATTEMPT_ERROR_NONE:
    case ATTEMPT_ERROR_STOPPED:
    case ATTEMPT_ERROR_DNS:
    case ATTEMPT_ERROR_CONNECT:
    case ATTEMPT_ERROR_QUEUE:
        break;
    }
    return "";
}

static const char *moment_of(const struct transfer *transfer)
{
    const struct flight *flight = transfer->flight;
    if (flight->attempt.is_head_complete)
        return "in the answer";
    if (transfer->head_bytes > 0)
        return "inside the head of the answer";
    if (flight->has_body && transfer->body_bytes_given < flight->body_bytes)
        return "while the request was sent";
    return "after the request was sent";
}

/* Not known, or cut: with a length that was announced even where libcurl is content. */
static bool is_damaged(const struct transfer *transfer, CURLcode rc)
{
    const struct flight *flight = transfer->flight;
    const struct http1_response *response = &flight->response;
    bool has_no_body = flight->is_head_request || response->status == 204 || response->status == 304;
    if (rc != CURLE_OK)
        return true;
    return !has_no_body && response->is_length_known && response->length_bytes != flight->answer_bytes;
}

#ifdef BREAK_HEAD_COMPLETE
static void believe_the_library(struct transfer *transfer, CURLcode rc)
{
    long status = 0;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (rc != CURLE_OK || transfer->flight->attempt.is_head_complete)
        return;
    transfer->flight->attempt.is_head_complete = transfer->flight->attempt.is_framing_consistent = true;
    transfer->flight->response.status = (int)status;
}
#endif

static void judge_unsent(struct transfer *transfer, CURLcode rc)
{
    struct flight *flight = transfer->flight;
    const char *words = transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(rc);
    if (flight->attempt.is_first_refused)
        flight_fail_unsent(flight, transfer->is_stopped ? ATTEMPT_ERROR_STOPPED : ATTEMPT_ERROR_NONE,
                           "stopped before it was sent");
    else
        flight_fail_unsent(flight, error_before_send(rc), words);
}

static void judge_known(struct flight *flight)
{
    int status = flight->response.status;
    metrics_target_response(status);
    if (status >= 200 && status <= 299)
        metrics_gauge_set(GAUGE_TARGET_LAST_SUCCESS_MS, (int64_t)clock_unix_ms());
    else
        (void)snprintf(flight->detail, sizeof flight->detail, "the target answered %d", status);
}

void transfer_judge(struct transfer *transfer, CURLcode rc)
{
    struct flight *flight = transfer->flight;
#ifdef BREAK_HEAD_COMPLETE
    believe_the_library(transfer, rc);
#endif
    flight->attempt_class = attempt_classify(&flight->attempt);
    if (flight->attempt_class == ATTEMPT_NOT_SENT) {
        judge_unsent(transfer, rc);
        return;
    }
    flight->error = error_after_send(transfer, rc);
    flight->detail[0] = '\0';
    if (flight->attempt_class == ATTEMPT_KNOWN) {
        flight->is_answer_damaged = is_damaged(transfer, rc);
        judge_known(flight);
    }
    if (flight->error != ATTEMPT_ERROR_NONE)
        (void)snprintf(flight->detail, sizeof flight->detail, "%s %s", words_of(transfer, flight->error, rc),
                       moment_of(transfer));
    error_count(flight->error);
}

void flight_fail_unsent(struct flight *flight, enum attempt_error error, const char *detail)
{
    flight->attempt_class = ATTEMPT_NOT_SENT;
    flight->error = error;
    (void)snprintf(flight->detail, sizeof flight->detail, "%.*s", (int)sizeof flight->detail - 1, detail);
    error_count(error);
}
