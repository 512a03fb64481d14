/*
 * metrics_text.c - writes all metrics as Prometheus text: the table's rows, the ledger's figures, the process.
 *
 * Nothing is counted here.  Rows of the table that share a metric's name stand together and get one HELP and TYPE.
 * Source: Prometheus' page "Exposition formats", text-based format 0.0.4; the OpenMetrics specification 1.0, in which
 * HELP and TYPE name a counter without its "_total" and the text has an end of its own.
 */
#include "metrics_text.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "http1.h"
#include "metrics.h"
#include "metrics_process.h"
#include "text.h"

_Static_assert((int)HTTP1_METHOD_COUNT <= (int)METRICS_METHODS_MAX, "a method has no cells");

static const struct counter_row {
    const char *metric, *labels, *words;
} counter_rows[COUNTER_COUNT] = {
#define COUNTER(NAME, metric, labels, words) [COUNTER_##NAME] = { metric, labels, words },
#include "tbl/counters.h"
};

static const struct gauge_row {
    const char *metric;
    int64_t per_unit;
    const char *words;
} gauge_rows[GAUGE_COUNT] = {
#define GAUGE(NAME, metric, per_unit, words) [GAUGE_##NAME] = { metric, per_unit, words },
#include "tbl/counters.h"
};

static const struct histogram_row {
    const char *metric, *words;
} histogram_rows[HISTOGRAM_COUNT] = {
#define HISTOGRAM(NAME, metric, unit, words) [HISTOGRAM_##NAME] = { metric, words },
#include "tbl/counters.h"
};

static void head_write(FILE *out, const char *metric, const char *type, const char *words)
{
    fprintf(out, "# HELP sinkonce_%s %s\n# TYPE sinkonce_%s %s\n", metric, words, metric, type);
}

/* COUNT / PER_UNIT without the rounding of a double, which would make a long-lived counter go backwards. */
static void fraction_write(FILE *out, uint64_t count, uint64_t per_unit)
{
    int digits = 0;
    for (uint64_t left = per_unit; left > 1; left /= 10)
        digits++;
    fprintf(out, "%" PRIu64, count / per_unit);
    if (digits > 0)
        fprintf(out, ".%0*" PRIu64, digits, count % per_unit);
}

static void topic_counter_write(FILE *out, enum counter counter)
{
    const char *metric = counter_rows[counter].metric;
    unsigned topic_count = metrics_topic_count();
    for (unsigned topic = 0; topic < topic_count; topic++)
        fprintf(out, "sinkonce_%s{topic=\"%s\"} %" PRIu64 "\n", metric, metrics_topic_name(topic),
                metrics_topic_counter(counter, topic));
    if (topic_count == METRICS_TOPIC_OTHER)
        fprintf(out, "sinkonce_%s{topic=\"%s\"} %" PRIu64 "\n", metric,
                metrics_topic_name(METRICS_TOPIC_OTHER), metrics_topic_counter(counter, METRICS_TOPIC_OTHER));
}

static void counters_write(FILE *out)
{
    const char *metric = "";
    for (enum counter counter = 0; counter < COUNTER_COUNT; counter++) {
        const struct counter_row *row = &counter_rows[counter];
        bool is_labelled = row->labels[0] != '\0';
        if (strcmp(metric, row->metric) != 0)
            head_write(out, row->metric, "counter", row->words);
        metric = row->metric;
        if ((unsigned)counter < TOPIC_COUNTER_COUNT)
            topic_counter_write(out, counter);
        else
            fprintf(out, "sinkonce_%s%s%s%s %" PRIu64 "\n", metric, is_labelled ? "{" : "", row->labels,
                    is_labelled ? "}" : "", metrics_counter(counter));
    }
}

static void gauges_write(FILE *out)
{
    for (enum gauge gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        const struct gauge_row *row = &gauge_rows[gauge];
        int64_t value = metrics_gauge(gauge);
        head_write(out, row->metric, "gauge", row->words);
        fprintf(out, "sinkonce_%s %s", row->metric, value < 0 ? "-" : "");
        fraction_write(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, (uint64_t)row->per_unit);
        fputc('\n', out);
    }
}

