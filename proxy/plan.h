/*
 * plan.h - which bytes of a request go to the target.
 *
 * A decider: the identified records, the ledger's verdicts and the settings in, slices of the original body out.
 */
#ifndef SINKONCE_PLAN_H
#define SINKONCE_PLAN_H

#include "identify.h"
#include "store.h"

struct plan {
    struct slice *parts;     /* owned array: the body to send, in order; slices of the request's body, of its decoded
                                form, or the one of PACKED */
    size_t part_count;
    size_t body_bytes;       /* their sum */
    bool is_rewritten;       /* differs from what came */
    size_t site_count;       /* how many elements are sent */
    char *packed;            /* owned: the cut body in the request's own coding; NULL: not needed */
};

/* Does this element go to the target?  VERDICTS NULL: all go but repeats.  The repeats of an uncuttable request go with
 * it; its opaque element goes when one of its records does. */
bool plan_site_is_sent(const struct identified *identified, const enum verdict verdicts[], size_t site);

/* How elements are cut: of arrays, envelopes and separated lists with the gap in front of the next one that stays, so
 * that one comma or separator stands between any two; of lines and values end to end with the line end behind it; of a
 * bulk request the whole action.  No other byte changes.
 *
 * Build the body that holds the elements that are sent, with the coordinate fields cut when IS_STRIPPED.  Nothing cut:
 * the original bytes, compressed or not, go on untouched.  An uncuttable request is never cut: the caller asks only when
 * all goes or nothing.  False: no memory.  RET must be deinitialised in both cases. */
MUST_CHECK bool plan_build(const struct request *request, const struct identified *identified,
                           const enum verdict verdicts[], bool is_stripped, struct plan *ret);
/* The body that holds one element alone: of a JSON array or a separated list the bare element, of lines the line, of an
 * envelope the envelope around it, of a bulk request the action. */
MUST_CHECK bool plan_build_site(const struct request *request, const struct identified *identified, size_t site,
                                bool is_stripped, struct plan *ret);
void plan_deinit(struct plan *plan);

#endif
