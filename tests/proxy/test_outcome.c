/*
 * test_outcome.c - the rows of outcome.cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "outcome.h"

static void set_range(struct status_set *set, int low, int high)
{
    for (int status = low; status <= high; status++)
        set->bits[status / 64] |= UINT64_C(1) << (status % 64);
}

static void settings_fill(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    set_range(&settings->applied_status, 200, 299);
    set_range(&settings->applied_status, 409, 409);
    set_range(&settings->not_applied_status, 300, 499);
    set_range(&settings->not_applied_status, 501, 501);
    set_range(&settings->not_applied_status, 503, 503);
    set_range(&settings->not_applied_status, 505, 505);
}

static const char *const classes[] = { "not_sent", "known", "unknown" };
static const char *const outcomes[] = { "applied", "not_applied", "not_sent", "unknown" };

struct row {
    unsigned prereq_count;
    int status;
    char first[16], head[16], framing[16], class[16], outcome[16];
};

static void check(const struct row *row, const struct settings *settings, const char *line)
{
    bool is_complete = strcmp(row->head, "complete") == 0;
    const struct attempt attempt = {
        .prereq_count = row->prereq_count,
        .is_first_refused = strcmp(row->first, "refused") == 0,
        .is_head_complete = is_complete,
        .is_framing_consistent = is_complete && strcmp(row->framing, "good") == 0,
        .is_upgrade = row->status == 101,
    };
    enum attempt_class class = attempt_classify(&attempt);
    if (strcmp(classes[class], row->class) != 0 ||
        strcmp(outcomes[outcome_of(class, row->status, settings)], row->outcome) != 0)
        fail_msg("%s gave %s, %s", line, classes[class], outcomes[outcome_of(class, row->status, settings)]);
}

static void test_every_row_of_the_table_proves_what_it_says(void **state)
{
    FILE *file = fopen(TESTS_DIR "/proxy/outcome.cases", "r");
    struct settings settings;
    char line[256];
    unsigned row_count = 0;
    (void)state;
    assert_non_null(file);
    settings_fill(&settings);
    while (fgets(line, sizeof line, file) != NULL) {
        struct row row;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%u %15s %15s %15s %d -> %15s %15s", &row.prereq_count, row.first,
                                row.head, row.framing, &row.status, row.class, row.outcome),
                         7);
        check(&row, &settings, line);
        row_count++;
    }
    (void)fclose(file);
    assert_int_equal(row_count, 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_row_of_the_table_proves_what_it_says) };
    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
