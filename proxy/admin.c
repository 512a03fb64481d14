/*
 * admin.c - the admin port: its routes, the way of a request through them, and the forms of an answer.
 *
 * One table says what may be called.  What the calls do stands in admin_health.c, admin_status.c, admin_config.c,
 * admin_list.c and admin_change.c; who may change something is decided in admin_gate.c.
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
#include "admin_query.h"

/* An operator's requests are small; a filter with its reason has some hundred bytes. */
enum { HEAD_BYTES_MAX = 16384, BODY_BYTES_MAX = 65536, ALLOWED_BYTES_MAX = 32 };
enum { HEAD_TIMEOUT_MS = 10000, BODY_TIMEOUT_MS = 30000, IDLE_TIMEOUT_MS = 60000, WRITE_TIMEOUT_MS = 30000 };

static const struct admin_route routes[] = {
    { "/livez", HTTP1_GET, admin_on_livez, false },
    { "/readyz", HTTP1_GET, admin_on_readyz, false },
    { "/startupz", HTTP1_GET, admin_on_startupz, false },
    { "/metrics", HTTP1_GET, admin_on_metrics, false },
    { "/version", HTTP1_GET, admin_on_version, false },
    { "/status", HTTP1_GET, admin_on_status, false },
    { "/config", HTTP1_GET, admin_on_config, false },
    { "/partitions", HTTP1_GET, admin_on_partitions, false },
    { "/records", HTTP1_GET, admin_on_record, false },
    { "/in-doubt", HTTP1_GET, admin_on_doubts, false },
    { "/in-doubt", HTTP1_POST, admin_on_resolve_many, true },
    { "/in-doubt/", HTTP1_POST, admin_on_resolve_one, true },
    { "/conflicts", HTTP1_GET, admin_on_conflicts, false },
    { "/conflicts/", HTTP1_POST, admin_on_decide, true },
    { "/events", HTTP1_GET, admin_on_events, false },
};
enum { ROUTE_COUNT = sizeof routes / sizeof routes[0] };

/* ---- answers -------------------------------------------------------------------------------------------------- */

static struct http1_field field_of(const char *name, const char *value)
{
    return (struct http1_field){ slice_of_text(name), slice_of_text(value) };
}