static void histogram_write(FILE *out, enum histogram histogram)
{
    const struct histogram_row *row = &histogram_rows[histogram];
    const struct histogram_unit *unit = metrics_histogram_unit(histogram);
    struct histogram_reading reading;
    uint64_t count = 0;
    metrics_histogram_get(histogram, &reading);
    head_write(out, row->metric, "histogram", row->words);
    for (size_t i = 0; i < unit->bound_count; i++) {
        count += reading.buckets[i];
        fprintf(out, "sinkonce_%s_bucket{le=\"%g\"} %" PRIu64 "\n", row->metric,
                (double)unit->bounds[i] / (double)unit->per_unit, count);
    }
    fprintf(out, "sinkonce_%s_bucket{le=\"+Inf\"} %" PRIu64 "\nsinkonce_%s_sum ", row->metric, reading.count,
            row->metric);
    fraction_write(out, reading.sum, unit->per_unit);
    fprintf(out, "\nsinkonce_%s_count %" PRIu64 "\n", row->metric, reading.count);
}

/* Codes come from the target or are ours: only what has been seen is written, and what everybody alerts on. */
static bool is_always_written(int code)
{
    return code == 200 || code == 500 || code == 503;
}

static void requests_write(FILE *out)
{
    head_write(out, "http_requests_total", "counter", "Requests of connectors that were answered.");
    for (int method = 0; method < HTTP1_METHOD_COUNT; method++) {
        for (int code = METRICS_CODE_MIN; code <= METRICS_CODE_MAX; code++) {
            uint64_t count = metrics_request_count(method, code);
            if (count > 0 || is_always_written(code))
                fprintf(out, "sinkonce_http_requests_total{method=\"%s\",code=\"%d\"} %" PRIu64 "\n",
                        http1_method_name((enum http1_method)method), code, count);
        }
    }
}

static void target_responses_write(FILE *out)
{
    head_write(out, "target_responses_total", "counter", "Whole answers of the target, by status.");
    for (int code = METRICS_CODE_MIN; code <= METRICS_CODE_MAX; code++) {
        uint64_t count = metrics_target_response_count(code);
        if (count > 0 || is_always_written(code))
            fprintf(out, "sinkonce_target_responses_total{code=\"%d\"} %" PRIu64 "\n", code, count);
    }
}

static void value_write(FILE *out, const char *metric, const char *type, const char *words, uint64_t value)
{
    head_write(out, metric, type, words);
    fprintf(out, "sinkonce_%s %" PRIu64 "\n", metric, value);
}

static void time_write(FILE *out, const char *metric, const char *words, uint64_t time_ms)
{
    head_write(out, metric, "gauge", words);
    fprintf(out, "sinkonce_%s ", metric);
    fraction_write(out, time_ms, 1000);
    fputc('\n', out);
}

static void ledger_write(FILE *out, const struct store_figures *figures)
{
    value_write(out, "ledger_used_bytes", "gauge", "Disk that the ledger uses.", figures->used_bytes);
    value_write(out, "ledger_max_bytes", "gauge", "Disk that the ledger may use; claims stop at 85 % of it.",
                figures->max_bytes);
    time_write(out, "ledger_created_timestamp_seconds", "Unix time of the ledger's creation.",
               figures->created_ms);
    value_write(out, "ledger_boots_total", "counter", "How often the ledger has been opened for serving.",
                figures->boot_count);
    value_write(out, "ledger_commits_total", "counter", "Transactions that are on disk.",
                figures->commit_count);
    head_write(out, "ledger_commit_duration_seconds", "summary", "Time of a commit, disk included.");
    fputs("sinkonce_ledger_commit_duration_seconds_sum ", out);
    fraction_write(out, figures->commit_seconds_sum_ns, 1000000000);
    fprintf(out, "\nsinkonce_ledger_commit_duration_seconds_count %" PRIu64 "\n", figures->commit_count);
    head_write(out, "ledger_commit_records", "summary", "Records claimed or settled by a commit.");
    fprintf(out,
            "sinkonce_ledger_commit_records_sum %" PRIu64 "\n"
            "sinkonce_ledger_commit_records_count %" PRIu64 "\n",
            figures->commit_record_count, figures->commit_count);
    value_write(out, "ledger_intervals", "gauge", "Intervals that the applied offsets are kept as.",
                figures->interval_count);
    value_write(out, "partitions", "gauge", "Partitions that the ledger has met.", figures->partition_count);
    value_write(out, "partitions_max", "gauge", "Partitions that it may meet; a new one above it gets 503.",
                figures->partitions_max);
    head_write(out, "ledger_errors_total", "counter", "Failures of the disk or the database.");
    fprintf(out, "sinkonce_ledger_errors_total{op=\"commit\"} %" PRIu64 "\n", figures->error_count);
    value_write(out, "ledger_full", "gauge", "1 while nothing new is claimed for want of room.",
                figures->is_full);
    value_write(out, "ledger_disk_full", "gauge", "1 while it is the disk that has no room for it.",
                figures->is_disk_full);
    value_write(out, "ledger_failing", "gauge", "1 while the disk fails and nothing is sent.",
                figures->is_failing);
}

