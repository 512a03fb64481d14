/*
 * test_applied.c - the applied set of a partition on rows in memory: exact against a naive bitmap, and folded.
 */
#include "applied.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include "opens.h"
#include "partitions.h"
#include "rows_mem.h"

enum { SPAN = 6 * CHUNK_OFFSETS };

static struct rows *rows;
static struct machine *machine;
static struct partition *partition;
static bool naive[SPAN];

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell;
    (void)claim;
    (void)status;
}

/* The machine writes only in batches that change a row, as every claim and outcome does; here the probe stands for it. */
static void begin_batch(void)
{
    machine_begin(machine, rows, (struct machine_time){ 1, 1 }, MACHINE_OPEN);
    machine_probe(machine);
}

static void begin_with_window(uint64_t window)
{
    struct machine_settings settings = { .window = window };
    rows = rows_mem_new();
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    begin_batch();
    partition = partitions_add(machine, slice_of_text("orders"), 0);
    memset(naive, 0, sizeof naive);
}

static void end(void)
{
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    machine_free(machine);
    rows_mem_free(rows);
}

/* Everything in memory is written, dropped and read back. */
static void reload(void)
{
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    machine_keep(machine);
    machine_forget(machine);
    rows_mem_begin(rows);
    machine_load(machine, rows, 1);
    assert_int_equal(rows_status(rows), ROWS_OK);
    begin_batch();
    partition = partitions_find(machine, slice_of_text("orders"), 0);
    assert_non_null(partition);
}

static void add(int64_t first, int64_t last)
{
    applied_add(machine, partition, first, last);
    for (int64_t i = first; i <= last && i < SPAN; i++)
        naive[i] = true;
}

/* In strides that are no leaps: OFFSET, and on the way to it one offset of each window. */
static uint64_t walk_to(int64_t offset)
{
    int64_t stride = (int64_t)machine->settings.window;
    uint64_t count = 1;
    for (int64_t at = partition->row.highest + stride; at < offset; at += stride, count++)
        add(at, at);
    add(offset, offset);
    return count;
}

static bool is_applied(int64_t offset)
{
    return applied_piece_at(machine, partition, offset, offset).is_applied;
}

static void assert_as_naive(void)
{
    uint64_t count = 0;
    for (int64_t at = 0; at < SPAN;) {
        struct applied_piece piece = applied_piece_at(machine, partition, at, SPAN - 1);
        assert_true(piece.last >= at && piece.last < SPAN);
        for (int64_t i = at; i <= piece.last; i++) {
            assert_int_equal(naive[i], piece.is_applied);
            count += naive[i];
        }
        at = piece.last + 1;
    }
    assert_int_equal(partition->row.applied_count, count);
}

static void test_a_long_run_in_order_is_one_row(void **state)
{
    (void)state;
    begin_with_window(1000000);
    for (int64_t at = 0; at < SPAN; at += 500)
        add(at, at + 499 < SPAN ? at + 499 : SPAN - 1);
    assert_as_naive();
    machine_end(machine);
    assert_int_equal(rows_mem_count(rows), 3); /* counters, the partition, one interval */
    assert_int_equal(partition->row.interval_count, 1);
    begin_batch();
    reload();
    assert_as_naive();
    end();
}

static void test_intervals_join_from_both_sides(void **state)
{
    (void)state;
    begin_with_window(1000000);
    add(2 * CHUNK_OFFSETS, 3 * CHUNK_OFFSETS - 1);
    add(0, CHUNK_OFFSETS - 1);
    assert_int_equal(partition->row.interval_count, 2);
    add(CHUNK_OFFSETS, 2 * CHUNK_OFFSETS - 1);
    assert_int_equal(partition->row.interval_count, 1);
    assert_as_naive();
    end();
}

static void test_Z07_random_additions_are_as_a_naive_bitmap(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 6; seed++) {
        unsigned random = seed;
        begin_with_window((uint64_t)1 << 40);
        for (int step = 0; step < 3000; step++) {
            int64_t first = (int64_t)((unsigned)rand_r(&random) % SPAN);
            int64_t length = 1 + (int64_t)((unsigned)rand_r(&random) % (step % 50 == 0 ? 70000 : 40));
            add(first, first + length - 1 < SPAN ? first + length - 1 : SPAN - 1);
            if (rand_r(&random) % 500 == 0)
                reload();
        }
        assert_as_naive();
        reload();
        assert_as_naive();
        end();
    }
}

/* ---- folding ---------------------------------------------------------------------------------------------------- */

static void test_Z11_a_gap_far_below_the_window_is_taken_as_applied(void **state)
{
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(100, 199);
    add(300, 399); /* 200 to 299: a gap */
    assert_false(is_applied(250));
    uint64_t walked_count = walk_to(4 * CHUNK_OFFSETS);
    struct applied_piece piece = applied_piece_at(machine, partition, 250, 250);
    assert_true(piece.is_applied);
    assert_true(piece.is_folded);
    assert_true(applied_piece_at(machine, partition, 150, 150).is_folded); /* nobody can tell any more */
    assert_int_equal(partition->row.applied_count, 200 + walked_count);
    reload();
    assert_true(is_applied(250));
    end();
}

