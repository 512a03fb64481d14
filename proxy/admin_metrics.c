/*
 * admin_metrics.c - all metrics: as text for Prometheus, as JSON with quantiles for people and the page.
 *
 * The gauges of the partitions need the ledger's answer; without it the rest is told all the same.
 */
#include "admin_call.h"
#include <stdio.h>
#include "clock.h"
#include "metrics.h"
#include "metrics_text.h"

enum { PARTITIONS_MAX = 10000 };

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Does ACCEPT name the type with a weight above 0?  Who asks for OpenMetrics by name gets it, whatever else is there
 * (RFC 9110, 12.5.1). */
static bool is_open_metrics_asked(const struct http1_head *head)
{
    static const char type[] = "application/openmetrics-text";
    for (size_t i = 0; i < head->field_count; i++) {
        struct slice list = head->fields[i].value, member;
        while (http1_name_equals(head->fields[i].name, "accept") && http1_list_next(&list, &member)) {
            if (member.byte_count >= sizeof type - 1 && memcmp(member.at, type, sizeof type - 1) == 0 &&
                memmem(member.at, member.byte_count, "q=0;", 4) == NULL &&
                !(member.byte_count >= 3 && memcmp(member.at + member.byte_count - 3, "q=0", 3) == 0))
                return true;
        }
    }
    return false;
}

static void render_metrics(struct admin_call *call)
{
    size_t bytes;
    const struct admin_parts *parts = &call->admin->parts;
    const struct metrics_view view = { .store = parts->store,
                                       .credentials = call->admin->credentials,
                                       .mode = parts->state->mode,
                                       .is_open_metrics = is_open_metrics_asked(&call->request->head),
                                       .has_partitions = parts->settings->has_partition_metrics,
                                       .partitions = call->question.ret.partitions,
                                       .partition_count = call->question.ret_row_count };
    admin_answer_text(call, 200,
                      view.is_open_metrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8",
                      metrics_text(&view, &bytes));
}

