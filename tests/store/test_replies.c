/*
 * test_replies.c - kept answers on rows in memory: never more than the setting, and the oldest leave several at a time.
 */
#include "replies.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>
#include "pairs.h"
#include "partitions.h"
#include "rows_mem.h"

static struct rows *rows;
static struct machine *machine;
static struct partition *partition;
static int64_t next_offset;

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell;
    (void)claim;
    (void)status;
}

static void begin(uint32_t replies)
{
    struct machine_settings settings = { .replies = replies, .reply_bytes_max = 100 };
    rows = rows_mem_new();
    machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    machine_begin(machine, rows, (struct machine_time){ 1, 1 }, MACHINE_OPEN);
    partition = partitions_add(machine, slice_of_text("orders"), 0);
    assert_non_null(partition);
    next_offset = 0;
}

static void end(void)
{
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    machine_free(machine);
    rows_mem_free(rows);
}

static size_t kept_count(int64_t *ret_oldest)
{
    struct slice value;
    uint64_t offset;
    size_t count = 0;
    for (uint64_t at = 0; pairs_next(rows, TABLE_REPLIES, partition->row.pid, at, &offset, &value);
         at = offset + 1)
        if (count++ == 0)
            *ret_oldest = (int64_t)offset;
    return count;
}

/* Returns how many rows left. */
static size_t keep_one(size_t kept_max)
{
    const struct stored_reply reply = { 201, slice_of_text("text/plain"), slice_of_text("done") };
    int64_t oldest = 0;
    size_t before = kept_count(&oldest);
    replies_keep(machine, partition, next_offset++, &reply);
    size_t after = kept_count(&oldest);
    assert_true(after <= kept_max);
    assert_int_equal(oldest + (int64_t)after, next_offset); /* the youngest are all there */
    return before + 1 - after;
}

static void test_answers_never_outgrow_the_setting_and_leave_several_at_a_time(void **state)
{
    enum { KEPT_MAX = 160, STEP = KEPT_MAX / 16 + 1 };
    (void)state;
    begin(KEPT_MAX);
    for (int i = 0; i < KEPT_MAX; i++)
        assert_int_equal(keep_one(KEPT_MAX), 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(keep_one(KEPT_MAX), STEP);
        for (int i = 1; i < STEP; i++)
            assert_int_equal(keep_one(KEPT_MAX), 0);
    }
    end();
}

static void test_few_answers_are_kept_to_the_last(void **state)
{
    (void)state;
    begin(3);
    for (int i = 0; i < 10; i++)
        assert_int_equal(keep_one(3), i < 3 ? 0 : 1);
    end();
}

static void test_a_short_room_is_emptied_step_by_step(void **state)
{
    int64_t oldest = 0;
    (void)state;
    begin(1000);
    for (int i = 0; i < 100; i++)
        assert_int_equal(keep_one(1000), 0);
    machine_room(machine, true);
    assert_int_equal(kept_count(&oldest), 100 - 50);
    machine_room(machine, true);
    assert_int_equal(kept_count(&oldest), 0);
    machine_room(machine, true);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_never_outgrow_the_setting_and_leave_several_at_a_time),
        cmocka_unit_test(test_few_answers_are_kept_to_the_last),
        cmocka_unit_test(test_a_short_room_is_emptied_step_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
