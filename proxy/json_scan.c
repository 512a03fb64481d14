/*
 * json_scan.c - see json_scan.h.
 *
 * One loop reads value after value; what is open stands on a stack of one byte a level.  Wants are bits of a word: a
 * container knows which wants lead into it, and where none does, names are only validated.
 *
 *     depth 0  {                          levels[0]: entered by a value with 0 tokens
 *     depth 1    "fields": {              levels[1]: entered by a value with 1 token
 *     depth 2      "kafka_topic": ...     a value with 2 tokens
 *
 * What a string holds besides plain text is a matter of json_string.h.
 * The scanner never builds anything, and never looks at a byte twice but for names that may be wanted.
 */
#include "json_scan.h"

#include <assert.h>
#include "json_string.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

_Static_assert(JSON_WANTS_MAX <= 64, "wants are bits of one word");

/* A container that is, or holds, something wanted.  Deeper ones need none. */
struct level {
    uint64_t inside;         /* wants that lead into it */
    uint64_t seen;           /* of these, those whose name has stood in it already */
    uint64_t filter;         /* one bit for each name_hash() of the names wanted in it */
    const uint64_t *by_hash; /* in an object, the wants by that hash; valid where FILTER has the bit */
    uint64_t buckets[JSON_NAME_HASHES]; /* what BY_HASH points to, unless it is the root of a search */
    uint64_t here;                      /* wants that are this container itself */
    const char *value;                  /* its bracket */
    const char *member;                 /* its name's quote, or the bracket again */
    uint64_t index;                     /* of the next element, in an array */
};

struct scan {
    const char *end;
    const char *wrong; /* the first byte that is not JSON */
    struct json_want *wants;
    const struct json_search *search; /* NULL: none */
    uint64_t found;                   /* wants that were written to */
    /* the value that comes next */
    uint64_t hits;      /* wants whose tokens so far are its path */
    const char *member; /* where its member begins */
    bool has_escape;    /* the string read last held a backslash */
    size_t depth;       /* containers that are open */
    bool is_object[JSON_DEPTH_MAX];
    struct level levels[POINTER_DEPTH_MAX + 1];
};

static const char *refuse(struct scan *scan, const char *at)
{
    scan->wrong = at;
    return NULL;
}

static inline const char *skip_blank(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

/* ---- strings ------------------------------------------------------------------------------------------------- */

static inline bool is_plain(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* The first byte from AT on that is not plain ASCII text.  Eight bytes at a time: a byte's top bit turns on when it is
 * a control, a quote, a backslash or not ASCII.  A borrow can only spoil bytes behind the first one that is marked. */
static inline const char *plain_end(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t marked =
            (word | (word - EACH(0x20)) | ((word ^ EACH('"')) - EACH(1)) | ((word ^ EACH('\\')) - EACH(1))) &
            EACH(0x80);
        if (marked != 0) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return at + __builtin_ctzll(marked) / 8;
#else
            break;
#endif
        }
        at += 8;
    }
    while (at < end && is_plain(*at))
        at++;
    return at;
}

/* Behind the string whose opening quote is at AT. */
static inline const char *string_end(struct scan *scan, const char *at)
{
    at++;
    for (;;) {
        at = plain_end(at, scan->end);
        if (at == scan->end)
            return refuse(scan, at);
        if (*at == '"')
            return at + 1;
        if (json_is_wide(*at)) {
            at = json_wide_end(at, scan->end);
            if (at < scan->end && json_is_wide(*at))
                return refuse(scan, at);
            continue;
        }
        uint32_t point;
        const char *next = *at == '\\' ? json_escape_end(at, scan->end, &point) : NULL;
        if (next == NULL)
            return refuse(scan, at);
        scan->has_escape = true;
        at = next;
    }
}

/* ---- other scalars ------------------------------------------------------------------------------------------- */

/* Behind the number at AT.  Source: RFC 8259, 6. */
static inline const char *number_end(struct scan *scan, const char *at)
{
    const char *end = scan->end;
    if (*at == '-')
        at++;
    if (at == end || !is_digit(*at))
        return refuse(scan, at);
    at = *at == '0' ? at + 1 : skip_digits(at, end);
    if (at < end && *at == '.') {
        const char *digits = at + 1;
        at = skip_digits(digits, end);
        if (at == digits)
            return refuse(scan, at);
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        const char *digits = at;
        at = skip_digits(digits, end);
        if (at == digits)
            return refuse(scan, at);
    }
    return at;
}

static const char *word_end(struct scan *scan, const char *at, const char *word, size_t byte_count)
{
    if ((size_t)(scan->end - at) < byte_count || memcmp(at, word, byte_count) != 0)
        return refuse(scan, at);
    return at + byte_count;
}

