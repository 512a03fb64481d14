/*
 * test_pages.c - a file of the database library in which numbers have changed: what pages_check() lets pass, the library
 * reads to its end and finds all rows in.
 *
 * SINKONCE_SEEDS is the number of random changes (SINKONCE_SEED the first).
 */
#include "pages.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <lmdb.h>
#include <cmocka.h>

enum { ROWS = 900, PAGE_BYTES = 4096, FILE_BYTES_MAX = 4 << 20, HEAD_BYTES = 16, META_BYTES = 152 };

static char folder[64], path[128], good[FILE_BYTES_MAX], bad[FILE_BYTES_MAX];
static size_t good_bytes;

/* ---- the good file ---------------------------------------------------------------------------------------------- */

static MDB_env *library_open(const char *file, unsigned flags)
{
    MDB_env *mdb;
    assert_int_equal(mdb_env_create(&mdb), 0);
    assert_int_equal(mdb_env_set_mapsize(mdb, FILE_BYTES_MAX), 0);
    assert_int_equal(mdb_env_open(mdb, file, MDB_NOSUBDIR | flags, 0600), 0);
    return mdb;
}

static size_t value_bytes_of(int row)
{
    return row % 50 == 0 ? 9000 : (size_t)(row % 7) * 60;
}

/* Rows of all sizes in a tree of three levels; what a second transaction deletes again leaves free pages. */
static void write_rows(MDB_env *mdb, int first, int last, bool is_deleted)
{
    static char value_bytes[9000];
    MDB_txn *txn;
    MDB_dbi table;
    assert_int_equal(mdb_txn_begin(mdb, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &table), 0);
    for (int row = first; row < last; row++) {
        char key_bytes[200];
        MDB_val key = { (size_t)snprintf(key_bytes, sizeof key_bytes, "%06d%0*d", row, 40 + row % 90, 0),
                        key_bytes };
        MDB_val value = { value_bytes_of(row), value_bytes };
        assert_int_equal(is_deleted ? mdb_del(txn, table, &key, NULL) : mdb_put(txn, table, &key, &value, 0),
                         0);
    }
    assert_int_equal(mdb_txn_commit(txn), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sinkonce-pages-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/good", folder);
    MDB_env *mdb = library_open(path, 0);
    write_rows(mdb, 0, ROWS + 300, false);
    write_rows(mdb, ROWS, ROWS + 300, true);
    write_rows(mdb, 0, 1, false);
    mdb_env_close(mdb);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    good_bytes = fread(good, 1, sizeof good, file);
    fclose(file);
    return good_bytes > 0 && good_bytes < sizeof good ? 0 : -1;
}

static int teardown(void **state)
{
    char lock[160];
    (void)state;
    snprintf(lock, sizeof lock, "%s-lock", path);
    unlink(lock);
    unlink(path);
    return rmdir(folder);
}

/* ---- what is said of a changed one ------------------------------------------------------------------------------ */

static int file_of(const char *bytes, size_t byte_count)
{
    int fd = memfd_create("pages", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, byte_count), byte_count);
    return fd;
}

static enum pages_status check(const char *bytes, size_t byte_count)
{
    int fd = file_of(bytes, byte_count);
    enum pages_status status = pages_check(fd);
    close(fd);
    return status;
}

/* The library itself, which must come through. */
static size_t library_count(const char *bytes, size_t byte_count)
{
    char name[64];
    MDB_txn *txn;
    MDB_dbi table;
    MDB_cursor *cursor;
    MDB_val key, value;
    size_t count = 0;
    int fd = file_of(bytes, byte_count);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    MDB_env *mdb = library_open(name, MDB_RDONLY | MDB_NOLOCK);
    assert_int_equal(mdb_txn_begin(mdb, NULL, MDB_RDONLY, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &table), 0);
    assert_int_equal(mdb_cursor_open(txn, table, &cursor), 0);
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        count++;
        for (size_t i = 0; i < value.mv_size; i++)
            count +=
                ((const volatile char *)value.mv_data)[i] != 0 && value.mv_size > 9000; /* touch each byte */
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(mdb);
    close(fd);
    return count;
}

static void test_a_good_file_is_sound_and_another_is_not_ours(void **state)
{
    (void)state;
    assert_int_equal(check(good, good_bytes), PAGES_SOUND);
    assert_int_equal(library_count(good, good_bytes), ROWS);
    memset(bad, 'x', PAGE_BYTES * 3);
    assert_int_equal(check(bad, PAGE_BYTES * 3), PAGES_UNKNOWN);
    assert_int_equal(check(good, PAGE_BYTES), PAGES_UNKNOWN);     /* the second meta is missing */
    assert_int_equal(check(good, 2 * PAGE_BYTES), PAGES_DAMAGED); /* every page is */
    assert_int_equal(pages_check(-1), PAGES_FAILED);
}

static void change(size_t at, char mask)
{
    memcpy(bad, good, good_bytes);
    bad[at] = (char)(bad[at] ^ mask);
}

/* Every byte of every header and of both metas, one bit and all bits. */
static void test_changed_numbers_are_found_or_harmless(void **state)
{
    static const char masks[] = { 1, (char)0x80, (char)0xff };
    size_t found_count = 0, count = 0;
    (void)state;
    for (size_t page = 0; page < good_bytes / PAGE_BYTES; page++) {
        size_t head_bytes = page < 2 ? META_BYTES : HEAD_BYTES + 8;
        for (size_t i = 0; i < head_bytes; i++) {
            change(page * PAGE_BYTES + i, masks[i % sizeof masks]);
            enum pages_status status = check(bad, good_bytes);
            assert_int_not_equal(status, PAGES_FAILED);
            found_count += status != PAGES_SOUND;
            count++;
            if (status == PAGES_SOUND && library_count(bad, good_bytes) != ROWS && page >= 2)
                fail_msg("page %zu, byte %zu: the library finds other rows", page, i);
        }
    }
    assert_true(found_count > count / 3);
}

static unsigned number_from(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_random_changes_are_found_or_harmless(void **state)
{
    unsigned first = number_from("SINKONCE_SEED", 1), count = number_from("SINKONCE_SEEDS", 1500),
             sound_count = 0;
    (void)state;
    for (unsigned seed = first; seed < first + count; seed++) {
        unsigned dice = seed;
        memcpy(bad, good, good_bytes);
        for (int i = rand_r(&dice) % 3; i >= 0; i--) {
            size_t at = 2 * PAGE_BYTES + (size_t)rand_r(&dice) % (good_bytes - 2 * PAGE_BYTES);
            bad[at] = (char)(bad[at] ^ (1 << rand_r(&dice) % 8));
        }
        if (check(bad, good_bytes) == PAGES_SOUND) {
            sound_count++;
            if (library_count(bad, good_bytes) < ROWS)
                fail_msg("seed %u: rows are lost", seed);
        }
    }
    assert_true(sound_count > 0 && sound_count < count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_file_is_sound_and_another_is_not_ours),
        cmocka_unit_test(test_changed_numbers_are_found_or_harmless),
        cmocka_unit_test(test_random_changes_are_found_or_harmless),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
