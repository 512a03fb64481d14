/*
 * offline.c - a ledger that nobody runs: its figures, its soundness, and its lines out and in.
 *
 * Each takes the folder's lock, so that none of it happens under a running program.  Nothing here changes a ledger that
 * exists: reading is a transaction that is given up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "dump.h"
#include "env.h"
#include "store.h"
#include "verify.h"

enum { LINES_PER_COMMIT = 1000 };

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* An open ledger, read into a machine; the caller's memory. */
struct reading {
    struct env env;
    struct store_row row;
    struct rows rows;
    struct machine *machine; /* owned */
    char words[64];          /* room for an answer */
};

/* No claim is ever made. */
static void on_claim(void *shell, struct claim *claim, enum store_status status)
{
    (void)shell;
    (void)claim;
    (void)status;
}

/* A window that folds nothing, and marks of any age. */
static struct machine *make_machine(void)
{
    struct machine_settings settings = {
        .is_identity_checked = true, .window = INT64_MAX, .marks = UINT32_MAX, .in_doubt_max = UINT64_MAX
    };
    return machine_new(&settings, (struct machine_answers){ on_claim, NULL });
}

static void reading_end(struct reading *reading)
{
    rows_abort(&reading->rows);
    if (reading->machine != NULL)
        machine_forget(reading->machine); /* the batch is given up */
    machine_free(reading->machine);
    env_deinit(&reading->env);
}

static enum store_open_status fail(char why[], size_t why_bytes_max, const char *folder, const char *what)
{
    snprintf(why, why_bytes_max, "the ledger in %s %s", folder, what);
    return STORE_UNREADABLE;
}

static enum store_open_status load(struct reading *reading, char why[], size_t why_bytes_max)
{
    const char *folder = reading->env.folder;
    reading->machine = make_machine();
    if (reading->machine == NULL)
        return fail(why, why_bytes_max, folder, "needs more memory than there is");
    if (rows_begin(&reading->rows, reading->env.mdb, reading->env.table) != ROWS_OK)
        return fail(why, why_bytes_max, folder, "cannot be read");
    machine_load(reading->machine, &reading->rows, reading->row.boot_count);
    if (rows_status(&reading->rows) != ROWS_OK)
        return fail(why, why_bytes_max, folder,
                    "is damaged: its partitions, open records, windows or conflicts cannot be read; put back "
                    "a backup");
    machine_begin(reading->machine, &reading->rows, (struct machine_time){ 0, 0 }, MACHINE_READ);
    return STORE_OPENED;
}

/* On failure nothing is left open. */
static enum store_open_status reading_begin(struct reading *reading, const struct store_options *options,
                                            char why[], size_t why_bytes_max)
{
    char path[PATH_MAX];
    struct stat file;
    bool is_created;
    struct store_options reader = *options;
    *reading = (struct reading){ .env = { .lock_fd = -1 } };
    why[0] = '\0';
    snprintf(path, sizeof path, "%s/ledger.mdb", options->folder);
    if (stat(path, &file) != 0)
        return fail(why, why_bytes_max, options->folder, "is not there");
    reader.is_missing_refused = true;
    enum store_open_status status =
        env_init(&reading->env, &reader, 0, &reading->row, &is_created, why, why_bytes_max);
    if (status != STORE_OPENED)
        return status;
    status = load(reading, why, why_bytes_max);
    if (status != STORE_OPENED)
        reading_end(reading);
    return status;
}

/* What is told of a ledger, line by line.  NULL: all of it; else the words for what is wrong, which live as READING. */
typedef const char *tell_fn(struct reading *reading, store_line_fn *line, void *context);

static enum store_open_status tell(const struct store_options *options, tell_fn *what, store_line_fn *line,
                                   void *context, char why[], size_t why_bytes_max)
{
    struct reading reading;
    enum store_open_status status = reading_begin(&reading, options, why, why_bytes_max);
    if (status != STORE_OPENED)
        return status;
    const char *wrong = what(&reading, line, context);
    if (wrong != NULL)
        status = fail(why, why_bytes_max, options->folder, wrong);
    reading_end(&reading);
    return status;
}

static const char *tell_figures(struct reading *reading, store_line_fn *line, void *context)
{
    verify_stat(reading->machine, &reading->row, line, context);
    snprintf(reading->words, sizeof reading->words, "used_bytes %llu",
             (unsigned long long)rows_used_bytes(&reading->rows));
    (void)line(context, slice_of_text(reading->words));
    return rows_status(&reading->rows) == ROWS_OK ? NULL : "cannot be read to its end";
}

