/*
 * acks.h - batches that Splunk's Event Collector has taken but not yet acknowledged, and ids for acknowledgements of our
 * own.
 *
 * With acknowledgement on, a 2xx with an "ackId" only says that the batch was received.  Its claim stays open until the
 * connector polls for that id and the target answers true; then the records are APPLIED.  An id that nobody polls any
 * more expires, and its records are UNKNOWN.
 *
 *     answer with "ackId"  acks_open()          the claim's records, verdicts and id move into an entry
 *     poll                 acks_is_own()        ids of our own are true; the others go to the target
 *     its answer           acks_take_done()     entries whose id is true: settle as OUTCOME_APPLIED
 *     timer                acks_take_expired()  entries that waited too long: settle as OUTCOME_UNKNOWN
 *     end of the process   acks_free()          nothing: the claims stay open on disk, and the next start finds doubts
 *
 * A connector must not be told "true" before the settlement is on disk: hold the answer to its poll until done().
 * While an entry is open its records are in flight: a resent batch waits and then gets 503.
 *
 * One registry serves all loops.  No I/O, no clock: every time is an argument, in monotonic nanoseconds.
 * Threads: acks_new() and acks_free() [main]; all else [any], guarded by one mutex that is held for a few lookups.
 */
#ifndef SINKONCE_ACKS_H
#define SINKONCE_ACKS_H

#include "request.h"
#include "store.h"

struct acks;

/* One batch that waits.  Whoever has taken it owns it, settles it and frees it with ack_free(); records, verdicts and
 * outcomes live as long, so that they can be lent to the ledger with SETTLEMENT, which the registry never touches. */
struct ack {
    uint64_t claim_id;
    const struct record *records; /* owned; topics point into the same memory */
    const enum verdict *verdicts; /* owned */
    enum outcome *outcomes;       /* owned: a cell for each record, the taker's to fill */
    size_t record_count;
    struct slice channel; /* owned */
    int64_t ack_id;       /* the target's */
    uint64_t opened_ns;
    struct settlement settlement;        /* room for the taker */
    void *context;                       /* the taker's */
    struct ack *next;                    /* of the list that was taken; NULL: the last */
    struct ack *chained, *older, *newer; /* the registry's */
};

/*
 * [main] At most OPEN_MAX entries at a time, which expire TIMEOUT_NS after they were opened.  RANDOM is any 64 random
 * bits, other ones for each process: ids of our own start at 2^62 plus what they say, far above those that Splunk
 * counts, and away from those of an earlier process.  NULL: no memory.
 */
MUST_CHECK struct acks *acks_new(size_t open_max, uint64_t timeout_ns, uint64_t random);
void acks_free(struct acks *acks); /* [main] frees what is still open, unsettled; NULL is fine */

/* The channel whose ids a request means: field X-Splunk-Request-Channel, else parameter "channel"; empty: none. */
struct slice acks_channel_of(const struct request *request);

enum acks_status {
    ACKS_OPENED,
    ACKS_FULL, /* OPEN_MAX entries are open */
    ACKS_NO_MEMORY,
    ACKS_COLLIDES, /* ACK_ID could be one of our own: nothing could be told from a poll for it */
};

/*
 * Keep the claim CLAIM_ID open for (CHANNEL, ACK_ID); everything is copied.  ACKS_OPENED: the registry answers for the
 * claim from now on.  Anything else: nothing is kept; the caller settles at once, as OUTCOME_UNKNOWN.
 * *RET_REPLACED is an entry of the same channel and id that was open until now, to be settled as OUTCOME_UNKNOWN: the
 * target has begun to count anew, and what became of the earlier batch cannot be asked any more.  NULL: none.
 */
MUST_CHECK enum acks_status acks_open(struct acks *acks, struct slice channel, int64_t ack_id,
                                      uint64_t claim_id, const struct record records[],
                                      const enum verdict verdicts[], size_t record_count, uint64_t now_ns,
                                      struct ack **ret_replaced);

/* An id for a success that we make up: never the same twice, and true whenever it is polled. */
int64_t acks_make_id(struct acks *acks);
/* Was it made by acks_make_id() of this process? */
bool acks_is_own(struct acks *acks, int64_t ack_id);

/* The entries of CHANNEL among IDS whose IS_DONE is true; they are no longer open.  NULL: none. */
MUST_CHECK struct ack *acks_take_done(struct acks *acks, struct slice channel, const int64_t ids[],
                                      const bool is_done[], size_t id_count);
/* The entries that were opened TIMEOUT_NS ago or earlier, oldest first. */
MUST_CHECK struct ack *acks_take_expired(struct acks *acks, uint64_t now_ns);
size_t acks_open_count(struct acks *acks);

/* ACK must not be lent to the ledger, nor its settlement.  NULL is fine. */
void ack_free(struct ack *ack);

#endif
