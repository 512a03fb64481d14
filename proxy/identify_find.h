/*
 * identify_find.h - the coordinates of one record, from all rules together.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_FIND_H
#define SINKONCE_IDENTIFY_FIND_H

#include "identify.h"
#include "identify_json.h"

enum { CUT_MEMBERS_MAX = RULES_MAX * (COORDINATE_COUNT + 1) };

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

/* VIEW is that of the record's JSON.  False: no coordinates, be it that none are there, that they cannot be trusted or
 * that two rules disagree; then RET means nothing. */
MUST_CHECK bool coordinates_find(const struct identifier *identifier, const struct request *request,
                                 const struct json_view *view, struct finding *ret);

#endif
