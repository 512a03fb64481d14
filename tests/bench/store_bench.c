/*
 * store_bench.c - what the ledger costs: postings per second with real commits, bytes per record, time to open.
 *
 * Not a test: it prints figures.  usage: store_bench FOLDER [doubts|forget]
 */
#include <assert.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "forget_orders.h"
#include "store.h"

enum { IN_FLIGHT_MAX = 256, RECORDS_MAX = 500 };

struct slot {
    struct claim claim;
    struct settlement settlement;
    struct record records[RECORDS_MAX];
    enum verdict verdicts[RECORDS_MAX];
    enum outcome outcomes[RECORDS_MAX];
};

static struct store *store;
static struct store_port *port;
static struct slot slots[IN_FLIGHT_MAX];
static int64_t next_offset, end_offset;
static size_t batch, running_count, duplicate_count;
static bool has_marks;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double cpu_seconds(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static void on_claimed(struct claim *claim, enum store_status status);

static void post_next(struct slot *slot)
{
    if (next_offset >= end_offset)
        return;
    slot->claim = (struct claim){
        .records = slot->records, .record_count = batch, .done = on_claimed, .ret_verdicts = slot->verdicts
    };
    for (size_t i = 0; i < batch; i++) {
        record_mark mark = has_marks ? mark_of_hash((uint64_t)next_offset * 2654435761u) : MARK_NONE;
        slot->records[i] = (struct record){ { slice_of_text("orders"), 0, next_offset++ }, mark };
    }
    running_count++;
    store_claim(port, &slot->claim);
}

static void on_settled(struct settlement *settlement, enum store_status status)
{
    struct slot *slot = (struct slot *)(void *)((char *)settlement - offsetof(struct slot, settlement));
    assert(status == STORE_OK);
    running_count--;
    post_next(slot);
}

static void on_claimed(struct claim *claim, enum store_status status)
{
    struct slot *slot = (struct slot *)(void *)claim;
    assert(status == STORE_OK);
    if (claim->ret_new_count == 0) {
        duplicate_count++;
        running_count--;
        store_claim_deinit(claim);
        post_next(slot);
        return;
    }
    slot->settlement = (struct settlement){ .claim_id = claim->ret_claim_id,
                                            .records = slot->records,
                                            .verdicts = slot->verdicts,
                                            .outcomes = slot->outcomes,
                                            .record_count = batch,
                                            .done = on_settled };
    store_settle(port, &slot->settlement);
}

static void run(const char *what, size_t batch_records, int64_t first, int64_t record_count)
{
    struct store_figures before, after;
    batch = batch_records;
    next_offset = first;
    end_offset = first + record_count;
    duplicate_count = 0;
    store_figures_get(store, &before);
    double began = seconds(CLOCK_MONOTONIC), cpu_began = cpu_seconds();
    for (size_t i = 0; i < IN_FLIGHT_MAX; i++)
        post_next(&slots[i]);
    while (running_count > 0) {
        struct pollfd fd = { store_port_fd(port), POLLIN, 0 };
        poll(&fd, 1, -1);
        store_port_deliver(port);
    }
    double took = seconds(CLOCK_MONOTONIC) - began, cpu = cpu_seconds() - cpu_began;
    store_figures_get(store, &after);
    double requests = (double)record_count / (double)batch_records;
    printf("%-34s %9.0f requests/s %10.0f records/s  %5.2f us CPU/request  %6.0f commits  %7zu duplicates\n",
           what, requests / took, (double)record_count / took, cpu / requests * 1e6,
           (double)(after.commit_count - before.commit_count), duplicate_count);
}

static void open_store(const char *folder, uint32_t marks)
{
    char why[256];
    struct store_options options = { .folder = folder,
                                     .scope = "bench",
                                     .ledger_bytes_max = (uint64_t)4 << 30,
                                     .in_doubt_max = 1000000,
                                     .marks = marks,
                                     .is_identity_checked = marks > 0,
                                     .window = 10000000,
                                     .reply_bytes_max = 4096 };
    double began = seconds(CLOCK_MONOTONIC);
    if (store_open(&options, &store, why, sizeof why) != STORE_OPENED) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    has_marks = marks > 0;
    port = store_port_new(store);
    assert(port != NULL);
    printf("open: %.1f ms\n", (seconds(CLOCK_MONOTONIC) - began) * 1e3);
}

static void close_store(const char *folder, const char *what)
{
    char path[4200];
    struct stat file;
    struct store_figures figures;
    store_figures_get(store, &figures);
    store_port_free(port);
    store_close(store);
    snprintf(path, sizeof path, "%s/ledger.mdb", folder);
    if (stat(path, &file) == 0)
        printf("file after %s: %lld bytes long, %llu in use\n", what, (long long)file.st_size,
               (unsigned long long)figures.used_bytes);
}

/* ---- doubts ----------------------------------------------------------------------------------------------------- */

static bool is_asked;

static void on_unknown(struct settlement *settlement, enum store_status status)
{
    (void)settlement;
    assert(status == STORE_OK);
    running_count--;
}

/* Each record is a doubt of its own, as single requests leave them. */
static void on_claimed_for_doubt(struct claim *claim, enum store_status status)
{
    struct slot *slot = (struct slot *)(void *)claim;
    assert(status == STORE_OK && claim->ret_new_count == 1);
    slot->outcomes[0] = OUTCOME_UNKNOWN;
    slot->settlement = (struct settlement){ .claim_id = claim->ret_claim_id,
                                            .records = slot->records,
                                            .verdicts = slot->verdicts,
                                            .outcomes = slot->outcomes,
                                            .record_count = 1,
                                            .cause = DOUBT_TIMEOUT,
                                            .detail = "no answer in time",
                                            .done = on_unknown };
    store_settle(port, &slot->settlement);
}

static void pump(void)
{
    struct pollfd fd = { store_port_fd(port), POLLIN, 0 };
    poll(&fd, 1, -1);
    store_port_deliver(port);
}

/* In one partition, or each in one of its own. */
static void make_doubts(int64_t first, int64_t count, bool is_spread)
{
    for (int64_t at = first; at < first + count;) {
        for (size_t i = 0; i < IN_FLIGHT_MAX && at < first + count; i++) {
            struct slot *slot = &slots[i];
            slot->claim = (struct claim){ .records = slot->records,
                                          .record_count = 1,
                                          .done = on_claimed_for_doubt,
                                          .ret_verdicts = slot->verdicts };
            record_mark mark = has_marks ? mark_of_hash((uint64_t)at * 2654435761u) : MARK_NONE;
            int32_t partition = is_spread ? (int32_t)at : 0;
            slot->records[0] = (struct record){ { slice_of_text("orders"), partition, at++ }, mark };
            running_count++;
            store_claim(port, &slot->claim);
        }
        while (running_count > 0)
            pump();
    }
}

static void on_asked(struct question *question, enum store_status status)
{
    assert(status == STORE_OK && question->ret_status == QUESTION_OK);
    is_asked = true;
}

static void empty_folder(const char *folder)
{
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "sinkonce.lock" };
    for (size_t i = 0; i < 3; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
}

static void bench_flow(const char *folder)
{
    open_store(folder, 0);
    run("batches of 500, in order", 500, 0, 1000000);
    close_store(folder, "1,000,000 records without marks");
    open_store(folder, 0);
    run("batches of 500, to 100,000,000", 500, 1000000, 99000000);
    close_store(folder, "100,000,000 records without marks");
    open_store(folder, 0);
    run("single records", 1, 100000000, 100000);
    run("single duplicates", 1, 100000000, 100000);
    close_store(folder, "100,100,000 records");
    empty_folder(folder);
    open_store(folder, 65536);
    run("batches of 500 with marks", 500, 0, 2000000);
    run("single records with marks", 1, 2000000, 100000);
    run("single duplicates with marks", 1, 2000000, 100000);
    close_store(folder, "2,100,000 records with marks");
    empty_folder(folder);
}

/* ---- decisions about much, while others are served -------------------------------------------------------------- */

static bool is_settled;
static int64_t meanwhile_offset;

static void on_settled_once(struct settlement *settlement, enum store_status status)
{
    (void)settlement;
    assert(status == STORE_OK);
    is_settled = true;
}

static void on_claimed_once(struct claim *claim, enum store_status status)
{
    struct slot *slot = (struct slot *)(void *)claim;
    assert(status == STORE_OK && claim->ret_new_count == claim->record_count);
    slot->settlement = (struct settlement){ .claim_id = claim->ret_claim_id,
                                            .records = slot->records,
                                            .verdicts = slot->verdicts,
                                            .outcomes = slot->outcomes,
                                            .record_count = claim->record_count,
                                            .done = on_settled_once };
    store_settle(port, &slot->settlement);
}

/* Claimed and settled: a request's way through the ledger. */
static void deliver(size_t record_count)
{
    struct slot *slot = &slots[0];
    is_settled = false;
    slot->claim = (struct claim){ .records = slot->records,
                                  .record_count = record_count,
                                  .done = on_claimed_once,
                                  .ret_verdicts = slot->verdicts };
    store_claim(port, &slot->claim);
    while (!is_settled)
        pump();
}

/* While requests of another topic go on. */
static void ask_meanwhile(const char *what, struct question *question)
{
    double longest = 0, began = seconds(CLOCK_MONOTONIC), cpu_began = cpu_seconds();
    int64_t count = 0;
    is_asked = false;
    question->done = on_asked;
    memset(slots[0].outcomes, 0, sizeof slots[0].outcomes); /* OUTCOME_APPLIED */
    for (store_ask(port, question); !is_asked; count++) {
        double posted = seconds(CLOCK_MONOTONIC);
        slots[0].records[0] =
            (struct record){ { slice_of_text("parcels"), 0, meanwhile_offset++ }, MARK_NONE };
        deliver(1);
        double took = seconds(CLOCK_MONOTONIC) - posted;
        longest = took > longest ? took : longest;
    }
    printf("%-50s in %.2f s (%.2f s CPU); %lld requests meanwhile, the longest took %.1f ms\n", what,
           seconds(CLOCK_MONOTONIC) - began, cpu_seconds() - cpu_began, (long long)count, longest * 1e3);
}

static void resolve(const char *what, int32_t partition, int64_t first, int64_t last, bool is_applied)
{
    struct question question = { .kind = DO_RESOLVE,
                                 .topic = "orders",
                                 .partition = partition,
                                 .first = first,
                                 .last = last,
                                 .is_applied = is_applied,
                                 .expect_count = (uint64_t)(last - first) + 1,
                                 .detail = "bench" };
    ask_meanwhile(what, &question);
}

static void bench_doubts(const char *folder)
{
    open_store(folder, 65536);
    make_doubts(0, 100000, false);
    resolve("100,000 doubts resolved as applied", 0, 0, 99999, true);
    make_doubts(100000, 100000, false);
    resolve("50,000 doubts resolved, the older half, not applied", 0, 100000, 149999, false);
    resolve("50,000 doubts resolved, the rest, as applied", 0, 150000, 199999, true);
    make_doubts(200000, 100000, true);
    resolve("100,000 doubts of as many partitions resolved", -1, 200000, 299999, true);
    close_store(folder, "300,000 doubts");
    empty_folder(folder);
}

/* PARTITIONS of one topic with a record each are forgotten at once. */
static void bench_forget(const char *folder)
{
    enum { PARTITIONS = 100000, EACH = RECORDS_MAX };
    struct question question = forget_all_orders(PARTITIONS);
    open_store(folder, 65536);
    memset(slots[0].outcomes, 0, sizeof slots[0].outcomes); /* OUTCOME_APPLIED */
    for (int32_t at = 0; at < PARTITIONS; at += EACH) {
        for (int32_t i = 0; i < EACH; i++)
            slots[0].records[i] =
                (struct record){ { slice_of_text("orders"), at + i, 0 }, mark_of_hash((uint64_t)(at + i)) };
        deliver(EACH);
    }
    ask_meanwhile("100,000 partitions forgotten", &question);
    close_store(folder, "forgetting");
    empty_folder(folder);
}

int main(int argc, char *argv[])
{
    const char *only = argc == 3 ? argv[2] : "";
    bool is_forget_only = strcmp(only, "forget") == 0, is_doubts_only = strcmp(only, "doubts") == 0;
    if (argc != 2 && !is_doubts_only && !is_forget_only) {
        fprintf(stderr, "usage: store_bench FOLDER [doubts|forget]\n");
        return 2;
    }
    mkdir(argv[1], 0700);
    empty_folder(argv[1]);
    if (*only == '\0')
        bench_flow(argv[1]);
    if (!is_forget_only)
        bench_doubts(argv[1]);
    if (!is_doubts_only)
        bench_forget(argv[1]);
    return 0;
}
