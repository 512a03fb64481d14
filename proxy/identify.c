/*
 * identify.c - see identify.h.
 *
 * Opens the body, decides which shape it has, and lets that shape read it.  Shapes are in identify_array.c, _lines.c,
 * _bulk.c and _opaque.c, what they find is collected by identify_gather.c, rules and locators are the business of
 * identify_find.c, where bytes are cut that of identify_cut.c.
 */
#include "identify.h"

#include <assert.h>
#include <stdlib.h>

#include "identify_header.h"
#include "identify_shapes.h"

/* ---- the body ------------------------------------------------------------------------------------------------ */

/* Its one coding; several are none of ours (RFC 9110, 8.4). */
static enum coding coding_of_request(const struct request *request)
{
    enum coding coding = CODING_IDENTITY;
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http1_field *field = &request->head.fields[i];
        enum coding next = CODING_IDENTITY;
        if (http1_name_equals(field->name, "content-encoding"))
            next = coding_of(field->value);
        if (next != CODING_IDENTITY)
            coding = coding == CODING_IDENTITY ? next : CODING_OTHER;
    }
    return coding;
}

/* A body that cannot be opened stays as it came, and no shape will find anything in it.  False: no memory. */
static bool body_open(const struct identifier *identifier, const struct request *request,
                      struct identified *ret)
{
    size_t decoded_bytes;
    ret->body = request->body_bytes > 0 ? slice_of(request->body, request->body_bytes) : slice_of("", 0);
    ret->coding = request->body_bytes > 0 ? coding_of_request(request) : CODING_IDENTITY;
    if (ret->coding == CODING_IDENTITY || ret->coding == CODING_OTHER)
        return true;
    enum coding_status status = coding_open(&ret->coding, ret->body, identifier->settings->body_bytes_max,
                                            &ret->decoded, &decoded_bytes);
    if (status == CODING_OK)
        ret->body = slice_of(ret->decoded, decoded_bytes);
    else
        ret->coding = CODING_OTHER;
    ret->is_too_large = status == CODING_TOO_LARGE;
    return status != CODING_NO_MEMORY;
}

/* ---- automatic shapes ---------------------------------------------------------------------------------------- */

/* Does the head alone say whose record this is, or try to? */
static bool is_told_by_head(struct gather *gather)
{
    gather->view.is_read = false;
    return gather_look(gather) != LOOK_ABSENT;
}

static enum read_status whole_read(struct gather *gather, enum shape *ret_shape)
{
    *ret_shape = SHAPE_IS_SINGLE;
    gather_reset(gather, PLACE_WHOLE);
    return single_read(gather);
}

static enum read_status inside_read(struct gather *gather, const struct locator *pointer,
                                    enum shape *ret_shape)
{
    *ret_shape = SHAPE_IS_ENVELOPE;
    gather_reset(gather, PLACE_ELEMENT);
    return envelope_read(gather, pointer);
}

/* An array without records may be New Relic's: one object whose "logs" hold them. */
static enum read_status bracket_read(struct gather *gather, enum shape *ret_shape)
{
    const struct rule_set *rules = &gather->identifier->sets[PLACE_ELEMENT];
    *ret_shape = SHAPE_IS_JSON_ARRAY;
    gather_reset(gather, PLACE_ELEMENT);
    enum read_status status = array_read(gather);
    bool is_envelope = status == READ_OK && gather->ret->record_count == 0 && gather->ret->site_count == 1 &&
                       gather->view.is_read && gather->view.wants[rules->envelope].kind == JSON_IS_ARRAY;
    return is_envelope ? inside_read(gather, &gather->identifier->relic_envelope.items[0], ret_shape)
                       : status;
}

