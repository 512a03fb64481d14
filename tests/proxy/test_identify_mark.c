/*
 * test_identify_mark.c - identity marks: the same for what stays of a record, wherever its coordinates stood and however
 * large it is.
 */
#include "identify_mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RECORD_BYTES_MAX = 20000 };

static const char coordinates[] = "\"__offset\":41";

/* A record with its coordinates before or behind its value. */
static record_mark mark_of(size_t filling_bytes, char filler, bool is_first)
{
    static char record[RECORD_BYTES_MAX + 100], filling[RECORD_BYTES_MAX];
    struct finding finding = { 0 };
    record_mark mark;
    memset(filling, filler, filling_bytes);
    filling[filling_bytes] = '\0';
    if (is_first)
        snprintf(record, sizeof record, "{%s,\"v\":\"%s\"}", coordinates, filling);
    else
        snprintf(record, sizeof record, "{\"v\":\"%s\",%s}", filling, coordinates);
    const char *member = strstr(record, coordinates);
    assert_non_null(member);
    finding.members[0] = slice_of(member, strlen(coordinates));
    finding.member_count = 1;
    assert_true(mark_make(IDENTITY_AUTO, slice_of_text(record), &finding, &mark));
    return mark;
}

static void test_the_place_of_the_coordinates_makes_no_difference(void **state)
{
    static const size_t sizes[] = { 1, 300, 4000, 4096, 4200, 15000 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        record_mark first = mark_of(sizes[i], 'a', true);
        assert_true(first != MARK_NONE);
        assert_true(mark_of(sizes[i], 'a', false) == first);
        assert_true(mark_of(sizes[i], 'b', true) != first);
    }
}

static void test_a_time_stands_for_the_record_unless_its_body_is_asked_for(void **state)
{
    struct finding early = { .has_timestamp = true, .timestamp_ms = 1000 },
                   late = { .has_timestamp = true, .timestamp_ms = 1001 }, none = { 0 };
    const struct slice one = slice_of_text("one"), other = slice_of_text("other"), empty = slice_of("", 0);
    record_mark a, b;
    (void)state;
    assert_true(mark_make(IDENTITY_AUTO, one, &early, &a));
    assert_true(mark_make(IDENTITY_AUTO, other, &early, &b));
    assert_true(a == b && a != MARK_NONE);
    assert_true(mark_make(IDENTITY_TIMESTAMP, one, &late, &b));
    assert_true(a != b);
    assert_true(mark_make(IDENTITY_TIMESTAMP, one, &none, &b));
    assert_true(b == MARK_NONE);
    assert_true(mark_make(IDENTITY_BODY, one, &early, &a) && mark_make(IDENTITY_BODY, one, &late, &b));
    assert_true(a == b && a != MARK_NONE);
    assert_true(mark_make(IDENTITY_OFF, one, &early, &a));
    assert_true(a == MARK_NONE);
    assert_true(mark_make(IDENTITY_AUTO, empty, &none, &a));
    assert_true(a != MARK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_place_of_the_coordinates_makes_no_difference),
        cmocka_unit_test(test_a_time_stands_for_the_record_unless_its_body_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
