/*
 * target_control.c - see target_control.h.
 */
#include "target_control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int control_fn(struct target_server *server, struct target_text query, FILE *out);

static int control_add(struct target_server *server, struct target_text query, FILE *out)
{
    const char *problem = target_rules_add(&server->rules, query);

    fprintf(out, "%s\n", problem != NULL ? problem : "ok");
    return problem != NULL ? 400 : 200;
}

static int control_clear(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_rules_clear(&server->rules);
    fputs("ok\n", out);
    return 200;
}

static int control_set(struct target_server *server, struct target_text query, FILE *out)
{
    target_rules_clear(&server->rules);
    return control_add(server, query, out);
}

static int control_stats(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_counts_print(server->counts, false, out);
    return 200;
}

static int control_counters(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_counts_print(server->counts, true, out);
    return 200;
}

static int control_count(struct target_server *server, struct target_text query, FILE *out)
{
    char key[512];

    snprintf(key, sizeof key, "%.*s", (int)(query.length < 500 ? query.length : 500), query.bytes);
    fprintf(out, "%llu\n", (unsigned long long)target_counts_of(server->counts, key));
    return 200;
}

struct held_list {
    FILE *out;
    bool has_any;
};

static void show_held(void *context, const char *key)
{
    struct held_list *list = context;

    fprintf(list->out, "%s\"%s\"", list->has_any ? "," : "", key);
    list->has_any = true;
}

static int control_held(struct target_server *server, struct target_text query, FILE *out)
{
    struct held_list list = { out, false };

    (void)query;
    fputs("[", out);
    target_server_held(server, show_held, &list);
    fputs("]\n", out);
    return 200;
}

static int control_faulted(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_counts_print_faulted(server->counts, out);
    return 200;
}

static int control_last(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    fwrite(server->last, 1, server->last_length, out);
    return 200;
}

static int control_refuse(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_listener_close(&server->writes);
    fputs("ok\n", out);
    return 200;
}

static int control_listen(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    bool is_open = target_listener_open(&server->writes);
    fputs(is_open ? "ok\n" : "cannot listen\n", out);
    return is_open ? 200 : 500;
}

static int control_drop(struct target_server *server, struct target_text query, FILE *out)
{
    (void)query;
    target_server_drop(server);
    fputs("ok\n", out);
    return 200;
}

static int control_reset(struct target_server *server, struct target_text query, FILE *out)
{
    target_counts_reset(server->counts);
    return control_clear(server, query, out);
}

static const struct {
    const char *path;
    control_fn *call;
} calls[] = {
    { "/set", control_set },       { "/add", control_add },           { "/clear", control_clear },
    { "/stats", control_stats },   { "/counters", control_counters }, { "/count", control_count },
    { "/held", control_held },     { "/faulted", control_faulted },   { "/last", control_last },
    { "/refuse", control_refuse }, { "/listen", control_listen },     { "/drop", control_drop },
    { "/reset", control_reset },
};

struct target_answer target_control(struct target_server *server, const struct target_request *request)
{
    const char *end = request->path.bytes + request->path.length;
    const char *mark = memchr(request->path.bytes, '?', request->path.length);
    struct target_text path = { request->path.bytes,
                                (size_t)((mark != NULL ? mark : end) - request->path.bytes) };
    struct target_text query = { mark != NULL ? mark + 1 : end, mark != NULL ? (size_t)(end - mark - 1) : 0 };
    char *body = NULL;
    size_t body_length = 0;
    FILE *out = open_memstream(&body, &body_length);
    int status = 404;

    if (out == NULL)
        abort();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (target_text_is(path, calls[i].path))
            status = calls[i].call(server, query, out);
    if (status == 404)
        fputs("no such call\n", out);
    fclose(out);
    struct target_answer answer = target_answer_text(status, body, body_length);
    free(body);
    return answer;
}
