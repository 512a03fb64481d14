/*
 * test_page.c - the page's files in the binary, and what a browser may say that it has of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "page.h"

static const struct page_file *find(const char *path)
{
    return page_find(slice_of_text(path));
}

static void test_each_file_is_found_by_its_whole_path(void **state)
{
    (void)state;
    assert_non_null(find("/"));
    assert_non_null(find("/app.js"));
    assert_non_null(find("/app.css"));
    assert_null(find(""));
    assert_null(find("/app"));
    assert_null(find("/app.js/"));
    assert_null(find("/index.html"));
}

static void test_a_file_is_there_with_its_last_byte(void **state)
{
    static const char end[] = "</html>\n";
    const struct page_file *file = find("/");
    (void)state;
    assert_true(file->byte_count > sizeof end);
    assert_memory_equal(file->bytes + file->byte_count - (sizeof end - 1), end, sizeof end - 1);
}

static void test_tags_differ_between_files(void **state)
{
    (void)state;
    assert_string_not_equal(find("/")->etag, find("/app.js")->etag);
    assert_string_not_equal(find("/app.css")->etag, find("/app.js")->etag);
}

static void test_a_tag_is_found_in_any_list_that_names_it(void **state)
{
    static const struct {
        const char *value;
        bool is_named;
    } rows[] = { { "\"ab\"", true },
                 { "W/\"ab\"", true },
                 { "\"x\", \"ab\"", true },
                 { "\"x\",W/\"ab\" ", true },
                 { "*", true },
                 { "\t*", true },
                 { "", false },
                 { "ab", false },
                 { "\"ab", false },
                 { "\"abc\"", false },
                 { "w/\"ab\"", false },
                 { ",,", false },
                 { "W/", false },
                 { "\"a,\"ab\"b\"", false } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (page_etag_matches(slice_of_text(rows[i].value), "\"ab\"") != rows[i].is_named)
            fail_msg("wrong for %s", rows[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_file_is_found_by_its_whole_path),
        cmocka_unit_test(test_a_file_is_there_with_its_last_byte),
        cmocka_unit_test(test_tags_differ_between_files),
        cmocka_unit_test(test_a_tag_is_found_in_any_list_that_names_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
