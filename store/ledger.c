/*
 * ledger.c - the ledger's thread: it sleeps before the queue, takes all that is there, and has it done (ledger_batch.c).
 *
 * What the ledger still owes after a failure (owed.h) it tries to write every 250 ms, traffic or not.
 */
#include "ledger.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "ledger_state.h"

enum { WINDOW_LOOK_MIN_MS = 1000, WINDOW_LOOK_MAX_MS = 60000 };

/* ---- the thread ------------------------------------------------------------------------------------------------- */

/* When a window is to be closed even if nothing is posted.  Not before a second is over, so that one that cannot be
 * closed (a full disk) is no reason to turn in a circle; and looked at every minute, because people move clocks. */
static uint64_t next_window_ms(const struct ledger *ledger)
{
    uint64_t until_ms = machine_window_until_ms(ledger->machine);
    if (until_ms == UINT64_MAX)
        return UINT64_MAX;
    struct machine_time now = time_now();
    uint64_t left_ms = until_ms > now.unix_ms ? until_ms - now.unix_ms : 0;
    left_ms = left_ms < WINDOW_LOOK_MIN_MS ? WINDOW_LOOK_MIN_MS : left_ms;
    return now.mono_ms + (left_ms > WINDOW_LOOK_MAX_MS ? WINDOW_LOOK_MAX_MS : left_ms);
}

/* When there is work without a posting, on the mono_ms clock. */
static uint64_t next_work_ms(const struct ledger *ledger)
{
    if (machine_has_woken(ledger->machine))
        return 0;
    uint64_t work_ms = machine_deadline_ms(ledger->machine);
    if (ledger_owes(ledger) && ledger->retry_ms < work_ms)
        work_ms = ledger->retry_ms;
    uint64_t window_ms = next_window_ms(ledger);
    return window_ms < work_ms ? window_ms : work_ms;
}

/* Ask for short turns: whoever runs little and often is then let in sooner after each wait for the disk, which on busy
 * cores costs more than the disk itself.  Linux takes it as a hint since 6.12 (sched(7), sched_setattr(2)), needs no
 * privilege for it, and older ones ignore it. */
