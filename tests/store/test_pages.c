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

enum { ROWS = 900, PAGE_BYTES = 4096, FILE_BYTES_MAX = 16 << 20, HEAD_BYTES = 16, META_BYTES = 152 };

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

static int remove_file(void)
{
    char lock[160];
    snprintf(lock, sizeof lock, "%s-lock", path);
    unlink(lock);
    return unlink(path);
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
    return remove_file() == 0 && good_bytes > 0 && good_bytes < sizeof good ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
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

/* ---- numbers of which each is wrong by itself --------------------------------------------------------------------- */

static uint64_t number_at(const char *bytes, size_t at, size_t byte_count)
{
    uint64_t number = 0;
    memcpy(&number, bytes + at, byte_count);
    return number;
}

static void set_number(size_t at, size_t byte_count, uint64_t number)
{
    memcpy(&bad[at], &number, byte_count);
}

/* Where the meta stands that counts; behind it the tree of free pages at 40, that of rows at 88. */
static size_t meta_of(const char *bytes)
{
    return number_at(bytes, 144, 8) < number_at(bytes, PAGE_BYTES + 144, 8) ? PAGE_BYTES : 0;
}

enum { FREE_TREE = 40, ROWS_TREE = 88, LAST_PAGE = 136, TREE_DEPTH = 6, TREE_ENTRIES = 32, TREE_ROOT = 40 };

static size_t root_of(const char *bytes, size_t tree)
{
    return (size_t)number_at(bytes, meta_of(bytes) + tree + TREE_ROOT, 8) * PAGE_BYTES;
}

static size_t node_at(const char *bytes, size_t page, size_t index)
{
    return page + (size_t)number_at(bytes, page + HEAD_BYTES + 2 * index, 2);
}

/* The place of the first leaf of the rows. */
static size_t first_leaf(const char *bytes)
{
    size_t page = root_of(bytes, ROWS_TREE);
    while (number_at(bytes, page + 10, 2) == 1) /* a branch: down its first child */
        page = (size_t)number_at(bytes, node_at(bytes, page, 0), 4) * PAGE_BYTES;
    return page;
}

static void assert_damaged(const char *words, size_t byte_count)
{
    if (check(bad, byte_count) != PAGES_DAMAGED)
        fail_msg("not noticed: %s", words);
    memcpy(bad, good, good_bytes);
}

static void test_numbers_of_a_meta_that_cannot_be_are_damage(void **state)
{
    size_t meta = meta_of(good), last = (size_t)number_at(good, meta + LAST_PAGE, 8);
    (void)state;
    memcpy(bad, good, good_bytes);
    assert_int_equal(check(bad, good_bytes), PAGES_SOUND);
    static const uint32_t sizes[] = { 0, 512, 5000, 65536 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        set_number(40, 4, sizes[i]);
        assert_damaged("a size that no page has", good_bytes);
    }
    set_number(PAGE_BYTES + 40, 4, 8192);
    assert_damaged("two metas with pages of two sizes", good_bytes);
    set_number(meta + LAST_PAGE, 8, 0);
    assert_damaged("no pages behind the metas", good_bytes);
    set_number(meta + LAST_PAGE, 8, UINT64_MAX);
    assert_damaged("more pages than any file has", good_bytes);
    set_number(meta + LAST_PAGE, 8, last - 1);
    assert_damaged("a page behind the last", good_bytes);
    static const size_t trees[] = { FREE_TREE, ROWS_TREE };
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        size_t tree = meta + trees[i];
        set_number(tree + 4, 2, 4);
        assert_damaged("keys in another order", good_bytes);
        set_number(tree + TREE_DEPTH, 2, 0);
        assert_damaged("a root without depth", good_bytes);
        set_number(tree + TREE_DEPTH, 2, 33);
        assert_damaged("deeper than the library can go", good_bytes);
        set_number(tree + TREE_ROOT, 8, UINT64_MAX);
        assert_damaged("a depth without a root", good_bytes);
        set_number(tree + TREE_ROOT, 8, UINT64_MAX);
        set_number(tree + TREE_DEPTH, 2, 0);
        assert_damaged("entries without a root", good_bytes);
        set_number(tree + TREE_ROOT, 8, 1);
        assert_damaged("a meta as a root", good_bytes);
        for (size_t count = 8; count <= TREE_ENTRIES; count += 8) {
            set_number(tree + count, 8, number_at(good, tree + count, 8) + 1);
            assert_damaged("one more than there are", good_bytes);
        }
    }
}

