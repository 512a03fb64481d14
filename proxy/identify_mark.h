/*
 * identify_mark.h - the identity mark of one record.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_MARK_H
#define SINKONCE_IDENTIFY_MARK_H

#include "identify_find.h"

/* BYTES are the record's own, without the coordinate fields hashed; FINDING's members are slices of them.  False: no
 * memory. */
MUST_CHECK bool mark_make(enum identity_setting identity, struct slice bytes, const struct finding *finding,
                          record_mark *ret_mark);

#endif
