/*
 * admin.c - the admin port: its routes, the way of a request through them, and the forms of an answer.
 *
 * One table says what may be called.  What the calls do stands in admin_health.c, admin_status.c, admin_config.c,
 * admin_metrics.c, admin_list.c, admin_explain.c, admin_change.c and admin_control.c; who may change something is
 * decided in admin_gate.c.
 */
#include "admin.h"
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include "admin_call.h"
#include "admin_gate.h"
#include "json_scan.h"

/* An operator's requests are small; a filter with its reason has some hundred bytes. */
enum { HEAD_BYTES_MAX = 16384, BODY_BYTES_MAX = 65536, ALLOWED_BYTES_MAX = 64 };
enum { HEAD_TIMEOUT_MS = 10000, BODY_TIMEOUT_MS = 30000, IDLE_TIMEOUT_MS = 60000, WRITE_TIMEOUT_MS = 30000 };

static const struct admin_route routes[] = {
    { "/", HTTP1_GET, admin_on_page, ADMIN_READS },
    { "/app.js", HTTP1_GET, admin_on_page, ADMIN_READS },
    { "/app.css", HTTP1_GET, admin_on_page, ADMIN_READS },
    { "/livez", HTTP1_GET, admin_on_livez, ADMIN_PROBES },
    { "/readyz", HTTP1_GET, admin_on_readyz, ADMIN_PROBES },
    { "/startupz", HTTP1_GET, admin_on_startupz, ADMIN_PROBES },
    { "/metrics", HTTP1_GET, admin_on_metrics, ADMIN_READS },
    { "/stats", HTTP1_GET, admin_on_stats, ADMIN_READS },
    { "/version", HTTP1_GET, admin_on_version, ADMIN_READS },
    { "/status", HTTP1_GET, admin_on_status, ADMIN_READS },
    { "/config", HTTP1_GET, admin_on_config, ADMIN_READS },
    { "/partitions", HTTP1_GET, admin_on_partitions, ADMIN_READS },
    { "/partitions/*", HTTP1_GET, admin_on_intervals, ADMIN_READS },
    { "/records", HTTP1_GET, admin_on_record, ADMIN_READS },
    { "/in-doubt", HTTP1_GET, admin_on_doubts, ADMIN_READS },
    { "/in-doubt", HTTP1_POST, admin_on_resolve_many, ADMIN_CHANGES },
    { "/in-doubt/", HTTP1_POST, admin_on_resolve_one, ADMIN_CHANGES },
    { "/conflicts", HTTP1_GET, admin_on_conflicts, ADMIN_READS },
    { "/conflicts/", HTTP1_POST, admin_on_decide, ADMIN_CHANGES },
    { "/replays", HTTP1_GET, admin_on_replays, ADMIN_READS },
    { "/replays", HTTP1_POST, admin_on_replay_open, ADMIN_CHANGES },
    { "/replays/", HTTP1_DELETE, admin_on_replay_close, ADMIN_CHANGES },
    { "/forget", HTTP1_POST, admin_on_forget, ADMIN_CHANGES },
    { "/events", HTTP1_GET, admin_on_events, ADMIN_READS },
    { "/mode", HTTP1_PUT, admin_on_mode, ADMIN_CHANGES },
    { "/log-level", HTTP1_PUT, admin_on_log_level, ADMIN_CHANGES },
    { "/drain", HTTP1_POST, admin_on_drain, ADMIN_CHANGES },
    { "/drain", HTTP1_DELETE, admin_on_resume, ADMIN_CHANGES },
    { "/backup", HTTP1_POST, admin_on_backup, ADMIN_CHANGES },
    { "/explain", HTTP1_POST, admin_on_explain, ADMIN_EXPLAINS },
};
enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

/* ---- answers -------------------------------------------------------------------------------------------------- */

