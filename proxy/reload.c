/*
 * reload.c - the steps behind reload.h.
 *
 * All memory that handing over needs is taken before the first change, so that no loop stays behind.
 */
#include "reload.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "metrics.h"

enum { LATE_MS = 2000 /* a loop that works takes what it is handed in its next turn */ };

void reload_log_mistakes(const struct settings_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->line_count; i++)
        log_event(LOG_LEVEL_ERROR, "config.invalid", mistakes->lines[i], NULL, 0);
    for (size_t i = 0; i < mistakes->note_count; i++)
        log_event(LOG_LEVEL_WARN, "config.risky", mistakes->notes[i], NULL, 0);
}

static void log_end(void *context, const char *sentence)
{
    (void)context;
    log_event(LOG_LEVEL_WARN, "config.risky", sentence, NULL, 0);
}

void reload_log_ends(const struct credentials *credentials)
{
    credentials_ends_tell(credentials, (int64_t)(clock_unix_ms() / MS_PER_S), log_end, NULL);
}

static void tasks_free(struct loop_task **tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        loop_credentials_task_free(tasks[i]);
    free(tasks);
}

/* One for each loop; NULL: no memory. */
static struct loop_task **tasks_new(struct credentials *credentials, size_t count)
{
    struct loop_task **tasks = calloc(count, sizeof *tasks);
    for (size_t i = 0; tasks != NULL && i < count; i++) {
        tasks[i] = loop_credentials_task(credentials);
        if (tasks[i] == NULL) {
            tasks_free(tasks, count);
            return NULL;
        }
    }
    return tasks;
}

static bool hand_over(const struct reload_parts *parts, struct credentials *credentials)
{
    struct loop_task **tasks = tasks_new(credentials, parts->loop_count);
    if (tasks == NULL)
        return false;
    for (size_t i = 0; i < parts->loop_count; i++)
        loop_post(parts->loops[i], tasks[i]);
    free(tasks);
    admin_credentials_set(parts->admin, credentials);
    if (parts->prober != NULL)
        prober_credentials_set(parts->prober, credentials);
    credentials_release(parts->program->credentials);
    parts->program->credentials = credentials_hold(credentials);
    return true;
}

static void tell_done(const struct reload_parts *parts)
{
    LOG_EVENT(LOG_LEVEL_INFO, "config.reloaded",
              "secrets and certificates were read again; what begins from now on uses them",
              log_text("cause", "SIGHUP"));
    admin_event_note(parts->admin, "reload: secrets and certificates were read again (SIGHUP)");
}

static void tell_late(size_t late_count)
{
    LOG_EVENT(LOG_LEVEL_WARN, "config.reloading",
              "event loops stand still, and have not taken the secrets and certificates that were read again",
              log_integer("loops", (int64_t)late_count));
}

static void tell_refused(const struct reload_parts *parts, const struct settings_mistakes *mistakes)
{
    char detail[200];
    const char *first = mistakes->line_count > 0 ? mistakes->lines[0] : "out of memory";
    metrics_add(COUNTER_RELOADS_REFUSED, 1);
    LOG_EVENT(LOG_LEVEL_ERROR, "config.invalid",
              "SIGHUP changed nothing: the secrets and certificates from before it hold",
              log_integer("mistakes", (int64_t)mistakes->line_count));
    snprintf(detail, sizeof detail, "reload refused: %s", first);
    admin_event_note(parts->admin, detail);
}

/* How many all loops have taken; RET_LATE_COUNT: loops that have not taken the last one. */
static size_t count_taken(const struct reload_parts *parts, size_t *ret_late_count)
{
    size_t least = parts->course->handed_count;
    *ret_late_count = 0;
    for (size_t i = 0; i < parts->loop_count; i++) {
        size_t taken = atomic_load(&parts->loops[i]->credentials_taken);
        least = taken < least ? taken : least;
        *ret_late_count += taken < parts->course->handed_count;
    }
    return least;
}

void reload_tick(const struct reload_parts *parts, uint64_t now_ns)
{
    struct reload_course *course = parts->course;
    size_t late_count;
    if (course->taken_count == course->handed_count)
        return;
    size_t taken_count = count_taken(parts, &late_count);
    if (taken_count > course->taken_count) {
        metrics_add(COUNTER_RELOADS_DONE, taken_count - course->taken_count);
        course->taken_count = taken_count;
        course->moved_ns = now_ns;
        course->is_late_told = false;
    }
    if (late_count == 0) {
        tell_done(parts);
    } else if (!course->is_late_told && now_ns - course->moved_ns >= (uint64_t)LATE_MS * NS_PER_MS) {
        tell_late(late_count);
        course->is_late_told = true;
    }
    parts->state->reload_late_count = course->is_late_told ? late_count : 0;
}

/* From now on reload_tick() looks who has it. */
static void course_begin(struct reload_course *course)
{
    if (course->taken_count == course->handed_count++)
        course->moved_ns = clock_monotonic_ns();
}

void reload(const struct reload_parts *parts)
{
    struct settings_mistakes mistakes;
    struct credentials *credentials = credentials_read(parts->environment, &mistakes);
    bool is_done = credentials != NULL && hand_over(parts, credentials);
    reload_log_mistakes(&mistakes);
    parts->state->is_reload_refused = !is_done;
    if (is_done)
        course_begin(parts->course);
    else
        tell_refused(parts, &mistakes);
    credentials_release(credentials);
    settings_mistakes_deinit(&mistakes);
}
