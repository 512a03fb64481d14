/*
 * port.h - how finished postings get back to the thread that posted them.
 */
#ifndef SINKONCE_STORE_PORT_H
#define SINKONCE_STORE_PORT_H

#include "store.h"

/* BACKUP: a question whose file is written; only its event is missing. */
enum posting_kind { POSTING_CLAIM, POSTING_SETTLEMENT, POSTING_QUESTION, POSTING_BACKUP };

/* Postings in the order posted; linked through posting.next. */
struct posting_list {
    struct posting *first, *last; /* lent to the store */
};

static inline void posting_list_add(struct posting_list *list, struct posting *posting)
{
    posting->next = NULL;
    if (list->last != NULL)
        list->last->next = posting;
    else
        list->first = posting;
    list->last = posting;
}

/* NULL when it is empty. */
static inline struct posting *posting_list_take(struct posting_list *list)
{
    struct posting *posting = list->first;
    if (posting != NULL)
        list->first = posting->next;
    if (list->first == NULL)
        list->last = NULL;
    return posting;
}

static inline struct claim *claim_of(struct posting *posting)
{
    return (struct claim *)(void *)((char *)posting - offsetof(struct claim, posting));
}

static inline struct settlement *settlement_of(struct posting *posting)
{
    return (struct settlement *)(void *)((char *)posting - offsetof(struct settlement, posting));
}

static inline struct question *question_of(struct posting *posting)
{
    return (struct question *)(void *)((char *)posting - offsetof(struct question, posting));
}

/* [ledger] All of LIST goes back, with at most one wake-up for each port. */
void port_hand_back(struct posting_list *list);

#endif
