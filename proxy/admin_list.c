/*
 * admin_list.c - what the ledger knows, row by row, as JSON.
 *
 * Listings are read page by page: "next" is the value for the next call's after=, null at the end, and the field Link
 * names that call (RFC 8288).
 * Ids are text, because many readers of JSON round numbers above 2^53.
 */
#include "admin_call.h"
#include <inttypes.h>
#include <stdio.h>
#include "admin_query.h"
#include "json_scan.h"

enum { LINK_BYTES_MAX = 1024 };

/* Read the query into the question.  False: already refused. */
static bool question_fill(struct admin_call *call, enum question_kind kind, unsigned known, unsigned required)
{
    char why[128];
    struct admin_query query;
    struct question *question = &call->question;
    if (!admin_query_read(call->request->head.query, known, &query, why, sizeof why)) {
        admin_refuse(call, 400, "bad-parameter", NULL, "%s", why);
        return false;
    }
    if ((query.given & required) != required) {
        admin_refuse(call, 400, "parameter-missing", NULL, "topic, partition and offset are all needed");
        return false;
    }
    question->kind = kind;
    memcpy(question->topic, query.topic, sizeof question->topic);
    question->partition = query.partition;
    question->first = question->last = query.offset;
    question->after_id = query.after;
    memcpy(question->after_topic, query.after_topic, sizeof question->after_topic);
    question->after_partition = query.after_partition;
    question->row_count_max = query.limit == 0 ? ADMIN_ROWS_DEFAULT : (size_t)query.limit;
    return true;
}

/* JSON is taken; its member "next", when it is no null, stands in the call that gives the next page as CURSOR. */
static void answer_page(struct admin_call *call, const char *cursor, json_t *json)
{
    char link[LINK_BYTES_MAX];
    const struct question *question = &call->question;
    const struct http1_head *head = &call->request->head;
    const char *next = json_string_value(json_object_get(json, "next"));
    bool is_topic_asked = call->rest.byte_count == 0 && question->topic[0] != '\0';
    if (next == NULL) {
        admin_answer_json(call, 200, json);
        return;
    }
    snprintf(link, sizeof link, "<%.*s?%s%s%slimit=%zu&%s=%s>; rel=\"next\"", (int)head->path.byte_count,
             head->path.at, is_topic_asked ? "topic=" : "", is_topic_asked ? question->topic : "",
             is_topic_asked ? "&" : "", question->row_count_max, cursor, next);
    struct http1_field field = { slice_of_text("Link"), slice_of_text(link) };
    admin_answer_json_with(call, 200, json, &field);
}

/* ROWS and NEXT are taken. */
static void answer_rows(struct admin_call *call, const char *name, json_t *rows, json_t *next)
{
    answer_page(call, "after",
                json_pack("{s:o, s:I, s:o}", name, rows, "total", (json_int_t)call->question.ret_count,
                          "next", next));
}

static bool is_cut(const struct question *question)
{
    return question->ret_row_count > 0 && question->ret_count > question->ret_row_count;
}

/* The cursor behind the last row when there are more, else null. */
static json_t *next_json(const struct question *question, uint64_t last_id)
{
    return is_cut(question) ? admin_id_json(last_id) : json_null();
}

static json_t *doubt_json(const struct doubt_row *row)
{
    return json_pack("{s:o, s:s, s:i, s:I, s:I, s:I, s:o, s:s, s:I, s:o}", "id", admin_id_json(row->id),
                     "topic", row->topic, "partition", (int)row->partition, "first", (json_int_t)row->first,
                     "last", (json_int_t)row->last, "records", (json_int_t)row->record_count, "since",
                     admin_time_json(row->since_ms), "cause", doubt_cause_name(row->cause), "attempts",
                     (json_int_t)row->attempts, "detail", admin_text_json(row->detail));
}

static void render_doubts(struct admin_call *call)
{
    const struct question *question = &call->question;
    json_t *rows = json_array();
    uint64_t last_id = 0;
    for (size_t i = 0; i < question->ret_row_count; i++) {
        json_array_append_new(rows, doubt_json(&question->ret.doubts[i]));
        last_id = question->ret.doubts[i].id;
    }
    answer_rows(call, "in_doubt", rows, next_json(question, last_id));
}

void admin_on_doubts(struct admin_call *call)
{
    if (question_fill(call, ASK_DOUBTS, QUERY_TOPIC | QUERY_LIMIT | QUERY_AFTER, 0))
        admin_ask(call, render_doubts);
}

