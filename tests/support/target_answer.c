/*
 * target_answer.c - see target_answer.h.
 */
#include "target_answer.h"
#include "target_bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *reason_of(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 204:
        return "No Content";
    case 404:
        return "Not Found";
    case 409:
        return "Conflict";
    case 429:
        return "Too Many Requests";
    case 500:
        return "Internal Server Error";
    case 503:
        return "Service Unavailable";
    default:
        return "Status";
    }
}

static bool has_body(int status, const struct target_request *request)
{
    return status != 204 && status != 304 && status >= 200 && !target_text_is(request->method, "HEAD");
}

static void print_fields(FILE *out, const struct target_rule *rule, struct target_text body, bool is_closing)
{
    fprintf(out, "HTTP/1.1 %d %s\r\n", rule->status, reason_of(rule->status));
    if (rule->header[0] != '\0')
        fprintf(out, "%s\r\n", rule->header);
    if (body.bytes != rule->body)
        fputs("Content-Type: application/json\r\n", out);
    if (rule->is_chunked)
        fputs("Transfer-Encoding: chunked\r\n", out);
    else if (rule->status != 204)
        fprintf(out, "Content-Length: %zu\r\n", body.length);
    fprintf(out, "%s\r\n", is_closing ? "Connection: close\r\n" : "");
}

static void print_chunk(FILE *out, const char *from, size_t length)
{
    if (length == 0)
        return;
    fprintf(out, "%zx\r\n", length);
    fwrite(from, 1, length, out);
    fputs("\r\n", out);
}

static void print_body(FILE *out, const struct target_rule *rule, struct target_text body)
{
    size_t half = body.length / 2;

    if (!rule->is_chunked) {
        fwrite(body.bytes, 1, body.length, out);
        return;
    }
    print_chunk(out, body.bytes, half);
    print_chunk(out, body.bytes + half, body.length - half);
    fputs("0\r\n\r\n", out);
}

/* How many bytes are sent before the rule's cut. */
static size_t cut_at(enum target_cut cut, size_t head_length, size_t length)
{
    switch (cut) {
    case CUT_ACCEPT:
    case CUT_REQUEST:
    case CUT_ANSWER:
        return 0;
    case CUT_STATUS:
        return 10; /* HTTP/1.1 2 */
    case CUT_HEAD:
        return head_length - 6; /* inside the last field: no empty line, no end of line */
    case CUT_BODY:
        return head_length + (length - head_length) / 2;
    case CUT_NONE:
    case CUT_COUNT:
        break;
    }
    return length;
}

/* The rule's body, or the items of a bulk answer, which are then owned by *RET_MADE. */
static struct target_text body_of(const struct target_rule *rule, const struct target_request *request,
                                  size_t applied, char **ret_made)
{
    struct target_text body = { rule->body, rule->body_length };

    *ret_made = NULL;
    if (rule->has_own_body || rule->status != 200 || !target_is_bulk(request))
        return body;
    FILE *out = open_memstream(ret_made, &body.length);
    if (out == NULL)
        abort();
    target_bulk_print(request, applied, out);
    fclose(out);
    body.bytes = *ret_made;
    return body;
}

/* Print the whole answer; the length of its head. */
static size_t print_answer(FILE *out, const struct target_rule *rule, const struct target_request *request,
                           size_t applied, bool is_closing)
{
    char *made = NULL;
    struct target_text body = body_of(rule, request, applied, &made);

    print_fields(out, rule, body, is_closing);
    size_t head_length = (size_t)ftell(out);
    if (has_body(rule->status, request))
        print_body(out, rule, body);
    free(made);
    return head_length;
}

struct target_answer target_answer_build(const struct target_rule *rule, const struct target_request *request,
                                         size_t applied)
{
    struct target_answer answer = { .end = rule->end, .pause_ms = rule->pause_ms };
    FILE *out = open_memstream(&answer.bytes, &answer.length);
    bool is_closing = rule->is_closing || !request->is_keepalive;

    if (out == NULL)
        abort();
    if (rule->raw_length != 0) {
        fwrite(rule->raw, 1, rule->raw_length, out);
        fclose(out);
        answer.is_last = is_closing;
        return answer;
    }
    size_t head_length = print_answer(out, rule, request, applied, is_closing);
    fclose(out);
    answer.pause_at = rule->pause_ms != 0 ? head_length + (answer.length - head_length) / 2 : 0;
    answer.length = cut_at(rule->cut, head_length, answer.length);
    answer.is_last = is_closing || rule->cut != CUT_NONE;
    if (rule->cut == CUT_NONE)
        answer.end = END_CLOSE;
    return answer;
}

struct target_answer target_answer_text(int status, const char *body, size_t body_length)
{
    struct target_answer answer = { .end = END_CLOSE };
    FILE *out = open_memstream(&answer.bytes, &answer.length);

    if (out == NULL)
        abort();
    fprintf(out, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n\r\n", status, reason_of(status), body_length);
    fwrite(body, 1, body_length, out);
    fclose(out);
    return answer;
}