/* TEXT is taken when IS_OWNED. */
static void answer(struct admin_call *call, int status, const char *content_type, char *text, bool is_owned,
                   const struct http1_field *field)
{
    struct http1_field fields[4] = { http1_field_of("Content-Type", content_type),
                                     http1_field_of("X-Content-Type-Options", "nosniff"),
                                     http1_field_of("Cache-Control", "no-store") };
    struct reply reply = { .status = status,
                           .fields = fields,
                           .field_count = 3,
                           .body = slice_of_text(text),
                           .body_owned = is_owned ? text : NULL,
                           .is_body_left_out = call->request->head.method == HTTP1_HEAD,
                           .has_length = true };
    reply.length = reply.body.byte_count;
    if (field != NULL)
        fields[reply.field_count++] = *field;
    if (call->conn != NULL)
        conn_reply(call->conn, &reply);
    else
        free(reply.body_owned);
    call->conn = NULL;
}

static void answer_no_memory(struct admin_call *call)
{
    static char text[] = "{\"error\":\"no-memory\",\"detail\":\"out of memory\"}\n";
    answer(call, 503, "application/json", text, false, NULL);
}

void admin_answer_text(struct admin_call *call, int status, const char *content_type, char *text)
{
    if (text == NULL)
        answer_no_memory(call);
    else
        answer(call, status, content_type, text, true, NULL);
}

/* Measured first, then written: json_dumps() of jansson 2.14 leaves a key out, and says nothing, when it has no memory. */
char *admin_json_dump(const json_t *json, size_t flags, const char *end)
{
    size_t bytes = json == NULL ? 0 : json_dumpb(json, NULL, 0, flags);
    char *text = bytes == 0 ? NULL : malloc(bytes + strlen(end) + 1);
    if (text == NULL || json_dumpb(json, text, bytes, flags) != bytes) {
        free(text);
        return NULL;
    }
    memcpy(text + bytes, end, strlen(end) + 1);
    return text;
}

void admin_answer_json_with(struct admin_call *call, int status, json_t *json,
                            const struct http1_field *field)
{
    /* one line, with its end: whoever asks from a terminal sees the prompt on the next one */
    char *text = admin_json_dump(json, JSON_COMPACT, "\n");
    json_decref(json);
    if (text == NULL)
        answer_no_memory(call);
    else
        answer(call, status, "application/json", text, true, field);
}

void admin_answer_json(struct admin_call *call, int status, json_t *json)
{
    admin_answer_json_with(call, status, json, NULL);
}

void admin_refuse(struct admin_call *call, int status, const char *label, const struct http1_field *field,
                  const char *format, ...)
{
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    admin_answer_json_with(call, status,
                           json_pack("{s:s, s:o}", "error", label, "detail", admin_text_json(detail)), field);
}

json_t *admin_time_json(uint64_t time_ms)
{
    char text[64];
    struct tm parts;
    time_t seconds = (time_t)(time_ms / 1000);
    if (time_ms == 0 || gmtime_r(&seconds, &parts) == NULL)
        return json_null();
    size_t bytes = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + bytes, sizeof text - bytes, ".%03uZ", (unsigned)(time_ms % 1000));
    return json_string(text);
}

json_t *admin_id_json(uint64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, id);
    return json_string(text);
}

json_t *admin_text_json(const char *text)
{
    char plain[512];
    size_t bytes = 0;
    json_t *json = json_string(text);
    if (json != NULL)
        return json;
    for (; text[bytes] != '\0' && bytes < sizeof plain - 1; bytes++)
        plain[bytes] = (char)((unsigned char)text[bytes] >= 0x80 ? '?' : text[bytes]);
    plain[bytes] = '\0';
    return json_string(plain);
}

/* ---- questions to the ledger ---------------------------------------------------------------------------------- */

/* The one place that frees a call. */
static void call_free(struct admin_call *call)
{
    assert(call->conn == NULL);
    json_decref(call->made);
    store_question_deinit(&call->question);
    request_free(call->request);
    free(call);
}

