/*
 * test_replays.c - when a replay window ends, on rows in memory and with both clocks in the test's hand.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include "machine.h"
#include "rows_mem.h"

enum { RECORDS = 20, LENGTH_MS = 10000, MONO_MS = 5000000 };
static const uint64_t day_ms = UINT64_C(1800000000000), ten_years_ms = UINT64_C(315360000000);

static struct rows *rows;
static struct machine *machine;
static int64_t next_offset;

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell;
    (void)claim;
    assert_int_equal(status, STORE_OK);
}

void store_claim_deinit(struct claim *claim)
{
    free(claim->reply_bytes);
    claim->reply_bytes = NULL;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static void begin(uint64_t unix_ms, uint64_t mono_ms)
{
    rows_mem_begin(rows);
    machine_begin(machine, rows, (struct machine_time){ .mono_ms = mono_ms, .unix_ms = unix_ms },
                  MACHINE_OPEN);
}

static void commit(void)
{
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    machine_keep(machine);
}

static enum verdict offer(int64_t offset)
{
    const struct record record = { { slice_of_text("orders"), 0, offset }, MARK_NONE };
    const enum outcome outcome = OUTCOME_APPLIED;
    enum verdict verdict;
    struct claim claim = { .records = &record, .record_count = 1, .ret_verdicts = &verdict };
    machine_claim(machine, &claim);
    store_claim_deinit(&claim);
    if (verdict != VERDICT_NEW)
        return verdict;
    struct settlement settlement = { .claim_id = claim.ret_claim_id,
                                     .records = &record,
                                     .verdicts = &verdict,
                                     .outcomes = &outcome,
                                     .record_count = 1 };
    machine_settle(machine, &settlement);
    return verdict;
}

/* Is an applied record, which has not been sent again yet, sent again at that time? */
static bool is_open_at(uint64_t unix_ms, uint64_t mono_ms)
{
    assert_true(next_offset < RECORDS);
    begin(unix_ms, mono_ms);
    bool is_sent = offer(next_offset++) == VERDICT_NEW;
    commit();
    return is_sent;
}

static void open_machine(uint64_t boot)
{
    const struct machine_settings settings = { .in_doubt_max = 1000, .window = 100000 };
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    rows_mem_begin(rows);
    machine_load(machine, rows, boot);
    assert_int_equal(rows_status(rows), ROWS_OK);
}

/* RECORDS are applied, and a window over all of them is open from DAY_MS on for LENGTH_MS. */
static int setup(void **state)
{
    struct question question = {
        .kind = DO_REPLAY_OPEN, .topic = "orders", .last = RECORDS, .until_ms = day_ms + LENGTH_MS
    };
    (void)state;
    rows = rows_mem_new();
    open_machine(1);
    begin(day_ms, MONO_MS);
    for (int64_t offset = 0; offset < RECORDS; offset++)
        assert_int_equal(offer(offset), VERDICT_NEW);
    machine_ask(machine, &question);
    assert_int_equal(question.ret_status, QUESTION_OK);
    commit();
    next_offset = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    machine_free(machine);
    rows_mem_free(rows);
    return 0;
}

static void start_again(void)
{
    machine_forget(machine);
    machine_free(machine);
    open_machine(2);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void test_a_window_is_open_for_its_time_and_no_longer(void **state)
{
    (void)state;
    assert_true(is_open_at(day_ms, MONO_MS));
    assert_true(is_open_at(day_ms + LENGTH_MS - 1, MONO_MS + LENGTH_MS - 1));
    assert_false(is_open_at(day_ms + LENGTH_MS, MONO_MS + LENGTH_MS));
}

static void test_a_clock_set_back_keeps_no_window_open(void **state)
{
    (void)state;
    assert_true(is_open_at(day_ms - ten_years_ms, MONO_MS + 1));
    assert_true(is_open_at(day_ms - ten_years_ms + LENGTH_MS, MONO_MS + LENGTH_MS - 1));
    assert_false(is_open_at(day_ms - ten_years_ms + LENGTH_MS, MONO_MS + LENGTH_MS));
    assert_false(is_open_at(day_ms, MONO_MS + LENGTH_MS)); /* nor does it come back */
}

static void test_a_clock_set_forward_ends_a_window_for_good(void **state)
{
    (void)state;
    assert_false(is_open_at(day_ms + ten_years_ms, MONO_MS + 1));
    assert_false(is_open_at(day_ms, MONO_MS + 2));
}

static void test_after_a_restart_what_is_left_of_its_time_counts(void **state)
{
    (void)state;
    start_again();
    assert_true(is_open_at(day_ms + LENGTH_MS - 10, 7));
    assert_true(is_open_at(day_ms + LENGTH_MS - 10, 16));
    assert_false(is_open_at(day_ms + LENGTH_MS - 10, 17));
}

static void test_after_a_restart_with_a_clock_set_back_it_is_its_time_once_more(void **state)
{
    (void)state;
    start_again();
    assert_true(is_open_at(day_ms - ten_years_ms, 7));
    assert_true(is_open_at(day_ms - ten_years_ms, 7 + LENGTH_MS - 1));
    assert_false(is_open_at(day_ms - ten_years_ms, 7 + LENGTH_MS));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_window_is_open_for_its_time_and_no_longer),
        TEST(test_a_clock_set_back_keeps_no_window_open),
        TEST(test_a_clock_set_forward_ends_a_window_for_good),
        TEST(test_after_a_restart_what_is_left_of_its_time_counts),
        TEST(test_after_a_restart_with_a_clock_set_back_it_is_its_time_once_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
