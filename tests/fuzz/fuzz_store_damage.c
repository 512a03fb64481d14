/*
 * fuzz_store_damage.c - a busy ledger with rows that were changed, cut, added or taken away: refused when it is loaded, or
 * lived with, whatever is then asked of it.
 *
 * The input is edits of six bytes: which row (two), what is done to it, where (two), with which byte.  A row that is edited
 * with kind 3 gets the rest of the input as its value; the first byte says how many edits there are.
 */
#include <stdlib.h>
#include "busy.h"
#include "dump.h"
#include "fuzz.h"
#include "verify.h"

enum { EDIT_BYTES = 6, EDITS_MAX = 8 };

struct edit {
    size_t row, at;
    uint8_t kind, byte;
};

static struct edit edit_of(const uint8_t bytes[EDIT_BYTES])
{
    return (struct edit){ .row = (size_t)bytes[0] << 8 | bytes[1],
                          .kind = bytes[2] % 4,
                          .at = (size_t)bytes[3] << 8 | bytes[4],
                          .byte = bytes[5] };
}

/* The key of row WHICH, counted around; it lives until the next call. */
static struct slice row_at(struct rows *rows, size_t which, struct slice *ret_value)
{
    static char from[512];
    struct slice key = slice_of(from, 1), found;
    from[0] = 0;
    for (size_t i = 0; i <= which % rows_mem_count(rows); i++) {
        bool is_there = rows_seek(rows, key, &found, ret_value);
        assert(is_there && found.byte_count < sizeof from);
        memmove(from, found.at, found.byte_count);
        from[found.byte_count] = 0; /* the least key behind it */
        key = slice_of(from, found.byte_count + 1);
    }
    return slice_of(from, key.byte_count - 1);
}

/* Value into room of its own: the row goes away under it. */
static void replace(struct rows *rows, struct slice key, struct slice value, const struct edit *edit)
{
    char *changed = malloc(value.byte_count + 1);
    assert(changed != NULL);
    memcpy(changed, value.at, value.byte_count);
    changed[value.byte_count] = 0;
    size_t at = edit->at % (value.byte_count + 1);
    if (edit->kind == 0)
        changed[at] = (char)edit->byte;
    rows_put(rows, key, slice_of(changed, edit->kind == 1 ? at : value.byte_count));
    free(changed);
}

static void apply(struct rows *rows, const struct edit *edit, struct slice rest)
{
    struct slice value, key = row_at(rows, edit->row, &value);
    if (edit->kind == 2 && rows_mem_count(rows) > 1)
        rows_delete(rows, key);
    else if (edit->kind == 3)
        rows_put(rows, key, rest);
    else
        replace(rows, key, value, edit);
}

static bool take_line(void *context, struct slice line)
{
    (void)context;
    assert_one_line(line);
    return true;
}

static void read_through(struct rows *rows)
{
    static const struct store_row row = { .format = FORMAT_VERSION, .id = "0", .scope = "s" };
    struct machine *machine = busy_begin(rows, 2);
    if (machine == NULL)
        return;
    (void)verify(machine, take_line, NULL);
    verify_stat(machine, &row, take_line, NULL);
    bool is_whole = dump(machine, &row, take_line, NULL);
    assert(is_whole || rows_status(rows) != ROWS_OK); /* it wants every line */
    machine_free(machine);
}

static void live_with(struct rows *rows)
{
    struct machine *machine = busy_begin(rows, 2);
    if (machine == NULL)
        return;
    machine_recover(machine);
    for (int64_t i = 0; i < 8; i++)
        busy_work(machine, i * 30000);
    busy_ask_everything(machine);
    machine_end(machine);
    machine_free(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    static struct rows *good;
    if (good == NULL)
        good = busy_ledger();
    if (input_bytes < 1)
        return 0;
    size_t count = input[0] % EDITS_MAX + 1u, used = 1;
    struct rows *rows = rows_mem_copy(good);
    for (; count > 0 && used + EDIT_BYTES <= input_bytes; count--, used += EDIT_BYTES) {
        struct edit edit = edit_of(input + used);
        size_t rest = used + EDIT_BYTES;
        apply(rows, &edit, slice_of((const char *)input + rest, input_bytes - rest));
    }
    rows_mem_begin(rows);
    read_through(rows);
    live_with(rows);
    rows_mem_free(rows);
    return 0;
}
