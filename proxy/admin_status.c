/*
 * admin_status.c - the state of the program on one page, and what an operator should know, in sentences.
 *
 * A warning is something that a person should do something about, or has decided and should remember.
 */
#include "admin_call.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "clock.h"
#include "metrics.h"
#include "settings_check.h"

/* A probe or a late answer may still settle a younger doubt. */
enum { DOUBT_IS_OLD_MS = 60 * 1000, LEDGER_IS_NEW_MS = 24 * 3600 * 1000 };

/* ---- warnings ------------------------------------------------------------------------------------------------------ */

void admin_warn(json_t *warnings, const char *format, ...)
{
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    json_array_append_new(warnings, admin_text_json(sentence));
}

const char *admin_one_or_many(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

static void warn_of_ledger(json_t *warnings, const struct store_figures *figures,
                           const struct settings *settings)
{
    if (figures->is_failing)
        admin_warn(warnings,
                   "The ledger fails (%s): nothing is sent, and every write is answered with 503 until the "
                   "disk of %s works again.",
                   figures->failure, settings->data_dir);
    if (figures->is_disk_full)
        admin_warn(
            warnings,
            "The disk of %s is full: new records get 503, and what comes of those on their way waits in "
            "memory; make room on it (or raise the limit on the size of the process's files, if it has one), "
            "and all goes on by itself.",
            settings->data_dir);
    else if (figures->is_full)
        admin_warn(warnings,
                   "The ledger is full (%" PRIu64 " of %" PRIu64
                   " bytes): new records get 503, duplicates are still "
                   "answered; raise SINKONCE_LEDGER_MAX, or forget topics that are gone.",
                   figures->used_bytes, figures->max_bytes);
    if (figures->partitions_max > 0 && figures->partition_count >= figures->partitions_max)
        admin_warn(
            warnings,
            "The ledger has met %" PRIu64 " partitions, and SINKONCE_MAX_PARTITIONS is %" PRIu64
            ": a new one gets 503.  Look at GET /partitions for topics that should not be there; forget "
            "those "
            "that are gone, or raise it.",
            figures->partition_count, figures->partitions_max);
}

static void warn_of_records(json_t *warnings, const struct store_figures *figures, uint64_t now_ms)
{
    if (figures->in_doubt_records > 0 && now_ms > figures->in_doubt_oldest_ms + DOUBT_IS_OLD_MS)
        admin_warn(
            warnings,
            "%" PRIu64 " %s in doubt, the oldest for %" PRIu64
            " seconds: look at the target, then resolve them: sinkonce in-doubt list, or GET /in-doubt.",
            figures->in_doubt_records,
            admin_one_or_many(figures->in_doubt_records, "record is", "records are"),
            (now_ms - figures->in_doubt_oldest_ms) / MS_PER_S);
    if (figures->conflict_open_count > 0)
        admin_warn(warnings,
                   "%" PRIu64
                   " %s for a decision, and %s with it: sinkonce conflicts list, or GET /conflicts.",
                   figures->conflict_open_count,
                   admin_one_or_many(figures->conflict_open_count, "conflict waits", "conflicts wait"),
                   admin_one_or_many(figures->conflict_open_count, "its partition", "their partitions"));
    if (figures->replay_open_count > 0)
        admin_warn(
            warnings,
            "%" PRIu64
            " replay %s open: applied records inside are sent again: sinkonce replay list, or GET /replays.",
            figures->replay_open_count,
            admin_one_or_many(figures->replay_open_count, "window is", "windows are"));
}

static void warn_of_age(json_t *warnings, const struct store_figures *figures, uint64_t now_ms)
{
    if (now_ms < figures->created_ms + LEDGER_IS_NEW_MS)
        admin_warn(
            warnings,
            "The ledger is less than a day old: it knows nothing of records that were applied before it "
            "was created.");
}

static void warn_of_mode(json_t *warnings, const struct program_state *state, const struct settings *settings)
{
    const char *who = state->mode == settings->mode ? "SINKONCE_MODE" : "The mode, changed by an operator,";
    if (state->mode == MODE_OFF)
        admin_warn(warnings, "%s is off: every request is forwarded, and nothing is remembered.", who);
    if (state->mode == MODE_OBSERVE)
        admin_warn(warnings, "%s is observe: duplicates are counted and forwarded.", who);
    if (state->is_stopping)
        admin_warn(warnings, "Stopping: what is in flight may end, for SINKONCE_DRAIN_TIMEOUT at most.");
    else if (state->is_draining)
        admin_warn(warnings, "Draining: no new connection is accepted; DELETE /drain resumes.");
}

static void warn_of_probes(json_t *warnings)
{
    if (metrics_gauge(GAUGE_PROBES_FAILING) != 0)
        admin_warn(
            warnings,
            "Probes get no clear answer: records in doubt stay there.  Look at SINKONCE_PROBE_URL and its "
            "rules, and at sinkonce_probes_total.");
}

static void warn_of_settings(json_t *warnings, const struct program_state *state,
                             const struct settings *settings)
{
    if (state->ledger_fades != NULL)
        admin_warn(warnings, "SINKONCE_DATA_DIR=%s %s.", settings->data_dir, state->ledger_fades);
    if (settings->in_doubt == IN_DOUBT_RETRY && settings->key_header[0] == '\0')
        admin_warn(
            warnings,
            "SINKONCE_IN_DOUBT is retry without SINKONCE_KEY_HEADER: each doubt that is sent again may be "
            "a duplicate.");
    if (settings->in_doubt == IN_DOUBT_ASSUME_APPLIED)
        admin_warn(warnings, "SINKONCE_IN_DOUBT is assume-applied: each doubt may be a lost record.");
    if (settings->target.is_https && !settings->is_target_verified)
        admin_warn(warnings, "SINKONCE_TARGET_VERIFY is off: anybody on the way can pose as the target.");
    if (settings->admin_token[0] == '\0' && !listen_address_is_local(&settings->admin_listen))
        admin_warn(warnings,
                   "The admin port listens beyond loopback and SINKONCE_ADMIN_TOKEN is not set: changes are "
                   "refused from there, and reads are open to whoever can reach it.");
}

static void warn_of_end(void *warnings, const char *sentence)
{
    admin_warn(warnings, "%s.", sentence);
}

static void warn_of_credentials(json_t *warnings, const struct admin *admin, uint64_t now_ms)
{
    if (admin->credentials != NULL)
        credentials_ends_tell(admin->credentials, (int64_t)(now_ms / MS_PER_S), warn_of_end, warnings);
    if (admin->parts.state->is_reload_refused)
        admin_warn(warnings, "The last SIGHUP changed nothing, because what it read is wrong: see the log "
                             "(config.invalid).  The secrets and certificates from before it hold.");
    if (admin->parts.state->reload_late_count > 0)
        admin_warn(
            warnings,
            "Event loops that stand still, and have not taken what the last SIGHUP changed: %zu.  The "
            "secrets "
            "and certificates from before it may still be used there until the log says config.reloaded.",
            admin->parts.state->reload_late_count);
}

static const char *state_name(const struct program_state *state, const struct store_figures *figures)
{
    if (state->is_draining)
        return "draining";
    if (!state->is_started)
        return "starting";
    if (figures->is_failing)
        return "ledger-failing";
    return state->is_ready ? "ready" : "not-ready";
}

static json_t *ledger_json(const struct store *store, const struct store_figures *figures)
{
    return json_pack(
        "{s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b}", "id", store_id(store), "created",
        admin_time_json(figures->created_ms), "boots", (json_int_t)figures->boot_count, "used_bytes",
        (json_int_t)figures->used_bytes, "max_bytes", (json_int_t)figures->max_bytes, "commits",
        (json_int_t)figures->commit_count, "errors", (json_int_t)figures->error_count, "intervals",
        (json_int_t)figures->interval_count, "partitions", (json_int_t)figures->partition_count,
        "partitions_max", (json_int_t)figures->partitions_max, "full", (int)figures->is_full, "disk_full",
        (int)figures->is_disk_full, "failing", (int)figures->is_failing);
}

static json_t *counter_json(enum counter counter)
{
    return json_integer((json_int_t)metrics_counter(counter));
}

static json_t *records_json(const struct store_figures *figures)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I}", "taken_in",
        counter_json(COUNTER_RECORDS), "applied", counter_json(COUNTER_RECORDS_APPLIED), "duplicate",
        counter_json(COUNTER_RECORDS_DUPLICATE), "rejected", counter_json(COUNTER_RECORDS_REJECTED),
        "not_sent", counter_json(COUNTER_RECORDS_NOT_SENT), "busy", counter_json(COUNTER_RECORDS_BUSY),
        "conflict", counter_json(COUNTER_RECORDS_CONFLICT), "unkeyed", counter_json(COUNTER_RECORDS_UNKEYED),
        "entered_in_doubt", counter_json(COUNTER_RECORDS_IN_DOUBT), "in_doubt_now",
        (json_int_t)figures->in_doubt_records, "in_doubt_oldest",
        admin_time_json(figures->in_doubt_oldest_ms), "conflicts_open",
        (json_int_t)figures->conflict_open_count);
}