/* One object is a record, or Dapr's envelope; several are records. */
static enum read_status brace_read(struct gather *gather, enum shape *ret_shape)
{
    const struct rule_set *rules = &gather->identifier->sets[PLACE_WHOLE];
    struct slice body = gather->ret->body;
    size_t end;
    gather_reset(gather, PLACE_WHOLE);
    if (json_view_read(&gather->view, body.at, body.byte_count, &end) != JSON_DONE)
        return READ_NONE;
    if (!json_is_blank(body.at, body.byte_count, end)) {
        gather_reset(gather, PLACE_ELEMENT);
        enum read_status status = values_read(gather, ret_shape);
        /* An action whose source alone were cut would take the next line for its source. */
        bool is_bulk =
            status == READ_OK && gather->ret->sites[0].record == NO_RECORD && begins_like_bulk(body);
        return is_bulk ? READ_NONE : status;
    }
    if (gather->view.wants[rules->envelope].kind == JSON_IS_ARRAY) {
        enum read_status status = inside_read(gather, &gather->identifier->dapr_envelope.items[0], ret_shape);
        bool is_settled = status != READ_NONE && (status != READ_OK || gather->ret->record_count > 0);
        return is_settled ? status : whole_read(gather, ret_shape);
    }
    *ret_shape = SHAPE_IS_SINGLE;
    return single_take(gather);
}

static enum read_status content_read(struct gather *gather, enum shape *ret_shape)
{
    struct slice body = gather->ret->body;
    size_t begin = json_blank_end(body, 0);
    const struct locator_list *envelope = &gather->identifier->settings->envelope;
    if (envelope->count > 0) {
        enum read_status status = inside_read(gather, &envelope->items[0], ret_shape);
        if (status != READ_NONE)
            return status;
    }
    if (begin < body.byte_count && body.at[begin] == '[')
        return bracket_read(gather, ret_shape);
    if (begin < body.byte_count && body.at[begin] == '{')
        return brace_read(gather, ret_shape);
    if (!has_statement(body))
        return whole_read(gather, ret_shape);
    gather_reset(gather, PLACE_ELEMENT);
    *ret_shape = SHAPE_IS_CONCAT;
    enum shape as_lines;
    return values_read(gather, &as_lines);
}

static void records_drop(struct identified *ret)
{
    free(ret->records);
    free(ret->sites);
    free(ret->actions);
    free(ret->strip_ranges);
    free(ret->topics);
    ret->records = NULL;
    ret->sites = NULL;
    ret->actions = NULL;
    ret->strip_ranges = NULL;
    ret->topics = NULL;
    ret->record_count = ret->site_count = ret->strip_range_count = ret->strip_header_count = 0;
    ret->is_contradictory = false;
    ret->rule = "";
}

