/*
 * request_of.h - a struct request from bytes as they go over the socket, for tests of deciders.
 *
 * Included by one file per executable.  Everything that is wrong with the bytes fails the test.
 */
#ifndef SINKONCE_REQUEST_OF_H
#define SINKONCE_REQUEST_OF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "request.h"

enum { REQUEST_BYTES_MAX = 1 << 20 };

static void request_body_of(struct request *request, const char at[], size_t byte_count)
{
    struct http1_chunks chunks = { 0 };
    enum http1_status status = HTTP1_MORE;
    enum finish why;
    request->body = malloc(byte_count + 1);
    assert_non_null(request->body);
    if (request->head.framing != HTTP1_CHUNKED) {
        memcpy(request->body, at, byte_count);
        request->body_bytes = byte_count;
        return;
    }
    while (status == HTTP1_MORE && byte_count > 0) {
        size_t taken;
        struct slice piece;
        status = http1_chunk(&chunks, at, byte_count, REQUEST_BYTES_MAX, &taken, &piece, &why);
        if (piece.byte_count > 0)
            memcpy(request->body + request->body_bytes, piece.at, piece.byte_count);
        request->body_bytes += piece.byte_count;
        at += taken;
        byte_count -= taken;
    }
    assert_int_equal(status, HTTP1_DONE);
}

/* Release with request_release(). */
static struct request *request_of(const char bytes[], size_t byte_count)
{
    struct request *request = calloc(1, sizeof *request);
    enum finish why;
    assert_non_null(request);
    request->bytes = malloc(byte_count);
    assert_non_null(request->bytes);
    memcpy(request->bytes, bytes, byte_count);
    request->byte_count = byte_count;
    assert_int_equal(
        http1_head(request->bytes, byte_count, REQUEST_BYTES_MAX, REQUEST_BYTES_MAX, &request->head, &why),
        HTTP1_DONE);
    size_t head_bytes = request->head.byte_count;
    request_body_of(request, request->bytes + head_bytes, byte_count - head_bytes);
    return request;
}

/* HEAD is the request line and fields, each with its line end; Host, Content-Length and the empty line are added. */
static inline struct request *request_of_texts(const char *head, const char *body)
{
    char *bytes;
    int byte_count = asprintf(&bytes, "%sHost: t\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body);
    assert_true(byte_count > 0);
    struct request *request = request_of(bytes, (size_t)byte_count);
    free(bytes);
    return request;
}

/* One of tests/wire. */
static inline struct request *request_of_file(const char *name)
{
    char path[512], *bytes = malloc(REQUEST_BYTES_MAX);
    assert_non_null(bytes);
    snprintf(path, sizeof path, "%s/wire/%s", TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t byte_count = fread(bytes, 1, REQUEST_BYTES_MAX, file);
    fclose(file);
    struct request *request = request_of(bytes, byte_count);
    free(bytes);
    return request;
}

static void request_release(struct request *request)
{
    free(request->bytes);
    free(request->body);
    free(request);
}

#endif
