/*
 * identify_json.c - see identify_json.h.
 */
#include "identify_json.h"

#include <assert.h>
#include "json_string.h"

void json_view_init(struct json_view *view, const struct rule_set *rules)
{
    view->is_read = false;
    memcpy(view->wants, rules->wants, rules->want_count * sizeof view->wants[0]);
    view->search = rules->search;
    view->search.wants = view->wants;
}

enum json_status json_view_read(struct json_view *view, const char bytes[], size_t byte_count,
                                size_t *ret_end)
{
    size_t begin = json_blank_end(slice_of(bytes, byte_count), 0);
    bool is_object = begin < byte_count && bytes[begin] == '{';
    enum json_status status = is_object ? json_search_next(&view->search, bytes, byte_count, ret_end)
                                        : json_scan(bytes, byte_count, NULL, 0, ret_end);
    view->is_read = status == JSON_DONE && is_object;
    return status;
}

void json_view_read_alone(struct json_view *view, const char bytes[], size_t byte_count)
{
    size_t end;
    view->is_read = json_view_read(view, bytes, byte_count, &end) == JSON_DONE && view->is_read &&
                    json_is_blank(bytes, byte_count, end);
}

/* Most strings have no escapes and are left where they stand. */
static enum look string_look(struct slice text, struct value *ret_value)
{
    struct slice inside = slice_of(text.at + 1, text.byte_count - 2);
    ret_value->text = inside;
    if (inside.byte_count == 0 || memchr(inside.at, '\\', inside.byte_count) == NULL)
        return LOOK_FOUND;
    size_t byte_count;
    if (!json_string_copy(text, ret_value->bytes, sizeof ret_value->bytes, &byte_count))
        return LOOK_BROKEN;
    ret_value->text = slice_of(ret_value->bytes, byte_count);
    return LOOK_FOUND;
}

enum look json_want_look(const struct json_want *want, struct value *ret_value)
{
    if (want->kind == JSON_IS_MISSING)
        return LOOK_ABSENT;
    if (want->is_ambiguous)
        return LOOK_BROKEN;
    ret_value->is_number = want->kind == JSON_IS_NUMBER;
    ret_value->text = want->text;
    if (want->kind == JSON_IS_STRING)
        return string_look(want->text, ret_value);
    if (want->kind == JSON_IS_NULL)
        return LOOK_ABSENT;
    return want->kind == JSON_IS_NUMBER ? LOOK_FOUND : LOOK_BROKEN;
}

enum look json_look(const struct json_view *view, size_t want_index, struct value *ret_value)
{
    assert(want_index < JSON_WANTS_MAX);
    return view->is_read ? json_want_look(&view->wants[want_index], ret_value) : LOOK_ABSENT;
}

bool json_has_telltale(const struct json_view *view, const struct telltale *telltale)
{
    if (!view->is_read)
        return false;
    const struct json_want *want = &view->wants[telltale->want];
    return ((telltale->kinds >> want->kind) & 1u) != 0 && !want->is_ambiguous &&
           (telltale->text == NULL || slice_equals_text(want->text, telltale->text));
}