static void doubts_write(FILE *out, const struct store_figures *figures)
{
    value_write(out, "in_doubt_records", "gauge", "Records of which nobody knows whether they were applied.",
                figures->in_doubt_records);
    time_write(out, "in_doubt_oldest_timestamp_seconds", "Since when the oldest doubt stands; 0: none.",
               figures->in_doubt_oldest_ms);
    head_write(out, "in_doubt_total", "counter", "Records that became in doubt, by cause.");
    for (enum doubt_cause cause = 0; cause < DOUBT_COUNT; cause++)
        fprintf(out, "sinkonce_in_doubt_total{cause=\"%s\"} %" PRIu64 "\n", doubt_cause_name(cause),
                figures->entered_by_cause[cause]);
    head_write(out, "in_doubt_resolved_total", "counter", "Records that left doubt, by what decided.");
    fprintf(out,
            "sinkonce_in_doubt_resolved_total{resolution=\"applied\"} %" PRIu64 "\n"
            "sinkonce_in_doubt_resolved_total{resolution=\"not-applied\"} %" PRIu64 "\n"
            "sinkonce_in_doubt_resolved_total{resolution=\"retry\"} %" PRIu64 "\n"
            "sinkonce_in_doubt_resolved_total{resolution=\"assume-applied\"} %" PRIu64 "\n",
            figures->resolved_applied, figures->resolved_not_applied, figures->resolved_retry,
            figures->resolved_assumed);
    value_write(out, "conflicts_open", "gauge", "Partitions that wait for a decision about identity.",
                figures->conflict_open_count);
    value_write(out, "conflicts_total", "counter", "Contradictions of identity that were noticed.",
                figures->conflict_count);
    value_write(out, "first_sight_total", "counter", "Partitions first seen at an offset above 0.",
                figures->first_sight_count);
    value_write(out, "below_window_records_total", "counter",
                "Records never seen that lay below the window and count as applied.",
                figures->below_window_count);
    value_write(out, "offset_jumps_total", "counter", "Offsets far above all that was met before.",
                figures->jump_count);
    value_write(out, "offset_rewinds_total", "counter", "Offsets far below all that was met before.",
                figures->rewind_count);
    value_write(out, "replay_windows", "gauge", "Replay windows that are open.", figures->replay_open_count);
}

/* The names are those of Prometheus' own client libraries. */
static void process_write(FILE *out)
{
    struct process_figures figures;
    process_figures_get(&figures);
    fputs("# HELP process_cpu_seconds_total User and system time.\n"
          "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total ",
          out);
    fraction_write(out, figures.cpu_ns, 1000000000);
    fprintf(out,
            "\n# HELP process_resident_memory_bytes Memory in RAM.\n"
            "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %" PRIu64 "\n"
            "# HELP process_virtual_memory_bytes Address space.\n"
            "# TYPE process_virtual_memory_bytes gauge\nprocess_virtual_memory_bytes %" PRIu64 "\n"
            "# HELP process_open_fds Open file descriptors.\n"
            "# TYPE process_open_fds gauge\nprocess_open_fds %" PRIu64 "\n"
            "# HELP process_max_fds Limit of open file descriptors.\n"
            "# TYPE process_max_fds gauge\nprocess_max_fds %" PRIu64 "\n"
            "# HELP process_start_time_seconds Unix time of the start.\n"
            "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.2f\n",
            figures.resident_bytes, figures.virtual_bytes, figures.open_fds, figures.max_fds,
            figures.start_seconds);
}

