/*
 * identify_header.h - locators whose values stand in the head of a request.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_HEADER_H
#define SINKONCE_IDENTIFY_HEADER_H

#include "identify_value.h"
#include "locator.h"
#include "request.h"

/* Any kind but LOCATOR_JSON.  A header or query parameter that stands there twice is LOOK_BROKEN: which of the two the
 * target reads is not ours to know. */
MUST_CHECK enum look head_look(const struct request *request, const struct locator *locator,
                               struct value *ret_value);

/* True when a signature or digest covers the body or the head, so that nothing may be cut out of either. */
bool head_is_signed(const struct request *request);

#endif
