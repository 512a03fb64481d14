/*
 * identify_header.c - see identify_header.h.
 */
#include "identify_header.h"

#include <assert.h>

static enum look field_look(const struct request *request, const char *lower_case_name,
                            struct slice *ret_text)
{
    enum look look = LOOK_ABSENT;
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http1_field *field = &request->head.fields[i];
        if (!http1_name_equals(field->name, lower_case_name))
            continue;
        if (look == LOOK_FOUND)
            return LOOK_BROKEN;
        look = LOOK_FOUND;
        *ret_text = field->value;
    }
    return look;
}

static enum look fragment_look(const struct request *request, const char *name, struct slice *ret_text)
{
    struct slice value;
    enum look look = field_look(request, name, &value);
    if (look != LOOK_FOUND)
        return look;
    const char *hash = value.byte_count > 0 ? memrchr(value.at, '#', value.byte_count) : NULL;
    if (hash == NULL)
        return LOOK_ABSENT;
    *ret_text = slice_of(hash + 1, (size_t)(value.at + value.byte_count - hash) - 1);
    return LOOK_FOUND;
}

/* Source: RFC 3986, 2.1.  False: a '%' without two digits, or it does not fit. */
static bool percent_decode(struct slice text, char out[], size_t out_bytes_max, size_t *ret_bytes)
{
    size_t byte_count = 0;
    for (size_t i = 0; i < text.byte_count; i++) {
        char c = text.at[i];
        if (c == '%') {
            int high = i + 2 < text.byte_count ? hex_digit(text.at[i + 1]) : -1;
            int low = i + 2 < text.byte_count ? hex_digit(text.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (byte_count == out_bytes_max)
            return false;
        out[byte_count++] = c;
    }
    *ret_bytes = byte_count;
    return true;
}

/* Does the name of a parameter, as sent, stand for NAME? */
static bool parameter_is(struct slice sent, const char *name)
{
    char decoded[512]; /* settings.h: a name is at most as long as a locator */
    size_t byte_count;
    return percent_decode(sent, decoded, sizeof decoded, &byte_count) &&
           slice_equals_text(slice_of(decoded, byte_count), name);
}

static enum look query_look(const struct request *request, const char *name, struct value *ret_value)
{
    enum look look = LOOK_ABSENT;
    struct slice rest = request->head.query;
    while (rest.byte_count > 0) {
        const char *cut = memchr(rest.at, '&', rest.byte_count);
        size_t byte_count = cut == NULL ? rest.byte_count : (size_t)(cut - rest.at);
        struct slice pair = slice_of(rest.at, byte_count);
        rest = cut == NULL ? slice_of(NULL, 0) : slice_of(cut + 1, rest.byte_count - byte_count - 1);
        const char *equals = pair.byte_count > 0 ? memchr(pair.at, '=', pair.byte_count) : NULL;
        size_t name_bytes = equals == NULL ? pair.byte_count : (size_t)(equals - pair.at);
        if (!parameter_is(slice_of(pair.at, name_bytes), name))
            continue;
        struct slice sent =
            equals == NULL ? slice_of(NULL, 0) : slice_of(equals + 1, pair.byte_count - name_bytes - 1);
        size_t value_bytes = 0;
        if (look == LOOK_FOUND ||
            !percent_decode(sent, ret_value->bytes, sizeof ret_value->bytes, &value_bytes))
            return LOOK_BROKEN;
        look = LOOK_FOUND;
        ret_value->text = slice_of(ret_value->bytes, value_bytes);
    }
    return look;
}

enum look head_look(const struct request *request, const struct locator *locator, struct value *ret_value)
{
    assert(locator->kind != LOCATOR_JSON);
    ret_value->is_number = false;
    switch (locator->kind) {
    case LOCATOR_HEADER:
        return field_look(request, locator->text, &ret_value->text);
    case LOCATOR_FRAGMENT:
        return fragment_look(request, locator->text, &ret_value->text);
    case LOCATOR_QUERY:
        return query_look(request, locator->text, ret_value);
    case LOCATOR_CONST:
        ret_value->text = slice_of_text(locator->text);
        return LOOK_FOUND;
    case LOCATOR_PATH:
        /* As sent: a decoded slash could make another path of it than the one that the target sees. */
        ret_value->text = request->head.path;
        return LOOK_FOUND;
    case LOCATOR_BULK_ID:
        /* Only an action of a bulk request has one. */
        return LOOK_ABSENT;
    case LOCATOR_JSON:
        break;
    }
    return LOOK_BROKEN;
}

/* AWS SigV4 need not send its hash header; webhook-signature is that of the Standard Webhooks specification; digests
 * are those of RFC 9530 and of the RFCs that it replaces. */
bool head_is_signed(const struct request *request)
{
    static const char *const names[] = { "x-amz-content-sha256", "webhook-signature", "content-md5", "digest",
                                         "content-digest",       "repr-digest",       "signature" };
    static const char scheme[] = "AWS4-";
    for (size_t i = 0; i < request->head.field_count; i++) {
        const struct http1_field *field = &request->head.fields[i];
        for (size_t name = 0; name < sizeof names / sizeof names[0]; name++)
            if (http1_name_equals(field->name, names[name]))
                return true;
        if (http1_name_equals(field->name, "authorization") && field->value.byte_count >= sizeof scheme - 1 &&
            memcmp(field->value.at, scheme, sizeof scheme - 1) == 0)
            return true;
    }
    return false;
}