static inline const char *scalar_end(struct scan *scan, const char *at, enum json_kind *ret_kind)
{
    switch (*at) {
    case '"':
        *ret_kind = JSON_IS_STRING;
        return string_end(scan, at);
    case 't':
        *ret_kind = JSON_IS_TRUE;
        return word_end(scan, at, "true", 4);
    case 'f':
        *ret_kind = JSON_IS_FALSE;
        return word_end(scan, at, "false", 5);
    case 'n':
        *ret_kind = JSON_IS_NULL;
        return word_end(scan, at, "null", 4);
    default:
        *ret_kind = JSON_IS_NUMBER;
        return number_end(scan, at);
    }
}

/* ---- wants --------------------------------------------------------------------------------------------------- */

/* Takes the lowest bit out of MASK. */
static inline size_t bit_take(uint64_t *mask)
{
    size_t bit = (size_t)__builtin_ctzll(*mask);
    *mask &= *mask - 1;
    return bit;
}

/* Give the value from AT to END to those wants of MASK whose last token led to it. */
static void note(struct scan *scan, uint64_t mask, enum json_kind kind, const char *member, const char *at,
                 const char *end)
{
    scan->found |= mask;
    while (mask != 0) {
        struct json_want *want = &scan->wants[bit_take(&mask)];
        if (want->token_count != scan->depth)
            continue;
        want->kind = kind;
        want->text = slice_of(at, (size_t)(end - at));
        want->member = slice_of(member, (size_t)(end - member));
    }
}

/* From a name's first three bytes, with zeros behind a shorter one: enough to pass most names by without a comparison.
 * Names that belong together often begin with the same two underscores. */
static inline unsigned name_hash(char first, char second, char third)
{
    return ((unsigned char)first * 5u + (unsigned char)second * 3u + (unsigned char)third) % JSON_NAME_HASHES;
}

static inline unsigned name_hash_of(struct slice name)
{
    return name_hash(name.byte_count > 0 ? name.at[0] : '\0', name.byte_count > 1 ? name.at[1] : '\0',
                     name.byte_count > 2 ? name.at[2] : '\0');
}

static inline unsigned name_hash_of_token(const char *token)
{
    char second = token[0] == '\0' ? '\0' : token[1];
    return name_hash(token[0], second, second == '\0' ? '\0' : token[2]);
}

/* NAME holds no NUL, so a comparison that runs through it has not run past the end of TOKEN. */
static inline bool plain_name_equals(struct slice name, const char *token)
{
    if (name.byte_count == 0 || token[0] != name.at[0])
        return name.byte_count == 0 && token[0] == '\0';
    return strncmp(token, name.at, name.byte_count) == 0 && token[name.byte_count] == '\0';
}

/* The wants that NAME, a member of the innermost object, leads on to. */
static uint64_t name_hits(struct scan *scan, struct slice name)
{
    size_t token = scan->depth - 1;
    struct level *level = &scan->levels[token];
    uint64_t hits = 0, mask = level->inside;
    if (!scan->has_escape) {
        unsigned hash = name_hash_of(name);
        if (((level->filter >> hash) & 1u) == 0)
            return 0;
        mask = level->by_hash[hash];
    }
    while (mask != 0) {
        size_t i = bit_take(&mask);
        const char *wanted = scan->wants[i].tokens[token];
        /* A duplicate must not hide behind another spelling. */
        if (scan->has_escape ? json_escaped_equals(name, wanted) : plain_name_equals(name, wanted))
            hits |= UINT64_C(1) << i;
    }
    scan->found |= hits & level->seen;
    for (uint64_t again = hits & level->seen; again != 0;)
        scan->wants[bit_take(&again)].is_ambiguous = true;
    level->seen |= hits;
    return hits;
}

/* The wants that the next element of the innermost array leads on to.  Each index comes once, so they leave INSIDE. */
static uint64_t element_hits(struct scan *scan)
{
    size_t token = scan->depth - 1;
    struct level *level = &scan->levels[token];
    uint64_t hits = 0;
    for (uint64_t mask = level->inside; mask != 0;) {
        size_t i = bit_take(&mask);
        uint64_t index;
        if (decimal_read(slice_of_text(scan->wants[i].tokens[token]), UINT64_MAX, &index) &&
            index == level->index)
            hits |= UINT64_C(1) << i;
    }
    level->inside &= ~hits;
    level->index++;
    return hits;
}

static inline bool is_wanted_inside(const struct scan *scan)
{
    return scan->depth <= POINTER_DEPTH_MAX + 1 && scan->levels[scan->depth - 1].inside != 0;
}

