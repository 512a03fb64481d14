/*
 * http1.c - request and response heads: where they end, what frames the body, and what is refused.
 *
 * A request head is judged in the order of its bytes, and only bytes that are there for good decide: the request line
 * as it comes, the fields once the empty line has come.  So a longer read never turns a verdict round, and a line that
 * never ends is refused while it is still growing.
 * Single lines, lists and bytes are http1_fields.c; the body is http1_chunk.c.
 */
#include "http1.h"
#include <assert.h>

enum { METHOD_BYTES_MAX = 32 }; /* twice the longest registered one (UPDATEREDIRECTREF has 17) */

struct request_line {
    struct slice method_text, target, version; /* version: "1.1" */
};

/* What the framing and the connection depend on, gathered in one pass over the fields. */
struct facts {
    struct slice host, length, coding; /* the last of its name */
    size_t host_count, length_count, coding_count;
    bool is_close, is_keep_alive, is_continue;
};

static enum http1_status refuse(enum finish *ret_why, enum finish why)
{
    *ret_why = why;
    return HTTP1_REFUSED;
}

static void drop(struct slice *rest, size_t byte_count)
{
    rest->at += byte_count;
    rest->byte_count -= byte_count;
}

/* One word and the single space behind it. */
static enum http1_status take_word(struct slice *rest, enum http1_class byte_class, size_t bytes_max,
                                   enum finish why_long, struct slice *ret_word, enum finish *ret_why)
{
    size_t window_bytes = rest->byte_count <= bytes_max ? rest->byte_count : bytes_max + 1;
    size_t word_bytes = http1_span(slice_of(rest->at, window_bytes), byte_class);
    if (word_bytes > bytes_max)
        return refuse(ret_why, why_long);
    if (word_bytes == rest->byte_count)
        return HTTP1_MORE;
    if (word_bytes == 0 || rest->at[word_bytes] != ' ')
        return refuse(ret_why, FINISH_BAD_REQUEST);
    *ret_word = slice_of(rest->at, word_bytes);
    drop(rest, word_bytes + 1);
    return HTTP1_DONE;
}

/* Bytes that follow SHAPE, in which 0 stands for any digit. */
static enum http1_status take_shape(struct slice *rest, const char *shape, struct slice *ret_taken,
                                    enum finish *ret_why)
{
    size_t i = 0;
    for (; shape[i] != '\0' && i < rest->byte_count; i++) {
        bool is_digit = rest->at[i] >= '0' && rest->at[i] <= '9';
        if (shape[i] == '0' ? !is_digit : shape[i] != rest->at[i])
            return refuse(ret_why, FINISH_BAD_REQUEST);
    }
    if (shape[i] != '\0')
        return HTTP1_MORE;
    *ret_taken = slice_of(rest->at, i);
    drop(rest, i);
    return HTTP1_DONE;
}

/* RFC 9112, 2.2: one empty line before the request line is what old clients send after a body. */
static enum http1_status take_empty_line(struct slice *rest, enum finish *ret_why)
{
    struct slice line;
    if (rest->byte_count > 0 && rest->at[0] != '\r')
        return HTTP1_DONE;
    return take_shape(rest, "\r\n", &line, ret_why);
}

static enum http1_status take_request_line(struct slice *rest, struct request_line *ret_line,
                                           enum finish *ret_why)
{
    enum http1_status status = take_empty_line(rest, ret_why);
    if (status == HTTP1_DONE)
        status = take_word(rest, HTTP1_IN_TOKEN, METHOD_BYTES_MAX, FINISH_METHOD_UNKNOWN,
                           &ret_line->method_text, ret_why);
    if (status == HTTP1_DONE)
        status = take_word(rest, HTTP1_IN_TARGET, HTTP1_TARGET_BYTES_MAX, FINISH_URI_TOO_LONG,
                           &ret_line->target, ret_why);
    if (status == HTTP1_DONE)
        status = take_shape(rest, "HTTP/0.0\r\n", &ret_line->version, ret_why);
    if (status == HTTP1_DONE)
        ret_line->version = slice_of(ret_line->version.at + sizeof "HTTP/" - 1, 3);
    return status;
}

const char *http1_method_name(enum http1_method method)
{
    static const char *const names[HTTP1_METHOD_COUNT] = {
        [HTTP1_GET] = "GET",       [HTTP1_HEAD] = "HEAD",       [HTTP1_POST] = "POST",   [HTTP1_PUT] = "PUT",
        [HTTP1_DELETE] = "DELETE", [HTTP1_OPTIONS] = "OPTIONS", [HTTP1_PATCH] = "PATCH",
    };
    return names[method];
}

