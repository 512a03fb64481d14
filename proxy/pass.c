/*
 * pass.c - the rules behind pass.h, one predicate each.
 */
#include "pass.h"

#include <stdio.h>

#include "bearer.h"

static bool name_is(const struct http1_field *field, const char *lower_case_name)
{
    return http1_name_equals(field->name, lower_case_name);
}

/* Content-Length is made anew, Expect was answered here, Host is added by the target client. */
static bool is_made_anew(const struct http1_field *field)
{
    return name_is(field, "content-length") || name_is(field, "expect") || name_is(field, "host");
}

/* A client must not speak in our name: sinkonce-* and the key field are ours. */
static bool is_ours(const struct http1_field *field, const struct settings *settings)
{
    if (field->name.byte_count >= 9 && http1_name_equals(slice_of(field->name.at, 9), "sinkonce-"))
        return true;
    return settings->key_header[0] != '\0' &&
           slice_equals_caseless(field->name, slice_of_text(settings->key_header));
}

static bool is_stripped(const struct http1_field *field, const struct identified *identified,
                        const struct settings *settings)
{
    if (identified == NULL || !settings->is_stripped)
        return false;
    for (size_t i = 0; i < identified->strip_header_count; i++) {
        if (slice_equals_caseless(field->name, slice_of_text(identified->strip_headers[i])))
            return true;
    }
    return false;
}

/* It is replaced by ours, or it opened our own door and is nothing to the target.  A connector may have put the token into
 * both fields. */
static bool is_authorization_ours(const struct http1_field *field, const struct http1_head *head,
                                  const struct settings *settings)
{
    return settings->authorization[0] != '\0' ||
           (settings->client_token[0] != '\0' &&
            (bearer_is_in_authorization(head) || bearer_is_right(field, settings->client_token)));
}

static bool is_passed(const struct http1_field *field, const struct request *request,
                      const struct identified *identified, const struct settings *settings)
{
    const struct http1_head *head = &request->head;
    if (is_made_anew(field) || is_ours(field, settings) || is_stripped(field, identified, settings))
        return false;
    if (name_is(field, "authorization") && is_authorization_ours(field, head, settings))
        return false;
    return !http1_field_is_hop_by_hop(field->name, head->fields, head->field_count);
}

static void add(struct pass *pass, const char *name, const char *value)
{
    if (pass->field_count < PASS_FIELDS_MAX)
        pass->fields[pass->field_count++] = http1_field_of(name, value);
}

static bool max_forwards(const struct request *request, uint64_t *ret_count)
{
    const struct http1_field *field =
        http1_field_find(request->head.fields, request->head.field_count, "max-forwards");
    if (request->head.method != HTTP1_OPTIONS || field == NULL || field->value.byte_count == 0 ||
        field->value.byte_count > 9)
        return false;
    *ret_count = 0;
    for (size_t i = 0; i < field->value.byte_count; i++) {
        if (field->value.at[i] < '0' || field->value.at[i] > '9')
            return false;
        *ret_count = *ret_count * 10 + (uint64_t)(field->value.at[i] - '0');
    }
    return true;
}

bool pass_ends_here(const struct request *request)
{
    uint64_t count = 0;
    return max_forwards(request, &count) && count == 0;
}

static void host_choose(struct pass *pass, const struct request *request, const struct settings *settings)
{
    pass->host = slice_of("", 0);
    if (strcmp(settings->host_header, "preserve") == 0)
        pass->host = request->head.host;
    else if (strcmp(settings->host_header, "target") != 0)
        pass->host = slice_of_text(settings->host_header);
}

void pass_key_add(struct pass *pass, const struct record *record, const struct settings *settings)
{
    if (settings->key_header[0] == '\0')
        return;
    const struct record_key *key = &record->key;
    snprintf(pass->key, sizeof pass->key, "%s/%.*s/%d/%lld", settings->scope, (int)key->topic.byte_count,
             key->topic.at, (int)key->partition, (long long)key->offset);
    add(pass, settings->key_header, pass->key);
}

void pass_drop(struct pass *pass, const char *lower_case_name)
{
    size_t kept = 0;
    for (size_t i = 0; i < pass->field_count; i++) {
        if (!name_is(&pass->fields[i], lower_case_name))
            pass->fields[kept++] = pass->fields[i];
    }
    pass->field_count = kept;
}

void pass_build(struct pass *pass, const struct request *request, const struct identified *identified,
                const struct settings *settings, const char *via)
{
    const struct http1_head *head = &request->head;
    uint64_t forwards = 0;
    bool is_counted = max_forwards(request, &forwards);
    pass->field_count = 0;
    for (size_t i = 0; i < head->field_count; i++) {
        const struct http1_field *field = &head->fields[i];
        if (is_counted && name_is(field, "max-forwards")) {
            snprintf(pass->max_forwards, sizeof pass->max_forwards, "%llu", (unsigned long long)forwards - 1);
            pass->fields[pass->field_count++] =
                (struct http1_field){ field->name, slice_of_text(pass->max_forwards) };
        } else if (is_passed(field, request, identified, settings)) {
            pass->fields[pass->field_count++] = *field;
        }
    }
    if (settings->authorization[0] != '\0')
        add(pass, "Authorization", settings->authorization);
    if (identified != NULL && identified->record_count == 1)
        pass_key_add(pass, &identified->records[0], settings);
    if (via != NULL)
        add(pass, "Via", via);
    host_choose(pass, request, settings);
}

bool pass_is_loop(const struct request *request, const char *via)
{
    const char *pseudonym = strchr(via, ' ');
    struct slice own = slice_of_text(pseudonym == NULL ? via : pseudonym + 1);
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http1_field *field = &request->head.fields[i];
        if (name_is(field, "via") &&
            memmem(field->value.at, field->value.byte_count, own.at, own.byte_count) != NULL)
            return true;
    }
    return false;
}
