/*
 * test_prober_context.c - each record's own values, whatever stands around it in the request.
 */
#include "batch_of.h"
#include <string.h>
#include "prober_context.h"
#include "store.h"

static struct probe_template url;
static struct batch batch;

/* An element that is TEXT, wherever it stands in BODY. */
static void add(const char *body, const char *text, int record, bool is_repeat)
{
    const struct element element = { .record = record, .is_repeat = is_repeat };
    const char *at = strstr(body, text);
    assert_non_null(at);
    batch_add(&batch, &element);
    batch.identified.body = slice_of_text(body);
    batch.identified.sites[batch.identified.site_count - 1].whole =
        (struct range){ (size_t)(at - body), (size_t)(at - body) + strlen(text) };
}

static void assert_value(struct slice context, const char *expected)
{
    char out[RECORD_CONTEXT_BYTES_MAX + 64];
    const struct probe_subject subject = { .context = context };
    if (expected == NULL) {
        assert_false(probe_template_render(&url, &subject, out, sizeof out));
        return;
    }
    assert_true(probe_template_render(&url, &subject, out, sizeof out));
    assert_string_equal(out + 1, expected);
}

static void test_each_element_gives_its_own_value_and_repeats_none(void **state)
{
    static const char body[] = "[{\"id\":\"a\"},{\"no\":1},{\"id\":\"other\"},{\"id\":\"c\"},{}]";
    (void)state;
    batch_init(&batch, SHAPE_IS_JSON_ARRAY);
    add(body, "{\"id\":\"a\"}", 0, false);
    add(body, "{\"no\":1}", UNKEYED, false);
    add(body, "{\"id\":\"other\"}", 0, true);
    add(body, "{\"id\":\"c\"}", 1, false);
    add(body, "{}", 2, false);
    struct slice *contexts = probe_contexts_new(&url, &batch.identified);
    assert_non_null(contexts);
    assert_value(contexts[0], "a");
    assert_value(contexts[1], "c");
    assert_value(contexts[2], NULL);
    free(contexts);
}

static void test_of_a_bulk_action_the_document_counts(void **state)
{
    static const char body[] =
        "{\"index\":{\"id\":\"no\"}}\n{\"id\":\"yes\"}\n{\"delete\":{\"id\":\"no\"}}\n";
    (void)state;
    batch_init(&batch, SHAPE_IS_BULK);
    add(body, "{\"index\":{\"id\":\"no\"}}\n{\"id\":\"yes\"}\n", 0, false);
    add(body, "{\"delete\":{\"id\":\"no\"}}\n", 1, false);
    struct slice *contexts = probe_contexts_new(&url, &batch.identified);
    assert_non_null(contexts);
    assert_value(contexts[0], "yes");
    assert_value(contexts[1], NULL);
    free(contexts);
}

static void test_many_long_values_stay_apart(void **state)
{
    static char body[BATCH_SITES_MAX * 300], text[300];
    char value[256];
    (void)state;
    batch_init(&batch, SHAPE_IS_NDJSON);
    body[0] = '\0';
    for (int i = 0; i < BATCH_SITES_MAX; i++) {
        snprintf(text, sizeof text, "{\"id\":\"%0200d\"}\n", i);
        strcat(body, text);
    }
    for (int i = 0; i < BATCH_SITES_MAX; i++) {
        snprintf(text, sizeof text, "{\"id\":\"%0200d\"}", i);
        add(body, text, i, false);
    }
    struct slice *contexts = probe_contexts_new(&url, &batch.identified);
    assert_non_null(contexts);
    for (int i = 0; i < BATCH_SITES_MAX; i++) {
        snprintf(value, sizeof value, "%0200d", i);
        assert_value(contexts[i], value);
    }
    free(contexts);
}

static int set_up(void **state)
{
    (void)state;
    return probe_template_parse("/{json:/id}", &url) == NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    probe_template_deinit(&url);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_element_gives_its_own_value_and_repeats_none),
        cmocka_unit_test(test_of_a_bulk_action_the_document_counts),
        cmocka_unit_test(test_many_long_values_stay_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
