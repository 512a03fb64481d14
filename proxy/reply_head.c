/*
 * reply_head.c - the bytes of a reply's head.
 */
#include "reply_head.h"

#include <stdlib.h>
#include <time.h>

/* "Date: ..." of this second (RFC 9110, 5.6.7); formed once a second and thread. */
static const char *date_line(void)
{
    static _Thread_local time_t second;
    static _Thread_local char line[48];
    time_t now = time(NULL);
    if (now != second) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(line, sizeof line, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
        second = now;
    }
    return line;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 422, "Unprocessable Content" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
        { 508, "Loop Detected" },
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

static char *append(char *to, struct slice bytes)
{
    if (bytes.byte_count > 0)
        memcpy(to, bytes.at, bytes.byte_count);
    return to + bytes.byte_count;
}

static char *append_text(char *to, const char *text)
{
    return append(to, slice_of_text(text));
}

/* Each reply has two: too many for a format to be read. */
static char *append_number(char *to, uint64_t number)
{
    char digits[20]; /* of UINT64_MAX */
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return append(to, slice_of(&digits[first], sizeof digits - first));
}

bool reply_has_body(const struct reply *reply)
{
    return !reply->is_body_left_out && reply->status >= 200 && reply->status != 204 && reply->status != 304;
}

void reply_leave_body_out(struct reply *reply)
{
    if (reply->is_body_left_out)
        return;
    reply->is_body_left_out = reply->has_length = true;
    reply->length = reply->body.byte_count;
}

static char *append_framing(char *to, const struct reply *reply, bool is_closing)
{
    bool is_told = reply_has_body(reply) || (reply->has_length && reply->status != 204);
    if (is_told) {
        uint64_t length = reply_has_body(reply) ? reply->body.byte_count : reply->length;
        to = append_text(append_number(append_text(to, "Content-Length: "), length), "\r\n");
    }
    if (is_closing)
        to = append_text(to, "Connection: close\r\n");
    return append_text(to, "\r\n");
}

/* The head of REPLY in one allocation; NULL: no memory. */
char *reply_head_new(const struct reply *reply, bool is_closing, size_t *ret_bytes)
{
    enum { FIXED_BYTES = 256 }; /* status line, Date, Content-Length, Connection and the empty line */
    size_t room = FIXED_BYTES;
    for (size_t i = 0; i < reply->field_count; i++)
        room += reply->fields[i].name.byte_count + reply->fields[i].value.byte_count + 4;
    char *head = malloc(room);
    if (head == NULL)
        return NULL;
    char *to = append_number(append_text(head, "HTTP/1.1 "), (uint64_t)reply->status);
    to = append_text(append_text(append_text(to, " "), http_reason(reply->status)), "\r\n");
    if (!reply->has_date)
        to = append_text(to, date_line());
    for (size_t i = 0; i < reply->field_count; i++) {
        to = append_text(append(to, reply->fields[i].name), ": ");
        to = append_text(append(to, reply->fields[i].value), "\r\n");
    }
    to = append_framing(to, reply, is_closing);
    *ret_bytes = (size_t)(to - head);
    return head;
}
