/*
 * account.c - what an exchange leaves behind in counters and logs: told once, at its end.
 *
 * Every record is counted in sinkonce_records_total and in exactly one of its parts.
 */
#include <string.h>

#include "clock.h"
#include "exchange_state.h"
#include "log.h"
#include "log_line.h"
#include "metrics.h"

/* A poll for acknowledgements writes nothing. */
static bool is_write(const struct exchange *ex)
{
    return ex->poll == NULL && request_is_write(ex->request);
}

static enum counter counter_of_outcome(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_APPLIED:
        return COUNTER_RECORDS_APPLIED;
    case OUTCOME_NOT_APPLIED:
        return COUNTER_RECORDS_REJECTED;
    case OUTCOME_NOT_SENT:
        return COUNTER_RECORDS_NOT_SENT;
    case OUTCOME_UNKNOWN:
    default:
        return COUNTER_RECORDS_IN_DOUBT;
    }
}

/* The part in which one record of an exchange that sent nothing is counted. */
static enum counter counter_of_finish(enum finish finish, enum verdict verdict)
{
    switch ((int)finish) {
    case FINISH_DUPLICATE:
        return COUNTER_RECORDS_DUPLICATE;
    case FINISH_CONFLICT:
    case FINISH_CONTRADICTION:
        return COUNTER_RECORDS_CONFLICT;
    case FINISH_IN_DOUBT:
    case FINISH_IN_FLIGHT:
    case FINISH_DOUBTS_FULL:
        return verdict == VERDICT_APPLIED ? COUNTER_RECORDS_DUPLICATE : COUNTER_RECORDS_BUSY;
    default:
        return COUNTER_RECORDS_NOT_SENT;
    }
}

static bool is_sent(const struct exchange *ex)
{
    return ex->flight.done != NULL || (ex->parts != NULL && ex->given_up == FINISH_NONE);
}

static enum counter counter_of(const struct exchange *ex, size_t i)
{
    bool is_observed = ex->mode == MODE_OBSERVE;
    /* Sent again under the eyes of an observer, and not acknowledged yet: what was known before counts. */
    if (is_observed && ex->has_ack_id && ex->verdicts[i] == VERDICT_APPLIED)
        return COUNTER_RECORDS_APPLIED;
    if (is_sent(ex) && (is_observed || ex->verdicts[i] == VERDICT_NEW))
        return counter_of_outcome(ex->outcomes[i]);
    if (is_sent(ex))
        return COUNTER_RECORDS_DUPLICATE;
    return counter_of_finish(ex->finish, ex->verdicts != NULL ? ex->verdicts[i] : VERDICT_NEW);
}

/* Elements without coordinates, and writes that hold nothing else. */
static size_t count_unkeyed(const struct exchange *ex)
{
    size_t count = 0;
    for (size_t i = 0; i < ex->identified.site_count; i++)
        count += ex->identified.sites[i].record == NO_RECORD;
    return ex->is_keyed ? count : (count > 0 ? count : 1);
}

/* A batch that the target will acknowledge later is counted when it does (ack_poll.c). */
static bool is_counted_later(const struct exchange *ex, size_t i)
{
    return ex->has_ack_id && ex->state == EX_DONE && ex->settlement.done == NULL &&
           ex->verdicts[i] == VERDICT_NEW;
}

/* Tell what was counted of one topic, and begin anew. */
static void counts_tell(uint64_t counts[TOPIC_COUNTER_COUNT], unsigned topic)
{
    for (int counter = 0; counter < TOPIC_COUNTER_COUNT; counter++) {
        if (counts[counter] > 0)
            metrics_add_topic((enum counter)counter, topic, counts[counter]);
        counts[counter] = 0;
    }
}

/* Most requests hold one topic: its number is looked up once. */
static void count_keyed(const struct exchange *ex)
{
    const struct record *records = ex->identified.records;
    uint64_t counts[TOPIC_COUNTER_COUNT] = { 0 };
    unsigned topic = metrics_topic(records[0].key.topic);
    counts[COUNTER_RECORDS_RETRIED] = ex->claim.ret_retried_count;
    counts[COUNTER_RECORDS_REPLAYED] = ex->claim.ret_replayed_count;
    for (size_t i = 0; i < ex->identified.record_count; i++) {
        if (i > 0 && !slice_equals(records[i].key.topic, records[i - 1].key.topic)) {
            counts_tell(counts, topic);
            topic = metrics_topic(records[i].key.topic);
        }
        if (is_counted_later(ex, i))
            continue;
        counts[COUNTER_RECORDS]++;
        counts[counter_of(ex, i)]++;
        if (ex->mode == MODE_OBSERVE && ex->verdicts != NULL && ex->verdicts[i] == VERDICT_APPLIED)
            counts[COUNTER_RECORDS_WOULD_DROP]++;
    }
    counts_tell(counts, topic);
}

