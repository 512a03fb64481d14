/*
 * prober_template.c - the URL of a probe: taken apart, filled in, and what of a record it needs.
 *
 * A decider.  The values of a record are taken while its body is there and kept with its intent: a line with the
 * pointers' fingerprint, then one line a value, percent-encoded.  After the setting has changed the fingerprint is
 * another, and what was kept for the old one is not put into the new one.
 *
 * Source: RFC 3986, 2.1 to 2.4 (percent-encoding), 3.3 and 3.4 (path and query), 5.2.4 (why no value is "." or "..").
 */
#include "probe.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "json_scan.h"
#include "json_string.h"
#include "settings_url.h"

static const char no_memory[] = "could not be kept: out of memory";

struct out {
    char *at;
    size_t bytes, bytes_max;
    bool is_full;
};

static void put(struct out *out, const char *bytes, size_t count)
{
    out->is_full = out->is_full || count > out->bytes_max - out->bytes;
    if (out->is_full)
        return;
    memcpy(out->at + out->bytes, bytes, count);
    out->bytes += count;
}

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void put_encoded(struct out *out, struct slice value)
{
    for (size_t i = 0; i < value.byte_count; i++) {
        char escape[4];
        snprintf(escape, sizeof escape, "%%%02X", (unsigned char)value.at[i]);
        put(out, is_unreserved(value.at[i]) ? &value.at[i] : escape, is_unreserved(value.at[i]) ? 1 : 3);
    }
}

/* ---- the setting ---------------------------------------------------------------------------------------------- */

static bool piece_add(struct probe_template *url, enum probe_piece_kind kind, struct slice text)
{
    struct probe_piece *piece = &url->pieces[url->piece_count++];
    piece->kind = kind;
    piece->text = kind == PROBE_TEXT ? strndup(text.at, text.byte_count) : NULL;
    return kind != PROBE_TEXT || piece->text != NULL;
}

/* The same pointer twice is one value. */
static const char *pointer_add(struct probe_template *url, struct slice text)
{
    char pointer[256];
    struct probe_piece *piece = &url->pieces[url->piece_count - 1];
    if (text.byte_count >= sizeof pointer)
        return "has a JSON pointer that is too long";
    memcpy(pointer, text.at, text.byte_count);
    pointer[text.byte_count] = '\0';
    for (piece->pointer = 0; piece->pointer < url->pointer_count; piece->pointer++) {
        if (strcmp(url->pointers[piece->pointer].items[0].text, pointer) == 0)
            return NULL;
    }
    if (url->pointer_count == PROBE_POINTERS_MAX)
        return "must have at most 4 different JSON pointers";
    return locator_pointer_parse(pointer, &url->pointers[url->pointer_count++]);
}

static const char *placeholder_add(struct probe_template *url, struct slice name)
{
    static const struct {
        const char *name;
        enum probe_piece_kind kind;
    } names[] = { { "topic", PROBE_TOPIC },
                  { "partition", PROBE_PARTITION },
                  { "offset", PROBE_OFFSET },
                  { "scope", PROBE_SCOPE } };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (slice_equals_text(name, names[i].name))
            return piece_add(url, names[i].kind, name) ? NULL : no_memory;
    }
    if (name.byte_count < 6 || memcmp(name.at, "json:/", 6) != 0)
        return "has a placeholder that is not one of {topic} {partition} {offset} {scope} {json:/pointer}";
    return piece_add(url, PROBE_JSON, name) ? pointer_add(url, slice_of(name.at + 5, name.byte_count - 5))
                                            : no_memory;
}

/* Path and query. */
static const char *pieces_parse(const char *text, struct probe_template *url)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "{}");
        const char *end = text[plain] == '{' ? strchr(text + plain, '}') : NULL;
        const char *wrong = NULL;
        if (text[plain] != '\0' && end == NULL)
            return "has a brace without its other one";
        if (url->piece_count + 2 > PROBE_PIECES_MAX)
            return "has too many placeholders";
        if (plain > 0 && !piece_add(url, PROBE_TEXT, slice_of(text, plain)))
            return no_memory;
        text += plain;
        if (end == NULL)
            break;
        wrong = placeholder_add(url, slice_of(text + 1, (size_t)(end - text) - 1));
        if (wrong != NULL)
            return wrong;
        text = end + 1;
    }
    return NULL;
}

static bool has_record(const struct probe_template *url)
{
    for (size_t i = 0; i < url->piece_count; i++) {
        if (url->pieces[i].kind == PROBE_OFFSET || url->pieces[i].kind == PROBE_JSON)
            return true;
    }
    return false;
}

static const char *base_check(const char *base)
{
    struct target_url parsed = { 0 };
    const char *wrong = *base == '\0' ? NULL : target_url_parse(base, &parsed);
    target_url_deinit(&parsed);
    return wrong;
}

const char *probe_template_parse(const char *text, struct probe_template *ret)
{
    const char *mark = text[0] == '/' ? NULL : strstr(text, "://");
    const char *path = text[0] == '/' ? text : mark == NULL ? NULL : mark + 3 + strcspn(mark + 3, "/?#");
    const char *wrong;
    *ret = (struct probe_template){ 0 };
    if (path == NULL)
        return "must begin with http://, https:// or the / of a path at the target";
    if (memchr(text, '{', (size_t)(path - text)) != NULL)
        return "must not have a placeholder in its host: a record would choose who is asked";
    for (const char *c = path; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || strchr("\"<>\\^`|#", *c) != NULL)
            return "must not have a fragment, spaces or characters that belong percent-encoded into a URL";
    }
    ret->text = strdup(text);
    ret->base = strndup(text, (size_t)(path - text));
    if (ret->text == NULL || ret->base == NULL)
        return no_memory;
    wrong = base_check(ret->base);
    if (wrong == NULL && *path != '/')
        wrong = "must have a path";
    if (wrong == NULL)
        wrong = pieces_parse(path, ret);
    if (wrong == NULL && !has_record(ret))
        wrong = "must have {offset} or a {json:/pointer}, or it asks the same for every record";
    return wrong;
}