static void short_turns_ask(void)
{
    enum { TURN_NS = 100000 };
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
    } attributes = { .size = 48, .policy = SCHED_OTHER, .runtime_ns = TURN_NS };
    errno = 0;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    if (errno == 0)
        (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* All that was posted; none when it is time for something else.  False: the end. */
static bool take_postings(struct ledger *ledger, struct posting_list *ret_postings)
{
    size_t count;
    uint64_t work_ms = next_work_ms(ledger);
    uint64_t work_ns = work_ms == UINT64_MAX ? UINT64_MAX : work_ms * NS_PER_MS;
    struct company company = company_wanted(ledger->commit_delay_ns, ledger->batch_count, ledger->commit_ns);
    bool is_going_on = queue_take(&ledger->queue, work_ns, company, ret_postings, &count);
    if (count > 0)
        ledger->batch_count = count;
    return is_going_on;
}

static void *ledger_main(void *argument)
{
    struct ledger *ledger = argument;
    struct posting_list postings;
    short_turns_ask();
    while (take_postings(ledger, &postings))
        ledger_run_batch(ledger, postings);
    /* The last chance: what is still owed then will be found as INTENT, and be in doubt. */
    if (ledger_owes(ledger))
        ledger_repair(ledger);
    return NULL;
}

void ledger_post(struct ledger *ledger, struct posting *posting)
{
    queue_add(&ledger->queue, posting);
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

/* A name that is new to the ledger, or the new one of the same target: env.c let no other one in. */
static void write_target(struct ledger *ledger, struct rows *rows, const char *target)
{
    char detail[DETAIL_BYTES_MAX + 1];
    struct key key = key_meta(META_TARGET);
    char *known = ledger->row.target;
    if (target == NULL || strcmp(known, target) == 0)
        return;
    rows_put(rows, key_slice(&key), slice_of_text(target));
    snprintf(detail, sizeof detail, "the target has another name now; it was %.55s", known);
    if (known[0] != '\0')
        machine_note(ledger->machine, EVENT_ADMIN, detail);
    snprintf(known, sizeof ledger->row.target, "%s", target);
}

static void write_boot(struct ledger *ledger, struct rows *rows, const struct store_options *options,
                       bool is_created)
{
    struct key key = key_meta(META_STORE);
    struct value value;
    store_row_write(&ledger->row, &value);
    rows_put(rows, key_slice(&key), value_slice(&value));
    if (is_created)
        machine_note(ledger->machine, EVENT_CREATED, "a new ledger: nothing is known of any record");
    write_target(ledger, rows, options->target);
    machine_recover(ledger->machine);
}

/* A life begins: counted, and what the last one left open is in doubt, before anything is answered. */
static enum store_open_status begin_life(struct ledger *ledger, const struct store_options *options,
                                         bool is_created, char why[], size_t why_bytes_max)
{
    struct rows rows;
    ledger->boot = ++ledger->row.boot_count;
    if (rows_begin(&rows, ledger->env.mdb, ledger->env.table) == ROWS_OK) {
        machine_load(ledger->machine, &rows, ledger->boot);
        machine_begin(ledger->machine, &rows, time_now(), MACHINE_OPEN);
        write_boot(ledger, &rows, options, is_created);
        machine_end(ledger->machine);
        if (ledger_commit(ledger, &rows) == ROWS_OK) {
            ledger->is_loaded = true;
            return STORE_OPENED;
        }
    }
    snprintf(why, why_bytes_max, "the ledger in %s cannot be read or written: %s", ledger->env.folder,
             mdb_strerror(env_error_of(&ledger->env, rows.error)));
    return STORE_UNREADABLE;
}

static struct machine_settings machine_settings_of(const struct store_options *options)
{
    return (struct machine_settings){ .policy = options->policy,
                                      .in_doubt_max = options->in_doubt_max,
                                      .partitions_max = options->partitions_max,
                                      .marks = options->marks,
                                      .is_identity_checked = options->is_identity_checked,
                                      .window = options->window,
                                      .is_first_sight_held = options->is_first_sight_held,
                                      .replies = options->replies,
                                      .reply_bytes_max = options->reply_bytes_max };
}

static struct ledger *ledger_new(const struct store_options *options)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    struct machine_settings settings = machine_settings_of(options);
    if (ledger == NULL)
        return NULL;
    ledger->env.lock_fd = -1;
    ledger->machine = machine_new(&settings, (struct machine_answers){ ledger_answer_claim, ledger });
    ledger->commit_delay_ns = options->commit_delay_us * UINT64_C(1000);
    ledger->backup.env = &ledger->env;
    ledger->backup.queue = &ledger->queue;
    queue_init(&ledger->queue);
    figures_init(&ledger->figures);
    return ledger;
}

static void ledger_free(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    owed_clear(&ledger->owed);
    machine_free(ledger->machine);
    env_deinit(&ledger->env);
    figures_deinit(&ledger->figures);
    queue_deinit(&ledger->queue);
    free(ledger);
}

static enum store_open_status start(struct ledger *ledger, const struct store_options *options, char why[],
                                    size_t why_bytes_max)
{
    bool is_created;
    enum store_open_status status =
        env_init(&ledger->env, options, time_now().unix_ms, &ledger->row, &is_created, why, why_bytes_max);
    if (status == STORE_OPENED)
        status = begin_life(ledger, options, is_created, why, why_bytes_max);
    if (status != STORE_OPENED)
        return status;
    figures_open(&ledger->figures, options, &ledger->row);
    env_reserve(&ledger->env);
    if (pthread_create(&ledger->thread, NULL, ledger_main, ledger) == 0)
        return STORE_OPENED;
    snprintf(why, why_bytes_max, "cannot start the ledger's thread");
    return STORE_UNREADABLE;
}

enum store_open_status ledger_open(const struct store_options *options, struct ledger **ret_ledger,
                                   char why[], size_t why_bytes_max)
{
    struct ledger *ledger = ledger_new(options);
    if (ledger == NULL || ledger->machine == NULL) {
        ledger_free(ledger);
        snprintf(why, why_bytes_max, "no memory for the ledger");
        return STORE_UNREADABLE;
    }
    enum store_open_status status = start(ledger, options, why, why_bytes_max);
    if (status == STORE_OPENED)
        *ret_ledger = ledger;
    else
        ledger_free(ledger);
    return status;
}

void ledger_close(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    queue_close(&ledger->queue);
    pthread_join(ledger->thread, NULL);
    ledger_free(ledger);
}

void ledger_figures(struct ledger *ledger, struct store_figures *ret_figures)
{
    figures_get(&ledger->figures, ret_figures);
}

const atomic_bool *ledger_failing(const struct ledger *ledger)
{
    return &ledger->figures.is_failing;
}

const char *ledger_id(const struct ledger *ledger)
{
    return ledger->row.id;
}
