/*
 * identify_json.h - locators whose values stand in the JSON text of one record.  Private to identify*.c.
 */
#ifndef SINKONCE_IDENTIFY_JSON_H
#define SINKONCE_IDENTIFY_JSON_H

#include "identify_rules.h"
#include "identify_value.h"

/* What the scan of one record found. */
struct json_view {
    bool is_read; /* false: not one JSON object, so nothing is there */
    struct json_want wants[JSON_WANTS_MAX];
};

/* Scan BYTES, which must hold one JSON object and white space to be read at all. */
void json_view_read(struct json_view *view, const struct identifier *identifier, const char bytes[],
                    size_t byte_count);

/* Strings come unescaped, numbers as they stand.  null is LOOK_ABSENT, a name that stands twice LOOK_BROKEN, and so is
 * any other kind of value. */
MUST_CHECK enum look json_look(const struct json_view *view, size_t want, struct value *ret_value);

bool json_has_telltale(const struct json_view *view, const struct telltale *telltale);

#endif
