/*
 * queue.c - postings on their way to the ledger's thread.
 */
#include "queue.h"

#include <errno.h>
#include "clock.h"

void queue_init(struct queue *queue)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->is_complete, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->postings = (struct posting_list){ 0 };
    queue->count = queue->wanted_count = 0;
    queue->is_closing = false;
}

void queue_deinit(struct queue *queue)
{
    pthread_cond_destroy(&queue->is_complete);
    pthread_mutex_destroy(&queue->lock);
}

void queue_add(struct queue *queue, struct posting *posting)
{
    pthread_mutex_lock(&queue->lock);
    posting_list_add(&queue->postings, posting);
    bool is_awaited = ++queue->count == queue->wanted_count;
    pthread_mutex_unlock(&queue->lock);
    if (is_awaited)
        pthread_cond_signal(&queue->is_complete);
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_closing = true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_signal(&queue->is_complete);
}

/* Until WANTED_COUNT are there, the queue is closed, or it is UNTIL_NS.  The lock is held. */
static void sleep_until(struct queue *queue, size_t wanted_count, uint64_t until_ns)
{
    struct timespec until = { (time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S) };
    int error = 0;
    queue->wanted_count = wanted_count;
    while (queue->count < wanted_count && !queue->is_closing && error != ETIMEDOUT) {
        if (until_ns == UINT64_MAX)
            pthread_cond_wait(&queue->is_complete, &queue->lock);
        else
            error = pthread_cond_timedwait(&queue->is_complete, &queue->lock, &until);
    }
}

bool queue_take(struct queue *queue, uint64_t until_ns, struct company company,
                struct posting_list *ret_postings, size_t *ret_count)
{
    pthread_mutex_lock(&queue->lock);
    sleep_until(queue, 1, until_ns);
    if (queue->count > 0 && company.wait_ns > 0)
        sleep_until(queue, company.count, clock_monotonic_ns() + company.wait_ns);
    *ret_postings = queue->postings;
    *ret_count = queue->count;
    queue->postings = (struct posting_list){ 0 };
    queue->count = 0;
    bool is_over = queue->is_closing && *ret_count == 0;
    pthread_mutex_unlock(&queue->lock);
    return !is_over;
}
