/*
 * cli_print.c - see cli_print.h.
 */
#include "cli_print.h"

enum { CELL_BYTES_MAX = 1024, COLUMNS_MAX = 12, NAME_WIDTH = 28, INDENT = 2 };

/* Control characters of ASCII, and of Latin 1 in UTF-8, end here. */
static void text_copy(const char *text, char cell[CELL_BYTES_MAX])
{
    size_t bytes = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0' && bytes < CELL_BYTES_MAX - 3;
         at++) {
        const bool is_latin_control = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        at += is_latin_control;
        cell[bytes++] = (char)(is_latin_control || *at < 0x20 || *at == 0x7f ? '?' : *at);
    }
    cell[bytes] = '\0';
}

void cli_print_text(const char *text, FILE *out)
{
    char cell[CELL_BYTES_MAX];
    text_copy(text, cell);
    fputs(cell, out);
}

/* Piece by piece, because a piece is all that a cell holds. */
void cli_print_lines(const char *text, FILE *out)
{
    char line[CELL_BYTES_MAX / 2], cell[CELL_BYTES_MAX];
    while (*text != '\0') {
        const size_t bytes = strcspn(text, "\n"), taken = bytes < sizeof line ? bytes : sizeof line - 1;
        memcpy(line, text, taken);
        line[taken] = '\0';
        text_copy(line, cell);
        fputs(cell, out);
        text += taken;
        if (*text == '\n' || *text == '\0')
            fputc('\n', out);
        text += *text == '\n';
    }
}

static void cell_of(const json_t *value, char cell[CELL_BYTES_MAX])
{
    if (json_is_string(value))
        text_copy(json_string_value(value)[0] == '\0' ? "-" : json_string_value(value), cell);
    else if (json_is_integer(value))
        snprintf(cell, CELL_BYTES_MAX, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(cell, CELL_BYTES_MAX, "%g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(cell, CELL_BYTES_MAX, "%s", json_is_true(value) ? "yes" : "no");
    else
        snprintf(cell, CELL_BYTES_MAX, "-");
}

/* Characters, not bytes: what follows the first byte of one has the bits 10. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_cell(const char *cell, const struct cli_column *column, int width, bool is_last, FILE *out)
{
    const int blanks = width - width_of(cell);
    if (column->is_right)
        fprintf(out, "%*s%s%s", blanks, "", cell, is_last ? "\n" : "  ");
    else if (is_last)
        fprintf(out, "%s\n", cell);
    else
        fprintf(out, "%s%*s", cell, blanks + 2, "");
}

void cli_print_table(const json_t *rows, const struct cli_column columns[], size_t column_count,
                     bool has_titles, FILE *out)
{
    char cell[CELL_BYTES_MAX];
    int widths[COLUMNS_MAX];
    size_t index;
    json_t *row;
    for (size_t i = 0; i < column_count; i++) {
        widths[i] = width_of(columns[i].title);
        json_array_foreach(rows, index, row)
        {
            cell_of(json_object_get(row, columns[i].member), cell);
            widths[i] = width_of(cell) > widths[i] ? width_of(cell) : widths[i];
        }
    }
    for (size_t i = 0; has_titles && i < column_count; i++)
        print_cell(columns[i].title, &columns[i], widths[i], i + 1 == column_count, out);
    json_array_foreach(rows, index, row)
    {
        for (size_t i = 0; i < column_count; i++) {
            cell_of(json_object_get(row, columns[i].member), cell);
            print_cell(cell, &columns[i], widths[i], i + 1 == column_count, out);
        }
    }
}

/* ---- names and values ---------------------------------------------------------------------------------------- */

static void print_name(const char *name, int depth, bool has_value, FILE *out)
{
    char cell[CELL_BYTES_MAX];
    text_copy(name, cell);
    for (char *at = cell; *at != '\0'; at++)
        *at = (char)(*at == '_' ? ' ' : *at);
    if (has_value)
        fprintf(out, "%*s%-*s ", depth * INDENT, "", NAME_WIDTH - depth * INDENT, cell);
    else
        fprintf(out, "%*s%s\n", depth * INDENT, "", cell);
}

/* An answer is no deeper than a few levels; a strange one ends here. */
enum { DEPTH_MAX = 8 };

static void print_members(json_t *object, int depth, FILE *out);

static void print_elements(const json_t *array, int depth, FILE *out)
{
    char cell[CELL_BYTES_MAX];
    size_t index;
    json_t *value;
    json_array_foreach(array, index, value)
    {
        if (json_is_object(value)) {
            fprintf(out, "%*s- %zu\n", depth * INDENT, "", index + 1);
            print_members(value, depth + 1, out);
            continue;
        }
        cell_of(value, cell);
        fprintf(out, "%*s- %s\n", depth * INDENT, "", cell);
    }
}

static void print_members(json_t *object, int depth, FILE *out)
{
    char cell[CELL_BYTES_MAX];
    const char *name;
    json_t *value;
    if (depth > DEPTH_MAX)
        return;
    json_object_foreach(object, name, value)
    {
        const bool is_list = json_is_array(value) && json_array_size(value) > 0;
        print_name(name, depth, !json_is_object(value) && !is_list, out);
        if (json_is_object(value)) {
            print_members(value, depth + 1, out);
        } else if (is_list) {
            print_elements(value, depth + 1, out);
        } else {
            cell_of(value, cell);
            fprintf(out, "%s\n", json_is_array(value) ? "none" : cell);
        }
    }
}

void cli_print_members(json_t *object, FILE *out)
{
    print_members(object, 0, out);
}
