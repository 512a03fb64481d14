/*
 * plan.c - see plan.h.
 *
 * Walks the body once, over the ranges that go; what lies between them is what is sent.
 */
#include "plan.h"

#include <assert.h>
#include <stdlib.h>

static void part_add(struct plan *plan, const char body[], size_t begin, size_t end)
{
    if (begin >= end)
        return;
    plan->parts[plan->part_count++] = slice_of(body + begin, end - begin);
    plan->body_bytes += end - begin;
}

static bool is_sent(const enum verdict verdicts[], size_t record)
{
    return verdicts == NULL || verdicts[record] == VERDICT_NEW;
}

/* The bytes of one record: all of it, all but its coordinate fields, or nothing. */
static void record_add(struct plan *plan, const char body[], const struct identified *identified,
                       size_t record, bool is_stripped)
{
    const struct record_site *site = &identified->sites[record];
    size_t at = site->whole.begin;
    for (size_t i = 0; is_stripped && i < site->strip_count; i++) {
        const struct range *range = &identified->strip_ranges[site->strip_first + i];
        part_add(plan, body, at, range->begin);
        at = range->end;
    }
    part_add(plan, body, at, site->whole.end);
}

bool plan_build(const struct request *request, const struct identified *identified,
                const enum verdict verdicts[], bool is_stripped, struct plan *ret)
{
    assert(!identified->is_too_many);
    *ret = (struct plan){ .parts = NULL };
    if (request->body_bytes == 0)
        return true;
    /* Every record and every range begins at most one part, and one may follow the last. */
    size_t part_count_max = 2 * identified->record_count + identified->strip_range_count + 1;
    ret->parts = calloc(part_count_max, sizeof *ret->parts);
    if (ret->parts == NULL)
        return false;
    size_t at = 0;
    for (size_t i = 0; i < identified->record_count; i++) {
        const struct record_site *site = &identified->sites[i];
        part_add(ret, request->body, at, site->whole.begin);
        if (is_sent(verdicts, i))
            record_add(ret, request->body, identified, i, is_stripped);
        at = site->whole.end;
    }
    part_add(ret, request->body, at, request->body_bytes);
    assert(ret->part_count <= part_count_max);
    ret->is_rewritten = ret->body_bytes != request->body_bytes;
    return true;
}

void plan_deinit(struct plan *plan)
{
    free(plan->parts);
    *plan = (struct plan){ .parts = NULL };
}