/* TEXT is taken when IS_OWNED. */
static void answer(struct admin_call *call, int status, const char *content_type, char *text, bool is_owned,
                   const struct http1_field *field)
{
    struct http1_field fields[4] = { field_of("Content-Type", content_type),
                                     field_of("X-Content-Type-Options", "nosniff"),
                                     field_of("Cache-Control", "no-store") };
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

/* One line, with its end: whoever asks from a terminal sees the prompt on the next one. */
static char *json_line(const json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    size_t bytes = text == NULL ? 0 : strlen(text);
    char *line = text == NULL ? NULL : realloc(text, bytes + 2);
    if (line == NULL) {
        free(text);
        return NULL;
    }
    memcpy(line + bytes, "\n", 2);
    return line;
}

static void answer_json(struct admin_call *call, int status, json_t *json, const struct http1_field *field)
{
    char *text = json_line(json);
    json_decref(json);
    if (text == NULL)
        answer_no_memory(call);
    else
        answer(call, status, "application/json", text, true, field);
}

void admin_answer_json(struct admin_call *call, int status, json_t *json)
{
    answer_json(call, status, json, NULL);
}

void admin_refuse(struct admin_call *call, int status, const char *label, const struct http1_field *field,
                  const char *format, ...)
{
    char detail[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    answer_json(call, status, json_pack("{s:s, s:o}", "error", label, "detail", admin_text_json(detail)),
                field);
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
    store_question_deinit(&call->question);
    request_free(call->request);
    free(call);
}

static void refuse_ledger(struct admin_call *call)
{
    struct http1_field field = field_of("Retry-After", "1");
    admin_refuse(call, 503, "ledger-failed", &field,
                 "the ledger could not answer; /status and the log say more, nothing is known to be changed");
}

static void on_answered(struct question *question, enum store_status status)
{
    struct admin_call *call = (struct admin_call *)((char *)question - offsetof(struct admin_call, question));
    assert(call->admin->open_count > 0);
    call->admin->open_count--;
    if (status != STORE_OK || question->ret_status == QUESTION_FAILED)
        refuse_ledger(call);
    else
        call->render(call);
    call_free(call);
}

void admin_ask(struct admin_call *call, void (*render)(struct admin_call *call))
{
    struct http1_field field = field_of("Retry-After", "1");
    if (call->admin->open_count >= ADMIN_OPEN_MAX) {
        admin_refuse(call, 503, "busy", &field, "%d questions are waiting for the ledger already",
                     ADMIN_OPEN_MAX);
        return;
    }
    call->admin->open_count++;
    call->is_asked = true;
    call->render = render;
    call->question.done = on_answered;
    conn_exchange_set(call->conn, call);
    store_ask(call->admin->port, &call->question);
}

/* ---- from the request to its handler ---------------------------------------------------------------------------- */

static bool path_matches(const struct admin_route *route, struct slice path, uint64_t *ret_id)
{
    size_t bytes = strlen(route->path);
    if (route->path[bytes - 1] != '/')
        return slice_equals_text(path, route->path);
    return path.byte_count > bytes && memcmp(path.at, route->path, bytes) == 0 &&
           admin_number_read(slice_of(path.at + bytes, path.byte_count - bytes), UINT64_MAX, ret_id);
}

static bool method_matches(const struct admin_route *route, enum http1_method method)
{
    return route->method == method || (route->method == HTTP1_GET && method == HTTP1_HEAD);
}

/* NULL: there is none; RET_ALLOWED says which methods the path has, "" when it is no path of ours. */
static const struct admin_route *route_find(const struct http1_head *head, uint64_t *ret_id,
                                            char ret_allowed[ALLOWED_BYTES_MAX])
{
    ret_allowed[0] = '\0';
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (!path_matches(&routes[i], head->path, ret_id))
            continue;
        if (method_matches(&routes[i], head->method))
            return &routes[i];
        size_t used = strlen(ret_allowed);
        snprintf(ret_allowed + used, ALLOWED_BYTES_MAX - used, "%s%s", used == 0 ? "" : ", ",
                 routes[i].method == HTTP1_GET ? "GET, HEAD" : "POST");
    }
    return NULL;
}

/* "application/json", perhaps with parameters (RFC 9110, 8.3.1). */
static bool is_json(const struct http1_head *head)
{
    static const char type[] = "application/json";
    const struct http1_field *field = http1_field_find(head->fields, head->field_count, "content-type");
    if (field == NULL || field->value.byte_count < sizeof type - 1 ||
        strncasecmp(field->value.at, type, sizeof type - 1) != 0)
        return false;
    struct slice rest =
        slice_of(field->value.at + sizeof type - 1, field->value.byte_count - (sizeof type - 1));
    return rest.byte_count == 0 || rest.at[0] == ';' || rest.at[0] == ' ' || rest.at[0] == '\t';
}

/* True: the change may go on. */
static bool gate_pass(struct admin_call *call)
{
    const struct request *request = call->request;
    const struct http1_field challenge = field_of("WWW-Authenticate", "Bearer realm=\"sinkonce\"");
    enum gate gate = admin_gate(request, call->admin->settings->admin_token);
    if (gate == GATE_OPEN)
        return true;
    LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "admin.denied", "a change was refused at the admin port",
                      log_text("peer", request->peer), log_slice("path", request->head.path),
                      log_text("reason", admin_gate_label(gate)));
    admin_refuse(call, admin_gate_status(gate), admin_gate_label(gate),
                 gate == GATE_NOT_AUTHORIZED ? &challenge : NULL, "%s", admin_gate_sentence(gate));
    return false;
}

static void call_run(struct admin_call *call)
{
    char allowed[ALLOWED_BYTES_MAX];
    struct http1_field field = { .name = slice_of_text("Allow") };
    const struct http1_head *head = &call->request->head;
    const struct admin_route *route = route_find(head, &call->id, allowed);
    field.value = slice_of_text(allowed);
    if (route == NULL && allowed[0] == '\0')
        admin_refuse(call, 404, "not-found", NULL, "there is nothing at this path");
    else if (route == NULL)
        admin_refuse(call, 405, "method-not-allowed", &field, "this path takes %s", allowed);
    else if (route->is_change && !gate_pass(call))
        return;
    else if (route->is_change && !is_json(head))
        admin_refuse(call, 415, "not-json", NULL, "send the change as Content-Type: application/json");
    else
        route->handler(call);
}

static void on_request(void *context, struct conn *conn, struct request **request)
{
    struct admin *admin = context;
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
    call->question.partition = -1;
    call_run(call);
    if (!call->is_asked)
        call_free(call);
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

struct admin *admin_new(struct event_base *base, const struct settings *settings, struct store *store,
                        struct store_port *port, const struct program_state *state)
{
    struct admin *admin = calloc(1, sizeof *admin);
    (void)base; /* all work is done in callbacks of connections and of the store's port */
    if (admin == NULL)
        return NULL;
    admin->settings = settings;
    admin->store = store;
    admin->port = port;
    admin->state = state;
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
                                            .on_abort = on_abort,
                                            .on_closed = on_closed };
    return admin;
}

void admin_free(struct admin *admin)
{
    assert(admin == NULL || admin->open_count == 0);
    free(admin);
}

struct conn_service *admin_service(struct admin *admin)
{
    return &admin->service;
}

size_t admin_open_count(const struct admin *admin)
{
    return admin->open_count;
}
