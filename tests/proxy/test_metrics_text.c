/*
 * test_metrics_text.c - the exposition: every name of the table from the start, sums that add up, promtool content.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "metrics.h"
#include "metrics_text.h"
#include "stub_store.h"

/* The store is the stub: its address is never looked at. */
static const struct store *some_store(void)
{
    return (const struct store *)&stub_figures;
}

static char *text_of(struct metrics_view view)
{
    size_t bytes;
    view.store = some_store();
    char *text = metrics_text(&view, &bytes);
    assert_non_null(text);
    assert_int_equal(strlen(text), bytes);
    return text;
}

static char *text_get(void)
{
    return text_of((struct metrics_view){ .mode = MODE_OBSERVE });
}

static void assert_line(const char *text, const char *line)
{
    char whole[512];
    snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(text, whole) == NULL)
        fail_msg("no line '%s'", line);
}

static void test_every_row_of_the_table_is_exported_before_anything_happened(void **state)
{
    char *text = text_get();
    (void)state;
#define TOPIC_COUNTER(NAME, metric, words) assert_line(text, "sinkonce_" metric "{topic=\"\"} 0");
#define COUNTER(NAME, metric, labels, words)                                                                 \
    assert_line(text, labels[0] == '\0' ? "sinkonce_" metric " 0" : "sinkonce_" metric "{" labels "} 0");
#define GAUGE(NAME, metric, per_unit, words)                                                                 \
    assert_line(text, per_unit == 1 ? "sinkonce_" metric " 0" : "sinkonce_" metric " 0.000");
#define HISTOGRAM(NAME, metric, unit, words) assert_line(text, "sinkonce_" metric "_bucket{le=\"+Inf\"} 0");
#include "tbl/counters.h"
    assert_line(text, "sinkonce_http_requests_total{method=\"POST\",code=\"200\"} 0");
    assert_line(text, "sinkonce_target_responses_total{code=\"503\"} 0");
    assert_line(text, "sinkonce_in_doubt_total{cause=\"crash\"} 0");
    free(text);
}

static void test_help_and_type_stand_once_per_metric(void **state)
{
    char *text = text_get();
    (void)state;
    for (const char *at = strstr(text, "# TYPE "); at != NULL; at = strstr(at + 1, "# TYPE ")) {
        char line[256];
        snprintf(line, sizeof line, "%.*s ", (int)strcspn(at + 7, " ") + 7, at);
        assert_null(strstr(at + 1, line));
    }
    free(text);
}

static void test_figures_of_the_ledger_carry_the_published_names(void **state)
{
    (void)state;
    stub_figures = (struct store_figures){ .used_bytes = 4096,
                                           .max_bytes = 8192,
                                           .created_ms = 1700000000123,
                                           .commit_count = 5,
                                           .commit_record_count = 50,
                                           .commit_seconds_sum_ns = 1500000001,
                                           .error_count = 2,
                                           .in_doubt_records = 3,
                                           .in_doubt_oldest_ms = 1700000001000,
                                           .entered_by_cause = { 9, 8, 7, 6, 5 },
                                           .resolved_not_applied = 4,
                                           .below_window_count = 11,
                                           .first_sight_count = 12,
                                           .interval_count = 13,
                                           .is_full = true };
    char *text = text_get();
    assert_line(text, "sinkonce_ledger_used_bytes 4096");
    assert_line(text, "sinkonce_ledger_max_bytes 8192");
    assert_line(text, "sinkonce_ledger_created_timestamp_seconds 1700000000.123");
    assert_line(text, "sinkonce_ledger_commits_total 5");
    assert_line(text, "sinkonce_ledger_commit_duration_seconds_sum 1.500000001");
    assert_line(text, "sinkonce_ledger_commit_records_sum 50");
    assert_line(text, "sinkonce_ledger_errors_total{op=\"commit\"} 2");
    assert_line(text, "sinkonce_ledger_intervals 13");
    assert_line(text, "sinkonce_ledger_full 1");
    assert_line(text, "sinkonce_in_doubt_records 3");
    assert_line(text, "sinkonce_in_doubt_oldest_timestamp_seconds 1700000001.000");
    assert_line(text, "sinkonce_in_doubt_total{cause=\"no_reply\"} 8");
    assert_line(text, "sinkonce_in_doubt_resolved_total{resolution=\"not-applied\"} 4");
    assert_line(text, "sinkonce_below_window_records_total 11");
    assert_line(text, "sinkonce_first_sight_total 12");
    free(text);
}

