/*
 * test_admin.c - the admin port without sockets: requests go in, the reply is what conn_reply() would have sent.
 *
 * The connection and the store are doubles of this file; log lines are kept instead of written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "admin.h"
#include "clock.h"
#include "metrics.h"
#include "stub_store.h"

/* ---- doubles ---------------------------------------------------------------------------------------------------- */

struct conn {
    void *exchange;
    int reply_count;
    int status;
    char fields[1024]; /* "Name: value\n" each */
    char *body;
    bool is_body_left_out;
};

static struct conn conn;
static int request_count; /* that are alive */
static char log_events[1024];

void conn_exchange_set(struct conn *given, void *exchange)
{
    given->exchange = exchange;
}

void conn_reply(struct conn *given, const struct reply *reply)
{
    given->exchange = NULL;
    given->reply_count++;
    given->status = reply->status;
    given->is_body_left_out = reply->is_body_left_out;
    given->fields[0] = '\0';
    for (size_t i = 0; i < reply->field_count; i++) {
        const struct http1_field *field = &reply->fields[i];
        size_t used = strlen(given->fields);
        snprintf(given->fields + used, sizeof given->fields - used, "%.*s: %.*s\n",
                 (int)field->name.byte_count, field->name.at, (int)field->value.byte_count, field->value.at);
    }
    free(given->body);
    given->body = strndup(reply->body.at, reply->body.byte_count);
    if (reply->has_length)
        assert_int_equal(reply->length, reply->body.byte_count);
    free(reply->body_owned);
}

void request_free(struct request *request)
{
    if (request == NULL)
        return;
    free(request->body);
    free(request);
    request_count--;
}

bool log_is_on(enum log_level level)
{
    (void)level;
    return true;
}

void log_event(enum log_level level, const char *event, const char *message, const struct log_field fields[],
               size_t field_count)
{
    (void)level, (void)message, (void)fields, (void)field_count;
    strncat(log_events, event, sizeof log_events - strlen(log_events) - 1);
    strncat(log_events, " ", sizeof log_events - strlen(log_events) - 1);
}

static enum log_level log_level_now;

void log_level_set(enum log_level level)
{
    log_level_now = level;
}

void log_event_limited(enum log_level level, const char *event, const char *message,
                       const struct log_field fields[], size_t field_count)
{
    log_event(level, event, message, fields, field_count);
}

/* ---- one request ------------------------------------------------------------------------------------------------ */

static char empty[] = "";
static char wide_host[] = "0.0.0.0";
static char loopback_host[] = "127.0.0.1";
static char token[] = "open sesame";
static struct settings settings;
static struct program_state program;
static struct admin *admin;

struct ask {
    enum http1_method method;
    const char *target;
    const char *body; /* NULL: none */
    const char *type; /* NULL: application/json where there is a body; "": none */
    const char *host; /* NULL: 127.0.0.1:8651 */
    const char *origin, *authorization;
    bool is_foreign;
};

static void field_add(struct http1_head *head, const char *name, const char *value)
{
    if (value != NULL)
        head->fields[head->field_count++] = (struct http1_field){ slice_of_text(name), slice_of_text(value) };
}

static void call(struct ask ask)
{
    struct request *request = calloc(1, sizeof *request);
    struct http1_head *head = &request->head;
    const char *mark = strchr(ask.target, '?');
    const char *type = ask.type == NULL && ask.body != NULL ? "application/json" : ask.type;
    request_count++;
    head->method = ask.method;
    head->target = slice_of_text(ask.target);
    head->path = slice_of(ask.target, mark == NULL ? strlen(ask.target) : (size_t)(mark - ask.target));
    head->query = mark == NULL ? slice_of("", 0) : slice_of_text(mark + 1);
    head->host = slice_of_text(ask.host == NULL ? "127.0.0.1:8651" : ask.host);
    field_add(head, "Content-Type", type != NULL && type[0] == '\0' ? NULL : type);
    field_add(head, "Origin", ask.origin);
    field_add(head, "Authorization", ask.authorization);
    request->is_trusted_peer = !ask.is_foreign;
    snprintf(request->peer, sizeof request->peer, "%s", ask.is_foreign ? "10.9.8.7:5" : "127.0.0.1:5");
    if (ask.body != NULL) {
        request->body = strdup(ask.body);
        request->body_bytes = strlen(ask.body);
    }
    admin_service(admin)->on_request(admin_service(admin)->context, &conn, &request);
    assert_null(request);
}

static void get(const char *target)
{
    call((struct ask){ .method = HTTP1_GET, .target = target });
}

static void post(const char *target, const char *body)
{
    call((struct ask){ .method = HTTP1_POST, .target = target, .body = body });
}

/* The store answers the question that waits. */
static void answer(enum store_status status, enum question_status question_status)
{
    struct question *question = stub_question;
    assert_non_null(question);
    stub_question = NULL;
    question->ret_status = question_status;
    question->done(question, status);
}

static void assert_status(int status)
{
    assert_int_equal(conn.reply_count, 1);
    if (conn.status != status)
        fail_msg("status %d instead of %d: %s", conn.status, status, conn.body);
}

