/*
 * locator.c - see locator.h.
 *
 * Takes the operator's texts apart at start, and composite values at run time.  Where a value is looked up in a
 * request is the business of identify_header.c and identify_json.c.
 */
#include "locator.h"

#include <assert.h>
#include <stdlib.h>

#include "http1.h"
#include "json_scan.h"

static const char no_memory[] = "could not be read: no memory";

/* ---- lists of locators --------------------------------------------------------------------------------------- */

struct kind_row {
    const char *prefix;
    enum locator_kind kind;
    bool is_composite, is_plain; /* where it may stand */
};

static const struct kind_row kind_rows[] = {
    { "header:", LOCATOR_HEADER, true, true },
    { "json:", LOCATOR_JSON, true, true },
    { "query:", LOCATOR_QUERY, true, true },
    { "const:", LOCATOR_CONST, false, true },
};

static char *text_copy(struct slice text)
{
    return strndup(text.byte_count > 0 ? text.at : "", text.byte_count);
}

/* What stands before the next CUT, taken off the front of *REST; *RET_IS_LAST: there was none. */
static struct slice piece_take(struct slice *rest, char cut, bool *ret_is_last)
{
    const char *found = rest->byte_count > 0 ? memchr(rest->at, cut, rest->byte_count) : NULL;
    *ret_is_last = found == NULL;
    if (found == NULL)
        return *rest;
    struct slice piece = slice_of(rest->at, (size_t)(found - rest->at));
    *rest = slice_of(found + 1, rest->byte_count - piece.byte_count - 1);
    return piece;
}

/* A reference token without its escapes, on the heap.  Source: RFC 6901, 3 and 4. */
static const char *token_parse(struct slice text, char **ret_token)
{
    char *token = malloc(text.byte_count + 1);
    *ret_token = token;
    if (token == NULL)
        return no_memory;
    size_t byte_count = 0;
    for (size_t i = 0; i < text.byte_count; i++) {
        char c = text.at[i];
        if (c == '~') {
            char next = i + 1 < text.byte_count ? text.at[i + 1] : '\0';
            if (next != '0' && next != '1')
                return "has a '~' in a JSON pointer that is neither ~0 nor ~1";
            c = next == '0' ? '~' : '/';
            i++;
        }
        token[byte_count++] = c;
    }
    token[byte_count] = '\0';
    return NULL;
}

static const char *pointer_parse(struct slice pointer, struct locator *locator)
{
    if (pointer.byte_count == 0 || pointer.at[0] != '/')
        return "needs a JSON pointer that begins with '/', for example /__topic";
    struct slice rest = slice_of(pointer.at + 1, pointer.byte_count - 1);
    for (bool is_last = false; !is_last;) {
        if (locator->token_count == POINTER_DEPTH_MAX)
            return "has a JSON pointer of more than 16 levels";
        struct slice token = piece_take(&rest, '/', &is_last);
        const char *mistake = token_parse(token, &locator->tokens[locator->token_count++]);
        if (mistake != NULL)
            return mistake;
    }
    return NULL;
}

static void lower(char *text)
{
    for (; *text != '\0'; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text + ('a' - 'A'));
}

/* The part behind the prefix, by kind. */
static const char *argument_parse(struct slice argument, struct locator *locator)
{
    locator->text = text_copy(argument);
    if (locator->text == NULL)
        return no_memory;
    if (locator->kind == LOCATOR_JSON)
        return pointer_parse(argument, locator);
    if (argument.byte_count == 0)
        return "has an entry with nothing behind its colon";
    if (locator->kind == LOCATOR_HEADER) {
        if (!http1_token_is_valid(argument))
            return "has a header name with characters that no field name can hold";
        lower(locator->text);
    }
    return NULL;
}

