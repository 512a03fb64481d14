/*
 * log_limit.c - the memory of when each limited event was last written.
 */
#include "log_limit.h"

static struct log_limit_row *find(struct log_limit *limit, const char *event)
{
    for (size_t i = 0; i < limit->row_count; i++) {
        if (strcmp(limit->rows[i].event, event) == 0)
            return &limit->rows[i];
    }
    return NULL;
}

bool log_limit_take(struct log_limit *limit, const char *event, uint64_t now_ms,
                    uint64_t *ret_suppressed_count)
{
    struct log_limit_row *row = find(limit, event);
    *ret_suppressed_count = 0;
    if (row == NULL) {
        if (limit->row_count < LOG_LIMIT_EVENTS_MAX)
            limit->rows[limit->row_count++] = (struct log_limit_row){ event, now_ms, 0 };
        return true;
    }
    if (now_ms - row->written_ms < LOG_LIMIT_PERIOD_MS) {
        row->suppressed_count++;
        return false;
    }
    *ret_suppressed_count = row->suppressed_count;
    row->suppressed_count = 0;
    row->written_ms = now_ms;
    return true;
}