static void test_nothing_below_the_lowest_offset_is_folded_ground(void **state)
{
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(100, 199);
    walk_to(4 * CHUNK_OFFSETS);
    assert_false(is_applied(99));
    assert_false(is_applied(0));
    add(10, 10); /* the lowest is 10 now, and what lies between is still exact */
    assert_true(is_applied(10));
    for (int64_t offset = 11; offset < 100; offset++)
        assert_false(is_applied(offset));
    assert_true(is_applied(100));
    assert_true(is_applied(200)); /* folded */
    reload();
    assert_true(is_applied(10));
    assert_false(is_applied(50));
    add(11, 99);
    assert_true(is_applied(50));
    end();
}

static void test_the_window_itself_stays_exact(void **state)
{
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    for (int64_t at = 0; at < SPAN; at += 10)
        add(at, at + 4);
    for (int64_t offset = SPAN - 10 - CHUNK_OFFSETS; offset < SPAN - 10; offset++)
        assert_int_equal(is_applied(offset), offset % 10 < 5);
    assert_true(applied_piece_at(machine, partition, 7, 7).is_folded);
    end();
}

static void test_a_full_chunk_stays_exact_however_old(void **state)
{
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(0, CHUNK_OFFSETS - 1);
    add(CHUNK_OFFSETS + 7, CHUNK_OFFSETS + 7);
    walk_to(5 * CHUNK_OFFSETS);
    assert_true(is_applied(9));
    assert_false(applied_piece_at(machine, partition, 9, 9).is_folded);
    assert_true(applied_piece_at(machine, partition, CHUNK_OFFSETS + 1, CHUNK_OFFSETS + 1).is_folded);
    end();
}

static void test_an_open_record_is_never_folded_over(void **state)
{
    struct record record = { { slice_of_text("orders"), 0, 150 }, MARK_NONE };
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(100, 149);
    opens_claim(machine, partition, &(struct open_claim){ .records = &record, .count = 1, .claim_id = 1 });
    walk_to(4 * CHUNK_OFFSETS);
    assert_false(is_applied(150));
    opens_remove(machine, opens_from(partition, 150)); /* refused: it must be free */
    assert_false(is_applied(150));
    end();
}

/* A stray record, or a consumer that was set forward. */
static void test_what_a_leap_leaves_behind_stays_exact(void **state)
{
    (void)state;
    begin_with_window(10000000);
    add(0, 9);
    add(20, 29);
    add(INT64_MAX - 5, INT64_MAX);
    assert_true(is_applied(INT64_MAX));
    assert_false(is_applied(INT64_MAX - 6));
    machine_end(machine);
    assert_true(rows_mem_count(rows) <= 5);
    begin_batch();
    for (int i = 0; i < 2; i++) { /* as it is, and read back */
        assert_false(is_applied(10));
        assert_false(is_applied(30 + i));
        assert_false(is_applied(1000000000));
        add(30 + i, 30 + i); /* those that go on behind the stray one */
        assert_true(is_applied(30 + i));
        reload();
    }
    end();
}

static void test_behind_a_leap_folding_goes_on_where_it_led_to_and_nowhere_else(void **state)
{
    enum { FAR = 100 * CHUNK_OFFSETS };
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(0, 9);
    add(CHUNK_OFFSETS, CHUNK_OFFSETS);                 /* as far as a gap may be */
    add(2 * CHUNK_OFFSETS + 1, 2 * CHUNK_OFFSETS + 1); /* and one more */
    walk_to(5 * CHUNK_OFFSETS);
    assert_false(is_applied(10));
    assert_false(is_applied(CHUNK_OFFSETS + 1));
    assert_true(applied_piece_at(machine, partition, 2 * CHUNK_OFFSETS + 2, INT64_MAX).is_folded);
    add(FAR, FAR);
    walk_to(FAR + 5 * CHUNK_OFFSETS);
    assert_false(is_applied(FAR - 1));
    assert_false(is_applied(50 * CHUNK_OFFSETS));
    assert_true(applied_piece_at(machine, partition, FAR + 1, INT64_MAX).is_folded);
    assert_false(is_applied(10));
    end();
}

static void test_a_stray_record_that_is_forgotten_hinders_no_folding(void **state)
{
    enum { FAR = 100 * CHUNK_OFFSETS };
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    add(0, 9);
    add(FAR, FAR);
    assert_int_equal(applied_remove(machine, partition, FAR, FAR), 1);
    walk_to(6 * CHUNK_OFFSETS);
    assert_true(applied_piece_at(machine, partition, 3 * CHUNK_OFFSETS, INT64_MAX).is_folded);
    reload();
    assert_true(is_applied(9));
    end();
}

