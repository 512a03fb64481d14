/*
 * test_marks.c - identity marks on rows in memory: what a batch changes in a block is written once, when it ends, and is
 * seen, forgotten and swept before that too.
 */
#include "marks.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include "applied.h"
#include "pairs.h"
#include "partitions.h"
#include "rows_mem.h"

enum { MARKS_KEPT = 1000, ONE = 3, OTHER = 5 /* marks of the same kind */ };

static struct rows *rows;
static struct machine *machine;
static struct partition *partition;
static uint32_t pid;

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

static void end_batch(void)
{
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    machine_keep(machine);
    rows_mem_begin(rows);
}

static int setup(void **state)
{
    struct machine_settings settings = { .window = 100000, .marks = MARKS_KEPT, .is_identity_checked = true };
    (void)state;
    rows = rows_mem_new();
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    begin_batch();
    partition = partitions_add(machine, slice_of_text("orders"), 0);
    pid = partition == NULL ? 0 : partition->row.pid;
    return partition == NULL;
}

static int teardown(void **state)
{
    (void)state;
    end_batch();
    machine_free(machine);
    rows_mem_free(rows);
    return 0;
}

static void apply(int64_t first, int64_t last)
{
    for (int64_t offset = first; offset <= last; offset++) {
        const record_mark mark = ONE;
        applied_add(machine, partition, offset, offset);
        marks_put(machine, partition, offset, &mark, 1);
    }
}

static bool contradicts(int64_t offset, record_mark mark)
{
    const struct record record = { .key = { slice_of_text("orders"), 0, offset }, .mark = mark };
    size_t index = 0;
    record_mark stored = MARK_NONE;
    bool is_found = marks_find_contradiction(machine, partition, &record, 1, &index, &stored);
    assert_true(!is_found || (index == 0 && stored == ONE));
    return is_found;
}

static size_t block_count(uint64_t first, uint64_t last)
{
    struct slice value;
    size_t count = 0;
    for (uint64_t at = first; pairs_next(rows, TABLE_MARKS, pid, at, &at, &value) && at <= last; at++)
        count++;
    return count;
}

static void forget(int64_t first, int64_t last, uint64_t count)
{
    struct question question = {
        .kind = DO_FORGET, .topic = "orders", .first = first, .last = last, .expect_count = count
    };
    machine_ask(machine, &question);
    assert_int_equal(question.ret_status, QUESTION_OK);
}

static void test_a_mark_is_compared_in_the_batch_that_brought_it_and_later(void **state)
{
    (void)state;
    apply(10, 12);
    assert_true(contradicts(11, OTHER));
    assert_false(contradicts(11, ONE));
    end_batch();
    begin_batch();
    assert_int_equal(block_count(0, UINT64_MAX), 1);
    assert_true(contradicts(11, OTHER));
    assert_false(contradicts(13, OTHER));
}

static void test_the_first_mark_of_a_chunk_is_its_sample_though_others_came_without(void **state)
{
    const record_mark none = MARK_NONE;
    struct slice value;
    uint64_t chunk;
    (void)state;
    applied_add(machine, partition, 7, 7);
    marks_put(machine, partition, 7, &none, 1);
    assert_false(pairs_next(rows, TABLE_SAMPLES, pid, 0, &chunk, &value));
    apply(8, 9);
    int64_t offset;
    record_mark mark;
    assert_true(pairs_next(rows, TABLE_SAMPLES, pid, 0, &chunk, &value));
    assert_true(sample_read(value, &offset, &mark) && offset == 8 && mark == ONE);
}

static void test_a_block_is_written_once_for_all_records_of_a_batch(void **state)
{
    (void)state;
    apply(0, 0); /* what comes once for each partition */
    end_batch();
    begin_batch();
    rows_mem_fail_at(rows, 5, ROWS_FAILED); /* four changes: block, applied set, partition, counters */
    apply(1, 100);
    end_batch();
    begin_batch();
    assert_true(contradicts(100, OTHER));
}

static void test_blocks_that_share_a_slot_are_all_kept(void **state)
{
    const int64_t apart = (int64_t)MARK_SLOTS * MARK_BLOCK_OFFSETS;
    (void)state;
    apply(0, 0);
    apply(apart, apart + 1);
    apply(1, 1);
    end_batch();
    begin_batch();
    assert_true(contradicts(0, OTHER) && contradicts(1, OTHER) && contradicts(apart + 1, OTHER));
}

static void test_what_is_forgotten_in_the_batch_that_brought_it_is_compared_no_more(void **state)
{
    (void)state;
    apply(0, 3 * MARK_BLOCK_OFFSETS - 1);
    forget(MARK_BLOCK_OFFSETS - 1, 2 * MARK_BLOCK_OFFSETS, MARK_BLOCK_OFFSETS + 2);
    assert_false(contradicts(MARK_BLOCK_OFFSETS - 1, OTHER));
    end_batch();
    begin_batch();
    assert_int_equal(block_count(0, 2), 2);
    assert_false(contradicts(MARK_BLOCK_OFFSETS + 1, OTHER) || contradicts(2 * MARK_BLOCK_OFFSETS, OTHER));
    assert_true(contradicts(MARK_BLOCK_OFFSETS - 2, OTHER) && contradicts(2 * MARK_BLOCK_OFFSETS + 1, OTHER));
}

static void test_a_partition_forgotten_whole_leaves_no_block_of_that_batch(void **state)
{
    (void)state;
    apply(0, 10);
    forget(-1, -1, 11);
    assert_null(partitions_find(machine, slice_of_text("orders"), 0));
    end_batch();
    begin_batch();
    assert_int_equal(block_count(0, UINT64_MAX), 0);
}

static void test_what_a_batch_itself_outgrows_is_swept_with_the_rest(void **state)
{
    const uint64_t blocks = 12;
    (void)state;
    apply(0, (int64_t)blocks * MARK_BLOCK_OFFSETS - 1);
    end_batch();
    begin_batch();
    /* the first for ever, the others as far as MARKS_KEPT reaches back */
    uint64_t floor = (blocks * MARK_BLOCK_OFFSETS - 1 - MARKS_KEPT) / MARK_BLOCK_OFFSETS;
    assert_int_equal(block_count(0, 0), 1);
    assert_int_equal(block_count(1, floor - 1), 0);
    assert_int_equal(block_count(floor, UINT64_MAX), blocks - floor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_mark_is_compared_in_the_batch_that_brought_it_and_later, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_the_first_mark_of_a_chunk_is_its_sample_though_others_came_without, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_block_is_written_once_for_all_records_of_a_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_blocks_that_share_a_slot_are_all_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_what_is_forgotten_in_the_batch_that_brought_it_is_compared_no_more, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_partition_forgotten_whole_leaves_no_block_of_that_batch, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_a_batch_itself_outgrows_is_swept_with_the_rest, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
