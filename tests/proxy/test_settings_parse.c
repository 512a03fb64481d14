/*
 * test_settings_parse.c - every row of the table with values that it takes and values that it refuses.
 */
#include "settings_reading.h"
#include "settings_rows.h"

enum { GOOD, BAD };

static const struct {
    const char *name, *value;
    int is_bad;
} values[] = {
    { "TARGET", "http://h", GOOD },
    { "TARGET", "https://[::1]:9443/a/b?c=d", GOOD },
    { "TARGET", "ftp://h", BAD },
    { "TARGET", "h:80", BAD },
    { "TARGET_WAS", "https://h/a", GOOD },
    { "TARGET_WAS", "h:80", BAD },
    { "TARGET_WAS", "http://u:p@h", BAD },
    { "LISTEN", "0.0.0.0:0", GOOD },
    { "LISTEN", "unix:/run/s.sock", GOOD },
    { "LISTEN", "8650", BAD },
    { "LISTEN", ":8650", BAD },
    { "ADMIN_LISTEN", "[::1]:8651", GOOD },
    { "ADMIN_LISTEN", "127.0.0.1:65536", BAD },
    { "DATA_DIR", "/data", GOOD },
    { "DATA_DIR", "/da\tta", BAD },
    { "LEDGER", "lmdb", GOOD },
    { "LEDGER", "postgresql://h/db", BAD },
    { "SCOPE", "Team.a_1-b", GOOD },
    { "SCOPE", "a/b", BAD },
    { "SCOPE", "a b", BAD },
    { "MODE", "observe", GOOD },
    { "MODE", "off", GOOD },
    { "MODE", "Enforce", BAD },
    { "WORKERS", "auto", GOOD },
    { "WORKERS", "64", GOOD },
    { "WORKERS", "0", BAD },
    { "WORKERS", "65", BAD },
    { "WORKERS", "many", BAD },
    { "SHAPE", "single", GOOD },
    { "SHAPE", "json-array", GOOD },
    { "SHAPE", "ndjson", GOOD },
    { "SHAPE", "bulk", GOOD },
    { "SHAPE", "concat", GOOD },
    { "SHAPE", "separated", GOOD },
    { "SHAPE", "opaque", GOOD },
    { "SHAPE", "array", BAD },
    { "SHAPE", "one", BAD },
    { "TIMESTAMP", "header:x-ts,json:/__timestamp", GOOD },
    { "TIMESTAMP", "cookie:x", BAD },
    { "TIMESTAMP", "path", BAD },
    { "ENVELOPE", "/0/logs", GOOD },
    { "ENVELOPE", "rows", BAD },
    { "ENVELOPE", "json:/rows", BAD },
    { "ENVELOPE", "/a~", BAD },
    { "SEPARATOR", ",", GOOD },
    { "SEPARATOR", "\\r\\n", GOOD },
    { "SEPARATOR", "\\x0a", BAD },
    { "SEPARATOR", "\\", BAD },
    { "STRIP", "on", GOOD },
    { "SPLIT", "record", GOOD },
    { "SPLIT", "on", BAD },
    { "SPLIT_PARALLEL", "256", GOOD },
    { "SPLIT_PARALLEL", "0", BAD },
    { "STRIP", "true", BAD },
    { "UNKEYED", "reject", GOOD },
    { "UNKEYED", "drop", BAD },
    { "APPLIED_STATUS", "200-299,409", GOOD },
    { "APPLIED_STATUS", "200", GOOD },
    { "APPLIED_STATUS", "2xx", BAD },
    { "APPLIED_STATUS", "299-200", BAD },
    { "APPLIED_STATUS", "200,", BAD },
    { "APPLIED_STATUS", "100", BAD },
    { "APPLIED_STATUS", "600", BAD },
    { "APPLIED_STATUS", "200-", BAD },
    { "APPLIED_STATUS", "200 ,201", BAD },
    { "NOT_APPLIED_STATUS", "400-499", GOOD },
    { "NOT_APPLIED_STATUS", "4", BAD },
    { "IN_DOUBT", "retry", GOOD },
    { "IN_DOUBT", "assume-applied", GOOD },
    { "IN_DOUBT", "drop", BAD },
    { "PROBE_URL", "http://127.0.0.1:1/orders/{offset}", GOOD },
    { "PROBE_URL", "/o/{topic}-{partition}-{offset}?s={scope}&id={json:/a~1b/0}", GOOD },
    { "PROBE_URL", "orders/{offset}", BAD },
    { "PROBE_URL", "http://127.0.0.1:1/orders", BAD },
    { "PROBE_URL", "http://{topic}.example/{offset}", BAD },
    { "PROBE_URL", "http://127.0.0.1:1{offset}", BAD },
    { "PROBE_URL", "http://127.0.0.1:1?{offset}", BAD },
    { "PROBE_URL", "http://user@host/{offset}", BAD },
    { "PROBE_URL", "/{offset}/{ofset}", BAD },
    { "PROBE_URL", "/{offset}/{json:a}", BAD },
    { "PROBE_URL", "/{json:/~2}", BAD },
    { "PROBE_URL", "/{offset", BAD },
    { "PROBE_URL", "/offset}{offset}", BAD },
    { "PROBE_URL", "/{offset}#x", BAD },
    { "PROBE_METHOD", "HEAD", GOOD },
    { "PROBE_METHOD", "PUT", BAD },
    { "PROBE_DELAY", "0", GOOD },
    { "PROBE_DELAY", "5", BAD },
    { "PROBE_TIMEOUT", "1ms", GOOD },
    { "PROBE_TIMEOUT", "0", BAD },
    { "PROBE_APPLIED", "status:200,204", GOOD },
    { "PROBE_APPLIED", "json:/found", GOOD },
    { "PROBE_APPLIED", "200", BAD },
    { "PROBE_APPLIED", "status:", BAD },
    { "PROBE_APPLIED", "json:found", BAD },
    { "PROBE_ABSENT", "no-json:/hits/0", GOOD },
    { "PROBE_ABSENT", "no-json:", BAD },
    { "PROBE_AUTHORIZATION", "Bearer x", GOOD },
    { "PROBE_AUTHORIZATION", " x", BAD },
    { "METRICS_PARTITIONS", "on", GOOD },
    { "METRICS_PARTITIONS", "yes", BAD },
    { "IN_DOUBT_MAX", "1", GOOD },
    { "IN_DOUBT_MAX", "0", BAD },
    { "IN_DOUBT_MAX", "-1", BAD },
    { "KEY_HEADER", "Idempotency-Key", GOOD },
    { "KEY_HEADER", "Bad Name", BAD },
    { "KEY_HEADER", "Key:", BAD },
    { "KEY_HEADER", "content-length", BAD },
    { "KEY_HEADER", "Transfer-Encoding", BAD },
    { "KEY_HEADER", "HOST", BAD },
    { "KEY_HEADER", "authorization", BAD },
    { "KEY_HEADER", "TE", BAD },
    { "IDENTITY", "timestamp", GOOD },
    { "IDENTITY", "body", GOOD },
    { "IDENTITY", "off", GOOD },
    { "IDENTITY", "hash", BAD },
    { "MARKS", "0", GOOD },
    { "MARKS", "16777217", BAD },
    { "WINDOW", "65536", GOOD },
    { "WINDOW", "65535", BAD },
    { "FIRST_SIGHT", "hold", GOOD },
    { "FIRST_SIGHT", "refuse", BAD },
    { "WAIT", "0", GOOD },
    { "WAIT", "10m", GOOD },
    { "WAIT", "11m", BAD },
    { "WAIT", "5", BAD },
    { "WAIT", "5 s", BAD },
    { "WAIT", "1.5s", BAD },
    { "WAIT", "-1s", BAD },
    { "RETRY_AFTER", "1h", GOOD },
    { "RETRY_AFTER", "soon", BAD },
    { "DUPLICATE_STATUS", "204", GOOD },
    { "DUPLICATE_STATUS", "304", BAD },
    { "DUPLICATE_STATUS", "199", BAD },
    { "REPLY_BYTES", "64KiB", GOOD },
    { "REPLY_BYTES", "65KiB", BAD },
    { "REPLIES", "0", GOOD },
    { "REPLIES", "1k", BAD },
    { "ACK_TIMEOUT", "5m", GOOD },
    { "ACK_TIMEOUT", "5", BAD },
    { "CONNECT_TIMEOUT", "1ms", GOOD },
    { "CONNECT_TIMEOUT", "0", BAD },
    { "TARGET_TIMEOUT", "1d", GOOD },
    { "TARGET_TIMEOUT", "2d", BAD },
    { "TARGET_CONNECTIONS", "4096", GOOD },
    { "TARGET_CONNECTIONS", "4097", BAD },
    { "TARGET_IDLE", "0", GOOD },
    { "TARGET_IDLE", "61m", BAD },
    { "CONNECT_RETRIES", "0", GOOD },
    { "CONNECT_RETRIES", "101", BAD },
    { "HOST_HEADER", "preserve", GOOD },
    { "HOST_HEADER", "api.example:8080", GOOD },
    { "HOST_HEADER", "a b", BAD },
    { "HOST_HEADER", "a/b", BAD },
    { "VIA", "off", GOOD },
    { "VIA", "no", BAD },
    { "TARGET_VERIFY", "off", GOOD },
    { "TARGET_VERIFY", "0", BAD },
    { "TARGET_PROXY", "http://user:pw@proxy:3128/", GOOD },
    { "TARGET_PROXY", "http://proxy", BAD },
    { "TARGET_PROXY", "http://[::1]", BAD },
    { "TARGET_PROXY", "socks5://proxy:1080", BAD },
    { "TARGET_PROXY", "http://proxy:3128/path", BAD },
    { "AUTHORIZATION", "Bearer abc", GOOD },
    { "AUTHORIZATION", "Bearer abc\r\nX: 1", BAD },
    { "MAX_BODY", "128MiB", GOOD },
    { "MAX_BODY", "10MB", GOOD },
    { "MAX_BODY", "0", BAD },
    { "MAX_BODY", "2GiB", BAD },
    { "MAX_BODY", "16mib", BAD },
    { "MAX_BODY", "99999999999999999999GiB", BAD },
    { "MAX_BODY", "18014398509481985KiB", BAD },
    { "MAX_RESPONSE", "1KiB", GOOD },
    { "MAX_RESPONSE", "1023B", BAD },
    { "MAX_HEAD", "1MiB", GOOD },
    { "MAX_HEAD", "2MiB", BAD },
    { "MAX_PARTITIONS", "0", BAD },
    { "MAX_PARTITIONS", "1", GOOD },
    { "MAX_PARTITIONS", "1000000", GOOD },
    { "MAX_PARTITIONS", "1000001", BAD },
    { "MAX_RECORDS", "1000000", GOOD },
    { "MAX_RECORDS", "1000001", BAD },
    { "MAX_RECORDS", "18446744073709551617", BAD }, /* 1 in 64 bits */
    { "MAX_RECORDS", "-18446744073709551615", BAD },
    { "MAX_CONNECTIONS", "1", GOOD },
    { "MAX_CONNECTIONS", "0", BAD },
    { "MAX_BODIES", "1TiB", GOOD },
    { "MAX_BODIES", "1048575B", BAD },
    { "MAX_BODIES", "2TiB", BAD },
    { "MAX_IN_FLIGHT", "100000", GOOD },
    { "MAX_IN_FLIGHT", "100001", BAD },
    { "HEAD_TIMEOUT", "1ms", GOOD },
    { "HEAD_TIMEOUT", "0", BAD },
    { "BODY_TIMEOUT", "1h", GOOD },
    { "BODY_TIMEOUT", "1w", BAD },
    { "IDLE_TIMEOUT", "24h", GOOD },
    { "IDLE_TIMEOUT", "25h", BAD },
    { "LEDGER_MAX", "16TiB", GOOD },
    { "LEDGER_MAX", "1023KiB", BAD },
    { "LEDGER_MISSING", "refuse", GOOD },
    { "LEDGER_MISSING", "ignore", BAD },
    { "COMMIT_DELAY", "1s", GOOD },
    { "COMMIT_DELAY", "1001ms", BAD },
    { "DRAIN_DELAY", "5s", GOOD },
    { "DRAIN_DELAY", "5", BAD },
    { "DRAIN_TIMEOUT", "0s", GOOD },
    { "DRAIN_TIMEOUT", "forever", BAD },
    { "LOG_LEVEL", "debug", GOOD },
    { "LOG_LEVEL", "trace", BAD },
    { "LOG_FORMAT", "json", GOOD },
    { "LOG_FORMAT", "xml", BAD },
    { "ACCESS_LOG", "all", GOOD },
    { "ACCESS_LOG", "in-doubt,conflict", GOOD },
    { "ACCESS_LOG", "in-doubt,", BAD },
    { "ACCESS_LOG", "in_doubt", BAD },
    { "ACCESS_LOG", "none", BAD },
    { "ADMIN_TOKEN", "s3cret", GOOD },
    { "ADMIN_TOKEN", "s3 cret", BAD },
    { "CLIENT_TOKEN", "s3cret", GOOD },
    { "CLIENT_TOKEN", "s3 cret", BAD },
    { "CLIENT_TOKEN", "one\ntwo", GOOD },
    { "CLIENT_TOKEN", "1\n2\n3\n4\n5\n6\n7\n8", GOOD },
    { "CLIENT_TOKEN", "1\n2\n3\n4\n5\n6\n7\n8\n9", BAD },
    { "CLIENT_TOKEN", "one\n\ntwo", BAD },
    { "CLIENT_TOKEN", "\none", BAD },
    { "CLIENT_TOKEN", "one\r\ntwo", BAD },
    { "CLIENT_TOKEN", "one\ntwo words", BAD },
};

