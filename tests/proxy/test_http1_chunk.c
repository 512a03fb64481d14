/*
 * test_http1_chunk.c - chunked bodies in, bytes or refusals out; every row is a test of its own.
 *
 * Each body is decoded in one piece, cut in two at every byte, and byte by byte.
 */
#include "http1.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { BODY_BYTES_MAX = 100, WORDS_SIZE = 400 };

struct row {
    const char *name;
    const char *bytes;
    size_t byte_count;
    const char *expected; /* status of the refusal, "more", or "done" with the body and what was left over */
};

#define BYTES(text) text, sizeof text - 1
#define END         "0\r\n\r\n"

static const struct row rows[] = {
    { "R-17 one chunk is decoded", BYTES("5\r\nhello\r\n" END), "done hello left=0" },
    { "several chunks are joined", BYTES("5\r\nhello\r\n1\r\n \r\n005\r\nworld\r\n" END),
      "done hello world left=0" },
    { "hexadecimal sizes in either case", BYTES("a\r\n0123456789\r\nA\r\n0123456789\r\n" END),
      "done 01234567890123456789 left=0" },
    { "size 9 is nine", BYTES("9\r\n012345678\r\n" END), "done 012345678 left=0" },
    { "an empty body is a body", BYTES(END), "done  left=0" },
    { "a last chunk of many zeros", BYTES("0000000000000000\r\n\r\n"), "done  left=0" },
    { "data may hold line ends", BYTES("4\r\n\r\n\r\n\r\n" END), "done \r\n\r\n left=0" },
    { "H-33 the next request is left alone", BYTES(END "GET / HTTP/1.1\r\n"), "done  left=16" },
    { "R-21 a body that is not whole", BYTES("5\r\nhel"), "more" },
    { "R-21 the last empty line is missing", BYTES("5\r\nhello\r\n0\r\n"), "more" },

    { "H-13 an extension is ignored", BYTES("5;a=b\r\nhello\r\n" END), "done hello left=0" },
    { "H-13 several extensions, one quoted", BYTES("5;a;b=\"c;d \";e=f\r\nhello\r\n0;x\r\n\r\n"),
      "done hello left=0" },
    { "H-13 white space behind the semicolon", BYTES("5; \ta=b\r\nhello\r\n" END), "done hello left=0" },
    { "H-13 an extension without name", BYTES("5;\r\nhello\r\n" END), "400" },
    { "H-13 an extension that starts with =", BYTES("5;=b\r\nhello\r\n" END), "400" },
    { "H-13 a bare LF in an extension", BYTES("5;a\nhello\r\n" END), "400" },
    { "H-13 a bare CR in an extension", BYTES("5;a\rb\r\nhello\r\n" END), "400" },
    { "H-13 NUL in an extension", BYTES("5;a\0\r\nhello\r\n" END), "400" },

    { "H-14 size 0x5", BYTES("0x5\r\nhello\r\n" END), "400" },
    { "H-14 size +5", BYTES("+5\r\nhello\r\n" END), "400" },
    { "H-14 size -0", BYTES("-0\r\n\r\n"), "400" },
    { "H-14 size -5", BYTES("-5\r\nhello\r\n" END), "400" },
    { "H-14 size 5 xyz", BYTES("5 xyz\r\nhello\r\n" END), "400" },
    { "H-14 size before white space", BYTES("5 \r\nhello\r\n" END), "400" },
    { "H-14 size before white space and extension", BYTES("5 ;a\r\nhello\r\n" END), "400" },
    { "H-14 size after white space", BYTES(" 5\r\nhello\r\n" END), "400" },
    { "H-14 size 5 NUL zz", BYTES("5\0zz\r\nhello\r\n" END), "400" },
    { "H-14 size 1_0", BYTES("1_0\r\nhello\r\n" END), "400" },
    { "H-14 size g", BYTES("g\r\nhello\r\n" END), "400" },
    { "H-14 no size", BYTES(";a=b\r\n" END), "400" },

    { "H-15 data longer than its size", BYTES("5\r\nhello!!\r\n" END), "400" },
    { "H-15 no line end behind the data", BYTES("5\r\nhello" END), "400" },
    { "H-15 bare LF behind the data", BYTES("5\r\nhello\n" END), "400" },
    { "H-15 bare CR behind the data", BYTES("5\r\nhello\r" END), "400" },
    { "H-16 an empty line before a size", BYTES("\r\n5\r\nhello\r\n" END), "400" },
    { "H-16 an empty line between chunks", BYTES("5\r\nhello\r\n\r\n" END), "400" },
    { "H-16 bare LF behind a size", BYTES("5\nhello\r\n" END), "400" },
    { "H-16 bare CR behind a size", BYTES("5\rhello\r\n" END), "400" },
    { "H-16 bare LF behind the last size", BYTES("0\n\r\n"), "400" },
    { "H-16 bare LF as the last line", BYTES("0\r\n\n"), "400" },
    { "H-16 the last line is CR CR LF", BYTES("0\r\n\r\r\n"), "400" },

    { "H-17 R-15 trailers are dropped", BYTES("5\r\nhello\r\n0\r\nContent-Length: 99\r\nHost: b\r\n\r\nX"),
      "done hello left=1" },
    { "H-17 a trailer without value", BYTES("0\r\nX:\r\n\r\n"), "done  left=0" },
    { "H-17 a trailer without colon", BYTES("0\r\nX\r\n\r\n"), "400" },
    { "H-17 a trailer without name", BYTES("0\r\n: x\r\n\r\n"), "400" },
    { "H-17 a trailer with space before the colon", BYTES("0\r\nX : y\r\n\r\n"), "400" },
    { "H-17 a folded trailer", BYTES("0\r\nX: y\r\n z\r\n\r\n"), "400" },
    { "H-17 a trailer that ends with bare LF", BYTES("0\r\nX: y\n\r\n"), "400" },
    { "H-17 a trailer with NUL", BYTES("0\r\nX: \0\r\n\r\n"), "400" },
    { "H-17 a request line instead of a trailer", BYTES("0\r\nGET / HTTP/1.1\r\n\r\n"), "400" },

    { "R-26 a chunk above the cap", BYTES("65\r\n"), "413" },
    { "R-26 two chunks above the cap",
      BYTES("60\r\n012345678901234567890123456789012345678901234567890123456789"
            "012345678901234567890123456789012345\r\n5\r\n"),
      "413" },
    { "R-26 a size of 63 bits", BYTES("7fffffffffffffff\r\n"), "413" },
    { "R-26 a size of 64 bits", BYTES("ffffffffffffffff\r\n"), "413" },
    { "R-26 a second size that would wrap the sum", BYTES("5\r\nhello\r\nfffffffffffffffb\r\n"), "413" },
    { "R-26 a size that would wrap 64 bits", BYTES("10000000000000005\r\nhello\r\n" END), "400" },
    { "R-26 a size of too many zeros", BYTES("00000000000000005\r\nhello\r\n" END), "400" },
};

