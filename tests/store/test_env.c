/*
 * test_env.c - the folder and the file: who may open it, what is refused and in which words, what a restart keeps.
 */
#include "env.h"

#include <stdarg.h>
#include <setjmp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "bed.h"
#include "disk.h"

static struct order a, b;

static int setup(void **state)
{
    order_init(&a, "orders", 0, 0, 0);
    order_init(&b, "orders", 0, 0, 0);
    return bed_setup(state);
}

static int teardown(void **state)
{
    disk_watch(NULL);
    order_deinit(&a);
    order_deinit(&b);
    return bed_teardown(state);
}

static void assert_refused_with(const char *words)
{
    assert_int_equal(bed_try_open(), STORE_UNREADABLE);
    if (strstr(bed.why, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", bed.why, words);
}

/* Change BYTES at OFFSET of the ledger's file. */
static void patch(off_t offset, const void *bytes, size_t byte_count)
{
    char path[160];
    bed_path("ledger.mdb", path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, byte_count, offset), byte_count);
    close(fd);
}

/* ---- one owner -------------------------------------------------------------------------------------------------- */

static void test_L09_a_second_opening_in_the_same_process_is_refused(void **state)
{
    struct store *second;
    char why[256];
    (void)state;
    bed_open();
    assert_int_equal(store_open(&bed.options, &second, why, sizeof why), STORE_LOCKED);
    assert_non_null(strstr(why, "in use by another process"));
    assert_null(second);
    desk_offer(&bed.desk, "orders", 0, 1, 1, MARK_NONE, OUTCOME_APPLIED); /* the first one works on */
    bed_close();
    bed_open();
}

static void test_L09_a_link_in_another_folder_leads_to_no_second_owner(void **state)
{
    char path[160], folder[160], link_path[192];
    struct store *other = NULL;
    struct store_options options;
    (void)state;
    bed_open();
    bed_path("ledger.mdb", path);
    bed_path("other", folder);
    snprintf(link_path, sizeof link_path, "%s/ledger.mdb", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink(path, link_path), 0);
    options = bed.options;
    options.folder = folder;
    assert_int_equal(store_open(&options, &other, bed.why, sizeof bed.why), STORE_LOCKED);
    assert_non_null(strstr(bed.why, "in use by another process"));
    bed_close();
    assert_int_equal(store_open(&options, &other, bed.why, sizeof bed.why), STORE_OPENED);
    store_close(other);
    static const char *const names[] = { "ledger.mdb", "ledger.mdb-lock", "sinkonce.lock" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(link_path, sizeof link_path, "%s/%s", folder, names[i]);
        unlink(link_path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_L08_another_process_is_refused_and_a_dead_one_is_no_hindrance(void **state)
{
    int status;
    (void)state;
    bed_open();
    pid_t child = fork();
    if (child == 0) {
        struct store *second;
        char why[256];
        _exit(store_open(&bed.options, &second, why, sizeof why) == STORE_LOCKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bed_close();
    child = fork();
    if (child == 0) {
        bed_open();
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    bed_open();
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void test_L07_a_missing_ledger_is_refused_when_the_settings_say_so(void **state)
{
    (void)state;
    bed.options.is_missing_refused = true;
    assert_refused_with("no ledger in");
    bed.options.is_missing_refused = false;
    bed_open();
    bed_close();
    bed.options.is_missing_refused = true;
    bed_open();
}

static void test_L07_an_empty_file_is_no_new_ledger(void **state)
{
    char path[160];
    (void)state;
    bed_path("ledger.mdb", path);
    close(open(path, O_WRONLY | O_CREAT, 0600));
    assert_refused_with("no ledger of sinkonce, or damaged");
}

static void test_L07_what_an_unfinished_creation_left_is_thrown_away(void **state)
{
    char path[160];
    struct stat file;
    (void)state;
    bed_path("ledger.mdb.new", path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "half a page", 11), 11);
    close(fd);
    bed_open();
    assert_int_not_equal(stat(path, &file), 0);
    desk_offer(&bed.desk, "orders", 0, 1, 1, MARK_NONE, OUTCOME_APPLIED);
}

static void test_a_foreign_file_is_refused(void **state)
{
    char path[160];
    static char noise[20000];
    (void)state;
    memset(noise, 'n', sizeof noise);
    bed_path("ledger.mdb", path);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, noise, sizeof noise), sizeof noise);
    close(fd);
    assert_refused_with("no ledger of sinkonce, or damaged");
}

static void test_a_folder_or_a_device_is_no_ledger(void **state)
{
    char path[160];
    (void)state;
    bed_path("ledger.mdb", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused_with("no ledger of sinkonce, or damaged");
    assert_int_equal(rmdir(path), 0);
}

static void test_names_beyond_their_bounds_are_refused_in_words(void **state)
{
    static char name[PATH_MAX + 1];
    (void)state;
    memset(name, 'n', sizeof name - 1);
    bed.options.folder = name;
    assert_refused_with("the name of the data folder is too long");
    bed.options.folder = bed.folder;
    name[SCOPE_BYTES_MAX + 1] = '\0';
    bed.options.scope = name;
    assert_refused_with("the scope is longer than 255 bytes");
    name[SCOPE_BYTES_MAX] = '\0';
    bed_open(); /* this one is not */
}

static void test_a_file_cut_short_is_refused_and_kills_nobody(void **state)
{
    char path[160];
    (void)state;
    bed_open();
    for (int64_t i = 0; i < 200; i++)
        desk_offer(&bed.desk, "orders", (int32_t)i, i * 7, 1, mark_of_hash(5), OUTCOME_APPLIED);
    bed_close();
    bed_path("ledger.mdb", path);
    assert_int_equal(truncate(path, 3 * 4096), 0);
    assert_int_equal(bed_try_open(), STORE_UNREADABLE);
    assert_true(strlen(bed.why) > 20);
}

static void test_Z12_another_scope_is_refused_with_both_names(void **state)
{
    (void)state;
    bed_open();
    bed_close();
    bed.options.scope = "orders->shipping";
    assert_refused_with("\"orders->billing\"");
    assert_non_null(strstr(bed.why, "\"orders->shipping\""));
}

static void open_about(const char *target, const char *former)
{
    bed.options.target = target;
    bed.options.former_target = former;
    bed_open();
    bed_close();
}

static void test_Z12_another_target_on_the_same_ledger_is_refused_with_both_names(void **state)
{
    (void)state;
    open_about(NULL, NULL);                /* from before there was a name */
    open_about("https://a.example", NULL); /* takes it */
    open_about("https://a.example", NULL);
    bed.options.target = "https://b.example";
    assert_refused_with("about the target https://a.example");
    assert_non_null(strstr(bed.why, "https://b.example"));
    bed.options.former_target = "https://c.example";
    assert_refused_with("SINKONCE_TARGET_WAS");
}

static void test_Z12_a_target_that_has_a_new_name_keeps_its_ledger(void **state)
{
    (void)state;
    open_about("https://a.example", NULL);
    open_about("https://b.example", "https://a.example");
    open_about("https://b.example", "https://a.example"); /* the setting may stay */
    open_about("https://b.example", NULL);
    open_about(NULL, NULL); /* looks at none, and forgets none */
    bed.options.target = "https://a.example";
    assert_refused_with("about the target https://b.example");
}

static void test_L15_another_version_of_the_library_is_refused_in_words(void **state)
{
    static const unsigned char version_3[] = { 3, 0, 0, 0 };
    (void)state;
    bed_open();
    bed_close();
    patch(16 + 4, version_3,
          sizeof version_3); /* behind the page head and the magic number, in both meta pages */
    patch(4096 + 16 + 4, version_3, sizeof version_3);
    assert_refused_with("another version of the database library");
}

static void test_L15_another_format_of_ours_is_refused_in_words(void **state)
{
    struct env env;
    struct store_row row;
    struct rows rows;
    struct value value;
    struct key key = key_meta(META_STORE);
    bool is_created;
    (void)state;
    assert_int_equal(env_init(&env, &bed.options, 1, &row, &is_created, bed.why, sizeof bed.why),
                     STORE_OPENED);
    assert_true(is_created);
    row.format = FORMAT_VERSION + 1;
    store_row_write(&row, &value);
    assert_int_equal(rows_begin(&rows, env.mdb, env.table), ROWS_OK);
    rows_put(&rows, key_slice(&key), value_slice(&value));
    assert_int_equal(rows_commit(&rows), ROWS_OK);
    env_deinit(&env);
    assert_refused_with("has format 4 and this program reads format 3");
}

static void test_a_damaged_row_is_refused_and_not_asserted(void **state)
{
    struct env env;
    struct store_row row;
    struct rows rows;
    struct key key = key_part(slice_of_text("orders"), 0);
    bool is_created;
    (void)state;
    assert_int_equal(env_init(&env, &bed.options, 1, &row, &is_created, bed.why, sizeof bed.why),
                     STORE_OPENED);
    assert_int_equal(rows_begin(&rows, env.mdb, env.table), ROWS_OK);
    rows_put(&rows, key_slice(&key), slice_of_text("nonsense"));
    assert_int_equal(rows_commit(&rows), ROWS_OK);
    env_deinit(&env);
    assert_refused_with("cannot be read");
}

static void test_L10_network_file_systems_are_known_by_their_numbers(void **state)
{
    (void)state;
    assert_string_equal(env_refused_fs(0x6969), "NFS");
    assert_string_equal(env_refused_fs(0xFF534D42), "CIFS");
    assert_string_equal(env_refused_fs(0xFE534D42), "SMB2");
    assert_string_equal(env_refused_fs(0x65735546), "FUSE");
    assert_null(env_refused_fs(0xEF53));     /* ext4 */
    assert_null(env_refused_fs(0x58465342)); /* xfs */
    assert_null(env_refused_fs(0x01021994)); /* tmpfs */
    assert_null(env_refused_fs(0x794C7630)); /* overlayfs */
}

static void test_a_folder_that_is_not_there_is_refused(void **state)
{
    (void)state;
    bed.options.folder = "/nonexistent/ledger";
    assert_refused_with("the data folder must exist");
}

static void test_files_are_for_their_owner_alone(void **state)
{
    static const char *const names[] = { "ledger.mdb", "sinkonce.lock", "ledger.mdb-lock" };
    (void)state;
    bed_open();
    for (size_t i = 0; i < 3; i++) {
        char path[160];
        struct stat file;
        bed_path(names[i], path);
        assert_int_equal(stat(path, &file), 0);
        assert_int_equal(file.st_mode & 0777, 0600);
    }
}

/* ---- what a restart keeps --------------------------------------------------------------------------------------- */

static void test_C2_C3_what_was_claimed_when_the_process_ended_is_in_doubt(void **state)
{
    (void)state;
    bed_open();
    order_init(&a, "orders", 0, 10, 5);
    a.records[2].mark = mark_of_timestamp(77);
    assert_int_equal(desk_claim(&bed.desk, &a), STORE_OK);
    bed_close();
    bed_open();
    struct question question = { .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.doubts[0].cause, DOUBT_CRASH);
    assert_int_equal(question.ret.doubts[0].first, 10);
    assert_int_equal(question.ret.doubts[0].last, 14);
    uint64_t id = question.ret.doubts[0].id;
    store_question_deinit(&question);
    struct store_figures figures;
    store_figures_get(bed.store, &figures);
    assert_int_equal(figures.boot_count, 2);
    assert_int_equal(figures.in_doubt_records, 5);
    assert_int_equal(figures.doubts_by_cause[DOUBT_CRASH], 5);
    assert_true(figures.in_doubt_oldest_ms > 0);
    bed_close();
    bed_open(); /* and once more: it keeps its name and is no second doubt */
    question = (struct question){ .kind = ASK_DOUBTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.doubts[0].id, id);
    store_question_deinit(&question);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 12, 1, mark_of_timestamp(78), OUTCOME_APPLIED),
                     VERDICT_CONFLICT);
}

static void test_C5_C6_what_was_applied_stays_so_with_its_answer_and_mark(void **state)
{
    char id[40];
    (void)state;
    bed_open();
    snprintf(id, sizeof id, "%s", store_id(bed.store));
    order_init(&a, "orders", 0, 10, 1);
    a.records[0].mark = mark_of_timestamp(1000);
    assert_int_equal(desk_claim(&bed.desk, &a), STORE_OK);
    a.settlement.reply = (struct stored_reply){ 201, slice_of_text("t/x"), slice_of_text("made") };
    assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_OK);
    bed_close();
    bed_open();
    assert_string_equal(store_id(bed.store), id);
    order_init(&b, "orders", 0, 10, 1);
    b.records[0].mark = mark_of_timestamp(1000);
    assert_int_equal(desk_claim(&bed.desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
    assert_int_equal(b.claim.ret_reply.status, 201);
    assert_true(slice_equals_text(b.claim.ret_reply.body, "made"));
    b.records[0].mark = mark_of_timestamp(1001);
    assert_int_equal(desk_claim(&bed.desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_CONFLICT);
    bed_close();
    bed_open(); /* the conflict waits on */
    b.records[0].mark = mark_of_timestamp(1000);
    assert_int_equal(desk_claim(&bed.desk, &b), STORE_OK);
    assert_int_equal(b.verdicts[0], VERDICT_CONFLICT);
    struct question question = { .kind = ASK_CONFLICTS };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1);
    assert_int_equal(question.ret.conflicts[0].offset, 10);
    store_question_deinit(&question);
}

static void test_events_are_kept_in_order_and_the_oldest_go(void **state)
{
    (void)state;
    bed_open();
    for (int64_t i = 0; i < 1100; i++)
        desk_offer(&bed.desk, "orders", 0, i, 1, MARK_NONE, OUTCOME_UNKNOWN);
    bed_close();
    bed_open();
    struct question question = { .kind = ASK_EVENTS, .row_count_max = 10000 };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 1000);
    for (size_t i = 1; i < question.ret_row_count; i++)
        assert_int_equal(question.ret.events[i].id, question.ret.events[i - 1].id + 1);
    assert_int_equal(question.ret.events[999].kind, EVENT_IN_DOUBT);
    assert_int_equal(question.ret.events[999].first, 1099);
    uint64_t after_id = question.ret.events[990].id;
    store_question_deinit(&question);
    question = (struct question){ .kind = ASK_EVENTS, .after_id = after_id };
    assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    assert_int_equal(question.ret_row_count, 9);
    store_question_deinit(&question);
}

static void test_of_the_answers_only_the_last_are_kept(void **state)
{
    (void)state;
    bed.options.replies = 3;
    bed_open();
    for (int64_t i = 0; i < 5; i++) {
        order_init(&a, "orders", 0, i, 1);
        assert_int_equal(desk_claim(&bed.desk, &a), STORE_OK);
        a.settlement.reply = (struct stored_reply){ 202, slice_of_text(""), slice_of_text("") };
        assert_int_equal(desk_settle(&bed.desk, &a, OUTCOME_APPLIED), STORE_OK);
    }
    for (int64_t i = 0; i < 5; i++) {
        order_init(&b, "orders", 0, i, 1);
        assert_int_equal(desk_claim(&bed.desk, &b), STORE_OK);
        assert_int_equal(b.verdicts[0], VERDICT_APPLIED);
        assert_int_equal(b.claim.ret_reply.status, i < 2 ? 0 : 202);
    }
}

static void test_marks_are_kept_for_the_last_offsets_the_first_one_and_samples(void **state)
{
    (void)state;
    bed.options.marks = 1024;
    bed_open();
    for (int64_t first = 0; first < 100000; first += 1000)
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, first, 1000, mark_of_hash(1000), OUTCOME_APPLIED),
                         VERDICT_NEW);
    record_mark wrong = mark_of_hash(7777777);
    assert_int_equal(desk_offer(&bed.desk, "orders", 0, 50000, 1, wrong, OUTCOME_APPLIED), VERDICT_APPLIED);
    static const int64_t known[] = { 99999, 98976, 0, 200,
                                     65536 }; /* the last two: the first block, a sample */
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(desk_offer(&bed.desk, "orders", 0, known[i], 1, wrong, OUTCOME_APPLIED),
                         VERDICT_CONFLICT);
        struct question question = { .kind = ASK_CONFLICTS };
        assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
        question.id = question.ret.conflicts[0].id;
        store_question_deinit(&question);
        question.kind = DO_DECIDE;
        assert_int_equal(desk_ask(&bed.desk, &question), STORE_OK);
    }
}

/* ---- L-17 ------------------------------------------------------------------------------------------------------- */

struct note {
    int64_t offset;
    bool is_applied; /* else claimed */
};

/* Claims and applies one record after another and writes down what it was told, until it is killed. */
static void work_until_killed(int notes, int64_t offset)
{
    bed_open();
    for (;; offset++) {
        struct note note = { offset, false };
        order_init(&a, "orders", 0, offset, 1);
        if (desk_claim(&bed.desk, &a) != STORE_OK || write(notes, &note, sizeof note) != sizeof note)
            _exit(1);
        note.is_applied = true;
        if (desk_settle(&bed.desk, &a, OUTCOME_APPLIED) != STORE_OK ||
            write(notes, &note, sizeof note) != sizeof note)
            _exit(1);
    }
}

static void assert_kept(const struct note *note)
{
    enum record_state actual = desk_state(&bed.desk, "orders", 0, note->offset);
    assert_true(actual == RECORD_APPLIED || (!note->is_applied && actual == RECORD_IN_DOUBT));
}

static void test_L17_SIGKILL_at_any_moment_loses_nothing_that_was_told(void **state)
{
    int64_t next_offset = 0;
    unsigned seed = 3;
    (void)state;
    for (int round = 0; round < 8; round++) {
        int notes[2], status;
        assert_int_equal(pipe(notes), 0);
        pid_t child = fork();
        if (child == 0)
            work_until_killed(notes[1], next_offset);
        close(notes[1]);
        static struct note told[4096];
        size_t told_count = 0, stop_at = 1 + (size_t)rand_r(&seed) % 60;
        while (told_count < stop_at && read(notes[0], &told[told_count], sizeof told[0]) == sizeof told[0])
            told_count++;
        usleep((unsigned)rand_r(&seed) % 2000);
        kill(child, SIGKILL);
        while (told_count < 4096 && read(notes[0], &told[told_count], sizeof told[0]) == sizeof told[0])
            told_count++;
        close(notes[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(told_count >= stop_at);
        bed_open();
        for (size_t i = 0; i < told_count; i++)
            assert_kept(&told[i]);
        next_offset = told[told_count - 1].offset + 2;
        bed_close();
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_L09_a_second_opening_in_the_same_process_is_refused),
        TEST(test_L09_a_link_in_another_folder_leads_to_no_second_owner),
        TEST(test_L08_another_process_is_refused_and_a_dead_one_is_no_hindrance),
        TEST(test_L07_a_missing_ledger_is_refused_when_the_settings_say_so),
        TEST(test_L07_an_empty_file_is_no_new_ledger),
        TEST(test_L07_what_an_unfinished_creation_left_is_thrown_away),
        TEST(test_a_foreign_file_is_refused),
        TEST(test_a_folder_or_a_device_is_no_ledger),
        TEST(test_names_beyond_their_bounds_are_refused_in_words),
        TEST(test_a_file_cut_short_is_refused_and_kills_nobody),
        TEST(test_Z12_another_scope_is_refused_with_both_names),
        TEST(test_Z12_another_target_on_the_same_ledger_is_refused_with_both_names),
        TEST(test_Z12_a_target_that_has_a_new_name_keeps_its_ledger),
        TEST(test_L15_another_version_of_the_library_is_refused_in_words),
        TEST(test_L15_another_format_of_ours_is_refused_in_words),
        TEST(test_a_damaged_row_is_refused_and_not_asserted),
        TEST(test_L10_network_file_systems_are_known_by_their_numbers),
        TEST(test_a_folder_that_is_not_there_is_refused),
        TEST(test_files_are_for_their_owner_alone),
        TEST(test_C2_C3_what_was_claimed_when_the_process_ended_is_in_doubt),
        TEST(test_C5_C6_what_was_applied_stays_so_with_its_answer_and_mark),
        TEST(test_events_are_kept_in_order_and_the_oldest_go),
        TEST(test_of_the_answers_only_the_last_are_kept),
        TEST(test_marks_are_kept_for_the_last_offsets_the_first_one_and_samples),
        TEST(test_L17_SIGKILL_at_any_moment_loses_nothing_that_was_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
