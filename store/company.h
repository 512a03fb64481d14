/*
 * company.h - how long a commit waits for company: a commit that serves more needs no more flushes.
 *
 * Pure.
 */
#ifndef SINKONCE_STORE_COMPANY_H
#define SINKONCE_STORE_COMPANY_H

#include <stddef.h>
#include <stdint.h>

struct company {
    size_t count;     /* postings: with so many in the queue nothing more is waited for */
    uint64_t wait_ns; /* at most; 0: the commit begins at once */
};

/*
 * DELAY_NS is the time that was set (SINKONCE_COMMIT_DELAY); it is always waited in full.  0: none was set, and the last
 * batch tells.  SERVED_COUNT is how many postings it held, COMMIT_NS what its commit took, 0 if it changed nothing.
 */
struct company company_wanted(uint64_t delay_ns, size_t served_count, uint64_t commit_ns);

#endif
