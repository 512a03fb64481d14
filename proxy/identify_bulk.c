/*
 * identify_bulk.c - bulk requests of Elasticsearch and OpenSearch: an action line, then its source line.
 *
 *     {"index":{"_index":"orders","_id":"orders+0+100"}}     action: exactly one member
 *     {"id":0}                                               source
 *     {"delete":{"_index":"orders","_id":"k1"}}              owns no source
 *     {"update":{"_index":"orders","_id":"k2"}}
 *     {"doc":{"id":2},"upsert":{"id":2}}                     the document, perhaps twice
 *
 * Every line ends with a line end, the last one too.  A line that is not understood makes the whole request one that is
 * passed on untouched.
 */
#include "identify_shapes.h"

struct bulk {
    struct gather *gather;
    struct slice body;
    size_t at; /* where the next line begins */
    struct slice url_index;
    struct bulk_action action;
    struct bulk_line line;
};

static const char *const kind_names[] = {
    [BULK_INDEX] = "index", [BULK_CREATE] = "create", [BULK_UPDATE] = "update", [BULK_DELETE] = "delete"
};

/* ---- lines --------------------------------------------------------------------------------------------------- */

/* The next line, without its end.  False: no line end is left. */
static bool line_take(struct bulk *bulk, struct range *ret_line)
{
    size_t left = bulk->body.byte_count - bulk->at;
    const char *found = left > 0 ? memchr(bulk->body.at + bulk->at, '\n', left) : NULL;
    if (found == NULL)
        return false;
    *ret_line = (struct range){ bulk->at, (size_t)(found - bulk->body.at) };
    bulk->at = ret_line->end + 1;
    return true;
}

static struct slice bytes_of(const struct bulk *bulk, struct range range)
{
    return slice_of(bulk->body.at + range.begin, range.end - range.begin);
}

/* ---- the action line ----------------------------------------------------------------------------------------- */

/* Take the only member of the object LINE apart: NAME with its quotes left out, and what follows the colon.  False: it
 * does not begin like one. */
static bool member_open(struct slice line, struct slice *ret_name, struct slice *ret_rest)
{
    size_t at = json_blank_end(line, 0), byte_count;
    if (at == line.byte_count || line.at[at] != '{')
        return false;
    at = json_blank_end(line, at + 1);
    if (at == line.byte_count || line.at[at] != '"' ||
        json_scan(line.at + at, line.byte_count - at, NULL, 0, &byte_count) != JSON_DONE)
        return false;
    *ret_name = slice_of(line.at + at + 1, byte_count - 2);
    at = json_blank_end(line, at + byte_count);
    if (at == line.byte_count || line.at[at] != ':')
        return false;
    at = json_blank_end(line, at + 1);
    *ret_rest = slice_of(line.at + at, line.byte_count - at);
    return true;
}

/* Only the object's brace may follow its member. */
static bool member_is_last(struct slice rest, size_t end)
{
    size_t brace = json_blank_end(rest, end);
    return brace < rest.byte_count && rest.at[brace] == '}' &&
           json_is_blank(rest.at, rest.byte_count, brace + 1);
}

static bool kind_find(struct slice name, enum bulk_kind *ret_kind)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
        *ret_kind = (enum bulk_kind)i;
        if (slice_equals_text(name, kind_names[i]))
            return true;
    }
    return false;
}

static struct slice string_inside(const struct json_want *want)
{
    return want->kind == JSON_IS_STRING ? slice_of(want->text.at + 1, want->text.byte_count - 2)
                                        : slice_of(NULL, 0);
}

/* Source: Elasticsearch, "Index API", version types; internal versions count writes and are no offsets. */
static bool is_external(const struct json_want *type)
{
    struct slice name = string_inside(type);
    return slice_equals_text(name, "external") || slice_equals_text(name, "external_gte");
}

static void version_read(struct bulk *bulk, const struct json_want *version, const struct json_want *type)
{
    struct slice digits = version->kind == JSON_IS_NUMBER ? version->text : string_inside(version);
    bool is_number = decimal_read(digits, INT64_MAX, &bulk->line.version);
    bulk->action.version = is_number ? digits : slice_of(NULL, 0);
    bulk->action.is_version_external = is_external(type);
    bool is_offset = bulk->action.is_version_external && version->kind != JSON_IS_MISSING;
    bulk->line.is_version_broken = is_offset && (!is_number || version->is_ambiguous || type->is_ambiguous);
    bulk->line.has_version = is_offset && !bulk->line.is_version_broken;
}

