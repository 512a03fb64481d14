/*
 * settings_mistakes.c - two growing lists of lines.
 *
 * Without memory a line is lost, but not the fact: settings_read() remembers by itself that something was wrong.
 */
#include "settings_mistakes.h"
#include <stdarg.h>
#include <stdlib.h>

enum { LINE_BYTES_MAX = 1024 };

static void add(char ***lines, size_t *count, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));
static void add(char ***lines, size_t *count, const char *format, va_list values)
{
    char text[LINE_BYTES_MAX];
    vsnprintf(text, sizeof text, format, values);
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    char **grown = realloc(*lines, (*count + 1) * sizeof **lines);
    if (grown == NULL)
        return;
    *lines = grown;
    grown[*count] = strdup(text);
    if (grown[*count] != NULL)
        (*count)++;
}

void settings_mistake(struct settings_mistakes *mistakes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    add(&mistakes->lines, &mistakes->line_count, format, values);
    va_end(values);
}

void settings_note(struct settings_mistakes *mistakes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    add(&mistakes->notes, &mistakes->note_count, format, values);
    va_end(values);
}

static void free_lines(char **lines, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
    free(lines);
}

void settings_mistakes_deinit(struct settings_mistakes *mistakes)
{
    free_lines(mistakes->lines, mistakes->line_count);
    free_lines(mistakes->notes, mistakes->note_count);
    *mistakes = (struct settings_mistakes){ 0 };
}
