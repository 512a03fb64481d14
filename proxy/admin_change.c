/*
 * admin_change.c - what an operator decides about records: doubts resolved, conflicts settled, replays, forgetting.
 *
 * Every change tells the ledger who made it and why, which keeps it with its event, and the log.
 */
#include "admin_body.h"
#include "admin_call.h"
#include <inttypes.h>
#include <stdio.h>
#include "clock.h"
#include "settings_quantity.h"

/* ---- what became of it ------------------------------------------------------------------------------------------ */

static void log_change_of(const struct admin_call *call, const char *result, uint64_t record_count)
{
    LOG_EVENT(LOG_LEVEL_INFO, "admin.change", "an operator decided", log_text("peer", call->request->peer),
              log_slice("path", call->request->head.path), log_text("decision", result),
              log_text("reason", call->reason), log_integer("records", (int64_t)record_count));
}

static void log_change(const struct admin_call *call, const char *result)
{
    log_change_of(call, result, call->question.ret_count);
}

static void answer_mismatch(struct admin_call *call)
{
    const struct question *question = &call->question;
    admin_answer_json(call, 409,
                      json_pack("{s:s, s:s, s:I, s:I}", "error", "count-mismatch", "detail",
                                "the filter matches another number of records; nothing was changed",
                                "expect_count", (json_int_t)question->expect_count, "count",
                                (json_int_t)question->ret_count));
}

static void render_resolved(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status == QUESTION_NOT_FOUND && question->ret_id != 0) {
        admin_answer_json(call, 409,
                          json_pack("{s:s, s:s, s:s}", "error", "settled", "detail",
                                    "this doubt is over already; nothing was changed", "state",
                                    record_state_name(question->ret_state)));
        return;
    }
    if (question->ret_status == QUESTION_NOT_FOUND) {
        admin_refuse(call, 404, "not-found", NULL, "nothing in doubt has the id %" PRIu64, question->id);
        return;
    }
    if (question->ret_status == QUESTION_MISMATCH) {
        answer_mismatch(call);
        return;
    }
    const char *resolution = question->is_applied ? "applied" : "not-applied";
    log_change(call, resolution);
    admin_answer_json(
        call, 200,
        json_pack("{s:s, s:I}", "resolution", resolution, "records", (json_int_t)question->ret_count));
}

static void render_decided(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status != QUESTION_OK) {
        admin_refuse(call, 404, "not-found", NULL, "no open conflict has the id %" PRIu64, question->id);
        return;
    }
    const char *decision = question->is_new_topic ? "new-topic" : "same";
    log_change(call, decision);
    admin_answer_json(call, 200, json_pack("{s:s}", "decision", decision));
}

/* ---- the changes ------------------------------------------------------------------------------------------------ */

void admin_on_resolve_one(struct admin_call *call)
{
    struct admin_member members[] = { { "resolution", true, NULL }, { "reason", true, NULL } };
    struct question *question = &call->question;
    json_t *body = admin_body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_RESOLVE_ONE;
    question->id = call->id;
    bool is_fine = admin_members_get(call, body, members, 2) &&
                   admin_word_get(call, &members[0], "applied", "not-applied", &question->is_applied) &&
                   admin_reason_get(call, &members[1]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_resolved);
}

enum { EXPECT_COUNT, REASON, TOPIC, PARTITION, FROM, TO, RESOLUTION, FILTER_MEMBER_COUNT };