static void refuse_ledger(struct admin_call *call)
{
    struct http1_field field = http1_field_of("Retry-After", "1");
    admin_refuse(call, 503, "ledger-failed", &field,
                 "the ledger could not answer; /status and the log say more, nothing is known to be changed");
}

static void on_answered(struct question *question, enum store_status status)
{
    struct admin_call *call = (struct admin_call *)((char *)question - offsetof(struct admin_call, question));
    assert(call->admin->open_count > 0);
    call->admin->open_count--;
    call->is_asked = false;
    call->is_ledger_failed = status != STORE_OK || question->ret_status == QUESTION_FAILED;
    if (call->is_ledger_failed && !call->is_always_rendered)
        refuse_ledger(call);
    else
        call->render(call);
    if (!call->is_asked)
        call_free(call);
}

void admin_ask(struct admin_call *call, void (*render)(struct admin_call *call))
{
    struct http1_field field = http1_field_of("Retry-After", "1");
    if (call->admin->open_count >= ADMIN_OPEN_MAX) {
        admin_refuse(call, 503, "busy", &field, "%d questions are waiting for the ledger already",
                     ADMIN_OPEN_MAX);
        return;
    }
    call->admin->open_count++;
    call->is_asked = true;
    call->render = render;
    call->question.done = on_answered;
    if (call->conn != NULL)
        conn_exchange_set(call->conn, call);
    store_ask(call->admin->parts.port, &call->question);
}

static void render_noted(struct admin_call *call)
{
    json_t *json = call->made;
    call->made = NULL;
    json_object_set_new(json, "noted", json_boolean(!call->is_ledger_failed));
    admin_answer_json(call, 200, json);
}

/* What was changed is changed: a ledger that cannot keep the note must not make it look undone. */
void admin_note(struct admin_call *call, const char *detail, json_t *json)
{
    call->made = json;
    call->is_always_rendered = true;
    call->is_ledger_failed = true;
    call->question.kind = DO_NOTE;
    snprintf(call->question.detail, sizeof call->question.detail, "%s", detail);
    if (call->admin->open_count >= ADMIN_OPEN_MAX)
        render_noted(call);
    else
        admin_ask(call, render_noted);
}

struct note {
    struct admin *admin; /* borrowed */
    struct question question;
};

static void on_noted(struct question *question, enum store_status status)
{
    struct note *note = (struct note *)(void *)((char *)question - offsetof(struct note, question));
    (void)status; /* the log has it */
    note->admin->open_count--;
    store_question_deinit(question);
    free(note);
}

void admin_event_note(struct admin *admin, const char *detail)
{
    struct note *note = admin->open_count < ADMIN_OPEN_MAX ? calloc(1, sizeof *note) : NULL;
    if (note == NULL)
        return;
    note->admin = admin;
    note->question = (struct question){ .kind = DO_NOTE, .partition = -1, .done = on_noted };
    snprintf(note->question.detail, sizeof note->question.detail, "%s", detail);
    admin->open_count++;
    store_ask(admin->parts.port, &note->question);
}

/* ---- from the request to its handler ---------------------------------------------------------------------------- */

static bool path_matches(const struct admin_route *route, struct slice path, uint64_t *ret_id,
                         struct slice *ret_rest)
{
    size_t bytes = strlen(route->path);
    if (route->path[bytes - 1] == '*') {
        bool is_below = path.byte_count >= bytes && memcmp(path.at, route->path, bytes - 1) == 0;
        *ret_rest = is_below ? slice_of(path.at + bytes - 1, path.byte_count - bytes + 1) : slice_of("", 0);
        return is_below;
    }
    if (bytes == 1 || route->path[bytes - 1] != '/')
        return slice_equals_text(path, route->path);
    return path.byte_count > bytes && memcmp(path.at, route->path, bytes) == 0 &&
           decimal_read(slice_of(path.at + bytes, path.byte_count - bytes), UINT64_MAX, ret_id);
}

