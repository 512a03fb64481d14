/*
 * desk.h - a port whose postings are waited for, so that a test reads as one sequence.
 *
 * Everything is the desk's until desk_close(); a claim's results stay readable until the next call of its name.
 */
#ifndef SINKONCE_TESTS_DESK_H
#define SINKONCE_TESTS_DESK_H

#include "store.h"

enum { DESK_RECORDS_MAX = 2048 };

struct desk {
    struct store *store;     /* borrowed */
    struct store_port *port; /* owned */
};

/* A claim with room for its records, and the settlement that ends it. */
struct order {
    struct claim claim;
    struct settlement settlement;
    struct record records[DESK_RECORDS_MAX];
    enum verdict verdicts[DESK_RECORDS_MAX];
    enum outcome outcomes[DESK_RECORDS_MAX];
    bool is_answered, is_settled;
    enum store_status status, settle_status;
};

struct desk desk_open(struct store *store);
void desk_close(struct desk *desk);

/* COUNT neighbours from FIRST on, without marks.  ORDER is all zero, or was used before. */
void order_init(struct order *order, const char *topic, int32_t partition, int64_t first, size_t count);
void order_add(struct order *order, const char *topic, int32_t partition, int64_t offset, record_mark mark);
void order_deinit(struct order *order);

void desk_post(struct desk *desk, struct order *order);        /* the claim, without waiting */
void desk_post_settle(struct desk *desk, struct order *order); /* outcomes as they stand in it */
void desk_pump(struct desk *desk, const bool *is_done);        /* deliver until *IS_DONE */
bool desk_turn(struct desk *desk, int wait_ms);                /* deliver once; false: nothing came */
enum store_status desk_claim(struct desk *desk, struct order *order);
enum store_status desk_settle(struct desk *desk, struct order *order, enum outcome outcome); /* all alike */
enum store_status desk_settle_each(struct desk *desk, struct order *order);
enum store_status desk_ask(struct desk *desk, struct question *question);

/* Shorthands of many tests: claim and settle one record or a stretch; returns the first verdict. */
enum verdict desk_offer(struct desk *desk, const char *topic, int32_t partition, int64_t first, size_t count,
                        record_mark mark, enum outcome outcome);
enum record_state desk_state(struct desk *desk, const char *topic, int32_t partition, int64_t offset);
struct store_options desk_options(const char *folder);

#endif