static const char *locator_parse(struct slice text, bool is_composite, struct locator *locator)
{
    if (text.byte_count == 0)
        return "has an empty entry";
    if (is_composite && (slice_equals_text(text, "path") || slice_equals_text(text, "bulk-id"))) {
        locator->kind = text.at[0] == 'p' ? LOCATOR_PATH : LOCATOR_BULK_ID;
        locator->text = text_copy(text);
        return locator->text == NULL ? no_memory : NULL;
    }
    for (size_t i = 0; i < sizeof kind_rows / sizeof kind_rows[0]; i++) {
        const struct kind_row *row = &kind_rows[i];
        size_t prefix_bytes = strlen(row->prefix);
        if (text.byte_count < prefix_bytes || memcmp(text.at, row->prefix, prefix_bytes) != 0 ||
            !(is_composite ? row->is_composite : row->is_plain))
            continue;
        locator->kind = row->kind;
        return argument_parse(slice_of(text.at + prefix_bytes, text.byte_count - prefix_bytes), locator);
    }
    return is_composite ? "needs header:NAME, json:/POINTER, query:NAME, path or bulk-id"
                        : "needs header:NAME, json:/POINTER, query:NAME or const:VALUE, separated by commas";
}

const char *locator_list_parse(const char *text, bool is_composite, struct locator_list *ret)
{
    *ret = (struct locator_list){ 0 };
    struct slice rest = slice_trimmed(slice_of_text(text));
    if (rest.byte_count == 0)
        return NULL;
    size_t count_max = is_composite ? 1 : LOCATORS_MAX;
    for (bool is_last = false; !is_last;) {
        struct slice piece = slice_trimmed(piece_take(&rest, ',', &is_last));
        if (ret->count == count_max)
            return is_composite ? "takes one place only, without commas" : "has more than 8 entries";
        const char *mistake = locator_parse(piece, is_composite, &ret->items[ret->count++]);
        if (mistake != NULL)
            return mistake;
    }
    return NULL;
}

const char *locator_pointer_parse(const char *text, struct locator_list *ret)
{
    *ret = (struct locator_list){ .count = 1 };
    ret->items[0].kind = LOCATOR_JSON;
    return argument_parse(slice_of_text(text), &ret->items[0]);
}

void locator_list_deinit(struct locator_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].text);
        for (size_t token = 0; token < list->items[i].token_count; token++)
            free(list->items[i].tokens[token]);
    }
    *list = (struct locator_list){ 0 };
}

/* ---- composite formats --------------------------------------------------------------------------------------- */

static const char *const part_names[] = {
    [ID_TOPIC] = "{topic}", [ID_PARTITION] = "{partition}", [ID_OFFSET] = "{offset}"
};

static bool has_part(const struct id_format *format, enum id_part part)
{
    for (size_t i = 0; i < format->part_count; i++)
        if (format->parts[i] == part)
            return true;
    return false;
}

/* The placeholder that TEXT begins with. */
static bool part_parse(struct slice text, enum id_part *ret_part, size_t *ret_bytes)
{
    for (size_t i = 0; i < sizeof part_names / sizeof part_names[0]; i++) {
        *ret_bytes = strlen(part_names[i]);
        *ret_part = (enum id_part)i;
        if (text.byte_count >= *ret_bytes && memcmp(text.at, part_names[i], *ret_bytes) == 0)
            return true;
    }
    return false;
}

