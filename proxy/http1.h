/*
 * http1.h - the strict HTTP/1.1 codec: pure functions on bytes.
 *
 * No I/O, no clock, no allocation.  What it accepts is less than what the RFCs allow: wherever two readers could
 * disagree about where a request ends, it refuses.  conn.h feeds it.
 */
#ifndef SINKONCE_HTTP1_H
#define SINKONCE_HTTP1_H

#include <stdbool.h>
#include <stdint.h>
#include "finish.h"
#include "slice.h"

enum { HTTP1_FIELDS_MAX = 100, HTTP1_TARGET_BYTES_MAX = 8192, HTTP1_CHUNK_LINE_BYTES_MAX = 256,
       HTTP1_TRAILER_BYTES_MAX = 8192 };

enum http1_status { HTTP1_MORE, HTTP1_DONE, HTTP1_REFUSED };

/* Order is that of metrics_request(). */
enum http1_method { HTTP1_GET, HTTP1_HEAD, HTTP1_POST, HTTP1_PUT, HTTP1_DELETE, HTTP1_OPTIONS, HTTP1_PATCH,
                    HTTP1_METHOD_COUNT };
const char *http1_method_name(enum http1_method method); /* static; METHOD is below HTTP1_METHOD_COUNT */

enum http1_framing { HTTP1_NO_BODY, HTTP1_LENGTH, HTTP1_CHUNKED };

struct http1_field {
    struct slice name;  /* as sent */
    struct slice value; /* without white space around it; no CR, LF, NUL or other control but HTAB */
};

/* Both are borrowed. */
static inline struct http1_field http1_field_of(const char *name, const char *value)
{
    return (struct http1_field){ slice_of_text(name), slice_of_text(value) };
}

/* All slices point into the bytes given to http1_head(). */
struct http1_head {
    size_t byte_count;            /* of the head, empty line and a leading empty line included */
    enum http1_method method;
    struct slice method_text;
    struct slice target;          /* origin form exactly as sent ("/p?q", "*" for OPTIONS); of an absolute form what
                                     follows the authority, "/" when nothing does ("?q" alone is refused) */
    struct slice path, query;     /* target at its first '?'; query without it */
    struct slice host;            /* the Host field; of an absolute form its authority; empty: HTTP/1.0 without */
    int version_minor;            /* 0 or 1 */
    struct http1_field fields[HTTP1_FIELDS_MAX];
    size_t field_count;
    enum http1_framing framing;
    uint64_t body_bytes;          /* HTTP1_LENGTH: 0 to body_bytes_max; else 0 */
    bool is_kept_alive;           /* by version and Connection (RFC 9112, 9.3) */
    bool is_continue_expected;    /* Expect: 100-continue of an HTTP/1.1 client that has a body to send */
};

/*
 * Read one request head from BYTES, which may hold less or more than one.
 *   HTTP1_MORE     the empty line has not come yet; RET_HEAD is untouched.  Never with more than HEAD_BYTES_MAX bytes.
 *   HTTP1_REFUSED  *RET_WHY is the reason to answer with before closing; RET_HEAD is untouched
 *   HTTP1_DONE     RET_HEAD is whole
 * The result does not depend on how the bytes were cut on their way here.
 * Source: RFC 9112, 2.2, 3, 5, 6 and 7; RFC 9110, 5.5, 7.2, 9.1 and 10.1.1.
 */
MUST_CHECK enum http1_status http1_head(const char bytes[], size_t byte_count, size_t head_bytes_max,
                                        uint64_t body_bytes_max, struct http1_head *ret_head, enum finish *ret_why);

/*
 * The chunked coding (RFC 9112, 7.1).  Zeroed before the first call; chunk extensions are ignored, trailers dropped.
 * Refused with FINISH_BODY_TOO_LARGE when the sum of the sizes passes the cap (as soon as the size line is whole),
 * FINISH_HEAD_TOO_LARGE when the trailers do, FINISH_BAD_REQUEST otherwise.
 */
struct http1_chunks {
    int state;
    uint64_t left_bytes;    /* of the present chunk */
    uint64_t body_bytes;    /* so far */
    uint32_t line_bytes, trailer_bytes, digit_count;
};

