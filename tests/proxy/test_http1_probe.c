/*
 * test_http1_probe.c - the case names of the public Http11Probe list, with bytes of our own.
 *
 * Each case is a whole connection: requests are read one after the other as conn.c would, until one is refused, the
 * bytes end, or Connection says so.  Then the statuses must be one of those that the list accepts, narrowed to ours:
 *   "400"      refused with it, nothing after it is read
 *   "200 400"  the first is handed on, the second refused
 *   "wait"     not whole: the deadline ends it
 */
#include "http1.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

enum { HEAD_BYTES_MAX = 16384, BODY_BYTES_MAX = 1000000, WORDS_SIZE = 100 };

struct row {
    const char *name;
    const char *bytes;
    size_t byte_count;
    const char *accepted; /* alternatives, separated by '|' */
};

#define BYTES(text)         text, sizeof text - 1
#define H                   "Host: a\r\n"
#define GET(fields)         "GET / HTTP/1.1\r\n" H fields "\r\n"
#define POST(fields, body)  BYTES("POST / HTTP/1.1\r\n" H fields "\r\n" body)
#define LENGTH(value, body) POST("Content-Length:" value "\r\n", body)
#define CODING(value)       POST("Transfer-Encoding:" value "\r\n", "5\r\nhello\r\n0\r\n\r\n")
#define CODED(value)        POST("Content-Length: 5\r\nTransfer-Encoding:" value "\r\n", "hello")
#define CHUNKS(body)        POST("Transfer-Encoding: chunked\r\n", body)
#define LINE(line)          BYTES(line "\r\n" H "\r\n")
#define FIELD(line)         BYTES("GET / HTTP/1.1\r\n" H line "\r\n\r\n")
#define HOST(value)         BYTES("GET / HTTP/1.1\r\nHost:" value "\r\n\r\n")