/* Literals and placeholders one after the other. */
static const char *format_split(struct slice rest, struct id_format *format)
{
    for (;;) {
        bool is_last;
        struct slice literal = piece_take(&rest, '{', &is_last);
        if (literal.byte_count > 0 && memchr(literal.at, '}', literal.byte_count) != NULL)
            return "has a '}' without its '{'";
        char *copy = text_copy(literal);
        format->literals[format->part_count] = copy;
        if (copy == NULL)
            return no_memory;
        if (is_last)
            return NULL;
        struct slice placeholder = slice_of(rest.at - 1, rest.byte_count + 1);
        enum id_part part;
        size_t byte_count;
        if (!part_parse(placeholder, &part, &byte_count))
            return "knows only {topic}, {partition} and {offset}";
        if (has_part(format, part))
            return "holds the same placeholder twice";
        format->parts[format->part_count++] = part;
        rest = slice_of(placeholder.at + byte_count, placeholder.byte_count - byte_count);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A literal must show where a number ends. */
static const char *format_check(const struct id_format *format)
{
    if (!has_part(format, ID_PARTITION) || !has_part(format, ID_OFFSET))
        return "needs {partition} and {offset}";
    for (size_t i = 0; i < format->part_count; i++) {
        const char *before = format->literals[i], *after = format->literals[i + 1];
        if (i > 0 && before[0] == '\0')
            return "needs a separator between its placeholders";
        if (format->parts[i] == ID_TOPIC)
            continue;
        if ((before[0] != '\0' && is_digit(before[strlen(before) - 1])) || is_digit(after[0]))
            return "has a digit next to {partition} or {offset}, so that the number's end cannot be told";
    }
    return NULL;
}

const char *id_format_parse(const char *text, struct id_format *ret)
{
    *ret = (struct id_format){ 0 };
    if (text[0] == '\0')
        return NULL;
    ret->text = strdup(text);
    if (ret->text == NULL)
        return no_memory;
    const char *mistake = format_split(slice_of_text(text), ret);
    return mistake != NULL ? mistake : format_check(ret);
}

void id_format_deinit(struct id_format *format)
{
    free(format->text);
    for (size_t i = 0; i < sizeof format->literals / sizeof format->literals[0]; i++)
        free(format->literals[i]);
    *format = (struct id_format){ 0 };
}

/* ---- composite values ---------------------------------------------------------------------------------------- */

static bool front_take(struct slice *value, const char *literal)
{
    size_t byte_count = strlen(literal);
    if (value->byte_count < byte_count || memcmp(value->at, literal, byte_count) != 0)
        return false;
    *value = slice_of(value->at + byte_count, value->byte_count - byte_count);
    return true;
}

static bool back_take(struct slice *value, const char *literal)
{
    size_t byte_count = strlen(literal);
    if (value->byte_count < byte_count ||
        memcmp(value->at + value->byte_count - byte_count, literal, byte_count) != 0)
        return false;
    value->byte_count -= byte_count;
    return true;
}

static struct slice front_digits_take(struct slice *value)
{
    size_t byte_count = 0;
    while (byte_count < value->byte_count && is_digit(value->at[byte_count]))
        byte_count++;
    struct slice digits = slice_of(value->at, byte_count);
    *value = slice_of(value->at + byte_count, value->byte_count - byte_count);
    return digits;
}

static struct slice back_digits_take(struct slice *value)
{
    size_t left = value->byte_count;
    while (left > 0 && is_digit(value->at[left - 1]))
        left--;
    struct slice digits = slice_of(value->at + left, value->byte_count - left);
    value->byte_count = left;
    return digits;
}

static bool number_set(enum id_part part, struct slice digits, struct id_value *value)
{
    uint64_t number;
    if (!decimal_read(digits, part == ID_PARTITION ? INT32_MAX : INT64_MAX, &number))
        return false;
    if (part == ID_PARTITION)
        value->partition = (int32_t)number;
    else
        value->offset = (int64_t)number;
    return true;
}

/* The outer literals go first, then the numbers behind the topic from the right and those before it from the left: the
 * topic is what remains. */
bool id_format_match(const struct id_format *format, struct slice value, struct id_value *ret_value)
{
    assert(format->part_count >= 2);
    size_t first = 0, last = format->part_count;
    ret_value->topic = slice_of(NULL, 0);
    if (value.byte_count == 0 || !front_take(&value, format->literals[0]) ||
        !back_take(&value, format->literals[last]))
        return false;
    for (; last > first && format->parts[last - 1] != ID_TOPIC; last--) {
        bool is_outermost = last - 1 == first;
        if (!number_set(format->parts[last - 1], back_digits_take(&value), ret_value))
            return false;
        if (!is_outermost && !back_take(&value, format->literals[last - 1]))
            return false;
    }
    for (; first < last && format->parts[first] != ID_TOPIC; first++)
        if (!number_set(format->parts[first], front_digits_take(&value), ret_value) ||
            !front_take(&value, format->literals[first + 1]))
            return false;
    if (first == last)
        return value.byte_count == 0;
    ret_value->topic = value;
    return value.byte_count > 0;
}