static enum finish judge_method(struct slice text, enum http1_method *ret_method)
{
    for (int i = 0; i < HTTP1_METHOD_COUNT; i++) {
        if (slice_equals_text(text, http1_method_name((enum http1_method)i))) {
            *ret_method = (enum http1_method)i;
            return FINISH_NONE;
        }
    }
    bool is_refused = slice_equals_text(text, "CONNECT") || slice_equals_text(text, "TRACE");
    return is_refused ? FINISH_METHOD_REFUSED : FINISH_METHOD_UNKNOWN;
}

/* RFC 9112, 3.2.2.  The authority takes the place of Host and is used for nothing else: the target is one and fixed. */
static enum finish split_absolute_form(struct http1_head *head)
{
    static const char scheme[] = "http://";
    struct slice target = head->target;
    size_t scheme_bytes = sizeof scheme - 1;
    if (target.byte_count < scheme_bytes || !http1_name_equals(slice_of(target.at, scheme_bytes), scheme))
        return FINISH_BAD_REQUEST;
    drop(&target, scheme_bytes);
    const char *slash = target.byte_count == 0 ? NULL : memchr(target.at, '/', target.byte_count);
    head->host = slice_of(target.at, slash == NULL ? target.byte_count : (size_t)(slash - target.at));
    drop(&target, head->host.byte_count);
    /* Without a path it is "/", which the bytes have at hand; "?q" alone would have to be rewritten. */
    head->target = target.byte_count > 0 ? target : slice_of(head->target.at + scheme_bytes - 1, 1);
    return http1_host_is_valid(head->host) ? FINISH_NONE : FINISH_BAD_REQUEST;
}

static void split_query(struct http1_head *head)
{
    struct slice target = head->target;
    const char *mark = memchr(target.at, '?', target.byte_count);
    size_t path_bytes = mark == NULL ? target.byte_count : (size_t)(mark - target.at);
    head->path = slice_of(target.at, path_bytes);
    drop(&target, mark == NULL ? path_bytes : path_bytes + 1);
    head->query = target;
}

static enum finish judge_target(struct http1_head *head)
{
    enum finish why = FINISH_NONE;
    bool is_asterisk = slice_equals_text(head->target, "*");
    if (is_asterisk && head->method != HTTP1_OPTIONS)
        return FINISH_BAD_REQUEST;
    if (!is_asterisk && head->target.at[0] != '/')
        why = split_absolute_form(head);
    if (why == FINISH_NONE)
        split_query(head);
    return why;
}

static enum finish judge_request_line(const struct request_line *line, struct http1_head *head)
{
    /* The first line of an HTTP/2 preface (RFC 9113, 3.4) is neither a method nor a version that we lack. */
    if (slice_equals_text(line->method_text, "PRI") && slice_equals_text(line->version, "2.0"))
        return FINISH_BAD_REQUEST;
    if (line->version.at[0] != '1' || line->version.at[2] > '1')
        return FINISH_VERSION_UNKNOWN;
    head->version_minor = line->version.at[2] - '0';
    head->method_text = line->method_text;
    head->target = line->target;
    enum finish why = judge_method(line->method_text, &head->method);
    return why == FINISH_NONE ? judge_target(head) : why;
}

/* How many bytes up to the end of the first empty line; 0: none yet.  Bare LFs count as line ends here, so that a head
 * that uses them is found and refused now instead of at the deadline. */
static size_t fields_span(struct slice rest)
{
    const char *line = rest.at, *end = rest.at + rest.byte_count;
    while (line < end) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        if (feed == NULL)
            return 0;
        if (feed == line || (feed == line + 1 && *line == '\r'))
            return (size_t)(feed + 1 - rest.at);
        line = feed + 1;
    }
    return 0;
}

/* All lines up to the empty one, which must be the last of FIELDS.  FINISH_NONE: it is. */
static enum finish take_fields(struct slice rest, struct http1_field fields[], size_t *ret_count)
{
    size_t count = 0;
    while (!slice_equals_text(rest, "\r\n")) {
        struct http1_field field;
        if (!http1_field_line(&rest, &field))
            return FINISH_BAD_REQUEST;
        if (count == HTTP1_FIELDS_MAX)
            return FINISH_HEAD_TOO_LARGE;
        fields[count++] = field;
    }
    *ret_count = count;
    return FINISH_NONE;
}

static enum finish note_connection(struct facts *facts, struct slice options)
{
    facts->is_close = facts->is_close || http1_list_has(options, slice_of_text("close"));
    facts->is_keep_alive = facts->is_keep_alive || http1_list_has(options, slice_of_text("keep-alive"));
    /* Whoever obeys it would strip what the next reader needs to find the end of the request. */
    bool is_harmful = http1_list_has(options, slice_of_text("content-length")) ||
                      http1_list_has(options, slice_of_text("host"));
    return is_harmful ? FINISH_BAD_REQUEST : FINISH_NONE;
}

