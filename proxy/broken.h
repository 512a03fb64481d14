/*
 * broken.h - where a body stops being what its sender meant, for the one who has to look at it.
 *
 * A decider, asked only when a write without coordinates is refused.
 */
#ifndef SINKONCE_BROKEN_H
#define SINKONCE_BROKEN_H

#include "identify.h"

struct broken {
    const char *reason; /* static; words that need no escape */
    bool has_position;
    size_t position; /* of the first wrong byte, from 0, in the body without its content coding */
};

struct broken broken_find(const struct identified *identified);

#endif