static bool method_matches(const struct admin_route *route, enum http1_method method)
{
    return route->method == method || (route->method == HTTP1_GET && method == HTTP1_HEAD);
}

/* NULL: there is none; RET_ALLOWED says which methods the path has, "" when it is no path of ours. */
static const struct admin_route *route_find(struct admin_call *call, char ret_allowed[ALLOWED_BYTES_MAX])
{
    static const char *const names[HTTP1_METHOD_COUNT] = {
        [HTTP1_GET] = "GET, HEAD", [HTTP1_POST] = "POST", [HTTP1_PUT] = "PUT", [HTTP1_DELETE] = "DELETE"
    };
    const struct http1_head *head = &call->request->head;
    ret_allowed[0] = '\0';
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!path_matches(&routes[i], head->path, &call->id, &call->rest))
            continue;
        if (method_matches(&routes[i], head->method))
            return &routes[i];
        size_t used = strlen(ret_allowed);
        snprintf(ret_allowed + used, ALLOWED_BYTES_MAX - used, "%s%s", used == 0 ? "" : ", ",
                 names[routes[i].method]);
    }
    return NULL;
}

/* TYPE, perhaps with parameters (RFC 9110, 8.3.1). */
bool admin_has_type(const struct admin_call *call, const char *type)
{
    size_t bytes = strlen(type);
    const struct http1_head *head = &call->request->head;
    const struct http1_field *field = http1_field_find(head->fields, head->field_count, "content-type");
    if (field == NULL || field->value.byte_count < bytes || strncasecmp(field->value.at, type, bytes) != 0)
        return false;
    struct slice rest = slice_of(field->value.at + bytes, field->value.byte_count - bytes);
    return rest.byte_count == 0 || rest.at[0] == ';' || rest.at[0] == ' ' || rest.at[0] == '\t';
}

/* True: the change may go on. */
static bool gate_pass(struct admin_call *call)
{
    const struct request *request = call->request;
    const struct http1_field challenge = http1_field_of("WWW-Authenticate", "Bearer realm=\"sinkonce\"");
    const struct credentials *credentials = call->admin->credentials;
    const struct settings *settings =
        credentials == NULL ? call->admin->parts.settings : &credentials->settings;
    enum gate gate = admin_gate(request, settings->admin_token);
    if (gate == GATE_OPEN)
        return true;
    LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "admin.denied", "a change was refused at the admin port",
                      log_text("peer", request->peer), log_slice("path", request->head.path),
                      log_text("reason", admin_gate_label(gate)));
    admin_refuse(call, admin_gate_status(gate), admin_gate_label(gate),
                 gate == GATE_NOT_AUTHORIZED ? &challenge : NULL, "%s", admin_gate_sentence(gate));
    return false;
}

/* A body that a page may send without asking first is not taken: its type must be one that no form has. */
static bool type_pass(struct admin_call *call, const struct admin_route *route)
{
    bool has_body = call->request->body_bytes > 0 || call->request->head.method != HTTP1_DELETE;
    if (route->kind == ADMIN_READS || route->kind == ADMIN_PROBES ||
        (route->kind == ADMIN_CHANGES && !has_body) || admin_has_type(call, "application/json") ||
        (route->kind == ADMIN_EXPLAINS && admin_has_type(call, "application/http")))
        return true;
    if (route->kind == ADMIN_EXPLAINS)
        admin_refuse(call, 415, "bad-type", NULL,
                     "send the request as Content-Type: application/json or application/http");
    else
        admin_refuse(call, 415, "not-json", NULL, "send the change as Content-Type: application/json");
    return false;
}