static void program_write(FILE *out, enum mode present)
{
    head_write(out, "build_info", "gauge", "Always 1; the version stands in the label.");
    fputs("sinkonce_build_info{version=\"" SINKONCE_VERSION "\"} 1\n", out);
    head_write(out, "mode", "gauge", "1 for the mode that is on.");
    for (int mode = MODE_ENFORCE; mode <= MODE_OFF; mode++)
        fprintf(out, "sinkonce_mode{mode=\"%s\"} %d\n", mode_name((enum mode)mode), (int)present == mode);
}

/* Only of those that are configured: an end that is 0 would look like one long ago. */
static void certificates_write(FILE *out, const struct credentials *credentials)
{
    bool is_headed = false;
    for (enum tls_use use = 0; credentials != NULL && use < TLS_USES; use++) {
        for (enum tls_part part = 0; part < TLS_PARTS; part++) {
            int64_t end_s = credentials_end_s(credentials, use, part);
            if (end_s == 0)
                continue;
            if (!is_headed)
                head_write(out, "certificate_expiry_timestamp_seconds", "gauge",
                           "Unix time at which a certificate ends: the first of its chain, the last of "
                           "several authorities.");
            is_headed = true;
            fprintf(out, "sinkonce_certificate_expiry_timestamp_seconds{use=\"%s\"} %" PRId64 "\n",
                    tls_uses[use].labels[part], end_s);
        }
    }
}

/* ---- partitions -------------------------------------------------------------------------------------------------- */

static uint64_t applied_of(const struct partition_row *row)
{
    return row->applied_count;
}

/* One above the highest applied offset, which is the offset that follows: no series has a value below 0. */
static uint64_t next_of(const struct partition_row *row)
{
    return (uint64_t)row->highest + 1;
}

static uint64_t gaps_of(const struct partition_row *row)
{
    return row->gap_count;
}

static uint64_t doubts_of(const struct partition_row *row)
{
    return row->in_doubt_count;
}

static uint64_t last_of(const struct partition_row *row)
{
    return row->last_ms / 1000;
}

