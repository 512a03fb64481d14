/*
 * prober.c - the records in doubt that are known, when each is due, and the few probes that run.
 *
 *   WAITING  --due, a runner is free-->  CHECKING  --still the same doubt-->  ASKING  --clear-->  RESOLVING --> gone
 *      ^                                     |                                   |
 *      |                                     +-- over, or another doubt --> gone |
 *      +------------------------------ backoff ----------------------------------+
 *
 * A probe never overtakes the request that it asks about.  The connection of that request was closed before the record
 * became a doubt, and the delay counts from when the prober first saw it, by the clock that never jumps.  A resolution
 * names the moment at which the doubt began, so that an answer about one delivery never resolves a later one.
 *
 * Memory: an entry for each known record with its path already filled in; runners with their answers.  Neighbours:
 * prober_template.c fills in, prober_judge.c decides, upstream.c sends.
 */
#include "prober.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "clock.h"
#include "log.h"
#include "metrics.h"
#include "prober_judge.h"
#include "settings_url.h"
#include "upstream.h"

enum {
    PROBES_AT_ONCE = 8,
    PROBES_KNOWN_MAX = 1024,
    PAGE_ROWS = 128,
    TICK_MS = 100,
    SCAN_MS = 1000, /* how often the list of doubts is looked through for new ones */
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_LAST_MS = 60000,
    FAILING_AFTER = 3, /* probes in a row without a clear answer: the operator should know */
    TARGET_BYTES_MAX = HTTP1_TARGET_BYTES_MAX,
    ANSWER_BYTES_MAX = 65536,
};

struct entry {
    char topic[TOPIC_BYTES_MAX + 1];
    int32_t partition;
    int64_t offset;
    uint64_t since_ms; /* tells this doubt from an earlier or later one of the same record */
    char *target;      /* owned: path and query; NULL: the record cannot be asked for */
    uint64_t due_ns;
    uint32_t backoff_ms; /* 0: not tried yet */
    bool is_running;
};

/* One probe on its way.  Its question and flight are never lent at the same time. */
struct runner {
    struct prober *prober; /* borrowed */
    struct entry *entry;   /* NULL: free */
    struct question question;
    struct flight flight;
    struct credentials *credentials; /* held while the flight borrows from them */
    struct http1_field fields[3];
};

struct prober {
    const struct settings *settings; /* borrowed */
    struct settings probe_settings;  /* with a target and limits of its own; its pointers are borrowed */
    bool is_target_owned;            /* but for probe_settings.target */
    struct store *store;             /* borrowed */
    struct store_port *port;         /* borrowed */
    struct credentials *credentials; /* held: for the probes to come */
    struct upstream *upstream;       /* owned, as all below */
    struct event *tick;
    struct entry *entries[PROBES_KNOWN_MAX];
    size_t entry_count;
    struct runner runners[PROBES_AT_ONCE];
    struct question scan;
    bool is_scanning, is_stopped;
    uint64_t cursor_id;
    int64_t cursor_offset;
    uint64_t next_scan_ns;
    size_t open_count; /* questions that are lent */
    unsigned unclear_in_a_row;
};

static void pump(struct prober *prober);

