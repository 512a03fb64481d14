/*
 * log.h - one line per event on stderr: JSON, or text on a terminal.
 *
 * Bodies, keys and secrets are never passed in.  Any bytes may be: control bytes are escaped, what is not UTF-8
 * becomes U+FFFD, and a line is at most 4 KiB, cut where it would be longer ("cut":true), so that lines of several
 * threads never mix.  log_event_limited() writes the same event at most once per 10 s; the next line then says in
 * "suppressed" how many were held back.
 */
#ifndef SINKONCE_LOG_H
#define SINKONCE_LOG_H

#include <stdint.h>
#include "slice.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_JSON, LOG_FORMAT_TEXT };

/* One field of a line; the text is escaped on the way out. */
struct log_field {
    const char *name;
    enum { LOG_TEXT, LOG_SLICE, LOG_INTEGER } kind;
    const char *text;
    struct slice slice;
    int64_t integer;
};
static inline struct log_field log_text(const char *name, const char *text)
{
    return (struct log_field){ .name = name, .kind = LOG_TEXT, .text = text };
}
static inline struct log_field log_slice(const char *name, struct slice slice)
{
    return (struct log_field){ .name = name, .kind = LOG_SLICE, .slice = slice };
}
static inline struct log_field log_integer(const char *name, int64_t integer)
{
    return (struct log_field){ .name = name, .kind = LOG_INTEGER, .integer = integer };
}

void log_init(enum log_level level, enum log_format format);      /* [main] before threads */
void log_level_set(enum log_level level);                         /* [any] */
bool log_is_on(enum log_level level);                             /* [any] */
/* [any] EVENT is a dotted name such as "server.ready"; MESSAGE a sentence. */
void log_event(enum log_level level, const char *event, const char *message, const struct log_field fields[],
               size_t field_count);
/* [any] The same, but at most once per 10 s and EVENT, which must be a string constant. */
void log_event_limited(enum log_level level, const char *event, const char *message, const struct log_field fields[],
                       size_t field_count);
#define LOG_EVENT(level, event, message, ...)                                                                        \
    do {                                                                                                             \
        if (log_is_on(level)) {                                                                                      \
            const struct log_field log_fields_[] = { __VA_ARGS__ };                                                  \
            log_event(level, event, message, log_fields_, sizeof log_fields_ / sizeof log_fields_[0]);               \
        }                                                                                                            \
    } while (0)
#define LOG_EVENT_LIMITED(level, event, message, ...)                                                                \
    do {                                                                                                             \
        if (log_is_on(level)) {                                                                                      \
            const struct log_field log_fields_[] = { __VA_ARGS__ };                                                  \
            log_event_limited(level, event, message, log_fields_, sizeof log_fields_ / sizeof log_fields_[0]);       \
        }                                                                                                            \
    } while (0)

/* [any] One line of the access log on stdout, already formed without the line end. */
void log_access(struct slice line);

#endif
