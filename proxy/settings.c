/*
 * settings.c - reads the environment into struct settings and collects every mistake on the way.
 *
 * Row by row from the table, then the names that no row has, then the combinations (settings_check.c).  Values are
 * understood in settings_parse.c.
 */
#include "settings.h"
#include "settings_check.h"
#include "settings_mistakes.h"
#include "settings_rows.h"
#include "settings_spell.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PREFIX_LENGTH = sizeof SETTINGS_PREFIX - 1, NAME_BYTES_MAX = 128, SHOWN_BYTES_MAX = 64 };

struct reading {
    char *const *environment;
    struct settings *settings;
    struct settings_origins origins;
    struct settings_mistakes *mistakes;
    bool is_wrong;
};

/* ---- the environment ----------------------------------------------------------------------------------------- */

const char *settings_lookup(char *const environment[], const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; environment[i] != NULL; i++) {
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i][length + 1] == '\0' ? NULL : environment[i] + length + 1;
    }
    return NULL;
}

const char *settings_lookup_file(char *const environment[], const char *name)
{
    char file_name[NAME_BYTES_MAX];
    snprintf(file_name, sizeof file_name, "%s_FILE", name);
    return settings_lookup(environment, file_name);
}

/* ---- secrets in files ---------------------------------------------------------------------------------------- */

/* A pipe would be empty when it is read again, and a device may have no end. */
static bool is_ordinary(int fd, const char **ret_why)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        *ret_why = strerror(errno);
    else if (S_ISDIR(file.st_mode))
        *ret_why = strerror(EISDIR);
    else if (!S_ISREG(file.st_mode))
        *ret_why = "it is not an ordinary file";
    else
        return true;
    return false;
}