static void ask(struct prober *prober, struct question *question)
{
    prober->open_count++;
    store_ask(prober->port, question);
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

static struct entry *entry_find(const struct prober *prober, const struct probe_row *row)
{
    for (size_t i = 0; i < prober->entry_count; i++) {
        struct entry *entry = prober->entries[i];
        if (entry->offset == row->offset && entry->partition == row->partition &&
            entry->since_ms == row->since_ms && strcmp(entry->topic, row->topic) == 0)
            return entry;
    }
    return NULL;
}

static void entry_drop(struct prober *prober, struct entry *entry)
{
    size_t at = 0;
    while (prober->entries[at] != entry)
        at++;
    prober->entries[at] = prober->entries[--prober->entry_count];
    free(entry->target);
    free(entry);
}

static void entry_add(struct prober *prober, const struct probe_row *row)
{
    char target[TARGET_BYTES_MAX + 1];
    const struct settings *settings = prober->settings;
    const struct probe_subject subject = { .scope = slice_of_text(settings->scope),
                                           .topic = slice_of_text(row->topic),
                                           .context = slice_of(row->context, row->context_bytes),
                                           .partition = row->partition,
                                           .offset = row->offset };
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return; /* a later look finds it again */
    memcpy(entry->topic, row->topic, sizeof entry->topic);
    entry->partition = row->partition;
    entry->offset = row->offset;
    entry->since_ms = row->since_ms;
    entry->due_ns = clock_monotonic_ns() + settings->probe_delay_ms * NS_PER_MS;
    if (probe_template_render(&settings->probe_url, &subject, target, sizeof target))
        entry->target = strdup(target);
    prober->entries[prober->entry_count++] = entry;
}

/* With more doubts than fit, one that was tried makes room: it comes round again. */
static bool is_crowded(const struct prober *prober)
{
    struct store_figures figures;
    store_figures_get(prober->store, &figures);
    return prober->entry_count == PROBES_KNOWN_MAX && figures.in_doubt_records > PROBES_KNOWN_MAX;
}

static void entry_back_off(struct prober *prober, struct entry *entry)
{
    if (entry->backoff_ms > 0 && is_crowded(prober)) {
        entry_drop(prober, entry);
        return;
    }
    entry->is_running = false;
    entry->backoff_ms = entry->backoff_ms == 0                    ? BACKOFF_FIRST_MS
                        : entry->backoff_ms * 2 > BACKOFF_LAST_MS ? BACKOFF_LAST_MS
                                                                  : entry->backoff_ms * 2;
    entry->due_ns = clock_monotonic_ns() + (uint64_t)entry->backoff_ms * NS_PER_MS;
}

/* ---- looking for doubts ------------------------------------------------------------------------------------------ */

static void on_scanned(struct question *question, enum store_status status)
{
    struct prober *prober = (struct prober *)(void *)((char *)question - offsetof(struct prober, scan));
    size_t count = status == STORE_OK && question->ret_status == QUESTION_OK ? question->ret_row_count : 0;
    size_t i = 0;
    prober->open_count--;
    prober->is_scanning = false;
    for (; i < count && prober->entry_count < PROBES_KNOWN_MAX && !prober->is_stopped; i++) {
        const struct probe_row *row = &question->ret.probes[i];
        prober->cursor_id = row->doubt_id;
        prober->cursor_offset = row->offset;
        if (entry_find(prober, row) == NULL)
            entry_add(prober, row);
    }
    if (i == count && count < PAGE_ROWS) { /* the end of the list: from its start, but not at once */
        prober->cursor_id = 0;
        prober->cursor_offset = -1;
        prober->next_scan_ns = clock_monotonic_ns() + (uint64_t)SCAN_MS * NS_PER_MS;
    }
    store_question_deinit(question);
}

static void scan(struct prober *prober, uint64_t now_ns)
{
    struct store_figures figures;
    store_figures_get(prober->store, &figures);
    if (prober->is_scanning || prober->entry_count == PROBES_KNOWN_MAX || now_ns < prober->next_scan_ns ||
        figures.in_doubt_records == 0)
        return;
    prober->is_scanning = true;
    prober->scan = (struct question){ .kind = ASK_PROBES,
                                      .partition = -1,
                                      .after_id = prober->cursor_id,
                                      .after_offset = prober->cursor_offset,
                                      .row_count_max = PAGE_ROWS,
                                      .done = on_scanned };
    ask(prober, &prober->scan);
}

/* ---- one probe --------------------------------------------------------------------------------------------------- */

static struct runner *runner_of_question(struct question *question)
{
    return (struct runner *)(void *)((char *)question - offsetof(struct runner, question));
}

static void runner_put(struct runner *runner)
{
    flight_deinit(&runner->flight);
    credentials_release(runner->credentials);
    runner->credentials = NULL;
    runner->entry = NULL;
    pump(runner->prober);
}

static void note_result(struct prober *prober, enum counter counter)
{
    bool is_clear = counter == COUNTER_PROBES_APPLIED || counter == COUNTER_PROBES_ABSENT;
    metrics_add(counter, 1);
    prober->unclear_in_a_row = is_clear ? 0 : prober->unclear_in_a_row + 1;
    metrics_gauge_set(GAUGE_PROBES_FAILING, prober->unclear_in_a_row >= FAILING_AFTER);
}

static void log_probe(const struct runner *runner, enum log_level level, const char *event, const char *words)
{
    const struct entry *entry = runner->entry;
    LOG_EVENT_LIMITED(level, event, words, log_text("topic", entry->topic),
                      log_integer("partition", entry->partition), log_integer("offset", entry->offset),
                      log_integer("status", runner->flight.response.status),
                      log_text("cause", attempt_error_name(runner->flight.error)),
                      log_text("detail", runner->flight.detail));
}

/* A mismatch means that somebody else was faster: there is nothing left to be resolved. */
static void on_resolved(struct question *question, enum store_status status)
{
    struct runner *runner = runner_of_question(question);
    struct prober *prober = runner->prober;
    prober->open_count--;
    if (status != STORE_OK || question->ret_status == QUESTION_FAILED)
        entry_back_off(prober, runner->entry);
    else
        entry_drop(prober, runner->entry);
    store_question_deinit(question);
    runner_put(runner);
}

static void resolve(struct runner *runner, bool is_applied)
{
    const struct entry *entry = runner->entry;
    struct question *question = &runner->question;
    *question = (struct question){ .kind = DO_RESOLVE,
                                   .partition = entry->partition,
                                   .first = entry->offset,
                                   .last = entry->offset,
                                   .since_ms = entry->since_ms,
                                   .expect_count = 1,
                                   .is_applied = is_applied,
                                   .done = on_resolved };
    memcpy(question->topic, entry->topic, sizeof question->topic);
    snprintf(question->detail, sizeof question->detail, "probe: %d", runner->flight.response.status);
    ask(runner->prober, question);
}

/* What was coded although nobody asked for it, or was cut, is no body to look into. */
static struct slice body_of(const struct flight *flight)
{
    const struct http1_response *response = &flight->response;
    if (flight->is_answer_damaged ||
        http1_field_find(response->fields, response->field_count, "content-encoding") != NULL)
        return slice_of("", 0);
    return slice_of(flight->answer, flight->answer_bytes);
}

static void on_probed(struct flight *flight)
{
    struct runner *runner = (struct runner *)(void *)((char *)flight - offsetof(struct runner, flight));
    struct prober *prober = runner->prober;
    bool is_whole = flight->attempt_class == ATTEMPT_KNOWN;
    enum probe_answer answer =
        is_whole ? probe_judge(prober->settings, flight->response.status, body_of(flight)) : PROBE_UNCLEAR;
    if (answer != PROBE_UNCLEAR) {
        note_result(prober, answer == PROBE_SAYS_APPLIED ? COUNTER_PROBES_APPLIED : COUNTER_PROBES_ABSENT);
        log_probe(runner, LOG_LEVEL_INFO, "record.resolved",
                  answer == PROBE_SAYS_APPLIED ? "a probe says that the target has the record"
                                               : "a probe says that the target does not have the record");
        resolve(runner, answer == PROBE_SAYS_APPLIED);
        return;
    }
    note_result(prober, is_whole ? COUNTER_PROBES_UNCLEAR : COUNTER_PROBES_FAILED);
    log_probe(runner, LOG_LEVEL_WARN, "target.error",
              "a probe got no clear answer: the record stays in doubt");
    entry_back_off(prober, runner->entry);
    runner_put(runner);
}

static void send_probe(struct runner *runner)
{
    static const char *const methods[] = {
        [PROBE_GET] = "GET", [PROBE_HEAD] = "HEAD", [PROBE_POST] = "POST"
    };
    const struct settings *settings = runner->prober->settings;
    size_t count = 0;
    runner->fields[count++] = http1_field_of("User-Agent", "sinkonce/" SINKONCE_VERSION);
    runner->fields[count++] = http1_field_of("Accept", "application/json, */*;q=0.5");
    runner->credentials = credentials_hold(runner->prober->credentials);
    const char *authorization = runner->credentials->settings.probe_authorization;
    if (authorization[0] != '\0')
        runner->fields[count++] = http1_field_of("Authorization", authorization);
    runner->flight = (struct flight){ .method = slice_of_text(methods[settings->probe_method]),
                                      .target = slice_of_text(runner->entry->target),
                                      .fields = runner->fields,
                                      .field_count = count,
                                      .has_body = settings->probe_method == PROBE_POST,
                                      .is_head_request = settings->probe_method == PROBE_HEAD,
                                      .done = on_probed };
    upstream_send(runner->prober->upstream, &runner->flight);
}

static bool is_same_doubt(const struct question *question, const struct entry *entry)
{
    return question->ret_state == RECORD_IN_DOUBT && question->ret_row_count == 1 &&
           question->ret.doubts[0].since_ms == entry->since_ms;
}

static void on_checked(struct question *question, enum store_status status)
{
    struct runner *runner = runner_of_question(question);
    struct prober *prober = runner->prober;
    struct entry *entry = runner->entry;
    bool is_answered = status == STORE_OK && question->ret_status == QUESTION_OK;
    bool is_there = is_answered && is_same_doubt(question, entry);
    prober->open_count--;
    store_question_deinit(question);
    if (is_there && entry->target != NULL && !prober->is_stopped) {
        send_probe(runner);
        return;
    }
    if (is_answered && !is_there) {
        entry_drop(prober, entry);
    } else {
        if (is_there && !prober->is_stopped)
            note_result(prober, COUNTER_PROBES_NO_VALUE);
        entry_back_off(prober, entry);
    }
    runner_put(runner);
}

/* A person, or a late answer, may have decided since it was found. */
static void check(struct runner *runner, struct entry *entry)
{
    struct question *question = &runner->question;
    runner->entry = entry;
    entry->is_running = true;
    *question = (struct question){ .kind = ASK_RECORD,
                                   .partition = entry->partition,
                                   .first = entry->offset,
                                   .last = entry->offset,
                                   .row_count_max = 1,
                                   .done = on_checked };
    memcpy(question->topic, entry->topic, sizeof question->topic);
    ask(runner->prober, question);
}

static struct entry *most_overdue(const struct prober *prober, uint64_t now_ns)
{
    struct entry *found = NULL;
    for (size_t i = 0; i < prober->entry_count; i++) {
        struct entry *entry = prober->entries[i];
        if (!entry->is_running && entry->due_ns <= now_ns && (found == NULL || entry->due_ns < found->due_ns))
            found = entry;
    }
    return found;
}

static void pump(struct prober *prober)
{
    uint64_t now_ns = clock_monotonic_ns();
    for (size_t i = 0; i < PROBES_AT_ONCE && !prober->is_stopped; i++) {
        struct entry *entry = prober->runners[i].entry == NULL ? most_overdue(prober, now_ns) : NULL;
        if (entry != NULL)
            check(&prober->runners[i], entry);
    }
}

static void tick_cb(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    scan(context, clock_monotonic_ns());
    pump(context);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* The probe's own target and limits; proxy, certificates and the rest are those of the target. */
static bool settings_make(struct prober *prober)
{
    struct settings *settings = &prober->probe_settings;
    const char *base = prober->settings->probe_url.base;
    *settings = *prober->settings;
    settings->connect_timeout_ms = settings->target_timeout_ms = prober->settings->probe_timeout_ms;
    settings->response_bytes_max = ANSWER_BYTES_MAX;
    if (base[0] == '\0')
        return true;
    settings->target = (struct target_url){ .text = NULL };
    prober->is_target_owned = true;
    return target_url_parse(base, &settings->target) == NULL;
}

void prober_credentials_set(struct prober *prober, struct credentials *credentials)
{
    struct credentials *old = prober->credentials;
    prober->credentials = credentials_hold(credentials);
    if (prober->upstream != NULL)
        upstream_credentials_set(prober->upstream, credentials);
    credentials_release(old);
}

struct prober *prober_new(struct event_base *base, const struct settings *settings,
                          struct credentials *credentials, struct store *store, struct store_port *port,
                          struct resolver *resolver)
{
    const struct timeval tick = { 0, TICK_MS * 1000 };
    assert(settings->probe_url.text != NULL);
    struct prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL)
        return NULL;
    prober->settings = settings;
    prober->store = store;
    prober->port = port;
    prober->cursor_offset = -1;
    for (size_t i = 0; i < PROBES_AT_ONCE; i++)
        prober->runners[i].prober = prober;
    if (settings_make(prober))
        prober->upstream = upstream_new(base, &prober->probe_settings, resolver, PROBES_AT_ONCE);
    prober_credentials_set(prober, credentials);
    if (prober->upstream != NULL)
        prober->tick = event_new(base, -1, EV_PERSIST, tick_cb, prober);
    if (prober->tick != NULL && event_add(prober->tick, &tick) == 0)
        return prober;
    prober_free(prober);
    return NULL;
}

void prober_stop(struct prober *prober)
{
    if (prober == NULL)
        return;
    prober->is_stopped = true;
    if (prober->tick != NULL)
        event_free(prober->tick);
    upstream_free(prober->upstream);
    prober->tick = NULL;
    prober->upstream = NULL;
}

size_t prober_open_count(const struct prober *prober)
{
    return prober == NULL ? 0 : prober->open_count;
}

void prober_free(struct prober *prober)
{
    if (prober == NULL)
        return;
    assert(prober->open_count == 0);
    prober_stop(prober);
    for (size_t i = 0; i < PROBES_AT_ONCE; i++) {
        flight_deinit(&prober->runners[i].flight);
        credentials_release(prober->runners[i].credentials);
    }
    credentials_release(prober->credentials);
    while (prober->entry_count > 0)
        entry_drop(prober, prober->entries[0]);
    if (prober->is_target_owned)
        target_url_deinit(&prober->probe_settings.target);
    free(prober);
}