void probe_template_deinit(struct probe_template *url)
{
    for (size_t i = 0; i < url->piece_count; i++)
        free(url->pieces[i].text);
    for (size_t i = 0; i < url->pointer_count; i++)
        locator_list_deinit(&url->pointers[i]);
    free(url->text);
    free(url->base);
    *url = (struct probe_template){ .text = NULL };
}

/* ---- values of a record ------------------------------------------------------------------------------------------ */

/* FNV-1a: it only has to differ when the setting does. */
static uint32_t fingerprint(const struct probe_template *url)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < url->pointer_count; i++) {
        const char *text = url->pointers[i].items[0].text;
        for (size_t at = 0; at <= strlen(text); at++)
            hash = (hash ^ (unsigned char)text[at]) * 16777619u;
    }
    return hash;
}

/* False: there is nothing that could stand in a URL for this record alone.  An empty value would ask for the whole
 * list, dots for the folder above. */
static bool value_read(const struct json_want *want, char room[], struct slice *ret_value)
{
    size_t bytes = 0;
    if (want->is_ambiguous)
        return false;
    switch ((int)want->kind) {
    case JSON_IS_STRING:
        if (!json_string_copy(want->text, room, PROBE_VALUE_BYTES_MAX, &bytes))
            return false;
        *ret_value = slice_of(room, bytes);
        break;
    case JSON_IS_NUMBER:
    case JSON_IS_TRUE:
    case JSON_IS_FALSE:
        *ret_value = want->text;
        break;
    default:
        return false;
    }
    return ret_value->byte_count > 0 && ret_value->byte_count <= PROBE_VALUE_BYTES_MAX &&
           !slice_equals_text(*ret_value, ".") && !slice_equals_text(*ret_value, "..");
}

void probe_context_write(const struct probe_template *url, struct slice json, char out_bytes[],
                         size_t out_bytes_max, size_t *ret_bytes)
{
    struct json_want wants[PROBE_POINTERS_MAX] = { { .token_count = 0 } };
    struct out out = { .at = out_bytes, .bytes_max = out_bytes_max };
    char head[16], room[PROBE_VALUE_BYTES_MAX];
    size_t end = 0;
    for (size_t i = 0; i < url->pointer_count; i++) {
        wants[i].tokens = url->pointers[i].items[0].tokens;
        wants[i].token_count = url->pointers[i].items[0].token_count;
    }
    *ret_bytes = 0;
    if (url->pointer_count == 0 ||
        json_scan(json.at, json.byte_count, wants, url->pointer_count, &end) != JSON_DONE ||
        !json_is_blank(json.at, json.byte_count, end))
        return;
    snprintf(head, sizeof head, "%08" PRIx32 "\n", fingerprint(url));
    put(&out, head, strlen(head));
    for (size_t i = 0; i < url->pointer_count; i++) {
        struct slice value;
        if (value_read(&wants[i], room, &value))
            put_encoded(&out, value);
        put(&out, "\n", 1);
    }
    *ret_bytes = out.is_full ? 0 : out.bytes;
}

/* Line INDEX of what was kept, without its end; nothing when it is not there. */
static struct slice context_line(struct slice context, size_t index)
{
    for (;; index--) {
        const char *end = context.byte_count == 0 ? NULL : memchr(context.at, '\n', context.byte_count);
        if (end == NULL)
            return slice_of("", 0);
        struct slice line = slice_of(context.at, (size_t)(end - context.at));
        if (index == 0)
            return line;
        context = slice_of(end + 1, context.byte_count - line.byte_count - 1);
    }
}

static bool is_context_of(const struct probe_template *url, struct slice context)
{
    char head[16];
    snprintf(head, sizeof head, "%08" PRIx32, fingerprint(url));
    return slice_equals_text(context_line(context, 0), head);
}

static void put_number(struct out *out, int64_t number)
{
    char digits[24];
    put(out, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, number));
}

bool probe_template_render(const struct probe_template *url, const struct probe_subject *subject,
                           char out_bytes[], size_t out_bytes_max)
{
    struct out out = { .at = out_bytes, .bytes_max = out_bytes_max };
    if (url->pointer_count > 0 && !is_context_of(url, subject->context))
        return false;
    for (size_t i = 0; i < url->piece_count; i++) {
        const struct probe_piece *piece = &url->pieces[i];
        if (piece->kind == PROBE_TEXT) {
            put(&out, piece->text, strlen(piece->text));
        } else if (piece->kind == PROBE_TOPIC || piece->kind == PROBE_SCOPE) {
            put_encoded(&out, piece->kind == PROBE_TOPIC ? subject->topic : subject->scope);
        } else if (piece->kind == PROBE_JSON) {
            struct slice value = context_line(subject->context, 1 + piece->pointer);
            put(&out, value.at, value.byte_count);
            if (value.byte_count == 0)
                return false;
        } else {
            put_number(&out, piece->kind == PROBE_PARTITION ? subject->partition : subject->offset);
        }
    }
    put(&out, "", 1);
    return !out.is_full;
}
