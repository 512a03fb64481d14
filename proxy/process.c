/*
 * process.c - what the process needs of the system before it serves.
 */
#include "process.h"

#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "log.h"

/* Connections, target and files together may need more than the usual soft limit of 1,024. */
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            LOG_EVENT(LOG_LEVEL_WARN, "limit.hit", "the limit of file descriptors cannot be raised",
                      log_integer("soft", (int64_t)limit.rlim_cur));
    }
}

/* Before there is an event for it, SIGHUP would end the program: who renews certificates may send it at any time.  It
 * waits, and is obeyed once all is there; the threads that are started meanwhile leave it to this one. */
static void hangup_hold(bool is_held)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    (void)pthread_sigmask(is_held ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

/* Nothing is lost: before the listeners are there nothing has been promised, and what has been is on the disk. */
static void on_early_end(int number)
{
    (void)number;
    _exit(EX_OK);
}

/* Before there are events for them, process 1 of a container would never hear of SIGTERM and SIGINT
 * (pid_namespaces(7)), and a start may wait: for the ledger's folder, or for a slow disk. */
static void early_end_allow(void)
{
    const struct sigaction end = { .sa_handler = on_early_end };
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGINT, &end, NULL);
}

/* A large body's memory goes back to the system with it.  Left alone, glibc learns from the first one that is freed to
 * keep such blocks, and a sidecar stays as large as its busiest moment was.  What a wave of small requests takes, some
 * 50 KB each and most of it libcurl's buffers, stays: the next wave would have every page cleared anew. */
static void memory_tune(void)
{
    enum { LARGE_BYTES = 1024 * 1024, WAVE_BYTES = 4 * 1024 * 1024 };
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, WAVE_BYTES);
#endif
}

void process_prepare(void)
{
    signal(SIGPIPE, SIG_IGN);
    early_end_allow();
    descriptors_raise();
    memory_tune();
    hangup_hold(true);
}

void process_hangup_hold(void)
{
    hangup_hold(true);
}

void process_hangup_release(void)
{
    hangup_hold(false);
}
