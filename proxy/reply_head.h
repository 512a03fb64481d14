/*
 * reply_head.h - the head of a reply as it goes over the socket: status line, Date, fields, framing.
 *
 * Whatever the client's version, we answer as HTTP/1.1 (RFC 9110, 2.5).  The target's own words for a status are never
 * passed on; ours stand in http_reason().
 */
#ifndef SINKONCE_REPLY_HEAD_H
#define SINKONCE_REPLY_HEAD_H

#include "conn.h"

/* [any] Standard words for a status, "" when there are none. */
const char *http_reason(int status);
/* A body is sent: not for HEAD, 1xx, 204 and 304 (RFC 9110, 6.4.1). */
bool reply_has_body(const struct reply *reply);
/* REPLY becomes the answer to a HEAD: without content, whatever the status, and with the length that it would have (RFC
 * 9110, 9.3.2).  One whose body is left out already stays as it is. */
void reply_leave_body_out(struct reply *reply);
/* [any] The head of REPLY in one allocation, which the caller frees; NULL: no memory. */
MUST_CHECK char *reply_head_new(const struct reply *reply, bool is_closing, size_t *ret_bytes);

#endif
