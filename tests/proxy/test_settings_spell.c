/*
 * test_settings_spell.c - which name may have been meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "settings_spell.h"

static const char *nearest(const char *wanted)
{
    static const char *const names[] = { "check", "config", "health", "serve", "MAX_BODY", "MAX_HEAD" };
    struct spelling spelling = spelling_of(wanted);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        spelling_offer(&spelling, names[i]);
    return spelling.nearest == NULL ? "none" : spelling.nearest;
}

static void test_slips_lead_to_the_name_that_was_meant(void **state)
{
    (void)state;
    assert_string_equal(nearest("chekc"), "check");   /* two letters changed places */
    assert_string_equal(nearest("chck"), "check");    /* one is missing */
    assert_string_equal(nearest("serrve"), "serve");  /* one too many */
    assert_string_equal(nearest("heelth"), "health"); /* another */
    assert_string_equal(nearest("max_bdy"), "MAX_BODY");
    assert_string_equal(nearest("MAX_HEAT"), "MAX_HEAD");
}

static void test_another_word_leads_nowhere(void **state)
{
    char longest[200];
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_string_equal(nearest("start"), "none");
    assert_string_equal(nearest("x"), "none");
    assert_string_equal(nearest(""), "none");
    assert_string_equal(nearest(longest), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slips_lead_to_the_name_that_was_meant),
        cmocka_unit_test(test_another_word_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
