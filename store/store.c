/*
 * store.c - the contract of include/store.h: ports, and postings on their way to the ledger's thread and back.
 */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "ledger.h"
#include "port.h"

struct store {
    struct ledger *ledger; /* owned */
};

struct store_port {
    struct store *store; /* borrowed */
    int fd;              /* owned: an eventfd */
    pthread_mutex_t lock;
    struct posting_list finished; /* guarded by lock */
    size_t posted_count;          /* the port's thread alone */
};

enum store_open_status store_open(const struct store_options *options, struct store **ret_store,
                                  char ret_why[], size_t why_bytes_max)
{
    struct store *store = calloc(1, sizeof *store);
    ret_why[0] = '\0';
    *ret_store = NULL;
    if (store == NULL) {
        strncat(ret_why, "no memory", why_bytes_max - 1);
        return STORE_UNREADABLE;
    }
    enum store_open_status status = ledger_open(options, &store->ledger, ret_why, why_bytes_max);
    if (status == STORE_OPENED)
        *ret_store = store;
    else
        free(store);
    return status;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    ledger_close(store->ledger);
    free(store);
}

/* ---- ports ------------------------------------------------------------------------------------------------------ */

struct store_port *store_port_new(struct store *store)
{
    struct store_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return NULL;
    port->store = store;
    port->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (port->fd < 0) {
        free(port);
        return NULL;
    }
    pthread_mutex_init(&port->lock, NULL);
    return port;
}

void store_port_free(struct store_port *port)
{
    if (port == NULL)
        return;
    assert(port->posted_count == 0);
    pthread_mutex_lock(&port->lock); /* the ledger's thread may still be about to leave it */
    pthread_mutex_unlock(&port->lock);
    pthread_mutex_destroy(&port->lock);
    close(port->fd);
    free(port);
}

int store_port_fd(const struct store_port *port)
{
    return port->fd;
}

/* The port's thread may free the port as soon as it has the last posting: all is done under the lock. */
static void hand_to_port(struct store_port *port, struct posting_list *list)
{
    pthread_mutex_lock(&port->lock);
    bool is_silent = port->finished.first == NULL;
    struct posting *posting;
    while (list->first != NULL && list->first->port == port) {
        posting = posting_list_take(list);
        posting_list_add(&port->finished, posting);
    }
    uint64_t one = 1;
    if (is_silent && write(port->fd, &one, sizeof one) < 0)
        assert(errno == EAGAIN); /* a full counter is readable as well */
    pthread_mutex_unlock(&port->lock);
}

/* Sorted into one list per port first would save a lock; neighbours mostly have the same port as it is. */
void port_hand_back(struct posting_list *list)
{
    while (list->first != NULL)
        hand_to_port(list->first->port, list);
}

static void finish(struct posting *posting)
{
    switch ((enum posting_kind)posting->kind) {
    case POSTING_CLAIM:
        claim_of(posting)->done(claim_of(posting), posting->status);
        break;
    case POSTING_SETTLEMENT:
        settlement_of(posting)->done(settlement_of(posting), posting->status);
        break;
    case POSTING_QUESTION:
    case POSTING_BACKUP:
        question_of(posting)->done(question_of(posting), posting->status);
        break;
    }
}

void store_port_deliver(struct store_port *port)
{
    uint64_t count;
    struct posting *posting;
    pthread_mutex_lock(&port->lock);
    if (read(port->fd, &count, sizeof count) < 0)
        assert(errno == EAGAIN);
    struct posting_list finished = port->finished;
    port->finished = (struct posting_list){ 0 };
    pthread_mutex_unlock(&port->lock);
    while ((posting = posting_list_take(&finished)) != NULL) {
        port->posted_count--;
        finish(posting); /* its memory is the caller's again */
    }
}

/* ---- postings --------------------------------------------------------------------------------------------------- */

static void post(struct store_port *port, struct posting *posting, enum posting_kind kind)
{
    posting->port = port;
    posting->kind = (int)kind;
    posting->status = STORE_OK;
    port->posted_count++;
    ledger_post(port->store->ledger, posting);
}

void store_claim(struct store_port *port, struct claim *claim)
{
    assert(claim->record_count > 0 && claim->done != NULL);
    claim->reply_bytes = NULL;
    claim->waiter = NULL;
    claim->ret_claim_id = 0;
    claim->ret_new_count = claim->ret_retried_count = claim->ret_replayed_count = 0;
    claim->ret_reply = (struct stored_reply){ 0 };
    post(port, &claim->posting, POSTING_CLAIM);
}

void store_claim_deinit(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
    claim->ret_reply = (struct stored_reply){ 0 };
}

void store_settle(struct store_port *port, struct settlement *settlement)
{
    assert(settlement->record_count > 0 && settlement->done != NULL);
    post(port, &settlement->posting, POSTING_SETTLEMENT);
}

void store_ask(struct store_port *port, struct question *question)
{
    assert(question->done != NULL);
    question->ret.any = NULL;
    question->ret_row_count = 0;
    question->ret_count = question->ret_done_count = 0;
    question->ret_status = QUESTION_OK;
    question->steps = NULL;
    post(port, &question->posting, POSTING_QUESTION);
}

void store_question_deinit(struct question *question)
{
    free(question->ret.any);
    question->ret.any = NULL;
    question->ret_row_count = 0;
}

/* ---- figures and names ------------------------------------------------------------------------------------------ */

void store_figures_get(const struct store *store, struct store_figures *ret_figures)
{
    ledger_figures(store->ledger, ret_figures);
}

const atomic_bool *store_failing(const struct store *store)
{
    return ledger_failing(store->ledger);
}

const char *store_id(const struct store *store)
{
    return ledger_id(store->ledger);
}