/* The body must be JSON; borrowed by nobody: the caller drops it. */
static json_t *body_json(void)
{
    json_error_t error;
    json_t *json = json_loads(conn.body, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        fail_msg("%s in %s", error.text, conn.body);
    return json;
}

static void assert_body_has(const char *text)
{
    if (strstr(conn.body, text) == NULL)
        fail_msg("no '%s' in %s", text, conn.body);
}

static void assert_refused(int status, const char *label, const char *words)
{
    json_t *json;
    assert_status(status);
    json = body_json();
    assert_string_equal(json_string_value(json_object_get(json, "error")), label);
    if (strstr(json_string_value(json_object_get(json, "detail")), words) == NULL)
        fail_msg("no '%s' in %s", words, conn.body);
    json_decref(json);
    assert_null(stub_question);
}

static char controlled[64]; /* what was done to the program */

static void mode_set(void *context, enum mode mode)
{
    (void)context;
    program.mode = mode;
    snprintf(controlled, sizeof controlled, "mode %d", (int)mode);
}

static bool drain_set(void *context, bool is_draining, char ret_why[], size_t why_bytes_max)
{
    (void)context;
    snprintf(controlled, sizeof controlled, "drain %d", (int)is_draining);
    snprintf(ret_why, why_bytes_max, "the program is stopping");
    return !program.is_draining;
}

static int set_up(void **state)
{
    (void)state;
    settings = (struct settings){ .admin_token = empty, .key_header = empty, .is_target_verified = true };
    settings.target.authority = loopback_host;
    settings.admin_listen.host = loopback_host;
    program =
        (struct program_state){ .is_started = true, .is_ready = true, .started_ms = clock_unix_ms() - 5000 };
    stub_figures = (struct store_figures){ .created_ms = 1500000000000, .boot_count = 3 };
    stub_question = NULL;
    stub_question_count = 0;
    conn = (struct conn){ .body = NULL };
    log_events[0] = '\0';
    controlled[0] = '\0';
    static const struct program_controls controls = { .mode_set = mode_set, .drain_set = drain_set };
    admin = admin_new(&(struct admin_parts){ .settings = &settings,
                                             .store = (struct store *)&stub_figures,
                                             .port = (struct store_port *)&stub_figures,
                                             .state = &program,
                                             .controls = &controls });
    return admin == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(admin_open_count(admin), 0);
    assert_int_equal(request_count, 0);
    admin_free(admin);
    free(conn.body);
    return 0;
}

/* ---- health ----------------------------------------------------------------------------------------------------- */

static void test_livez_is_200_whatever_the_rest_of_the_program_does(void **state)
{
    (void)state;
    program = (struct program_state){ .is_draining = true };
    stub_figures.is_failing = true;
    get("/livez");
    assert_status(200);
    assert_string_equal(conn.body, "ok\n");
    assert_non_null(strstr(conn.fields, "Content-Type: text/plain"));
    assert_non_null(strstr(conn.fields, "X-Content-Type-Options: nosniff\n"));
    assert_non_null(strstr(conn.fields, "Cache-Control: no-store\n"));
}

static void test_startupz_waits_for_the_start(void **state)
{
    (void)state;
    program.is_started = false;
    get("/startupz");
    assert_status(503);
}

static void test_readyz_says_which_check_failed(void **state)
{
    (void)state;
    program.is_draining = true;
    get("/readyz");
    assert_status(503);
    assert_string_equal(conn.body, "not draining: failed\n");
}

static void test_readyz_needs_a_ledger_that_does_not_fail(void **state)
{
    (void)state;
    stub_figures.is_failing = true;
    get("/readyz");
    assert_status(503);
}

static void test_readyz_stays_200_with_a_full_ledger_l_04(void **state)
{
    (void)state;
    stub_figures.is_full = true;
    get("/readyz");
    assert_status(200);
}

static void test_readyz_is_503_until_the_program_serves(void **state)
{
    (void)state;
    program.is_ready = false;
    get("/readyz");
    assert_status(503);
}

static void test_verbose_lists_every_check(void **state)
{
    (void)state;
    get("/readyz?verbose");
    assert_status(200);
    assert_string_equal(conn.body, "started: ok\nserving: ok\nnot draining: ok\nledger: ok\nok\n");
}

static void test_a_head_request_gets_the_head_alone(void **state)
{
    (void)state;
    call((struct ask){ .method = HTTP1_HEAD, .target = "/readyz" });
    assert_status(200);
    assert_true(conn.is_body_left_out);
}

static void test_metrics_are_text(void **state)
{
    (void)state;
    get("/metrics");
    assert_status(200);
    assert_non_null(strstr(conn.fields, "Content-Type: text/plain; version=0.0.4"));
    assert_body_has("# TYPE sinkonce_records_total counter\n");
}

static void test_version_names_the_program(void **state)
{
    (void)state;
    get("/version");
    assert_status(200);
    assert_body_has("\"version\":\"" SINKONCE_VERSION "\"");
}

/* ---- status ----------------------------------------------------------------------------------------------------- */

static size_t warning_count(void)
{
    json_t *json = body_json();
    assert_non_null(json_object_get(json, "warnings"));
    size_t count = json_array_size(json_object_get(json, "warnings"));
    json_decref(json);
    return count;
}

static void test_status_of_a_sound_program_warns_of_nothing(void **state)
{
    (void)state;
    get("/status");
    assert_status(200);
    assert_int_equal(warning_count(), 0);
    assert_body_has("\"state\":\"ready\"");
    assert_body_has("\"id\":\"00112233445566778899aabbccddeeff\"");
    assert_body_has("\"mode\":\"enforce\"");
}

static void test_status_warns_in_a_sentence_for_each_thing_to_do(void **state)
{
    (void)state;
    settings.mode = program.mode = MODE_OFF;
    settings.target.is_https = true;
    settings.is_target_verified = false;
    settings.admin_listen.host = wide_host;
    stub_figures = (struct store_figures){ .created_ms = clock_unix_ms() - 1000,
                                           .is_full = true,
                                           .is_failing = true,
                                           .conflict_open_count = 2,
                                           .in_doubt_records = 4,
                                           .in_doubt_oldest_ms = clock_unix_ms() - 3600000 };
    get("/status");
    assert_status(200);
    assert_int_equal(warning_count(), 8);
    assert_body_has("\"state\":\"ledger-failing\"");
    assert_body_has("The ledger fails");
    assert_body_has("The ledger is full");
    assert_body_has("less than a day old");
    assert_body_has("4 records are in doubt");
    assert_body_has("2 conflicts wait");
    assert_body_has("SINKONCE_MODE is off");
    assert_body_has("SINKONCE_TARGET_VERIFY is off");
    assert_body_has("SINKONCE_ADMIN_TOKEN is not set");
    assert_body_has("\"warnings\":[\"The ledger fails"); /* the most urgent first */
    assert_body_has("before it was created.\"]");        /* and last what is only to be remembered */
}

static void test_a_doubt_of_this_moment_is_no_warning_yet(void **state)
{
    (void)state;
    stub_figures.in_doubt_records = 1;
    stub_figures.in_doubt_oldest_ms = clock_unix_ms();
    get("/status");
    assert_int_equal(warning_count(), 0);
}

/* Counters go on from test to test: each looks from its own beginning. */
static uint64_t minute_ns(unsigned minute)
{
    return ((uint64_t)minute * 60 + 1) * MS_PER_S * NS_PER_MS;
}

static void last_minutes_begin(void)
{
    admin_tick(admin, minute_ns(0));
    admin_tick(admin, minute_ns(1));
}

static void test_a_target_without_any_success_is_told_with_what_most_attempts_met(void **state)
{
    (void)state;
    last_minutes_begin();
    metrics_add(COUNTER_RECORDS, 1);
    metrics_target_response(401);
    metrics_add(COUNTER_TARGET_ERROR_TLS, 1);
    get("/status");
    assert_int_equal(warning_count(), 0); /* too few to be told from chance */
    metrics_add(COUNTER_TARGET_ERROR_TLS, 1);
    get("/status");
    assert_int_equal(warning_count(), 1);
    assert_body_has("no 2xx in the last minutes, and 3 attempts failed, most often so: no trust (tls)");
    metrics_target_response(401);
    metrics_target_response(401);
    get("/status");
    assert_body_has("5 attempts failed, most often so: status 401.");
    metrics_target_response(204);
    get("/status");
    assert_int_equal(warning_count(), 0);
}

static void test_what_a_target_says_while_nobody_writes_is_no_warning(void **state)
{
    (void)state;
    last_minutes_begin();
    for (int i = 0; i < 10; i++)
        metrics_target_response(404);
    get("/status");
    assert_int_equal(warning_count(), 0);
    metrics_add(COUNTER_RECORDS, 1);
    get("/status");
    assert_int_equal(warning_count(), 1);
}

static void test_what_failed_in_the_last_minutes_is_told_until_they_are_over(void **state)
{
    (void)state;
    static char folder[] = "/ledger";
    settings.data_dir = folder;
    last_minutes_begin();
    metrics_add(COUNTER_REFUSED_UNAUTHORIZED, 1);
    stub_figures.error_count = 2;
    strcpy(stub_figures.failure, "no room");
    get("/status");
    assert_int_equal(warning_count(), 2);
    assert_body_has("failed 2 times in the last minutes (no room)");
    assert_body_has("1 request of the last minutes came without a valid SINKONCE_CLIENT_TOKEN");
    stub_figures.is_failing = true; /* what is wrong now is told as such */
    get("/status");
    assert_int_equal(warning_count(), 2);
    assert_body_has("The ledger fails (no room)");
    stub_figures.is_failing = false;
    admin_tick(admin, minute_ns(2));
    get("/status");
    assert_int_equal(warning_count(), 2);
    admin_tick(admin, minute_ns(3));
    get("/status");
    assert_int_equal(warning_count(), 0);
}

static void test_a_program_that_stops_says_so_and_not_how_to_go_on(void **state)
{
    (void)state;
    program.is_draining = true;
    get("/status");
    assert_body_has("DELETE /drain resumes");
    program.is_stopping = true;
    get("/status");
    assert_body_has("Stopping: ");
    assert_null(strstr(conn.body, "DELETE"));
}

static void test_config_gives_every_setting_and_hides_secrets(void **state)
{
    (void)state;
    setenv("SINKONCE_ADMIN_TOKEN", token, 1);
    get("/config");
    unsetenv("SINKONCE_ADMIN_TOKEN");
    assert_status(200);
    json_t *json = body_json();
    assert_true(json_array_size(json_object_get(json, "settings")) > 40);
    json_decref(json);
    assert_body_has("{\"name\":\"SINKONCE_ADMIN_TOKEN\",\"group\":\"Life\",\"value\":\"***\","
                    "\"source\":\"environment\"");
    assert_null(strstr(conn.body, token));
}

/* ---- routes ----------------------------------------------------------------------------------------------------- */

static void test_an_unknown_path_is_404(void **state)
{
    (void)state;
    get("/in-doubts");
    assert_refused(404, "not-found", "nothing");
}

static void test_an_id_that_is_no_number_is_404(void **state)
{
    (void)state;
    post("/in-doubt/7x", "{}");
    assert_refused(404, "not-found", "nothing");
}

static void test_a_wrong_method_is_405_and_says_which_ones_there_are(void **state)
{
    (void)state;
    call((struct ask){ .method = HTTP1_DELETE, .target = "/in-doubt" });
    assert_refused(405, "method-not-allowed", "POST");
    assert_non_null(strstr(conn.fields, "Allow: GET, HEAD, POST\n"));
}

static void test_a_get_never_changes_anything(void **state)
{
    (void)state;
    get("/in-doubt/7");
    assert_refused(405, "method-not-allowed", "POST");
    assert_non_null(strstr(conn.fields, "Allow: POST\n"));
}

/* ---- listings --------------------------------------------------------------------------------------------------- */

static void test_a_doubt_is_listed_with_its_id_as_text(void **state)
{
    (void)state;
    get("/in-doubt?topic=orders&limit=1&after=41");
    assert_int_equal(conn.reply_count, 0);
    assert_int_equal(stub_question->kind, ASK_DOUBTS);
    assert_string_equal(stub_question->topic, "orders");
    assert_int_equal(stub_question->row_count_max, 1);
    assert_int_equal(stub_question->after_id, 41);
    struct doubt_row *row = calloc(1, sizeof *row);
    *row = (struct doubt_row){ .id = 9007199254740993,
                               .topic = "orders",
                               .partition = 3,
                               .first = 41,
                               .last = 42,
                               .record_count = 2,
                               .since_ms = 1700000000123,
                               .attempts = 1,
                               .cause = DOUBT_TIMEOUT,
                               .detail = "no answer in 120 s \xff" };
    stub_question->ret.doubts = row;
    stub_question->ret_row_count = 1;
    stub_question->ret_count = 5;
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_body_has("\"id\":\"9007199254740993\"");
    assert_body_has("\"since\":\"2023-11-14T22:13:20.123Z\"");
    assert_body_has("\"cause\":\"timeout\"");
    assert_body_has("\"detail\":\"no answer in 120 s ?\"");
    assert_body_has("\"total\":5,\"next\":\"9007199254740993\"");
    json_decref(body_json());
}

static void test_the_last_page_has_no_next(void **state)
{
    (void)state;
    get("/in-doubt");
    assert_int_equal(stub_question->row_count_max, 100);
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_string_equal(conn.body, "{\"in_doubt\":[],\"total\":0,\"next\":null}\n");
}

static void test_a_record_is_looked_up_by_its_coordinates(void **state)
{
    (void)state;
    get("/records?topic=a.b_c-d&partition=2147483647&offset=9223372036854775807");
    assert_int_equal(stub_question->kind, ASK_RECORD);
    assert_int_equal(stub_question->partition, INT32_MAX);
    assert_true(stub_question->first == INT64_MAX && stub_question->last == INT64_MAX);
    stub_question->ret_state = RECORD_APPLIED;
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_body_has("\"offset\":9223372036854775807,\"state\":\"applied\"");
}

static void test_a_record_in_doubt_comes_with_its_row(void **state)
{
    (void)state;
    get("/records?topic=t&partition=0&offset=1");
    stub_question->ret_state = RECORD_IN_DOUBT;
    stub_question->ret.doubts = calloc(1, sizeof(struct doubt_row));
    stub_question->ret.doubts[0].id = 12;
    stub_question->ret_row_count = 1;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has("\"in_doubt\":{\"id\":\"12\"");
}

static void test_partitions_conflicts_and_events_are_listed(void **state)
{
    (void)state;
    get("/partitions?topic=t");
    stub_question->ret.partitions = calloc(1, sizeof(struct partition_row));
    stub_question->ret.partitions[0] = (struct partition_row){ .topic = "t", .lowest = -1, .highest = -1 };
    stub_question->ret_row_count = 1;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has("\"lowest\":null");
    conn.reply_count = 0;
    get("/conflicts");
    stub_question->ret.conflicts = calloc(1, sizeof(struct conflict_row));
    stub_question->ret.conflicts[0] =
        (struct conflict_row){ .id = 3, .topic = "t", .seen = 0xab, .count = 2 };
    stub_question->ret_row_count = 1;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has(
        "\"kind\":\"identity\",\"only_the_tail\":false,\"stored_mark\":null,\"seen_mark\":\"000000ab\"");
    conn.reply_count = 0;
    get("/events?after=6");
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_string_equal(conn.body, "{\"events\":[],\"total\":0,\"next\":\"6\"}\n");
}

static void test_an_event_of_a_whole_topic_names_no_partition(void **state)
{
    (void)state;
    get("/events");
    stub_question->ret.events = calloc(2, sizeof(struct event_row));
    stub_question->ret.events[0] = (struct event_row){ .id = 1, .topic = "t", .partition = -1, .first = -1 };
    stub_question->ret.events[1] = (struct event_row){ .id = 2, .topic = "t", .partition = 0, .first = 7 };
    stub_question->ret_row_count = 2;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has("\"detail\":\"\",\"topic\":\"t\"},");
    assert_body_has("\"topic\":\"t\",\"partition\":0,\"first\":7");
}

static void test_a_page_names_the_next_one_in_its_link(void **state)
{
    (void)state;
    get("/partitions?limit=1&topic=t.x&after=t.x/7");
    assert_string_equal(stub_question->after_topic, "t.x");
    assert_int_equal(stub_question->after_partition, 7);
    stub_question->ret.partitions = calloc(1, sizeof(struct partition_row));
    stub_question->ret.partitions[0] = (struct partition_row){ .topic = "t.x", .partition = 9 };
    stub_question->ret_row_count = 1;
    stub_question->ret_count = 3;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has("\"next\":\"t.x/9\"");
    assert_non_null(strstr(conn.fields, "Link: </partitions?topic=t.x&limit=1&after=t.x/9>; rel=\"next\"\n"));
    conn.reply_count = 0;
    get("/replays?after=4");
    assert_int_equal(stub_question->after_id, 4);
    stub_question->ret.replays = calloc(1, sizeof(struct replay_row));
    stub_question->ret.replays[0] = (struct replay_row){ .id = 6, .topic = "t" };
    stub_question->ret_row_count = 1;
    stub_question->ret_count = 2;
    answer(STORE_OK, QUESTION_OK);
    assert_non_null(strstr(conn.fields, "Link: </replays?limit=100&after=6>; rel=\"next\"\n"));
    conn.reply_count = 0;
    get("/partitions/t/3/intervals?limit=1");
    stub_question->ret.intervals = calloc(1, sizeof(struct interval_row));
    stub_question->ret.intervals[0] = (struct interval_row){ .first = 5, .last = 8, .state = RECORD_APPLIED };
    stub_question->ret_row_count = 1;
    stub_question->ret_count = 2;
    answer(STORE_OK, QUESTION_OK);
    assert_non_null(strstr(conn.fields, "Link: </partitions/t/3/intervals?limit=1&from=9>; rel=\"next\"\n"));
}

static void test_a_last_page_has_no_link(void **state)
{
    (void)state;
    get("/partitions?limit=1");
    stub_question->ret.partitions = calloc(1, sizeof(struct partition_row));
    stub_question->ret.partitions[0] = (struct partition_row){ .topic = "t" };
    stub_question->ret_row_count = 1; /* full, and the last */
    stub_question->ret_count = 1;
    answer(STORE_OK, QUESTION_OK);
    assert_body_has("\"next\":null");
    assert_null(strstr(conn.fields, "Link:"));
}

static void test_parameters_are_checked_and_named(void **state)
{
    static const struct {
        const char *target, *label, *words;
    } rows[] = {
        { "/in-doubt?limit=0", "bad-parameter", "limit must be" },
        { "/in-doubt?limit=1001", "bad-parameter", "limit must be" },
        { "/in-doubt?limit=%31%", "bad-parameter", "limit has a broken" },
        { "/in-doubt?limit=1&limit=2", "bad-parameter", "limit stands there twice" },
        { "/in-doubt?topics=a", "bad-parameter", "topics is not a parameter" },
        { "/in-doubt?topic=a/b", "bad-parameter", "topic must be" },
        { "/in-doubt?topic=a%00b", "bad-parameter", "topic has a broken" },
        { "/in-doubt?after=-1", "bad-parameter", "after must be" },
        { "/partitions?after=3", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=orders", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=/3", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=orders/", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=orders/3/4", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=orders/2147483648", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/partitions?after=", "bad-parameter", "after must be TOPIC/PARTITION" },
        { "/replays?after=x", "bad-parameter", "after must be" },
        { "/records?topic=a&partition=0", "parameter-missing", "offset" },
        { "/records?topic=a&partition=2147483648&offset=1", "bad-parameter", "partition must be" },
        { "/records?topic=a&partition=01&offset=1", "bad-parameter", "partition must be" },
        { "/records?topic=a&partition=1&offset=9223372036854775808", "bad-parameter", "offset must be" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        conn.reply_count = 0;
        get(rows[i].target);
        assert_refused(400, rows[i].label, rows[i].words);
    }
}

static void test_a_ledger_that_fails_is_503_l_05(void **state)
{
    (void)state;
    get("/partitions");
    answer(STORE_FAILED, QUESTION_OK);
    assert_refused(503, "ledger-failed", "ledger");
    assert_non_null(strstr(conn.fields, "Retry-After: 1\n"));
    conn.reply_count = 0;
    get("/partitions");
    answer(STORE_OK, QUESTION_FAILED);
    assert_refused(503, "ledger-failed", "ledger");
}

static void test_an_operator_who_left_is_not_answered_and_nothing_leaks(void **state)
{
    (void)state;
    get("/in-doubt");
    assert_non_null(conn.exchange);
    admin_service(admin)->on_gone(admin_service(admin)->context, conn.exchange);
    assert_int_equal(request_count, 1);
    answer(STORE_OK, QUESTION_OK);
    assert_int_equal(conn.reply_count, 0);
    assert_int_equal(request_count, 0);
}

static void test_questions_that_wait_are_limited(void **state)
{
    struct question *questions[64];
    (void)state;
    for (size_t i = 0; i < 64; i++) {
        get("/in-doubt");
        questions[i] = stub_question;
    }
    assert_int_equal(admin_open_count(admin), 64);
    stub_question = NULL;
    get("/in-doubt");
    assert_refused(503, "busy", "64");
    conn.reply_count = 0;
    get("/readyz");
    assert_status(200);
    for (size_t i = 0; i < 64; i++) {
        stub_question = questions[i];
        answer(STORE_OK, QUESTION_OK);
    }
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

#define RESOLVE "{\"resolution\":\"applied\",\"reason\":\"seen in the target's log\"}"

static void test_one_doubt_is_resolved_with_who_and_why(void **state)
{
    (void)state;
    post("/in-doubt/18446744073709551615", RESOLVE);
    assert_int_equal(stub_question->kind, DO_RESOLVE_ONE);
    assert_true(stub_question->id == UINT64_MAX);
    assert_true(stub_question->is_applied);
    assert_string_equal(stub_question->detail, "by 127.0.0.1:5: seen in the target's log");
    stub_question->ret_count = 2;
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_string_equal(conn.body, "{\"resolution\":\"applied\",\"records\":2}\n");
    assert_string_equal(log_events, "admin.change ");
}

static void test_not_applied_is_the_other_resolution(void **state)
{
    (void)state;
    post("/in-doubt/7", "{\"resolution\":\"not-applied\",\"reason\":\"r\"}");
    assert_false(stub_question->is_applied);
    answer(STORE_OK, QUESTION_NOT_FOUND);
    assert_refused(404, "not-found", "id 7");
    assert_string_equal(log_events, "");
}

static void test_many_are_resolved_by_a_filter(void **state)
{
    (void)state;
    post("/in-doubt", "{\"topic\":\"orders\",\"partition\":3,\"from\":\"40\",\"to\":9223372036854775807,"
                      "\"resolution\":\"applied\",\"expect_count\":17,\"reason\":\"checked\"}");
    assert_int_equal(stub_question->kind, DO_RESOLVE);
    assert_string_equal(stub_question->topic, "orders");
    assert_int_equal(stub_question->partition, 3);
    assert_int_equal(stub_question->first, 40);
    assert_true(stub_question->last == INT64_MAX);
    assert_int_equal(stub_question->expect_count, 17);
    stub_question->ret_count = 17;
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
}

static void test_a_filter_may_be_empty_and_then_means_all(void **state)
{
    (void)state;
    post("/in-doubt", "{\"resolution\":\"applied\",\"expect_count\":0,\"reason\":\"x\"}");
    assert_string_equal(stub_question->topic, "");
    assert_int_equal(stub_question->partition, -1);
    assert_int_equal(stub_question->first, -1);
    assert_int_equal(stub_question->last, -1);
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
}

static void test_another_count_changes_nothing_and_is_told(void **state)
{
    (void)state;
    post("/in-doubt", "{\"resolution\":\"applied\",\"expect_count\":17,\"reason\":\"checked\"}");
    stub_question->ret_count = 18;
    answer(STORE_OK, QUESTION_MISMATCH);
    assert_refused(409, "count-mismatch", "nothing was changed");
    assert_body_has("\"expect_count\":17,\"count\":18");
    assert_string_equal(log_events, "");
}

static void test_a_topic_that_changed_while_it_was_being_forgotten_is_told_with_what_is_gone(void **state)
{
    const char *body = "{\"topic\":\"t\",\"expect_count\":100,\"reason\":\"it is gone\"}";
    (void)state;
    post("/forget", body);
    stub_question->ret_count = 63;
    stub_question->ret_done_count = 40;
    answer(STORE_OK, QUESTION_MISMATCH);
    assert_refused(409, "count-mismatch", "the rest is as it was");
    assert_body_has("\"expect_count\":100,\"count\":63,\"forgotten\":40");
    assert_string_equal(log_events, "admin.change ");
    conn.reply_count = 0;
    post("/forget", body);
    stub_question->ret_count = 99;
    answer(STORE_OK, QUESTION_MISMATCH);
    assert_refused(409, "count-mismatch", "nothing was changed");
}

static void test_a_conflict_is_decided(void **state)
{
    (void)state;
    post("/conflicts/4", "{\"decision\":\"new-topic\",\"reason\":\"orders was created again\"}");
    assert_int_equal(stub_question->kind, DO_DECIDE);
    assert_int_equal(stub_question->id, 4);
    assert_true(stub_question->is_new_topic);
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_string_equal(log_events, "admin.change ");
    conn.reply_count = 0;
    post("/conflicts/4", "{\"decision\":\"same\",\"reason\":\"x\"}");
    assert_false(stub_question->is_new_topic);
    answer(STORE_OK, QUESTION_NOT_FOUND);
    assert_refused(404, "not-found", "id 4");
}

#define END ",\"resolution\":\"applied\",\"expect_count\":1,\"reason\":\"r\"}"

static void test_a_wrong_body_is_400_and_says_what_is_wrong(void **state)
{
    static const struct {
        const char *target, *body, *label, *words;
    } rows[] = {
        { "/in-doubt/1", "", "bad-json", "line 1" },
        { "/in-doubt/1", "{\"resolution\":", "bad-json", "byte 14" },
        { "/in-doubt/1", "[]", "bad-json", "object" },
        { "/in-doubt/1", RESOLVE "x", "bad-json", "line 1" },
        { "/in-doubt/1", "{\"reason\":\"a\",\"reason\":\"b\",\"resolution\":\"applied\"}", "bad-json",
          "duplicate" },
        { "/in-doubt/1", "{\"resolution\":\"applied\"}", "field-missing", "\"reason\"" },
        { "/in-doubt/1", "{\"resolution\":\"yes\",\"reason\":\"r\"}", "bad-value", "\"not-applied\"" },
        { "/in-doubt/1", "{\"resolution\":1,\"reason\":\"r\"}", "bad-value", "\"resolution\"" },
        { "/in-doubt/1", "{\"resolution\":\"applied\",\"reason\":\"\"}", "bad-value", "\"reason\"" },
        { "/in-doubt/1", "{\"resolution\":\"applied\",\"reason\":\"a\\nb\"}", "bad-value", "\"reason\"" },
        { "/in-doubt/1", "{\"resolution\":\"applied\",\"reason\":\"r\",\"topik\":1}", "unknown-field",
          "\"topik\"" },
        { "/in-doubt", "{\"resolution\":\"applied\",\"reason\":\"r\"}", "field-missing", "\"expect_count\"" },
        { "/in-doubt", "{\"partition\":1" END, "bad-value", "\"topic\"" },
        { "/in-doubt", "{\"topic\":\"a b\"" END, "bad-value", "\"topic\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"from\":1,\"to\":2" END, "bad-value", "\"partition\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"partition\":1,\"from\":1" END, "bad-value", "\"to\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"partition\":1,\"from\":3,\"to\":2" END, "bad-value", "\"from\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"partition\":-1" END, "bad-value", "\"partition\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"partition\":1.0" END, "bad-value", "\"partition\"" },
        { "/in-doubt", "{\"topic\":\"a\",\"partition\":2147483648" END, "bad-value", "\"partition\"" },
        { "/conflicts/1", "{\"decision\":\"other\",\"reason\":\"r\"}", "bad-value",
          "\"new-topic\" or \"same\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        conn.reply_count = 0;
        post(rows[i].target, rows[i].body);
        assert_refused(400, rows[i].label, rows[i].words);
    }
    assert_string_equal(log_events, "");
}

static void test_a_body_that_is_not_declared_as_json_is_415(void **state)
{
    static const char *const types[] = { "", "text/plain", "application/x-www-form-urlencoded",
                                         "multipart/form-data; boundary=x", "application/jsonp" };
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        conn.reply_count = 0;
        call(
            (struct ask){ .method = HTTP1_POST, .target = "/in-doubt/1", .body = RESOLVE, .type = types[i] });
        assert_refused(415, "not-json", "application/json");
    }
}

static void test_json_with_a_charset_is_json(void **state)
{
    (void)state;
    call((struct ask){ .method = HTTP1_POST,
                       .target = "/in-doubt/1",
                       .body = RESOLVE,
                       .type = "Application/JSON; charset=utf-8" });
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
}

static void test_a_change_from_afar_without_a_token_configured_is_403_and_logged(void **state)
{
    (void)state;
    call((struct ask){ .method = HTTP1_POST, .target = "/in-doubt/1", .body = RESOLVE, .is_foreign = true });
    assert_refused(403, "no-admin-token", "SINKONCE_ADMIN_TOKEN");
    assert_string_equal(log_events, "admin.denied ");
}

static void test_a_wrong_token_is_401_with_a_challenge(void **state)
{
    (void)state;
    settings.admin_token = token;
    call((struct ask){ .method = HTTP1_POST,
                       .target = "/in-doubt/1",
                       .body = RESOLVE,
                       .authorization = "Bearer open sesamo",
                       .is_foreign = true });
    assert_refused(401, "not-authorized", "Bearer");
    assert_non_null(strstr(conn.fields, "WWW-Authenticate: Bearer"));
    assert_null(strstr(conn.body, token));
}

static void test_the_right_token_opens_from_afar(void **state)
{
    (void)state;
    settings.admin_token = token;
    call((struct ask){ .method = HTTP1_POST,
                       .target = "/in-doubt/1",
                       .body = RESOLVE,
                       .host = "sinkonce.example:8651",
                       .authorization = "bearer open sesame",
                       .is_foreign = true });
    assert_string_equal(stub_question->detail, "by 10.9.8.7:5: seen in the target's log");
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
}

static void test_a_page_of_another_origin_changes_nothing(void **state)
{
    (void)state;
    call((struct ask){
        .method = HTTP1_POST, .target = "/in-doubt/1", .body = RESOLVE, .origin = "http://evil.example" });
    assert_refused(403, "foreign-origin", "origin");
}

static void test_a_rebound_name_changes_nothing(void **state)
{
    (void)state;
    call((struct ask){
        .method = HTTP1_POST, .target = "/in-doubt/1", .body = RESOLVE, .host = "evil.example" });
    assert_refused(403, "foreign-host", "Host");
    assert_string_equal(log_events, "admin.denied ");
}

static void test_reads_are_open_from_afar(void **state)
{
    (void)state;
    call((struct ask){
        .method = HTTP1_GET, .target = "/status", .host = "sinkonce.example", .is_foreign = true });
    assert_status(200);
}

/* ---- what changes the running program ---------------------------------------------------------------------------- */

static void put(const char *target, const char *body)
{
    call((struct ask){ .method = HTTP1_PUT, .target = target, .body = body });
}

static void test_a_mode_is_changed_at_once_and_noted_with_who_and_why(void **state)
{
    (void)state;
    put("/mode", "{\"mode\":\"observe\",\"reason\":\"trial\"}");
    assert_string_equal(controlled, "mode 1");
    assert_int_equal(conn.reply_count, 0);
    assert_int_equal(stub_question->kind, DO_NOTE);
    assert_string_equal(stub_question->detail, "mode observe by 127.0.0.1:5: trial");
    assert_non_null(strstr(log_events, "admin.change"));
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_string_equal(conn.body, "{\"mode\":\"observe\",\"noted\":true}\n");
}

static void test_a_change_that_the_ledger_cannot_note_is_told_as_made(void **state)
{
    (void)state;
    put("/log-level", "{\"level\":\"debug\"}");
    assert_int_equal(log_level_now, LOG_LEVEL_DEBUG);
    answer(STORE_FAILED, QUESTION_OK);
    assert_status(200);
    assert_string_equal(conn.body, "{\"level\":\"debug\",\"noted\":false}\n");
}

static void test_a_drain_that_is_refused_is_not_noted(void **state)
{
    (void)state;
    program.is_draining = true;
    post("/drain", "{}");
    assert_string_equal(controlled, "drain 1");
    assert_refused(409, "not-now", "the program is stopping");
}

static void test_a_delete_needs_no_body_but_none_of_another_type(void **state)
{
    (void)state;
    call((struct ask){ .method = HTTP1_DELETE, .target = "/drain" });
    assert_string_equal(controlled, "drain 0");
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    conn.reply_count = 0;
    call((struct ask){ .method = HTTP1_DELETE, .target = "/drain", .body = "{}", .type = "text/plain" });
    assert_refused(415, "not-json", "application/json");
}

static void test_a_change_from_beyond_loopback_changes_nothing(void **state)
{
    static const struct {
        enum http1_method method;
        const char *target, *body;
    } changes[] = {
        { HTTP1_PUT, "/mode", "{\"mode\":\"off\"}" },
        { HTTP1_PUT, "/log-level", "{\"level\":\"error\"}" },
        { HTTP1_POST, "/drain", "{}" },
        { HTTP1_DELETE, "/drain", NULL },
        { HTTP1_DELETE, "/replays/1", NULL },
        { HTTP1_POST, "/replays", "{}" },
        { HTTP1_POST, "/forget", "{}" },
        { HTTP1_POST, "/backup", "{\"path\":\"x\"}" },
    };
    (void)state;
    settings.admin_token = token;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        conn.reply_count = 0;
        call((struct ask){ .method = changes[i].method,
                           .target = changes[i].target,
                           .body = changes[i].body,
                           .is_foreign = true });
        assert_refused(401, "not-authorized", "Authorization: Bearer");
        assert_non_null(strstr(conn.fields, "WWW-Authenticate: Bearer"));
    }
    assert_string_equal(controlled, "");
}

static void test_a_replay_window_ends_after_the_time_that_was_given(void **state)
{
    uint64_t now_ms = clock_unix_ms();
    (void)state;
    post("/replays", "{\"topic\":\"t\",\"partition\":1,\"from\":\"2\",\"to\":3,\"for\":\"10m\"}");
    assert_int_equal(stub_question->kind, DO_REPLAY_OPEN);
    assert_true(stub_question->first == 2 && stub_question->last == 3 && stub_question->partition == 1);
    assert_in_range(stub_question->until_ms - now_ms, 600000, 660000);
    assert_string_equal(stub_question->detail, "by 127.0.0.1:5");
    stub_question->ret_id = 77;
    answer(STORE_OK, QUESTION_OK);
    assert_status(200);
    assert_body_has("\"id\":\"77\"");
}

static void test_what_is_settled_already_is_409_with_its_state(void **state)
{
    (void)state;
    post("/in-doubt/9", "{\"resolution\":\"applied\",\"reason\":\"x\"}");
    stub_question->ret_id = 9;
    stub_question->ret_state = RECORD_APPLIED;
    answer(STORE_OK, QUESTION_NOT_FOUND);
    assert_refused(409, "settled", "over already");
    assert_body_has("\"state\":\"applied\"");
}

static void test_a_failed_backup_says_why(void **state)
{
    static char folder[] = "/tmp";
    (void)state;
    settings.data_dir = folder;
    post("/backup", "{\"path\":\"/tmp/copy\"}");
    assert_int_equal(stub_question->kind, DO_BACKUP);
    assert_string_equal(stub_question->detail, "/tmp/copy");
    strcpy(stub_question->ret_why, "No space left on device");
    answer(STORE_OK, QUESTION_FAILED);
    assert_refused(503, "backup-failed", "No space left");
}

static void test_metrics_do_without_the_partitions_that_the_ledger_cannot_tell(void **state)
{
    (void)state;
    settings.has_partition_metrics = true;
    get("/metrics");
    assert_int_equal(stub_question->kind, ASK_PARTITIONS);
    answer(STORE_FAILED, QUESTION_OK);
    assert_status(200);
    assert_body_has("sinkonce_records_total{topic=\"\"}");
}

static void test_stats_give_quantiles_of_every_histogram(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        metrics_observe(HISTOGRAM_OVERHEAD_DURATION, i < 90 ? 400000 : 40000000);
    get("/stats");
    assert_status(200);
    json_t *json = body_json();
    const json_t *histogram =
        json_object_get(json_object_get(json, "histograms"), "overhead_duration_seconds");
    double p50 = json_real_value(json_object_get(histogram, "p50"));
    double p99 = json_real_value(json_object_get(histogram, "p99"));
    assert_int_equal(json_integer_value(json_object_get(histogram, "count")), 100);
    assert_true(p50 > 0.0002 && p50 <= 0.0005);
    assert_true(p99 > 0.025 && p99 <= 0.05);
    assert_true(json_is_null(json_object_get(
        json_object_get(json_object_get(json, "histograms"), "event_loop_lag_seconds"), "p50")));
    json_decref(json);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_livez_is_200_whatever_the_rest_of_the_program_does),
        TEST(test_startupz_waits_for_the_start),
        TEST(test_readyz_says_which_check_failed),
        TEST(test_readyz_needs_a_ledger_that_does_not_fail),
        TEST(test_readyz_stays_200_with_a_full_ledger_l_04),
        TEST(test_readyz_is_503_until_the_program_serves),
        TEST(test_verbose_lists_every_check),
        TEST(test_a_head_request_gets_the_head_alone),
        TEST(test_metrics_are_text),
        TEST(test_version_names_the_program),
        TEST(test_status_of_a_sound_program_warns_of_nothing),
        TEST(test_status_warns_in_a_sentence_for_each_thing_to_do),
        TEST(test_a_doubt_of_this_moment_is_no_warning_yet),
        TEST(test_a_target_without_any_success_is_told_with_what_most_attempts_met),
        TEST(test_what_a_target_says_while_nobody_writes_is_no_warning),
        TEST(test_what_failed_in_the_last_minutes_is_told_until_they_are_over),
        TEST(test_a_program_that_stops_says_so_and_not_how_to_go_on),
        TEST(test_config_gives_every_setting_and_hides_secrets),
        TEST(test_an_unknown_path_is_404),
        TEST(test_an_id_that_is_no_number_is_404),
        TEST(test_a_wrong_method_is_405_and_says_which_ones_there_are),
        TEST(test_a_get_never_changes_anything),
        TEST(test_a_doubt_is_listed_with_its_id_as_text),
        TEST(test_the_last_page_has_no_next),
        TEST(test_a_page_names_the_next_one_in_its_link),
        TEST(test_a_last_page_has_no_link),
        TEST(test_a_record_is_looked_up_by_its_coordinates),
        TEST(test_a_record_in_doubt_comes_with_its_row),
        TEST(test_partitions_conflicts_and_events_are_listed),
        TEST(test_an_event_of_a_whole_topic_names_no_partition),
        TEST(test_parameters_are_checked_and_named),
        TEST(test_a_ledger_that_fails_is_503_l_05),
        TEST(test_an_operator_who_left_is_not_answered_and_nothing_leaks),
        TEST(test_questions_that_wait_are_limited),
        TEST(test_one_doubt_is_resolved_with_who_and_why),
        TEST(test_not_applied_is_the_other_resolution),
        TEST(test_many_are_resolved_by_a_filter),
        TEST(test_a_filter_may_be_empty_and_then_means_all),
        TEST(test_another_count_changes_nothing_and_is_told),
        TEST(test_a_topic_that_changed_while_it_was_being_forgotten_is_told_with_what_is_gone),
        TEST(test_a_conflict_is_decided),
        TEST(test_a_wrong_body_is_400_and_says_what_is_wrong),
        TEST(test_a_body_that_is_not_declared_as_json_is_415),
        TEST(test_json_with_a_charset_is_json),
        TEST(test_a_change_from_afar_without_a_token_configured_is_403_and_logged),
        TEST(test_a_wrong_token_is_401_with_a_challenge),
        TEST(test_the_right_token_opens_from_afar),
        TEST(test_a_page_of_another_origin_changes_nothing),
        TEST(test_a_rebound_name_changes_nothing),
        TEST(test_reads_are_open_from_afar),
        TEST(test_a_mode_is_changed_at_once_and_noted_with_who_and_why),
        TEST(test_a_change_that_the_ledger_cannot_note_is_told_as_made),
        TEST(test_a_drain_that_is_refused_is_not_noted),
        TEST(test_a_delete_needs_no_body_but_none_of_another_type),
        TEST(test_a_change_from_beyond_loopback_changes_nothing),
        TEST(test_a_replay_window_ends_after_the_time_that_was_given),
        cmocka_unit_test_setup_teardown(test_what_is_settled_already_is_409_with_its_state, set_up,
                                        tear_down),
        TEST(test_a_failed_backup_says_why),
        TEST(test_metrics_do_without_the_partitions_that_the_ledger_cannot_tell),
        TEST(test_stats_give_quantiles_of_every_histogram),
    };
    json_object_seed(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
