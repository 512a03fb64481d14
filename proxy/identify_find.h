/*
 * identify_find.h - the coordinates of one record, from all rules together.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_FIND_H
#define SINKONCE_IDENTIFY_FIND_H

#include "identify.h"
#include "identify_json.h"

/* Twice: a bulk update may carry its document a second time. */
enum { CUT_MEMBERS_MAX = 2 * RULES_MAX * (COORDINATE_COUNT + 1) };

/* What an action line of a bulk request says about its record. */
struct bulk_line {
    struct json_want id;      /* as scanned */
    bool has_version;         /* of an external version: an offset, unless something else says otherwise */
    bool is_version_broken;   /* external, and no number that an offset could be */
    uint64_t version;
};

/* What the rules may look at. */
struct sight {
    const struct request *request;
    const struct rule_set *rules;
    const struct json_view *view; /* of the record's JSON, by the same rules */
    const struct bulk_line *line; /* NULL: not an action of a bulk request */
};

struct finding {
    const char *rule;                           /* static: the first that held */
    char topic[TOPIC_BYTES_MAX];
    struct record_key key;                      /* its topic points into TOPIC: do not copy a finding */
    bool has_timestamp;
    uint64_t timestamp_ms;
    struct slice members[CUT_MEMBERS_MAX];      /* members of the record's JSON that hold coordinates, any order, some
                                                   perhaps twice */
    size_t member_count;
    struct slice unhashed;                      /* a member that differs between deliveries; nothing: none */
    const char *headers[STRIP_HEADERS_MAX];     /* borrowed: fields that hold coordinates */
    size_t header_count;
};

/* LOOK_ABSENT: no coordinates are there.  LOOK_BROKEN: there are some that cannot be trusted, or two rules disagree.
 * In both cases RET means nothing. */
MUST_CHECK enum look coordinates_find(const struct sight *sight, struct finding *ret);

#endif
