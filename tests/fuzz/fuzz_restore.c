/*
 * fuzz_restore.c - any lines as a ledger: refused with words, or a ledger that holds together and has lines of its own.
 */
#include <stdlib.h>
#include "dump.h"
#include "fuzz.h"
#include "rows_mem.h"
#include "verify.h"

enum { LINES_MAX = 4096 };

static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell, (void)claim, (void)status;
}

static struct machine *machine_make(void)
{
    const struct machine_settings settings = { .policy = POLICY_HOLD,
                                               .in_doubt_max = UINT64_MAX,
                                               .marks = 1000,
                                               .is_identity_checked = true,
                                               .window = UINT64_MAX,
                                               .replies = 20,
                                               .reply_bytes_max = 100 };
    struct machine *machine = machine_new(&settings, (struct machine_answers){ on_claim, NULL });
    assert(machine != NULL);
    return machine;
}

static void begin(struct machine *machine, struct rows *rows, enum machine_mode mode)
{
    rows_mem_begin(rows);
    machine_begin(machine, rows, (struct machine_time){ 1, 1 }, mode);
}

static bool on_line(void *context, struct slice line)
{
    size_t *line_count = context;
    struct line_in *in = calloc(1, sizeof *in); /* what is written can be read */
    assert(in != NULL);
    bool is_read = line_read(in, line);
    assert(is_read);
    free(in);
    return ++*line_count < LINES_MAX;
}

static bool on_finding(void *context, struct slice line)
{
    (void)context, (void)line;
    return true;
}

/* Lines up to the end, which need not have an end of line. */
static bool restore_all(struct restore *restore, const char *bytes, size_t byte_count)
{
    while (byte_count > 0) {
        const char *end = memchr(bytes, '\n', byte_count);
        size_t line_bytes = end == NULL ? byte_count : (size_t)(end - bytes);
        if (!restore_line(restore, slice_of(bytes, line_bytes)))
            return false;
        size_t used = line_bytes + (end != NULL);
        bytes += used;
        byte_count -= used;
    }
    return restore_is_whole(restore);
}

static void check_sound(struct rows *rows)
{
    size_t line_count = 0;
    struct key key = key_meta(META_STORE);
    struct slice value;
    struct store_row row;
    struct machine *machine = machine_make();
    rows_mem_begin(rows);
    machine_load(machine, rows, 2);
    assert(rows_status(rows) == ROWS_OK);
    begin(machine, rows, MACHINE_READ);
    bool is_there = rows_get(rows, key_slice(&key), &value) && store_row_read(value, &row);
    assert(is_there);
    uint64_t finding_count = verify(machine, on_finding, NULL);
    assert(finding_count == 0);
    bool is_dumped = dump(machine, &row, on_line, &line_count);
    assert(is_dumped || line_count == LINES_MAX);
    machine_end(machine);
    machine_free(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct rows *rows = rows_mem_new();
    struct machine *machine = machine_make();
    struct restore *restore = restore_new(machine, "default");
    assert(rows != NULL && restore != NULL);
    begin(machine, rows, MACHINE_OPEN);
    bool is_taken = restore_all(restore, (const char *)input, input_bytes);
    const char *why = restore_why(restore);
    assert(is_taken || restore_is_whole(restore) || input_bytes == 0 || why != NULL);
    for (; *why != '\0'; why++) /* it is read on a terminal */
        assert(*why >= ' ' && *why <= '~');
    machine_end(machine);
    is_taken = is_taken && rows_status(rows) == ROWS_OK;
    restore_free(restore);
    machine_free(machine);
    if (is_taken)
        check_sound(rows);
    rows_mem_free(rows);
    return 0;
}
