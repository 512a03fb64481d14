/*
 * test_file_damage.c - F-30: a ledger file in which bytes have changed.  It is refused, or it fails, or it says what it
 * said before; it never takes the process with it, and never says of a record that it was applied when it was not.
 *
 * Each round changes a copy of one good file and opens it in a process of its own, which answers by its exit status.
 * SINKONCE_SEEDS is the number of rounds (SINKONCE_SEED the first).
 */
#include <stdarg.h>
#include <setjmp.h>
#include <assert.h>
#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "bed.h"
#include "chunk.h"
#include "format.h"

enum { FILE_BYTES_MAX = 1 << 20, PAGE_BYTES = 4096, SECTOR_BYTES = 512, PATIENCE_S = 60 };
enum {
    PAGE_FLAGS_AT = 10,
    PAGE_UPPER_AT = 14,
    PAGE_IS_LEAF = 2
}; /* of LMDB's pages: mp_flags, mp_upper, P_LEAF */
enum {
    RAGGED = 0,
    SOLID = 1,
    YOUNG = 2,
    SPARSE_STEP = 7,
    SPARSE_END = 4200,
    SOLID_END = 150000,
    YOUNG_END = 40
};

enum finding { FINE, REFUSED, FAILED, FORGOTTEN, INVENTED, CRASHED, FINDING_COUNT };
static const char *const finding_names[FINDING_COUNT] = {
    "as before", "refused when opened", "failed when asked", "forgotten", "invented", "crashed",
};

static char good[FILE_BYTES_MAX], bad[FILE_BYTES_MAX];
static size_t good_bytes, bad_bytes;
static struct order order;

/* ---- the good ledger -------------------------------------------------------------------------------------------- */

static bool is_applied(int32_t partition, int64_t offset)
{
    switch (partition) {
    case RAGGED:
        return offset < SPARSE_END && offset % SPARSE_STEP == 0;
    case SOLID:
        return offset < SOLID_END;
    default:
        return offset < YOUNG_END;
    }
}

static bool is_open(int32_t partition, int64_t offset)
{
    return partition == YOUNG && offset >= YOUNG_END && offset < YOUNG_END + 5;
}

static void apply_some(int32_t partition, int64_t first, int64_t step, size_t count)
{
    order_init(&order, "orders", partition, 0, 0);
    for (size_t i = 0; i < count; i++)
        order_add(&order, "orders", partition, first + (int64_t)i * step, mark_of_hash((uint64_t)first + i));
    enum store_status status = desk_claim(&bed.desk, &order);
    assert(status == STORE_OK);
    status = desk_settle(&bed.desk, &order, OUTCOME_APPLIED);
    assert(status == STORE_OK);
    order_deinit(&order);
}

/* Without the pages that nobody uses: what is changed then is in use. */
static void compact(const char *from, const char *into)
{
    char from_path[160], into_path[160];
    MDB_env *mdb;
    bed_path(from, from_path);
    bed_path(into, into_path);
    int error = mdb_env_create(&mdb);
    if (error == 0)
        error = mdb_env_open(mdb, from_path, MDB_NOSUBDIR | MDB_RDONLY, 0600);
    if (error == 0)
        error = mdb_env_copy2(mdb, into_path, MDB_CP_COMPACT);
    assert(error == 0);
    mdb_env_close(mdb);
}

