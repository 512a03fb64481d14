/*
 * broken.c - see broken.h.
 */
#include "broken.h"

#include "json_scan.h"

/* JSON values one after the other, as arrays, lines, concatenated objects and bulk requests are. */
static bool values_scan(struct slice body, size_t *ret_position)
{
    size_t at = json_blank_end(body, 0), end = 0;
    while (at < body.byte_count) {
        if (json_scan(body.at + at, body.byte_count - at, NULL, 0, &end) != JSON_DONE) {
            *ret_position = at + end;
            return false;
        }
        at = json_blank_end(body, at + end);
    }
    return true;
}

struct broken broken_find(const struct identified *identified)
{
    struct slice body = identified->body;
    size_t begin = json_blank_end(body, 0);
    struct broken broken = { .reason = "it is well-formed, but names no topic, partition and offset" };
    if (identified->coding == CODING_OTHER) {
        broken.reason = "its content coding cannot be opened: unknown, or damaged";
    } else if (begin == body.byte_count) {
        broken.reason = "it is empty, and no field names the record";
    } else if (body.at[begin] != '{' && body.at[begin] != '[') {
        broken.reason = "it is no JSON, and no field names the record";
    } else if (!values_scan(body, &broken.position)) {
        broken.has_position = true;
        broken.reason = "it is no valid JSON from there on, or nested deeper than 512";
    }
    return broken;
}
