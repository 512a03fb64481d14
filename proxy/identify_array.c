/*
 * identify_array.c - arrays of records, alone or inside an envelope.
 *
 * The walk to the array steps over the values beside it; each of them is scanned once, and so is each element.  A comma
 * behind the last element is no JSON, but is what loop templates make.
 */
#include "identify_shapes.h"
#include "json_string.h"

/* From the bracket at BEGIN; *RET_END is behind the closing one. */
static enum read_status elements_read(struct gather *gather, size_t begin, size_t *ret_end)
{
    struct slice body = gather->ret->body;
    size_t at = json_blank_end(body, begin + 1);
    while (at < body.byte_count && body.at[at] != ']') {
        enum read_status status = gather_add_value(gather, at, &at);
        if (status != READ_OK)
            return status;
        at = json_blank_end(body, at);
        if (at < body.byte_count && body.at[at] == ',')
            at = json_blank_end(body, at + 1);
        else if (at < body.byte_count && body.at[at] != ']')
            return READ_NONE;
    }
    *ret_end = at + 1;
    return at < body.byte_count ? READ_OK : READ_NONE;
}

static bool is_at(struct slice body, size_t at, char c)
{
    return at < body.byte_count && body.at[at] == c;
}

enum read_status array_read(struct gather *gather)
{
    struct slice body = gather->ret->body;
    size_t begin = json_blank_end(body, 0), end;
    if (!is_at(body, begin, '['))
        return READ_NONE;
    enum read_status status = elements_read(gather, begin, &end);
    if (status == READ_OK && !json_is_blank(body.at, body.byte_count, end))
        return READ_NONE;
    return status;
}

/* ---- envelopes ----------------------------------------------------------------------------------------------- */

struct walk {
    struct gather *gather;
    struct slice body;
    const struct locator *pointer;
    size_t at;     /* where to read on */
    bool is_found; /* the pointer has led to its value */
};

static enum read_status value_skip(struct walk *walk)
{
    size_t byte_count;
    if (json_scan(walk->body.at + walk->at, walk->body.byte_count - walk->at, NULL, 0, &byte_count) !=
        JSON_DONE)
        return READ_NONE;
    walk->at += byte_count;
    return READ_OK;
}

/* The name at walk->at and its colon; *RET_IS_WANTED: it is the token. */
static enum read_status name_read(struct walk *walk, const char *token, bool *ret_is_wanted)
{
    size_t begin = walk->at, byte_count;
    char name[512]; /* a pointer, and so a token, is shorter: settings.h */
    if (!is_at(walk->body, begin, '"') || value_skip(walk) != READ_OK)
        return READ_NONE;
    struct slice text = slice_of(walk->body.at + begin, walk->at - begin);
    *ret_is_wanted = json_string_copy(text, name, sizeof name, &byte_count) &&
                     slice_equals_text(slice_of(name, byte_count), token);
    walk->at = json_blank_end(walk->body, walk->at);
    if (!is_at(walk->body, walk->at, ':'))
        return READ_NONE;
    walk->at = json_blank_end(walk->body, walk->at + 1);
    return READ_OK;
}

/* Over the comma to the next item, or over the closing bracket.  False: neither is there. */
static bool item_end(struct walk *walk, char closing, bool *ret_is_last)
{
    walk->at = json_blank_end(walk->body, walk->at);
    *ret_is_last = is_at(walk->body, walk->at, closing);
    if (!*ret_is_last && !is_at(walk->body, walk->at, ','))
        return false;
    walk->at++;
    if (!*ret_is_last)
        walk->at = json_blank_end(walk->body, walk->at);
    return true;
}

static enum read_status level_read(struct walk *walk, size_t depth);

/* One member or element.  INDEX counts the elements of an array. */
static enum read_status item_read(struct walk *walk, size_t depth, bool is_object, uint64_t index)
{
    const char *token = walk->pointer->tokens[depth];
    bool is_wanted = false;
    uint64_t wanted_index;
    if (is_object && name_read(walk, token, &is_wanted) != READ_OK)
        return READ_NONE;
    if (!is_object)
        is_wanted = decimal_read(slice_of_text(token), UINT64_MAX, &wanted_index) && wanted_index == index;
    if (!is_wanted)
        return value_skip(walk);
    /* A name on the way that stands twice leads to two arrays: which of them is meant is unknown. */
    return walk->is_found ? READ_NONE : level_read(walk, depth + 1);
}

/* The value at walk->at, to which the first DEPTH tokens have led. */
static enum read_status level_read(struct walk *walk, size_t depth)
{
    struct slice body = walk->body;
    bool is_object = is_at(body, walk->at, '{'), is_last = false;
    if (!is_object && !is_at(body, walk->at, '['))
        return READ_NONE;
    if (depth == walk->pointer->token_count) {
        walk->is_found = true;
        return is_object ? READ_NONE : elements_read(walk->gather, walk->at, &walk->at);
    }
    walk->at = json_blank_end(body, walk->at + 1);
    if (is_at(body, walk->at, is_object ? '}' : ']'))
        return READ_NONE;
    for (uint64_t index = 0; !is_last; index++) {
        enum read_status status = item_read(walk, depth, is_object, index);
        if (status != READ_OK)
            return status;
        if (!item_end(walk, is_object ? '}' : ']', &is_last))
            return READ_NONE;
    }
    return READ_OK;
}

enum read_status envelope_read(struct gather *gather, const struct locator *pointer)
{
    struct walk walk = { .gather = gather, .body = gather->ret->body, .pointer = pointer };
    walk.at = json_blank_end(walk.body, 0);
    enum read_status status = level_read(&walk, 0);
    if (status != READ_OK)
        return status;
    return walk.is_found && json_is_blank(walk.body.at, walk.body.byte_count, walk.at) ? READ_OK : READ_NONE;
}