/* Each part of the filter only narrows the one before it: offsets mean nothing without their partition. */
static bool filter_get(struct admin_call *call, const struct admin_member members[])
{
    struct question *question = &call->question;
    uint64_t partition = 0, first = 0, last = 0;
    question->first = question->last = -1;
    if (members[PARTITION].value != NULL && members[TOPIC].value == NULL)
        return admin_refuse_value(call, &members[PARTITION], "given together with \"topic\"");
    if ((members[FROM].value == NULL) != (members[TO].value == NULL))
        return admin_refuse_value(call, &members[FROM], "given together with \"to\"");
    if (members[FROM].value != NULL && members[PARTITION].value == NULL)
        return admin_refuse_value(call, &members[FROM], "given together with \"partition\"");
    if (members[TOPIC].value != NULL && !admin_topic_get(call, &members[TOPIC], question->topic))
        return false;
    if (members[PARTITION].value != NULL) {
        if (!admin_number_get(call, &members[PARTITION], INT32_MAX, &partition))
            return false;
        question->partition = (int32_t)partition;
    }
    if (members[FROM].value == NULL)
        return true;
    if (!admin_number_get(call, &members[FROM], INT64_MAX, &first) ||
        !admin_number_get(call, &members[TO], INT64_MAX, &last))
        return false;
    if (first > last)
        return admin_refuse_value(call, &members[FROM], "at most \"to\"");
    question->first = (int64_t)first;
    question->last = (int64_t)last;
    return true;
}

void admin_on_resolve_many(struct admin_call *call)
{
    struct admin_member members[FILTER_MEMBER_COUNT] = {
        [RESOLUTION] = { "resolution", true, NULL },
        [EXPECT_COUNT] = { "expect_count", true, NULL },
        [REASON] = { "reason", true, NULL },
        [TOPIC] = { "topic", false, NULL },
        [PARTITION] = { "partition", false, NULL },
        [FROM] = { "from", false, NULL },
        [TO] = { "to", false, NULL },
    };
    struct question *question = &call->question;
    json_t *body = admin_body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_RESOLVE;
    bool is_fine =
        admin_members_get(call, body, members, FILTER_MEMBER_COUNT) && filter_get(call, members) &&
        admin_word_get(call, &members[RESOLUTION], "applied", "not-applied", &question->is_applied) &&
        admin_number_get(call, &members[EXPECT_COUNT], INT64_MAX, &question->expect_count) &&
        admin_reason_get(call, &members[REASON]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_resolved);
}

void admin_on_decide(struct admin_call *call)
{
    struct admin_member members[] = { { "decision", true, NULL }, { "reason", true, NULL } };
    struct question *question = &call->question;
    json_t *body = admin_body_read(call);
    if (body == NULL)
        return;
    question->kind = DO_DECIDE;
    question->id = call->id;
    bool is_fine = admin_members_get(call, body, members, 2) &&
                   admin_word_get(call, &members[0], "new-topic", "same", &question->is_new_topic) &&
                   admin_reason_get(call, &members[1]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_decided);
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

static void render_replay_opened(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status == QUESTION_NOT_FOUND) {
        admin_refuse(call, 404, "not-found", NULL, "no record of partition %d of \"%s\" was ever met here",
                     (int)question->partition, question->topic);
        return;
    }
    if (question->ret_status == QUESTION_MISMATCH) {
        admin_refuse(
            call, 409, "replay-overlaps", NULL,
            "the range overlaps a replay window that is open, or too many are open: see GET /replays");
        return;
    }
    log_change(call, "replay");
    admin_answer_json(call, 200,
                      json_pack("{s:o, s:s, s:i, s:I, s:I, s:o}", "id", admin_id_json(question->ret_id),
                                "topic", question->topic, "partition", (int)question->partition, "from",
                                (json_int_t)question->first, "to", (json_int_t)question->last, "until",
                                admin_time_json(question->until_ms)));
}

/* "10m" from now. */
static bool until_get(struct admin_call *call, const struct admin_member *member)
{
    static const struct settings_row bounds = { .name = "for", .low = 1000, .high = 31 * UINT64_C(86400000) };
    char room[SETTINGS_WORDS_MAX];
    uint64_t for_ms = 0;
    const char *text = json_string_value(member->value);
    const char *wrong = text == NULL ? "" : quantity_parse(QUANTITY_DURATION, text, &bounds, &for_ms, room);
    if (wrong != NULL)
        return admin_refuse_value(call, member, "a duration as text, from \"1s\" to \"31d\", as in \"10m\"");
    call->question.until_ms = clock_unix_ms() + for_ms;
    return true;
}

