/*
 * bearer.c - the rules behind bearer.h.
 */
#include "bearer.h"

#include <string.h>
#include <strings.h>

/* Every byte is looked at whatever the first ones are, so that time does not tell how many were right.  The length of
 * the token may show. */
static bool equals_in_constant_time(struct slice given, struct slice secret)
{
    volatile unsigned char difference = given.byte_count != secret.byte_count;
    for (size_t i = 0; i < given.byte_count; i++)
        difference |= (unsigned char)(given.at[i] ^ secret.at[i % secret.byte_count]);
    return difference == 0;
}

/* Of LINES; they begin at the next one then.  False: there is none, or an empty one, which opens nothing. */
static bool take_line(const char **lines, struct slice *ret_line)
{
    size_t byte_count = strcspn(*lines, "\n");
    *ret_line = slice_of(*lines, byte_count);
    *lines += byte_count + ((*lines)[byte_count] == '\n');
    return byte_count > 0;
}

struct slice bearer_first(const char *tokens)
{
    return slice_of(tokens, strcspn(tokens, "\n"));
}

/* All of them are looked at, whichever is the right one. */
static bool is_one_of(struct slice given, const char *tokens)
{
    struct slice token;
    bool is_right = false;
    while (take_line(&tokens, &token))
        is_right |= equals_in_constant_time(given, token);
    return is_right;
}

/* The scheme's name has no case (RFC 9110, 11.1). */
bool bearer_is_right(const struct http1_field *field, const char *tokens)
{
    static const char scheme[] = "Bearer ";
    size_t scheme_bytes = sizeof scheme - 1;
    if (field == NULL || field->value.byte_count < scheme_bytes ||
        strncasecmp(field->value.at, scheme, scheme_bytes) != 0)
        return false;
    struct slice given = slice_of(field->value.at + scheme_bytes, field->value.byte_count - scheme_bytes);
    while (given.byte_count > 0 && given.at[0] == ' ')
        given = slice_of(given.at + 1, given.byte_count - 1);
    return is_one_of(given, tokens);
}

static const struct http1_field *own_field(const struct http1_head *head)
{
    return http1_field_find(head->fields, head->field_count, BEARER_OWN_FIELD);
}

bool bearer_is_in_authorization(const struct http1_head *head)
{
    return own_field(head) == NULL;
}

bool bearer_opens(const struct http1_head *head, const char *tokens)
{
    const struct http1_field *own = own_field(head);
    return bearer_is_right(
        own != NULL ? own : http1_field_find(head->fields, head->field_count, "authorization"), tokens);
}
