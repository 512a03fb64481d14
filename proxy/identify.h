/*
 * identify.h - which records a request holds, where they stand in it, and what tells them apart.
 *
 * A decider: bytes in, records and byte ranges out.  plan.h then says what of it is sent on.
 */
#ifndef SINKONCE_IDENTIFY_H
#define SINKONCE_IDENTIFY_H

#include "record_key.h"
#include "request.h"
#include "settings.h"

enum shape { SHAPE_IS_NONE, SHAPE_IS_SINGLE };

enum { STRIP_HEADERS_MAX = 16 };

/* Bytes from BEGIN up to, not including, END, counted from the start of the body. */
struct range {
    size_t begin, end;
};

/* Where one record stands.  A record's own ranges to strip are strip_ranges[strip_first .. +strip_count). */
struct record_site {
    struct range whole;      /* the record's bytes */
    size_t strip_first, strip_count;
};

struct identified {
    enum shape shape;
    const char *rule;            /* static: which rule found the coordinates, for explain and logs; "" when none */
    bool is_too_many;            /* more records than the setting; then nothing else means anything */
    struct record *records;      /* owned array, each key at most once; topics point into TOPICS */
    struct record_site *sites;   /* owned array, parallel to records */
    size_t record_count;         /* 0: unkeyed */
    struct range *strip_ranges;  /* owned: coordinate fields to cut from the body, ascending, with a comma each */
    size_t strip_range_count;
    const char *strip_headers[STRIP_HEADERS_MAX]; /* borrowed, in lower case: field names to leave out when
                                                     SINKONCE_STRIP is on */
    size_t strip_header_count;
    char *topics;                /* owned: bytes behind the keys' topics */
};

/* What to look for, worked out once from the settings: wants of the JSON scan and default locators. */
struct identifier;
MUST_CHECK struct identifier *identifier_new(const struct settings *settings); /* [main] NULL: no memory */
void identifier_free(struct identifier *identifier);

/* [any] False: no memory.  RET must be deinitialised in both cases.  Only POST, PUT, PATCH and DELETE hold records. */
MUST_CHECK bool identify(const struct identifier *identifier, const struct request *request,
                         struct identified *ret);
void identified_deinit(struct identified *identified);

#endif
