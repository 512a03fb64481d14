/*
 * identify.c - see identify.h.
 *
 * A shape is one function in a table.  It finds the records and their ranges; rules and locators are the business of
 * identify_find.c, where bytes are cut that of identify_cut.c.
 */
#include "identify.h"

#include <assert.h>
#include <stdlib.h>
#include <xxhash.h>

#include "identify_cut.h"
#include "identify_find.h"
#include "identify_header.h"

/* ---- identity marks ------------------------------------------------------------------------------------------ */

/* The hash of what stays of BYTES without RANGES; the same wherever the cuts were.  False: no memory. */
static bool hash_without(struct slice bytes, const struct range ranges[], size_t range_count,
                         uint64_t *ret_hash)
{
    if (range_count == 0) {
        *ret_hash = XXH3_64bits(bytes.byte_count > 0 ? bytes.at : "", bytes.byte_count);
        return true;
    }
    XXH3_state_t *state = XXH3_createState();
    if (state == NULL)
        return false;
    bool is_hashed = XXH3_64bits_reset(state) == XXH_OK;
    size_t at = 0;
    for (size_t i = 0; i <= range_count && is_hashed; i++) {
        size_t end = i < range_count ? ranges[i].begin : bytes.byte_count;
        is_hashed = XXH3_64bits_update(state, bytes.at + at, end - at) == XXH_OK;
        at = i < range_count ? ranges[i].end : end;
    }
    *ret_hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return is_hashed;
}

static bool is_hashed(enum identity_setting identity, const struct finding *finding)
{
    return identity == IDENTITY_BODY || (identity == IDENTITY_AUTO && !finding->has_timestamp);
}

/* BYTES are the record's own.  False: no memory. */
static bool mark_make(enum identity_setting identity, struct slice bytes, const struct finding *finding,
                      record_mark *ret_mark)
{
    *ret_mark = MARK_NONE;
    if (!is_hashed(identity, finding)) {
        if (identity != IDENTITY_OFF && finding->has_timestamp)
            *ret_mark = mark_of_timestamp(finding->timestamp_ms);
        return true;
    }
    struct slice members[CUT_MEMBERS_MAX + 1];
    struct range ranges[CUT_MEMBERS_MAX + 1];
    size_t member_count = finding->member_count;
    memcpy(members, finding->members, member_count * sizeof members[0]);
    if (finding->unhashed.byte_count > 0)
        members[member_count++] = finding->unhashed;
    uint64_t hash;
    size_t range_count = cut_members(bytes.at, bytes.byte_count, members, member_count, ranges);
    if (!hash_without(bytes, ranges, range_count, &hash))
        return false;
    *ret_mark = mark_of_hash(hash);
    return true;
}

/* ---- one record per request ---------------------------------------------------------------------------------- */

/* Room for RECORD_COUNT records.  False: no memory. */
static bool records_reserve(struct identified *ret, size_t record_count, size_t range_count,
                            size_t topic_bytes)
{
    ret->records = calloc(record_count, sizeof *ret->records);
    ret->sites = calloc(record_count, sizeof *ret->sites);
    ret->topics = malloc(topic_bytes);
    if (range_count > 0)
        ret->strip_ranges = calloc(range_count, sizeof *ret->strip_ranges);
    return ret->records != NULL && ret->sites != NULL && ret->topics != NULL &&
           (range_count == 0 || ret->strip_ranges != NULL);
}

/* A signature covers what would be cut, so then nothing is to be stripped.  Sorts the finding's members. */
static void strip_fill(struct identified *ret, const struct request *request, struct finding *finding)
{
    if (head_is_signed(request))
        return;
    ret->strip_range_count = cut_members(request->body, request->body_bytes, finding->members,
                                         finding->member_count, ret->strip_ranges);
    ret->strip_header_count = finding->header_count;
    memcpy(ret->strip_headers, finding->headers, finding->header_count * sizeof finding->headers[0]);
}

/* The whole request is one record, or none. */
static bool single_read(const struct identifier *identifier, const struct request *request,
                        struct identified *ret)
{
    struct json_view view = { .is_read = false };
    struct finding finding;
    record_mark mark;
    if (head_is_identity_coded(request))
        json_view_read(&view, identifier, request->body, request->body_bytes);
    if (!coordinates_find(identifier, request, &view, &finding))
        return true;
    struct slice body = slice_of(request->body, request->body_bytes);
    if (!mark_make(identifier->identity, body, &finding, &mark) ||
        !records_reserve(ret, 1, finding.member_count, finding.key.topic.byte_count))
        return false;
    strip_fill(ret, request, &finding);
    memcpy(ret->topics, finding.key.topic.at, finding.key.topic.byte_count);
    ret->records[0] = (struct record){ .key = finding.key, .mark = mark };
    ret->records[0].key.topic.at = ret->topics;
    ret->sites[0] =
        (struct record_site){ .whole = { 0, request->body_bytes }, .strip_count = ret->strip_range_count };
    ret->record_count = 1;
    ret->rule = finding.rule;
    return true;
}

/* ---- shapes -------------------------------------------------------------------------------------------------- */

struct shape_row {
    /* False: no memory.  RET comes in empty, with its shape set. */
    bool (*read)(const struct identifier *identifier, const struct request *request, struct identified *ret);
};

static const struct shape_row shape_rows[] = {
    [SHAPE_IS_SINGLE] = { single_read },
};

static enum shape shape_of(const struct request *request)
{
    switch (request->head.method) {
    case HTTP1_POST:
    case HTTP1_PUT:
    case HTTP1_PATCH:
    case HTTP1_DELETE:
        return SHAPE_IS_SINGLE;
    case HTTP1_GET:
    case HTTP1_HEAD:
    case HTTP1_OPTIONS:
    case HTTP1_METHOD_COUNT:
        break;
    }
    return SHAPE_IS_NONE;
}

bool identify(const struct identifier *identifier, const struct request *request, struct identified *ret)
{
    assert(request->body != NULL || request->body_bytes == 0);
    *ret = (struct identified){ .shape = shape_of(request), .rule = "" };
    if (ret->shape == SHAPE_IS_NONE)
        return true;
    if (!shape_rows[ret->shape].read(identifier, request, ret))
        return false;
    if (ret->record_count > identifier->records_max) {
        ret->is_too_many = true;
        ret->record_count = 0;
    }
    return true;
}

void identified_deinit(struct identified *identified)
{
    free(identified->records);
    free(identified->sites);
    free(identified->strip_ranges);
    free(identified->topics);
    *identified = (struct identified){ .rule = "" };
}
