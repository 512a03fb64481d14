/*
 * ledger_fill.c - writes a ledger in which RECORDS records of one partition are applied, in order.
 *
 * usage: ledger_fill FOLDER RECORDS BATCH
 * For the figures of size and start: through the store's own contract, BATCH records a claim, with neither marks nor
 * kept answers.
 */
#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include "store.h"

static bool is_done;

static void on_claimed(struct claim *claim, enum store_status status)
{
    (void)claim;
    assert(status == STORE_OK);
    is_done = true;
}

static void on_settled(struct settlement *settlement, enum store_status status)
{
    (void)settlement;
    assert(status == STORE_OK);
    is_done = true;
}

static void wait_done(struct store_port *port)
{
    struct pollfd readable = { .fd = store_port_fd(port), .events = POLLIN };
    while (!is_done) {
        poll(&readable, 1, -1);
        store_port_deliver(port);
    }
    is_done = false;
}

static void fill(struct store_port *port, int64_t record_count, size_t batch)
{
    struct record *records = calloc(batch, sizeof *records);
    enum verdict *verdicts = calloc(batch, sizeof *verdicts);
    enum outcome *outcomes = calloc(batch, sizeof *outcomes);
    assert(records != NULL && verdicts != NULL && outcomes != NULL);
    for (int64_t offset = 0; offset < record_count;) {
        size_t count = 0;
        for (; count < batch && offset < record_count; count++) {
            records[count] = (struct record){ .key = { slice_of_text("orders"), 0, offset++ } };
            outcomes[count] = OUTCOME_APPLIED;
        }
        struct claim claim = {
            .records = records, .record_count = count, .done = on_claimed, .ret_verdicts = verdicts
        };
        store_claim(port, &claim);
        wait_done(port);
        assert(claim.ret_new_count == count);
        struct settlement settlement = { .claim_id = claim.ret_claim_id,
                                         .records = records,
                                         .verdicts = verdicts,
                                         .outcomes = outcomes,
                                         .record_count = count,
                                         .done = on_settled };
        store_claim_deinit(&claim);
        store_settle(port, &settlement);
        wait_done(port);
    }
    free(records);
    free(verdicts);
    free(outcomes);
}

int main(int argc, char *argv[])
{
    char why[512];
    struct store *store = NULL;
    if (argc != 4 || atoll(argv[2]) < 1 || atoll(argv[3]) < 1) {
        fprintf(stderr, "usage: ledger_fill FOLDER RECORDS BATCH\n");
        return 2;
    }
    struct store_options options = { .folder = argv[1],
                                     .scope = "default",
                                     .ledger_bytes_max = 4ull << 30,
                                     .in_doubt_max = 10000,
                                     .window = 10000000 };
    if (store_open(&options, &store, why, sizeof why) != STORE_OPENED) {
        fprintf(stderr, "ledger_fill: %s\n", why);
        return 1;
    }
    struct store_port *port = store_port_new(store);
    assert(port != NULL);
    fill(port, atoll(argv[2]), (size_t)atoll(argv[3]));
    store_port_free(port);
    store_close(store);
    return 0;
}
