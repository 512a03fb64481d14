/*
 * company.c - how long a commit waits for company.
 */
#include "company.h"

/* What the last commit answered is on its way to the target, or to connectors that will send more: as many are waited
 * for, but no longer than its commit took.  A sleep that is shorter than the kernel's slack is none; a long one, which a
 * disk that hesitated once would ask for, is cut short. */
struct company company_wanted(uint64_t delay_ns, size_t served_count, uint64_t commit_ns)
{
    enum { WAIT_NS_MIN = 50000, WAIT_NS_MAX = 5000000 };
    if (delay_ns > 0)
        return (struct company){ SIZE_MAX, delay_ns };
    if (commit_ns < WAIT_NS_MIN)
        return (struct company){ 0, 0 };
    return (struct company){ served_count, commit_ns < WAIT_NS_MAX ? commit_ns : WAIT_NS_MAX };
}