static const char *tell_findings(struct reading *reading, store_line_fn *line, void *context)
{
    uint64_t finding_count = verify(reading->machine, line, context);
    snprintf(reading->words, sizeof reading->words, "does not hold together: %llu findings",
             (unsigned long long)finding_count);
    return finding_count == 0 ? NULL : reading->words;
}

static const char *tell_all(struct reading *reading, store_line_fn *line, void *context)
{
    return dump(reading->machine, &reading->row, line, context)
               ? NULL
               : "could not be exported to its end: it is damaged, or the lines could not be written";
}

enum store_open_status store_stat(const struct store_options *options, store_line_fn *line, void *context,
                                  char ret_why[], size_t why_bytes_max)
{
    return tell(options, tell_figures, line, context, ret_why, why_bytes_max);
}

enum store_open_status store_verify(const struct store_options *options, store_line_fn *line, void *context,
                                    char ret_why[], size_t why_bytes_max)
{
    return tell(options, tell_findings, line, context, ret_why, why_bytes_max);
}

enum store_open_status store_export(const struct store_options *options, store_line_fn *line, void *context,
                                    char ret_why[], size_t why_bytes_max)
{
    return tell(options, tell_all, line, context, ret_why, why_bytes_max);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

struct import {
    const struct store_options *options; /* borrowed */
    bool (*next)(void *context, struct slice *ret_line);
    void *context; /* borrowed: of next */
    char *why;     /* borrowed */
    size_t why_bytes_max;
    struct machine *machine; /* owned */
    struct restore *restore; /* owned */
    uint64_t line_count;
};

static int refuse_line(struct import *import, const char *why)
{
    snprintf(import->why, import->why_bytes_max, "line %llu: %s; nothing was imported",
             (unsigned long long)import->line_count, why);
    return ENV_FILL_REFUSED;
}

/* Lines until there are enough for one commit; *RET_IS_OVER: there are no more. */
static int import_some(struct import *import, struct rows *rows, bool *ret_is_over)
{
    struct slice line;
    for (size_t i = 0; i < LINES_PER_COMMIT; i++) {
        *ret_is_over = !import->next(import->context, &line);
        if (*ret_is_over)
            return 0;
        import->line_count++;
        if (!restore_line(import->restore, line))
            return refuse_line(import, restore_why(import->restore));
        if (rows_status(rows) != ROWS_OK)
            return rows->error;
    }
    return 0;
}

/* One commit; the file is nobody's yet, so that it need not be all of it. */
static int import_batch(struct import *import, struct env *env, bool *ret_is_over)
{
    struct rows rows;
    if (rows_begin(&rows, env->mdb, env->table) != ROWS_OK)
        return rows.error;
    machine_begin(import->machine, &rows, (struct machine_time){ 0, 0 }, MACHINE_OPEN);
    int error = import_some(import, &rows, ret_is_over);
    machine_end(import->machine);
    if (error != 0) {
        rows_abort(&rows);
        return error;
    }
    return rows_commit(&rows) == ROWS_OK ? 0 : rows.error;
}

/* An env_fill_fn. */
static int import_all(void *context, struct env *env)
{
    struct import *import = context;
    bool is_over = false;
    while (!is_over) {
        int error = import_batch(import, env, &is_over);
        if (error != 0)
            return error;
    }
    if (restore_is_whole(import->restore))
        return 0;
    import->line_count++;
    return refuse_line(import, "the end is missing");
}

enum store_open_status store_import(const struct store_options *options,
                                    bool (*next)(void *context, struct slice *ret_line), void *context,
                                    char ret_why[], size_t why_bytes_max)
{
    struct import import = { .options = options,
                             .next = next,
                             .context = context,
                             .why = ret_why,
                             .why_bytes_max = why_bytes_max,
                             .machine = make_machine() };
    enum store_open_status status = STORE_UNREADABLE;
    ret_why[0] = '\0';
    if (import.machine != NULL)
        import.restore = restore_new(import.machine, options->scope);
    if (import.restore != NULL)
        status = env_make(options, import_all, &import, ret_why, why_bytes_max);
    else
        snprintf(ret_why, why_bytes_max, "no memory");
    restore_free(import.restore);
    machine_free(import.machine);
    return status;
}
