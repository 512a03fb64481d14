/*
 * wish.h - the settings that identify() reads, as an operator would write them, for tests of deciders.
 */
#ifndef SINKONCE_WISH_H
#define SINKONCE_WISH_H

#include "request_of.h"
#include "settings.h"

/* What is NULL or 0 has its default. */
struct wish {
    const char *topic, *partition, *offset, *timestamp, *id, *id_format;
    enum identity_setting identity;
    enum shape_setting shape;
    const char *envelope, *separator, *prefix, *suffix;
    uint64_t records_max, body_bytes_max;
};

static char *wish_text(const char *text, const char *otherwise)
{
    char *copy = strdup(text != NULL ? text : otherwise);
    assert_non_null(copy);
    return copy;
}

/* Release with settings_release(). */
static void settings_of(const struct wish *wish, struct settings *settings)
{
#define TEXT(text) ((text) != NULL ? (text) : "")
    memset(settings, 0, sizeof *settings);
    assert_null(locator_list_parse(TEXT(wish->topic), false, &settings->topic));
    assert_null(locator_list_parse(TEXT(wish->partition), false, &settings->partition));
    assert_null(locator_list_parse(TEXT(wish->offset), false, &settings->offset));
    assert_null(locator_list_parse(TEXT(wish->timestamp), false, &settings->timestamp));
    assert_null(locator_list_parse(TEXT(wish->id), true, &settings->id));
    assert_null(id_format_parse(TEXT(wish->id_format), &settings->id_format));
    if (wish->envelope != NULL)
        assert_null(locator_pointer_parse(wish->envelope, &settings->envelope));
    settings->identity = wish->identity;
    settings->shape = wish->shape;
    settings->separator = wish_text(wish->separator, "\n");
    settings->prefix = wish_text(wish->prefix, "");
    settings->suffix = wish_text(wish->suffix, "");
    settings->records_max = wish->records_max != 0 ? wish->records_max : 100000;
    settings->body_bytes_max = wish->body_bytes_max != 0 ? wish->body_bytes_max : 16 << 20;
}

static void settings_release(struct settings *settings)
{
    locator_list_deinit(&settings->topic);
    locator_list_deinit(&settings->partition);
    locator_list_deinit(&settings->offset);
    locator_list_deinit(&settings->timestamp);
    locator_list_deinit(&settings->id);
    id_format_deinit(&settings->id_format);
    locator_list_deinit(&settings->envelope);
    free(settings->separator);
    free(settings->prefix);
    free(settings->suffix);
}

#endif
