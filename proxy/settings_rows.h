/*
 * settings_rows.h - the table of settings as data: one row a setting, one type for each kind of value.
 *
 * Inner header of settings*.c; everybody else needs include/settings.h only.
 */
#ifndef SINKONCE_SETTINGS_ROWS_H
#define SINKONCE_SETTINGS_ROWS_H

#include "settings.h"

#define SETTINGS_PREFIX "SINKONCE_"

enum settings_id {
#define SETTING(VARIABLE, field, type, default_text, low, high, words) ROW_##VARIABLE,
#include "tbl/settings.h"
    ROW_COUNT
};

enum { SETTINGS_WORDS_MAX = 320 }; /* room for what is wrong with a value */

struct settings_row;

/* One word of a setting that has a few; the list ends with a NULL name. */
struct settings_choice {
    const char *name;
    int value;
};

struct settings_type {
    /* NULL when TEXT was understood; else what is wrong, in words that follow the name: static, or in ROOM.  FIELD
     * is zero before, and must be released with deinit() in both cases.  TEXT is "" only where that is the default. */
    const char *(*parse)(const char *text, const struct settings_row *row, void *field,
                         char room[SETTINGS_WORDS_MAX]);
    void (*deinit)(void *field); /* NULL: the field owns nothing */
    /* Write what FIELD holds where the text as given does not tell; NULL: it does. */
    void (*show)(const void *field, char room[SETTINGS_WORDS_MAX]);
    const struct settings_choice *choices; /* NULL: not a choice */
    bool is_secret;                        /* never shown, may come from a file */
    bool is_url;                           /* shown without password and query */
};

struct settings_row {
    const char *name; /* with the prefix */
    const struct settings_type *type;
    const char *default_text; /* NULL: required; "": none */
    size_t field_at;          /* in struct settings */
    size_t field_bytes;
    uint64_t low, high;
    const char *words;
};

extern const struct settings_row settings_rows[ROW_COUNT]; /* settings_parse.c */

static inline void *settings_field(struct settings *settings, const struct settings_row *row)
{
    return (char *)settings + row->field_at;
}

enum settings_source { SOURCE_DEFAULT, SOURCE_ENVIRONMENT, SOURCE_FILE };

/* What is known of each row once it has been read: the cross-checks' input. */
struct settings_origins {
    enum settings_source sources[ROW_COUNT];
    bool is_wrong[ROW_COUNT];
};

/* The value of NAME, or NULL when it is not set or empty. */
const char *settings_lookup(char *const environment[], const char *name);
/* The value of NAME_FILE. */
const char *settings_lookup_file(char *const environment[], const char *name);

/* TEXT with the userinfo and the query of a URL replaced by "***". */
void settings_mask_url(const char *text, char room[SETTINGS_WORDS_MAX]);

#endif
