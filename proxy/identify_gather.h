/*
 * identify_gather.h - collects the elements that a shape finds: sites, records, topics, repeats, ranges to strip.
 *
 * Shapes call gather_*() element by element, in the order of the body.  What is collected grows geometrically; no
 * element costs an allocation of its own.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_GATHER_H
#define SINKONCE_IDENTIFY_GATHER_H

#include "identify_find.h"

enum read_status {
    READ_OK,
    READ_NONE,     /* the body does not have this shape: nothing of it means anything */
    READ_TOO_MANY, /* more elements than the setting, and records among them */
    READ_NO_MEMORY,
};

/* Finds what was put in, by a hash, among things that are numbered from 0. */
struct number_table {
    uint32_t *slots; /* owned: number + 1, 0: free */
    size_t slot_count, used_count;
};

struct topic_place {
    size_t begin, byte_count; /* in identified.topics */
};

struct gather {
    const struct identifier *identifier;
    const struct request *request;
    struct identified *ret; /* borrowed: what is collected */
    const struct rule_set *rules;
    struct json_view view; /* by these rules */
    struct finding finding; /* of the present element */
    size_t site_room, action_room, record_room, content_room, range_room, topic_room, topic_place_room;
    record_mark *contents;            /* owned: of each record, what tells its bytes from others */
    struct topic_place *topic_places; /* owned */
    size_t topic_count, topic_bytes;
    struct number_table topic_table, record_table;
};

void gather_init(struct gather *gather, const struct identifier *identifier, const struct request *request,
                 enum place place, struct identified *ret);
/* Throw away what was collected, as a shape turned out to be another one. */
void gather_reset(struct gather *gather, enum place place);
void gather_deinit(struct gather *gather);

/* What the rules say of the request and the present view; the finding is the gather's.  As coordinates_find(). */
MUST_CHECK enum look gather_look(struct gather *gather);

/* One more element, with the finding of the gather, or without any when IS_FOUND is false.  HASHED are its bytes for
 * the identity mark; the finding's members are slices of them.  ACTION is NULL but for bulk requests. */
MUST_CHECK enum read_status gather_add(struct gather *gather, struct range whole, struct range hashed,
                                       bool is_found, const struct bulk_action *action);

/* The JSON value that begins at BEGIN, not white space, as one more element.  *RET_END is behind it. */
MUST_CHECK enum read_status gather_add_value(struct gather *gather, size_t begin, size_t *ret_end);

/* BYTES, one JSON object or something else, as one more element, which is looked into by the present view. */
MUST_CHECK enum read_status gather_add_viewed(struct gather *gather, struct range whole);

#endif