/* RFC 9110, 10.1.1.  Empty members say nothing. */
static enum finish note_expectation(struct facts *facts, struct slice expectations)
{
    struct slice member;
    while (http1_list_next(&expectations, &member)) {
        if (http1_name_equals(member, "100-continue"))
            facts->is_continue = true;
        else if (member.byte_count > 0)
            return FINISH_EXPECTATION;
    }
    return FINISH_NONE;
}

static enum finish note_field(struct facts *facts, const struct http1_field *field)
{
    if (http1_name_equals(field->name, "host")) {
        facts->host = field->value;
        facts->host_count++;
    } else if (http1_name_equals(field->name, "content-length")) {
        facts->length = field->value;
        facts->length_count++;
    } else if (http1_name_equals(field->name, "transfer-encoding")) {
        facts->coding = field->value;
        facts->coding_count++;
    } else if (http1_name_equals(field->name, "connection")) {
        return note_connection(facts, field->value);
    } else if (http1_name_equals(field->name, "content_length") ||
               http1_name_equals(field->name, "transfer_encoding")) {
        return FINISH_BAD_REQUEST; /* one and the same to a target that maps names to CGI variables */
    }
    return FINISH_NONE;
}

static enum finish note_fields(struct facts *facts, const struct http1_head *head)
{
    enum finish why = FINISH_NONE;
    for (size_t i = 0; i < head->field_count && why == FINISH_NONE; i++)
        why = note_field(facts, &head->fields[i]);
    return why;
}

static enum finish judge_host(const struct facts *facts, struct http1_head *head)
{
    bool is_absolute = head->host.byte_count > 0;
    if (facts->host_count > 1 || (facts->host_count == 0 && head->version_minor > 0))
        return FINISH_BAD_REQUEST;
    if (facts->host_count == 1 && !http1_host_is_valid(facts->host))
        return FINISH_BAD_REQUEST;
    if (!is_absolute)
        head->host = facts->host;
    return FINISH_NONE;
}

static enum finish judge_coding(const struct facts *facts, struct http1_head *head)
{
    enum http1_coding coding = http1_coding(facts->coding);
    if (coding == HTTP1_CODING_BAD || head->version_minor == 0)
        return FINISH_BAD_REQUEST;
    head->framing = HTTP1_CHUNKED;
    return coding == HTTP1_CODING_CHUNKED ? FINISH_NONE : FINISH_CODING_UNKNOWN;
}

/* A leading zero reads as octal to some. */
static enum finish judge_length(struct slice length, uint64_t body_bytes_max, struct http1_head *head)
{
    if (length.byte_count > 1 && length.at[0] == '0')
        return FINISH_BAD_REQUEST;
    enum http1_number number = http1_number(length, body_bytes_max, &head->body_bytes);
    if (number == HTTP1_NUMBER_BAD)
        return FINISH_BAD_REQUEST;
    head->framing = HTTP1_LENGTH;
    return number == HTTP1_NUMBER_ABOVE ? FINISH_BODY_TOO_LARGE : FINISH_NONE;
}

/* RFC 9112, 6.1 to 6.3, with every case refused in which two fields speak about the length. */
static enum finish judge_framing(const struct facts *facts, uint64_t body_bytes_max, struct http1_head *head)
{
    enum finish why = FINISH_NONE;
    if (facts->coding_count > 1 || (facts->coding_count > 0 && facts->length_count > 0))
        return FINISH_BAD_REQUEST;
#ifndef BREAK_DUPLICATE_LENGTH /* negative control: without this line the tests must go red */
    if (facts->length_count > 1)
        return FINISH_BAD_REQUEST;
#endif
    if (facts->coding_count == 1)
        why = judge_coding(facts, head);
    else if (facts->length_count > 0)
        why = judge_length(facts->length, body_bytes_max, head);
    bool has_body = head->framing == HTTP1_CHUNKED || head->body_bytes > 0;
    if (why == FINISH_NONE && has_body && head->method == HTTP1_HEAD)
        why = FINISH_BAD_REQUEST;
    return why;
}

static enum finish judge_expectations(const struct http1_head *head, struct facts *facts)
{
    enum finish why = FINISH_NONE;
    for (size_t i = 0; i < head->field_count && why == FINISH_NONE; i++)
        if (http1_name_equals(head->fields[i].name, "expect"))
            why = note_expectation(facts, head->fields[i].value);
    return why;
}

