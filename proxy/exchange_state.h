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

#include "batch_answer.h"
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

struct parts;
struct ack_poll;

struct exchange {
    struct loop *loop;               /* borrowed */
    struct credentials *credentials; /* held: those of the moment when it began */
    struct conn *conn;               /* borrowed; NULL once the connector has left */
    struct request *request;         /* owned */
    enum exchange_state state;
    enum mode mode; /* as it was when the request came: a change is for those that follow */
    enum finish finish;
    enum finish given_up; /* why the claim is given back with nothing sent; NONE: it is not */
    enum dialect dialect;
    bool is_keyed;                /* holds records, and the mode looks at them */
    struct identified identified; /* owned parts; empty when not keyed */
    enum batch_dialect batch;     /* how the target answers several records */
    bool *sent;                   /* owned: a cell for each element: does it go to the target? */
    bool is_cut;                  /* some do not */
    enum verdict *verdicts;       /* owned: a cell for each record */
    enum outcome *outcomes; /* owned: a cell for each record, true for the NEW ones once FORWARDING is left */
    struct slice *contexts; /* owned: what probes must know of each record; NULL: nothing.  Lent with the claim */
    struct claim claim;     /* lent to the ledger while CLAIMING */
    struct settlement settlement; /* lent to the ledger while SETTLING */
    struct parts *parts;          /* owned: when each element goes alone */
    struct ack_poll *poll;        /* owned: when the request asks for acknowledgements */
    char *answer_opened;          /* owned: behind answer, when the target compressed it */
    struct slice answer;          /* the target's body without content coding */
    bool has_ack_id;              /* the target will acknowledge later */
    int64_t ack_id;
    char *made_body;       /* owned: an answer put together anew */
    struct plan plan;      /* owned parts: the body that is sent */
    struct pass pass;      /* the fields that are sent; exchange_put() relies on what stands before and behind it */
    struct flight flight;  /* lent to upstream while FORWARDING */
    uint64_t retries_left; /* connect retries */
    uint64_t target_ns;    /* time spent with the target, all attempts */
    int answered_status;   /* 0: nobody was there to be answered */
    struct exchange *next_spare;
};

/* exchange.c - for split.c and ack_poll.c */
void exchange_move(struct exchange *ex, enum exchange_state next);
void exchange_finish(struct exchange *ex, enum finish finish);
void exchange_on_split(struct exchange *ex); /* all parts have ended and are settled */
enum doubt_cause doubt_cause_of(const struct flight *flight);
/* Why it is a doubt, for the operator: the flight's own words, or what its 2xx is worth. */
const char *doubt_words_of(const struct flight *flight);
/* The answer's body as it can be read goes into ANSWER.  One that cannot be opened proves nothing: it is empty then. */
void exchange_answer_open(struct exchange *ex);
/* Hand FLIGHT, which holds the results of an earlier attempt or nothing, to the target client. */
void exchange_flight_begin(struct flight *flight, const struct exchange *ex, const struct plan *plan,
                           const struct pass *pass, void (*done)(struct flight *flight));

/* split.c - each element of a batch in a request of its own */
MUST_CHECK bool split_start(struct exchange *ex); /* false: no memory, nothing was sent */
void split_free(struct parts *parts);             /* NULL is fine */
/* The flight whose failure is told: the first of the request that failed with an answer, else the first that failed;
 * NULL: none did.  Its answer is the only one that is kept. */
struct flight *split_flight(const struct exchange *ex);
bool split_is_whole(const struct exchange *ex);     /* each part was sent, and applied */
bool split_is_unsettled(const struct exchange *ex); /* a result is not on disk */

/* ack_poll.c - acknowledgements of Splunk's Event Collector */
bool ack_poll_is(const struct exchange *ex);
void ack_poll_begin(struct exchange *ex);
void ack_poll_free(struct ack_poll *poll); /* NULL is fine */
/* False: the target's own answer goes on. */
bool ack_poll_answer(struct exchange *ex, struct reply_room *room);
/* Keep the claim open until the target acknowledges.  False: it must be settled now. */
MUST_CHECK bool ack_claim_keep(struct exchange *ex);

/* answer.c - decides the end and gives the answer */
enum finish answer_finish_of(const struct exchange *ex);          /* after the target has answered */
enum finish answer_finish_of_verdicts(const struct exchange *ex); /* NONE: go on and send */
/* The flight whose result counts, that of a part when the request was split; with nothing sent it is all zero. */
const struct flight *answer_flight(const struct exchange *ex);
/* How many records are the reason for the end; the first few of them go into RET_NAMED, which has NAMED_MAX cells. */
size_t answer_reasons(const struct exchange *ex, const struct record *ret_named[], size_t named_max);
void answer_send(struct exchange *ex);

/* account.c - counters and logs, once per exchange */
void account_finish(const struct exchange *ex);
void account_refused(enum finish why);

#endif
