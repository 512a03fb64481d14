/*
 * test_offline.c - a ledger that nobody runs: figures, soundness, lines out and in, in real folders.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "bed.h"
#include "env.h"
#include "format.h"

enum { LINES_MAX = 4000 };

struct lines {
    char *at[LINES_MAX]; /* owned */
    size_t count, next, stop_at;
};

static struct lines before, after;
static char other_folder[160]; /* a second folder, within the bed's */
static char why[256];

static bool keep_line(void *context, struct slice line)
{
    struct lines *lines = context;
    assert_true(lines->count < LINES_MAX);
    lines->at[lines->count++] = strndup(line.at, line.byte_count);
    return lines->stop_at == 0 || lines->count < lines->stop_at;
}

static bool next_line(void *context, struct slice *ret_line)
{
    struct lines *lines = context;
    if (lines->next == lines->count)
        return false;
    *ret_line = slice_of_text(lines->at[lines->next++]);
    return true;
}

static void drop_lines(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->at[i]);
    *lines = (struct lines){ 0 };
}

static void empty_other(void)
{
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "sinkonce.lock", "ledger.mdb.new" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", other_folder, names[i]);
        unlink(path);
    }
}

static int setup(void **state)
{
    int status = bed_setup(state);
    bed_path("other", other_folder);
    return status != 0 ? status : mkdir(other_folder, 0700);
}

static int teardown(void **state)
{
    drop_lines(&before);
    drop_lines(&after);
    bed_close();
    empty_other();
    return rmdir(other_folder) == 0 ? bed_teardown(state) : -1;
}

static void fill_ledger(void)
{
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 1000, mark_of_hash(5000), OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 200000, 3, mark_of_hash(900), OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 1, 7, 5, MARK_NONE, OUTCOME_UNKNOWN);
    desk_offer(&bed.desk, "refunds", 0, 9, 5, mark_of_timestamp(7), OUTCOME_APPLIED);
    desk_offer(&bed.desk, "refunds", 0, 9, 5, mark_of_timestamp(8), OUTCOME_APPLIED); /* a conflict */
    bed_close();
}

static struct store_options other_options(void)
{
    struct store_options options = bed.options;
    options.folder = other_folder;
    return options;
}

static enum store_open_status export_to(struct lines *lines, const struct store_options *options)
{
    drop_lines(lines);
    return store_export(options, keep_line, lines, why, sizeof why);
}

static enum store_open_status import_from(struct lines *lines)
{
    struct store_options options = other_options();
    lines->next = 0;
    return store_import(&options, next_line, lines, why, sizeof why);
}

/* ---- out and in ------------------------------------------------------------------------------------------------- */