/*
 * Decode what is there of a chunked body.  *RET_TAKEN bytes of BYTES are consumed; *RET_BODY is the next piece of the
 * body among them, perhaps empty.  Call again with the rest until it returns HTTP1_MORE with nothing taken, HTTP1_DONE
 * (the body is whole, trailers and last line end consumed) or HTTP1_REFUSED.  After HTTP1_DONE it takes nothing more;
 * after HTTP1_REFUSED it must not be called.
 */
MUST_CHECK enum http1_status http1_chunk(struct http1_chunks *chunks, const char bytes[], size_t byte_count,
                                         uint64_t body_bytes_max, size_t *ret_taken, struct slice *ret_body,
                                         enum finish *ret_why);

/* The first field of that name, compared without case; NULL: none. */
const struct http1_field *http1_field_find(const struct http1_field fields[], size_t field_count, const char *name);
bool http1_name_equals(struct slice name, const char *lower_case_name);
/* True when LIST (comma separated, RFC 9110, 5.6.1) holds TOKEN, compared without case. */
bool http1_list_has(struct slice list, struct slice token);
/* The next member of LIST, white space cut off, perhaps empty; LIST is what follows its comma.  False: no more. */
bool http1_list_next(struct slice *list, struct slice *ret_member);
bool http1_token_is_valid(struct slice token);       /* RFC 9110, 5.6.2 */
bool http1_value_is_valid(struct slice value);       /* RFC 9110, 5.5: its bytes; white space at the ends passes */
bool http1_target_is_valid(struct slice target);     /* origin form without space, control, '#' or byte above 0x7e */
bool http1_host_is_valid(struct slice host);         /* host [":" port] of RFC 3986, 3.2.2, not empty */

/* True for fields that end here and are never passed on, in either direction: the fixed list of RFC 9110, 7.6.1,
 * Proxy-Authorization, Proxy-Authenticate, Trailer, HTTP2-Settings, and what FIELDS' own Connection fields name. */
bool http1_field_is_hop_by_hop(struct slice name, const struct http1_field fields[], size_t field_count);

/* A response head, as collected line by line from the target: "HTTP/1.1 200 OK\r\n" ... "\r\n".  Slices point into
 * the bytes given; the reason phrase is checked and forgotten. */
struct http1_response {
    int status; /* 100 to 599 */
    struct http1_field fields[HTTP1_FIELDS_MAX];
    size_t field_count;
    bool is_length_known;  /* a Content-Length, perhaps repeated with the same value */
    uint64_t length_bytes; /* 0 when it is not known */
};
/* HTTP1_DONE, or HTTP1_REFUSED when the framing fields contradict each other, a line is not whole or not valid, bytes
 * follow the empty line, or there are too many fields.  obs-fold is refused (RFC 9112, 5.2).  RET_RESPONSE is
 * untouched when refused. */
MUST_CHECK enum http1_status http1_response(const char bytes[], size_t byte_count, struct http1_response *ret_response);

/* What follows is shared by the http1 files and of no use to others. */

enum http1_class { HTTP1_IN_TOKEN = 1, HTTP1_IN_VALUE = 2, HTTP1_IN_TARGET = 4, HTTP1_IN_HOST = 8, HTTP1_IN_HEX = 16 };
extern const uint8_t http1_classes[256];

static inline bool http1_byte_is(char byte, enum http1_class byte_class)
{
    return (http1_classes[(uint8_t)byte] & byte_class) != 0;
}

/* How many bytes at the start of BYTES are all of that class. */
size_t http1_span(struct slice bytes, enum http1_class byte_class);
/* Take one whole field line from the front of REST.  False: it is not valid, or its CRLF is not there. */
MUST_CHECK bool http1_field_line(struct slice *rest, struct http1_field *ret_field);

enum http1_number { HTTP1_NUMBER_BAD, HTTP1_NUMBER_ABOVE, HTTP1_NUMBER_OK };
/* TEXT as 1*DIGIT.  HTTP1_NUMBER_ABOVE: digits only, and more than MAX, however many there are. */
MUST_CHECK enum http1_number http1_number(struct slice text, uint64_t max, uint64_t *ret_number);

enum http1_coding { HTTP1_CODING_BAD, HTTP1_CODING_CHUNKED, HTTP1_CODING_OTHER };
/* A Transfer-Encoding value.  HTTP1_CODING_OTHER: valid, "chunked" once and last, others before it. */
enum http1_coding http1_coding(struct slice value);

#endif
