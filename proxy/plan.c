/*
 * plan.c - see plan.h.
 *
 * Between two elements stands a gap: a comma, a line end, a separator, white space.  Shapes differ in what happens to
 * the gaps when elements go:
 *
 *     joined   [ A , B , C ]     arrays, envelopes, separated pieces: between two elements that stay stands the gap in
 *                                front of the second; what surrounds them all stays as it is
 *     lines    A \n B \n C \n    an element goes with its line end, other white space stays
 *     bulk     A B C             an action is whole lines: nothing but itself goes
 */
#include "plan.h"

#include <assert.h>
#include <stdlib.h>

#include "json_scan.h"

bool plan_site_is_sent(const struct identified *identified, const enum verdict verdicts[], size_t site_index)
{
    const struct record_site *site = &identified->sites[site_index];
    /* A request that may not be cut holds its repeats when it is sent at all. */
    if (site->record == NO_RECORD || (site->is_repeat && !identified->is_uncuttable))
        return site->record == NO_RECORD;
    if (verdicts == NULL)
        return true;
    /* One opaque site stands for all records. */
    size_t last = identified->shape == SHAPE_IS_OPAQUE ? identified->record_count : site->record + 1;
    for (size_t i = site->record; i < last; i++)
        if (verdicts[i] == VERDICT_NEW)
            return true;
    return false;
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* What is being built, and from what. */
struct builder {
    const struct identified *identified;
    const enum verdict *verdicts;
    struct plan *plan;
    bool is_stripped;
};

/* Parts that follow each other are one. */
static void part_add(struct builder *builder, size_t begin, size_t end)
{
    struct plan *plan = builder->plan;
    const char *at = builder->identified->body.at + begin;
    if (begin >= end)
        return;
    struct slice *last = plan->part_count > 0 ? &plan->parts[plan->part_count - 1] : NULL;
    if (last != NULL && last->at + last->byte_count == at)
        last->byte_count += end - begin;
    else
        plan->parts[plan->part_count++] = slice_of(at, end - begin);
    plan->body_bytes += end - begin;
}

/* The bytes of one element: all of it, or all but its coordinate fields. */
static void site_add(struct builder *builder, size_t index)
{
    const struct identified *identified = builder->identified;
    const struct record_site *site = &identified->sites[index];
    size_t at = site->whole.begin;
    for (size_t i = 0; builder->is_stripped && i < site->strip_count; i++) {
        const struct range *range = &identified->strip_ranges[site->strip_first + i];
        part_add(builder, at, range->begin);
        at = range->end;
    }
    part_add(builder, at, site->whole.end);
    builder->plan->site_count++;
}

/* The bytes before element INDEX, which may be one more than there are. */
static struct range gap_before(const struct identified *identified, size_t index)
{
    size_t begin = index == 0 ? 0 : identified->sites[index - 1].whole.end;
    size_t end =
        index == identified->site_count ? identified->body.byte_count : identified->sites[index].whole.begin;
    return (struct range){ begin, end };
}

/* ---- joined elements ----------------------------------------------------------------------------------------- */

/* An array of nothing has no comma behind its last element. */
static void joined_end_add(struct builder *builder, bool is_array)
{
    const struct identified *identified = builder->identified;
    struct range end = gap_before(identified, identified->site_count);
    if (is_array && builder->plan->site_count == 0) {
        size_t comma = json_blank_end(identified->body, end.begin);
        if (comma < end.end && identified->body.at[comma] == ',')
            end.begin = comma + 1;
    }
    part_add(builder, end.begin, end.end);
}

static void joined_add(struct builder *builder, bool is_array)
{
    const struct identified *identified = builder->identified;
    for (size_t i = 0; i < identified->site_count; i++) {
        if (i == 0) {
            struct range begin = gap_before(identified, 0);
            part_add(builder, begin.begin, begin.end);
        }
        if (!plan_site_is_sent(identified, builder->verdicts, i))
            continue;
        struct range gap = gap_before(identified, i);
        if (builder->plan->site_count > 0)
            part_add(builder, gap.begin, gap.end);
        site_add(builder, i);
    }
    joined_end_add(builder, is_array);
}

/* ---- lines --------------------------------------------------------------------------------------------------- */

/* An element goes with its line end, if there is one in the GAP behind it.  Other white space stays: that way a batch
 * that is cut twice reads like one that was cut once, wherever its lines are broken. */
static size_t line_end(const struct identified *identified, struct range gap)
{
    const char *at = identified->body.at;
    const char *found = gap.begin < gap.end ? memchr(at + gap.begin, '\n', gap.end - gap.begin) : NULL;
    return found != NULL ? (size_t)(found - at) + 1 : gap.begin;
}

static void lines_add(struct builder *builder)
{
    const struct identified *identified = builder->identified;
    size_t at = 0; /* all before it is done */
    for (size_t i = 0; i < identified->site_count; i++) {
        const struct range *whole = &identified->sites[i].whole;
        part_add(builder, at, whole->begin);
        at = whole->end;
        if (plan_site_is_sent(identified, builder->verdicts, i))
            site_add(builder, i);
        else
            at = line_end(identified, gap_before(identified, i + 1));
    }
    part_add(builder, at, identified->body.byte_count);
}

/* ---- whole actions, whole requests --------------------------------------------------------------------------- */

static void actions_add(struct builder *builder)
{
    const struct identified *identified = builder->identified;
    for (size_t i = 0; i <= identified->site_count; i++) {
        struct range gap = gap_before(identified, i);
        part_add(builder, gap.begin, gap.end);
        if (i < identified->site_count && plan_site_is_sent(identified, builder->verdicts, i))
            site_add(builder, i);
    }
}

static void body_add(struct builder *builder)
{
    switch (builder->identified->shape) {
    case SHAPE_IS_JSON_ARRAY:
    case SHAPE_IS_ENVELOPE:
        joined_add(builder, true);
        break;
    case SHAPE_IS_SEPARATED:
        joined_add(builder, false);
        break;
    case SHAPE_IS_NDJSON:
    case SHAPE_IS_CONCAT:
        lines_add(builder);
        break;
    case SHAPE_IS_NONE:
    case SHAPE_IS_SINGLE:
    case SHAPE_IS_BULK:
    case SHAPE_IS_OPAQUE:
        actions_add(builder);
        break;
    }
}

/* ---- plans --------------------------------------------------------------------------------------------------- */

/* Every element is at most one part with the gap before it and one for each of its ranges; one follows the last.
 * False: no memory. */
static bool parts_reserve(struct plan *plan, size_t site_count, size_t range_count)
{
    *plan = (struct plan){ .parts = calloc(2 * site_count + range_count + 2, sizeof *plan->parts) };
    return plan->parts != NULL;
}

/* The body as it came, compressed or not. */
static void whole_take(const struct request *request, struct plan *plan)
{
    plan->part_count = request->body_bytes > 0;
    plan->parts[0] = slice_of(request->body, request->body_bytes);
    plan->body_bytes = request->body_bytes;
    plan->is_rewritten = false;
}

/* Pack the parts again in the coding in which they came.  False: no memory. */
static bool parts_pack(const struct identified *identified, struct plan *plan)
{
    if (identified->decoded == NULL || plan->part_count == 0)
        return true;
    size_t byte_count;
    if (coding_pack(identified->coding, plan->parts, plan->part_count, &plan->packed, &byte_count) !=
        CODING_OK)
        return false;
    plan->parts[0] = slice_of(plan->packed, byte_count);
    plan->part_count = 1;
    plan->body_bytes = byte_count;
    return true;
}

/* What was put together is sent, unless it is all of the body after all. */
static bool plan_close(const struct request *request, const struct identified *identified, struct plan *plan)
{
    plan->is_rewritten = plan->body_bytes != identified->body.byte_count;
    if (plan->is_rewritten)
        return parts_pack(identified, plan);
    whole_take(request, plan);
    return true;
}

bool plan_build(const struct request *request, const struct identified *identified,
                const enum verdict verdicts[], bool is_stripped, struct plan *ret)
{
    assert(!identified->is_too_many);
    struct builder builder = { .identified = identified,
                               .verdicts = verdicts,
                               .plan = ret,
                               .is_stripped = is_stripped && !identified->is_uncuttable };
    if (!parts_reserve(ret, identified->site_count, builder.is_stripped ? identified->strip_range_count : 0))
        return false;
    if (identified->site_count == 0) {
        whole_take(request, ret);
        return true;
    }
    if (!identified->is_uncuttable) {
        body_add(&builder);
        return plan_close(request, identified, ret);
    }
    for (size_t i = 0; i < identified->site_count; i++)
        ret->site_count += plan_site_is_sent(identified, verdicts, i);
    if (ret->site_count > 0)
        whole_take(request, ret);
    else
        ret->is_rewritten = request->body_bytes > 0;
    return true;
}

/* What belongs to every element of a request that is sent alone: the envelope, the statement. */
static struct range surroundings_before(const struct identified *identified)
{
    struct range gap = gap_before(identified, 0);
    bool is_kept = identified->shape == SHAPE_IS_ENVELOPE ||
                   ((identified->shape == SHAPE_IS_CONCAT || identified->shape == SHAPE_IS_NDJSON) &&
                    json_blank_end(identified->body, 0) < gap.end);
    return is_kept ? gap : (struct range){ 0, 0 };
}

static struct range surroundings_behind(const struct identified *identified, size_t site)
{
    struct range behind = gap_before(identified, site + 1);
    if (identified->shape == SHAPE_IS_ENVELOPE)
        return gap_before(identified, identified->site_count);
    if (identified->shape == SHAPE_IS_CONCAT || identified->shape == SHAPE_IS_NDJSON)
        return (struct range){ behind.begin, line_end(identified, behind) };
    return (struct range){ 0, 0 };
}

bool plan_build_site(const struct request *request, const struct identified *identified, size_t site,
                     bool is_stripped, struct plan *ret)
{
    assert(site < identified->site_count);
    if (!parts_reserve(ret, 1, identified->sites[site].strip_count))
        return false;
    struct builder builder = { .identified = identified,
                               .plan = ret,
                               .is_stripped = is_stripped && !identified->is_uncuttable };
    struct range before = surroundings_before(identified), behind = surroundings_behind(identified, site);
    part_add(&builder, before.begin, before.end);
    site_add(&builder, site);
    part_add(&builder, behind.begin, behind.end);
    return plan_close(request, identified, ret);
}

void plan_deinit(struct plan *plan)
{
    free(plan->parts);
    free(plan->packed);
    *plan = (struct plan){ .parts = NULL };
}
