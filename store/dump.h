/*
 * dump.h - a ledger as lines (dump.c), and lines as a ledger (restore.c).
 *
 *     {"kind":"ledger", ...}        first: version of these lines, id, created, boots, scope, counters
 *     {"kind":"partition", ...}     then, for each partition by name, and after it what it holds:
 *     {"kind":"applied", ...}           exact intervals, and "folded" ground, ascending
 *     {"kind":"open", ...}              doubts and intents, each with its "context" lines
 *     {"kind":"marks", ...}             blocks of identity marks, then "sample" lines
 *     {"kind":"conflict", ...}          when one waits for a decision
 *     {"kind":"end", ...}           last: how many there were of what, so that a file cut short is noticed
 *
 * Replies, events, replay windows and ended histories are not written: a ledger is right without them.  Both ends are
 * pure, and the same ledger always gives the same lines.
 */
#ifndef SINKONCE_STORE_DUMP_H
#define SINKONCE_STORE_DUMP_H

#include "line.h"
#include "machine.h"

enum { DUMP_VERSION = 1 };

struct dump_counts {
    uint64_t partitions, intervals, applied, opens, contexts, marks, samples, conflicts;
};

/* Inside a batch of MACHINE_READ.  False: LINE wanted no more, or the rows cannot be read. */
MUST_CHECK bool dump(struct machine *machine, const struct store_row *row, store_line_fn *line,
                     void *context);

struct restore;
/* Into MACHINE, which is new, with a window that folds nothing.  SCOPE: that of the settings.  NULL: no memory. */
MUST_CHECK struct restore *restore_new(struct machine *machine, const char *scope);
void restore_free(struct restore *restore);
/* Inside a batch: the next line.  False: it is refused, and restore_why() says why. */
MUST_CHECK bool restore_line(struct restore *restore, struct slice line);
/* Was the last line that of an end, as announced? */
MUST_CHECK bool restore_is_whole(const struct restore *restore);
const char *restore_why(const struct restore *restore);

#endif