struct run {
    struct http1_chunks chunks;
    char body[BODY_BYTES_MAX];
    size_t body_bytes, taken;
    enum http1_status status;
    enum finish why;
};

/* Give PIECE to the decoder until it wants no more of it. */
static void feed(struct run *run, const char *piece, size_t byte_count)
{
    size_t taken = 0, taken_now;
    char *copy = malloc(byte_count + (byte_count == 0));
    assert_non_null(copy);
    memcpy(copy, piece, byte_count);
    do {
        struct slice body;
        run->status = http1_chunk(&run->chunks, copy + taken, byte_count - taken, BODY_BYTES_MAX, &taken_now,
                                  &body, &run->why);
        assert_true(taken_now <= byte_count - taken);
        assert_true(run->body_bytes + body.byte_count <= sizeof run->body);
        memcpy(run->body + run->body_bytes, body.at, body.byte_count);
        run->body_bytes += body.byte_count;
        taken += taken_now;
    } while (run->status == HTTP1_MORE && taken_now > 0);
    run->taken += taken;
    free(copy);
}

static void check_result(const struct run *run, const struct row *row)
{
    char words[WORDS_SIZE] = "more";
    if (run->status == HTTP1_REFUSED)
        sprintf(words, "%d", finish_rows[run->why].status);
    else if (run->status == HTTP1_DONE)
        sprintf(words, "done %.*s left=%zu", (int)run->body_bytes, run->body, row->byte_count - run->taken);
    assert_string_equal(words, row->expected);
    if (run->status == HTTP1_DONE)
        assert_int_equal(run->chunks.body_bytes, run->body_bytes);
}

static void check_cut_at(const struct row *row, size_t cut)
{
    struct run run = { .status = HTTP1_MORE };
    feed(&run, row->bytes, cut);
    if (run.status == HTTP1_MORE)
        feed(&run, row->bytes + cut, row->byte_count - cut);
    check_result(&run, row);
}

