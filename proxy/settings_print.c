/*
 * settings_print.c - every form in which the settings are shown, all from the one table.
 */
#include "settings.h"
#include "settings_rows.h"
#include "settings_url.h"

/* The table once more, now with its groups between the rows. */
struct line {
    const char *group;              /* NULL: the line is a row */
    const struct settings_row *row; /* NULL: the line is a group */
};

static const struct line lines[] = {
#define GROUP(words) { words, NULL },
#define SETTING(VARIABLE, field, type, default_text, low, high, words)                                       \
    { NULL, &settings_rows[ROW_##VARIABLE] },
#include "tbl/settings.h"
};
enum { LINE_COUNT = sizeof lines / sizeof lines[0] };

/* ---- values -------------------------------------------------------------------------------------------------- */

static const char *source_of(const struct settings_row *row, char *const environment[], const char **ret_text)
{
    *ret_text = settings_lookup(environment, row->name);
    if (*ret_text != NULL)
        return "environment";
    if (row->type->is_secret && (*ret_text = settings_lookup_file(environment, row->name)) != NULL)
        return "file";
    *ret_text = row->default_text == NULL ? "" : row->default_text;
    return "default";
}

void settings_visit(const struct settings *settings, char *const environment[],
                    void (*visit)(const struct settings_view *view, void *context), void *context)
{
    const char *group = "";
    for (size_t i = 0; i < LINE_COUNT; i++) {
        const struct settings_row *row = lines[i].row;
        char room[SETTINGS_WORDS_MAX];
        if (row == NULL) {
            group = lines[i].group;
            continue;
        }
        struct settings_view view = { group, row->name, row->default_text, row->words, row->type->is_secret,
                                      "",    "" };
        view.source = source_of(row, environment, &view.value);
        if (view.is_secret && *view.value != '\0') {
            view.value = "***";
        } else if (row->type->is_url) {
            settings_mask_url(view.value, room);
            view.value = room;
        } else if (row->type->show != NULL) {
            row->type->show((const char *)settings + row->field_at, room);
            view.value = room;
        }
        visit(&view, context);
    }
}

static void print_view(const struct settings_view *view, void *context)
{
    fprintf(context, "%s=%s  # %s\n", view->name, view->value, view->source);
}

void settings_print(const struct settings *settings, char *const environment[], FILE *out)
{
    settings_visit(settings, environment, print_view, out);
}

/* ---- the table itself ---------------------------------------------------------------------------------------- */

static const char *required_or_default(const struct settings_row *row)
{
    if (row->default_text == NULL)
        return "required";
    return *row->default_text == '\0' ? "none" : row->default_text;
}

void settings_print_env(FILE *out)
{
    fprintf(out, "# Every setting of sinkonce with its default.  Made by: sinkonce config env\n"
                 "# Durations and sizes carry a unit: 250ms 5s 2m 1h 1d, 4KiB 16MiB 1GiB; 0 needs none.\n"
                 "# A secret may come from a file instead: its name with _FILE at the end gives the path.\n");
    for (size_t i = 0; i < LINE_COUNT; i++) {
        const struct settings_row *row = lines[i].row;
        if (row == NULL)
            fprintf(out, "\n# ---- %s ----\n", lines[i].group);
        else
            fprintf(out, "\n# %s%s%s\n#%s=%s\n", row->words, row->default_text == NULL ? " (required)" : "",
                    row->type->is_secret ? " (secret)" : "", row->name,
                    row->default_text == NULL ? "" : row->default_text);
    }
}

/* A bar would end the cell. */
static void print_cell(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_docs_row(const struct settings_row *row, FILE *out)
{
    const bool has_default = row->default_text != NULL && *row->default_text != '\0';
    fprintf(out, "| `%s`%s | %s%s%s | ", row->name, row->type->is_secret ? " (F)" : "",
            has_default ? "`" : "", required_or_default(row), has_default ? "`" : "");
    print_cell(row->words, out);
    fputs(" |\n", out);
}

void settings_print_docs(FILE *out)
{
    fputs("| variable | default | meaning |\n|---|---|---|\n", out);
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (lines[i].row == NULL)
            fprintf(out, "| **%s** | | |\n", lines[i].group);
        else
            print_docs_row(lines[i].row, out);
    }
    fputs("\n(F): a secret; its name with `_FILE` at the end gives the path of a file that holds it.\n", out);
}

void settings_print_help(FILE *out)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        const struct settings_row *row = lines[i].row;
        if (row == NULL)
            fprintf(out, "\n  %s\n", lines[i].group);
        else
            fprintf(out, "    %s%s\n        %s (%s%s)\n", row->name, row->type->is_secret ? "[_FILE]" : "",
                    row->words, row->default_text == NULL || *row->default_text == '\0' ? "" : "default: ",
                    required_or_default(row));
    }
}
