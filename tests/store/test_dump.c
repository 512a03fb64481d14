/*
 * test_dump.c - a ledger as lines and back: whatever has happened to it, the ledger made of its lines has the same lines,
 * and both hold together.  A line that is changed, left out or moved is refused.
 *
 * One seed is one ledger; SINKONCE_SEEDS says how many.
 */
#include "dump.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "rows_mem.h"
#include "verify.h"

enum { RECORDS_MAX = 300, LINES_MAX = 6000, STEPS = 120, FAR_OFFSETS = 900000 };

struct lines {
    char *at[LINES_MAX]; /* owned */
    size_t count;
};

static unsigned seed;
static struct record records[RECORDS_MAX];
static struct slice contexts[RECORDS_MAX];
static enum verdict verdicts[RECORDS_MAX];
static enum outcome outcomes[RECORDS_MAX];
static struct claim claim;
static struct lines before, after;
static char why[128];                                                      /* of the last restore */
static uint64_t folded_count, conflict_count, open_count, forgotten_count; /* the runs must do something */

static unsigned pick(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static void on_claim(void *shell, struct claim *answered, enum store_status status)
{
    (void)shell;
    (void)status;
    free(answered->reply_bytes);
    answered->reply_bytes = NULL;
}

static struct machine *make_machine(uint64_t window, uint32_t marks)
{
    struct machine_settings settings = { .policy = POLICY_HOLD,
                                         .in_doubt_max = UINT64_MAX,
                                         .marks = marks,
                                         .is_identity_checked = true,
                                         .window = window,
                                         .replies = 20,
                                         .reply_bytes_max = 100 };
    struct machine *machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert_non_null(machine);
    return machine;
}

static void begin(struct machine *machine, struct rows *rows, uint64_t now_ms, enum machine_mode mode)
{
    rows_mem_begin(rows);
    machine_begin(machine, rows, (struct machine_time){ now_ms, now_ms }, mode);
}

static void end(struct machine *machine, struct rows *rows)
{
    machine_end(machine);
    machine_keep(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
}

/* ---- a ledger to which much has happened ------------------------------------------------------------------------ */

static void offer(struct machine *machine, int32_t partition, int64_t first, size_t count)
{
    unsigned outcome = partition == 2 ? 0 : pick(12); /* of one partition all is applied: it may be folded */
    for (size_t i = 0; i < count; i++) {
        int64_t offset = first + (int64_t)i;
        record_mark mark =
            pick(8) == 0 ? MARK_NONE
                         : mark_of_hash((uint64_t)offset * 2 + (partition < 2 && pick(300) == 0 ? 2 : 0));
        records[i] = (struct record){ { slice_of_text("orders"), partition, offset }, mark };
        contexts[i] = pick(3) == 0 ? slice_of_text("{\"id\":7}") : slice_of(NULL, 0);
        outcomes[i] = outcome < 8 ? OUTCOME_APPLIED : (enum outcome)pick(4);
    }
    claim = (struct claim){
        .records = records, .record_count = count, .contexts = contexts, .ret_verdicts = verdicts
    };
    machine_claim(machine, &claim);
    struct settlement settlement = { .claim_id = claim.ret_claim_id,
                                     .records = records,
                                     .verdicts = verdicts,
                                     .outcomes = outcomes,
                                     .record_count = count,
                                     .cause = (enum doubt_cause)pick(DOUBT_COUNT),
                                     .detail = "status 500 \"\xc3\xa9\xc3",
                                     .reply = { 201, slice_of_text("t"), slice_of_text("b") } };
    if (claim.ret_new_count > 0 && outcome != 11) /* 11: it stays in flight */
        machine_settle(machine, &settlement);
}

static void change(struct machine *machine, struct question question)
{
    snprintf(question.topic, sizeof question.topic, "orders");
    machine_ask(machine, &question);
    question.expect_count = question.ret_count;
    if (question.ret_status == QUESTION_MISMATCH && question.kind != DO_REPLAY_OPEN)
        machine_ask(machine, &question);
    if (question.kind == DO_FORGET && question.ret_status == QUESTION_OK)
        forgotten_count += question.ret_count;
}

static void decide(struct machine *machine)
{
    struct question list = { .kind = ASK_CONFLICTS, .row_count_max = 10 };
    machine_ask(machine, &list);
    conflict_count += list.ret_row_count;
    for (size_t i = 0; i < list.ret_row_count; i++)
        if (pick(2) == 0)
            change(machine, (struct question){ .kind = DO_DECIDE,
                                               .id = list.ret.conflicts[i].id,
                                               .is_new_topic = pick(2) == 0 });
    free(list.ret.any);
}

static void one_step(struct machine *machine, uint64_t now_ms)
{
    int32_t partition = (int32_t)pick(3);
    /* one partition comes far in strides and not by leaps: it may be folded */
    int64_t far = partition == 2 ? (int64_t)now_ms * (FAR_OFFSETS / STEPS) : (int64_t)pick(FAR_OFFSETS);
    int64_t first = pick(3) == 0 ? far : (int64_t)pick(400) * (int64_t)(1 + pick(40));
    unsigned event = pick(30);
    if (event < 22)
        offer(machine, partition, first, 1 + pick(RECORDS_MAX));
    else if (event < 25)
        decide(machine);
    else if (event < 26)
        change(machine, (struct question){ .kind = DO_RESOLVE,
                                           .partition = partition,
                                           .first = first,
                                           .last = first + 100000,
                                           .is_applied = pick(2) == 0 });
    else if (event < 28)
        change(machine, (struct question){ .kind = DO_REPLAY_OPEN,
                                           .partition = partition,
                                           .first = first,
                                           .last = first + 50000,
                                           .until_ms = now_ms + 20 });
    else if (event < 29 || pick(4) != 0)
        change(machine, (struct question){ .kind = DO_FORGET,
                                           .partition = partition,
                                           .first = first,
                                           .last = first + (int64_t)pick(140000) });
    else
        change(machine,
               (struct question){ .kind = DO_FORGET, .partition = partition, .first = -1, .last = -1 });
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static bool keep_line(void *context, struct slice line)
{
    struct lines *lines = context;
    assert_true(lines->count < LINES_MAX);
    lines->at[lines->count] = strndup(line.at, line.byte_count);
    assert_non_null(lines->at[lines->count++]);
    return true;
}

static void drop_lines(struct lines *lines)
{
    for (size_t i = 0; i < lines->count; i++)
        free(lines->at[i]);
    lines->count = 0;
}

static bool print_finding(void *context, struct slice line)
{
    (void)context;
    print_message("%.*s\n", (int)line.byte_count, line.at);
    return true;
}

static void assert_sound(struct rows *rows)
{
    struct machine *machine = make_machine(INT64_MAX, UINT32_MAX);
    rows_mem_begin(rows);
    machine_load(machine, rows, 1);
    assert_int_equal(rows_status(rows), ROWS_OK);
    begin(machine, rows, 0, MACHINE_READ);
    assert_int_equal(verify(machine, print_finding, NULL), 0);
    machine_end(machine);
    machine_free(machine);
}

static void dump_rows(struct rows *rows, struct lines *lines)
{
    struct store_row row = { FORMAT_VERSION, "0123456789abcdef0123456789abcdef",
                             1700000000000,  12,
                             "a->\"b\"",     "" };
    struct machine *machine = make_machine(INT64_MAX, UINT32_MAX);
    drop_lines(lines);
    rows_mem_begin(rows);
    machine_load(machine, rows, 1);
    begin(machine, rows, 0, MACHINE_READ);
    assert_true(dump(machine, &row, keep_line, lines));
    machine_end(machine);
    machine_free(machine);
}

/* False: a line was refused, or the end was missing. */
static bool restore_rows(struct rows *rows, const struct lines *lines)
{
    struct machine *machine = make_machine(INT64_MAX, UINT32_MAX);
    struct restore *restore = restore_new(machine, "a->\"b\"");
    bool is_good = true;
    assert_non_null(restore);
    begin(machine, rows, 0, MACHINE_OPEN);
    for (size_t i = 0; is_good && i < lines->count; i++)
        is_good = restore_line(restore, slice_of_text(lines->at[i]));
    if (!is_good)
        assert_int_not_equal(restore_why(restore)[0], '\0');
    snprintf(why, sizeof why, "%s", restore_why(restore));
    is_good = is_good && restore_is_whole(restore);
    machine_end(machine);
    assert_int_equal(rows_status(rows), ROWS_OK);
    restore_free(restore);
    machine_free(machine);
    return is_good;
}

static size_t count_kind(const struct lines *lines, const char *kind)
{
    size_t count = 0;
    char start[32];
    snprintf(start, sizeof start, "{\"kind\":\"%s\"", kind);
    for (size_t i = 0; i < lines->count; i++)
        count += strncmp(lines->at[i], start, strlen(start)) == 0;
    return count;
}

/* ---- properties ------------------------------------------------------------------------------------------------- */

static struct rows *make_rows(unsigned first_seed)
{
    static const uint64_t windows[] = { 65536, 200000, (uint64_t)1 << 40 };
    struct rows *rows = rows_mem_new();
    seed = first_seed;
    struct machine *machine = make_machine(windows[pick(3)], pick(2) == 0 ? 1000 : 65536);
    rows_mem_begin(rows);
    machine_load(machine, rows, 1);
    for (uint64_t step = 1; step <= STEPS; step++) {
        begin(machine, rows, step, MACHINE_OPEN);
        one_step(machine, step);
        end(machine, rows);
    }
    machine_free(machine);
    return rows;
}

static void assert_same_lines(void)
{
    assert_int_equal(after.count, before.count);
    for (size_t i = 0; i < before.count; i++)
        assert_string_equal(after.at[i], before.at[i]);
}

static void test_L15_a_ledger_made_of_its_lines_has_the_same_lines(void **state)
{
    const char *seeds = getenv("SINKONCE_SEEDS");
    unsigned seed_count = seeds == NULL ? 40 : (unsigned)strtoul(seeds, NULL, 10);
    (void)state;
    for (unsigned i = 1; i <= seed_count; i++) {
        struct rows *rows = make_rows(i), *twin = rows_mem_new();
        print_message("seed %u\n", i);
        assert_sound(rows);
        dump_rows(rows, &before);
        folded_count += count_kind(&before, "folded");
        open_count += count_kind(&before, "open");
        if (!restore_rows(twin, &before))
            fail_msg("%s", why);
        assert_sound(twin);
        dump_rows(twin, &after);
        assert_same_lines();
        rows_mem_free(rows);
        rows_mem_free(twin);
    }
    print_message("%llu folded, %llu open, %llu conflicts, %llu forgotten\n",
                  (unsigned long long)folded_count, (unsigned long long)open_count,
                  (unsigned long long)conflict_count, (unsigned long long)forgotten_count);
    assert_true(folded_count > seed_count / 3 && open_count > seed_count && forgotten_count > seed_count);
    assert_true(conflict_count > seed_count / 8);
}

static bool is_taken(const struct lines *lines)
{
    struct rows *rows = rows_mem_new();
    bool is_good = restore_rows(rows, lines);
    rows_mem_free(rows);
    return is_good;
}

static void test_lines_that_are_missing_or_twice_are_noticed(void **state)
{
    struct rows *rows = make_rows(3);
    (void)state;
    dump_rows(rows, &before);
    rows_mem_free(rows);
    assert_true(is_taken(&before));
    for (size_t i = 0; i < before.count; i += 1 + before.count / 60) {
        static struct lines less, more;
        less = more = before;
        memmove(&less.at[i], &less.at[i + 1], (less.count - i - 1) * sizeof less.at[0]);
        less.count--;
        assert_false(is_taken(&less));
        memmove(&more.at[i + 1], &more.at[i], (more.count - i) * sizeof more.at[0]);
        more.count++;
        assert_false(is_taken(&more));
    }
}

/* A bit that is flipped may give another line that is just as good: a time, a mark, a letter of a detail.  What is taken
 * must hold together all the same. */
static void test_lines_with_flipped_bits_are_refused_or_make_a_sound_ledger(void **state)
{
    size_t taken_count = 0, refused_count = 0;
    struct rows *rows = make_rows(5);
    (void)state;
    dump_rows(rows, &before);
    rows_mem_free(rows);
    for (int round = 0; round < 400; round++) {
        char *line = before.at[pick((unsigned)before.count)];
        size_t at = pick((unsigned)strlen(line));
        char kept = line[at];
        line[at] = (char)(kept ^ (1 << pick(7)));
        struct rows *twin = rows_mem_new();
        bool is_good = line[at] != '\0' && restore_rows(twin, &before);
        taken_count += is_good;
        refused_count += !is_good;
        if (is_good)
            assert_sound(twin);
        rows_mem_free(twin);
        line[at] = kept;
    }
    assert_true(refused_count > 100 && taken_count > 0);
}

#define HEAD_OF(id, scope) HEAD_AS("1", id, scope)
#define HEAD_AS(version, id, scope)                                                                          \
    "{\"kind\":\"ledger\",\"version\":" version ",\"id\":\"" id                                              \
    "\",\"created_ms\":1,\"boots\":1,\"scope\":\"" scope                                                     \
    "\",\"next_doubt\":9,\"next_event\":9,\"next_conflict\":9,\"next_replay\":9}"
#define HEAD HEAD_OF("0123456789abcdef0123456789abcdef", "a->\\\"b\\\"")
#define PARTITION_OF(topic, seen_first)                                                                      \
    "{\"kind\":\"partition\",\"topic\":\"" topic                                                             \
    "\",\"partition\":0,\"generation\":0,\"seen_first\":" seen_first                                         \
    ",\"folded_to\":0,\"swept_to\":0,\"last_ms\":0}"
#define PARTITION PARTITION_OF("orders", "0")
#define APPLIED   "{\"kind\":\"applied\",\"first\":0,\"last\":9}"
#define OPEN_OF(first, last)                                                                                 \
    "{\"kind\":\"open\",\"first\":" first ",\"last\":" last                                                  \
    ",\"in_doubt\":true,\"cause\":\"crash\",\"claim\":1,\"id\":1,\"boot\":1,\"since_ms\":1,\"attempts\":1,"  \
    "\"replay\":0,\"detail\":\"\"}"
#define CONFLICT_OF(first_sight, tail)                                                                       \
    "{\"kind\":\"conflict\",\"id\":1,\"offset\":1,\"stored\":1,\"seen\":2,\"since_ms\":1,\"count\":1,"       \
    "\"first_sight\":" first_sight ",\"tail\":" tail "}"

#define END                                                                                                  \
    "{\"kind\":\"end\",\"partitions\":0,\"intervals\":0,\"applied\":0,\"opens\":0,\"contexts\":0,\"marks\":" \
    "0,"                                                                                                     \
    "\"samples\":0,\"conflicts\":0}"

/* What is good up to its last line, which says a thing that cannot be. */
static void test_a_line_that_cannot_follow_the_others_is_refused_in_words(void **state)
{
    static const struct {
        const char *lines[6];
        const char *why;
    } cases[] = {
        { { HEAD_OF("0123", "a->\\\"b\\\"") }, "\"id\" does not have 32 characters" },
        { { HEAD_AS("2", "0123456789abcdef0123456789abcdef", "a->\\\"b\\\"") },
          "these lines have another version than this program reads" },
        { { APPLIED }, "no beginning" },
        { { HEAD, HEAD }, "a second beginning" },
        { { HEAD, END, END }, "something behind the end" },
        { { HEAD, END, HEAD }, "something behind the end" },
        { { HEAD, APPLIED }, "a line of an unknown kind, or before any partition" },
        { { HEAD, PARTITION, "{\"kind\":\"other\"}" }, "a line of an unknown kind, or before any partition" },
        { { HEAD, PARTITION_OF("or/ders", "0") }, "\"topic\" is no name of a topic" },
        { { HEAD, PARTITION, APPLIED, PARTITION }, "the same partition twice" },
        { { HEAD, PARTITION, PARTITION_OF("refunds", "0") },
          "\"seen_first\" of the partition before does not fit its intervals" },
        { { HEAD, PARTITION_OF("orders", "-1"), APPLIED, PARTITION_OF("refunds", "0") },
          "\"seen_first\" of the partition before does not fit its intervals" },
        { { HEAD, PARTITION_OF("orders", "10"), APPLIED, PARTITION_OF("refunds", "0") },
          "\"seen_first\" of the partition before does not fit its intervals" },
        { { HEAD, PARTITION, "{\"kind\":\"folded\",\"first\":0,\"last\":65535,\"gaps\":65536}",
            PARTITION_OF("refunds", "0") },
          "the partition before has folded ground only" },
        { { HEAD, PARTITION, "{\"kind\":\"folded\",\"first\":0,\"last\":65534,\"gaps\":1}" },
          "folded ground that ends in the middle of a chunk" },
        { { HEAD, PARTITION, "{\"kind\":\"folded\",\"first\":0,\"last\":65535,\"gaps\":65537}" },
          "\"gaps\" is out of its range" },
        { { HEAD, PARTITION, APPLIED, APPLIED }, "this interval does not ascend" },
        { { HEAD, PARTITION, "{\"kind\":\"applied\",\"first\":9,\"last\":0}" },
          "this interval does not ascend" },
        { { HEAD, PARTITION_OF("orders", "-1"), OPEN_OF("0", "9"),
            "{\"kind\":\"applied\",\"first\":20,\"last\":29}" },
          "this interval does not ascend" },
        { { HEAD, PARTITION, APPLIED, OPEN_OF("20", "1044") },
          "this open range does not ascend, or is too long" },
        { { HEAD, PARTITION, APPLIED, OPEN_OF("20", "19") },
          "this open range does not ascend, or is too long" },
        { { HEAD, PARTITION, APPLIED, OPEN_OF("20", "29"), OPEN_OF("29", "30") },
          "this open range does not ascend, or is too long" },
        { { HEAD, PARTITION, APPLIED, OPEN_OF("9", "29") }, "a record is both applied and open" },
        { { HEAD, PARTITION, APPLIED, "{\"kind\":\"context\",\"offset\":5,\"hex\":\"00\"}" },
          "a context of a record that is not open" },
        { { HEAD, PARTITION, APPLIED, OPEN_OF("20", "29"),
            "{\"kind\":\"context\",\"offset\":19,\"hex\":\"00\"}" },
          "a context of a record that is not open" },
        { { HEAD, PARTITION, "{\"kind\":\"marks\",\"block\":0,\"hex\":\"0000\"}" },
          "\"hex\" is no block of marks" },
        { { HEAD, PARTITION, CONFLICT_OF("true", "true") },
          "two conflicts of one partition, or one of two kinds" },
        { { HEAD, PARTITION, CONFLICT_OF("true", "false"), CONFLICT_OF("false", "true") },
          "two conflicts of one partition, or one of two kinds" },
        { { HEAD, PARTITION, CONFLICT_OF("1", "false") }, "\"first_sight\" is of another type" },
    };
    static struct lines lines;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char copies[6][512];
        lines.count = 0;
        for (size_t j = 0; j < 6 && cases[i].lines[j] != NULL; j++) {
            snprintf(copies[j], sizeof copies[j], "%s", cases[i].lines[j]);
            lines.at[lines.count++] = copies[j];
        }
        assert_false(is_taken(&lines));
        assert_string_equal(why, cases[i].why);
        lines.count--; /* it is the last one that was refused */
        (void)is_taken(&lines);
        assert_string_equal(why, "");
    }
}

static void test_lines_of_another_scope_or_version_are_refused(void **state)
{
    static struct lines lines;
    (void)state;
    lines.count = 1;
    lines.at[0] = before.at[0];
    struct rows *rows = rows_mem_new();
    struct machine *machine = make_machine(INT64_MAX, 0);
    struct restore *restore = restore_new(machine, "another");
    assert_non_null(restore);
    begin(machine, rows, 0, MACHINE_OPEN);
    assert_false(restore_line(restore, slice_of_text(lines.at[0])));
    machine_end(machine);
    restore_free(restore);
    machine_free(machine);
    rows_mem_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_L15_a_ledger_made_of_its_lines_has_the_same_lines),
        cmocka_unit_test(test_lines_that_are_missing_or_twice_are_noticed),
        cmocka_unit_test(test_lines_with_flipped_bits_are_refused_or_make_a_sound_ledger),
        cmocka_unit_test(test_a_line_that_cannot_follow_the_others_is_refused_in_words),
        cmocka_unit_test(test_lines_of_another_scope_or_version_are_refused),
    };
    int failed_count = cmocka_run_group_tests(tests, NULL, NULL);
    drop_lines(&before);
    drop_lines(&after);
    return failed_count;
}
