/*
 * scripted_target.h - upstream.h without libcurl: a target that answers when the input says so, with what it says.
 *
 * It keeps what it was sent, record by record: nothing that it may have applied reaches it a second time.
 */
#ifndef SINKONCE_SCRIPTED_TARGET_H
#define SINKONCE_SCRIPTED_TARGET_H

#include "identify.h"
#include "upstream.h"

/* What the target is told of a request whose flight it gets: how the connection named it, and its bytes. */
struct handed {
    unsigned client, index;
    size_t said_at;         /* where it begins in what its connection said */
    struct request request; /* as it was handed over; its memory is the exchange's */
    unsigned sent_count;    /* attempts that may have reached the target */
    bool is_open;
};

/* Forget the run before.  IS_ONCE: no record may be sent again unless it is known to be without effect, and none called
 * delivered unless it is known to be applied.  IS_SPLIT: one
 * request may become several flights. */
void target_begin(const struct identifier *identifier, const struct settings *settings, bool is_once, bool is_split);
bool target_is_waited_for(void);
/* The oldest flight ends: with an answer, head and body as they come over the wire; or without one. */
void target_answer(struct slice bytes);
void target_fail(enum attempt_class attempt_class, enum attempt_error error);
/* The oldest flight is answered with STATUS; a bulk request with an item for each action, STATUSES in turn. */
void target_answer_status(int status, struct slice statuses);
void target_answer_large(void); /* 200, with a body that no socket takes at once */
/* REQUEST has been answered with a success. */
void target_check_applied(struct request *request);
uint64_t target_hash(void); /* of all that was sent, in order */

/* The fuzz target's: the request behind FLIGHT. */
struct handed *handed_of(const struct flight *flight);

#endif