/* ---- containers ---------------------------------------------------------------------------------------------- */

/* Put a want into the bucket of its name; the new filter. */
static inline uint64_t name_expect(struct level *level, uint64_t filter, const char *name, uint64_t bit)
{
    unsigned hash = name_hash_of_token(name);
    bool is_used = ((filter >> hash) & 1u) != 0;
    level->buckets[hash] = is_used ? level->buckets[hash] | bit : bit;
    return filter | UINT64_C(1) << hash;
}

/* Sort the wants that have come as far as a new container: those that are it, and those that may find something in
 * it, with the names that they look for. */
static void level_fill(struct scan *scan, struct level *level, size_t token, bool is_object)
{
    uint64_t here = 0, inside = 0, filter = 0;
    for (uint64_t mask = scan->hits; mask != 0;) {
        size_t i = bit_take(&mask);
        uint64_t bit = UINT64_C(1) << i, index;
        if (scan->wants[i].token_count == token) {
            here |= bit;
            continue;
        }
        const char *wanted = scan->wants[i].tokens[token];
        if (is_object)
            filter = name_expect(level, filter, wanted, bit);
        else if (!decimal_read(slice_of_text(wanted), UINT64_MAX, &index))
            continue;
        inside |= bit;
    }
    level->here = here;
    level->inside = inside;
    level->filter = filter;
}

static inline void level_open(struct scan *scan, const char *at, bool is_object)
{
    if (scan->depth > POINTER_DEPTH_MAX)
        return;
    struct level *level = &scan->levels[scan->depth];
    level->here = level->inside = 0;
    if (scan->hits == 0)
        return;
    level->seen = 0;
    level->index = 0;
    level->value = at;
    level->member = scan->member;
    if (scan->depth == 0 && is_object && scan->search != NULL) {
        level->inside = scan->search->root_inside;
        level->filter = scan->search->root_filter;
        level->by_hash = scan->search->root_by_hash;
        return;
    }
    level->by_hash = level->buckets;
    level_fill(scan, level, scan->depth, is_object);
}

/* From the quote of a member's name to its value. */
static inline const char *member_begin(struct scan *scan, const char *at)
{
    if (at == scan->end || *at != '"')
        return refuse(scan, at);
    scan->has_escape = false;
    const char *end = string_end(scan, at);
    if (end == NULL)
        return NULL;
    scan->member = at;
    scan->hits = is_wanted_inside(scan) ? name_hits(scan, slice_of(at + 1, (size_t)(end - at) - 2)) : 0;
    at = skip_blank(end, scan->end);
    return at < scan->end && *at == ':' ? skip_blank(at + 1, scan->end) : refuse(scan, at);
}

static inline const char *element_begin(struct scan *scan, const char *at)
{
    scan->member = at;
    scan->hits = is_wanted_inside(scan) ? element_hits(scan) : 0;
    return at;
}

static inline const char *item_begin(struct scan *scan, const char *at)
{
    return scan->is_object[scan->depth - 1] ? member_begin(scan, at) : element_begin(scan, at);
}

static inline char closing(const struct scan *scan)
{
    return scan->is_object[scan->depth - 1] ? '}' : ']';
}

/* Enter the container at AT: to its first value, or, when there is none, to its closing bracket. */
static inline const char *container_open(struct scan *scan, const char *at, bool *ret_is_empty)
{
    if (scan->depth == JSON_DEPTH_MAX)
        return refuse(scan, at);
    level_open(scan, at, *at == '{');
    scan->is_object[scan->depth++] = *at == '{';
    at = skip_blank(at + 1, scan->end);
    *ret_is_empty = at < scan->end && *at == closing(scan);
    return *ret_is_empty ? at : item_begin(scan, at);
}

static inline void container_close(struct scan *scan, const char *end)
{
    size_t token_count = --scan->depth;
    if (token_count > POINTER_DEPTH_MAX)
        return;
    struct level *level = &scan->levels[token_count];
    if (level->here != 0)
        note(scan, level->here, scan->is_object[token_count] ? JSON_IS_OBJECT : JSON_IS_ARRAY, level->member,
             level->value, end);
}

/* From behind a value to the next one; everything that ends in between is closed.  Depth 0: it was the last. */
static inline const char *value_next(struct scan *scan, const char *at)
{
    while (scan->depth > 0) {
        at = skip_blank(at, scan->end);
        if (at == scan->end)
            return refuse(scan, at);
        if (*at == ',')
            return item_begin(scan, skip_blank(at + 1, scan->end));
        if (*at != closing(scan))
            return refuse(scan, at);
        at++;
        container_close(scan, at);
    }
    return at;
}

