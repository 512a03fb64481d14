/*
 * target_key.c - see target_key.h.  A search, not a parser: it reads what the tests send and judges nothing.
 */
#include "target_key.h"
#include "target_bulk.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Keys go into lines and into JSON. */
static void key_clean(char key[])
{
    for (char *at = key; *at != '\0'; at++)
        if (!isprint((unsigned char)*at) || *at == '"' || *at == '\\')
            *at = '?';
}

static bool key_join(char key[], struct target_text topic, struct target_text partition,
                     struct target_text offset)
{
    if (topic.length == 0 || topic.length > 249 || partition.length == 0 || partition.length > 20 ||
        offset.length == 0 || offset.length > 20)
        return false;
    snprintf(key, TARGET_KEY_MAX, "%.*s/%.*s/%.*s", (int)topic.length, topic.bytes, (int)partition.length,
             partition.bytes, (int)offset.length, offset.bytes);
    key_clean(key);
    return true;
}

static void key_of_path(char key[], const struct target_request *request)
{
    int length = request->path.length < TARGET_KEY_MAX - 1 ? (int)request->path.length : TARGET_KEY_MAX - 1;

    snprintf(key, TARGET_KEY_MAX, "%.*s", length, request->path.bytes);
    key_clean(key);
}

static bool key_of_headers(char key[], const struct target_request *request)
{
    return key_join(key, target_request_header(request, "x-kafka-topic"),
                    target_request_header(request, "x-kafka-partition"),
                    target_request_header(request, "x-kafka-offset"));
}

/* TOPIC+PARTITION+OFFSET; a topic holds no plus. */
static bool key_of_id(char key[], struct target_text id)
{
    const char *last = memrchr(id.bytes, '+', id.length);
    const char *first = last != NULL ? memrchr(id.bytes, '+', (size_t)(last - id.bytes)) : NULL;

    if (first == NULL)
        return false;
    return key_join(key, (struct target_text){ id.bytes, (size_t)(first - id.bytes) },
                    (struct target_text){ first + 1, (size_t)(last - first - 1) },
                    (struct target_text){ last + 1, (size_t)(id.bytes + id.length - last - 1) });
}

static void key_of_object(char key[], const struct target_request *request, struct target_text object)
{
    if (!key_join(key, target_field_find(object, "\"__topic\""), target_field_find(object, "\"__partition\""),
                  target_field_find(object, "\"__offset\"")))
        key_of_path(key, request);
}

/* The next object at or after *AT that lies in no other object; strings are skipped whole. */
static struct target_text object_next(const char **at, const char *end)
{
    const char *from = NULL;
    unsigned depth = 0;

    for (; *at < end; ++*at) {
        if (**at == '"') {
            for (++*at; *at < end && **at != '"'; ++*at)
                if (**at == '\\')
                    ++*at;
        } else if (**at == '{' && depth++ == 0) {
            from = *at;
        } else if (**at == '}' && depth != 0 && --depth == 0) {
            ++*at;
            return (struct target_text){ from, (size_t)(*at - from) };
        }
    }
    return (struct target_text){ end, 0 };
}

static void keys_of_bulk(const struct target_request *request, target_key_fn *found, void *context)
{
    char key[TARGET_KEY_MAX];
    struct target_action action;
    const char *at = request->body.bytes;

    while (target_action_next(&at, request->body.bytes + request->body.length, &action)) {
        if (!key_of_id(key, target_field_find(action.line, "\"_id\"")))
            key_of_object(key, request, action.source);
        found(context, key, action.source);
    }
}

void target_keys(const struct target_request *request, target_key_fn *found, void *context)
{
    char key[TARGET_KEY_MAX];
    const char *at = request->body.bytes;
    const char *end = at + request->body.length;
    bool is_json = request->body.length != 0 && (*at == '{' || *at == '[');
    bool has_any = false;

    if (key_of_headers(key, request)) {
        found(context, key, request->body);
        return;
    }
    if (target_is_bulk(request) && target_action_count(request) != 0) {
        keys_of_bulk(request, found, context);
        return;
    }
    while (is_json) {
        struct target_text object = object_next(&at, end);
        if (object.length == 0)
            break;
        has_any = true;
        key_of_object(key, request, object);
        found(context, key, object);
    }
    if (!has_any) {
        key_of_path(key, request);
        found(context, key, request->body);
    }
}
