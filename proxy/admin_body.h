/*
 * admin_body.h - the members of a change's JSON body.  Inside the admin port only.
 *
 * Each call that returns false has refused the request already.
 */
#ifndef SINKONCE_ADMIN_BODY_H
#define SINKONCE_ADMIN_BODY_H

#include "admin_call.h"

/* A member that may stand in the body; VALUE is borrowed from it, NULL when it is not there. */
struct admin_member {
    const char *name;
    bool is_required;
    json_t *value;
};

/* The body's object, owned by the caller; NULL: already refused. */
json_t *admin_body_read(struct admin_call *call);
bool admin_members_get(struct admin_call *call, json_t *body, struct admin_member members[],
                       size_t member_count);
bool admin_refuse_value(struct admin_call *call, const struct admin_member *member, const char *words);
/* One of the two words. */
bool admin_word_get(struct admin_call *call, const struct admin_member *member, const char *yes,
                    const char *no, bool *ret_is_yes);
/* A JSON integer, or its digits as text for numbers that the sender's JSON would round. */
bool admin_number_get(struct admin_call *call, const struct admin_member *member, uint64_t max,
                      uint64_t *ret_number);
bool admin_topic_get(struct admin_call *call, const struct admin_member *member,
                     char topic[TOPIC_BYTES_MAX + 1]);
/* Why the operator does it: into the call, and with who it is into the question's detail.  Not given: only who. */
bool admin_reason_get(struct admin_call *call, const struct admin_member *member);

#endif
