/*
 * forget_orders.h - the question by which tests forget what is applied of the topic "orders".
 */
#ifndef SINKONCE_TESTS_FORGET_ORDERS_H
#define SINKONCE_TESTS_FORGET_ORDERS_H

#include "store.h"

/* FIRST and LAST -1: the whole partition. */
static inline struct question forget_orders(int32_t partition, int64_t first, int64_t last,
                                            uint64_t expect_count)
{
    return (struct question){ .kind = DO_FORGET,
                              .topic = "orders",
                              .partition = partition,
                              .first = first,
                              .last = last,
                              .expect_count = expect_count,
                              .detail = "from a test" };
}

/* All its partitions. */
static inline struct question forget_all_orders(uint64_t expect_count)
{
    return forget_orders(-1, -1, -1, expect_count);
}

#endif
