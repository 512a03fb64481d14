/*
 * test_prober_judge.c - only a clear answer to a probe counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include "prober_judge.h"
#include "settings_reading.h"

struct row {
    int status;
    const char *body;
    enum probe_answer answer;
};

static void judge_all(const char *applied, const char *absent, const struct row rows[], size_t row_count)
{
    struct reading_result result;
    READ(&result, TARGET, applied, absent);
    assert_true(result.is_good);
    for (size_t i = 0; i < row_count; i++) {
        enum probe_answer answer = probe_judge(&result.settings, rows[i].status, slice_of_text(rows[i].body));
        if (answer != rows[i].answer)
            fail_msg("%s %s: %d with '%s' is %d", applied, absent, rows[i].status, rows[i].body, (int)answer);
    }
    release(&result);
}

static void test_statuses_decide_and_the_rest_is_unclear(void **state)
{
    (void)state;
    const struct row rows[] = {
        { 200, "", PROBE_SAYS_APPLIED }, { 404, "", PROBE_SAYS_ABSENT }, { 201, "", PROBE_UNCLEAR },
        { 302, "", PROBE_UNCLEAR },      { 401, "", PROBE_UNCLEAR },     { 410, "", PROBE_UNCLEAR },
        { 429, "", PROBE_UNCLEAR },      { 500, "", PROBE_UNCLEAR },     { 503, "", PROBE_UNCLEAR },
    };
    judge_all("SINKONCE_PROBE_METHOD=GET", "SINKONCE_PROBE_DELAY=5s", rows, sizeof rows / sizeof rows[0]);
}

static void test_json_that_is_something_says_yes_and_what_is_nothing_says_no(void **state)
{
    (void)state;
    const struct row rows[] = {
        { 200, "{\"a\":{\"b\":1}}", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":\"x\"}}", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":true}}", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":[0]}}", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":{\"c\":null}}}", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":0.01}}", PROBE_SAYS_APPLIED },
        { 299, "  {\"a\":{\"b\":1}}\n", PROBE_SAYS_APPLIED },
        { 200, "{\"a\":{\"b\":0}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":-0.0e5}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":\"\"}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":false}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":null}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":[ ]}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":{\"b\":{}}}", PROBE_SAYS_ABSENT },
        { 200, "{\"a\":1}", PROBE_SAYS_ABSENT },
        { 200, "{}", PROBE_SAYS_ABSENT },
    };
    judge_all("SINKONCE_PROBE_APPLIED=json:/a/b", "SINKONCE_PROBE_ABSENT=no-json:/a/b", rows,
              sizeof rows / sizeof rows[0]);
}

static void test_what_is_no_whole_json_of_a_2xx_proves_nothing(void **state)
{
    (void)state;
    const struct row rows[] = {
        { 500, "{\"error\":\"x\"}", PROBE_UNCLEAR },
        { 404, "{}", PROBE_UNCLEAR },
        { 302, "{\"a\":{\"b\":1}}", PROBE_UNCLEAR },
        { 200, "", PROBE_UNCLEAR },
        { 200, "<html>", PROBE_UNCLEAR },
        { 200, "{\"a\":{\"b\":1}", PROBE_UNCLEAR },
        { 200, "{\"a\":{\"b\":1}} {}", PROBE_UNCLEAR },
        { 200, "{\"a\":1,\"a\":{\"b\":1}}", PROBE_UNCLEAR },
    };
    judge_all("SINKONCE_PROBE_APPLIED=json:/a/b", "SINKONCE_PROBE_ABSENT=no-json:/a/b", rows,
              sizeof rows / sizeof rows[0]);
}

static void test_both_rules_at_once_prove_nothing(void **state)
{
    (void)state;
    const struct row rows[] = {
        { 200, "{\"deleted\":true}", PROBE_UNCLEAR },
        { 200, "{\"deleted\":false}", PROBE_SAYS_APPLIED },
        { 201, "{\"deleted\":true}", PROBE_SAYS_ABSENT },
        { 201, "{}", PROBE_UNCLEAR },
    };
    judge_all("SINKONCE_PROBE_APPLIED=status:200", "SINKONCE_PROBE_ABSENT=json:/deleted", rows,
              sizeof rows / sizeof rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses_decide_and_the_rest_is_unclear),
        cmocka_unit_test(test_json_that_is_something_says_yes_and_what_is_nothing_says_no),
        cmocka_unit_test(test_what_is_no_whole_json_of_a_2xx_proves_nothing),
        cmocka_unit_test(test_both_rules_at_once_prove_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
