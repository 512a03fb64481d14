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
    struct slice *parts;     /* owned array: the body to send, in order; slices of the request's body */
    size_t part_count;
    size_t body_bytes;       /* their sum */
    bool is_rewritten;       /* differs from what came */
};

/* Build the body that holds the records whose verdict is VERDICT_NEW (VERDICTS NULL: all of them), with the coordinate
 * fields cut when IS_STRIPPED.  False: no memory.  RET must be deinitialised in both cases. */
MUST_CHECK bool plan_build(const struct request *request, const struct identified *identified,
                           const enum verdict verdicts[], bool is_stripped, struct plan *ret);
void plan_deinit(struct plan *plan);

#endif
