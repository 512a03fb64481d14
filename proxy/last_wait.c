/*
 * last_wait.c - see last_wait.h.
 */
#include "last_wait.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

enum { TELL_MS = 500, LEAST_MS = 1000 };

/* False: it is not over at UNTIL_NS. */
static bool is_over_by(const struct last_wait *wait, uint64_t until_ns)
{
    struct pollfd end = { .fd = wait->end_fd, .events = POLLIN };
    for (;;) {
        uint64_t now_ns = clock_monotonic_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0;
        if (poll(&end, 1, left_ms) > 0)
            return true;
        if (left_ms == 0)
            return false;
    }
}

static void *watch(void *argument)
{
    const struct last_wait *wait = argument;
    uint64_t now_ns = clock_monotonic_ns();
    if (is_over_by(wait, now_ns + (uint64_t)TELL_MS * NS_PER_MS))
        return NULL;
    LOG_EVENT(LOG_LEVEL_WARN, "drain.waiting", "stopping: the ledger waits for its disk",
              log_integer("left_ms", (int64_t)((wait->until_ns - now_ns) / NS_PER_MS) - TELL_MS));
    if (is_over_by(wait, wait->until_ns))
        return NULL;
    LOG_EVENT(LOG_LEVEL_WARN, "drain.timeout",
              "time is up: stopped at once; results that the ledger's disk has not taken will be in doubt at "
              "the next start",
              log_integer("code", wait->code));
    _exit(wait->code);
}

void last_wait_begin(struct last_wait *wait, uint64_t until_ns, int code)
{
    uint64_t least_ns = clock_monotonic_ns() + (uint64_t)LEAST_MS * NS_PER_MS;
    wait->until_ns = until_ns > least_ns ? until_ns : least_ns;
    wait->code = code;
    wait->end_fd = eventfd(0, EFD_CLOEXEC);
    if (wait->end_fd >= 0 && pthread_create(&wait->thread, NULL, watch, wait) != 0) {
        close(wait->end_fd);
        wait->end_fd = -1;
    }
}

void last_wait_end(struct last_wait *wait)
{
    if (wait->end_fd < 0)
        return;
    (void)eventfd_write(wait->end_fd, 1);
    pthread_join(wait->thread, NULL);
    close(wait->end_fd);
}
