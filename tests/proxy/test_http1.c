/*
 * test_http1.c - heads in, verdicts out; every row is a test of its own, named by what it shows.
 *
 * A row is read in one piece, cut at every byte, and with another request behind it: the verdict must be the same.
 * What is expected stands in words: the status of a refusal, "more", or what was understood of the head.
 */
#include "http1.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { HEAD_BYTES_MAX = 16384, BODY_BYTES_MAX = 1000000, WORDS_SIZE = 400 };

struct row {
    const char *name;
    const char *bytes;
    size_t byte_count;
    const char *expected;
};

#define BYTES(text)   text, sizeof text - 1
#define POST(fields)  BYTES("POST /p HTTP/1.1\r\nHost: a\r\n" fields "\r\n")
#define LINE(line)    BYTES(line "\r\nHost: a\r\n\r\n")
#define LENGTH(value) POST("Content-Length:" value "\r\n")
#define CODING(value) POST("Transfer-Encoding:" value "\r\n")
#define HOST(value)   BYTES("GET / HTTP/1.1\r\nHost:" value "\r\n\r\n")

static const struct row request_rows[] = {
    /* controls: what connectors send */
    { "a plain GET is accepted", LINE("GET /p?q=1 HTTP/1.1"), "GET /p?q=1 path=/p query=q=1 host=a none" },
    { "a POST with a length is accepted", LENGTH(" 35"), "POST /p path=/p query= host=a length=35" },
    { "length 0 is a length", LENGTH(" 0"), "POST /p path=/p query= host=a length=0" },
    { "a POST without framing has no body", POST(""), "POST /p path=/p query= host=a none" },
    { "all methods: HEAD", LINE("HEAD / HTTP/1.1"), "HEAD / path=/ query= host=a none" },
    { "all methods: PUT", LINE("PUT / HTTP/1.1"), "PUT / path=/ query= host=a none" },
    { "all methods: DELETE", LINE("DELETE / HTTP/1.1"), "DELETE / path=/ query= host=a none" },
    { "all methods: PATCH", LINE("PATCH / HTTP/1.1"), "PATCH / path=/ query= host=a none" },
    { "names with underscores and in any case are fine", POST("__topic: t\r\nCONTENT-length: 3\r\n"),
      "POST /p path=/p query= host=a length=3" },
    { "obs-text in a value is allowed", POST("X: \x80\xff\r\n"), "POST /p path=/p query= host=a none" },
    { "an empty value is allowed", POST("X:\r\nY: \t \r\n"), "POST /p path=/p query= host=a none" },
    { "without the last line end it is not whole", BYTES("GET / HTTP/1.1\r\nHost: a\r\n"), "more" },
    { "nothing is not whole", BYTES(""), "more" },

    { "H-01 the same Content-Length twice", POST("Content-Length: 5\r\nContent-Length: 5\r\n"), "400" },
    { "H-01 the same twice in other letters", POST("content-length: 5\r\nContent-Length: 5\r\n"), "400" },
    { "H-02 Content-Length 0 and 35", POST("Content-Length: 0\r\nContent-Length: 35\r\n"), "400" },
    { "H-02 Content-Length 35 and 0", POST("Content-Length: 35\r\nX: y\r\nContent-Length: 0\r\n"), "400" },
    { "H-03 space before the colon of Content-Length", POST("Content-Length : 35\r\n"), "400" },
    { "H-03 tab before the colon", POST("Content-Length\t: 35\r\n"), "400" },
    { "H-04 space before the colon of Transfer-Encoding", POST("Transfer-Encoding : chunked\r\n"), "400" },
    { "H-05 length with plus", LENGTH(" +5"), "400" },
    { "H-05 length minus zero", LENGTH(" -0"), "400" },
    { "H-05 length with leading zero", LENGTH(" 05"), "400" },
    { "H-05 length 00", LENGTH(" 00"), "400" },
    { "H-05 length after a vertical tab", LENGTH(" \v5"), "400" },
    { "H-05 length with NUL", LENGTH(" 5\0 9"), "400" },
    { "H-05 length with inner space", LENGTH(" 5 9"), "400" },
    { "H-05 length after a tab is legal", LENGTH("\t5"), "POST /p path=/p query= host=a length=5" },
    { "H-05 length between white space is legal", LENGTH(" \t 5\t "),
      "POST /p path=/p query= host=a length=5" },
    { "H-06 length list", LENGTH(" 5, 5"), "400" },
    { "H-06 negative length", LENGTH(" -5"), "400" },
    { "H-06 hexadecimal length", LENGTH(" 0x5"), "400" },
    { "H-06 empty length", LENGTH(" "), "400" },
    { "H-06 length with a fraction", LENGTH(" 5.0"), "400" },
    { "H-06 length with an exponent", LENGTH(" 1e3"), "400" },
    { "H-07 length 2^64+5", LENGTH(" 18446744073709551621"), "413" },
    { "H-07 length 2^64-1", LENGTH(" 18446744073709551615"), "413" },
    { "H-07 length of 60 digits", LENGTH(" 184467440737095516211844674407370955162118446744073709551621"),
      "413" },
    { "H-07 digits above the cap and then none", LENGTH(" 99999999999999999999999x"), "400" },
    { "H-07 one above the cap", LENGTH(" 1000001"), "413" },
    { "H-07 the cap itself", LENGTH(" 1000000"), "POST /p path=/p query= host=a length=1000000" },
    { "H-08 R-18 length and chunked", POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "400" },
    { "H-08 R-18 chunked and length", POST("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"), "400" },
    { "H-09 coding gzip", CODING(" gzip"), "400" },
    { "H-09 coding identity", CODING(" identity"), "400" },
    { "H-09 chunked, gzip", CODING(" chunked, gzip"), "400" },
    { "H-10 coding xchunked", CODING(" xchunked"), "400" },
    { "H-10 coding quoted", CODING(" \"chunked\""), "400" },
    { "H-10 coding after a vertical tab", CODING(" \vchunked"), "400" },
    { "H-10 coding before a vertical tab", CODING(" chunked\v"), "400" },
    { "H-10 coding after a form feed", CODING(" \fchunked"), "400" },
    { "H-10 coding with NUL", CODING(" chunked\0"), "400" },
    { "H-10 coding with parameter", CODING(" chunked;a=b"), "400" },
    { "H-10 coding empty", CODING(" "), "400" },
    { "H-10 coding after a comma", CODING(" , chunked"), "400" },
    { "H-10 coding before a comma", CODING(" chunked,"), "400" },
    { "H-10 chunked twice", CODING(" chunked, chunked"), "400" },
    { "H-10 two Transfer-Encoding fields", POST("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
      "400" },
    { "H-10 chunked is accepted", CODING(" chunked"), "POST /p path=/p query= host=a chunked" },
    { "H-10 chunked in other letters is accepted", CODING("\tChunkeD "),
      "POST /p path=/p query= host=a chunked" },
    { "H-11 gzip, chunked", CODING(" gzip, chunked"), "501" },
    { "H-11 gzip,chunked with a tab", CODING(" gzip\t,\tchunked"), "501" },
    { "H-12 chunked on HTTP/1.0", BYTES("POST /p HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
      "400" },
    { "H-18 bare LF everywhere", BYTES("GET / HTTP/1.1\nHost: a\n\n"), "400" },
    { "H-18 bare LF after the request line", BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), "400" },
    { "H-18 bare LF after a field", BYTES("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"), "400" },
    { "H-18 bare LF as the empty line", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\n"), "400" },
    { "H-18 bare LF before the request line", BYTES("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), "400" },
    { "H-19 bare CR in a value", POST("X: a\rb\r\n"), "400" },
    { "H-19 bare CR in a name", POST("X\rY: a\r\n"), "400" },
    { "H-19 CR CR LF", POST("X: a\r\r\n"), "400" },
    { "H-19 CR alone ends the request line", BYTES("GET / HTTP/1.1\rHost: a\r\r"), "400" },
    { "H-19 the empty line is CR CR LF", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n"), "400" },
    { "H-20 a folded value", POST("X: a\r\n b\r\n"), "400" },
    { "H-20 a folded Content-Length", POST("Content-Length:\r\n 5\r\n"), "400" },
    { "H-20 a folded Transfer-Encoding", POST("Transfer-Encoding:\r\n\tchunked\r\n"), "400" },
    { "H-20 white space before the first field", BYTES("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), "400" },
    { "H-20 a line of white space", POST(" \r\n"), "400" },
    { "H-21 a line that starts with NUL", POST("\0X: a\r\n"), "400" },
    { "H-21 NUL instead of the empty line", BYTES("GET / HTTP/1.1\r\nHost: a\r\n\0\r\n\r\n"), "400" },
    { "H-22 NUL in a value", POST("X: a\0b\r\n"), "400" },
    { "H-22 NUL in the target", LINE("GET /\0 HTTP/1.1"), "400" },
    { "H-22 NUL in the method", LINE("GE\0T / HTTP/1.1"), "400" },
    { "H-22 DEL in a value", POST("X: a\x7f\r\n"), "400" },
    { "H-22 a control byte in a value", POST("X: a\x01\r\n"), "400" },
    { "H-23 no name", POST(": x\r\n"), "400" },
    { "H-23 a bracket in a name", POST("Fo(o: x\r\n"), "400" },
    { "H-23 no colon", POST("Foo\r\n"), "400" },
    { "H-23 space in a name", POST("Fo o: x\r\n"), "400" },
    { "H-23 obs-text in a name", POST("F\xf6o: x\r\n"), "400" },
    { "H-24 R-23 1.1 without Host", BYTES("GET / HTTP/1.1\r\nX: a\r\n\r\n"), "400" },
    { "H-24 R-23 1.1 without any field", BYTES("GET / HTTP/1.1\r\n\r\n"), "400" },
    { "H-24 R-23 two Hosts", POST("Host: b\r\n"), "400" },
    { "H-24 R-23 twice the same Host", POST("host: a\r\n"), "400" },
    { "H-24 R-23 two Hosts on 1.0", BYTES("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), "400" },
    { "H-24 R-23 Host with user", HOST(" u@a"), "400" },
    { "H-24 R-23 Host with path", HOST(" a/b"), "400" },
    { "H-24 R-23 Host empty", HOST(" "), "400" },
    { "H-24 R-23 Host with space", HOST(" a b"), "400" },
    { "H-24 R-23 Host list", HOST(" a,b"), "400" },
    { "H-24 R-23 Host with a bad port", HOST(" a:80x"), "400" },
    { "H-24 1.0 without Host", BYTES("GET / HTTP/1.0\r\n\r\n"), "GET / path=/ query= host= none close" },
    { "H-24 Host with port", HOST(" db_1.example:8080"), "GET / path=/ query= host=db_1.example:8080 none" },
    { "H-24 Host in brackets", HOST(" [::1]:80"), "GET / path=/ query= host=[::1]:80 none" },
    { "H-25 HEAD with a length", BYTES("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"), "400" },
    { "H-25 HEAD with one byte", BYTES("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"), "400" },
    { "H-25 HEAD with chunks", BYTES("HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
      "400" },
    { "H-25 HEAD with length 0", BYTES("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
      "HEAD / path=/ query= host=a length=0" },
    { "H-26 R-27 TRACE", LINE("TRACE / HTTP/1.1"), "405" },
    { "H-26 R-27 CONNECT", LINE("CONNECT a:443 HTTP/1.1"), "405" },
    { "H-26 FOO", LINE("FOO / HTTP/1.1"), "501" },
    { "H-26 get", LINE("get / HTTP/1.1"), "501" },
    { "H-26 GETX", LINE("GETX / HTTP/1.1"), "501" },
    { "H-26 PUTPUT of 33 letters", LINE("PUTPUTPUTPUTPUTPUTPUTPUTPUTPUTPUT / HTTP/1.1"), "501" },
    { "H-27 GET with a body", BYTES("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"),
      "GET / path=/ query= host=a length=5" },
    { "H-27 DELETE with chunks", BYTES("DELETE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
      "DELETE / path=/ query= host=a chunked" },
    { "H-28 two slashes are a path", LINE("GET //evil/p HTTP/1.1"),
      "GET //evil/p path=//evil/p query= host=a none" },
    { "H-28 R-24 absolute form", LINE("GET http://evil:81/p?q HTTP/1.1"),
      "GET /p?q path=/p query=q host=evil:81 none" },
    { "H-28 R-24 absolute form keeps dots", LINE("GET HTTP://b/../%2e//x? HTTP/1.1"),
      "GET /../%2e//x? path=/../%2e//x query= host=b none" },
    { "H-28 R-24 absolute form without path", LINE("GET http://b HTTP/1.1"),
      "GET / path=/ query= host=b none" },
    { "H-28 absolute form without Host", BYTES("GET http://b/ HTTP/1.1\r\n\r\n"), "400" },
    { "H-28 absolute form on 1.0", BYTES("GET http://b/ HTTP/1.0\r\n\r\n"),
      "GET / path=/ query= host=b none close" },
    { "H-28 absolute form with user", LINE("GET http://u@b/ HTTP/1.1"), "400" },
    { "H-28 absolute form without authority", LINE("GET http:///p HTTP/1.1"), "400" },
    { "H-28 absolute form with only a query", LINE("GET http://b?q HTTP/1.1"), "400" },
    { "H-28 absolute form of another scheme", LINE("GET ftp://b/ HTTP/1.1"), "400" },
    { "H-28 absolute form of a scheme of other length", LINE("GET ws://host/ HTTP/1.1"), "400" },
    { "H-28 absolute form over TLS", LINE("GET https://host/ HTTP/1.1"), "400" },
    { "H-28 absolute form of four letters", LINE("GET file://host/ HTTP/1.1"), "400" },
    { "H-28 absolute form with bad port", LINE("GET http://b:x/ HTTP/1.1"), "400" },
    { "H-28 absolute form cut in the scheme", LINE("GET http:/ HTTP/1.1"), "400" },
    { "H-28 asterisk for OPTIONS", LINE("OPTIONS * HTTP/1.1"), "OPTIONS * path=* query= host=a none" },
    { "H-28 asterisk for GET", LINE("GET * HTTP/1.1"), "400" },
    { "H-28 a relative target", LINE("GET p HTTP/1.1"), "400" },
    { "H-29 two spaces before the target", LINE("GET  / HTTP/1.1"), "400" },
    { "H-29 space in the target", LINE("GET /a b HTTP/1.1"), "400" },
    { "H-29 tab in the target", LINE("GET /a\tb HTTP/1.1"), "400" },
    { "H-29 tab instead of space", LINE("GET\t/ HTTP/1.1"), "400" },
    { "H-29 DEL in the target", LINE("GET /\x7f HTTP/1.1"), "400" },
    { "H-29 obs-text in the target", LINE("GET /\xc3\xa9 HTTP/1.1"), "400" },
    { "H-29 overlong UTF-8 in the target", LINE("GET /\xc0\xaf HTTP/1.1"), "400" },
    { "H-29 a fragment in the target", LINE("GET /a#b HTTP/1.1"), "400" },
    { "R-25 R-29 odd paths stay as they are", LINE("GET /a/..//%2e%00;x|{}\"<>? HTTP/1.1"),
      "GET /a/..//%2e%00;x|{}\"<>? path=/a/..//%2e%00;x|{}\"<> query= host=a none" },
    { "H-30 version -5.1", LINE("GET / HTTP/-5.1"), "400" },
    { "H-30 version 1.01", LINE("GET / HTTP/1.01"), "400" },
    { "H-30 version 01.1", LINE("GET / HTTP/01.1"), "400" },
    { "H-30 version 1", LINE("GET / HTTP/1"), "400" },
    { "H-30 version 1.:", LINE("GET / HTTP/1.:"), "400" },
    { "H-30 version 1./", LINE("GET / HTTP/1./"), "400" },
    { "H-30 version in small letters", LINE("GET / http/1.1"), "400" },
    { "H-30 version before space", LINE("GET / HTTP/1.1 "), "400" },
    { "H-30 version 1.9", LINE("GET / HTTP/1.9"), "505" },
    { "H-30 version 0.9", LINE("GET / HTTP/0.9"), "505" },
    { "H-30 version 2.0", LINE("GET / HTTP/2.0"), "505" },
    { "H-30 no version", LINE("GET /"), "400" },
    { "H-31 one empty line before", BYTES("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
      "GET / path=/ query= host=a none" },
    { "H-31 two empty lines before", BYTES("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), "400" },
    { "H-31 space before the request line", BYTES(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "400" },
    { "H-32 close among others", POST("Connection: close, TE\r\n"),
      "POST /p path=/p query= host=a none close" },
    { "H-32 close in a second line", POST("Connection: TE\r\nConnection: Close\r\n"),
      "POST /p path=/p query= host=a none close" },
    { "H-32 close beats keep-alive", POST("Connection: close, keep-alive\r\n"),
      "POST /p path=/p query= host=a none close" },
    { "H-32 closed is no close", POST("Connection: closed\r\n"), "POST /p path=/p query= host=a none" },
    { "H-32 R-29 1.0 keep-alive", BYTES("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"),
      "GET / path=/ query= host= none" },
    { "R-03 Connection lists Content-Length", POST("Connection: X, content-length\r\n"), "400" },
    { "R-03 Connection lists Host", POST("Connection: HOST\r\n"), "400" },
    { "R-03 Connection lists another", POST("Connection: X-Host\r\n"), "POST /p path=/p query= host=a none" },
    { "H-34 R-11 100-continue", POST("Content-Length: 5\r\nExpect: 100-Continue\r\n"),
      "POST /p path=/p query= host=a length=5 continue" },
    { "H-34 100-continue with chunks", POST("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"),
      "POST /p path=/p query= host=a chunked continue" },
    { "H-34 100-continue with one byte", POST("Expect: 100-continue\r\nContent-Length: 1\r\n"),
      "POST /p path=/p query= host=a length=1 continue" },
    { "H-34 an empty expectation says nothing",
      POST("Expect: ,100-continue,\r\nExpect:\r\nContent-Length: 1\r\n"),
      "POST /p path=/p query= host=a length=1 continue" },
    { "H-34 100-continue without body", POST("Expect: 100-continue\r\n"),
      "POST /p path=/p query= host=a none" },
    { "H-34 R-12 100-continue of a 1.0 client",
      BYTES("POST / HTTP/1.0\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"),
      "POST / path=/ query= host= length=5 close" },
    { "H-35 another expectation", POST("Expect: 200-ok\r\n"), "417" },
    { "H-35 another besides", POST("Expect: 100-continue, x=y\r\n"), "417" },
    { "H-35 another in a second line", POST("Expect: 100-continue\r\nExpect: x\r\n"), "417" },
    { "H-36 the preface of HTTP/2", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "400" },
    { "H-36 the preface of HTTP/2 with a Host", LINE("PRI * HTTP/2.0"), "400" },
    { "H-36 Upgrade: h2c is ignored",
      POST("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
           "AAEAAEAAAAIAAAABAAMAAABk\r\n"),
      "POST /p path=/p query= host=a none" },
    { "H-36 a TLS hello", BYTES("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"), "400" },
    { "H-05 a name that CGI takes for Content-Length", POST("Content_Length: 5\r\n"), "400" },
    { "H-10 a name that CGI takes for Transfer-Encoding", POST("transfer_encoding: chunked\r\n"), "400" },
};

static void put(char words[WORDS_SIZE], const char *label, struct slice text)
{
    size_t used = strlen(words);
    assert_true(used + strlen(label) + text.byte_count + 1 < WORDS_SIZE);
    used += (size_t)sprintf(words + used, "%s", label);
    memcpy(words + used, text.at, text.byte_count);
    words[used + text.byte_count] = '\0';
}

static void describe_head(const struct http1_head *head, char words[WORDS_SIZE])
{
    static const char *const framings[] = {
        [HTTP1_NO_BODY] = " none", [HTTP1_LENGTH] = " length=", [HTTP1_CHUNKED] = " chunked"
    };
    char number[24] = "";
    words[0] = '\0';
    if (head->framing == HTTP1_LENGTH)
        sprintf(number, "%llu", (unsigned long long)head->body_bytes);
    put(words, "", head->method_text);
    put(words, " ", head->target);
    put(words, " path=", head->path);
    put(words, " query=", head->query);
    put(words, " host=", head->host.byte_count > 0 ? head->host : slice_of("", 0));
    put(words, framings[head->framing], slice_of_text(number));
    put(words, head->is_kept_alive ? "" : " close",
        slice_of_text(head->is_continue_expected ? " continue" : ""));
}

static void describe(enum http1_status status, const struct http1_head *head, enum finish why,
                     char words[WORDS_SIZE])
{
    if (status == HTTP1_DONE)
        describe_head(head, words);
    else if (status == HTTP1_REFUSED)
        sprintf(words, "%d", finish_rows[why].status);
    else
        strcpy(words, "more");
}

/* In memory of exactly that size, so that a read past the end does not go unseen. */
static void read_words(const char *bytes, size_t byte_count, char words[WORDS_SIZE])
{
    struct http1_head head;
    enum finish why = FINISH_NONE;
    char *copy = malloc(byte_count + (byte_count == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, byte_count);
    enum http1_status status = http1_head(copy, byte_count, HEAD_BYTES_MAX, BODY_BYTES_MAX, &head, &why);
    describe(status, &head, why, words);
    free(copy);
}

static void check_every_cut(const struct row *row)
{
    char words[WORDS_SIZE];
    for (size_t cut = 0; cut < row->byte_count; cut++) {
        read_words(row->bytes, cut, words);
        if (strcmp(words, "more") != 0)
            assert_string_equal(words, row->expected);
    }
}

static void check_with_bytes_behind(const struct row *row)
{
    static const char behind[] = "\r\nGET /next HTTP/1.1\r\n\r\n";
    char both[2048], words[WORDS_SIZE];
    assert_true(row->byte_count + sizeof behind <= sizeof both);
    memcpy(both, row->bytes, row->byte_count);
    memcpy(both + row->byte_count, behind, sizeof behind);
    read_words(both, row->byte_count + sizeof behind, words);
    assert_string_equal(words, row->expected);
}

static void check_request_row(void **state)
{
    const struct row *row = *state;
    char words[WORDS_SIZE];
    read_words(row->bytes, row->byte_count, words);
    assert_string_equal(words, row->expected);
    check_every_cut(row);
    if (strcmp(row->expected, "more") != 0)
        check_with_bytes_behind(row);
}

#define RESPONSE(fields) BYTES("HTTP/1.1 200 OK\r\n" fields "\r\n")

static const struct row response_rows[] = {
    { "a response without fields is accepted", RESPONSE(""), "200 fields=0" },
    { "a response with a length is accepted", RESPONSE("Content-Length: 5\r\nX: y\r\n"),
      "200 fields=2 length=5" },
    { "a length with zeros in front is a number", RESPONSE("Content-Length: 005\r\n"),
      "200 fields=1 length=5" },
    { "a chunked response is accepted", RESPONSE("transfer-encoding: Chunked\r\n"), "200 fields=1" },
    { "an empty reason is accepted", BYTES("HTTP/1.1 204 \r\n\r\n"), "204 fields=0" },
    { "no reason is accepted", BYTES("HTTP/1.0 503\r\n\r\n"), "503 fields=0" },
    { "a reason in UTF-8 is accepted", BYTES("HTTP/1.1 404 Pas trouv\xc3\xa9\r\n\r\n"), "404 fields=0" },
    { "R-19 two differing lengths", RESPONSE("Content-Length: 5\r\nContent-Length: 6\r\n"), "refused" },
    { "R-19 a list of differing lengths", RESPONSE("Content-Length: 5, 6\r\n"), "refused" },
    { "R-19 twice the same length is no contradiction",
      RESPONSE("Content-Length: 5\r\nContent-Length: 5, 5\r\n"), "200 fields=2 length=5" },
    { "R-19 length and chunked", RESPONSE("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "refused" },
    { "R-19 chunked is not last", RESPONSE("Transfer-Encoding: chunked, gzip\r\n"), "refused" },
    { "R-19 two codings", RESPONSE("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
      "refused" },
    { "C-10 negative length", RESPONSE("Content-Length: -5\r\n"), "refused" },
    { "C-10 empty length", RESPONSE("Content-Length:\r\n"), "refused" },
    { "C-10 length above 64 bits", RESPONSE("Content-Length: 18446744073709551616\r\n"), "refused" },
    { "C-10 the largest length", RESPONSE("Content-Length: 18446744073709551615\r\n"),
      "200 fields=1 length=18446744073709551615" },
    { "C-10 NUL in a field", RESPONSE("X: a\0b\r\n"), "refused" },
    { "C-10 status 9999", BYTES("HTTP/1.1 9999 X\r\n\r\n"), "refused" },
    { "C-10 status 099", BYTES("HTTP/1.1 099 X\r\n\r\n"), "refused" },
    { "C-10 status 600", BYTES("HTTP/1.1 600 X\r\n\r\n"), "refused" },
    { "the last status is accepted", BYTES("HTTP/1.1 599\r\n\r\n"), "599 fields=0" },
    { "the first status is accepted", BYTES("HTTP/1.1 100 Continue\r\n\r\n"), "100 fields=0" },
    { "C-10 no space behind the status", BYTES("HTTP/1.1 200OK\r\n\r\n"), "refused" },
    { "C-10 fields without status line", BYTES("X: y\r\n\r\n"), "refused" },
    { "C-10 HTTP/0.9", BYTES("hello"), "refused" },
    { "C-10 HTTP/2", BYTES("HTTP/2 200\r\n\r\n"), "refused" },
    { "C-51 no empty line", BYTES("HTTP/1.1 200 OK\r\nX: y\r\n"), "refused" },
    { "C-51 cut in a line", BYTES("HTTP/1.1 200 OK\r\nX: y"), "refused" },
    { "C-51 nothing", BYTES(""), "refused" },
    { "bytes behind the empty line", RESPONSE("\r\nX"), "refused" },
    { "H-51 a reason that smuggles a field is that field", BYTES("HTTP/1.1 200 OK\r\nX: y\r\n\r\n"),
      "200 fields=1" },
    { "H-51 a bare CR in the reason", BYTES("HTTP/1.1 200 O\rK\r\n\r\n"), "refused" },
    { "H-51 a bare CR in a value", RESPONSE("X: a\rSet-Cookie: b\r\n"), "refused" },
    { "H-51 a bare LF in a value", RESPONSE("X: a\nSet-Cookie: b\r\n"), "refused" },
    { "H-51 a space in a name", RESPONSE("X y: a\r\n"), "refused" },
    { "a folded response field", RESPONSE("X: a\r\n b\r\n"), "refused" },
};

static void check_response_row(void **state)
{
    const struct row *row = *state;
    struct http1_response response;
    char words[WORDS_SIZE] = "refused";
    char *copy = malloc(row->byte_count + (row->byte_count == 0));
    assert_non_null(copy);
    memcpy(copy, row->bytes, row->byte_count);
    if (http1_response(copy, row->byte_count, &response) == HTTP1_DONE) {
        int used = sprintf(words, "%d fields=%zu", response.status, response.field_count);
        if (response.is_length_known)
            sprintf(words + used, " length=%llu", (unsigned long long)response.length_bytes);
    }
    assert_string_equal(words, row->expected);
    free(copy);
}

/* A head of PREFIX, FILL_COUNT times FILL, and SUFFIX; what it is refused with, 0: not. */
static int status_of_filled(const char *prefix, size_t fill_count, const char *fill, const char *suffix,
                            size_t head_bytes_max)
{
    static char bytes[100000];
    struct http1_head head;
    enum finish why = FINISH_NONE;
    size_t used = (size_t)sprintf(bytes, "%s", prefix);
    for (size_t i = 0; i < fill_count; i++)
        used += (size_t)sprintf(bytes + used, "%s", fill);
    used += (size_t)sprintf(bytes + used, "%s", suffix);
    enum http1_status status = http1_head(bytes, used, head_bytes_max, BODY_BYTES_MAX, &head, &why);
    return status == HTTP1_REFUSED ? finish_rows[why].status : status == HTTP1_DONE ? 0 : -1;
}

static void R_26_a_target_of_8_KiB_is_read_and_one_byte_more_is_414(void **state)
{
    const char *end = " HTTP/1.1\r\nHost: a\r\n\r\n";
    (void)state;
    assert_int_equal(status_of_filled("GET /", HTTP1_TARGET_BYTES_MAX - 1, "a", end, HEAD_BYTES_MAX), 0);
    assert_int_equal(status_of_filled("GET /", HTTP1_TARGET_BYTES_MAX, "a", end, HEAD_BYTES_MAX), 414);
}

static void R_26_a_request_line_without_end_is_refused_while_it_grows(void **state)
{
    (void)state;
    assert_int_equal(status_of_filled("GET /", HTTP1_TARGET_BYTES_MAX - 1, "a", "", HEAD_BYTES_MAX), -1);
    assert_int_equal(status_of_filled("GET /", HTTP1_TARGET_BYTES_MAX, "a", "", HEAD_BYTES_MAX), 414);
    assert_int_equal(status_of_filled("GET /", 996, "a", "", 1000), 431);
    assert_int_equal(status_of_filled("", 32, "A", "", HEAD_BYTES_MAX), -1);
    assert_int_equal(status_of_filled("", 33, "A", "", HEAD_BYTES_MAX), 501);
}

static void R_26_H_40_a_head_of_the_limit_is_read_and_one_byte_more_is_431(void **state)
{
    const char *start = "GET / HTTP/1.1\r\nHost: a\r\nX:";
    size_t fill_count = 1000 - strlen(start) - strlen("\r\n\r\n");
    (void)state;
    assert_int_equal(status_of_filled(start, fill_count, "b", "\r\n\r\n", 1000), 0);
    assert_int_equal(status_of_filled(start, fill_count + 1, "b", "\r\n\r\n", 1000), 431);
    assert_int_equal(status_of_filled(start, fill_count + 4, "b", "", 1000), -1);
    assert_int_equal(status_of_filled(start, fill_count + 5, "b", "", 1000), 431);
}

static void H_43_a_hundred_fields_are_read_and_one_more_is_431(void **state)
{
    const char *start = "GET / HTTP/1.1\r\nHost: a\r\n";
    (void)state;
    assert_int_equal(status_of_filled(start, HTTP1_FIELDS_MAX - 1, "X:\r\n", "\r\n", HEAD_BYTES_MAX), 0);
    assert_int_equal(status_of_filled(start, HTTP1_FIELDS_MAX, "X:\r\n", "\r\n", HEAD_BYTES_MAX), 431);
}

static void a_response_of_a_hundred_fields_is_read_and_one_more_is_refused(void **state)
{
    static char bytes[2000];
    struct http1_response response;
    size_t used = (size_t)sprintf(bytes, "HTTP/1.1 200 OK\r\n");
    (void)state;
    for (size_t i = 0; i < HTTP1_FIELDS_MAX; i++)
        used += (size_t)sprintf(bytes + used, "X:\r\n");
    strcpy(bytes + used, "\r\nX:\r\n\r\n");
    assert_int_equal(http1_response(bytes, used + 2, &response), HTTP1_DONE);
    assert_int_equal(response.field_count, HTTP1_FIELDS_MAX);
    memcpy(bytes + used, "X:\r\n\r\n", 6);
    assert_int_equal(http1_response(bytes, used + 6, &response), HTTP1_REFUSED);
}

static void R_08_fields_keep_order_case_and_bytes(void **state)
{
    static const char bytes[] = "\r\nPOST /p HTTP/1.1\r\nhOST: a\r\nX-b:\t \x80,  b \t\r\nx-B:\r\n\r\nbody";
    struct http1_head head;
    enum finish why;
    (void)state;
    assert_int_equal(http1_head(bytes, sizeof bytes - 1, 1000, 0, &head, &why), HTTP1_DONE);
    assert_int_equal(head.byte_count, sizeof bytes - 1 - 4);
    assert_int_equal(head.field_count, 3);
    assert_true(slice_equals_text(head.fields[0].name, "hOST"));
    assert_true(slice_equals_text(head.fields[1].name, "X-b"));
    assert_true(slice_equals_text(head.fields[1].value, "\x80,  b"));
    assert_true(slice_equals_text(head.fields[2].name, "x-B"));
    assert_int_equal(head.fields[2].value.byte_count, 0);
    assert_int_equal(head.method, HTTP1_POST);
    assert_int_equal(head.version_minor, 1);
}

static void a_refused_or_unfinished_head_leaves_the_result_untouched(void **state)
{
    struct http1_head head, before;
    enum finish why;
    (void)state;
    memset(&head, 0xa5, sizeof head);
    memcpy(&before, &head, sizeof head);
    assert_int_equal(http1_head(POST("Content-Length: x\r\n"), 1000, 0, &head, &why), HTTP1_REFUSED);
    assert_int_equal(http1_head(BYTES("GET / HTTP/1.1\r\nHost"), 1000, 0, &head, &why), HTTP1_MORE);
    assert_memory_equal(&head, &before, sizeof head);
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct CMUnitTest plain_tests[] = {
    cmocka_unit_test(R_26_a_target_of_8_KiB_is_read_and_one_byte_more_is_414),
    cmocka_unit_test(R_26_a_request_line_without_end_is_refused_while_it_grows),
    cmocka_unit_test(R_26_H_40_a_head_of_the_limit_is_read_and_one_byte_more_is_431),
    cmocka_unit_test(H_43_a_hundred_fields_are_read_and_one_more_is_431),
    cmocka_unit_test(a_response_of_a_hundred_fields_is_read_and_one_more_is_refused),
    cmocka_unit_test(R_08_fields_keep_order_case_and_bytes),
    cmocka_unit_test(a_refused_or_unfinished_head_leaves_the_result_untouched),
};

static struct CMUnitTest tests[COUNT(request_rows) + COUNT(response_rows) + COUNT(plain_tests)];

static size_t add_rows(size_t used, const struct row rows[], size_t row_count, CMUnitTestFunction check)
{
    for (size_t i = 0; i < row_count; i++, used++) {
        tests[used].name = rows[i].name;
        tests[used].test_func = check;
        tests[used].initial_state = (void *)(uintptr_t)&rows[i];
    }
    return used;
}

int main(void)
{
    size_t used = add_rows(0, request_rows, COUNT(request_rows), check_request_row);
    used = add_rows(used, response_rows, COUNT(response_rows), check_response_row);
    memcpy(tests + used, plain_tests, sizeof plain_tests);
    return cmocka_run_group_tests_name("http1", tests, NULL, NULL);
}
