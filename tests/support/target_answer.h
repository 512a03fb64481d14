/*
 * target_answer.h - the bytes that the counting target answers with, and where they break off.
 */
#ifndef TARGET_ANSWER_H
#define TARGET_ANSWER_H

#include "target_rules.h"

struct target_answer {
    char *bytes;     /* owned */
    size_t length;   /* what is really sent */
    size_t pause_at; /* after so many bytes wait pause_ms; 0: at once */
    unsigned pause_ms;
    bool is_last; /* the connection ends after it, as END says */
    enum target_end end;
};

/* The answer that RULE gives to a request of which the first APPLIED records take effect.  A bulk request is answered
 * with an item for each of its actions, unless RULE has a body or a status of its own. */
struct target_answer target_answer_build(const struct target_rule *rule, const struct target_request *request,
                                         size_t applied);

/* An answer of status STATUS that carries BODY, for the control port. */
struct target_answer target_answer_text(int status, const char *body, size_t body_length);

#endif