/* The bytes of PATH, at most BYTES_MAX, into BYTES; returns NULL, or why not. */
static const char *read_file(const char *path, char bytes[], size_t bytes_max, size_t *ret_count)
{
    const char *why = NULL;
    const int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe must not be waited for */
    ssize_t got = 1;
    *ret_count = 0;
    if (fd < 0)
        return strerror(errno);
    if (!is_ordinary(fd, &why)) {
        close(fd);
        return why;
    }
    while (*ret_count < bytes_max && got > 0) {
        got = read(fd, bytes + *ret_count, bytes_max - *ret_count);
        if (got > 0)
            *ret_count += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    why = got < 0 ? strerror(errno) : NULL;
    close(fd);
    return why;
}

/* Editors and echo put a line end behind a secret that is none of it. */
static void drop_line_end(char text[], size_t *length)
{
    if (*length > 0 && text[*length - 1] == '\n')
        text[--*length] = '\0';
}

/* The secret in the file PATH, or NULL and a mistake.  Owned by the caller. */
static char *read_secret(struct reading *reading, const struct settings_row *row, const char *path)
{
    const size_t bytes_max = row->high + 2; /* a line end, and one more to see that it is too long */
    size_t length = 0;
    char *text = calloc(1, bytes_max + 1);
    const char *why = text == NULL ? "out of memory" : read_file(path, text, bytes_max, &length);
    if (why != NULL) {
        settings_mistake(reading->mistakes, "%s_FILE cannot be read: %s (%s)", row->name, why, path);
        free(text);
        return NULL;
    }
    drop_line_end(text, &length);
    if (length > 0 && memchr(text, '\0', length) == NULL)
        return text;
    settings_mistake(reading->mistakes, "%s_FILE names a file that %s (%s)", row->name,
                     length == 0 ? "is empty" : "holds a zero byte", path);
    explicit_bzero(text, bytes_max);
    free(text);
    return NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

void settings_mask_url(const char *text, char room[SETTINGS_WORDS_MAX])
{
    const char *scheme_end = strstr(text, "://");
    const char *begin = scheme_end == NULL ? text : scheme_end + 3;
    const char *at_sign = strrchr(text, '@');
    const char *rest = at_sign != NULL && at_sign >= begin ? at_sign : begin;
    const size_t shown = strcspn(rest, "?#");
    snprintf(room, SETTINGS_WORDS_MAX, "%.*s%s%.*s%s", (int)(begin - text), text,
             rest == at_sign ? "***" : "", (int)(shown < 200 ? shown : 200), rest,
             rest[shown] == '\0' ? "" : "?***");
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    }
    return false;
}

/* The line for a value that was not understood; of a secret it shows nothing. */
static void add_wrong_value(struct reading *reading, const struct settings_row *row, const char *text,
                            const char *wrong, bool is_from_file)
{
    char shown[SETTINGS_WORDS_MAX];
    const char *suffix = is_from_file ? "_FILE" : "";
    if (row->type->is_secret) {
        settings_mistake(reading->mistakes, "%s%s %s", row->name, suffix, wrong);
        return;
    }
    if (row->type->is_url)
        settings_mask_url(text, shown);
    else
        snprintf(shown, sizeof shown, "%.*s%s", SHOWN_BYTES_MAX, text,
                 strlen(text) > SHOWN_BYTES_MAX ? "..." : "");
    settings_mistake(reading->mistakes, "%s %s (got \"%s\")", row->name, wrong, shown);
}

/* What was half understood must not look like a setting to the checks that follow. */
static void clear_field(struct settings *settings, const struct settings_row *row)
{
    if (row->type->deinit != NULL)
        row->type->deinit(settings_field(settings, row));
    memset(settings_field(settings, row), 0, row->field_bytes);
}

static void parse_row(struct reading *reading, size_t at, const char *text)
{
    const struct settings_row *row = &settings_rows[at];
    char room[SETTINGS_WORDS_MAX] = "";
    const char *wrong =
        !row->type->is_secret && has_control(text) ? "must not have control characters" : NULL;
    if (wrong == NULL)
        wrong = row->type->parse(text, row, settings_field(reading->settings, row), room);
    if (wrong == NULL)
        return;
    add_wrong_value(reading, row, text, wrong, reading->origins.sources[at] == SOURCE_FILE);
    clear_field(reading->settings, row);
    reading->origins.is_wrong[at] = true;
}

static void read_secret_row(struct reading *reading, size_t at, const char *path)
{
    char *text = read_secret(reading, &settings_rows[at], path);
    reading->origins.sources[at] = SOURCE_FILE;
    if (text == NULL) {
        reading->origins.is_wrong[at] = true;
        return;
    }
    parse_row(reading, at, text);
    explicit_bzero(text, strlen(text));
    free(text);
}

static void read_row(struct reading *reading, size_t at)
{
    const struct settings_row *row = &settings_rows[at];
    const char *text = settings_lookup(reading->environment, row->name);
    const char *path = row->type->is_secret ? settings_lookup_file(reading->environment, row->name) : NULL;
    reading->origins.sources[at] = text == NULL ? SOURCE_DEFAULT : SOURCE_ENVIRONMENT;
    if (text != NULL && path != NULL) {
        settings_mistake(reading->mistakes, "%s and %s_FILE must not both be set", row->name, row->name);
        reading->origins.is_wrong[at] = true;
    } else if (path != NULL) {
        read_secret_row(reading, at, path);
    } else if (text != NULL || row->default_text != NULL) {
        parse_row(reading, at, text != NULL ? text : row->default_text);
    } else {
        settings_mistake(reading->mistakes, "%s must be set: %s", row->name, row->words);
        reading->origins.is_wrong[at] = true;
    }
    reading->is_wrong = reading->is_wrong || reading->origins.is_wrong[at];
}

/* ---- names that no row has ----------------------------------------------------------------------------------- */

static bool is_known(const char *name)
{
    char file_name[NAME_BYTES_MAX];
    for (size_t i = 0; i < ROW_COUNT; i++) {
        snprintf(file_name, sizeof file_name, "%s_FILE", settings_rows[i].name);
        if (strcmp(name, settings_rows[i].name) == 0 ||
            (settings_rows[i].type->is_secret && strcmp(name, file_name) == 0))
            return true;
    }
    return false;
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* What Kubernetes gives every container of a namespace that has a Service called sinkonce, or sinkonce-SOMETHING:
 * ..._SERVICE_HOST, ..._SERVICE_PORT, ..._PORT=tcp://10.0.0.1:8650, ..._PORT_8650_TCP_ADDR and the like.
 * Source: Kubernetes documentation, "Service", environment variables. */
static bool is_from_kubernetes(const char *name, const char *value)
{
    const char *after = name + PREFIX_LENGTH;
    if (strcmp(after, "PORT") == 0 || begins_with(after, "PORT_") || begins_with(after, "SERVICE_"))
        return true;
    const char *port = strstr(after, "_PORT");
    if (port == NULL)
        return strlen(after) > 13 && strcmp(after + strlen(after) - 13, "_SERVICE_HOST") == 0;
    const bool is_url =
        strstr(value, "://") != NULL && (begins_with(value, "tcp") || begins_with(value, "udp"));
    return strstr(after, "_SERVICE_PORT") != NULL ||
           (begins_with(port, "_PORT_") && isdigit((unsigned char)port[6])) || (port[5] == '\0' && is_url);
}

/* X_FILE of a setting X that is no secret. */
static const struct settings_row *find_not_a_secret(const char *name)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const size_t length = strlen(settings_rows[i].name);
        if (strncmp(name, settings_rows[i].name, length) == 0 && strcmp(name + length, "_FILE") == 0)
            return &settings_rows[i];
    }
    return NULL;
}