static void test_numbers_of_a_page_that_cannot_be_are_damage(void **state)
{
    size_t root = root_of(good, ROWS_TREE), leaf = first_leaf(good), node = node_at(good, leaf, 0);
    uint64_t lower = number_at(good, leaf + 12, 2), upper = number_at(good, leaf + 14, 2);
    (void)state;
    memcpy(bad, good, good_bytes);
    assert_int_equal(number_at(good, leaf + 10, 2), 2);
    set_number(leaf + 12, 2, HEAD_BYTES);
    assert_damaged("a leaf without nodes", good_bytes);
    set_number(leaf + 12, 2, lower + 1);
    assert_damaged("half a node's place", good_bytes);
    set_number(leaf + 12, 2, upper + 2);
    assert_damaged("places that reach into the nodes", good_bytes);
    set_number(leaf + 14, 2, PAGE_BYTES + 1);
    assert_damaged("nodes behind the page", good_bytes);
    set_number(leaf + HEAD_BYTES, 2, upper - 2);
    assert_damaged("a node before the others", good_bytes);
    set_number(leaf + HEAD_BYTES, 2, number_at(good, leaf + HEAD_BYTES, 2) + 1);
    assert_damaged("a node at an odd place", good_bytes);
    set_number(leaf + HEAD_BYTES, 2, PAGE_BYTES - 2);
    assert_damaged("a node whose head reaches out of the page", good_bytes);
    set_number(node + 4, 2, 2);
    assert_damaged("a node of another kind", good_bytes);
    set_number(node + 6, 2, 0);
    assert_damaged("an empty key", good_bytes);
    set_number(node + 6, 2, 512);
    assert_damaged("a key longer than any", good_bytes);
    set_number(node_at(good, leaf, 1) + 6, 2, 511);
    set_number(node_at(good, leaf, 1), 4, PAGE_BYTES - 100);
    assert_damaged("a value that reaches out of the page", good_bytes);
    set_number(root + 12, 2, HEAD_BYTES + 2);
    assert_damaged("a branch with one child", good_bytes);
    set_number(node_at(good, root, 0), 4, 1);
    assert_damaged("a meta as a child", good_bytes);
    set_number(node_at(good, root, 1), 4, number_at(good, node_at(good, root, 0), 4));
    assert_damaged("the same child twice", good_bytes);
    set_number(node_at(good, root, 1) + 6, 2, 0);
    assert_damaged("a branch without a key between two children", good_bytes);
    set_number(root + HEAD_BYTES, 2, PAGE_BYTES - 2);
    assert_damaged("a branch whose first node is not in it", good_bytes);
    set_number(root + HEAD_BYTES + 2, 2, PAGE_BYTES - 2);
    assert_damaged("a branch whose second node is not in it", good_bytes);
}

/* Row 0 has a value with pages of its own. */
static void test_pages_of_a_long_value_that_cannot_be_are_damage(void **state)
{
    size_t leaf = first_leaf(good), node = node_at(good, leaf, 0);
    size_t place = node + 8 + (size_t)number_at(good, node + 6, 2);
    uint64_t first = number_at(good, place, 8), last = number_at(good, meta_of(good) + LAST_PAGE, 8);
    (void)state;
    memcpy(bad, good, good_bytes);
    assert_int_equal(number_at(good, node + 4, 2), 1);
    set_number(place, 8, 1);
    assert_damaged("a meta as a value", good_bytes);
    set_number(place, 8, last + 1);
    assert_damaged("a value behind the last page", good_bytes);
    set_number(place, 8, last);
    assert_damaged("a value that goes on behind the last page", good_bytes);
    set_number(place, 8, leaf / PAGE_BYTES);
    assert_damaged("a value on a page of the tree", good_bytes);
    set_number((size_t)first * PAGE_BYTES, 8, first + 1);
    assert_damaged("a page that is another", good_bytes);
    set_number((size_t)first * PAGE_BYTES + 10, 2, 2);
    assert_damaged("a leaf as a value", good_bytes);
    set_number((size_t)first * PAGE_BYTES + 12, 4, 4);
    assert_damaged("more pages than the value needs", good_bytes);
}

