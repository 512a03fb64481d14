/*
 * figures.h - what the ledger tells of itself: its thread writes it down, and everybody may read it at any time.
 */
#ifndef SINKONCE_STORE_FIGURES_H
#define SINKONCE_STORE_FIGURES_H

#include <pthread.h>
#include "machine.h"

/* The caller's memory. */
struct figures {
    pthread_mutex_t lock;
    struct store_figures shown;        /* guarded by lock */
    atomic_bool is_failing;            /* what it shows of that, without the lock */
    char failure[STORE_FAILURE_BYTES]; /* [ledger] of the last failed commit, until writes are taken again */
    uint64_t refusing_ms;              /* [ledger] full or failing since, on the mono_ms clock; 0: neither */
};

void figures_init(struct figures *figures);   /* [main] all zero */
void figures_deinit(struct figures *figures); /* [main] */
/* [main] What stays as it is from the opening on. */
void figures_open(struct figures *figures, const struct store_options *options,
                  const struct store_row *store);

void figures_get(struct figures *figures, struct store_figures *ret_figures); /* [any] a whole copy */

/* [ledger] A commit failed. */
void figures_count_error(struct figures *figures);
/* [ledger] New claims are refused for want of room; IS_DISK_FULL: the disk's, and not that of the size limit. */
void figures_set_full(struct figures *figures, bool is_full, bool is_disk_full);
/*
 * [ledger] After a commit, or when figures moved without one: take over what MACHINE knows.  USED_BYTES 0: as before;
 * COMMIT_NS is what the commit took, 0: there was none.  IS_FAILING: nothing is answered.  Writes that are refused from
 * now on, or taken again, are told with their reason: figures->failure.
 */
void figures_publish(struct figures *figures, struct machine *machine, bool is_failing, uint64_t used_bytes,
                     uint64_t commit_ns);

#endif
