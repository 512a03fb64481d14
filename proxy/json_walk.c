/*
 * json_walk.c - see json_walk.h.
 */
#include "json_walk.h"

#include <assert.h>

static void skip_blank(struct json_walk *walk)
{
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\n' || *walk->at == '\r' || *walk->at == '\t'))
        walk->at++;
}

static bool take(struct json_walk *walk, char c)
{
    skip_blank(walk);
    if (walk->at == walk->end || *walk->at != c)
        return false;
    walk->at++;
    return true;
}

void json_walk_open(struct json_walk *walk, struct slice bytes, char opening)
{
    assert(opening == '[' || opening == '{');
    const char *at = bytes.byte_count > 0 ? bytes.at : "";
    *walk =
        (struct json_walk){ .at = at, .end = at + bytes.byte_count, .closing = opening == '[' ? ']' : '}' };
    walk->is_wrong = !take(walk, opening);
}

bool json_walk_next(struct json_walk *walk)
{
    if (walk->is_wrong || take(walk, walk->closing))
        return false;
    /* What follows a comma must be a value: a closing bracket there is refused by the scan of it. */
    walk->is_wrong = walk->is_begun && !take(walk, ',');
    walk->is_begun = true;
    return !walk->is_wrong;
}

bool json_walk_value(struct json_walk *walk, struct json_want wants[], size_t want_count,
                     struct slice *ret_text)
{
    size_t end;
    skip_blank(walk);
    walk->is_wrong =
        json_scan(walk->at, (size_t)(walk->end - walk->at), wants, want_count, &end) != JSON_DONE;
    if (walk->is_wrong)
        return false;
    *ret_text = slice_of(walk->at, end);
    walk->at += end;
    return true;
}

bool json_walk_name(struct json_walk *walk, struct slice *ret_name)
{
    struct slice text;
    skip_blank(walk);
    walk->is_wrong = walk->at == walk->end || *walk->at != '"';
    if (walk->is_wrong || !json_walk_value(walk, NULL, 0, &text))
        return false;
    *ret_name = slice_of(text.at + 1, text.byte_count - 2);
    walk->is_wrong = !take(walk, ':');
    return !walk->is_wrong;
}

void json_walk_enter(const struct json_walk *outer, struct json_walk *inner, char opening)
{
    json_walk_open(inner, slice_of(outer->at, (size_t)(outer->end - outer->at)), opening);
}

void json_walk_join(struct json_walk *outer, const struct json_walk *inner)
{
    assert(!inner->is_wrong);
    outer->at = inner->at;
}

bool json_walk_is_last(const struct json_walk *walk)
{
    return json_is_blank(walk->at, (size_t)(walk->end - walk->at), 0);
}
