/*
 * http1_fields.c - bytes, field lines and lists: what request heads, response heads and trailers have in common.
 *
 * Knows the grammar of single lines and values (RFC 9110, 5; RFC 9112, 5).  What the fields mean for the framing is
 * decided in http1.c.
 */
#include "http1.h"

/*
 * One row per 16 bytes; bits of enum http1_class.
 *   token   RFC 9110, 5.6.2: letters, digits, !#$%&'*+-.^_`|~
 *   value   RFC 9110, 5.5: HTAB, space, visible ASCII, obs-text (0x80 and up)
 *   target  visible ASCII but '#', which no request target may hold (RFC 9112, 3.2)
 *   host    unreserved and sub-delims of RFC 3986, 2, but the comma: it betrays two Host fields joined into one
 *   hex     HEXDIG in either case
 */
const uint8_t http1_classes[256] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x0f, 0x06, 0x03, 0x0f, 0x07, 0x0f, 0x0f, 0x0e, 0x0e, 0x0f, 0x0f, 0x06, 0x0f, 0x0f, 0x06,
    0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x06, 0x0e, 0x06, 0x0e, 0x06, 0x06,
    0x06, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f,
    0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x06, 0x06, 0x06, 0x07, 0x0f,
    0x07, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x1f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f,
    0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x0f, 0x06, 0x07, 0x06, 0x0f, 0x00,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
};

size_t http1_span(struct slice bytes, enum http1_class byte_class)
{
    size_t count = 0;
    while (count < bytes.byte_count && http1_byte_is(bytes.at[count], byte_class))
        count++;
    return count;
}

/* ASCII alone: the C library's tolower() asks the locale. */
static char lower_case(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

static bool equals_without_case(struct slice a, struct slice b)
{
    if (a.byte_count != b.byte_count)
        return false;
    for (size_t i = 0; i < a.byte_count; i++)
        if (lower_case(a.at[i]) != lower_case(b.at[i]))
            return false;
    return true;
}

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\t';
}

static struct slice without_white_ends(struct slice text)
{
    while (text.byte_count > 0 && is_white(text.at[0])) {
        text.at++;
        text.byte_count--;
    }
    while (text.byte_count > 0 && is_white(text.at[text.byte_count - 1]))
        text.byte_count--;
    return text;
}

static struct slice after(struct slice text, size_t byte_count)
{
    return slice_of(text.at + byte_count, text.byte_count - byte_count);
}

/* A name is a token with the colon right behind it: white space there, at the line's start (obs-fold) or instead of a
 * name fails here already.  Only CRLF ends the value; a lone CR or LF is in no class. */
bool http1_field_line(struct slice *rest, struct http1_field *ret_field)
{
    size_t name_bytes = http1_span(*rest, HTTP1_IN_TOKEN);
    if (name_bytes == 0 || name_bytes == rest->byte_count || rest->at[name_bytes] != ':')
        return false;
    struct slice tail = after(*rest, name_bytes + 1);
    size_t value_bytes = http1_span(tail, HTTP1_IN_VALUE);
    if (tail.byte_count - value_bytes < 2 || memcmp(tail.at + value_bytes, "\r\n", 2) != 0)
        return false;
    ret_field->name = slice_of(rest->at, name_bytes);
    ret_field->value = without_white_ends(slice_of(tail.at, value_bytes));
    *rest = after(tail, value_bytes + 2);
    return true;
}

/* A field name holds no NUL: where the other name is shorter, its end is the first mismatch. */
bool http1_name_equals(struct slice name, const char *lower_case_name)
{
    for (size_t i = 0; i < name.byte_count; i++)
        if (lower_case(name.at[i]) != lower_case_name[i] || lower_case_name[i] == '\0')
            return false;
    return lower_case_name[name.byte_count] == '\0';
}

const struct http1_field *http1_field_find(const struct http1_field fields[], size_t field_count,
                                           const char *name)
{
    struct slice wanted = slice_of_text(name);
    for (size_t i = 0; i < field_count; i++)
        if (equals_without_case(fields[i].name, wanted))
            return &fields[i];
    return NULL;
}

