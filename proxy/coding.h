/*
 * coding.h - content codings of bodies (RFC 9110, 8.4.1): opened to read the records, packed again after a cut.
 *
 * The only file pair that names zlib and zstd.  Pure but for memory.  Threads: any.
 */
#ifndef SINKONCE_CODING_H
#define SINKONCE_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include "slice.h"

enum coding {
    CODING_IDENTITY,
    CODING_GZIP,
    CODING_DEFLATE, /* zlib format; raw deflate is understood too, as senders disagree, and packed as it came */
    CODING_DEFLATE_RAW,
    CODING_ZSTD,
    CODING_OTHER,   /* several codings, or one that we do not open: whole-request rules only */
};

enum coding_status { CODING_OK, CODING_DAMAGED, CODING_TOO_LARGE, CODING_NO_MEMORY };

/* Of a Content-Encoding field's value, without case; "" is identity. */
enum coding coding_of(struct slice value);

/* Open BYTES, which must be whole, to at most BYTES_MAX.  *RET is owned by the caller.  CODING may change from DEFLATE
 * to DEFLATE_RAW. */
MUST_CHECK enum coding_status coding_open(enum coding *coding, struct slice bytes, size_t bytes_max, char **ret,
                                          size_t *ret_bytes);
/* Pack PARTS, one after the other.  *RET is owned by the caller. */
MUST_CHECK enum coding_status coding_pack(enum coding coding, const struct slice parts[], size_t part_count,
                                          char **ret, size_t *ret_bytes);

#endif
