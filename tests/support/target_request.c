/*
 * target_request.c - see target_request.h.  Pure: bytes in, slices out.
 */
#include "target_request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct target_text cut_word(const char **at, const char *end)
{
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    const char *stop = space != NULL ? space : end;
    struct target_text word = { *at, (size_t)(stop - *at) };
    *at = space != NULL ? space + 1 : end;
    return word;
}

static struct target_text trim(const char *from, const char *end)
{
    while (from < end && (*from == ' ' || *from == '\t'))
        from++;
    while (end > from && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return (struct target_text){ from, (size_t)(end - from) };
}

bool target_text_is(struct target_text text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.bytes, word, text.length) == 0;
}

struct target_text target_request_header(const struct target_request *request, const char *name)
{
    const char *at = request->head.bytes;
    const char *end = at + request->head.length;
    size_t name_length = strlen(name);

    while (at < end) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        if (eol == NULL)
            break;
        if ((size_t)(eol - at) > name_length && at[name_length] == ':' &&
            strncasecmp(at, name, name_length) == 0)
            return trim(at + name_length + 1, eol);
        at = eol + 1;
    }
    return (struct target_text){ end, 0 };
}

/* Decode chunks from FROM to END into SCRATCH; returns the bytes consumed, 0 when more are needed, -1 when bad. */
static long chunks_read(const char *from, const char *end, char scratch[], size_t *ret_length)
{
    const char *at = from;
    size_t length = 0;

    for (;;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        if (eol == NULL)
            return 0;
        char *stop = NULL;
        unsigned long size = strtoul(at, &stop, 16);
        if (stop == at)
            return -1;
        at = eol + 1;
        if (size == 0)
            break;
        if (size > (size_t)(end - at) || (size_t)(end - at) - size < 2)
            return 0;
        memcpy(scratch + length, at, size);
        length += size;
        at += size + 2;
    }
    for (;;) { /* trailer fields, then the empty line */
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        if (eol == NULL)
            return 0;
        size_t line = (size_t)(eol - at);
        at = eol + 1;
        if (line == 0 || (line == 1 && eol[-1] == '\r'))
            break;
    }
    *ret_length = length;
    return (long)(at - from);
}

static enum target_request_status body_read(struct target_request *request, const char *end, char scratch[])
{
    const char *from = request->head.bytes + request->head.length;
    struct target_text coding = target_request_header(request, "Transfer-Encoding");

    if (coding.length != 0) {
        size_t length = 0;
        long used = chunks_read(from, end, scratch, &length);
        if (used <= 0)
            return used < 0 ? TARGET_REQUEST_BAD : TARGET_REQUEST_MORE_BODY;
        request->body = (struct target_text){ scratch, length };
        request->byte_count = request->head.length + (size_t)used;
        return TARGET_REQUEST_WHOLE;
    }
    struct target_text header = target_request_header(request, "Content-Length");
    size_t length = header.length != 0 ? strtoul(header.bytes, NULL, 10) : 0;
    if (length > (size_t)(end - from))
        return TARGET_REQUEST_MORE_BODY;
    request->body = (struct target_text){ from, length };
    request->byte_count = request->head.length + length;
    return TARGET_REQUEST_WHOLE;
}

enum target_request_status target_request_read(const char bytes[], size_t byte_count, char scratch[],
                                               struct target_request *ret_request)
{
    const char *blank = bytes != NULL && byte_count >= 4 ? memmem(bytes, byte_count, "\r\n\r\n", 4) : NULL;
    if (blank == NULL)
        return TARGET_REQUEST_MORE;
    const char *at = bytes;
    const char *eol = memchr(bytes, '\r', byte_count);
    struct target_request request = { .head = { bytes, (size_t)(blank + 4 - bytes) } };

    request.method = cut_word(&at, eol);
    request.path = cut_word(&at, eol);
    struct target_text version = cut_word(&at, eol);
    if (request.method.length == 0 || request.path.length == 0 || version.length < 8)
        return TARGET_REQUEST_BAD;
    struct target_text connection = target_request_header(&request, "Connection");
    request.is_keepalive = target_text_is(version, "HTTP/1.1") && !target_text_is(connection, "close");
    request.expects_continue = target_request_header(&request, "Expect").length != 0;
    enum target_request_status status = body_read(&request, bytes + byte_count, scratch);
    if (status != TARGET_REQUEST_BAD)
        *ret_request = request;
    return status;
}
