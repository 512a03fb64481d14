/*
 * admin_explain.c - reads the sample request that is to be explained: raw, or described in JSON.
 *
 * Either way it passes the codec of the data port, so that what is refused there is refused here in the same words.
 * What is found in it explain.c says.
 */
#include "admin_body.h"
#include "admin_call.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "explain.h"

enum { SAMPLE_BYTES_MAX = 65536 };

/* The body behind a raw head.  False: it is not whole, or not framed as its head says. */
static bool raw_body_take(const struct http1_head *head, const char *bytes, size_t byte_count,
                          struct request *sample)
{
    struct http1_chunks chunks = { .state = 0 };
    enum http1_status status = HTTP1_DONE;
    if (head->framing == HTTP1_NO_BODY)
        return byte_count == 0;
    sample->body = malloc(byte_count + 1);
    if (sample->body == NULL)
        return false;
    if (head->framing == HTTP1_LENGTH) {
        memcpy(sample->body, bytes, byte_count);
        sample->body_bytes = byte_count;
        return head->body_bytes == byte_count;
    }
    do {
        size_t taken = 0;
        struct slice piece = { NULL, 0 };
        enum finish why;
        status = http1_chunk(&chunks, bytes, byte_count, SAMPLE_BYTES_MAX, &taken, &piece, &why);
        if (status != HTTP1_REFUSED && piece.byte_count > 0) {
            memcpy(sample->body + sample->body_bytes, piece.at, piece.byte_count);
            sample->body_bytes += piece.byte_count;
        }
        bytes += taken;
        byte_count -= taken;
        if (status == HTTP1_MORE && taken == 0)
            return false;
    } while (status == HTTP1_MORE);
    return status == HTTP1_DONE && byte_count == 0;
}

/* BYTES are taken by the sample.  NULL, or what is wrong, in words. */
static const char *raw_read(char *bytes, size_t byte_count, struct request *sample)
{
    enum finish why = FINISH_NONE;
    sample->bytes = bytes;
    sample->byte_count = byte_count;
    switch (http1_head(bytes, byte_count, SAMPLE_BYTES_MAX, SAMPLE_BYTES_MAX, &sample->head, &why)) {
    case HTTP1_MORE:
        return "the request's head is not whole: an empty line must end it";
    case HTTP1_REFUSED:
        return finish_rows[why].words;
    case HTTP1_DONE:
    default:
        break;
    }
    size_t head_bytes = sample->head.byte_count;
    return raw_body_take(&sample->head, bytes + head_bytes, byte_count - head_bytes, sample)
               ? NULL
               : "the request's body is not framed as its head says";
}

static bool is_one_line(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    }
    return true;
}

enum { METHOD, PATH, HEADERS, BODY, SAMPLE_MEMBER_COUNT };

/* "Host", and what says where the body ends, are ours. */
static bool is_ours(const char *name)
{
    return strcasecmp(name, "host") == 0 || strcasecmp(name, "content-length") == 0 ||
           strcasecmp(name, "transfer-encoding") == 0;
}

/* False: already refused. */
static bool members_check(struct admin_call *call, const struct admin_member members[])
{
    const char *name;
    json_t *value;
    for (int i = METHOD; i <= PATH; i++) {
        const char *text = json_string_value(members[i].value);
        if (members[i].value != NULL && (text == NULL || !is_one_line(text)))
            return admin_refuse_value(call, &members[i], "a text on one line");
    }
    if (members[HEADERS].value != NULL && !json_is_object(members[HEADERS].value))
        return admin_refuse_value(call, &members[HEADERS], "an object of texts");
    json_object_foreach(members[HEADERS].value, name, value)
    {
        const char *text = json_string_value(value);
        if (text == NULL || !is_one_line(text) || !http1_token_is_valid(slice_of_text(name)))
            return admin_refuse_value(call, &members[HEADERS], "an object of texts on one line");
    }
    return true;
}

/* A raw request; what else is wrong in it the codec says. */
static void raw_write(FILE *out, const struct admin_member members[], struct slice body)
{
    const char *name;
    json_t *value;
    const char *method = json_string_value(members[METHOD].value),
               *path = json_string_value(members[PATH].value);
    fprintf(out, "%s %s HTTP/1.1\r\nHost: explained\r\n", method == NULL ? "POST" : method,
            path == NULL ? "/" : path);
    json_object_foreach(members[HEADERS].value, name, value)
    {
        if (!is_ours(name))
            fprintf(out, "%s: %s\r\n", name, json_string_value(value));
    }
    if (members[BODY].value != NULL)
        fprintf(out, "Content-Length: %zu\r\n", body.byte_count);
    fputs("\r\n", out);
    fwrite(body.at, 1, body.byte_count, out);
}

/* A text is the body; any other value is its JSON.  NULL: already refused. */
static char *raw_make(struct admin_call *call, const struct admin_member members[], size_t *ret_bytes)
{
    const json_t *value = members[BODY].value;
    char *raw = NULL;
    bool is_text = value == NULL || json_is_string(value);
    char *dumped = is_text ? NULL : admin_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY, "");
    struct slice body = dumped != NULL ? slice_of_text(dumped)
                        : json_is_string(value)
                            ? slice_of(json_string_value(value), json_string_length(value))
                            : slice_of("", 0);
    FILE *out = is_text || dumped != NULL ? open_memstream(&raw, ret_bytes) : NULL;
    if (out != NULL) {
        raw_write(out, members, body);
        if (fclose(out) != 0) {
            free(raw);
            raw = NULL;
        }
    }
    free(dumped);
    if (raw == NULL)
        admin_answer_json(call, 503, NULL);
    return raw;
}

static char *raw_of_json(struct admin_call *call, size_t *ret_bytes)
{
    struct admin_member members[SAMPLE_MEMBER_COUNT] = { [METHOD] = { "method", false, NULL },
                                                         [PATH] = { "path", false, NULL },
                                                         [HEADERS] = { "headers", false, NULL },
                                                         [BODY] = { "body", false, NULL } };
    char *raw = NULL;
    json_t *body = admin_body_read(call);
    if (body != NULL && admin_members_get(call, body, members, SAMPLE_MEMBER_COUNT) &&
        members_check(call, members))
        raw = raw_make(call, members, ret_bytes);
    json_decref(body);
    return raw;
}

/* The bytes of this request's body, as the sample's own. */
static char *raw_of_body(struct admin_call *call, size_t *ret_bytes)
{
    const struct request *request = call->request;
    char *raw = malloc(request->body_bytes + 1);
    *ret_bytes = request->body_bytes;
    if (raw == NULL)
        admin_answer_json(call, 503, NULL);
    else if (request->body_bytes > 0)
        memcpy(raw, request->body, request->body_bytes);
    return raw;
}

void admin_on_explain(struct admin_call *call)
{
    size_t bytes = 0;
    char *raw =
        admin_has_type(call, "application/http") ? raw_of_body(call, &bytes) : raw_of_json(call, &bytes);
    struct request *sample = raw == NULL ? NULL : calloc(1, sizeof *sample);
    if (sample == NULL) {
        if (raw != NULL)
            admin_answer_json(call, 503, NULL);
        free(raw);
        return;
    }
    const char *wrong = raw_read(raw, bytes, sample);
    if (wrong != NULL)
        admin_refuse(call, 400, "bad-request", NULL, "%s", wrong);
    else
        admin_answer_json(call, 200, explain_json(call->admin->parts.settings, sample));
    free(sample->bytes);
    free(sample->body);
    free(sample);
}