static void make_good_ledger(void)
{
    char path[160];
    bed_open();
    for (int64_t first = 0; first < SOLID_END; first += 1000)
        apply_some(SOLID, first, 1, 1000);
    for (int64_t first = 0; first < SPARSE_END; first += SPARSE_STEP * 100)
        apply_some(RAGGED, first, SPARSE_STEP, 100);
    for (int64_t first = 0; first < YOUNG_END; first++)
        apply_some(YOUNG, first, 1, 1);
    desk_offer(&bed.desk, "orders", YOUNG, YOUNG_END, 5, MARK_NONE, OUTCOME_UNKNOWN);
    bed_close();
    compact("ledger.mdb", "ledger.compact");
    bed_path("ledger.compact", path);
    FILE *file = fopen(path, "rb");
    assert(file != NULL);
    good_bytes = fread(good, 1, sizeof good, file);
    assert(good_bytes > 0 && good_bytes < sizeof good);
    fclose(file);
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

static size_t pick(unsigned *seed, size_t below)
{
    return ((size_t)rand_r(seed) << 16 ^ (size_t)rand_r(seed)) % below;
}

static void overwrite(unsigned *seed, size_t at, size_t byte_count, bool is_zero)
{
    for (size_t i = at; i < at + byte_count && i < bad_bytes; i++)
        bad[i] = (char)(is_zero ? 0 : rand_r(seed));
}

static void flip(unsigned *seed)
{
    size_t at = pick(seed, bad_bytes);
    for (size_t tries = 0; tries < 64 && bad[at] == 0; tries++) /* rather where something is */
        at = pick(seed, bad_bytes);
    bad[at] = (char)(bad[at] ^ (1 << pick(seed, 8)));
}

static void damage(unsigned seed)
{
    size_t pages = good_bytes / PAGE_BYTES;
    memcpy(bad, good, good_bytes);
    bad_bytes = good_bytes;
    size_t page = pick(&seed, pages), other = pick(&seed, pages);
    switch (pick(&seed, 8)) {
    case 0: /* the head of a page, where the library keeps its own counts */
        bad[page * PAGE_BYTES + pick(&seed, 48)] ^= (char)(1 << pick(&seed, 8));
        break;
    case 1:
        overwrite(&seed, pick(&seed, bad_bytes / SECTOR_BYTES) * SECTOR_BYTES, SECTOR_BYTES, true);
        break;
    case 2:
        overwrite(&seed, page * PAGE_BYTES, PAGE_BYTES, seed % 2 == 0);
        break;
    case 3:
        memcpy(bad + page * PAGE_BYTES, good + other * PAGE_BYTES, PAGE_BYTES);
        break;
    case 4:
        bad_bytes = pick(&seed, good_bytes);
        break;
    case 5:
        overwrite(&seed, pick(&seed, bad_bytes), 1 + pick(&seed, 16), false);
        break;
    default:
        for (size_t count = 1 + pick(&seed, 4); count > 0; count--)
            flip(&seed);
    }
}

/* ---- one damaged ledger ----------------------------------------------------------------------------------------- */

static void write_bad(void)
{
    char path[160];
    bed_path("ledger.mdb", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert(fd >= 0);
    ssize_t written = write(fd, bad, bad_bytes);
    assert(written == (ssize_t)bad_bytes);
    close(fd);
}

static enum finding compare(int32_t partition, int64_t offset, enum verdict verdict)
{
    bool is_said = verdict == VERDICT_APPLIED;
    if (is_said && !is_applied(partition, offset))
        return INVENTED;
    if (verdict == VERDICT_NEW && (is_applied(partition, offset) || is_open(partition, offset)))
        return FORGOTTEN;
    return FINE;
}

/* As a connector would: one record, claimed; what is new is released again. */
static enum finding claim_one(int32_t partition, int64_t offset)
{
    order_init(&order, "orders", partition, offset, 1);
    if (desk_claim(&bed.desk, &order) != STORE_OK)
        return FAILED;
    if (order.claim.ret_new_count > 0 && desk_settle(&bed.desk, &order, OUTCOME_NOT_APPLIED) != STORE_OK)
        return FAILED;
    return compare(partition, offset, order.verdicts[0]);
}

static enum finding worse(enum finding a, enum finding b)
{
    return a > b ? a : b;
}

/* Every offset of PARTITION against what the ledger says is applied. */
static enum finding compare_intervals(int32_t partition)
{
    static const int64_t ends[] = { SPARSE_END + 100, SOLID_END + 100, YOUNG_END };
    struct question question = {
        .kind = ASK_INTERVALS, .topic = "orders", .partition = partition, .row_count_max = 10000
    };
    enum finding worst = FINE;
    int64_t offset = 0;
    if (desk_ask(&bed.desk, &question) != STORE_OK || question.ret_status == QUESTION_FAILED)
        worst = FAILED;
    for (size_t i = 0; i < question.ret_row_count; i++) {
        const struct interval_row *row = &question.ret.intervals[i];
        for (; offset < row->first && offset < ends[partition]; offset++)
            worst = is_applied(partition, offset) ? worse(worst, FORGOTTEN) : worst;
        for (; offset <= row->last && offset < ends[partition]; offset++)
            worst = row->state == RECORD_APPLIED && !is_applied(partition, offset) ? INVENTED : worst;
        if (row->state == RECORD_APPLIED && row->last >= ends[partition])
            worst = INVENTED;
    }
    store_question_deinit(&question);
    return worst;
}

static enum finding look(unsigned seed)
{
    static const int64_t ends[] = { SPARSE_END, SOLID_END, YOUNG_END };
    enum finding worst = FINE;
    for (int32_t partition = 0; partition < 3; partition++)
        worst = worse(worst, compare_intervals(partition));
    for (int i = 0; i < 20; i++) {
        int32_t partition = (int32_t)pick(&seed, 3);
        int64_t offset = (int64_t)pick(&seed, (size_t)ends[partition] * 5 / 4);
        worst = worse(worst, claim_one(partition, offset));
    }
    return worst;
}

static enum finding open_and_look(unsigned seed)
{
    enum store_open_status status = bed_try_open();
    if (status != STORE_OPENED)
        return REFUSED;
    enum finding finding = look(seed);
    order_deinit(&order);
    bed_close();
    return finding;
}

static enum finding in_a_process(unsigned seed)
{
    static const int deadly[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
    int status;
    fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
            signal(deadly[i], SIG_DFL); /* cmocka would take it for the end of the test */
        alarm(PATIENCE_S);
        _exit((int)open_and_look(seed));
    }
    pid_t ended = waitpid(child, &status, 0);
    assert(ended == child);
    return WIFEXITED(status) && WEXITSTATUS(status) < CRASHED ? (enum finding)WEXITSTATUS(status) : CRASHED;
}

static unsigned number_from(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void test_F30_a_damaged_file_takes_nothing_with_it_and_invents_nothing(void **state)
{
    unsigned first = number_from("SINKONCE_SEED", 1), count = number_from("SINKONCE_SEEDS", 150);
    unsigned found[FINDING_COUNT] = { 0 };
    (void)state;
    make_good_ledger();
    for (unsigned seed = first; seed < first + count; seed++) {
        damage(seed);
        write_bad();
        enum finding finding = in_a_process(seed);
        found[finding]++;
        if (finding >= FORGOTTEN)
            printf("seed %u: %s\n", seed, finding_names[finding]);
    }
    for (int i = 0; i < FINDING_COUNT; i++)
        printf("%6u %s\n", found[i], finding_names[i]);
    assert_int_equal(found[CRASHED] + found[INVENTED] + found[FORGOTTEN], 0);
}

/* Where the file keeps what is applied of the ragged partition. */
static char *ragged_set(size_t *ret_bytes)
{
    static struct chunk chunk;
    static uint8_t bytes[CHUNK_BYTES_MAX];
    chunk_init(&chunk);
    for (uint16_t offset = 0; offset < SPARSE_END; offset += SPARSE_STEP)
        chunk_add(&chunk, offset, offset);
    *ret_bytes = chunk_write(&chunk, bytes);
    char *found = memmem(good, good_bytes, bytes, *ret_bytes);
    assert(found != NULL);
    return found;
}

/* Each of these bits is a record that would be taken for applied, or sent again. */
static void test_F30_a_bit_that_turned_in_an_applied_set_is_no_answer(void **state)
{
    size_t byte_count;
    (void)state;
    make_good_ledger();
    size_t at = (size_t)(ragged_set(&byte_count) - good);
    for (size_t i = 0; i < byte_count; i += byte_count / 40) {
        memcpy(bad, good, good_bytes);
        bad_bytes = good_bytes;
        bad[at + i] = (char)(bad[at + i] ^ (1 << i % 8));
        write_bad();
        enum finding finding = in_a_process(1);
        if (finding != FAILED && finding != REFUSED)
            fail_msg("byte %zu: %s", i, finding_names[finding]);
    }
}

static bool is_row_key(const char *at, size_t byte_count)
{
    size_t place = (size_t)(at - good) % PAGE_BYTES;
    const char *page = at - place;
    uint16_t rows_from, key_bytes;
    memcpy(&rows_from, page + PAGE_UPPER_AT, sizeof rows_from);
    memcpy(&key_bytes, at - sizeof key_bytes, sizeof key_bytes);
    return (page[PAGE_FLAGS_AT] & PAGE_IS_LEAF) && place >= rows_from && key_bytes == byte_count;
}

/* The key of a row, or NULL.  Only where a leaf has its rows, and behind its length, is it one: branches hold copies,
 * the gap of a page holds what stood there before, and the copies and the remains may be of rows that are gone. */
static const char *row_key_in_file(const struct key *key)
{
    const char *end = good + good_bytes, *at = memmem(good, good_bytes, key->bytes, key->byte_count);
    while (at != NULL && !is_row_key(at, key->byte_count))
        at = memmem(at + 1, (size_t)(end - at - 1), key->bytes, key->byte_count);
    return at;
}

/* A row whose key has changed is not found where it should be: it must not be taken for one that never was. */
static void test_F30_a_bit_that_turned_in_the_key_of_an_applied_set_forgets_nothing(void **state)
{
    unsigned key_count = 0;
    (void)state;
    make_good_ledger();
    for (size_t i = 0; i < 6; i++) {
        struct key key = key_pair(i < 3 ? TABLE_RUNS : TABLE_FULL, (uint32_t)(1 + i % 3), 0);
        const char *at = row_key_in_file(&key);
        key_count += at != NULL;
        for (size_t bit = 0; at != NULL && bit < 8 * key.byte_count; bit += 7) {
            memcpy(bad, good, good_bytes);
            bad_bytes = good_bytes;
            bad[(size_t)(at - good) + bit / 8] ^= (char)(1 << bit % 8);
            write_bad();
            enum finding finding = in_a_process((unsigned)bit);
            if (finding >= FORGOTTEN)
                fail_msg("row %zu, bit %zu: %s", i, bit, finding_names[finding]);
        }
    }
    assert_int_equal(key_count, 3); /* RUNS of two partitions, FULL of the third */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_F30_a_damaged_file_takes_nothing_with_it_and_invents_nothing,
                                        bed_setup, bed_teardown),
        cmocka_unit_test_setup_teardown(test_F30_a_bit_that_turned_in_an_applied_set_is_no_answer, bed_setup,
                                        bed_teardown),
        cmocka_unit_test_setup_teardown(
            test_F30_a_bit_that_turned_in_the_key_of_an_applied_set_forgets_nothing, bed_setup, bed_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
