/*
 * figures.c - what the ledger tells of itself.
 */
#include "figures.h"

#include <stdio.h>
#include "clock.h"

void figures_init(struct figures *figures)
{
    memset(figures, 0, sizeof *figures);
    pthread_mutex_init(&figures->lock, NULL);
}

void figures_deinit(struct figures *figures)
{
    pthread_mutex_destroy(&figures->lock);
}

void figures_open(struct figures *figures, const struct store_options *options, const struct store_row *store)
{
    figures->shown.max_bytes = options->ledger_bytes_max;
    figures->shown.partitions_max = options->partitions_max;
    figures->shown.created_ms = store->created_ms;
    figures->shown.boot_count = store->boot_count;
}

void figures_get(struct figures *figures, struct store_figures *ret_figures)
{
    pthread_mutex_lock(&figures->lock);
    *ret_figures = figures->shown;
    pthread_mutex_unlock(&figures->lock);
}

void figures_count_error(struct figures *figures)
{
    pthread_mutex_lock(&figures->lock);
    figures->shown.error_count++;
    pthread_mutex_unlock(&figures->lock);
}

void figures_set_full(struct figures *figures, bool is_full, bool is_disk_full)
{
    pthread_mutex_lock(&figures->lock);
    figures->shown.is_full = is_full;
    figures->shown.is_disk_full = is_disk_full;
    pthread_mutex_unlock(&figures->lock);
}

/* New writes begin to be refused, go on to be, or are taken again.  The lock is held. */
static void tell_refusal(struct figures *figures)
{
    struct store_figures *to = &figures->shown;
    if (to->is_full || to->is_failing) {
        if (figures->refusing_ms == 0)
            figures->refusing_ms = clock_monotonic_ns() / NS_PER_MS;
        snprintf(to->failure, sizeof to->failure, "%s",
                 figures->failure[0] != '\0' ? figures->failure : "no room is left for new claims");
    } else if (figures->refusing_ms != 0) {
        to->refusal_count++;
        to->refusal_ms = clock_monotonic_ns() / NS_PER_MS - figures->refusing_ms;
        figures->refusing_ms = 0;
        figures->failure[0] = '\0';
    }
}

void figures_publish(struct figures *figures, struct machine *machine, bool is_failing, uint64_t used_bytes,
                     uint64_t commit_ns)
{
    struct machine_figures from;
    struct store_figures *to = &figures->shown;
    machine_figures_get(machine, &from);
    pthread_mutex_lock(&figures->lock);
    to->commit_count += commit_ns > 0;
    to->commit_seconds_sum_ns += commit_ns;
    to->commit_record_count = from.changed_record_count;
    if (used_bytes > 0)
        to->used_bytes = used_bytes;
    to->in_doubt_records = from.in_doubt_records;
    to->in_doubt_oldest_ms = from.in_doubt_oldest_ms;
    memcpy(to->doubts_by_cause, from.doubts_by_cause, sizeof to->doubts_by_cause);
    memcpy(to->entered_by_cause, from.entered_by_cause, sizeof to->entered_by_cause);
    to->resolved_applied = from.resolved_applied;
    to->resolved_not_applied = from.resolved_not_applied;
    to->resolved_retry = from.resolved_retry;
    to->resolved_assumed = from.resolved_assumed;
    to->conflict_open_count = from.conflict_open_count;
    to->conflict_count = from.conflict_count;
    to->first_sight_count = from.first_sight_count;
    to->below_window_count = from.below_window_count;
    to->interval_count = from.interval_count;
    to->partition_count = from.partition_count;
    to->jump_count = from.jump_count;
    to->rewind_count = from.rewind_count;
    to->replayed_count = from.replayed_count;
    to->replay_open_count = from.replay_open_count;
    to->is_failing = is_failing;
    atomic_store_explicit(&figures->is_failing, is_failing, memory_order_relaxed);
    tell_refusal(figures);
    pthread_mutex_unlock(&figures->lock);
}
