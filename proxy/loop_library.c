/*
 * loop_library.c - libevent's messages as log lines; abort() where it gives up.
 *
 * The ledger survives that like any kill: what is on its way is in doubt at the next start.
 */
#include "loop_library.h"
#include <event2/event.h>
#include <stdlib.h>
#include "log.h"

/* [any] A warning may come again at each turn of a loop. */
static void on_message(int severity, const char *message)
{
    if (severity >= EVENT_LOG_ERR)
        LOG_EVENT(LOG_LEVEL_ERROR, "loop.library", "the event library says why it cannot go on",
                  log_text("detail", message));
    else if (severity == EVENT_LOG_WARN)
        LOG_EVENT_LIMITED(LOG_LEVEL_WARN, "loop.library", "the event library warns",
                          log_text("detail", message));
    else
        LOG_EVENT(LOG_LEVEL_DEBUG, "loop.library", "the event library tells", log_text("detail", message));
}

/* [any] Its message has come before. */
static void on_fatal(int code)
{
    LOG_EVENT(LOG_LEVEL_ERROR, "loop.library", "the event library gave up: the process ends here",
              log_integer("code", code));
    abort();
}

void loop_library_init(void)
{
    event_set_log_callback(on_message);
    event_set_fatal_callback(on_fatal);
}
