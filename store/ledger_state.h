/*
 * ledger_state.h - the ledger in memory, and what its own files want of each other.
 *
 *     ledger.c         opening and closing; the thread, and when it goes on
 *     ledger_batch.c   one batch with its commit, and what is done when that fails
 *
 *     health        left by                          what is answered meanwhile
 *     GOOD          a commit that fails              everything
 *     FULL          a commit of ours that succeeds   what is applied in the committed ledger; new claims STORE_FULL
 *     FAILING       a commit of ours that succeeds   nothing: STORE_FAILED
 */
#ifndef SINKONCE_STORE_LEDGER_STATE_H
#define SINKONCE_STORE_LEDGER_STATE_H

#include "backup.h"
#include "clock.h"
#include "env.h"
#include "figures.h"
#include "machine.h"
#include "owed.h"
#include "queue.h"

enum health { HEALTH_GOOD, HEALTH_FULL, HEALTH_FAILING };

struct ledger {
    pthread_t thread;
    struct queue queue;     /* any thread adds */
    struct figures figures; /* any thread reads */

    /* the ledger's thread alone */
    struct env env;
    struct machine *machine; /* owned */
    bool is_loaded;          /* the machine knows what is on disk */
    uint64_t commit_delay_ns;
    size_t batch_count; /* postings of the last batch */
    uint64_t commit_ns; /* what its commit took; 0: it changed nothing */
    uint64_t boot;
    enum health health;
    bool is_disk_full;            /* what the last failed commit met */
    uint64_t retry_ms;            /* not before then is a commit of our own tried, on the mono_ms clock */
    struct posting_list answered; /* of the batch that runs: out of the machine, not yet handed back */
    struct owed owed;             /* after failures */
    struct backup backup;

    struct store_row row;
};

static inline struct machine_time time_now(void)
{
    return (struct machine_time){ clock_unix_ms(), clock_monotonic_ns() / NS_PER_MS };
}

/* ---- ledger_batch.c: [ledger], or [main] before its thread runs -------------------------------------------------- */

/* All of POSTINGS is answered with what is true on disk, or refused, or waits: in the machine, or in the queue again. */
void ledger_run_batch(struct ledger *ledger, struct posting_list postings);
/* The machine's way to answer a claim; SHELL is the ledger. */
void ledger_answer_claim(void *shell, struct claim *claim, enum store_status status);
/* Make durable what the machine has written to ROWS.  Not ROWS_OK: nothing in memory counts any more. */
MUST_CHECK enum rows_status ledger_commit(struct ledger *ledger, struct rows *rows);
/* Something is to be written besides what is posted: outcomes, releases, or a proof that the disk works again. */
bool ledger_owes(const struct ledger *ledger);
/* One commit of our own, with all that is owed in it; when it fails, it is owed on. */
void ledger_repair(struct ledger *ledger);

#endif