/* The value at AT: a scalar is passed, a container entered.  *RET_IS_ENTERED: what is returned is its first value. */
static inline const char *value_read(struct scan *scan, const char *at, bool *ret_is_entered)
{
    *ret_is_entered = false;
    if (at == scan->end)
        return refuse(scan, at);
    if (*at == '{' || *at == '[') {
        bool is_empty = false;
        at = container_open(scan, at, &is_empty);
        *ret_is_entered = !is_empty;
        return at;
    }
    enum json_kind kind;
    const char *end = scalar_end(scan, at, &kind);
    if (end != NULL && scan->hits != 0)
        note(scan, scan->hits, kind, scan->member, at, end);
    return end;
}

static void scan_init(struct scan *scan, const char *end, struct json_want wants[], size_t want_count)
{
    scan->end = end;
    scan->wants = wants;
    scan->search = NULL;
    scan->found = 0;
    scan->depth = 0;
    scan->has_escape = false;
    scan->hits = want_count == 0 ? 0 : UINT64_MAX >> (64 - want_count);
}

static inline void want_clear(struct json_want *want)
{
    /* One by one: to copy a slice that was just written stalls for longer than a small record takes. */
    want->kind = JSON_IS_MISSING;
    want->text = slice_of(NULL, 0);
    want->member = slice_of(NULL, 0);
    want->is_ambiguous = false;
}

/* BYTES are not NULL. */
static enum json_status scan_run(struct scan *scan, const char bytes[], size_t *ret_end)
{
    bool is_entered;
    const char *at = skip_blank(bytes, scan->end);
    scan->member = at;
    do {
        at = value_read(scan, at, &is_entered);
        if (at != NULL && !is_entered)
            at = value_next(scan, at);
    } while (at != NULL && scan->depth > 0);
    *ret_end = (size_t)((at != NULL ? at : scan->wrong) - bytes);
    return at != NULL ? JSON_DONE : JSON_INVALID;
}

enum json_status json_scan(const char bytes[], size_t byte_count, struct json_want wants[], size_t want_count,
                           size_t *ret_end)
{
    assert(want_count <= JSON_WANTS_MAX);
    struct scan scan;
    if (byte_count == 0)
        bytes = ""; /* NULL is allowed then, and has no place in arithmetic */
    scan_init(&scan, bytes + byte_count, wants, want_count);
    for (size_t i = 0; i < want_count; i++) {
        assert(wants[i].token_count <= POINTER_DEPTH_MAX);
        want_clear(&wants[i]);
    }
    return scan_run(&scan, bytes, ret_end);
}

/* The root's names are the same for every value: they are sorted here once. */
void json_search_init(struct json_search *search, struct json_want wants[], size_t want_count)
{
    assert(want_count <= JSON_WANTS_MAX);
    struct scan scan;
    struct level *level = &scan.levels[0];
    scan_init(&scan, NULL, wants, want_count);
    for (size_t i = 0; i < want_count; i++) {
        /* A want for the root itself would have to be noted when the root ends. */
        assert(wants[i].token_count > 0 && wants[i].token_count <= POINTER_DEPTH_MAX);
        want_clear(&wants[i]);
    }
    memset(level->buckets, 0, sizeof level->buckets);
    level_fill(&scan, level, 0, true);
    *search = (struct json_search){
        .wants = wants, .want_count = want_count, .root_filter = level->filter, .root_inside = level->inside
    };
    memcpy(search->root_by_hash, level->buckets, sizeof search->root_by_hash);
}

enum json_status json_search_next(struct json_search *search, const char bytes[], size_t byte_count,
                                  size_t *ret_end)
{
    struct scan scan;
    if (byte_count == 0)
        bytes = "";
    scan_init(&scan, bytes + byte_count, search->wants, search->want_count);
    scan.search = search;
    while (search->found != 0)
        want_clear(&search->wants[bit_take(&search->found)]);
    enum json_status status = scan_run(&scan, bytes, ret_end);
    search->found = scan.found;
    return status;
}

bool json_is_blank(const char bytes[], size_t byte_count, size_t from)
{
    assert(from <= byte_count);
    return from == byte_count || skip_blank(bytes + from, bytes + byte_count) == bytes + byte_count;
}

bool decimal_read(struct slice digits, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (digits.byte_count == 0 || (digits.byte_count > 1 && digits.at[0] == '0'))
        return false;
    for (size_t i = 0; i < digits.byte_count; i++) {
        if (!is_digit(digits.at[i]))
            return false;
        uint64_t digit = (uint64_t)(digits.at[i] - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}
