/*
 * identify.h - which records a request holds, where they stand in it, and what tells them apart.
 *
 * A decider: bytes in, records and byte ranges out.  plan.h then says what of it is sent on.
 */
#ifndef SINKONCE_IDENTIFY_H
#define SINKONCE_IDENTIFY_H

#include "coding.h"
#include "record_key.h"
#include "request.h"
#include "settings.h"

enum shape {
    SHAPE_IS_NONE,
    SHAPE_IS_SINGLE,
    SHAPE_IS_JSON_ARRAY,
    SHAPE_IS_NDJSON,
    SHAPE_IS_CONCAT,
    SHAPE_IS_SEPARATED,
    SHAPE_IS_ENVELOPE,
    SHAPE_IS_BULK,
    SHAPE_IS_OPAQUE, /* one key, or one range of offsets, for the whole request: never cut */
};

enum { STRIP_HEADERS_MAX = 16 };

/* Bytes from BEGIN up to, not including, END, counted from the start of the body. */
struct range {
    size_t begin, end;
};

enum { NO_RECORD = SIZE_MAX };

/* One element of the request, in its order: a JSON value, a line, an action with its source.  Its own ranges to strip
 * are strip_ranges[strip_first .. +strip_count). */
struct record_site {
    struct range whole; /* its bytes, without separators; a bulk action with its source and line ends */
    size_t record;      /* which of the records; NO_RECORD: it has no coordinates and always goes on */
    bool is_repeat;     /* the same record stands earlier in this request: never sent again */
    size_t strip_first, strip_count;
};

enum bulk_kind { BULK_INDEX, BULK_CREATE, BULK_UPDATE, BULK_DELETE };

/* What an answer to one action of a bulk request must repeat.  Slices of the body; quotes left out, escapes kept. */
struct bulk_action {
    enum bulk_kind kind;
    struct slice index;       /* of the action line, else of the URL */
    struct slice id;          /* empty: none */
    struct slice version;     /* digits; empty: none */
    bool is_version_external; /* version_type is external or external_gte */
};

struct identified {
    enum shape shape;
    const char *rule;       /* static: which rule found the coordinates, for explain and logs; "" when none */
    bool is_too_many;       /* more elements than the setting, and records among them: nothing else counts */
    bool is_too_large;      /* opened it is larger than the setting, and its head does not say whose record it
                               is: it may hold any */
    struct record *records; /* owned array, each key at most once; topics point into TOPICS */
    size_t record_count;    /* 0: unkeyed; then there are no sites either */
    bool is_contradictory;  /* an element would be left out as a repeat of another, but has another mark */
    size_t contradicted;    /* that other: which of the records */
    struct record_site *sites; /* owned array; SINGLE and OPAQUE: one.  OPAQUE: it stands for all records */
    size_t site_count;
    struct bulk_action *actions; /* owned array parallel to sites; BULK only */
    struct slice body;           /* what all ranges count from: the request's body, or its decoded form */
    char *decoded;               /* owned: behind body when the request was compressed */
    enum coding coding;          /* of the request's body; OTHER also when it could not be opened */
    bool is_uncuttable; /* signed, opaque, or a bulk request with filter_path: goes on whole or not at all */
    bool is_signed;
    struct range *strip_ranges; /* owned: coordinate fields to cut out, ascending, with a comma each */
    size_t strip_range_count;
    const char *strip_headers[STRIP_HEADERS_MAX]; /* borrowed, in lower case: field names to leave out when
                                                     SINKONCE_STRIP is on */
    size_t strip_header_count;
    char *topics; /* owned: bytes behind the keys' topics */
};

/* What to look for, worked out once from the settings: wants of the JSON scan and default locators. */
struct identifier;
MUST_CHECK struct identifier *identifier_new(const struct settings *settings); /* [main] NULL: no memory */
void identifier_free(struct identifier *identifier);

/* [any] False: no memory.  RET must be deinitialised in both cases.  Only POST, PUT, PATCH and DELETE hold records. */
MUST_CHECK bool identify(const struct identifier *identifier, const struct request *request,
                         struct identified *ret);
void identified_deinit(struct identified *identified);
/* The memory of its lists, which of short records is several times that of the body. */
size_t identified_list_bytes(const struct identified *identified);

#endif