static void call_run(struct admin_call *call)
{
    char allowed[ALLOWED_BYTES_MAX];
    struct http1_field field = { .name = slice_of_text("Allow") };
    const struct admin_route *route = route_find(call, allowed);
    field.value = slice_of_text(allowed);
    if (call->is_health && (route == NULL || route->kind != ADMIN_PROBES))
        admin_refuse(call, 404, "not-found", NULL, "only the probes are answered here");
    else if (route == NULL && allowed[0] == '\0')
        admin_refuse(call, 404, "not-found", NULL, "there is nothing at this path");
    else if (route == NULL)
        admin_refuse(call, 405, "method-not-allowed", &field, "this path takes %s", allowed);
    else if ((route->kind == ADMIN_CHANGES && !gate_pass(call)) || !type_pass(call, route))
        return;
    else
        route->handler(call);
}

static void call_begin(struct admin *admin, struct conn *conn, struct request **request, bool is_health)
{
    struct admin_call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        struct reply reply = { .status = 503, .is_closing = true };
        request_free(*request);
        *request = NULL;
        conn_reply(conn, &reply);
        return;
    }
    call->admin = admin;
    call->conn = conn;
    call->request = *request;
    *request = NULL;
    call->is_health = is_health;
    call->question.partition = -1;
    call_run(call);
    if (!call->is_asked)
        call_free(call);
}

static void on_request(void *context, struct conn *conn, struct request **request)
{
    call_begin(context, conn, request, false);
}

static void on_health_request(void *context, struct conn *conn, struct request **request)
{
    call_begin(context, conn, request, true);
}

static void on_gone(void *context, void *exchange)
{
    struct admin_call *call = exchange;
    (void)context;
    call->conn = NULL;
}

static void on_refused(void *context, const char *peer, enum finish why)
{
    (void)context;
    LOG_EVENT_LIMITED(LOG_LEVEL_INFO, "admin.refused", "a malformed request came to the admin port",
                      log_text("peer", peer), log_text("reason", finish_rows[why].label));
}

static void on_handshake_failed(void *context, const char *peer, enum tls_failure failure, const char *words)
{
    (void)context;
    tls_failure_tell("SINKONCE_ADMIN_LISTEN", peer, failure, words);
}

/* Operators and scrapers may leave whenever they like. */
static void on_abort(void *context, const char *peer, bool is_reading)
{
    (void)context;
    (void)peer;
    (void)is_reading;
}

static void on_closed(void *context)
{
    (void)context;
}

struct admin *admin_new(const struct admin_parts *parts)
{
    struct admin *admin = calloc(1, sizeof *admin);
    if (admin == NULL)
        return NULL;
    admin->parts = *parts;
    admin->service = (struct conn_service){ .context = admin,
                                            .head_bytes_max = HEAD_BYTES_MAX,
                                            .body_bytes_max = BODY_BYTES_MAX,
                                            .retry_after = "1",
                                            .head_timeout_ms = HEAD_TIMEOUT_MS,
                                            .body_timeout_ms = BODY_TIMEOUT_MS,
                                            .idle_timeout_ms = IDLE_TIMEOUT_MS,
                                            .write_timeout_ms = WRITE_TIMEOUT_MS,
                                            .on_request = on_request,
                                            .on_gone = on_gone,
                                            .on_refused = on_refused,
                                            .on_handshake_failed = on_handshake_failed,
                                            .on_abort = on_abort,
                                            .on_closed = on_closed };
    admin->health_service = admin->service;
    admin->health_service.on_request = on_health_request;
    return admin;
}

void admin_free(struct admin *admin)
{
    assert(admin == NULL || admin->open_count == 0);
    if (admin != NULL)
        credentials_release(admin->credentials);
    free(admin);
}

void admin_credentials_set(struct admin *admin, struct credentials *credentials)
{
    struct credentials *old = admin->credentials;
    admin->credentials = credentials_hold(credentials);
    admin->service.tls = credentials->tls[TLS_USE_ADMIN];
    credentials_release(old);
}

struct conn_service *admin_service(struct admin *admin)
{
    return &admin->service;
}

struct conn_service *admin_health_service(struct admin *admin)
{
    return &admin->health_service;
}

size_t admin_open_count(const struct admin *admin)
{
    return admin->open_count;
}
