/*
 * prober_context.h - what probes must know of the records of one request, for its claim.
 *
 * A decider.  Made before the claim, kept by the ledger with each intent until it is settled.
 */
#ifndef SINKONCE_PROBER_CONTEXT_H
#define SINKONCE_PROBER_CONTEXT_H

#include "identify.h"

/* One slice for each record; all in one block, owned by the caller, freed with free().  NULL: no memory. */
MUST_CHECK struct slice *probe_contexts_new(const struct probe_template *url,
                                            const struct identified *identified);

#endif
