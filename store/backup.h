/*
 * backup.h - a copy of the ledger that a thread of its own writes while all goes on; one at a time.
 *
 *     DO_BACKUP --> backup_start() --> [backup] env_copy() --> the queue, as POSTING_BACKUP --> backup_note()
 *
 * Threads: [ledger], but for the copying.
 */
#ifndef SINKONCE_STORE_BACKUP_H
#define SINKONCE_STORE_BACKUP_H

#include "env.h"
#include "machine.h"
#include "queue.h"

/* All zero but for the first two. */
struct backup {
    const struct env *env;     /* borrowed */
    struct queue *queue;       /* borrowed */
    struct question *question; /* lent to the thread; NULL: none runs, or it has been joined */
    pthread_t thread;
};

/* True: QUESTION is lent, and comes back through the queue.  False: it is answered as it stands. */
MUST_CHECK bool backup_start(struct backup *backup, struct question *question);
/* Wait for the thread, if there is one: the library's environment is not closed, and the question not given back, under
 * its feet. */
void backup_join(struct backup *backup);
/* An event that says what became of a backup that has come back. */
void backup_note(const struct question *question, struct machine *machine);

#endif