static void check_row(void **state)
{
    const struct row *row = *state;
    struct run run = { .status = HTTP1_MORE };
    for (size_t cut = 0; cut <= row->byte_count; cut++)
        check_cut_at(row, cut);
    for (size_t i = 0; i < row->byte_count && run.status == HTTP1_MORE; i++)
        feed(&run, row->bytes + i, 1);
    check_result(&run, row);
}

/* PREFIX, FILL_COUNT times FILL, SUFFIX in one piece; the status of the refusal, 0: done, -1: more. */
static int status_of_filled(const char *prefix, size_t fill_count, const char *fill, const char *suffix)
{
    static char bytes[20000];
    struct run run = { .status = HTTP1_MORE };
    size_t used = (size_t)sprintf(bytes, "%s", prefix);
    for (size_t i = 0; i < fill_count; i++)
        used += (size_t)sprintf(bytes + used, "%s", fill);
    used += (size_t)sprintf(bytes + used, "%s", suffix);
    feed(&run, bytes, used);
    return run.status == HTTP1_REFUSED ? finish_rows[run.why].status : run.status == HTTP1_DONE ? 0 : -1;
}

static void H_13_H_41_a_size_line_of_the_limit_is_read_and_one_byte_more_is_400(void **state)
{
    size_t fill_count = HTTP1_CHUNK_LINE_BYTES_MAX - strlen("0;") - strlen("\r\n");
    (void)state;
    assert_int_equal(status_of_filled("0;", fill_count, "a", "\r\n\r\n"), 0);
    assert_int_equal(status_of_filled("0;", fill_count + 1, "a", "\r\n\r\n"), 400);
    assert_int_equal(status_of_filled("5\r\nhello\r\n0;", fill_count, "a", "\r\n\r\n"), 0);
    assert_int_equal(status_of_filled("0;", fill_count + 3, "a", ""), 400);
}

static void H_17_H_41_trailers_of_the_limit_are_read_and_one_byte_more_is_431(void **state)
{
    size_t fill_count = HTTP1_TRAILER_BYTES_MAX - strlen("X:") - strlen("\r\n\r\n");
    (void)state;
    assert_int_equal(status_of_filled("0\r\nX:", fill_count, "a", "\r\n\r\n"), 0);
    assert_int_equal(status_of_filled("0\r\nX:", fill_count + 1, "a", "\r\n\r\n"), 431);
    assert_int_equal(status_of_filled("0\r\n", HTTP1_TRAILER_BYTES_MAX / 4, "X:\r\n", ""), -1);
    assert_int_equal(status_of_filled("0\r\n", HTTP1_TRAILER_BYTES_MAX / 4, "X:\r\n", "X"), 431);
}

static void R_26_a_body_of_the_cap_is_read_and_one_byte_more_is_413(void **state)
{
    (void)state;
    assert_int_equal(status_of_filled("", BODY_BYTES_MAX, "1\r\nx\r\n", END), 0);
    assert_int_equal(status_of_filled("", BODY_BYTES_MAX, "1\r\nx\r\n", "1\r\n"), 413);
}

static void a_whole_body_takes_nothing_more(void **state)
{
    struct run run = { .status = HTTP1_MORE };
    (void)state;
    feed(&run, BYTES(END));
    assert_int_equal(run.status, HTTP1_DONE);
    feed(&run, BYTES("5\r\nhello\r\n"));
    assert_int_equal(run.status, HTTP1_DONE);
    assert_int_equal(run.taken, sizeof END - 1);
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct CMUnitTest plain_tests[] = {
    cmocka_unit_test(H_13_H_41_a_size_line_of_the_limit_is_read_and_one_byte_more_is_400),
    cmocka_unit_test(H_17_H_41_trailers_of_the_limit_are_read_and_one_byte_more_is_431),
    cmocka_unit_test(R_26_a_body_of_the_cap_is_read_and_one_byte_more_is_413),
    cmocka_unit_test(a_whole_body_takes_nothing_more),
};

static struct CMUnitTest tests[COUNT(rows) + COUNT(plain_tests)];

int main(void)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        tests[i].name = rows[i].name;
        tests[i].test_func = check_row;
        tests[i].initial_state = (void *)(uintptr_t)&rows[i];
    }
    memcpy(tests + COUNT(rows), plain_tests, sizeof plain_tests);
    return cmocka_run_group_tests_name("http1_chunk", tests, NULL, NULL);
}
