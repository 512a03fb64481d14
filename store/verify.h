/*
 * verify.h - does a ledger hold together?
 */
#ifndef SINKONCE_STORE_VERIFY_H
#define SINKONCE_STORE_VERIFY_H

#include "machine.h"

/* Inside a batch of MACHINE_READ of a machine that could be loaded: read every row, and check what must hold between
 * them.  A line for each finding, at most a thousand; returns how many there were. */
uint64_t verify(struct machine *machine, store_line_fn *line, void *context);
/* One line per figure: "name value". */
void verify_stat(struct machine *machine, const struct store_row *row, store_line_fn *line, void *context);

#endif