static bool action_read(struct bulk *bulk, struct slice line)
{
    static char index_name[] = "_index", id_name[] = "_id", version_name[] = "version",
                type_name[] = "version_type";
    static char *const index_tokens[] = { index_name }, *const id_tokens[] = { id_name },
                       *const version_tokens[] = { version_name }, *const type_tokens[] = { type_name };
    struct json_want wants[] = { { .tokens = index_tokens, .token_count = 1 },
                                 { .tokens = id_tokens, .token_count = 1 },
                                 { .tokens = version_tokens, .token_count = 1 },
                                 { .tokens = type_tokens, .token_count = 1 } };
    struct slice name, rest;
    size_t end;
    if (!member_open(line, &name, &rest) || !kind_find(name, &bulk->action.kind) || rest.byte_count == 0 ||
        rest.at[0] != '{' || json_scan(rest.at, rest.byte_count, wants, 4, &end) != JSON_DONE ||
        !member_is_last(rest, end))
        return false;
    bulk->action.index = wants[0].kind == JSON_IS_STRING ? string_inside(&wants[0]) : bulk->url_index;
    bulk->action.id = string_inside(&wants[1]);
    bulk->line.id = wants[1];
    version_read(bulk, &wants[2], &wants[3]);
    return true;
}

/* ---- the source line ----------------------------------------------------------------------------------------- */

/* What the rules say when VIEW holds what they look into. */
static enum look document_find(const struct bulk *bulk, const struct json_view *view, struct finding *ret)
{
    struct sight sight = {
        .request = bulk->gather->request, .rules = bulk->gather->rules, .view = view, .line = &bulk->line
    };
    return coordinates_find(&sight, ret);
}

/* The document that is written when none is there yet repeats the coordinates: it is a witness, and stripped too. */
static enum look upsert_find(struct bulk *bulk, const struct json_want *upsert)
{
    struct finding *finding = &bulk->gather->finding, again;
    if (upsert->kind != JSON_IS_OBJECT)
        return LOOK_FOUND;
    json_view_read_alone(&bulk->gather->view, upsert->text.at, upsert->text.byte_count);
    enum look look = document_find(bulk, &bulk->gather->view, &again);
    if (look != LOOK_FOUND)
        return look == LOOK_ABSENT ? LOOK_FOUND : LOOK_BROKEN;
    if (!slice_equals(again.key.topic, finding->key.topic) || again.key.partition != finding->key.partition ||
        again.key.offset != finding->key.offset)
        return LOOK_BROKEN;
    memcpy(finding->members + finding->member_count, again.members,
           again.member_count * sizeof again.members[0]);
    finding->member_count += again.member_count;
    return LOOK_FOUND;
}

/* An update holds its document one level down.  READ_NONE: SOURCE is not one object. */
static enum read_status update_read(struct bulk *bulk, struct slice source, enum look *ret_look)
{
    const struct identifier *identifier = bulk->gather->identifier;
    struct json_view *view = &bulk->gather->view;
    const struct locator *document = &identifier->document.items[0], *upsert = &identifier->upsert.items[0];
    struct json_want wants[] = { { .tokens = document->tokens, .token_count = document->token_count },
                                 { .tokens = upsert->tokens, .token_count = upsert->token_count } };
    size_t begin = json_blank_end(source, 0), end;
    if (begin == source.byte_count || source.at[begin] != '{' ||
        json_scan(source.at, source.byte_count, wants, 2, &end) != JSON_DONE ||
        !json_is_blank(source.at, source.byte_count, end))
        return READ_NONE;
    view->is_read = false;
    if (wants[0].kind == JSON_IS_OBJECT)
        json_view_read_alone(view, wants[0].text.at, wants[0].text.byte_count);
    *ret_look = LOOK_BROKEN;
    if (!wants[0].is_ambiguous && !wants[1].is_ambiguous)
        *ret_look = document_find(bulk, view, &bulk->gather->finding);
    if (*ret_look == LOOK_FOUND)
        *ret_look = upsert_find(bulk, &wants[1]);
    return READ_OK;
}

