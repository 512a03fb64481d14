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

enum http1_framing { HTTP1_NO_BODY, HTTP1_LENGTH, HTTP1_CHUNKED };

struct http1_field {
    struct slice name;  /* as sent */
    struct slice value; /* without white space around it; no CR, LF, NUL or other control but HTAB */
};

/* All slices point into the bytes given to http1_head(). */
struct http1_head {
    size_t byte_count;            /* of the head, empty line and a leading empty line included */
    enum http1_method method;
    struct slice method_text;
    struct slice target;          /* origin form exactly as sent ("/p?q", "*" for OPTIONS); of an absolute form what
                                     follows the authority, "/" when nothing does */
    struct slice path, query;     /* target at its first '?'; query without it */
    struct slice host;            /* the Host field; of an absolute form its authority */
    int version_minor;            /* 0 or 1 */
    struct http1_field fields[HTTP1_FIELDS_MAX];
    size_t field_count;
    enum http1_framing framing;
    uint64_t body_bytes;          /* HTTP1_LENGTH: 0 to BODY_BYTES_MAX */
    bool is_kept_alive;           /* by version and Connection (RFC 9112, 9.3) */
    bool is_continue_expected;    /* Expect: 100-continue of an HTTP/1.1 client */
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

/* The chunked coding (RFC 9112, 7.1).  Zeroed before the first call; chunk extensions are ignored, trailers dropped. */
struct http1_chunks {
    int state;
    uint64_t left_bytes;    /* of the present chunk */
    uint64_t body_bytes;    /* so far */
    uint32_t line_bytes, trailer_bytes, digit_count;
};

/*
 * Decode what is there of a chunked body.  *RET_TAKEN bytes of BYTES are consumed; *RET_BODY is the next piece of the
 * body among them, perhaps empty.  Call again with the rest until it returns HTTP1_MORE with nothing taken, HTTP1_DONE
 * (the body is whole, trailers and last line end consumed) or HTTP1_REFUSED.
 */
MUST_CHECK enum http1_status http1_chunk(struct http1_chunks *chunks, const char bytes[], size_t byte_count,
                                         uint64_t body_bytes_max, size_t *ret_taken, struct slice *ret_body,
                                         enum finish *ret_why);

/* The first field of that name, compared without case; NULL: none. */
const struct http1_field *http1_field_find(const struct http1_field fields[], size_t field_count, const char *name);
bool http1_name_equals(struct slice name, const char *lower_case_name);
/* True when LIST (comma separated, RFC 9110, 5.6.1) holds TOKEN, compared without case. */
bool http1_list_has(struct slice list, struct slice token);
bool http1_token_is_valid(struct slice token);       /* RFC 9110, 5.6.2 */
bool http1_value_is_valid(struct slice value);       /* RFC 9110, 5.5 */
bool http1_target_is_valid(struct slice target);     /* origin form without space, control or byte above 0x7e */

/* True for fields that end here and are never passed on, in either direction: the fixed list of RFC 9110, 7.6.1,
 * Proxy-Authorization, Trailer, HTTP2-Settings, and what FIELDS' own Connection fields name. */
bool http1_field_is_hop_by_hop(struct slice name, const struct http1_field fields[], size_t field_count);

/* A response head, as collected line by line from the target: "HTTP/1.1 200 OK\r\n" ... "\r\n". */
struct http1_response {
    int status;
    struct http1_field fields[HTTP1_FIELDS_MAX];
    size_t field_count;
    bool is_length_known;
    uint64_t length_bytes;
};
/* HTTP1_DONE, or HTTP1_REFUSED when the framing fields contradict each other, a name or value is not valid, or there
 * are too many fields.  obs-fold is refused (RFC 9112, 5.2). */
MUST_CHECK enum http1_status http1_response(const char bytes[], size_t byte_count, struct http1_response *ret_response);

#endif
