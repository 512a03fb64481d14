/*
 * failpoint.c - named places where a test may kill, delay or fail the program; empty in a build without them.
 */
#include "failpoint.h"

#ifdef SINKONCE_FAILPOINTS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The action of NAME, or NULL. */
static const char *action_of(const char *name)
{
    size_t name_bytes = strlen(name);
    const char *at = getenv("FAILPOINT");
    while (at != NULL) {
        if (strncmp(at, name, name_bytes) == 0 && at[name_bytes] == ':')
            return at + name_bytes + 1;
        at = strchr(at, ',');
        if (at != NULL)
            at++;
    }
    return NULL;
}

bool failpoint_hit(const char *name)
{
    const char *action = action_of(name);
    if (action == NULL)
        return false;
    if (strncmp(action, "abort", 5) == 0)
        raise(SIGKILL);
    if (strncmp(action, "sleep=", 6) == 0) {
        long sleep_ms = strtol(action + 6, NULL, 10);
        struct timespec span = { sleep_ms / 1000, sleep_ms % 1000 * 1000000 };
        nanosleep(&span, NULL);
    }
    return strncmp(action, "error", 5) == 0;
}
#endif
