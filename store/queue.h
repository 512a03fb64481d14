/*
 * queue.h - postings on their way to the ledger's thread, which sleeps here while it has nothing to do.
 *
 *     any thread                        the ledger's thread
 *     queue_add()    -------------->    queue_take(): sleeps until one is there, waits for its company, takes all
 *     queue_close()  -------------->    queue_take(): sleeps no more
 *
 * The lock is held for a few instructions.  Only the posting that makes the wanted number complete wakes the sleeper.
 */
#ifndef SINKONCE_STORE_QUEUE_H
#define SINKONCE_STORE_QUEUE_H

#include <pthread.h>
#include "company.h"
#include "port.h"

/* The caller's memory. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t is_complete;
    struct posting_list postings; /* guarded by lock, as is what follows */
    size_t count;
    size_t wanted_count; /* with so many the sleeper is woken */
    bool is_closing;
};

void queue_init(struct queue *queue);   /* [main] */
void queue_deinit(struct queue *queue); /* [main] once nothing is in it */

/* [any] POSTING is lent until it is handed back. */
void queue_add(struct queue *queue, struct posting *posting);
/* [any] The end is near: the sleeper wakes, and sleeps no more.  What is added may still be taken. */
void queue_close(struct queue *queue);

/*
 * [ledger] Sleep until something is there, but not beyond UNTIL_NS of the monotonic clock (UINT64_MAX: for ever); if
 * something is, wait for COMPANY; then take all.  RET_POSTINGS is in the order added, RET_COUNT its length; 0: it is
 * UNTIL_NS.  False: the queue is closed, and nothing is left in it.
 */
MUST_CHECK bool queue_take(struct queue *queue, uint64_t until_ns, struct company company,
                           struct posting_list *ret_postings, size_t *ret_count);

#endif
