/*
 * identify_value.h - one value that a locator led to.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_VALUE_H
#define SINKONCE_IDENTIFY_VALUE_H

#include "slice.h"

/* The longest of all is a composite: a topic, two numbers and the literals of a format. */
enum { VALUE_BYTES_MAX = 1024 };

enum look {
    LOOK_ABSENT, /* nothing is there: the next locator may be tried */
    LOOK_FOUND,
    LOOK_BROKEN, /* something is there that cannot be trusted, such as a repeated header: no coordinates at all */
};

struct value {
    struct slice text;           /* into the request, the settings or BYTES */
    bool is_number;              /* a JSON number: never a topic */
    char bytes[VALUE_BYTES_MAX]; /* for what had to be unescaped */
};

#endif
