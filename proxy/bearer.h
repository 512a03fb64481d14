/*
 * bearer.h - is a right bearer token in a field?  (RFC 6750, 2.1)
 *
 * TOKENS has one a line, and each of them is right: while tokens are changed, the old one and the new one are.
 * A decider.  Compares in a time that tells neither how many bytes were right nor of which token.
 */
#ifndef SINKONCE_BEARER_H
#define SINKONCE_BEARER_H

#include "http1.h"

/* The field in which a connector may send our token beside an Authorization that is meant for the target. */
#define BEARER_OWN_FIELD "sinkonce-authorization"

/* FIELD is "Bearer TOKEN"; false when FIELD is NULL or TOKENS is "". */
bool bearer_is_right(const struct http1_field *field, const char *tokens);
/* True when HEAD may come in: it carries one of TOKENS in our own field or, where there is none, in Authorization. */
bool bearer_opens(const struct http1_head *head, const char *tokens);
/* The one that a client of ours shows: the first. */
struct slice bearer_first(const char *tokens);
/* True when Authorization is the place of our token, and must not go on to the target. */
bool bearer_is_in_authorization(const struct http1_head *head);

#endif
