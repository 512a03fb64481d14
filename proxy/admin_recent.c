/*
 * admin_recent.c - what an operator should know of the last minutes: counters now, beside what they were then.
 *
 * A gauge shows what is; what comes and goes between two looks, and what only a count can show, is found here.
 */
#include "admin_call.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "clock.h"
#include "metrics.h"

/* What is too little to be told from chance, and how long a look back is at least. */
enum { ENOUGH_RECORDS = 100, ENOUGH_FAILURES = 3, SAMPLE_S = 60 };

static const struct {
    enum counter counter;
    const char *words; /* with the label of the metric, and of the log's cause */
} causes[ADMIN_CAUSE_COUNT] = {
    { COUNTER_TARGET_ERROR_CONNECT, "no connection (connect)" },
    { COUNTER_TARGET_ERROR_DNS, "its name was not found (dns)" },
    { COUNTER_TARGET_ERROR_TLS, "no trust (tls)" },
    { COUNTER_TARGET_ERROR_TIMEOUT, "no answer in time (timeout)" },
    { COUNTER_TARGET_ERROR_CLOSED, "the connection was lost (closed)" },
    { COUNTER_TARGET_ERROR_GUARD, "the connection was lost (second_send_stopped)" },
    { COUNTER_TARGET_ERROR_PROTOCOL, "an answer that is no HTTP (protocol)" },
    { COUNTER_TARGET_ERROR_QUEUE, "no connection became free (queue)" },
};

static void sample_take(const struct admin *admin, uint64_t now_ns, struct admin_sample *ret_sample)
{
    struct store_figures figures;
    store_figures_get(admin->parts.store, &figures);
    uint64_t unkeyed = metrics_counter(COUNTER_RECORDS_UNKEYED);
    *ret_sample = (struct admin_sample){ .taken_ns = now_ns,
                                         .keyed = metrics_counter(COUNTER_RECORDS) - unkeyed,
                                         .unkeyed = unkeyed,
                                         .duplicate = metrics_counter(COUNTER_RECORDS_DUPLICATE),
                                         .uncuttable = metrics_counter(COUNTER_REFUSED_UNCUTTABLE),
                                         .unauthorized = metrics_counter(COUNTER_REFUSED_UNAUTHORIZED),
                                         .ledger_errors = figures.error_count };
    for (size_t i = 0; i < ADMIN_CAUSE_COUNT; i++)
        ret_sample->target_errors[i] = metrics_counter(causes[i].counter);
    for (size_t i = 0; i < ADMIN_CODE_COUNT; i++)
        ret_sample->target_answers[i] = metrics_target_response_count(METRICS_CODE_MIN + (int)i);
}

void admin_tick(struct admin *admin, uint64_t now_ns)
{
    if (admin->later.taken_ns != 0 &&
        now_ns - admin->later.taken_ns < (uint64_t)SAMPLE_S * MS_PER_S * NS_PER_MS)
        return;
    admin->before = admin->later;
    sample_take(admin, now_ns, &admin->later);
}

/* ---- the target --------------------------------------------------------------------------------------------------- */

struct target_look {
    uint64_t success_count, failure_count, most_count;
    char most[64]; /* what most of the failures were */
};

static void look_at_failures(struct target_look *look, uint64_t count, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void look_at_failures(struct target_look *look, uint64_t count, const char *format, ...)
{
    va_list arguments;
    look->failure_count += count;
    if (count <= look->most_count)
        return;
    look->most_count = count;
    va_start(arguments, format);
    vsnprintf(look->most, sizeof look->most, format, arguments);
    va_end(arguments);
}

/* While nobody writes, what it says to other requests (GET / of a load balancer) is no matter. */
static void warn_of_target(json_t *warnings, const struct admin_sample *before,
                           const struct admin_sample *now)
{
    struct target_look look = { .success_count = 0 };
    if (now->keyed + now->unkeyed == before->keyed + before->unkeyed)
        return;
    for (size_t i = 0; i < ADMIN_CAUSE_COUNT; i++)
        look_at_failures(&look, now->target_errors[i] - before->target_errors[i], "%s", causes[i].words);
    for (size_t i = 0; i < ADMIN_CODE_COUNT; i++) {
        uint64_t count = now->target_answers[i] - before->target_answers[i];
        int status = METRICS_CODE_MIN + (int)i;
        if (status / 100 == 2)
            look.success_count += count;
        else
            look_at_failures(&look, count, "status %d", status);
    }
    if (look.success_count == 0 && look.failure_count >= ENOUGH_FAILURES)
        admin_warn(warnings,
                   "The target gave no 2xx in the last minutes, and %" PRIu64
                   " attempts failed, most often so: %s.",
                   look.failure_count, look.most);
}

/* ---- records, ledger, doors --------------------------------------------------------------------------------------- */

static void warn_of_ledger(json_t *warnings, const struct admin *admin, uint64_t error_count)
{
    struct store_figures figures;
    store_figures_get(admin->parts.store, &figures);
    if (error_count > 0 && !figures.is_full && !figures.is_failing)
        admin_warn(warnings,
                   "The ledger works, but failed %" PRIu64
                   " %s in the last minutes (%s), and writes got 503 meanwhile: "
                   "look at the disk of %s.",
                   error_count, admin_one_or_many(error_count, "time", "times"), figures.failure,
                   admin->parts.settings->data_dir);
}

static void warn_of_refused(json_t *warnings, uint64_t uncuttable, uint64_t unauthorized)
{
    if (uncuttable > 0)
        admin_warn(
            warnings,
            "%" PRIu64 " %s of the last minutes got 503 and will get it again: applied records came together "
            "with others in what is signed or opaque and cannot be cut.  Let the connector send one record a "
            "request until it is past them; record.uncuttable in the log names the first.",
            uncuttable, admin_one_or_many(uncuttable, "request", "requests"));
    if (unauthorized > 0)
        admin_warn(warnings,
                   "%" PRIu64
                   " %s of the last minutes came without a valid SINKONCE_CLIENT_TOKEN and got 401: "
                   "http.refused in the log names a peer.",
                   unauthorized, admin_one_or_many(unauthorized, "request", "requests"));
}

static void warn_of_traffic(json_t *warnings, uint64_t keyed, uint64_t duplicate, uint64_t unkeyed)
{
    if (keyed >= ENOUGH_RECORDS && keyed == duplicate)
        admin_warn(
            warnings,
            "Everything is a duplicate: all %" PRIu64
            " records of the last minutes were known already and dropped. "
            "A connector that reads from an old offset looks like this, and so does a topic that was created "
            "anew.",
            keyed);
    if (unkeyed > 0)
        admin_warn(
            warnings,
            "%" PRIu64 " %s of the last minutes had no coordinates and %s not protected: see POST /explain, "
            "and the settings of where the coordinates are.",
            unkeyed, admin_one_or_many(unkeyed, "write", "writes"), admin_one_or_many(unkeyed, "is", "are"));
}

void admin_warn_of_recent(json_t *warnings, const struct admin *admin)
{
    const struct admin_sample *before = &admin->before;
    struct admin_sample now;
    sample_take(admin, 0, &now);
    warn_of_ledger(warnings, admin, now.ledger_errors - before->ledger_errors);
    warn_of_target(warnings, before, &now);
    warn_of_refused(warnings, now.uncuttable - before->uncuttable, now.unauthorized - before->unauthorized);
    warn_of_traffic(warnings, now.keyed - before->keyed, now.duplicate - before->duplicate,
                    now.unkeyed - before->unkeyed);
}