static json_t *partition_json(const struct partition_row *row)
{
    json_t *json =
        json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:b}", "topic", row->topic, "partition",
                  (int)row->partition, "generation", (json_int_t)row->generation, "applied",
                  (json_int_t)row->applied_count, "intervals", (json_int_t)row->interval_count, "gaps",
                  (json_int_t)row->gap_count, "in_doubt", (json_int_t)row->in_doubt_count, "in_flight",
                  (json_int_t)row->in_flight_count, "last_result", admin_time_json(row->last_ms),
                  "in_conflict", (int)row->is_in_conflict);
    bool is_empty = row->highest < 0;
    json_object_set_new(json, "lowest", is_empty ? json_null() : json_integer(row->lowest));
    json_object_set_new(json, "highest", is_empty ? json_null() : json_integer(row->highest));
    return json;
}

static void render_partitions(struct admin_call *call)
{
    char place[TOPIC_BYTES_MAX + 16] = "";
    const struct question *question = &call->question;
    json_t *rows = json_array();
    for (size_t i = 0; i < question->ret_row_count; i++)
        json_array_append_new(rows, partition_json(&question->ret.partitions[i]));
    if (is_cut(question)) {
        const struct partition_row *last = &question->ret.partitions[question->ret_row_count - 1];
        snprintf(place, sizeof place, "%s/%" PRId32, last->topic, last->partition);
    }
    answer_rows(call, "partitions", rows, place[0] == '\0' ? json_null() : json_string(place));
}

void admin_on_partitions(struct admin_call *call)
{
    if (question_fill(call, ASK_PARTITIONS, QUERY_TOPIC | QUERY_LIMIT | QUERY_AFTER_PARTITION, 0))
        admin_ask(call, render_partitions);
}

static void render_record(struct admin_call *call)
{
    const struct question *question = &call->question;
    json_t *json =
        json_pack("{s:s, s:i, s:I, s:s}", "topic", question->topic, "partition", (int)question->partition,
                  "offset", (json_int_t)question->first, "state", record_state_name(question->ret_state));
    if (question->ret_state == RECORD_IN_DOUBT && question->ret_row_count > 0)
        json_object_set_new(json, "in_doubt", doubt_json(&question->ret.doubts[0]));
    admin_answer_json(call, 200, json);
}

void admin_on_record(struct admin_call *call)
{
    unsigned all = QUERY_TOPIC | QUERY_PARTITION | QUERY_OFFSET;
    if (question_fill(call, ASK_RECORD, all, all))
        admin_ask(call, render_record);
}

static json_t *mark_json(record_mark mark)
{
    char text[16];
    if (mark == MARK_NONE)
        return json_null();
    snprintf(text, sizeof text, "%08x", mark);
    return json_string(text);
}

/* ---- intervals and replays --------------------------------------------------------------------------------------- */

static void render_intervals(struct admin_call *call)
{
    const struct question *question = &call->question;
    const struct interval_row *row = question->ret.intervals;
    if (question->ret_status == QUESTION_NOT_FOUND) {
        admin_refuse(call, 404, "not-found", NULL, "no record of this partition was ever met here");
        return;
    }
    json_t *rows = json_array();
    json_t *next = json_null();
    for (size_t i = 0; i < question->ret_row_count; i++, row++)
        json_array_append_new(rows, json_pack("{s:I, s:I, s:s}", "first", (json_int_t)row->first, "last",
                                              (json_int_t)row->last, "state", record_state_name(row->state)));
    if (question->ret_count > question->ret_row_count && question->ret_row_count > 0)
        next = admin_id_json((uint64_t)row[-1].last + 1);
    answer_page(call, "from",
                json_pack("{s:s, s:i, s:o, s:o}", "topic", question->topic, "partition",
                          (int)question->partition, "intervals", rows, "next", next));
}