static void test_L15_what_was_exported_is_imported_and_works(void **state)
{
    (void)state;
    fill_ledger();
    assert_int_equal(export_to(&before, &bed.options), STORE_OPENED);
    assert_int_equal(import_from(&before), STORE_OPENED);
    struct store_options options = other_options();
    assert_int_equal(export_to(&after, &options), STORE_OPENED);
    assert_int_equal(after.count, before.count);
    for (size_t i = 0; i < before.count; i++)
        assert_string_equal(after.at[i], before.at[i]);
    assert_int_equal(store_verify(&options, keep_line, &after, why, sizeof why), STORE_OPENED);
    const char *folder = bed.options.folder;
    bed.options.folder = other_folder;
    bed.options.is_missing_refused = true;
    bed_open();
    bed.options.folder = folder;
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 0, 1000, mark_of_hash(5000), OUTCOME_APPLIED),
                     VERDICT_APPLIED);
    assert_int_equal(desk_state(&bed.desk, "orders", 0, 1000), RECORD_ABSENT);
    assert_int_equal(desk_state(&bed.desk, "orders", 1, 11), RECORD_IN_DOUBT);
    assert_int_equal(desk_offer(&bed.desk, "refunds", 0, 50, 1, MARK_NONE, OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 1, 1, mark_of_hash(4), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
}

static bool is_other_empty(void)
{
    char path[256];
    struct stat file;
    snprintf(path, sizeof path, "%s/ledger.mdb", other_folder);
    if (stat(path, &file) == 0)
        return false;
    snprintf(path, sizeof path, "%s/ledger.mdb.new", other_folder);
    return stat(path, &file) != 0;
}

static void test_a_damaged_line_is_named_and_nothing_is_imported(void **state)
{
    (void)state;
    fill_ledger();
    assert_int_equal(export_to(&before, &bed.options), STORE_OPENED);
    before.at[2][12] = '!';
    assert_int_equal(import_from(&before), STORE_UNREADABLE);
    assert_non_null(strstr(why, "line 3:"));
    assert_true(is_other_empty());
    drop_lines(&before);
    assert_int_equal(export_to(&before, &bed.options), STORE_OPENED);
    free(before.at[--before.count]); /* cut short */
    assert_int_equal(import_from(&before), STORE_UNREADABLE);
    assert_non_null(strstr(why, "the end is missing"));
    assert_true(is_other_empty());
    drop_lines(&before);
    assert_int_equal(import_from(&before), STORE_UNREADABLE);
    assert_true(is_other_empty());
}

static void test_nothing_is_imported_over_a_ledger(void **state)
{
    (void)state;
    fill_ledger();
    assert_int_equal(export_to(&before, &bed.options), STORE_OPENED);
    before.next = 0;
    assert_int_equal(store_import(&bed.options, next_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_non_null(strstr(why, "already"));
    assert_int_equal(export_to(&after, &bed.options), STORE_OPENED);
    assert_int_equal(after.count, before.count);
}

static void test_an_export_of_another_scope_is_refused(void **state)
{
    (void)state;
    fill_ledger();
    assert_int_equal(export_to(&before, &bed.options), STORE_OPENED);
    struct store_options options = other_options();
    options.scope = "another";
    assert_int_equal(store_import(&options, next_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_non_null(strstr(why, "line 1:"));
    assert_non_null(strstr(why, "scope"));
}

static void test_an_export_whose_lines_find_no_room_says_so(void **state)
{
    (void)state;
    fill_ledger();
    before.stop_at = 3;
    assert_int_equal(store_export(&bed.options, keep_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_int_equal(before.count, 3);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

static bool has_line(const struct lines *lines, const char *line)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->at[i], line) == 0)
            return true;
    return false;
}

static void test_stat_says_what_the_ledger_holds(void **state)
{
    (void)state;
    fill_ledger();
    assert_int_equal(store_stat(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
    assert_true(has_line(&before, "scope orders->billing"));
    assert_true(has_line(&before, "partitions 3"));
    assert_true(has_line(&before, "applied_records 1008"));
    assert_true(has_line(&before, "in_doubt_records 5"));
    assert_true(has_line(&before, "conflicts 1"));
    assert_true(has_line(&before, "rows_runs 3"));
}

static void ask(struct question question)
{
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_status, QUESTION_OK);
    store_question_deinit(&question);
}

static void test_Z01_the_old_history_stays_until_its_partition_is_forgotten(void **state)
{
    (void)state;
    bed_open();
    desk_offer(&bed.desk, "orders", 0, 0, 50, mark_of_hash(5000), OUTCOME_APPLIED);
    desk_offer(&bed.desk, "orders", 0, 0, 50, mark_of_hash(9000), OUTCOME_APPLIED); /* a conflict */
    ask((struct question){ .kind = DO_DECIDE, .id = 1, .is_new_topic = true });
    desk_offer(&bed.desk, "orders", 0, 0, 20, mark_of_hash(9000), OUTCOME_APPLIED);
    bed_close();
    assert_int_equal(store_stat(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
    assert_true(has_line(&before, "rows_past 1"));
    assert_true(has_line(&before, "rows_runs 2"));
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
    bed_open();
    ask((struct question){
        .kind = DO_FORGET, .topic = "orders", .partition = -1, .first = -1, .last = -1, .expect_count = 20 });
    bed_close();
    drop_lines(&before);
    assert_int_equal(store_stat(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
    assert_true(has_line(&before, "rows_past 0"));
    assert_true(has_line(&before, "rows_runs 0"));
    assert_true(has_line(&before, "rows_marks 0"));
    assert_true(has_line(&before, "rows_samples 0"));
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
}

/* Change one row of the closed ledger, behind everybody's back but with the sum that belongs to it. */
static void spoil(struct slice key, struct slice value)
{
    struct env env;
    struct store_row row;
    struct rows rows;
    bool is_created;
    assert_int_equal(env_init(&env, &bed.options, 1, &row, &is_created, bed.why, sizeof bed.why),
                     STORE_OPENED);
    assert_int_equal(rows_begin(&rows, env.mdb, env.table), ROWS_OK);
    rows_put(&rows, key, value);
    assert_int_equal(rows_commit(&rows), ROWS_OK);
    env_deinit(&env);
}

static void test_verify_finds_rows_that_do_not_hold_together(void **state)
{
    struct value value;
    (void)state;
    fill_ledger();
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_OPENED);
    assert_int_equal(before.count, 0);
    full_row_write(&(struct full_row){ 9, 9 * 65536, 0 }, &value);
    struct key key = key_pair(TABLE_FULL, 1, 9); /* 65,536 records that nobody counted */
    spoil(key_slice(&key), value_slice(&value));
    key = key_pair(TABLE_MARKS, 77, 0); /* of a history that nobody has */
    spoil(key_slice(&key), slice_of("short", 5));
    spoil(slice_of("\x40unknown", 8), slice_of("x", 1));
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_true(before.count >= 4);
    assert_non_null(strstr(why, "findings"));
    assert_true(has_line(&before, "a row of table 64, which does not exist"));
}

/* A value that is too short for the sum which ends it. */
static void test_F30_a_value_without_its_sum_is_no_row(void **state)
{
    struct env env;
    struct store_row row;
    struct rows rows;
    bool is_created;
    struct key key = key_pair(TABLE_RUNS, 1, 3);
    MDB_val key_val = { key.byte_count, key.bytes }, value = { 3, key.bytes };
    (void)state;
    fill_ledger();
    assert_int_equal(env_init(&env, &bed.options, 1, &row, &is_created, bed.why, sizeof bed.why),
                     STORE_OPENED);
    assert_int_equal(rows_begin(&rows, env.mdb, env.table), ROWS_OK);
    assert_int_equal(mdb_put(rows.txn, env.table, &key_val, &value, 0), 0);
    assert_int_equal(rows_commit(&rows), ROWS_OK);
    env_deinit(&env);
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_true(has_line(&before, "the file cannot be read to its end"));
    assert_int_equal(store_stat(&bed.options, keep_line, &before, why, sizeof why), STORE_UNREADABLE);
    assert_non_null(strstr(why, "cannot be read to its end"));
    assert_int_equal(export_to(&before, &bed.options), STORE_UNREADABLE);
    assert_non_null(strstr(why, "could not be exported"));
}

static void test_a_ledger_in_use_or_not_there_is_not_looked_at(void **state)
{
    struct store_options options = other_options();
    (void)state;
    fill_ledger();
    bed_open();
    assert_int_equal(store_stat(&bed.options, keep_line, &before, why, sizeof why), STORE_LOCKED);
    assert_int_equal(store_verify(&bed.options, keep_line, &before, why, sizeof why), STORE_LOCKED);
    assert_int_equal(export_to(&before, &bed.options), STORE_LOCKED);
    assert_int_equal(store_import(&bed.options, next_line, &before, why, sizeof why), STORE_LOCKED);
    assert_int_equal(export_to(&before, &options), STORE_UNREADABLE);
    assert_non_null(strstr(why, "is not there"));
    assert_true(is_other_empty()); /* and none has been made */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_L15_what_was_exported_is_imported_and_works),
        TEST(test_a_damaged_line_is_named_and_nothing_is_imported),
        TEST(test_nothing_is_imported_over_a_ledger),
        TEST(test_an_export_of_another_scope_is_refused),
        TEST(test_an_export_whose_lines_find_no_room_says_so),
        TEST(test_stat_says_what_the_ledger_holds),
        TEST(test_Z01_the_old_history_stays_until_its_partition_is_forgotten),
        TEST(test_verify_finds_rows_that_do_not_hold_together),
        TEST(test_F30_a_value_without_its_sum_is_no_row),
        TEST(test_a_ledger_in_use_or_not_there_is_not_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