static void test_the_mode_and_the_version_are_labels(void **state)
{
    char *text = text_get();
    (void)state;
    assert_line(text, "sinkonce_mode{mode=\"observe\"} 1");
    assert_line(text, "sinkonce_mode{mode=\"enforce\"} 0");
    assert_line(text, "sinkonce_build_info{version=\"" SINKONCE_VERSION "\"} 1");
    free(text);
}

/* The value of an unlabelled metric. */
static double value_get(const char *text, const char *metric)
{
    char start[128];
    snprintf(start, sizeof start, "\n%s ", metric);
    const char *at = strstr(text, start);
    assert_non_null(at);
    return strtod(at + strlen(start), NULL);
}

static void test_the_process_is_alive_and_uses_memory(void **state)
{
    char *text = text_get();
    (void)state;
    assert_true(value_get(text, "process_resident_memory_bytes") > 100000);
    assert_true(value_get(text, "process_virtual_memory_bytes") > 100000);
    assert_true(value_get(text, "process_open_fds") >= 3);
    assert_true(value_get(text, "process_max_fds") >= value_get(text, "process_open_fds"));
    assert_true(value_get(text, "process_start_time_seconds") > 1600000000);
    free(text);
}

static void test_buckets_are_cumulative_and_end_in_the_count(void **state)
{
    (void)state;
    metrics_observe(HISTOGRAM_REQUEST_DURATION, 400000);       /* 0.4 ms */
    metrics_observe(HISTOGRAM_REQUEST_DURATION, 3000000);      /* 3 ms */
    metrics_observe(HISTOGRAM_REQUEST_DURATION, 90000000000u); /* 90 s */
    char *text = text_get();
    assert_line(text, "sinkonce_http_request_duration_seconds_bucket{le=\"0.0005\"} 1");
    assert_line(text, "sinkonce_http_request_duration_seconds_bucket{le=\"0.0025\"} 1");
    assert_line(text, "sinkonce_http_request_duration_seconds_bucket{le=\"0.005\"} 2");
    assert_line(text, "sinkonce_http_request_duration_seconds_bucket{le=\"60\"} 2");
    assert_line(text, "sinkonce_http_request_duration_seconds_bucket{le=\"+Inf\"} 3");
    assert_line(text, "sinkonce_http_request_duration_seconds_sum 90.003400000");
    assert_line(text, "sinkonce_http_request_duration_seconds_count 3");
    free(text);
}

static void test_a_time_in_milliseconds_is_exported_in_seconds(void **state)
{
    (void)state;
    metrics_gauge_set(GAUGE_TARGET_LAST_SUCCESS_MS, 1700000000042);
    char *text = text_get();
    assert_line(text, "sinkonce_target_last_success_timestamp_seconds 1700000000.042");
    free(text);
}

static void test_codes_that_were_seen_appear(void **state)
{
    (void)state;
    metrics_request(2, 207);
    metrics_target_response(418);
    char *text = text_get();
    assert_line(text, "sinkonce_http_requests_total{method=\"POST\",code=\"207\"} 1");
    assert_line(text, "sinkonce_target_responses_total{code=\"418\"} 1");
    assert_null(strstr(text, "code=\"208\""));
    free(text);
}

/* Names, types, HELP and units by the judgement of Prometheus' own tool. */
static void test_promtool_finds_nothing_to_say(void **state)
{
    (void)state;
    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        print_message("skipped: promtool is not installed (package prometheus)\n");
        skip();
    }
    char *text = text_get();
    FILE *tool = popen("promtool check metrics", "w");
    assert_non_null(tool);
    assert_int_equal(fwrite(text, 1, strlen(text), tool), strlen(text));
    assert_int_equal(pclose(tool), 0);
    free(text);
}