static void test_many_ragged_chunks_fold_in_small_steps_to_few_rows(void **state)
{
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    machine->settings.window = (uint64_t)1 << 40;
    for (int64_t chunk = 0; chunk < 300; chunk++)
        add(chunk * CHUNK_OFFSETS + 5, chunk * CHUNK_OFFSETS + 9);
    machine->settings.window = CHUNK_OFFSETS;
    for (int64_t chunk = 300; chunk < 320; chunk++)
        add(chunk * CHUNK_OFFSETS + 5, chunk * CHUNK_OFFSETS + 9);
    machine_end(machine);
    assert_true(rows_mem_count(rows) < 8);
    assert_int_equal(partition->row.applied_count, 320 * 5);
    begin_batch();
    reload();
    assert_true(partition->row.interval_count < 6);
    end();
}

static void test_a_damaged_row_fails_the_transaction(void **state)
{
    (void)state;
    begin_with_window(1000000);
    add(0, 10);
    machine_end(machine);
    struct key key = key_pair(TABLE_RUNS, partition->row.pid, 0);
    rows_put(rows, key_slice(&key), slice_of_text("damaged"));
    machine_keep(machine);
    machine_forget(machine);
    rows_mem_begin(rows);
    machine_load(machine, rows, 1);
    begin_batch();
    partition = partitions_find(machine, slice_of_text("orders"), 0);
    assert_false(is_applied(5));
    assert_int_equal(rows_status(rows), ROWS_FAILED);
    machine_end(machine);
    machine_free(machine);
    rows_mem_free(rows);
}

static void test_what_is_forgotten_of_folded_ground_leaves_both_sides_folded(void **state)
{
    enum { FAR = 20 * CHUNK_OFFSETS, FIRST = 3 * CHUNK_OFFSETS + 100, LAST = 5 * CHUNK_OFFSETS + 99 };
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    for (int64_t at = 0; at < FAR; at += 2)
        applied_add(machine, partition, at, at);
    uint64_t before = partition->row.applied_count,
             expected = applied_count_in(machine, partition, FIRST, LAST);
    assert_true(expected > CHUNK_OFFSETS / 2 && expected < 2 * CHUNK_OFFSETS); /* about every second */
    assert_int_equal(applied_remove(machine, partition, FIRST, LAST), expected);
    assert_false(applied_piece_at(machine, partition, FIRST, LAST).is_applied);
    assert_true(applied_piece_at(machine, partition, FIRST, LAST).last >= 4 * CHUNK_OFFSETS - 1);
    assert_false(applied_piece_at(machine, partition, LAST, LAST).is_applied);
    assert_true(applied_piece_at(machine, partition, 2 * CHUNK_OFFSETS, 2 * CHUNK_OFFSETS).is_folded);
    assert_true(applied_piece_at(machine, partition, LAST + 1, LAST + 1).is_folded);
    assert_true(partition->row.applied_count < before && partition->row.highest == FAR - 2);
    end();
}

static void test_what_is_forgotten_at_either_end_of_a_long_run_leaves_the_other(void **state)
{
    enum { END = 3 * CHUNK_OFFSETS, CUT = 1000 };
    (void)state;
    begin_with_window(CHUNK_OFFSETS);
    applied_add(machine, partition, 0, END - 1);
    assert_int_equal(applied_remove(machine, partition, END - CUT, END - 1), CUT);
    assert_int_equal(partition->row.highest, END - CUT - 1);
    assert_false(is_applied(END - CUT));
    applied_add(machine, partition, END - CUT, END - 1);
    assert_int_equal(applied_remove(machine, partition, 0, CUT - 1), CUT);
    assert_int_equal(partition->row.lowest, CUT);
    assert_false(is_applied(CUT - 1));
    assert_true(is_applied(CUT));
    assert_true(is_applied(END - 1));
    assert_int_equal(partition->row.applied_count, END - CUT);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_run_in_order_is_one_row),
        cmocka_unit_test(test_intervals_join_from_both_sides),
        cmocka_unit_test(test_Z07_random_additions_are_as_a_naive_bitmap),
        cmocka_unit_test(test_Z11_a_gap_far_below_the_window_is_taken_as_applied),
        cmocka_unit_test(test_nothing_below_the_lowest_offset_is_folded_ground),
        cmocka_unit_test(test_the_window_itself_stays_exact),
        cmocka_unit_test(test_a_full_chunk_stays_exact_however_old),
        cmocka_unit_test(test_an_open_record_is_never_folded_over),
        cmocka_unit_test(test_what_a_leap_leaves_behind_stays_exact),
        cmocka_unit_test(test_behind_a_leap_folding_goes_on_where_it_led_to_and_nowhere_else),
        cmocka_unit_test(test_a_stray_record_that_is_forgotten_hinders_no_folding),
        cmocka_unit_test(test_many_ragged_chunks_fold_in_small_steps_to_few_rows),
        cmocka_unit_test(test_a_damaged_row_fails_the_transaction),
        cmocka_unit_test(test_what_is_forgotten_of_folded_ground_leaves_both_sides_folded),
        cmocka_unit_test(test_what_is_forgotten_at_either_end_of_a_long_run_leaves_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
