/*
 * outcome.h - what an attempt at the target proves about the record.
 *
 * A decider.  The library's result code is for logs and metrics; it never decides alone.
 */
#ifndef SINKONCE_OUTCOME_H
#define SINKONCE_OUTCOME_H

#include <stdbool.h>
#include "settings.h"
#include "store.h"

/* What was observed of one attempt. */
enum attempt_class {
    ATTEMPT_NOT_SENT, /* no request byte can have left */
    ATTEMPT_KNOWN,    /* a complete final response head with consistent framing arrived, after exactly one send */
    ATTEMPT_UNKNOWN,  /* all else */
};

struct attempt {
    unsigned prereq_count;      /* how often the library was about to send */
    bool is_first_refused;      /* we stopped it at the first */
    bool is_head_complete;      /* the empty line of a final (not 1xx) head was seen */
    bool is_framing_consistent; /* http1_response() accepted that head */
    bool is_upgrade;            /* 101 */
};

enum attempt_class attempt_classify(const struct attempt *attempt);

/* The record's outcome by the two status settings; STATUS counts only for ATTEMPT_KNOWN. */
enum outcome outcome_of(enum attempt_class attempt, int status, const struct settings *settings);

#endif