void admin_on_status(struct admin_call *call)
{
    const struct program_state *state = call->admin->parts.state;
    const struct settings *settings = call->admin->parts.settings;
    struct store_figures figures;
    uint64_t now_ms = clock_unix_ms();
    json_t *warnings = json_array();
    store_figures_get(call->admin->parts.store, &figures);
    warn_of_ledger(warnings, &figures, settings);
    warn_of_records(warnings, &figures, now_ms);
    admin_warn_of_recent(warnings, call->admin);
    warn_of_probes(warnings);
    warn_of_mode(warnings, state, settings);
    warn_of_settings(warnings, state, settings);
    warn_of_credentials(warnings, call->admin, now_ms);
    warn_of_age(warnings, &figures, now_ms);
    uint64_t uptime_ms = now_ms > state->started_ms ? now_ms - state->started_ms : 0;
    admin_answer_json(
        call, 200,
        json_pack("{s:s, s:o, s:s, s:s, s:o, s:I, s:o, s:I, s:I, s:I, s:o, s:o}", "state",
                  state_name(state, &figures), "warnings", warnings, "version", SINKONCE_VERSION, "mode",
                  mode_name(state->mode), "started", admin_time_json(state->started_ms), "uptime_seconds",
                  (json_int_t)(uptime_ms / MS_PER_S), "target", admin_text_json(settings->target.authority),
                  "connections", (json_int_t)metrics_gauge(GAUGE_CONNECTIONS), "requests_in_flight",
                  (json_int_t)metrics_gauge(GAUGE_REQUESTS_IN_FLIGHT), "target_requests_in_flight",
                  (json_int_t)metrics_gauge(GAUGE_TARGET_IN_FLIGHT), "records", records_json(&figures),
                  "ledger", ledger_json(call->admin->parts.store, &figures)));
}
