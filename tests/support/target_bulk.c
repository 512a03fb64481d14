/*
 * target_bulk.c - see target_bulk.h.  A search, not a parser: it reads what the tests send and judges nothing.
 */
#include "target_bulk.h"

#include <ctype.h>
#include <string.h>

static const char success[] =
    "\"_version\":1,\"result\":\"%s\",\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},"
    "\"_seq_no\":%zu,\"_primary_term\":1,\"status\":%d}}";
static const char failure[] =
    "\"status\":429,\"error\":{\"type\":\"es_rejected_execution_exception\",\"reason\":\"the queue "
    "is full\"}}}";

struct target_text target_field_find(struct target_text text, const char *quoted_name)
{
    const char *end = text.bytes + text.length;
    const char *at = memmem(text.bytes, text.length, quoted_name, strlen(quoted_name));
    if (at == NULL)
        return (struct target_text){ end, 0 };
    at += strlen(quoted_name);
    while (at < end && (isspace((unsigned char)*at) || *at == ':' || *at == '"'))
        at++;
    const char *from = at;
    while (at < end && strchr("\",}] \t\r\n", *at) == NULL)
        at++;
    return (struct target_text){ from, (size_t)(at - from) };
}

bool target_is_bulk(const struct target_request *request)
{
    static const char name[] = "/_bulk";
    size_t length = sizeof name - 1;
    const char *mark = memchr(request->path.bytes, '?', request->path.length);
    size_t path_length = mark != NULL ? (size_t)(mark - request->path.bytes) : request->path.length;

    return (target_text_is(request->method, "POST") || target_text_is(request->method, "PUT")) &&
           path_length >= length && memcmp(request->path.bytes + path_length - length, name, length) == 0;
}

/* The line at *AT without its end; *AT moves behind it. */
static struct target_text line_next(const char **at, const char *end)
{
    const char *from = *at;
    const char *stop = memchr(from, '\n', (size_t)(end - from));

    *at = stop != NULL ? stop + 1 : end;
    return (struct target_text){ from, (size_t)((stop != NULL ? stop : end) - from) };
}

bool target_action_next(const char **at, const char *end, struct target_action *ret_action)
{
    if (*at == end)
        return false;
    ret_action->line = ret_action->source = line_next(at, end);
    ret_action->name = target_field_find(ret_action->line, "{");
    if (ret_action->name.length == 0)
        return false;
    if (!target_text_is(ret_action->name, "delete"))
        ret_action->source = line_next(at, end);
    return true;
}

size_t target_action_count(const struct target_request *request)
{
    struct target_action action;
    const char *at = request->body.bytes;
    size_t count = 0;

    while (target_action_next(&at, request->body.bytes + request->body.length, &action))
        count++;
    return count;
}

static void print_text(FILE *out, const char *name, struct target_text value)
{
    fprintf(out, "\"%s\":\"%.*s\",", name, (int)value.length, value.bytes);
}

static void print_item(FILE *out, const struct target_action *action, size_t number, bool is_applied)
{
    bool is_delete = target_text_is(action->name, "delete");
    bool is_update = target_text_is(action->name, "update");

    fprintf(out, "%s{\"%.*s\":{", number == 0 ? "" : ",", (int)action->name.length, action->name.bytes);
    print_text(out, "_index", target_field_find(action->line, "\"_index\""));
    print_text(out, "_type", (struct target_text){ "_doc", 4 });
    print_text(out, "_id", target_field_find(action->line, "\"_id\""));
    if (is_applied)
        fprintf(out, success,
                is_delete   ? "deleted"
                : is_update ? "updated"
                            : "created",
                number, is_delete || is_update ? 200 : 201);
    else
        fputs(failure, out);
}

void target_bulk_print(const struct target_request *request, size_t applied, FILE *out)
{
    struct target_action action;
    const char *at = request->body.bytes;
    size_t number = 0;

    fprintf(out, "{\"took\":1,\"errors\":%s,\"items\":[",
            applied < target_action_count(request) ? "true" : "false");
    while (target_action_next(&at, request->body.bytes + request->body.length, &action)) {
        print_item(out, &action, number, number < applied);
        number++;
    }
    fputs("]}", out);
}
