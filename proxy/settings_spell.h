/*
 * settings_spell.h - what somebody may have meant who wrote a name that does not exist.
 */
#ifndef SINKONCE_SETTINGS_SPELL_H
#define SINKONCE_SETTINGS_SPELL_H

#include "slice.h"

/* The nearest of NAMES so far, fed one by one. */
struct spelling {
    const char *wanted;  /* borrowed */
    const char *nearest; /* borrowed; NULL: none is near enough */
    size_t distance;
};

struct spelling spelling_of(const char *wanted);
/* Is NAME nearer than what came before, and so near that it may be meant? */
void spelling_offer(struct spelling *spelling, const char *name);

#endif
