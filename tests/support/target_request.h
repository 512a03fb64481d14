/*
 * target_request.h - one HTTP/1.1 request of the counting target, read from bytes.
 *
 * As lenient as an ordinary server: it is the proxy's codec that is strict.  Deliberately shares no line
 * with proxy/, so that one mistake cannot hide on both sides.
 */
#ifndef TARGET_REQUEST_H
#define TARGET_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct target_text {
    const char *bytes; /* borrowed from the connection's buffer */
    size_t length;
};

struct target_request {
    struct target_text method;
    struct target_text path; /* with its query */
    struct target_text head; /* from the request line to the empty line, both included */
    struct target_text body; /* decoded when it came in chunks */
    size_t byte_count;       /* bytes of the whole request as it came */
    bool is_keepalive;
    bool expects_continue;
};

enum target_request_status {
    TARGET_REQUEST_WHOLE,
    TARGET_REQUEST_MORE,      /* the head is not complete */
    TARGET_REQUEST_MORE_BODY, /* the head is; the method, path, head and flags are filled in */
    TARGET_REQUEST_BAD,
};

/* Read one request from BYTES.  Chunks are decoded into SCRATCH, which must have room for BYTE_COUNT bytes
 * and which ret_request->body then points into. */
enum target_request_status target_request_read(const char bytes[], size_t byte_count, char scratch[],
                                               struct target_request *ret_request);

/* The value of the first header NAME (any case), or an empty text. */
struct target_text target_request_header(const struct target_request *request, const char *name);

bool target_text_is(struct target_text text, const char *word);

#endif
