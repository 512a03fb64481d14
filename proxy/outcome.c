/*
 * outcome.c - the two rules that decide about doubt.  No I/O, no clock.
 */
#include "outcome.h"

enum attempt_class attempt_classify(const struct attempt *attempt)
{
    if (attempt->prereq_count == 0 || attempt->is_first_refused)
        return ATTEMPT_NOT_SENT;
    /* A count above one says that the library took the first send for lost: what the answer belongs to is open. */
    if (attempt->prereq_count == 1 && attempt->is_head_complete && attempt->is_framing_consistent &&
        !attempt->is_upgrade)
        return ATTEMPT_KNOWN;
    return ATTEMPT_UNKNOWN;
}

enum outcome outcome_of(enum attempt_class attempt, int status, const struct settings *settings)
{
    if (attempt == ATTEMPT_NOT_SENT)
        return OUTCOME_NOT_SENT;
    if (attempt == ATTEMPT_UNKNOWN)
        return OUTCOME_UNKNOWN;
    /* A status in both sets: sending it again is the worse mistake. */
    if (status_set_has(&settings->applied_status, status))
        return OUTCOME_APPLIED;
    if (status_set_has(&settings->not_applied_status, status))
        return OUTCOME_NOT_APPLIED;
    return OUTCOME_UNKNOWN;
}