static void add_unknown(struct reading *reading, const char *name)
{
    struct spelling spelling = spelling_of(name + PREFIX_LENGTH);
    const struct settings_row *plain = find_not_a_secret(name);
    for (size_t i = 0; i < ROW_COUNT; i++)
        spelling_offer(&spelling, settings_rows[i].name + PREFIX_LENGTH);
    if (plain != NULL)
        settings_mistake(reading->mistakes,
                         "%s is not a setting: only a secret may come from a file, set %s itself", name,
                         plain->name);
    else if (spelling.nearest != NULL)
        settings_mistake(reading->mistakes, "%s is not a setting; did you mean %s%s?", name, SETTINGS_PREFIX,
                         spelling.nearest);
    else
        settings_mistake(reading->mistakes, "%s is not a setting; sinkonce --help names them all", name);
    reading->is_wrong = true;
}

static void read_other_names(struct reading *reading)
{
    size_t skipped_count = 0;
    char first_skipped[NAME_BYTES_MAX];
    for (size_t i = 0; reading->environment[i] != NULL; i++) {
        const char *variable = reading->environment[i];
        char name[NAME_BYTES_MAX];
        if (!begins_with(variable, SETTINGS_PREFIX))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(variable, "="), variable);
        const char *value = strchr(variable, '=');
        if (is_known(name))
            continue;
        if (!is_from_kubernetes(name, value == NULL ? "" : value + 1))
            add_unknown(reading, name);
        else if (skipped_count++ == 0)
            strcpy(first_skipped, name);
    }
    if (skipped_count > 0)
        settings_note(reading->mistakes,
                      "%s %s skipped: Kubernetes sets such names for a Service called sinkonce",
                      first_skipped, skipped_count == 1 ? "is" : "and its like are");
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

static void take_away(struct status_set *set, const struct status_set *taken)
{
    for (size_t i = 0; i < sizeof set->bits / sizeof set->bits[0]; i++)
        set->bits[i] &= ~taken->bits[i];
}

/* Who adds 409 to the statuses that mean "applied" need not copy the other list without it. */
static void settle_statuses(struct settings *settings, const struct settings_origins *origins)
{
    const bool is_applied_set = origins->sources[ROW_APPLIED_STATUS] != SOURCE_DEFAULT;
    const bool is_not_applied_set = origins->sources[ROW_NOT_APPLIED_STATUS] != SOURCE_DEFAULT;
    if (is_applied_set && !is_not_applied_set)
        take_away(&settings->not_applied_status, &settings->applied_status);
    if (is_not_applied_set && !is_applied_set)
        take_away(&settings->applied_status, &settings->not_applied_status);
}

bool settings_read(char *const environment[], struct settings *ret_settings,
                   struct settings_mistakes *ret_mistakes)
{
    struct reading reading = { .environment = environment,
                               .settings = ret_settings,
                               .mistakes = ret_mistakes };
    memset(ret_settings, 0, sizeof *ret_settings);
    memset(ret_mistakes, 0, sizeof *ret_mistakes);
    for (size_t i = 0; i < ROW_COUNT; i++)
        read_row(&reading, i);
    read_other_names(&reading);
    settle_statuses(ret_settings, &reading.origins);
    if (!settings_check(ret_settings, &reading.origins, ret_mistakes))
        reading.is_wrong = true;
    settings_check_risks(ret_settings, ret_mistakes);
    return !reading.is_wrong;
}

void settings_deinit(struct settings *settings)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        clear_field(settings, &settings_rows[i]);
}
