/*
 * silent_log.h - the log of a target that is linked without one: everything is told, nobody hears it.  Included once.
 */
#ifndef SINKONCE_FUZZ_SILENT_LOG_H
#define SINKONCE_FUZZ_SILENT_LOG_H

#include "log.h"

bool log_is_on(enum log_level level)
{
    (void)level;
    return true;
}

void log_event(enum log_level level, const char *event, const char *message, const struct log_field fields[],
               size_t field_count)
{
    (void)level, (void)event, (void)message, (void)fields, (void)field_count;
}

void log_event_limited(enum log_level level, const char *event, const char *message,
                       const struct log_field fields[], size_t field_count)
{
    log_event(level, event, message, fields, field_count);
}

#endif