/* These need company, or take everything: other tests have them. */
static const char *const elsewhere[] = { "TOPIC",           "PARTITION",
                                         "OFFSET",          "ID",
                                         "ID_FORMAT",       "PREFIX",
                                         "SUFFIX",          "TARGET_CERT_FILE",
                                         "TARGET_KEY_FILE", "TARGET_KEY_PASSWORD",
                                         "TARGET_CA_FILE",  "LISTEN_CLIENT_CA_FILE",
                                         "LISTEN_KEY_FILE", "LISTEN_CERT_FILE",
                                         "ADMIN_CERT_FILE", "ADMIN_CLIENT_CA_FILE",
                                         "ADMIN_KEY_FILE" };

static void test_each_value_is_taken_or_refused_with_its_name_in_front(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct reading_result result;
        char variable[256], begin[64];
        snprintf(variable, sizeof variable, "SINKONCE_%s=%s", values[i].name, values[i].value);
        snprintf(begin, sizeof begin, "SINKONCE_%s ", values[i].name);
        if (strcmp(values[i].name, "TARGET") == 0)
            READ(&result, variable);
        else
            READ(&result, TARGET, variable);
        if (result.is_good != (values[i].is_bad == GOOD))
            print_error("row %zu: %s\n", i, variable);
        assert_int_equal(result.is_good, values[i].is_bad == GOOD);
        assert_int_equal(result.mistakes.line_count, values[i].is_bad == GOOD ? 0 : 1);
        if (values[i].is_bad == BAD)
            assert_int_equal(strncmp(result.mistakes.lines[0], begin, strlen(begin)), 0);
        release(&result);
    }
}

