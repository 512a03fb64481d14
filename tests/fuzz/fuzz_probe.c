/*
 * fuzz_probe.c - any template of a probe's URL, any record, any rules and any answer: no record leaves its place in the
 * URL, and one answer never proves both.
 *
 * The input is six parts separated by zero bytes: the template, the rule for applied, the rule for absent, the topic, a
 * record's JSON and the body of an answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include "fuzz.h"
#include "http1.h"
#include "prober_judge.h"

enum { TEMPLATE, APPLIED, ABSENT, TOPIC, RECORD, ANSWER, PART_COUNT };
enum { CONTEXT_BYTES_MAX = 1024, URL_BYTES_MAX = 8192, VARIABLE_BYTES_MAX = 2300 };

static struct slice part_take(struct slice *rest)
{
    const char *end = rest->byte_count == 0 ? NULL : memchr(rest->at, '\0', rest->byte_count);
    struct slice part = slice_of(rest->at, end == NULL ? rest->byte_count : (size_t)(end - rest->at));
    size_t used = part.byte_count + (end != NULL);
    *rest = slice_of(rest->at + used, rest->byte_count - used);
    return part;
}

static size_t count_of(const char *text, const char *any)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += strchr(any, *text) != NULL;
    return count;
}

/* As many segments and parameters as the template has, whatever the record says. */
static void check_place(const struct probe_template *url, const char *rendered)
{
    char plain[URL_BYTES_MAX] = "";
    for (size_t i = 0; i < url->piece_count; i++)
        if (url->pieces[i].kind == PROBE_TEXT)
            strncat(plain, url->pieces[i].text, sizeof plain - strlen(plain) - 1);
    assert(http1_target_is_valid(slice_of_text(rendered)));
    assert(count_of(rendered, "/") == count_of(plain, "/") &&
           count_of(rendered, "?") == count_of(plain, "?"));
    assert(count_of(rendered, "&=;#") == count_of(plain, "&=;#"));
}

static void check_template(const struct probe_template *url, struct slice topic, struct slice json)
{
    char context[CONTEXT_BYTES_MAX], rendered[URL_BYTES_MAX];
    size_t context_bytes = 0;
    probe_context_write(url, json, context, sizeof context, &context_bytes);
    assert(context_bytes <= sizeof context && (context_bytes == 0 || context[context_bytes - 1] == '\n'));
    const struct probe_subject subject = { .scope = slice_of_text("a/b?c"),
                                           .topic = topic,
                                           .context = slice_of(context, context_bytes),
                                           .partition = INT32_MAX,
                                           .offset = INT64_MAX };
    if (probe_template_render(url, &subject, rendered, sizeof rendered))
        check_place(url, rendered);
    struct probe_subject bare = subject; /* what was kept was kept for nothing, or for another template */
    bare.context = json;
    if (probe_template_render(url, &bare, rendered, sizeof rendered))
        assert(strlen(rendered) < sizeof rendered);
}

static void check_rules(const struct settings *settings, struct slice body)
{
    static const int statuses[] = { 200, 204, 299, 300, 404, 410, 500 };
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        enum probe_answer answer = probe_judge(settings, statuses[i], body);
        enum probe_answer nothing = probe_judge(settings, statuses[i], slice_of("", 0));
        bool is_by_status = settings->probe_applied.kind == PROBE_RULE_STATUS &&
                            settings->probe_absent.kind == PROBE_RULE_STATUS;
        assert(!is_by_status || answer == nothing);
        assert(is_by_status || statuses[i] < 300 ||
               answer == nothing); /* no JSON rule looks into an error page */
    }
}

static char *variable_make(const char *name, struct slice value)
{
    char variable[VARIABLE_BYTES_MAX];
    snprintf(variable, sizeof variable, "SINKONCE_%s=%.*s", name,
             (int)(value.byte_count < 2100 ? value.byte_count : 2100), value.at);
    char *copy = strdup(variable);
    assert(copy != NULL);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct slice rest = slice_of((const char *)input, input_bytes), parts[PART_COUNT];
    struct settings settings;
    struct settings_mistakes mistakes;
    for (size_t i = 0; i < PART_COUNT; i++)
        parts[i] = part_take(&rest);
    char *environment[] = { variable_make("TARGET", slice_of_text("http://127.0.0.1:9")),
                            variable_make("IN_DOUBT", slice_of_text("probe")),
                            variable_make("PROBE_URL", parts[TEMPLATE]),
                            variable_make("PROBE_APPLIED", parts[APPLIED]),
                            variable_make("PROBE_ABSENT", parts[ABSENT]),
                            NULL };
    if (settings_read(environment, &settings, &mistakes)) {
        check_template(&settings.probe_url, parts[TOPIC], parts[RECORD]);
        check_rules(&settings, parts[ANSWER]);
    }
    settings_mistakes_deinit(&mistakes);
    settings_deinit(&settings);
    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    return 0;
}