/* The rules about several fields at once; those about where the request ends come first. */
static enum finish judge_fields(uint64_t body_bytes_max, struct http1_head *head)
{
    struct facts facts = { 0 };
    enum finish why = note_fields(&facts, head);
    if (why == FINISH_NONE)
        why = judge_host(&facts, head);
    if (why == FINISH_NONE)
        why = judge_framing(&facts, body_bytes_max, head);
    if (why == FINISH_NONE)
        why = judge_expectations(head, &facts);
    bool is_http11 = head->version_minor > 0;
    bool has_body = head->framing == HTTP1_CHUNKED || head->body_bytes > 0;
    head->is_continue_expected = facts.is_continue && is_http11 && has_body;
    head->is_kept_alive = !facts.is_close && (is_http11 || facts.is_keep_alive);
    return why;
}

/* All but the fields, whose unused cells nobody reads. */
static void head_init(struct http1_head *head)
{
    head->byte_count = 0;
    head->host = slice_of(NULL, 0);
    head->field_count = 0;
    head->framing = HTTP1_NO_BODY;
    head->body_bytes = 0;
}

enum http1_status http1_head(const char bytes[], size_t byte_count, size_t head_bytes_max,
                             uint64_t body_bytes_max, struct http1_head *ret_head, enum finish *ret_why)
{
    struct request_line line;
    struct http1_head head;
    bool is_cut = byte_count > head_bytes_max;
    struct slice rest = slice_of(bytes, is_cut ? head_bytes_max : byte_count);
    enum http1_status status = take_request_line(&rest, &line, ret_why);
    if (status == HTTP1_MORE && is_cut)
        return refuse(ret_why, FINISH_HEAD_TOO_LARGE);
    if (status != HTTP1_DONE)
        return status;

    head_init(&head);
    enum finish why = judge_request_line(&line, &head);
    if (why != FINISH_NONE)
        return refuse(ret_why, why);
    size_t fields_bytes = fields_span(rest);
    if (fields_bytes == 0)
        return is_cut ? refuse(ret_why, FINISH_HEAD_TOO_LARGE) : HTTP1_MORE;
    why = take_fields(slice_of(rest.at, fields_bytes), head.fields, &head.field_count);
    if (why == FINISH_NONE)
        why = judge_fields(body_bytes_max, &head);
    if (why != FINISH_NONE)
        return refuse(ret_why, why);
    head.byte_count = (size_t)(rest.at + fields_bytes - bytes);
    *ret_head = head;
    return HTTP1_DONE;
}

/* "HTTP/1.1 200 OK"; the phrase, and even the space before it, may be missing. */
static bool take_status_line(struct slice *rest, int *ret_status)
{
    struct slice start, line_end;
    enum finish ignored;
    if (take_shape(rest, "HTTP/1.0 000", &start, &ignored) != HTTP1_DONE)
        return false;
    const char *digits = start.at + start.byte_count - 3;
    *ret_status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
    if (rest->byte_count > 0 && rest->at[0] == ' ')
        drop(rest, http1_span(*rest, HTTP1_IN_VALUE));
    return *ret_status >= 100 && *ret_status <= 599 &&
           take_shape(rest, "\r\n", &line_end, &ignored) == HTTP1_DONE;
}

/* RFC 9112, 6.3: a length said twice is no contradiction as long as it is the same. */
static bool note_response_length(struct http1_response *response, struct slice value)
{
    struct slice member;
    while (http1_list_next(&value, &member)) {
        uint64_t length;
        if (http1_number(member, UINT64_MAX, &length) != HTTP1_NUMBER_OK)
            return false;
        if (response->is_length_known && response->length_bytes != length)
            return false;
        response->is_length_known = true;
        response->length_bytes = length;
    }
    return true;
}

static bool judge_response(struct http1_response *response)
{
    size_t coding_count = 0;
    bool is_valid = true;
    for (size_t i = 0; i < response->field_count && is_valid; i++) {
        const struct http1_field *field = &response->fields[i];
        if (http1_name_equals(field->name, "content-length"))
            is_valid = note_response_length(response, field->value);
        else if (http1_name_equals(field->name, "transfer-encoding"))
            is_valid = http1_coding(field->value) != HTTP1_CODING_BAD && ++coding_count == 1;
    }
    return is_valid && !(coding_count > 0 && response->is_length_known);
}

enum http1_status http1_response(const char bytes[], size_t byte_count, struct http1_response *ret_response)
{
    struct http1_response response;
    struct slice rest = slice_of(bytes, byte_count);
    response.field_count = 0;
    response.is_length_known = false;
    response.length_bytes = 0;
    if (!take_status_line(&rest, &response.status))
        return HTTP1_REFUSED;
    if (take_fields(rest, response.fields, &response.field_count) != FINISH_NONE ||
        !judge_response(&response))
        return HTTP1_REFUSED;
    *ret_response = response;
    return HTTP1_DONE;
}