static void test_records_are_told_apart_by_topic_and_the_hundred_and_first_is_other(void **state)
{
    (void)state;
    for (int i = 1; i <= METRICS_TOPICS_MAX + 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "topic.%d", i);
        metrics_add_topic(COUNTER_RECORDS_REPLAYED, metrics_topic(slice_of_text(name)), 2);
    }
    assert_int_equal(metrics_topic(slice_of_text("topic.7")), metrics_topic(slice_of_text("topic.7")));
    assert_int_equal(metrics_topic(slice_of_text("topic.119")), METRICS_TOPIC_OTHER);
    assert_int_equal(metrics_topic(slice_of_text("")), METRICS_TOPIC_NONE);
    assert_int_equal(metrics_counter(COUNTER_RECORDS_REPLAYED), 2 * (METRICS_TOPICS_MAX + 20));
    char *text = text_get();
    assert_line(text, "sinkonce_replayed_records_total{topic=\"\"} 0");
    assert_line(text, "sinkonce_replayed_records_total{topic=\"topic.1\"} 2");
    assert_line(text, "sinkonce_replayed_records_total{topic=\"topic.100\"} 2");
    assert_line(text, "sinkonce_replayed_records_total{topic=\"_other\"} 40");
    assert_null(strstr(text, "topic.101"));
    free(text);
}

static void test_partitions_have_gauges_where_they_are_asked_for(void **state)
{
    (void)state;
    const struct partition_row rows[] = {
        { .topic = "orders",
          .partition = 2147483647,
          .highest = INT64_MAX,
          .applied_count = 12,
          .last_ms = 5999 },
        { .topic = "a.b-c_d", .partition = 0, .highest = -1, .gap_count = 3, .in_doubt_count = 4 },
    };
    char *text = text_of((struct metrics_view){
        .has_partitions = true, .partitions = rows, .partition_count = 2 });
    assert_line(text, "sinkonce_partition_applied_records{topic=\"orders\",partition=\"2147483647\"} 12");
    assert_line(
        text,
        "sinkonce_partition_next_offset{topic=\"orders\",partition=\"2147483647\"} 9223372036854775808");
    assert_line(text, "sinkonce_partition_next_offset{topic=\"a.b-c_d\",partition=\"0\"} 0");
    assert_line(text, "sinkonce_partition_gap_records{topic=\"a.b-c_d\",partition=\"0\"} 3");
    assert_line(text, "sinkonce_partition_in_doubt_records{topic=\"a.b-c_d\",partition=\"0\"} 4");
    assert_line(
        text,
        "sinkonce_partition_last_result_timestamp_seconds{topic=\"orders\",partition=\"2147483647\"} 5");
    free(text);
    text = text_get();
    assert_null(strstr(text, "sinkonce_partition_"));
    free(text);
}

static void test_openmetrics_names_counters_by_their_family_and_has_an_end(void **state)
{
    (void)state;
    char *text = text_of((struct metrics_view){ .is_open_metrics = true });
    assert_line(text, "# TYPE sinkonce_records counter");
    assert_line(text, "# TYPE sinkonce_in_doubt_records gauge");
    assert_line(text, "# TYPE process_cpu_seconds counter");
    assert_line(text, "sinkonce_records_total{topic=\"\"} 0");
    assert_null(strstr(text, "_total counter"));
    assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
    /* one family, one type */
    for (const char *at = strstr(text, "# TYPE "); at != NULL; at = strstr(at + 1, "# TYPE ")) {
        char line[256];
        snprintf(line, sizeof line, "%.*s ", (int)strcspn(at + 7, " ") + 7, at);
        assert_null(strstr(at + 1, line));
    }
    free(text);
}

int main(void)
{
    /* the first test must see untouched counters: cmocka keeps this order */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_of_the_table_is_exported_before_anything_happened),
        cmocka_unit_test(test_help_and_type_stand_once_per_metric),
        cmocka_unit_test(test_figures_of_the_ledger_carry_the_published_names),
        cmocka_unit_test(test_the_mode_and_the_version_are_labels),
        cmocka_unit_test(test_the_process_is_alive_and_uses_memory),
        cmocka_unit_test(test_buckets_are_cumulative_and_end_in_the_count),
        cmocka_unit_test(test_a_time_in_milliseconds_is_exported_in_seconds),
        cmocka_unit_test(test_codes_that_were_seen_appear),
        cmocka_unit_test(test_promtool_finds_nothing_to_say),
        cmocka_unit_test(test_records_are_told_apart_by_topic_and_the_hundred_and_first_is_other),
        cmocka_unit_test(test_partitions_have_gauges_where_they_are_asked_for),
        cmocka_unit_test(test_openmetrics_names_counters_by_their_family_and_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