static size_t count_of(const char *name, int is_bad)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        count += strcmp(values[i].name, name) == 0 && values[i].is_bad == is_bad;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        count += strcmp(elsewhere[i], name) == 0;
    return count;
}

static void test_every_row_has_a_good_and_a_bad_value_here(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const char *name = settings_rows[i].name + strlen(SETTINGS_PREFIX);
        if (count_of(name, GOOD) == 0 || count_of(name, BAD) == 0)
            print_error("%s lacks values\n", name);
        assert_true(count_of(name, GOOD) > 0);
        assert_true(count_of(name, BAD) > 0);
    }
}

static void test_every_default_is_a_value_that_its_row_takes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct reading_result result;
        char variable[256];
        if (settings_rows[i].default_text == NULL || *settings_rows[i].default_text == '\0')
            continue;
        snprintf(variable, sizeof variable, "%s=%s", settings_rows[i].name, settings_rows[i].default_text);
        READ(&result, TARGET, variable);
        assert_good(&result);
        release(&result);
    }
}

static void test_units_are_what_they_say(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_WAIT=250ms", "SINKONCE_RETRY_AFTER=2m", "SINKONCE_TARGET_TIMEOUT=1d",
         "SINKONCE_BODY_TIMEOUT=1h", "SINKONCE_MAX_BODY=10MB", "SINKONCE_MAX_RESPONSE=3MiB",
         "SINKONCE_MAX_HEAD=4KiB", "SINKONCE_LEDGER_MAX=1GB");
    assert_good(&result);
    assert_int_equal(result.settings.wait_ms, 250);
    assert_int_equal(result.settings.retry_after_ms, 120000);
    assert_int_equal(result.settings.target_timeout_ms, 86400000);
    assert_int_equal(result.settings.body_timeout_ms, 3600000);
    assert_int_equal(result.settings.body_bytes_max, 10000000);
    assert_int_equal(result.settings.response_bytes_max, 3 << 20);
    assert_int_equal(result.settings.head_bytes_max, 4096);
    assert_int_equal(result.settings.ledger_bytes_max, 1000000000);
    release(&result);
}

