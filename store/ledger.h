/*
 * ledger.h - the ledger's thread: all that waits in one transaction, one commit, then the answers.
 */
#ifndef SINKONCE_STORE_LEDGER_H
#define SINKONCE_STORE_LEDGER_H

#include "port.h"
#include "store.h"

struct ledger;

/* [main] Open the folder, recover, start the thread. */
MUST_CHECK enum store_open_status ledger_open(const struct store_options *options, struct ledger **ret_ledger,
                                              char why[], size_t why_bytes_max);
/* [main] Finish what was posted, end the thread, free all.  NULL is fine. */
void ledger_close(struct ledger *ledger);
void ledger_post(struct ledger *ledger, struct posting *posting);              /* [port] */
void ledger_figures(struct ledger *ledger, struct store_figures *ret_figures); /* [any] */
const atomic_bool *ledger_failing(const struct ledger *ledger);                /* [any] */
const char *ledger_id(const struct ledger *ledger);                            /* [any] */

#endif
