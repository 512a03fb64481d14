/*
 * json_scan.h - one pass over JSON text: is it valid, where do values begin and end, and what stands at a few pointers.
 *
 * Pure: no tree, no doubles, no allocation; an explicit stack of at most JSON_DEPTH_MAX levels.
 * Source: RFC 8259; strings must be valid UTF-8 without lone surrogates, a byte order mark is refused.
 */
#ifndef SINKONCE_JSON_SCAN_H
#define SINKONCE_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include "locator.h"
#include "slice.h"

enum { JSON_DEPTH_MAX = 512, JSON_WANTS_MAX = 64 };

enum json_status {
    JSON_DONE,    /* one whole value */
    JSON_INVALID, /* not JSON, or nested deeper than JSON_DEPTH_MAX */
};

/* Named apart from jansson's types, so that one file can use both. */
enum json_kind {
    JSON_IS_MISSING,
    JSON_IS_STRING,
    JSON_IS_NUMBER,
    JSON_IS_TRUE,
    JSON_IS_FALSE,
    JSON_IS_NULL,
    JSON_IS_OBJECT,
    JSON_IS_ARRAY,
};

/* One pointer that is looked for, and what was found there. */
struct json_want {
    char *const *tokens;   /* borrowed: unescaped reference tokens (RFC 6901); an array index in decimal */
    size_t token_count;    /* 0: the whole value */
    /* results */
    enum json_kind kind;
    struct slice text;     /* the value's bytes as they stand, quotes included */
    struct slice member;   /* the whole member, name to end of value, for cutting; the element inside an array */
    bool is_ambiguous;     /* a name on the way to it, or its own, stands twice in its object */
};

/*
 * Read one value from the start of BYTES (white space before it is skipped).  *RET_END is the offset behind its last
 * byte, without trailing white space; what follows is the caller's.
 * JSON_INVALID: *RET_END is the offset of the byte that is wrong; the results of the wants mean nothing.
 */
MUST_CHECK enum json_status json_scan(const char bytes[], size_t byte_count, struct json_want wants[],
                                      size_t want_count, size_t *ret_end);

/* The same wants for value after value: what does not depend on the value is worked out once. */
enum { JSON_NAME_HASHES = 64 }; /* bits of a word, too */
struct json_search {
    struct json_want *wants;            /* borrowed: a cell for each, tokens set; results as for json_scan() */
    size_t want_count;
    uint64_t found;                     /* wants whose results are those of the last value; the others are MISSING */
    uint64_t root_filter;               /* as struct level of json_scan.c has them for a root that is an object */
    uint64_t root_inside;
    uint64_t root_by_hash[JSON_NAME_HASHES];
};
void json_search_init(struct json_search *search, struct json_want wants[], size_t want_count);
MUST_CHECK enum json_status json_search_next(struct json_search *search, const char bytes[], size_t byte_count,
                                             size_t *ret_end);

/* Only white space of RFC 8259 from FROM on? */
bool json_is_blank(const char bytes[], size_t byte_count, size_t from);

/* Behind the white space at FROM. */
static inline size_t json_blank_end(struct slice bytes, size_t from)
{
    while (from < bytes.byte_count && (bytes.at[from] == ' ' || bytes.at[from] == '\n' ||
                                       bytes.at[from] == '\r' || bytes.at[from] == '\t'))
        from++;
    return from;
}

/* A non-negative decimal integer up to MAX: of a number "0" or digits without leading zero, no sign, fraction or
 * exponent; of digits in a string value the same. */
MUST_CHECK bool decimal_read(struct slice digits, uint64_t max, uint64_t *ret_value);

#endif