static enum read_status auto_read(struct gather *gather, enum shape *ret_shape)
{
    struct identified *ret = gather->ret;
    if (is_bulk_path(gather->request)) {
        *ret_shape = SHAPE_IS_BULK;
        gather_reset(gather, PLACE_SOURCE);
        return is_readable(ret) ? bulk_read(gather) : READ_NONE;
    }
    if (is_told_by_head(gather))
        return whole_read(gather, ret_shape);
    enum read_status status = is_readable(ret) ? content_read(gather, ret_shape) : READ_NONE;
    if (status != READ_NONE && (status != READ_OK || ret->record_count > 0))
        return status;
    records_drop(ret);
    enum read_status of_token = token_read(gather);
    if (of_token != READ_NONE)
        *ret_shape = SHAPE_IS_OPAQUE;
    return of_token;
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

static enum read_status element_shape_read(struct gather *gather, enum shape *shape)
{
    const struct locator_list *envelope = &gather->identifier->settings->envelope;
    gather_reset(gather, *shape == SHAPE_IS_BULK ? PLACE_SOURCE : PLACE_ELEMENT);
    switch (*shape) {
    case SHAPE_IS_JSON_ARRAY:
        return array_read(gather);
    case SHAPE_IS_NDJSON:
        return lines_read(gather);
    case SHAPE_IS_CONCAT: {
        enum shape as_lines;
        return values_read(gather, &as_lines);
    }
    case SHAPE_IS_SEPARATED:
        return separated_read(gather);
    case SHAPE_IS_ENVELOPE:
        return envelope->count > 0 ? envelope_read(gather, &envelope->items[0]) : READ_NONE;
    case SHAPE_IS_BULK:
        return bulk_read(gather);
    case SHAPE_IS_NONE:
    case SHAPE_IS_SINGLE:
    case SHAPE_IS_OPAQUE:
        break;
    }
    return READ_NONE;
}

static enum read_status shape_read(struct gather *gather, enum shape *ret_shape)
{
    static const enum shape shapes[] = {
        [SHAPE_AUTO] = SHAPE_IS_NONE,
        [SHAPE_SINGLE] = SHAPE_IS_SINGLE,
        [SHAPE_JSON_ARRAY] = SHAPE_IS_JSON_ARRAY,
        [SHAPE_NDJSON] = SHAPE_IS_NDJSON,
        [SHAPE_BULK] = SHAPE_IS_BULK,
        [SHAPE_CONCAT] = SHAPE_IS_CONCAT,
        [SHAPE_SEPARATED] = SHAPE_IS_SEPARATED,
        [SHAPE_ENVELOPE] = SHAPE_IS_ENVELOPE,
        [SHAPE_OPAQUE] = SHAPE_IS_OPAQUE,
    };
    *ret_shape = shapes[gather->identifier->settings->shape];
    switch (*ret_shape) {
    case SHAPE_IS_NONE:
        *ret_shape = SHAPE_IS_SINGLE;
        return auto_read(gather, ret_shape);
    case SHAPE_IS_SINGLE:
        return single_read(gather);
    case SHAPE_IS_OPAQUE:
        return opaque_read(gather);
    case SHAPE_IS_JSON_ARRAY:
    case SHAPE_IS_NDJSON:
    case SHAPE_IS_CONCAT:
    case SHAPE_IS_SEPARATED:
    case SHAPE_IS_ENVELOPE:
    case SHAPE_IS_BULK:
        break;
    }
    return is_readable(gather->ret) ? element_shape_read(gather, ret_shape) : READ_NONE;
}

bool identify(const struct identifier *identifier, const struct request *request, struct identified *ret)
{
    assert(request->body != NULL || request->body_bytes == 0);
    *ret = (struct identified){ .shape = SHAPE_IS_NONE, .rule = "" };
    ret->body = request->body_bytes > 0 ? slice_of(request->body, request->body_bytes) : slice_of("", 0);
    if (!request_is_write(request))
        return true;
    if (!body_open(identifier, request, ret))
        return false;
    ret->is_signed = ret->is_uncuttable = head_is_signed(request);
    struct gather gather;
    gather_init(&gather, identifier, request, PLACE_WHOLE, ret);
    enum read_status status = shape_read(&gather, &ret->shape);
    gather_deinit(&gather);
    /* Elements that are all without records are no elements: the request is passed on whole. */
    if (status != READ_OK || ret->record_count == 0)
        records_drop(ret);
    ret->is_too_many = status == READ_TOO_MANY;
    ret->is_too_large = ret->is_too_large && ret->record_count == 0;
    ret->is_uncuttable = ret->is_uncuttable || ret->shape == SHAPE_IS_OPAQUE;
    return status != READ_NO_MEMORY;
}

size_t identified_list_bytes(const struct identified *identified)
{
    size_t site_bytes =
        sizeof *identified->sites + (identified->actions == NULL ? 0 : sizeof *identified->actions);
    return identified->record_count * sizeof *identified->records + identified->site_count * site_bytes +
           identified->strip_range_count * sizeof *identified->strip_ranges;
}

void identified_deinit(struct identified *identified)
{
    records_drop(identified);
    free(identified->decoded);
    *identified = (struct identified){ .rule = "" };
}
