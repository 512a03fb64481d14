/*
 * admin_control.c - what an operator changes about the running program: mode, log level, drain; and the backup.
 *
 * The program changes first and the ledger notes it afterwards: a disk that fails is one of the reasons to drain.
 */
#include "admin_body.h"
#include "admin_call.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "log_line.h"

static void log_control(const struct admin_call *call, const char *words)
{
    LOG_EVENT(LOG_LEVEL_WARN, "admin.change", "an operator changed the running program",
              log_text("peer", call->request->peer), log_slice("path", call->request->head.path),
              log_text("decision", words), log_text("reason", call->reason));
}

/* The answer and the event for what has just been changed; JSON is taken. */
static void control_note(struct admin_call *call, const char *words, json_t *json)
{
    char detail[sizeof call->question.detail], who[sizeof call->question.detail];
    memcpy(who, call->question.detail, sizeof who); /* by whom and why */
    snprintf(detail, sizeof detail, "%s %.150s", words, who);
    log_control(call, words);
    admin_note(call, detail, json);
}

/* NAME and "reason" of the body.  NULL: already refused. */
static json_t *one_member_get(struct admin_call *call, const char *name, struct admin_member *ret_member)
{
    struct admin_member members[] = { { "reason", false, NULL }, { name, true, NULL } };
    size_t member_count = name == NULL ? 1 : 2;
    json_t *body = call->request->body_bytes == 0 && name == NULL ? json_object() : admin_body_read(call);
    if (body == NULL)
        return NULL;
    if (!admin_members_get(call, body, members, member_count) || !admin_reason_get(call, &members[0])) {
        json_decref(body);
        return NULL;
    }
    if (ret_member != NULL)
        *ret_member = members[1];
    return body;
}

/* Which of NAMES it is; -1: already refused. */
static int choice_get(struct admin_call *call, const struct admin_member *member, const char *const names[],
                      int name_count, const char *words)
{
    const char *text = json_string_value(member->value);
    for (int i = 0; i < name_count && text != NULL; i++) {
        if (strcmp(text, names[i]) == 0)
            return i;
    }
    admin_refuse_value(call, member, words);
    return -1;
}

void admin_on_mode(struct admin_call *call)
{
    const char *const names[] = { mode_name(MODE_ENFORCE), mode_name(MODE_OBSERVE), mode_name(MODE_OFF) };
    const struct program_controls *controls = call->admin->parts.controls;
    struct admin_member member;
    char words[32];
    json_t *body = one_member_get(call, "mode", &member);
    if (body == NULL)
        return;
    int mode = choice_get(call, &member, names, 3, "\"enforce\", \"observe\" or \"off\"");
    json_decref(body);
    if (mode < 0)
        return;
    controls->mode_set(controls->context, (enum mode)mode);
    snprintf(words, sizeof words, "mode %s", names[mode]);
    control_note(call, words, json_pack("{s:s}", "mode", names[mode]));
}

void admin_on_log_level(struct admin_call *call)
{
    const char *const names[] = { log_level_name(LOG_LEVEL_ERROR), log_level_name(LOG_LEVEL_WARN),
                                  log_level_name(LOG_LEVEL_INFO), log_level_name(LOG_LEVEL_DEBUG) };
    struct admin_member member;
    char words[32];
    json_t *body = one_member_get(call, "level", &member);
    if (body == NULL)
        return;
    int level = choice_get(call, &member, names, 4, "\"error\", \"warn\", \"info\" or \"debug\"");
    json_decref(body);
    if (level < 0)
        return;
    log_level_set((enum log_level)level);
    snprintf(words, sizeof words, "log level %s", names[level]);
    control_note(call, words, json_pack("{s:s}", "level", names[level]));
}

static void drain_set(struct admin_call *call, bool is_draining)
{
    const struct program_controls *controls = call->admin->parts.controls;
    char why[256] = "";
    json_t *body = one_member_get(call, NULL, NULL);
    if (body == NULL)
        return;
    json_decref(body);
    if (!controls->drain_set(controls->context, is_draining, why, sizeof why)) {
        admin_refuse(call, 409, "not-now", NULL, "%s", why);
        return;
    }
    control_note(call, is_draining ? "drain" : "resume", json_pack("{s:b}", "draining", (int)is_draining));
}

void admin_on_drain(struct admin_call *call)
{
    drain_set(call, true);
}

void admin_on_resume(struct admin_call *call)
{
    drain_set(call, false);
}

/* ---- backup ------------------------------------------------------------------------------------------------------ */

static void render_backup_noted(struct admin_call *call)
{
    json_t *json = call->made;
    call->made = NULL;
    admin_answer_json(call, 200, json);
}

static void render_backup(struct admin_call *call)
{
    struct question *question = &call->question;
    char detail[sizeof question->detail];
    if (question->ret_status == QUESTION_MISMATCH) {
        admin_refuse(call, 409, "file-exists", NULL,
                     "there is a file at this path already: name another one");
        return;
    }
    if (call->is_ledger_failed) {
        admin_refuse(call, 503, "backup-failed", NULL, "%s", question->ret_why);
        return;
    }
    call->made = json_pack("{s:o, s:I}", "path", admin_text_json(question->detail), "bytes",
                           (json_int_t)question->ret_count);
    log_control(call, "backup");
    snprintf(detail, sizeof detail, "backup by %s: %.100s", call->request->peer, call->reason);
    store_question_deinit(question);
    *question = (struct question){ .kind = DO_NOTE, .partition = -1 };
    memcpy(question->detail, detail, sizeof question->detail);
    admin_ask(call, render_backup_noted);
}

/* Names a file directly in the data folder or in the folder around it, whatever links lead there: the admin port must
 * not write anywhere else.  A bare name is one in the data folder. */
static bool path_get(struct admin_call *call, const struct admin_member *member, char path[],
                     size_t path_bytes_max)
{
    static const char words[] = "the path of a new file directly in the data folder or in its parent";
    char given[PATH_MAX], folder[PATH_MAX], data[PATH_MAX], parent[PATH_MAX + 4];
    const char *text = json_string_value(member->value);
    const char *name = text == NULL ? NULL : strrchr(text, '/');
    const char *data_dir = call->admin->parts.settings->data_dir;
    name = name == NULL ? text : name + 1;
    if (text == NULL || strlen(text) >= sizeof given || strlen(text) != json_string_length(member->value) ||
        *name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return admin_refuse_value(call, member, words);
    snprintf(given, sizeof given, "%.*s", (int)(name - text), text);
    if (realpath(data_dir, data) == NULL || snprintf(parent, sizeof parent, "%s/..", data) < 0 ||
        realpath(name == text ? data_dir : given, folder) == NULL)
        return admin_refuse_value(call, member, words);
    char *around = realpath(parent, NULL);
    bool is_inside = strcmp(folder, data) == 0 || (around != NULL && strcmp(folder, around) == 0);
    free(around);
    if (!is_inside)
        return admin_refuse_value(call, member, words);
    int bytes = snprintf(path, path_bytes_max, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    return (bytes > 0 && (size_t)bytes < path_bytes_max) ||
           admin_refuse_value(call, member, "shorter: the whole path has at most 191 bytes");
}

void admin_on_backup(struct admin_call *call)
{
    struct admin_member member;
    json_t *body = one_member_get(call, "path", &member);
    if (body == NULL)
        return;
    call->question.kind = DO_BACKUP;
    call->is_always_rendered = true;
    bool is_fine = path_get(call, &member, call->question.detail, sizeof call->question.detail);
    json_decref(body);
    if (is_fine)
        admin_ask(call, render_backup);
}