void admin_on_metrics(struct admin_call *call)
{
    if (!call->admin->parts.settings->has_partition_metrics || call->admin->open_count >= ADMIN_OPEN_MAX) {
        render_metrics(call);
        return;
    }
    call->question.kind = ASK_PARTITIONS;
    call->question.row_count_max = PARTITIONS_MAX;
    call->is_always_rendered = true;
    admin_ask(call, render_metrics);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void counter_add(json_t *counters, enum counter counter, const char *metric, const char *labels)
{
    char name[128];
    json_t *topics;
    if ((unsigned)counter >= TOPIC_COUNTER_COUNT) {
        snprintf(name, sizeof name, "%s%s%s%s", metric, labels[0] == '\0' ? "" : "{", labels,
                 labels[0] == '\0' ? "" : "}");
        json_object_set_new(counters, name, json_integer((json_int_t)metrics_counter(counter)));
        return;
    }
    topics = json_object();
    for (unsigned topic = 0; topic <= metrics_topic_count(); topic++) {
        unsigned number = topic == metrics_topic_count() ? METRICS_TOPIC_OTHER : topic;
        uint64_t count = metrics_topic_counter(counter, number);
        if (count > 0)
            json_object_set_new(topics, metrics_topic_name(number), json_integer((json_int_t)count));
    }
    json_object_set_new(
        counters, metric,
        json_pack("{s:I, s:o}", "all", (json_int_t)metrics_counter(counter), "topics", topics));
}

static json_t *counters_json(void)
{
    json_t *counters = json_object();
#define COUNTER(NAME, metric, labels, words) counter_add(counters, COUNTER_##NAME, metric, labels);
#include "tbl/counters.h"
    return counters;
}

static json_t *gauges_json(void)
{
    json_t *gauges = json_object();
#define GAUGE(NAME, metric, per_unit, words)                                                                 \
    json_object_set_new(gauges, metric,                                                                      \
                        per_unit == 1 ? json_integer((json_int_t)metrics_gauge(GAUGE_##NAME))                \
                                      : json_real((double)metrics_gauge(GAUGE_##NAME) / per_unit));
#include "tbl/counters.h"
    return gauges;
}

/* Straight between the bounds of the bucket that holds it; above the last bound it is not known better than that. */
static double quantile(const struct histogram_reading *reading, const struct histogram_unit *unit,
                       double part)
{
    double rank = part * (double)reading->count, below = 0;
    for (size_t i = 0; i < unit->bound_count; i++) {
        double here = (double)reading->buckets[i];
        double low = i == 0 ? 0 : (double)unit->bounds[i - 1], high = (double)unit->bounds[i];
        if (here > 0 && below + here >= rank)
            return (low + (high - low) * (rank - below) / here) / (double)unit->per_unit;
        below += here;
    }
    return (double)unit->bounds[unit->bound_count - 1] / (double)unit->per_unit;
}

static void histogram_add(json_t *histograms, enum histogram histogram, const char *metric)
{
    struct histogram_reading reading;
    const struct histogram_unit *unit = metrics_histogram_unit(histogram);
    metrics_histogram_get(histogram, &reading);
    json_t *json = json_pack("{s:I, s:f}", "count", (json_int_t)reading.count, "sum",
                             (double)reading.sum / (double)unit->per_unit);
    static const struct {
        const char *name;
        double part;
    } quantiles[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 } };
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        json_object_set_new(json, quantiles[i].name,
                            reading.count == 0 ? json_null()
                                               : json_real(quantile(&reading, unit, quantiles[i].part)));
    json_object_set_new(histograms, metric, json);
}

static json_t *histograms_json(void)
{
    json_t *histograms = json_object();
#define HISTOGRAM(NAME, metric, unit, words) histogram_add(histograms, HISTOGRAM_##NAME, metric);
#include "tbl/counters.h"
    return histograms;
}

static json_t *certificates_json(const struct credentials *credentials)
{
    json_t *ends = json_object();
    for (enum tls_use use = 0; credentials != NULL && use < TLS_USES; use++) {
        for (enum tls_part part = 0; part < TLS_PARTS; part++) {
            int64_t end_s = credentials_end_s(credentials, use, part);
            if (end_s != 0)
                json_object_set_new(ends, tls_uses[use].labels[part],
                                    admin_time_json((uint64_t)end_s * MS_PER_S));
        }
    }
    return ends;
}

static json_t *requests_json(void)
{
    json_t *requests = json_object();
    for (int method = 0; method < HTTP1_METHOD_COUNT; method++) {
        json_t *codes = json_object();
        for (int code = METRICS_CODE_MIN; code <= METRICS_CODE_MAX; code++) {
            char text[16];
            uint64_t count = metrics_request_count(method, code);
            snprintf(text, sizeof text, "%d", code);
            if (count > 0)
                json_object_set_new(codes, text, json_integer((json_int_t)count));
        }
        json_object_set_new(requests, http1_method_name((enum http1_method)method), codes);
    }
    return requests;
}

static json_t *responses_json(void)
{
    json_t *codes = json_object();
    for (int code = METRICS_CODE_MIN; code <= METRICS_CODE_MAX; code++) {
        char text[16];
        uint64_t count = metrics_target_response_count(code);
        snprintf(text, sizeof text, "%d", code);
        if (count > 0)
            json_object_set_new(codes, text, json_integer((json_int_t)count));
    }
    return codes;
}

static json_t *ledger_json(const struct store_figures *figures)
{
    json_t *causes = json_object(), *entered = json_object();
    for (enum doubt_cause cause = 0; cause < DOUBT_COUNT; cause++) {
        json_object_set_new(causes, doubt_cause_name(cause),
                            json_integer((json_int_t)figures->doubts_by_cause[cause]));
        json_object_set_new(entered, doubt_cause_name(cause),
                            json_integer((json_int_t)figures->entered_by_cause[cause]));
    }
    json_t *resolved =
        json_pack("{s:I, s:I, s:I, s:I}", "applied", (json_int_t)figures->resolved_applied, "not-applied",
                  (json_int_t)figures->resolved_not_applied, "retry", (json_int_t)figures->resolved_retry,
                  "assume-applied", (json_int_t)figures->resolved_assumed);
    json_t *json =
        json_pack("{s:I, s:o, s:o, s:o, s:o}", "in_doubt", (json_int_t)figures->in_doubt_records,
                  "in_doubt_oldest", admin_time_json(figures->in_doubt_oldest_ms), "in_doubt_by_cause",
                  causes, "entered_in_doubt_by_cause", entered, "resolved", resolved);
    json_t *more = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "used_bytes",
        (json_int_t)figures->used_bytes, "max_bytes", (json_int_t)figures->max_bytes, "commits",
        (json_int_t)figures->commit_count, "commit_records", (json_int_t)figures->commit_record_count,
        "errors", (json_int_t)figures->error_count, "intervals", (json_int_t)figures->interval_count,
        "partitions", (json_int_t)figures->partition_count, "partitions_max",
        (json_int_t)figures->partitions_max, "conflicts_open", (json_int_t)figures->conflict_open_count,
        "conflicts", (json_int_t)figures->conflict_count, "first_sights",
        (json_int_t)figures->first_sight_count, "below_window", (json_int_t)figures->below_window_count,
        "replay_windows", (json_int_t)figures->replay_open_count);
    json_object_update(json, more);
    json_decref(more);
    return json;
}

void admin_on_stats(struct admin_call *call)
{
    struct store_figures figures;
    store_figures_get(call->admin->parts.store, &figures);
    admin_answer_json(
        call, 200,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "time", admin_time_json(clock_unix_ms()),
                  "counters", counters_json(), "gauges", gauges_json(), "histograms", histograms_json(),
                  "requests", requests_json(), "target_responses", responses_json(), "certificates",
                  certificates_json(call->admin->credentials), "ledger", ledger_json(&figures)));
}
