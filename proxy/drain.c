/*
 * drain.c - how the program comes to rest.
 */
#include "drain.h"

#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "clock.h"
#include "metrics.h"
#include "settings_url.h"

/* For replies that are written, but not taken yet, when nothing is in flight any more. */
enum { LAST_WORDS_MS = 500 };

void drain_deinit(struct drain *drain)
{
    listen_address_deinit(&drain->reopen_at);
}

/* ---- for good ---------------------------------------------------------------------------------------------------- */

static void drain_begin(struct drain *drain)
{
    drain->life = LIFE_DRAINING;
    drain->life_until_ns = clock_monotonic_ns() + drain->program->settings->drain_timeout_ms * NS_PER_MS;
    doors_close_data(drain->doors);
    loops_drain(drain->loops);
}

void drain_stop(struct drain *drain)
{
    if (drain->life != LIFE_RUNNING) {
        LOG_EVENT(LOG_LEVEL_WARN, "server.stop", "stopped at once by a second signal",
                  log_integer("code", EX_OK));
        _exit(EX_OK);
    }
    LOG_EVENT(LOG_LEVEL_INFO, "drain.start", "stopping: what is in flight may end",
              log_integer("in_flight", (int64_t)atomic_load(&drain->program->in_flight)),
              log_integer("at_target", metrics_gauge(GAUGE_TARGET_IN_FLIGHT)));
    drain->state->is_stopping = drain->state->is_draining = true;
    drain->state->is_ready = false;
    drain->life = LIFE_DELAY;
    drain->life_until_ns = clock_monotonic_ns() + drain->program->settings->drain_delay_ms * NS_PER_MS;
    if (drain->program->settings->drain_delay_ms == 0)
        drain_begin(drain);
}

static bool is_quiet(struct drain *drain, uint64_t now_ns)
{
    if (atomic_load(&drain->program->in_flight) > 0) {
        drain->quiet_since_ns = 0;
        return false;
    }
    if (drain->quiet_since_ns == 0)
        drain->quiet_since_ns = now_ns;
    return atomic_load(&drain->program->connections) == 0 ||
           now_ns - drain->quiet_since_ns > (uint64_t)LAST_WORDS_MS * NS_PER_MS;
}

bool drain_tick(struct drain *drain, uint64_t now_ns)
{
    if (drain->life == LIFE_DELAY && now_ns >= drain->life_until_ns)
        drain_begin(drain);
    if (drain->life != LIFE_DRAINING)
        return false;
    if (is_quiet(drain, now_ns)) {
        drain->life = LIFE_OVER;
        return true;
    }
    if (now_ns >= drain->life_until_ns) {
        LOG_EVENT(LOG_LEVEL_WARN, "drain.timeout",
                  "time is up: stopped at once; what is in flight will be in doubt at the next start",
                  log_integer("in_flight", (int64_t)atomic_load(&drain->program->in_flight)),
                  log_integer("at_target", metrics_gauge(GAUGE_TARGET_IN_FLIGHT)));
        _exit(EX_OK);
    }
    return false;
}

/* ---- for a while ------------------------------------------------------------------------------------------------- */

/* Where the port was any free one, the one that connectors know is kept; it is known where a resume failed half way. */
static bool drain_by_operator(struct drain *drain, char ret_why[], size_t why_bytes_max)
{
    const char *wrong =
        drain->reopen_at.text != NULL
            ? NULL
            : listen_address_parse(listener_address(drain->doors->data_listener), &drain->reopen_at);
    if (wrong != NULL) {
        listen_address_deinit(&drain->reopen_at);
        drain->reopen_at = (struct listen_address){ .text = NULL };
        snprintf(ret_why, why_bytes_max, "the address %s", wrong);
        return false;
    }
    doors_close_data(drain->doors);
    drain->state->is_draining = true;
    drain->state->is_ready = false;
    loops_drain(drain->loops);
    return true;
}

static bool resume_by_operator(struct drain *drain, char ret_why[], size_t why_bytes_max)
{
    if (drain->reopen_at.text == NULL)
        return true;
    if (drain->doors->data_listener == NULL &&
        !doors_open_data(drain->doors, &drain->reopen_at, ret_why, why_bytes_max))
        return false;
    if (!loops_resume(drain->loops)) {
        snprintf(ret_why, why_bytes_max, "out of memory: some connections still drain");
        return false;
    }
    listen_address_deinit(&drain->reopen_at);
    drain->reopen_at = (struct listen_address){ .text = NULL };
    drain->state->is_draining = false;
    drain->state->is_ready = true;
    return true;
}

bool drain_set(struct drain *drain, bool is_draining, char ret_why[], size_t why_bytes_max)
{
    if (drain->life != LIFE_RUNNING) {
        snprintf(ret_why, why_bytes_max, "the program is stopping");
        return false;
    }
    if (is_draining && drain->doors->data_listener == NULL)
        return true;
    return is_draining ? drain_by_operator(drain, ret_why, why_bytes_max)
                       : resume_by_operator(drain, ret_why, why_bytes_max);
}