/* The last member leaves a slice without address, so that an empty list still has one, empty, member. */
bool http1_list_next(struct slice *list, struct slice *ret_member)
{
    if (list->at == NULL)
        return false;
    const char *comma = list->byte_count == 0 ? NULL : memchr(list->at, ',', list->byte_count);
    size_t member_bytes = comma == NULL ? list->byte_count : (size_t)(comma - list->at);
    *ret_member = without_white_ends(slice_of(list->at, member_bytes));
    *list = comma == NULL ? slice_of(NULL, 0) : after(*list, member_bytes + 1);
    return true;
}

bool http1_list_has(struct slice list, struct slice token)
{
    struct slice member;
    while (http1_list_next(&list, &member))
        if (equals_without_case(member, token))
            return true;
    return false;
}

bool http1_token_is_valid(struct slice token)
{
    return token.byte_count > 0 && http1_span(token, HTTP1_IN_TOKEN) == token.byte_count;
}

bool http1_value_is_valid(struct slice value)
{
    return http1_span(value, HTTP1_IN_VALUE) == value.byte_count;
}

bool http1_target_is_valid(struct slice target)
{
    return target.byte_count > 0 && target.at[0] == '/' &&
           http1_span(target, HTTP1_IN_TARGET) == target.byte_count;
}

enum http1_number http1_number(struct slice text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;
    bool is_above = false;
    for (size_t i = 0; i < text.byte_count; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return HTTP1_NUMBER_BAD;
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        is_above = is_above || digit > max || number > (max - digit) / 10;
        if (!is_above) /* else read on all the same: only digits may follow */
            number = number * 10 + digit;
    }
    if (text.byte_count == 0)
        return HTTP1_NUMBER_BAD;
    *ret_number = number;
    return is_above ? HTTP1_NUMBER_ABOVE : HTTP1_NUMBER_OK;
}

enum http1_coding http1_coding(struct slice value)
{
    const struct slice chunked = slice_of_text("chunked");
    struct slice member;
    size_t member_count = 0;
    bool is_chunked = false;
    while (http1_list_next(&value, &member)) {
        /* chunked twice, something after it, parameters, an empty member: readers differ on each of them */
        if (is_chunked || !http1_token_is_valid(member))
            return HTTP1_CODING_BAD;
        is_chunked = equals_without_case(member, chunked);
        member_count++;
    }
    if (!is_chunked)
        return HTTP1_CODING_BAD;
    return member_count == 1 ? HTTP1_CODING_CHUNKED : HTTP1_CODING_OTHER;
}

/* "[" IPv6address "]", by its bytes: nothing here connects to it.  IPvFuture is refused, as none has come. */
static size_t ip_literal_span(struct slice host)
{
    size_t colon_count = 0, i = 1;
    for (; i < host.byte_count && host.at[i] != ']'; i++) {
        if (!http1_byte_is(host.at[i], HTTP1_IN_HEX) && host.at[i] != ':' && host.at[i] != '.')
            return 0;
        colon_count += host.at[i] == ':';
    }
    return i < host.byte_count && colon_count >= 2 ? i + 1 : 0;
}

static size_t reg_name_span(struct slice host)
{
    size_t i = 0;
    while (i < host.byte_count) {
        if (http1_byte_is(host.at[i], HTTP1_IN_HOST))
            i++;
        else if (host.at[i] == '%' && http1_span(after(host, i + 1), HTTP1_IN_HEX) >= 2)
            i += 3;
        else
            break;
    }
    return i;
}

bool http1_host_is_valid(struct slice host)
{
    uint64_t port;
    if (host.byte_count == 0)
        return false;
    size_t host_bytes = host.at[0] == '[' ? ip_literal_span(host) : reg_name_span(host);
    if (host_bytes == 0)
        return false;
    if (host_bytes == host.byte_count)
        return true;
    struct slice tail = after(host, host_bytes + 1);
    return host.at[host_bytes] == ':' &&
           (tail.byte_count == 0 || http1_number(tail, UINT16_MAX, &port) == HTTP1_NUMBER_OK);
}

bool http1_field_is_hop_by_hop(struct slice name, const struct http1_field fields[], size_t field_count)
{
    static const char *const always[] = {
        "connection", "keep-alive",          "proxy-connection",   "te",      "transfer-encoding",
        "upgrade",    "proxy-authorization", "proxy-authenticate", "trailer", "http2-settings",
    };
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (http1_name_equals(name, always[i]))
            return true;
    for (size_t i = 0; i < field_count; i++)
        if (http1_name_equals(fields[i].name, "connection") && http1_list_has(fields[i].value, name))
            return true;
    return false;
}