/* A file whose list of free pages has pages of its own; returns its size. */
static size_t make_long_list(char *bytes)
{
    snprintf(path, sizeof path, "%s/list", folder);
    MDB_env *mdb = library_open(path, 0);
    for (int first = 0; first < 12500; first += 2500) /* every 50th value has three pages */
        write_rows(mdb, first, first + 2500, false);
    write_rows(mdb, 50, 12500, true);
    write_rows(mdb, 0, 1, false);
    mdb_env_close(mdb);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t byte_count = fread(bytes, 1, FILE_BYTES_MAX, file);
    fclose(file);
    assert_int_equal(remove_file(), 0);
    return byte_count;
}

static void assert_list_damaged(const char *words, const char *list, size_t byte_count)
{
    if (check(bad, byte_count) != PAGES_DAMAGED)
        fail_msg("not noticed: %s", words);
    memcpy(bad, list, byte_count);
}

static void test_lists_of_free_pages_that_cannot_be_are_damage(void **state)
{
    static char list[FILE_BYTES_MAX];
    size_t byte_count = make_long_list(list), page = root_of(list, FREE_TREE), place = 0;
    (void)state;
    memcpy(bad, list, byte_count);
    assert_int_equal(check(list, byte_count), PAGES_SOUND);
    assert_int_equal(number_at(list, page + 10, 2), 2);
    size_t count = (size_t)(number_at(list, page + 12, 2) - HEAD_BYTES) / 2, node = 0;
    for (size_t i = 0; i < count && place == 0; i++) {
        node = node_at(list, page, i);
        if (number_at(list, node + 4, 2) == 1)
            place = (size_t)number_at(list, node + 16, 8) * PAGE_BYTES + HEAD_BYTES;
    }
    assert_true(place > 0); /* the list that has pages of its own: a count, then numbers, descending */
    set_number(place, 8, number_at(list, node, 4) / 8);
    assert_list_damaged("a list that is longer than its value", list, byte_count);
    set_number(place + 16, 8, number_at(list, place + 8, 8));
    assert_list_damaged("the same page twice", list, byte_count);
    set_number(place + 8, 8, number_at(list, place + 8, 8) + 100000);
    assert_list_damaged("a free page behind the last", list, byte_count);
    set_number(node, 4, 4);
    set_number(node + 4, 2, 0);
    assert_list_damaged("a list without a count", list, byte_count);
    set_number(node + 6, 2, 4);
    assert_list_damaged("a list under half a number", list, byte_count);
    set_number(page + 10, 2, 1);
    assert_list_damaged("a branch where a leaf belongs", list, byte_count);
    set_number(meta_of(list) + FREE_TREE + TREE_DEPTH, 2, 2);
    assert_list_damaged("a leaf where a branch belongs", list, byte_count);
}

/* ---- what a disk may do ------------------------------------------------------------------------------------------ */

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
        cmocka_unit_test(test_numbers_of_a_meta_that_cannot_be_are_damage),
        cmocka_unit_test(test_numbers_of_a_page_that_cannot_be_are_damage),
        cmocka_unit_test(test_pages_of_a_long_value_that_cannot_be_are_damage),
        cmocka_unit_test(test_lists_of_free_pages_that_cannot_be_are_damage),
        cmocka_unit_test(test_random_changes_are_found_or_harmless),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
