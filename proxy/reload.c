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
    metrics_add(COUNTER_RELOADS_DONE, 1);
    LOG_EVENT(LOG_LEVEL_INFO, "config.reloaded",
              "secrets and certificates were read again; what begins from now on uses them",
              log_text("cause", "SIGHUP"));
    admin_event_note(parts->admin, "reload: secrets and certificates were read again (SIGHUP)");
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

void reload(const struct reload_parts *parts)
{
    struct settings_mistakes mistakes;
    struct credentials *credentials = credentials_read(parts->environment, &mistakes);
    bool is_done = credentials != NULL && hand_over(parts, credentials);
    reload_log_mistakes(&mistakes);
    parts->state->is_reload_refused = !is_done;
    if (is_done)
        tell_done(parts);
    else
        tell_refused(parts, &mistakes);
    credentials_release(credentials);
    settings_mistakes_deinit(&mistakes);
}
