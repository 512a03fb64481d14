/*
 * failpoint.c - what happens at the named points of a test build.
 *
 *   FAILPOINT=name:action[@N],...   the Nth time (default the first, @0 each time) that the point is reached:
 *     abort     the process is killed as by SIGKILL: nothing is flushed, closed or told
 *     sleep=MS  the thread stands still so long
 *     error     the point behaves as if it had failed
 */
#include "failpoint.h"

#ifdef SINKONCE_FAILPOINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POINTS_MAX = 8 };

/* The place of NAME in the list and its action; NULL: it is not there. */
static const char *action_of(const char *name, size_t *ret_place)
{
    size_t name_bytes = strlen(name);
    const char *order = getenv("FAILPOINT");
    for (*ret_place = 0; order != NULL && *ret_place < POINTS_MAX; (*ret_place)++) {
        if (strncmp(order, name, name_bytes) == 0 && order[name_bytes] == ':')
            return order + name_bytes + 1;
        order = strchr(order, ',');
        order = order == NULL ? NULL : order + 1;
    }
    return NULL;
}

static bool is_turn(const char *action, size_t place)
{
    static _Atomic long reached[POINTS_MAX];
    size_t action_bytes = strcspn(action, ",");
    const char *at = memchr(action, '@', action_bytes);
    long wanted = at == NULL ? 1 : atol(at + 1);
    long now = atomic_fetch_add(&reached[place], 1) + 1;
    return wanted == 0 || now == wanted;
}

static void stand_still(long ms)
{
    struct timespec left = { ms / 1000, (ms % 1000) * 1000000 };
    while (nanosleep(&left, &left) != 0)
        continue;
}

bool failpoint_hit(const char *name)
{
    size_t place = 0;
    const char *action = action_of(name, &place);
    if (action == NULL || !is_turn(action, place))
        return false;
    if (strncmp(action, "abort", 5) == 0)
        (void)raise(SIGKILL);
    if (strncmp(action, "sleep=", 6) == 0)
        stand_still(atol(action + 6));
    return strncmp(action, "error", 5) == 0;
}

#endif
