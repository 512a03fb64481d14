/*
 * settle.h - how an open range ends; for claims.c, questions.c and machine.c beside settle.c itself.
 */
#ifndef SINKONCE_STORE_SETTLE_H
#define SINKONCE_STORE_SETTLE_H

#include "machine_state.h"

/* RANGE is applied: it leaves the open ones, and its marks are kept.  RANGE is gone afterwards. */
void settle_applied(struct machine *machine, struct open_range *range);

#endif
