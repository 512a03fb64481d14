/*
 * exchange_state.h - one request on its way, as exchange.c, answer.c and account.c see it.
 *
 *   NEW --> CLAIMING --> FORWARDING --> SETTLING --> DONE
 *    |         |              |                       ^
 *    |         +- applied, in flight, in doubt, full -+
 *    +---------+--- unkeyed: no claim, no settling ---+
 *
 *   state       left by                 what is true meanwhile
 *   NEW         exchange_on_request     nothing is in the ledger
 *   CLAIMING    exchange_on_claimed     our claim is lent to the ledger; nothing has been sent
 *   FORWARDING  exchange_on_outcome     the claim is on disk; a crash now leaves it in doubt
 *   SETTLING    exchange_on_settled     the outcome is known here and lent to the ledger
 *   DONE        -                       the connector has been answered, if it is still there
 *
 * A connector that leaves is no state: conn turns NULL and the exchange runs on, because the target may have the
 * write.  Only exchange_move() assigns the state.
 */
#ifndef SINKONCE_EXCHANGE_STATE_H
#define SINKONCE_EXCHANGE_STATE_H

#include "loop.h"
#include "pass.h"
#include "plan.h"
#include "reply.h"

#define EXCHANGE_STATES(X) X(NEW) X(CLAIMING) X(FORWARDING) X(SETTLING) X(DONE)

enum exchange_state {
#define X(name) EX_##name,
    EXCHANGE_STATES(X)
#undef X
        EX_STATES
};

struct exchange {
    struct loop *loop;       /* borrowed */
    struct conn *conn;       /* borrowed; NULL once the connector has left */
    struct request *request; /* owned */
    enum exchange_state state;
    enum finish finish;
    enum dialect dialect;
    bool is_keyed;                /* holds records, and the mode looks at them */
    struct identified identified; /* owned parts; empty when not keyed */
    enum verdict *verdicts;       /* owned: a cell for each record */
    enum outcome *outcomes; /* owned: a cell for each record, true for the NEW ones once FORWARDING is left */
    struct claim claim;     /* lent to the ledger while CLAIMING */
    struct settlement settlement; /* lent to the ledger while SETTLING */
    struct plan plan;             /* owned parts: the body that is sent */
    struct pass pass;             /* the fields that are sent */
    struct flight flight;         /* lent to upstream while FORWARDING */
    uint64_t retries_left;        /* connect retries */
    uint64_t target_ns;           /* time spent with the target, all attempts */
    int answered_status;          /* 0: nobody was there to be answered */
    struct exchange *next_spare;
};

/* answer.c - decides the end and gives the answer */
enum finish answer_finish_of(const struct exchange *ex,
                             enum outcome outcome);               /* after the target has answered */
enum finish answer_finish_of_verdicts(const struct exchange *ex); /* NONE: go on and send */
void answer_send(struct exchange *ex);

/* account.c - counters and logs, once per exchange */
void account_finish(const struct exchange *ex);
void account_refused(enum finish why);

#endif