static void count_records(const struct exchange *ex)
{
    if (!is_write(ex) || ex->finish == FINISH_LOOP)
        return;
    size_t unkeyed_count = count_unkeyed(ex);
    metrics_add(COUNTER_RECORDS, unkeyed_count);
    metrics_add(COUNTER_RECORDS_UNKEYED, unkeyed_count);
    if (!ex->is_keyed)
        return;
    metrics_observe(HISTOGRAM_BATCH_RECORDS, ex->identified.record_count);
    count_keyed(ex);
    if (ex->is_cut && ex->plan.is_rewritten)
        metrics_add(COUNTER_BATCHES_REWRITTEN, 1);
}

/* The first record that is a reason for the end, and how many there are of them. */
static void log_reason(const struct exchange *ex, enum log_level level, const char *event,
                       struct log_field more)
{
    const struct record *first = ex->identified.records;
    size_t total = answer_reasons(ex, &first, 1);
    LOG_EVENT_LIMITED(level, event, finish_rows[ex->finish].words, log_slice("topic", first->key.topic),
                      log_integer("partition", first->key.partition),
                      log_integer("offset", first->key.offset), log_integer("total", (int64_t)total),
                      log_integer("records", (int64_t)ex->identified.record_count), more);
}

/* A ledger that cannot be written: why, and what to do.  The disk's own lack comes before the rest. */
static void log_ledger(const struct exchange *ex, const char *event, const char *otherwise)
{
    struct store_figures figures;
    store_figures_get(ex->loop->program->store, &figures);
    LOG_EVENT_LIMITED(LOG_LEVEL_ERROR, event, finish_rows[ex->finish].words,
                      log_text("detail", figures.is_full || figures.is_failing ? figures.failure : ""),
                      log_text("remedy", figures.is_disk_full
                                             ? "the disk is full: make room on that of SINKONCE_DATA_DIR"
                                             : otherwise));
}

/* Two names, so that what is delivered again and again never keeps a new doubt out of the log. */
static void log_doubt(const struct exchange *ex, const struct flight *flight)
{
    if (is_sent(ex))
        log_reason(ex, LOG_LEVEL_WARN, "record.in_doubt", log_text("detail", doubt_words_of(flight)));
    else
        log_reason(ex, LOG_LEVEL_WARN, "record.held", log_text("detail", "it was in doubt before"));
}

static void log_unread(const struct exchange *ex)
{
    if (!ex->is_keyed && is_write(ex) && is_sent(ex))
        LOG_EVENT_LIMITED(LOG_LEVEL_INFO, "record.unkeyed",
                          "a write without coordinates was forwarded untouched; sinkonce explain says why",
                          log_slice("path", ex->request->head.path));
}

/* One line for an end that somebody should look at; the rest is the access log's. */
static void log_end(const struct exchange *ex)
{
    const struct flight *flight = answer_flight(ex);
    switch ((int)ex->finish) {
    case FINISH_IN_DOUBT:
        log_doubt(ex, flight);
        break;
    case FINISH_CONFLICT:
        log_reason(ex, LOG_LEVEL_ERROR, "record.conflict",
                   log_text("remedy", "say what it is: sinkonce conflicts list, or GET /conflicts"));
        break;
    case FINISH_CONTRADICTION:
        log_reason(ex, LOG_LEVEL_ERROR, "record.conflict",
                   log_text("remedy", "look at what puts the coordinates into each element"));
        break;
    case FINISH_UNCUTTABLE:
        log_reason(ex, LOG_LEVEL_ERROR, "record.uncuttable",
                   log_text("remedy", "let the connector send one record a request until it is past these; a "
                                      "replay window over the applied ones sends all of it a second time"));
        break;
    case FINISH_LEDGER_FULL:
        log_ledger(ex, "ledger.full", "raise SINKONCE_LEDGER_MAX, or forget topics that are gone");
        break;
    case FINISH_LEDGER_FAILED:
        log_ledger(ex, "ledger.error", "look at the disk; writes are refused until a commit succeeds");
        break;
    case FINISH_NOT_SENT:
    case FINISH_TARGET_BUSY:
    case FINISH_TARGET_LOST:
    case FINISH_BAD_ANSWER:
    case FINISH_REDIRECTED:
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "target.error", finish_rows[ex->finish].words,
                          log_text("cause", attempt_error_name(flight->error)),
                          log_text("detail", flight->detail));
        break;
    case FINISH_UNKEYED_REFUSED:
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "record.unkeyed", finish_rows[ex->finish].words,
                          log_slice("path", ex->request->head.path));
        break;
    case FINISH_PARTITIONS_FULL:
        log_reason(ex, LOG_LEVEL_ERROR, "limit.hit", log_text("limit", "SINKONCE_MAX_PARTITIONS"));
        break;
    case FINISH_BUSY:
    case FINISH_TOO_MANY_RECORDS:
    case FINISH_BODY_TOO_LARGE:
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "limit.hit", finish_rows[ex->finish].words,
                          log_slice("path", ex->request->head.path));
        break;
    default:
        log_unread(ex);
    }
}