static void test_choices_arrive_in_their_fields(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_MODE=observe", "SINKONCE_SHAPE=single",
         "SINKONCE_IN_DOUBT=assume-applied", "SINKONCE_IDENTITY=body", "SINKONCE_LOG_LEVEL=warn",
         "SINKONCE_LOG_FORMAT=text", "SINKONCE_STRIP=on", "SINKONCE_UNKEYED=reject",
         "SINKONCE_FIRST_SIGHT=hold", "SINKONCE_LEDGER_MISSING=refuse", "SINKONCE_VIA=off",
         "SINKONCE_WORKERS=3");
    assert_good(&result);
    assert_int_equal(result.settings.mode, MODE_OBSERVE);
    assert_int_equal(result.settings.shape, SHAPE_SINGLE);
    assert_int_equal(result.settings.in_doubt, IN_DOUBT_ASSUME_APPLIED);
    assert_int_equal(result.settings.identity, IDENTITY_BODY);
    assert_int_equal(result.settings.log_level, LOG_LEVEL_WARN);
    assert_int_equal(result.settings.log_format, LOG_FORMAT_TEXT);
    assert_true(result.settings.is_stripped);
    assert_true(result.settings.is_unkeyed_rejected);
    assert_true(result.settings.is_first_sight_held);
    assert_true(result.settings.is_ledger_missing_refused);
    assert_false(result.settings.is_via_added);
    assert_int_equal(result.settings.workers, 3);
    release(&result);
}

