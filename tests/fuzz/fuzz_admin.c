/*
 * fuzz_admin.c - any request at the admin port, before a ledger in memory: one answer each, in a form that can be read,
 * and nothing of the request becomes a line of its head.
 *
 * The input is a request head and its body.  A head that the codec refuses never comes here.  The ledger is the fake of
 * the other tests, with a doubt, a conflict, a replay window and some partitions in it.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "admin.h"
#include "desk.h"
#include "fuzz.h"
#include "silent_log.h"

enum { HEAD_BYTES_MAX = 16384, BODY_BYTES_MAX = 65536 };

/* ---- what is around the admin port -------------------------------------------------------------------------------- */

struct conn {
    int reply_count;
};

static void check_json(struct slice body, int status)
{
    json_error_t error;
    json_t *json = json_loadb(body.at, body.byte_count, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    assert(json_is_object(json));
    if (status >= 400) {
        assert(json_string_length(json_object_get(json, "error")) > 0);
        assert(json_is_string(json_object_get(json, "detail")));
    }
    json_decref(json);
}

void conn_reply(struct conn *conn, const struct reply *reply)
{
    bool is_json = false;
    conn->reply_count++;
    assert(reply->status >= 200 && reply->status <= 599);
    for (size_t i = 0; i < reply->field_count; i++) {
        assert(http1_token_is_valid(reply->fields[i].name) && http1_value_is_valid(reply->fields[i].value));
        is_json = is_json || slice_equals_text(reply->fields[i].value, "application/json");
    }
    if (is_json)
        check_json(reply->body, reply->status);
    free(reply->body_owned);
}

void conn_exchange_set(struct conn *conn, void *exchange)
{
    (void)conn, (void)exchange;
}

void request_free(struct request *request)
{
    if (request == NULL)
        return;
    free(request->body);
    free(request);
}

void log_level_set(enum log_level level)
{
    assert(level >= LOG_LEVEL_ERROR && level <= LOG_LEVEL_DEBUG);
}

static struct program_state program;

static void mode_set(void *context, enum mode mode)
{
    (void)context;
    assert(mode == MODE_ENFORCE || mode == MODE_OBSERVE || mode == MODE_OFF);
    program.mode = mode;
}

static bool drain_set(void *context, bool is_draining, char ret_why[], size_t why_bytes_max)
{
    (void)context;
    snprintf(ret_why, why_bytes_max, "the program is stopping");
    return is_draining;
}

/* ---- a ledger with something of everything ------------------------------------------------------------------------ */

static void fill(struct desk *desk)
{
    struct question question = {
        .kind = DO_REPLAY_OPEN, .topic = "orders", .last = 2, .until_ms = UINT64_MAX
    };
    desk_offer(desk, "orders", 0, 0, 5, mark_of_timestamp(1000), OUTCOME_APPLIED);
    desk_offer(desk, "orders", 0, 7, 2, MARK_NONE, OUTCOME_UNKNOWN);
    desk_offer(desk, "orders", 10, 5, 1, MARK_NONE, OUTCOME_APPLIED);
    desk_offer(desk, "bills.v-2_x", 3, 0, 1, mark_of_timestamp(1000), OUTCOME_APPLIED);
    desk_offer(desk, "bills.v-2_x", 3, 0, 1, mark_of_timestamp(2000), OUTCOME_APPLIED);
    enum store_status status = desk_ask(desk, &question);
    assert(status == STORE_OK && question.ret_status == QUESTION_OK);
    store_question_deinit(&question);
}

static const struct settings *settings_get(void)
{
    char *environment[] = { (char[]){ "SINKONCE_TARGET=http://127.0.0.1:9" },
                            (char[]){ "SINKONCE_DATA_DIR=/nonexistent/sinkonce" },
                            (char[]){ "SINKONCE_ADMIN_TOKEN=t0ken-t0ken" },
                            (char[]){ "SINKONCE_METRICS_PARTITIONS=on" }, NULL };
    static struct settings settings;
    static bool is_read;
    struct settings_mistakes mistakes;
    if (is_read)
        return &settings;
    is_read = settings_read(environment, &settings, &mistakes);
    assert(is_read);
    settings_mistakes_deinit(&mistakes);
    return &settings;
}

static void run(struct request *request)
{
    static const struct program_controls controls = { .mode_set = mode_set, .drain_set = drain_set };
    struct conn conn = { 0 };
    struct store_options options = desk_options("/nonexistent");
    struct store *store;
    char why[256];
    enum store_open_status opened = store_open(&options, &store, why, sizeof why);
    assert(opened == STORE_OPENED);
    struct desk desk = desk_open(store);
    fill(&desk);
    program = (struct program_state){ .is_started = true, .is_ready = true };
    struct admin *admin = admin_new(&(struct admin_parts){ .settings = settings_get(),
                                                           .store = store,
                                                           .port = desk.port,
                                                           .state = &program,
                                                           .controls = &controls });
    assert(admin != NULL);
    admin_service(admin)->on_request(admin_service(admin)->context, &conn, &request);
    assert(request == NULL);
    while (admin_open_count(admin) > 0)
        store_port_deliver(desk.port);
    assert(conn.reply_count == 1);
    admin_free(admin);
    desk_close(&desk);
    store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    const char *bytes = (const char *)input;
    enum finish why;
    struct request *request = calloc(1, sizeof *request);
    assert(request != NULL);
    if (http1_head(bytes, input_bytes, HEAD_BYTES_MAX, BODY_BYTES_MAX, &request->head, &why) != HTTP1_DONE) {
        free(request);
        return 0;
    }
    request->body_bytes = input_bytes - request->head.byte_count;
    request->body = malloc(request->body_bytes + (request->body_bytes == 0));
    assert(request->body != NULL);
    memcpy(request->body, bytes + request->head.byte_count, request->body_bytes);
    request->is_trusted_peer = true;
    snprintf(request->peer, sizeof request->peer, "127.0.0.1:5");
    run(request);
    return 0;
}