static const struct row rows[] = {
    { "COMP-BASELINE", BYTES(GET("")), "200" },
    { "RFC9112-2.2-BARE-LF-REQUEST-LINE", BYTES("GET / HTTP/1.1\nHost: a\r\n\r\n"), "400" },
    { "RFC9112-2.2-BARE-LF-HEADER", BYTES("GET / HTTP/1.1\r\nHost: a\n\r\n"), "400" },
    { "RFC9112-3-CR-ONLY-LINE-ENDING", BYTES("GET / HTTP/1.1\rHost: a\r\r"), "400" },
    { "RFC9112-5.1-OBS-FOLD", FIELD("X-A: b\r\n c"), "400" },
    { "RFC9110-5.6.2-SP-BEFORE-COLON", FIELD("X-A : b"), "400" },
    { "RFC9112-3-MULTI-SP-REQUEST-LINE", LINE("GET  /  HTTP/1.1"), "400" },
    { "RFC9112-7.1-MISSING-HOST", BYTES("GET / HTTP/1.1\r\n\r\n"), "400" },
    { "RFC9112-2.3-INVALID-VERSION", LINE("GET / HTTP/9.9"), "400|505" },
    { "RFC9112-5-EMPTY-HEADER-NAME", FIELD(": b"), "400" },
    { "RFC9112-3-MISSING-TARGET", LINE("GET HTTP/1.1"), "400" },
    { "RFC9112-3.2-FRAGMENT-IN-TARGET", LINE("GET /a#b HTTP/1.1"), "400" },
    { "RFC9112-2.3-HTTP09-REQUEST", BYTES("GET /\r\n"), "400" },
    { "RFC9112-5-INVALID-HEADER-NAME", FIELD("Bad[A]: b"), "400" },
    { "RFC9112-5-HEADER-NO-COLON", FIELD("NoColon"), "400" },
    { "RFC9110-5.4-DUPLICATE-HOST", FIELD("Host: b"), "400" },
    { "RFC9112-6.1-CL-NON-NUMERIC", LENGTH(" abc", ""), "400" },
    { "RFC9112-6.1-CL-PLUS-SIGN", LENGTH(" +5", "hello"), "400" },
    { "COMP-DUPLICATE-HOST-SAME", FIELD("Host: a"), "400" },
    { "COMP-WHITESPACE-BEFORE-HEADERS", BYTES("GET / HTTP/1.1\r\n \r\n" H "\r\n"), "400" },
    { "COMP-ASTERISK-WITH-GET", LINE("GET * HTTP/1.1"), "400" },
    { "COMP-OPTIONS-STAR", LINE("OPTIONS * HTTP/1.1"), "200" },
    { "COMP-HOST-WITH-USERINFO", HOST(" u@a"), "400" },
    { "COMP-HOST-WITH-PATH", HOST(" a/b"), "400" },
    { "COMP-HOST-EMPTY-VALUE", HOST(""), "400" },
    { "COMP-VERSION-MISSING-MINOR", LINE("GET / HTTP/1"), "400" },
    { "COMP-VERSION-LEADING-ZEROS", LINE("GET / HTTP/01.01"), "400" },
    { "COMP-VERSION-WHITESPACE", LINE("GET / HTTP/ 1.1"), "400" },
    { "COMP-VERSION-CASE", LINE("GET / hTTP/1.1"), "400" },
    { "COMP-HTTP10-NO-HOST", BYTES("GET / HTTP/1.0\r\n\r\n"), "200" },
    { "COMP-HTTP10-DEFAULT-CLOSE", BYTES("GET / HTTP/1.0\r\n" H "\r\nGET / HTTP/1.0\r\n\r\n"), "200" },
    { "COMP-HTTP12-VERSION", LINE("GET / HTTP/1.2"), "505" },
    { "COMP-CONNECTION-CLOSE", BYTES(GET("Connection: close\r\n") GET("")), "200" },
    { "COMP-LEADING-CRLF", BYTES("\r\n" GET("")), "200" },
    { "COMP-METHOD-CASE", LINE("get / HTTP/1.1"), "400|501" },
    { "COMP-METHOD-CONNECT", LINE("CONNECT a:443 HTTP/1.1"), "405" },
    { "COMP-METHOD-CONNECT-NO-PORT", LINE("CONNECT a HTTP/1.1"), "400|405" },
    { "COMP-CONNECT-EMPTY-PORT", LINE("CONNECT a: HTTP/1.1"), "400|405" },
    { "COMP-CONNECT-ORIGIN-FORM", LINE("CONNECT /p HTTP/1.1"), "400|405" },
    { "COMP-METHOD-TRACE", LINE("TRACE / HTTP/1.1"), "405" },
    { "COMP-TRACE-WITH-BODY", BYTES("TRACE / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), "405" },
    { "COMP-UNKNOWN-METHOD", LINE("FOOBAR / HTTP/1.1"), "501" },
    { "COMP-UNKNOWN-TE-501", CODING(" gzip"), "400|501" },
    { "COMP-REQUEST-LINE-TAB", LINE("GET\t/\tHTTP/1.1"), "400" },
    { "COMP-ABSOLUTE-FORM", LINE("GET http://a/ HTTP/1.1"), "200" },
    { "COMP-EXPECT-UNKNOWN", FIELD("Expect: 999-later"), "417" },
    { "COMP-POST-CL-BODY", LENGTH(" 5", "hello"), "200" },
    { "COMP-POST-CL-ZERO", LENGTH(" 0", ""), "200" },
    { "COMP-POST-NO-CL-NO-TE", POST("", ""), "200" },
    { "COMP-POST-CL-UNDERSEND", LENGTH(" 10", "hello"), "wait" },
    { "COMP-GET-WITH-CL-BODY", BYTES(GET("Content-Length: 5\r\n") "hello"), "200" },
    { "COMP-CHUNKED-BODY", CHUNKS("5\r\nhello\r\n0\r\n\r\n"), "200" },
    { "COMP-CHUNKED-MULTI", CHUNKS("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), "200" },
    { "COMP-CHUNKED-EMPTY", CHUNKS("0\r\n\r\n"), "200" },
    { "COMP-CHUNKED-NO-FINAL", CHUNKS("5\r\nhello\r\n"), "wait" },
    { "COMP-CHUNKED-EXTENSION", CHUNKS("5;a=b\r\nhello\r\n0\r\n\r\n"), "200" },
    { "COMP-CHUNKED-HEX-UPPERCASE", CHUNKS("A\r\nhelloworld\r\n0\r\n\r\n"), "200" },
    { "COMP-CHUNKED-TRAILER-VALID", CHUNKS("5\r\nhello\r\n0\r\nX-A: b\r\n\r\n"), "200" },
    { "COMP-UPGRADE-UNKNOWN", FIELD("Connection: Upgrade\r\nUpgrade: other/1"), "200" },
    { "COMP-UPGRADE-MISSING-CONN", FIELD("Upgrade: websocket"), "200" },
    { "COMP-SPACE-IN-TARGET", LINE("GET /a b HTTP/1.1"), "400" },

    { "SMUG-CL-TE-BOTH", POST("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\nX"), "400" },
    { "SMUG-DUPLICATE-CL", POST("Content-Length: 5\r\nContent-Length: 10\r\n", "helloworld"), "400" },
    { "SMUG-CL-LEADING-ZEROS", LENGTH(" 005", "hello"), "400" },
    { "SMUG-CL-LEADING-ZEROS-OCTAL", LENGTH(" 0200", ""), "400" },
    { "SMUG-CL-DOUBLE-ZERO", LENGTH(" 00", ""), "400" },
    { "SMUG-CL-NEGATIVE", LENGTH(" -1", ""), "400" },
    { "SMUG-CL-NEGATIVE-ZERO", LENGTH(" -0", ""), "400" },
    { "SMUG-CL-UNDERSCORE", LENGTH(" 1_0", "helloworld"), "400" },
    { "SMUG-CL-OCTAL", LENGTH(" 0o5", "hello"), "400" },
    { "SMUG-CL-HEX-PREFIX", LENGTH(" 0x5", "hello"), "400" },
    { "SMUG-CL-INTERNAL-SPACE", LENGTH(" 1 0", "helloworld"), "400" },
    { "SMUG-CL-TRAILING-SPACE", LENGTH(" 5 ", "hello"), "200|400" },
    { "SMUG-CL-EXTRA-LEADING-SP", LENGTH("   5", "hello"), "200|400" },
    { "SMUG-CL-COMMA-DIFFERENT", LENGTH(" 5, 10", "hello"), "400" },
    { "SMUG-CL-COMMA-SAME", LENGTH(" 5, 5", "hello"), "400" },
    { "SMUG-CL-COMMA-TRIPLE", LENGTH(" 5,5,5", "hello"), "400" },
    { "SMUG-CLTE-PIPELINE", POST("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" GET("")),
      "400" },
    { "SMUG-TECL-PIPELINE", POST("Transfer-Encoding: chunked\r\nContent-Length: 30\r\n", "0\r\n\r\n" GET("")),
      "400" },
    { "SMUG-CLTE-CONN-CLOSE",
      POST("Content-Length: 6\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n", "0\r\n\r\nX"), "400" },
    { "SMUG-TE-XCHUNKED", CODED(" xchunked"), "400" },
    { "SMUG-TE-TRAILING-SPACE", CODED(" chunked "), "400" },
    { "SMUG-TE-SP-BEFORE-COLON", POST("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), "400" },
    { "SMUG-TE-CASE-MISMATCH", CODED(" Chunked"), "400" },
    { "SMUG-TE-DOUBLE-CHUNKED", CODING(" chunked, chunked"), "400" },
    { "SMUG-TE-DUPLICATE-HEADERS",
      POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "hello"), "400" },
    { "SMUG-TE-EMPTY-VALUE", CODING(""), "400" },
    { "SMUG-TE-LEADING-COMMA", CODING(" ,chunked"), "400|200" },
    { "SMUG-TE-TRAILING-COMMA", CODING(" chunked,"), "400|200" },
    { "SMUG-TE-NOT-FINAL-CHUNKED", CODING(" chunked, gzip"), "400" },
    { "SMUG-TE-IDENTITY", CODED(" identity"), "400" },
    { "SMUG-TE-HTTP10", BYTES("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400" },
    { "SMUG-TE-VTAB", CODING(" \vchunked"), "400" },
    { "SMUG-TE-FORMFEED", CODING(" \fchunked"), "400" },
    { "SMUG-TE-NULL", CODING(" chunked\0x"), "400" },
    { "SMUG-TE-OBS-FOLD", CODING("\r\n chunked"), "400" },
    { "SMUG-TE-TAB-BEFORE-VALUE", CODING("\tchunked"), "200|400" },
    { "SMUG-CHUNKED-WITH-PARAMS", CODING(" chunked;a=b"), "400" },
    { "SMUG-TRANSFER_ENCODING", POST("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n", "hello"),
      "400|200" },
    { "SMUG-BARE-CR-HEADER-VALUE", POST("Content-Length: 5\r\nX: a\rb\r\n", "hello"), "400" },
    { "SMUG-HEADER-INJECTION", POST("X: a\r\nContent-Length: 5\r\nContent-Length: 0\r\n", "hello"), "400" },
    { "SMUG-CHUNK-BARE-SEMICOLON", CHUNKS("5;\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-HEX-PREFIX", CHUNKS("0x5\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-UNDERSCORE", CHUNKS("1_0\r\nhelloworld......\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-LEADING-SP", CHUNKS(" 5\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-SIZE-PLUS", CHUNKS("+5\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-SIZE-TRAILING-OWS", CHUNKS("5 \r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-NEGATIVE", CHUNKS("-1\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-MISSING-TRAILING-CRLF", CHUNKS("5\r\nhello0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-SPILL", CHUNKS("5\r\nhello!!\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-INVALID-SIZE-DESYNC", CHUNKS("xyz\r\n" GET("")), "400" },
    { "SMUG-CHUNK-BARE-CR-TERM", CHUNKS("5\rhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-LF-TERM", CHUNKS("5\r\nhello\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-LF-TRAILER", CHUNKS("5\r\nhello\r\n0\n\n"), "400" },
    { "SMUG-CHUNK-EXT-LF", CHUNKS("5;a\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-EXT-CR", CHUNKS("5;a\rb\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-EXT-CTRL", CHUNKS("5;a\0b\r\nhello\r\n0\r\n\r\n"), "400" },
    { "SMUG-CHUNK-EXT-INVALID-TOKEN", CHUNKS("5;@a\r\nhello\r\n0\r\n\r\n"), "400|200" },
    { "SMUG-TRAILER-CL", CHUNKS("5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n"), "200" },
    { "SMUG-TRAILER-TE", CHUNKS("5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), "200" },
    { "SMUG-TRAILER-HOST", CHUNKS("5\r\nhello\r\n0\r\nHost: b\r\n\r\n"), "200" },
    { "SMUG-TRAILER-AUTH", CHUNKS("5\r\nhello\r\n0\r\nAuthorization: x\r\n\r\n"), "200" },
    { "SMUG-HEAD-CL-BODY", BYTES("HEAD / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), "400" },
    { "SMUG-OPTIONS-CL-BODY", BYTES("OPTIONS / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), "200" },
    { "SMUG-OPTIONS-CL-BODY-DESYNC",
      BYTES("OPTIONS / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello" GET("")), "200 200" },
    { "SMUG-GET-CL-BODY-DESYNC", BYTES(GET("Content-Length: 5\r\n") "hello" GET("")), "200 200" },
    { "SMUG-GET-CL-PREFIX-DESYNC", BYTES(GET("Content-Length: 3\r\n") "hello" GET("")), "200 501" },
    { "SMUG-CL0-BODY-POISON", LENGTH(" 0", "hello" GET("")), "200 501" },
    { "SMUG-EXPECT-100-CL", POST("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello"), "200" },
    { "SMUG-PIPELINE-SAFE", BYTES(GET("") GET("")), "200 200" },
    { "SMUG-MULTIPLE-HOST-COMMA", HOST(" a, b"), "400" },
    { "SMUG-ABSOLUTE-URI-HOST-MISMATCH", LINE("GET http://b/ HTTP/1.1"), "400|200" },

    { "MAL-BINARY-GARBAGE", BYTES("\xde\xad\xbe\xef\0\x01\x02\r\n\r\n"), "400" },
    { "MAL-EMPTY-REQUEST", BYTES(""), "wait" },
    { "MAL-INCOMPLETE-REQUEST", BYTES("GET / HTTP/1.1\r\nHo"), "wait" },
    { "MAL-H2-PREFACE", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "400" },
    { "MAL-NUL-IN-URL", LINE("GET /\0a HTTP/1.1"), "400" },
    { "MAL-NUL-IN-HEADER-VALUE", FIELD("X: a\0b"), "400" },
    { "MAL-CONTROL-CHARS-HEADER", FIELD("X: a\x08\x1b"), "400" },
    { "MAL-NON-ASCII-HEADER-NAME", FIELD("X\xc3\xa9: a"), "400" },
    { "MAL-NON-ASCII-URL", LINE("GET /\xc3\xa9 HTTP/1.1"), "400" },
    { "MAL-URL-OVERLONG-UTF8", LINE("GET /\xc0\xaf HTTP/1.1"), "400" },
    { "MAL-URL-BACKSLASH", LINE("GET /\\a HTTP/1.1"), "400|200" },
    { "MAL-URL-PERCENT-NULL", LINE("GET /%00 HTTP/1.1"), "400|200" },
    { "MAL-URL-PERCENT-CRLF", LINE("GET /%0d%0aX:y HTTP/1.1"), "400|200" },
    { "MAL-WHITESPACE-ONLY-LINE", BYTES("   \r\n\r\n"), "400" },
    { "MAL-CL-OVERFLOW", LENGTH(" 99999999999999999999", ""), "400|413" },
    { "MAL-CL-EMPTY", LENGTH("", ""), "400" },
    { "MAL-CL-TAB-BEFORE-VALUE", LENGTH("\t5", "hello"), "200|400" },
    { "MAL-POST-CL-HUGE-NO-BODY", LENGTH(" 999999999", ""), "413" },
    { "MAL-CHUNK-SIZE-OVERFLOW", CHUNKS("FFFFFFFFFFFFFFFFF\r\n"), "400" },

    { "NORM-UNDERSCORE-CL", POST("Content-Length: 5\r\nContent_Length: 99\r\n", "hello"), "400" },
    { "NORM-UNDERSCORE-TE", POST("Transfer_Encoding: chunked\r\n", "0\r\n\r\n"), "400" },
    { "NORM-SP-BEFORE-COLON-CL", POST("Content-Length: 5\r\nContent-Length : 6\r\n", "hello"), "400" },
    { "NORM-TAB-IN-NAME", POST("Content-Length: 5\r\nContent\tLength: 6\r\n", "hello"), "400" },
    { "NORM-CASE-TE", POST("TRANSFER-ENCODING: chunked\r\n", "0\r\n\r\n"), "200" },
};

static void drop(struct slice *rest, size_t byte_count)
{
    rest->at += byte_count;
    rest->byte_count -= byte_count;
}

static enum http1_status take_chunks(struct slice *rest, enum finish *ret_why)
{
    struct http1_chunks chunks = { 0 };
    struct slice piece;
    size_t taken;
    enum http1_status status;
    do {
        status = http1_chunk(&chunks, rest->at, rest->byte_count, BODY_BYTES_MAX, &taken, &piece, ret_why);
        drop(rest, taken);
    } while (status == HTTP1_MORE && taken > 0);
    return status;
}

static enum http1_status take_request(struct slice *rest, bool *ret_kept_alive, enum finish *ret_why)
{
    struct http1_head head;
    enum http1_status status =
        http1_head(rest->at, rest->byte_count, HEAD_BYTES_MAX, BODY_BYTES_MAX, &head, ret_why);
    if (status != HTTP1_DONE)
        return status;
    *ret_kept_alive = head.is_kept_alive;
    drop(rest, head.byte_count);
    if (head.framing == HTTP1_CHUNKED)
        return take_chunks(rest, ret_why);
    if (head.body_bytes > rest->byte_count)
        return HTTP1_MORE;
    drop(rest, (size_t)head.body_bytes);
    return HTTP1_DONE;
}

static void read_connection(struct slice rest, char words[WORDS_SIZE])
{
    enum http1_status status;
    size_t used = 0;
    bool is_kept_alive = true;
    do {
        enum finish why = FINISH_NONE;
        status = take_request(&rest, &is_kept_alive, &why);
        if (status == HTTP1_MORE)
            used += (size_t)sprintf(words + used, "%swait", used > 0 ? " " : "");
        else
            used += (size_t)sprintf(words + used, "%s%d", used > 0 ? " " : "",
                                    status == HTTP1_DONE ? 200 : finish_rows[why].status);
    } while (status == HTTP1_DONE && is_kept_alive && rest.byte_count > 0);
}

static bool is_accepted(const char *accepted, const char *words)
{
    size_t alternative_bytes;
    for (;; accepted += alternative_bytes + 1) {
        alternative_bytes = strcspn(accepted, "|");
        if (slice_equals(slice_of(accepted, alternative_bytes), slice_of_text(words)))
            return true;
        if (accepted[alternative_bytes] == '\0')
            return false;
    }
}

static void check_row(void **state)
{
    const struct row *row = *state;
    char words[WORDS_SIZE];
    read_connection(slice_of(row->bytes, row->byte_count), words);
    if (!is_accepted(row->accepted, words))
        fail_msg("%s: %s, accepted are %s", row->name, words, row->accepted);
}

/* The cases that need more bytes than a table can show. */
static const char *words_of_filled(const char *prefix, size_t fill_count, const char *fill,
                                   const char *suffix)
{
    static char bytes[200000], words[WORDS_SIZE];
    size_t used = (size_t)sprintf(bytes, "%s", prefix);
    for (size_t i = 0; i < fill_count; i++)
        used += (size_t)sprintf(bytes + used, "%s", fill);
    used += (size_t)sprintf(bytes + used, "%s", suffix);
    read_connection(slice_of(bytes, used), words);
    return words;
}

static void
COMP_LONG_URL_OK_and_MAL_LONG_URL_METHOD_HEADER_NAME_VALUE_MANY_HEADERS_CHUNK_EXTENSION(void **state)
{
    const char *start = "GET / HTTP/1.1\r\n" H, *end = "\r\n\r\n";
    (void)state;
    assert_string_equal(words_of_filled("GET /", 7900, "a", " HTTP/1.1\r\n" H "\r\n"), "200");
    assert_string_equal(words_of_filled("GET /", 100000, "a", " HTTP/1.1\r\n" H "\r\n"), "414");
    assert_string_equal(words_of_filled("", 100000, "A", " / HTTP/1.1\r\n" H "\r\n"), "501");
    assert_string_equal(words_of_filled(start, 100000, "a", ": b\r\n\r\n"), "431");
    assert_string_equal(words_of_filled("GET / HTTP/1.1\r\n" H "X: ", 100000, "a", end), "431");
    assert_string_equal(words_of_filled(start, 10000, "X-A: b\r\n", "\r\n"), "431");
    assert_string_equal(words_of_filled("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;",
                                        100000, "a", "\r\nhello\r\n0\r\n\r\n"),
                        "400");
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct CMUnitTest tests[COUNT(rows) + 1];

int main(void)
{
    static const struct CMUnitTest filled = cmocka_unit_test(
        COMP_LONG_URL_OK_and_MAL_LONG_URL_METHOD_HEADER_NAME_VALUE_MANY_HEADERS_CHUNK_EXTENSION);
    for (size_t i = 0; i < COUNT(rows); i++) {
        tests[i].name = rows[i].name;
        tests[i].test_func = check_row;
        tests[i].initial_state = (void *)(uintptr_t)&rows[i];
    }
    tests[COUNT(rows)] = filled;
    return cmocka_run_group_tests_name("http1_probe", tests, NULL, NULL);
}