static void test_escapes_stand_for_one_byte_each(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_SHAPE=separated", "SINKONCE_SEPARATOR=\\r\\n\\t\\\\|",
         "SINKONCE_PREFIX={\"rows\":[", "SINKONCE_SUFFIX=]}\\n");
    assert_good(&result);
    assert_string_equal(result.settings.separator, "\r\n\t\\|");
    assert_string_equal(result.settings.prefix, "{\"rows\":[");
    assert_string_equal(result.settings.suffix, "]}\n");
    release(&result);
}

static void test_bounds_are_named_in_the_unit_of_the_reader(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_TARGET_TIMEOUT=2d", "SINKONCE_MAX_BODY=2GiB");
    assert_string_equal(result.mistakes.lines[0],
                        "SINKONCE_TARGET_TIMEOUT must be from 1ms to 1d (got \"2d\")");
    assert_string_equal(result.mistakes.lines[1], "SINKONCE_MAX_BODY must be from 1B to 1GiB (got \"2GiB\")");
    release(&result);
}

static void test_an_outcome_that_does_not_exist_gets_a_suggestion(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_ACCESS_LOG=applied,in-doupt");
    assert_one_mistake(&result,
                       "SINKONCE_ACCESS_LOG must be off, all, or outcomes separated by commas; in-doupt is "
                       "none (did you mean in-doubt?) (got \"applied,in-doupt\")");
    release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_value_is_taken_or_refused_with_its_name_in_front),
        cmocka_unit_test(test_every_row_has_a_good_and_a_bad_value_here),
        cmocka_unit_test(test_every_default_is_a_value_that_its_row_takes),
        cmocka_unit_test(test_units_are_what_they_say),
        cmocka_unit_test(test_choices_arrive_in_their_fields),
        cmocka_unit_test(test_escapes_stand_for_one_byte_each),
        cmocka_unit_test(test_bounds_are_named_in_the_unit_of_the_reader),
        cmocka_unit_test(test_an_outcome_that_does_not_exist_gets_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