/* /partitions/TOPIC/PARTITION/intervals */
void admin_on_intervals(struct admin_call *call)
{
    static const char end[] = "/intervals";
    const size_t end_bytes = sizeof end - 1;
    struct slice rest = call->rest, topic;
    uint64_t partition = 0;
    const char *slash = memchr(rest.at, '/', rest.byte_count);
    topic = slice_of(rest.at, slash == NULL ? 0 : (size_t)(slash - rest.at));
    size_t digits = rest.byte_count > topic.byte_count + 1 + end_bytes
                        ? rest.byte_count - topic.byte_count - 1 - end_bytes
                        : 0;
    if (!topic_is_legal(topic) || digits == 0 ||
        memcmp(rest.at + rest.byte_count - end_bytes, end, end_bytes) != 0 ||
        !decimal_read(slice_of(slash + 1, digits), INT32_MAX, &partition)) {
        admin_refuse(call, 404, "not-found", NULL, "the path is /partitions/TOPIC/PARTITION/intervals");
        return;
    }
    if (!question_fill(call, ASK_INTERVALS, QUERY_FROM | QUERY_LIMIT, 0))
        return;
    memcpy(call->question.topic, topic.at, topic.byte_count);
    call->question.topic[topic.byte_count] = '\0';
    call->question.partition = (int32_t)partition;
    admin_ask(call, render_intervals);
}

static void render_replays(struct admin_call *call)
{
    uint64_t last_id = 0;
    json_t *rows = json_array();
    for (size_t i = 0; i < call->question.ret_row_count; i++) {
        const struct replay_row *row = &call->question.ret.replays[i];
        last_id = row->id;
        json_array_append_new(
            rows, json_pack("{s:o, s:s, s:i, s:I, s:I, s:o, s:o, s:I}", "id", admin_id_json(row->id), "topic",
                            row->topic, "partition", (int)row->partition, "from", (json_int_t)row->first,
                            "to", (json_int_t)row->last, "opened", admin_time_json(row->opened_ms), "until",
                            admin_time_json(row->until_ms), "replayed", (json_int_t)row->replayed_count));
    }
    answer_rows(call, "replays", rows, next_json(&call->question, last_id));
}

void admin_on_replays(struct admin_call *call)
{
    if (question_fill(call, ASK_REPLAYS, QUERY_TOPIC | QUERY_LIMIT | QUERY_AFTER, 0))
        admin_ask(call, render_replays);
}

/* ---- conflicts and events ---------------------------------------------------------------------------------------- */

static json_t *conflict_json(const struct conflict_row *row)
{
    return json_pack("{s:o, s:s, s:i, s:I, s:s, s:b, s:o, s:o, s:o, s:I}", "id", admin_id_json(row->id),
                     "topic", row->topic, "partition", (int)row->partition, "offset", (json_int_t)row->offset,
                     "kind", row->is_first_sight ? "first-sight" : "identity", "only_the_tail",
                     (int)row->is_tail, "stored_mark", mark_json(row->stored), "seen_mark",
                     mark_json(row->seen), "since", admin_time_json(row->since_ms), "deliveries",
                     (json_int_t)row->count);
}

static void render_conflicts(struct admin_call *call)
{
    const struct question *question = &call->question;
    json_t *rows = json_array();
    uint64_t last_id = 0;
    for (size_t i = 0; i < question->ret_row_count; i++) {
        json_array_append_new(rows, conflict_json(&question->ret.conflicts[i]));
        last_id = question->ret.conflicts[i].id;
    }
    answer_rows(call, "conflicts", rows, next_json(question, last_id));
}

void admin_on_conflicts(struct admin_call *call)
{
    if (question_fill(call, ASK_CONFLICTS, QUERY_TOPIC | QUERY_LIMIT | QUERY_AFTER, 0))
        admin_ask(call, render_conflicts);
}

static json_t *event_json(const struct event_row *row)
{
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:o}", "id", admin_id_json(row->id), "time", admin_time_json(row->time_ms),
                  "event", event_kind_name(row->kind), "detail", admin_text_json(row->detail));
    if (row->topic[0] != '\0')
        json_object_set_new(json, "topic", json_string(row->topic));
    if (row->topic[0] != '\0' && row->partition >= 0) {
        json_object_set_new(json, "partition", json_integer(row->partition));
        json_object_set_new(json, "first", json_integer(row->first));
        json_object_set_new(json, "last", json_integer(row->last));
    }
    return json;
}

/* "next" is never null here: who follows the events asks again from where the last page ended. */
static void render_events(struct admin_call *call)
{
    const struct question *question = &call->question;
    json_t *rows = json_array();
    uint64_t last_id = question->after_id;
    for (size_t i = 0; i < question->ret_row_count; i++) {
        json_array_append_new(rows, event_json(&question->ret.events[i]));
        last_id = question->ret.events[i].id;
    }
    answer_rows(call, "events", rows, admin_id_json(last_id));
}

void admin_on_events(struct admin_call *call)
{
    if (question_fill(call, ASK_EVENTS, QUERY_LIMIT | QUERY_AFTER, 0))
        admin_ask(call, render_events);
}
