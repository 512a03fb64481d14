/*
 * cli_ledger.c - a ledger that nobody runs: its figures, its soundness, its lines out and in.
 *
 * The store does the work and takes the folder's lock (include/store.h); here lines come from files and go to stdout.
 */
#include "cli_commands.h"
#include "serve_ledger.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <sysexits.h>

typedef enum store_open_status read_fn(const struct store_options *options, store_line_fn *line,
                                       void *context, char ret_why[], size_t why_bytes_max);

enum { WHY_BYTES_MAX = 512 };

static int exit_code(const struct cli_arguments *arguments, enum store_open_status status, const char *why)
{
    if (status == STORE_OPENED)
        return 0;
    fprintf(stderr, "sinkonce %s: %s\n", arguments->command->name, why);
    return status == STORE_LOCKED ? EX_TEMPFAIL : EX_IOERR;
}

/* ---- out ----------------------------------------------------------------------------------------------------- */

static bool on_line(void *context, struct slice line)
{
    (void)context;
    return fwrite(line.at, 1, line.byte_count, stdout) == line.byte_count && putchar('\n') != EOF;
}

/* "used_bytes 4096" as a member; what is not a number is text. */
static bool on_figure(void *context, struct slice line)
{
    const char *blank = line.byte_count == 0 ? NULL : memchr(line.at, ' ', line.byte_count);
    char name[128], value[512], *end;
    if (blank == NULL)
        return true;
    snprintf(name, sizeof name, "%.*s", (int)(blank - line.at), line.at);
    snprintf(value, sizeof value, "%.*s", (int)(line.at + line.byte_count - blank) - 1, blank + 1);
    const long long number = strtoll(value, &end, 10);
    const bool is_number = end != value && *end == '\0';
    return json_object_set_new(context, name, is_number ? json_integer(number) : json_string(value)) == 0;
}

static bool on_finding(void *context, struct slice line)
{
    return json_array_append_new(context, json_stringn(line.at, line.byte_count)) == 0;
}

/* JSON is taken, and printed. */
static void print_json(json_t *json)
{
    json_dumpf(json, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(json);
}

static int read_ledger(const struct cli_arguments *arguments, read_fn *read, store_line_fn *line,
                       void *context)
{
    struct settings settings;
    char why[WHY_BYTES_MAX] = "";
    int code = EX_CONFIG;
    if (cli_settings_read(arguments, &settings)) {
        const struct store_options options = serve_ledger_options(&settings);
        code = exit_code(arguments, read(&options, line, context, why, sizeof why), why);
    }
    settings_deinit(&settings);
    return code;
}

int cli_ledger_stat(const struct cli_arguments *arguments)
{
    if (arguments->values[OPTION_JSON] == NULL)
        return read_ledger(arguments, store_stat, on_line, NULL);
    json_t *figures = json_object();
    const int code = read_ledger(arguments, store_stat, on_figure, figures);
    if (code == 0)
        print_json(figures);
    else
        json_decref(figures);
    return code;
}

/* Findings are data: they go to stdout also when there are some. */
int cli_ledger_verify(const struct cli_arguments *arguments)
{
    const bool is_json = arguments->values[OPTION_JSON] != NULL;
    json_t *findings = json_array();
    const int code =
        read_ledger(arguments, store_verify, is_json ? on_finding : on_line, is_json ? findings : NULL);
    if (is_json && (code == 0 || json_array_size(findings) > 0))
        print_json(json_pack("{s:b, s:O}", "sound", code == 0, "findings", findings));
    else if (!is_json && code == 0)
        puts("sound");
    json_decref(findings);
    return code;
}

int cli_ledger_export(const struct cli_arguments *arguments)
{
    return read_ledger(arguments, store_export, on_line, NULL);
}

/* ---- neither --------------------------------------------------------------------------------------------------- */

static bool on_nothing(void *context, struct slice line)
{
    (void)context;
    (void)line;
    return true;
}

int cli_ledger_check(const struct settings *settings)
{
    char why[WHY_BYTES_MAX] = "";
    const struct store_options options = serve_ledger_options(settings);
    if (!cli_folder_has_ledger(settings->data_dir))
        return 0;
    const enum store_open_status status = store_stat(&options, on_nothing, NULL, why, sizeof why);
    if (status == STORE_OPENED)
        return 0;
    fprintf(stderr, "SINKONCE_DATA_DIR=%s has a ledger that cannot be served: %s\n", settings->data_dir, why);
    return status == STORE_LOCKED ? EX_TEMPFAIL : EX_IOERR;
}

/* ---- in ------------------------------------------------------------------------------------------------------ */

struct source {
    FILE *file; /* owned unless it is stdin */
    char *line; /* owned: room of getline() */
    size_t line_room;
    int failure; /* of reading, an errno; 0: none */
};

static bool next_line(void *context, struct slice *ret_line)
{
    struct source *source = context;
    errno = 0;
    ssize_t bytes = getline(&source->line, &source->line_room, source->file);
    if (bytes < 0) {
        source->failure = ferror(source->file) ? errno : 0;
        return false;
    }
    bytes -= bytes > 0 && source->line[bytes - 1] == '\n';
    *ret_line = slice_of(source->line, (size_t)bytes);
    return true;
}

static int import(const struct cli_arguments *arguments, struct source *source)
{
    struct settings settings;
    char why[WHY_BYTES_MAX] = "";
    int code = EX_CONFIG;
    if (cli_settings_read(arguments, &settings)) {
        const struct store_options options = serve_ledger_options(&settings);
        code = exit_code(arguments, store_import(&options, next_line, source, why, sizeof why), why);
        if (code == 0)
            printf("imported into %s\n", settings.data_dir);
    }
    settings_deinit(&settings);
    return code;
}

int cli_ledger_import(const struct cli_arguments *arguments)
{
    const char *name = arguments->operand_count == 0 ? "-" : arguments->operands[0];
    const bool is_stdin = strcmp(name, "-") == 0;
    struct source source = { .file = is_stdin ? stdin : fopen(name, "r") };
    if (source.file == NULL) {
        fprintf(stderr, "sinkonce ledger import: %s cannot be read: %s\n", name, strerror(errno));
        return EX_IOERR;
    }
    const int code = import(arguments, &source);
    if (source.failure != 0)
        fprintf(stderr, "sinkonce ledger import: %s cannot be read: %s\n", name, strerror(source.failure));
    if (!is_stdin)
        fclose(source.file);
    free(source.line);
    return code;
}
