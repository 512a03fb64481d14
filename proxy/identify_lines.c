/*
 * identify_lines.c - records that follow each other without an array around them.
 *
 *     {"a":1}\n{"a":2}\n                        lines
 *     {"a":1}{"a":2}                            nothing between
 *     INSERT INTO t FORMAT JSONEachRow\n{"a":1} a statement first, which is no element
 *     PREFIX piece SEPARATOR piece SUFFIX       as set by the operator
 */
#include "identify_shapes.h"

#include <strings.h>

/* ---- JSON values --------------------------------------------------------------------------------------------- */

/* No statement of a connector is longer by far; a body that merely begins like one is not searched to its end. */
enum { STATEMENT_BYTES_MAX = 65536 };

/* Where the values behind a statement begin; 0: there is no statement. */
static size_t statement_end(struct slice body)
{
    static const char verb[] = "INSERT", format[] = "JSONEachRow";
    size_t begin = json_blank_end(body, 0);
    if (body.byte_count - begin < sizeof verb || strncasecmp(body.at + begin, verb, sizeof verb - 1) != 0)
        return 0;
    size_t byte_count = body.byte_count - begin;
    if (byte_count > STATEMENT_BYTES_MAX)
        byte_count = STATEMENT_BYTES_MAX;
    const char *found = memmem(body.at + begin, byte_count, format, sizeof format - 1);
    if (found == NULL)
        return 0;
    size_t end = json_blank_end(body, (size_t)(found - body.at) + sizeof format - 1);
    return end < body.byte_count && body.at[end] == '{' ? end : 0;
}

bool has_statement(struct slice body)
{
    return statement_end(body) != 0;
}

static bool has_line_end(struct slice body, size_t begin, size_t end)
{
    return begin < end && memchr(body.at + begin, '\n', end - begin) != NULL;
}

/* Numbers and words run into each other when nothing stands between them. */
static bool is_container(struct slice body, size_t at)
{
    return body.at[at] == '{' || body.at[at] == '[';
}

static enum read_status all_values_read(struct gather *gather, bool is_line_each, enum shape *ret_shape)
{
    struct slice body = gather->ret->body;
    bool has_bare_gap = false, has_scalar = false;
    size_t begin = json_blank_end(body, statement_end(body));
    while (begin < body.byte_count) {
        size_t end;
        enum read_status status = gather_add_value(gather, begin, &end);
        if (status != READ_OK)
            return status;
        size_t next = json_blank_end(body, end);
        has_scalar = has_scalar || !is_container(body, begin);
        if (is_line_each && has_line_end(body, begin, end))
            return READ_NONE;
        has_bare_gap = has_bare_gap || (next < body.byte_count && !has_line_end(body, end, next));
        begin = next;
    }
    *ret_shape = has_bare_gap ? SHAPE_IS_CONCAT : SHAPE_IS_NDJSON;
    return has_bare_gap && (is_line_each || has_scalar) ? READ_NONE : READ_OK;
}

enum read_status values_read(struct gather *gather, enum shape *ret_shape)
{
    return all_values_read(gather, false, ret_shape);
}

enum read_status lines_read(struct gather *gather)
{
    enum shape shape;
    return all_values_read(gather, true, &shape);
}

/* ---- separated pieces ---------------------------------------------------------------------------------------- */

static bool begins_with(struct slice bytes, struct slice begin)
{
    return bytes.byte_count >= begin.byte_count &&
           (begin.byte_count == 0 || memcmp(bytes.at, begin.at, begin.byte_count) == 0);
}

static bool ends_with(struct slice bytes, struct slice end)
{
    return bytes.byte_count >= end.byte_count &&
           (end.byte_count == 0 ||
            memcmp(bytes.at + bytes.byte_count - end.byte_count, end.at, end.byte_count) == 0);
}

/* Where the separator behind the JSON value that ends at END begins, or BODY ends: white space may stand between. */
static bool separator_find(struct slice body, struct slice separator, size_t end, size_t *ret_next)
{
    size_t blank_end = json_blank_end(body, end);
    for (*ret_next = end; *ret_next <= blank_end; ++*ret_next)
        if (begins_with(slice_of(body.at + *ret_next, body.byte_count - *ret_next), separator))
            return true;
    *ret_next = body.byte_count;
    return blank_end == body.byte_count;
}

/* The piece at BEGIN.  One that begins like an object must be one: a separator inside of a string is no end.  Anything
 * else ends at the next separator.  *RET_NEXT is where that begins, or the end of BODY, which is what the suffix has
 * left. */
static enum read_status piece_read(struct gather *gather, struct slice body, struct slice separator,
                                   size_t begin, size_t *ret_next)
{
    size_t byte_count, inside = json_blank_end(body, begin);
    if (inside < body.byte_count && body.at[inside] == '{') {
        if (json_view_read(&gather->view, body.at + inside, body.byte_count - inside, &byte_count) !=
                JSON_DONE ||
            !separator_find(body, separator, inside + byte_count, ret_next))
            return READ_NONE;
        return gather_add_viewed(gather, (struct range){ inside, inside + byte_count });
    }
    const char *found = memmem(body.at + begin, body.byte_count - begin, separator.at, separator.byte_count);
    *ret_next = found == NULL ? body.byte_count : (size_t)(found - body.at);
    gather->view.is_read = false;
    return gather_add_viewed(gather, (struct range){ begin, *ret_next });
}

enum read_status separated_read(struct gather *gather)
{
    const struct settings *settings = gather->identifier->settings;
    struct slice separator = slice_of_text(settings->separator), prefix = slice_of_text(settings->prefix);
    struct slice suffix = slice_of_text(settings->suffix), body = gather->ret->body;
    if (body.byte_count < prefix.byte_count + suffix.byte_count || !begins_with(body, prefix) ||
        !ends_with(body, suffix))
        return READ_NONE;
    body.byte_count -= suffix.byte_count;
    size_t begin = prefix.byte_count;
    /* A separator behind the last piece is not followed by another one. */
    while (begin < body.byte_count) {
        size_t next;
        enum read_status status = piece_read(gather, body, separator, begin, &next);
        if (status != READ_OK)
            return status;
        begin = next + (next < body.byte_count ? separator.byte_count : 0);
    }
    return READ_OK;
}