static char *digits_write(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

static char *chars_write(char *at, const char *chars, size_t byte_count)
{
    memcpy(at, chars, byte_count);
    return at + byte_count;
}

static const struct partition_gauge {
    const char *metric, *words;
    uint64_t (*value)(const struct partition_row *row);
} partition_gauges[] = {
    { "partition_applied_records", "Applied offsets of the partition.", applied_of },
    { "partition_next_offset", "The offset above the highest applied one; 0: none is.", next_of },
    { "partition_gap_records", "Offsets between the lowest and the highest applied one that are not.",
      gaps_of },
    { "partition_in_doubt_records", "Records of the partition that are in doubt.", doubts_of },
    { "partition_last_result_timestamp_seconds", "Unix time of the last result; 0: none.", last_of },
};
enum { PARTITION_GAUGE_COUNT = sizeof partition_gauges / sizeof partition_gauges[0] };

/* What stands between a metric's name and its value: {topic="orders",partition="3"} and a space. */
enum { LABELS_BYTES_MAX = TOPIC_BYTES_MAX + 48, METRIC_BYTES_MAX = 64, DIGITS_MAX = 20 };

static size_t labels_write(char labels[LABELS_BYTES_MAX], const struct partition_row *row)
{
    static const char topic_label[] = "{topic=\"", partition_label[] = "\",partition=\"", end[] = "\"} ";
    char *at = chars_write(labels, topic_label, sizeof topic_label - 1);
    at = chars_write(at, row->topic, strlen(row->topic));
    at = chars_write(at, partition_label, sizeof partition_label - 1);
    at = digits_write(at, (uint64_t)row->partition);
    at = chars_write(at, end, sizeof end - 1);
    return (size_t)(at - labels);
}

/* At least as much as all lines of all partitions need.  What is not written is never touched, and costs nothing. */
static size_t partitions_room(const struct partition_row rows[], size_t row_count)
{
    size_t labels_bytes = 0;
    for (size_t i = 0; i < row_count; i++)
        labels_bytes += strlen(rows[i].topic) + 48;
    return PARTITION_GAUGE_COUNT * (labels_bytes + row_count * (METRIC_BYTES_MAX + DIGITS_MAX + 1));
}

static void partition_gauge_write(struct text *text, const struct partition_gauge *gauge,
                                  const struct partition_row rows[], size_t row_count)
{
    char metric[METRIC_BYTES_MAX], head[256], labels[LABELS_BYTES_MAX];
    size_t metric_bytes = (size_t)snprintf(metric, sizeof metric, "sinkonce_%s", gauge->metric);
    snprintf(head, sizeof head, "# HELP %s %s\n# TYPE %s gauge\n", metric, gauge->words, metric);
    text_add_chars(text, head);
    for (size_t i = 0; i < row_count && !text->is_lost; i++) {
        size_t labels_bytes = labels_write(labels, &rows[i]);
        text_reserve(text, metric_bytes + labels_bytes + DIGITS_MAX + 1);
        if (text->is_lost)
            return;
        char *at = chars_write(text->bytes + text->byte_count, metric, metric_bytes);
        at = digits_write(chars_write(at, labels, labels_bytes), gauge->value(&rows[i]));
        *at++ = '\n';
        text->byte_count = (size_t)(at - text->bytes);
    }
}

/* Ten thousand partitions are fifty thousand lines in 4.6 MB, and the memory that they touch is most of what they cost:
 * the room is taken once, and each line is put together where it stays. */
static void partitions_write(struct text *text, const struct metrics_view *view)
{
    text_reserve(text, partitions_room(view->partitions, view->partition_count));
    for (size_t i = 0; i < PARTITION_GAUGE_COUNT; i++)
        partition_gauge_write(text, &partition_gauges[i], view->partitions, view->partition_count);
}

/* ---- all ---------------------------------------------------------------------------------------------------------- */

static void all_write(FILE *out, const struct metrics_view *view)
{
    struct store_figures figures;
    store_figures_get(view->store, &figures);
    counters_write(out);
    requests_write(out);
    target_responses_write(out);
    gauges_write(out);
    for (enum histogram histogram = 0; histogram < HISTOGRAM_COUNT; histogram++)
        histogram_write(out, histogram);
    doubts_write(out, &figures);
    ledger_write(out, &figures);
    process_write(out);
    program_write(out, view->mode);
    certificates_write(out, view->credentials);
}

/* In place: "_total" leaves the names in HELP and TYPE, of which counters alone have it. */
static size_t families_rename(char *text)
{
    static const char suffix[] = "_total";
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        size_t line_bytes = strcspn(from, "\n") + 1;
        size_t name_end = strncmp(from, "# ", 2) == 0 ? 7 + strcspn(from + 7, " ") : 0;
        size_t cut = name_end > sizeof suffix - 1 &&
                             memcmp(from + name_end - (sizeof suffix - 1), suffix, sizeof suffix - 1) == 0
                         ? sizeof suffix - 1
                         : 0;
        memmove(to, from, name_end - cut);
        memmove(to + name_end - cut, from + name_end, line_bytes - name_end);
        to += line_bytes - cut;
        from += line_bytes;
    }
    *to = '\0';
    return (size_t)(to - text);
}

/* All but the partitions.  NULL: no memory. */
static char *program_text(const struct metrics_view *view, size_t *ret_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_bytes);
    if (out == NULL)
        return NULL;
    all_write(out, view);
    bool is_whole = ferror(out) == 0;
    if (fclose(out) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

char *metrics_text(const struct metrics_view *view, size_t *ret_bytes)
{
    char *bytes;
    struct text text = { 0 };
    assert(view->store != NULL);
    text.bytes = program_text(view, &text.byte_count);
    if (text.bytes == NULL)
        return NULL;
    if (view->is_open_metrics)
        text.byte_count = families_rename(text.bytes);
    text.room_bytes = text.byte_count;
    if (view->has_partitions)
        partitions_write(&text, view);
    if (view->is_open_metrics)
        text_add_chars(&text, "# EOF\n");
    text_add(&text, slice_of("", 1));
    if (!text_take(&text, &bytes, ret_bytes))
        return NULL;
    --*ret_bytes; /* the zero behind the text is none of its bytes */
    return bytes;
}
