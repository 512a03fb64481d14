/*
 * log_line.h - one event as one line of bytes, JSON or text.
 *
 * A decider: no clock, no descriptor.  Whatever the fields hold, the line is one line, valid UTF-8 and, in the JSON
 * form, one valid object.
 */
#ifndef SINKONCE_LOG_LINE_H
#define SINKONCE_LOG_LINE_H

#include "log.h"

/* 4 KiB is PIPE_BUF on Linux: a pipe takes so much in one piece, so lines of several threads never mix. */
enum { LOG_LINE_BYTES_MAX = 4096 };

struct log_line {
    char bytes[LOG_LINE_BYTES_MAX];
    size_t byte_count; /* with the line end */
    bool is_cut;       /* something did not fit; the line says so itself */
};

struct log_words {
    uint64_t time_ms; /* Unix time */
    enum log_level level;
    const char *event;
    const char *message;
    const struct log_field *fields; /* borrowed */
    size_t field_count;
    uint64_t suppressed_count; /* 0: not mentioned */
};

const char *log_level_name(enum log_level level); /* static: as it stands in lines and in the setting */

/* [any] IS_TEXT: the form for people, else JSON. */
void log_line_form(struct log_line *line, bool is_text, const struct log_words *words);

#endif
