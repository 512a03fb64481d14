/*
 * serve_ledger.h - the ledger as the settings want it opened, and what the log tells of it.
 *
 * Threads: [main] where nothing else is said.
 */
#ifndef SINKONCE_SERVE_LEDGER_H
#define SINKONCE_SERVE_LEDGER_H

#include "settings.h"
#include "store.h"

/* As the settings want it, without a wait for its lock; strings are borrowed from them. */
struct store_options serve_ledger_options(const struct settings *settings);

/* Open it, in a folder that is made if its parent is there.  EX_OK; else EX_TEMPFAIL (another process has it) or EX_IOERR,
 * and *RET_STORE is NULL.  Each is logged. */
MUST_CHECK int serve_ledger_open(const struct settings *settings, struct store **ret_store);

/* [any] How FOLDER forgets by itself, as the end of a sentence about it; NULL: it does not, as far as can be told.  Static.
 * It asks the file system, which may hang: once, at the start. */
const char *serve_ledger_fades(const char *folder);

/* What the log has been told; all zero at first. */
struct ledger_told {
    uint64_t refusal_count; /* as many times writes were refused and taken again */
    uint64_t again_ns;      /* not before then is it told again */
};
/* To be called a few times a second. */
void serve_ledger_tell(const struct store *store, struct ledger_told *told, uint64_t now_ns);

#endif