/* *RET_LOOK is what was found in SOURCE.  READ_NONE: it is not one object. */
static enum read_status source_read(struct bulk *bulk, struct slice source, enum look *ret_look)
{
    struct json_view *view = &bulk->gather->view;
    if (bulk->action.kind == BULK_UPDATE)
        return update_read(bulk, source, ret_look);
    json_view_read_alone(view, source.at, source.byte_count);
    if (!view->is_read)
        return READ_NONE;
    *ret_look = document_find(bulk, view, &bulk->gather->finding);
    return READ_OK;
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

/* The action in LINE, and its source behind it. */
static enum read_status one_read(struct bulk *bulk, struct range line)
{
    struct range hashed = line;
    enum look look;
    if (!action_read(bulk, bytes_of(bulk, line)))
        return READ_NONE;
    if (bulk->action.kind == BULK_DELETE) {
        bulk->gather->view.is_read = false;
        look = document_find(bulk, &bulk->gather->view, &bulk->gather->finding);
    } else if (!line_take(bulk, &hashed) || source_read(bulk, bytes_of(bulk, hashed), &look) != READ_OK) {
        return READ_NONE;
    }
    return gather_add(bulk->gather, (struct range){ line.begin, bulk->at }, hashed, look == LOOK_FOUND,
                      &bulk->action);
}

/* "/orders/_bulk": what stands between the last two slashes. */
static struct slice index_of_path(struct slice path)
{
    const char *last = path.byte_count > 0 ? memrchr(path.at, '/', path.byte_count) : NULL;
    if (last == NULL || last == path.at)
        return slice_of(NULL, 0);
    const char *before = memrchr(path.at, '/', (size_t)(last - path.at));
    const char *begin = before == NULL ? path.at : before + 1;
    return slice_of(begin, (size_t)(last - begin));
}

/* Elasticsearch finds its handlers by the parts of a path between slashes, so that one at the end changes nothing. */
static struct slice without_last_slashes(struct slice path)
{
    while (path.byte_count > 0 && path.at[path.byte_count - 1] == '/')
        path.byte_count--;
    return path;
}

bool is_bulk_path(const struct request *request)
{
    static const char end[] = "/_bulk";
    struct slice path = without_last_slashes(request->head.path);
    return path.byte_count >= sizeof end - 1 &&
           memcmp(path.at + path.byte_count - (sizeof end - 1), end, sizeof end - 1) == 0;
}

bool begins_like_bulk(struct slice body)
{
    struct slice name, rest;
    enum bulk_kind kind;
    size_t end, begin = json_blank_end(body, 0);
    const char *line_end = memchr(body.at + begin, '\n', body.byte_count - begin);
    if (line_end == NULL)
        return false;
    struct slice line = slice_of(body.at + begin, (size_t)(line_end - body.at) - begin);
    return member_open(line, &name, &rest) && kind_find(name, &kind) && rest.byte_count > 0 &&
           rest.at[0] == '{' && json_scan(rest.at, rest.byte_count, NULL, 0, &end) == JSON_DONE &&
           member_is_last(rest, end);
}

/* filter_path leaves parts out of the answer, so that it cannot be put together again. */
static bool has_filter_path(struct slice query)
{
    static const char name[] = "filter_path";
    return query.byte_count > 0 && memmem(query.at, query.byte_count, name, sizeof name - 1) != NULL;
}

enum read_status bulk_read(struct gather *gather)
{
    const struct http1_head *head = &gather->request->head;
    struct bulk bulk = { .gather = gather, .body = gather->ret->body };
    if (is_bulk_path(gather->request))
        bulk.url_index = index_of_path(without_last_slashes(head->path));
    if (has_filter_path(head->query))
        gather->ret->is_uncuttable = true;
    for (struct range line; line_take(&bulk, &line);) {
        if (json_is_blank(bulk.body.at, line.end, line.begin))
            continue;
        enum read_status status = one_read(&bulk, line);
        if (status != READ_OK)
            return status;
    }
    /* A last line without its end is one that the target refuses. */
    return json_is_blank(bulk.body.at, bulk.body.byte_count, bulk.at) ? READ_OK : READ_NONE;
}
