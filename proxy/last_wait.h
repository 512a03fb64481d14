/*
 * last_wait.h - the last wait of a program that ends: for the ledger, which waits for its disk.
 *
 * No loop turns any more then, and a sync cannot be called off.  A thread of its own says in the log what is waited for and,
 * when the time is up, ends the process as drain.h does while requests are in flight.  What was answered was on the disk
 * before, so that nothing is lost which a kill would not lose: results that wait for the disk are in doubt at the next start.
 */
#ifndef SINKONCE_LAST_WAIT_H
#define SINKONCE_LAST_WAIT_H

#include <pthread.h>
#include <stdint.h>

/* The caller's memory, until last_wait_end(). */
struct last_wait {
    uint64_t until_ns;
    int code;
    int end_fd; /* readable once it is over; -1: nobody watches */
    pthread_t thread;
};

/* [main] The time is up at UNTIL_NS of the monotonic clock, but not at once: a disk that works has a second.  Then the
 * process exits with CODE.  Without memory or descriptors the wait takes as long as it takes. */
void last_wait_begin(struct last_wait *wait, uint64_t until_ns, int code);
void last_wait_end(struct last_wait *wait); /* [main] */

#endif
