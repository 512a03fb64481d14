/*
 * json_walk.h - step through one JSON array or object of any length, element by element, without a tree.
 *
 * Pure.  json_scan.h reads the elements; here stand only brackets, commas, names and colons.
 *
 *     json_walk_open(&walk, bytes, '{')
 *     while (json_walk_next(&walk))
 *         json_walk_name() and json_walk_value() ...   or walk a container inside and json_walk_join()
 *     walk.is_wrong, or walk.at is behind the closing bracket
 */
#ifndef SINKONCE_JSON_WALK_H
#define SINKONCE_JSON_WALK_H

#include "json_scan.h"

struct json_walk {
    const char *at, *end; /* borrowed: what is left, from the next element on */
    char closing;         /* the bracket that ends it */
    bool is_begun;
    bool is_wrong; /* not JSON, or not what was asked for: the walk is over */
};

/* Begin at BYTES, which may hold more than the container; white space before it is skipped.  OPENING is '[' or '{'. */
void json_walk_open(struct json_walk *walk, struct slice bytes, char opening);

/* Is there another element?  False: the end, or is_wrong. */
MUST_CHECK bool json_walk_next(struct json_walk *walk);

/* The member's name, quotes left out and escapes kept, and its colon.  False: is_wrong. */
MUST_CHECK bool json_walk_name(struct json_walk *walk, struct slice *ret_name);

/* The element's or member's value; WANTS as for json_scan().  False: is_wrong. */
MUST_CHECK bool json_walk_value(struct json_walk *walk, struct json_want wants[], size_t want_count,
                                struct slice *ret_text);

/* Begin INNER at the value that comes next in OUTER; once INNER has ended well, go on in OUTER behind it. */
void json_walk_enter(const struct json_walk *outer, struct json_walk *inner, char opening);
void json_walk_join(struct json_walk *outer, const struct json_walk *inner);

/* The bytes behind the container hold nothing but white space. */
bool json_walk_is_last(const struct json_walk *walk);

#endif