void admin_on_replay_open(struct admin_call *call)
{
    enum { FOR = EXPECT_COUNT }; /* a window has a time in place of a count */
    struct admin_member members[FILTER_MEMBER_COUNT] = {
        [FOR] = { "for", true, NULL },     [REASON] = { "reason", false, NULL },
        [TOPIC] = { "topic", true, NULL }, [PARTITION] = { "partition", true, NULL },
        [FROM] = { "from", true, NULL },   [TO] = { "to", true, NULL },
    };
    json_t *body = admin_body_read(call);
    if (body == NULL)
        return;
    call->question.kind = DO_REPLAY_OPEN;
    bool is_fine = admin_members_get(call, body, members, RESOLUTION) && filter_get(call, members) &&
                   until_get(call, &members[FOR]) && admin_reason_get(call, &members[REASON]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_replay_opened);
}

static void render_replay_closed(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status != QUESTION_OK) {
        admin_refuse(call, 404, "not-found", NULL, "no open replay window has the id %" PRIu64, question->id);
        return;
    }
    log_change(call, "replay closed");
    admin_answer_json(call, 200,
                      json_pack("{s:o, s:I}", "id", admin_id_json(question->id), "replayed",
                                (json_int_t)question->ret_count));
}

void admin_on_replay_close(struct admin_call *call)
{
    struct admin_member reason = { "reason", false, NULL };
    json_t *body = call->request->body_bytes == 0 ? json_object() : admin_body_read(call);
    if (body == NULL)
        return;
    call->question.kind = DO_REPLAY_CLOSE;
    call->question.id = call->id;
    bool is_fine = admin_members_get(call, body, &reason, 1) && admin_reason_get(call, &reason);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_replay_closed);
}

/* ---- forgetting -------------------------------------------------------------------------------------------------- */

/* Some of many partitions have gone already. */
static void answer_half_forgotten(struct admin_call *call)
{
    const struct question *question = &call->question;
    log_change_of(call, "forget, stopped", question->ret_done_count);
    admin_answer_json(call, 409,
                      json_pack("{s:s, s:s, s:I, s:I, s:I}", "error", "count-mismatch", "detail",
                                "records came while their topic was being forgotten: a part of it is "
                                "forgotten, the rest is as it was",
                                "expect_count", (json_int_t)question->expect_count, "count",
                                (json_int_t)question->ret_count, "forgotten",
                                (json_int_t)question->ret_done_count));
}

static void render_forgotten(struct admin_call *call)
{
    const struct question *question = &call->question;
    if (question->ret_status == QUESTION_NOT_FOUND) {
        admin_refuse(call, 404, "not-found", NULL, "no record of this topic or partition was ever met here");
        return;
    }
    if (question->ret_status == QUESTION_MISMATCH && question->ret_done_count > 0) {
        answer_half_forgotten(call);
        return;
    }
    if (question->ret_status == QUESTION_MISMATCH) {
        answer_mismatch(call);
        return;
    }
    log_change(call, "forget");
    admin_answer_json(call, 200, json_pack("{s:I}", "records", (json_int_t)question->ret_count));
}

void admin_on_forget(struct admin_call *call)
{
    struct admin_member members[FILTER_MEMBER_COUNT] = {
        [EXPECT_COUNT] = { "expect_count", true, NULL },
        [REASON] = { "reason", true, NULL },
        [TOPIC] = { "topic", true, NULL },
        [PARTITION] = { "partition", false, NULL },
        [FROM] = { "from", false, NULL },
        [TO] = { "to", false, NULL },
    };
    json_t *body = admin_body_read(call);
    if (body == NULL)
        return;
    call->question.kind = DO_FORGET;
    bool is_fine = admin_members_get(call, body, members, RESOLUTION) && filter_get(call, members) &&
                   admin_number_get(call, &members[EXPECT_COUNT], INT64_MAX, &call->question.expect_count) &&
                   admin_reason_get(call, &members[REASON]);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_forgotten);
}