static const char *label_of(const struct exchange *ex)
{
    if (ex->finish != FINISH_FORWARDED)
        return finish_rows[ex->finish].label;
    if (ex->is_keyed && answer_flight(ex)->response.status / 100 == 2)
        return finish_rows[FINISH_APPLIED].label;
    if (ex->is_keyed)
        return finish_rows[FINISH_FORWARDED].label;
    return is_write(ex) ? finish_rows[FINISH_UNKEYED].label : finish_rows[FINISH_FORWARDED].label;
}

/* "all", or LABEL stands in the list. */
static bool is_logged(const char *setting, const char *label)
{
    if (strcmp(setting, "off") == 0)
        return false;
    return strcmp(setting, "all") == 0 || http1_list_has(slice_of_text(setting), slice_of_text(label));
}

/* The path without its query, which may hold tokens. */
static void log_access_line(const struct exchange *ex, uint64_t now_ns)
{
    const struct request *request = ex->request;
    const struct http1_field *trace =
        http1_field_find(request->head.fields, request->head.field_count, "traceparent");
    const struct http1_field *id =
        http1_field_find(request->head.fields, request->head.field_count, "x-request-id");
    const char *label = label_of(ex);
    if (!is_logged(ex->loop->program->settings->access_log, label))
        return;
    struct log_field fields[] = {
        log_text("peer", request->peer),
        log_slice("method", request->head.method_text),
        log_slice("path", request->head.path),
        log_integer("status", ex->answered_status),
        log_text("outcome", label),
        log_integer("records", (int64_t)ex->identified.record_count),
        log_integer("duration_us", (int64_t)((now_ns - request->started_ns) / 1000)),
        log_integer("target_us", (int64_t)(ex->target_ns / 1000)),
        log_slice("traceparent", trace != NULL ? trace->value : slice_of("", 0)),
        log_slice("x_request_id", id != NULL ? id->value : slice_of("", 0)),
    };
    struct log_line line;
    struct log_words words = { .time_ms = clock_unix_ms(),
                               .level = LOG_LEVEL_INFO,
                               .event = "http.access",
                               .message = finish_rows[ex->finish].words,
                               .fields = fields,
                               .field_count = sizeof fields / sizeof fields[0] };
    log_line_form(&line, false, &words);
    log_access(slice_of(line.bytes, line.byte_count > 0 ? line.byte_count - 1 : 0));
}

void account_finish(const struct exchange *ex)
{
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t whole_ns = now_ns - ex->request->whole_ns;
    count_records(ex);
    metrics_observe(HISTOGRAM_REQUEST_DURATION, whole_ns);
    metrics_observe(HISTOGRAM_OVERHEAD_DURATION, whole_ns > ex->target_ns ? whole_ns - ex->target_ns : 0);
    if (ex->finish == FINISH_UNKEYED_REFUSED)
        metrics_add(COUNTER_REFUSED_UNKEYED, 1);
    if (ex->finish == FINISH_PARTITIONS_FULL)
        metrics_add(COUNTER_REFUSED_PARTITIONS, 1);
    if (ex->finish == FINISH_UNCUTTABLE)
        metrics_add(COUNTER_REFUSED_UNCUTTABLE, 1);
    log_end(ex);
    log_access_line(ex, now_ns);
}

void account_refused(enum finish why)
{
    switch ((int)why) {
    case FINISH_BUSY:
    case FINISH_NO_MEMORY:
        metrics_add(COUNTER_REFUSED_IN_FLIGHT, 1);
        break;
    case FINISH_DRAINING:
        metrics_add(COUNTER_REFUSED_DRAINING, 1);
        break;
    case FINISH_TOO_MANY_CONNECTIONS:
        metrics_add(COUNTER_REFUSED_CONNECTIONS, 1);
        break;
    case FINISH_UNAUTHORIZED:
        metrics_add(COUNTER_REFUSED_UNAUTHORIZED, 1);
        break;
    case FINISH_REQUEST_TIMEOUT:
        metrics_add(COUNTER_REFUSED_TIMEOUT, 1);
        break;
    case FINISH_BODY_TOO_LARGE:
    case FINISH_HEAD_TOO_LARGE:
    case FINISH_URI_TOO_LONG:
        metrics_add(COUNTER_REFUSED_TOO_LARGE, 1);
        break;
    default:
        metrics_add(COUNTER_REFUSED_HTTP, 1);
    }
}
