/*
 * identify_cut.h - which bytes go when members are cut out of JSON text.  Private to identify*.c and plan.c.
 */
#ifndef SINKONCE_IDENTIFY_CUT_H
#define SINKONCE_IDENTIFY_CUT_H

#include "identify.h"

/*
 * The ranges that cut MEMBERS, slices of BYTES in any order, out of their objects with one comma each, so that what
 * stays is valid JSON and not one other byte changes.  MEMBERS are sorted; one that comes twice is cut once.
 * RET_RANGES, ascending and apart from each other, has room for MEMBER_COUNT.  Returns how many were written.
 */
size_t cut_members(const char bytes[], size_t byte_count, struct slice members[], size_t member_count,
                   struct range ret_ranges[]);

#endif
