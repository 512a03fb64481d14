/*
 * test_settings.c - the environment as a whole: mistakes collected, unknown names, Kubernetes, secrets in files.
 */
#include "papers.h"
#include "settings_reading.h"
#include <sys/stat.h>

static void test_defaults_hold_when_only_the_target_is_set(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET);
    assert_good(&result);
    assert_int_equal(result.mistakes.note_count, 0);
    assert_string_equal(result.settings.target.authority, "target:8080");
    assert_string_equal(result.settings.listen.host, "127.0.0.1");
    assert_int_equal(result.settings.listen.port, 8650);
    assert_int_equal(result.settings.wait_ms, 2000);
    assert_int_equal(result.settings.body_bytes_max, 16 << 20);
    assert_int_equal(result.settings.mode, MODE_ENFORCE);
    assert_int_equal(result.settings.in_doubt, IN_DOUBT_HOLD);
    assert_int_equal(result.settings.identity, IDENTITY_AUTO);
    assert_int_equal(result.settings.log_format, LOG_FORMAT_AUTO);
    assert_true(result.settings.workers >= 1 && result.settings.workers <= 8);
    assert_true(result.settings.is_via_added);
    assert_true(result.settings.is_target_verified);
    assert_false(result.settings.is_unkeyed_rejected);
    assert_int_equal(result.settings.topic.count, 0);
    assert_null(result.settings.id_format.text);
    assert_string_equal(result.settings.authorization, "");
    assert_true(status_set_has(&result.settings.applied_status, 200));
    assert_true(status_set_has(&result.settings.not_applied_status, 499));
    assert_false(status_set_has(&result.settings.not_applied_status, 500));
    release(&result);
}

static void test_target_is_required(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, "PATH=/bin");
    assert_one_mistake(&result,
                       "SINKONCE_TARGET must be set: base URL of the target, http:// or https://; path and "
                       "query of the request are appended to it");
    release(&result);
}

static void test_three_mistakes_give_three_lines(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_WAIT=7", "SINKONCE_MODE=on", "SINKONCE_MAX_BODY=16");
    assert_false(result.is_good);
    assert_int_equal(result.mistakes.line_count, 3);
    assert_string_equal(result.mistakes.lines[0],
                        "SINKONCE_MODE must be enforce, observe or off (got \"on\")");
    assert_string_equal(result.mistakes.lines[1], "SINKONCE_WAIT needs a unit: ms, s, m, h or d (got \"7\")");
    assert_string_equal(result.mistakes.lines[2],
                        "SINKONCE_MAX_BODY needs a unit: KiB, MiB, GiB, KB, MB, GB or B (got \"16\")");
    release(&result);
}

static void test_a_mistake_stays_one_line_whatever_the_value_holds(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_SCOPE=a\nSINKONCE_FAKE\x1b[2J");
    assert_one_mistake(&result,
                       "SINKONCE_SCOPE must not have control characters (got \"a?SINKONCE_FAKE?[2J\")");
    release(&result);
}

static void test_an_empty_value_is_no_value(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_WAIT=", "SINKONCE_TOPIC=", "SINKONCE_AUTHORIZATION=");
    assert_good(&result);
    assert_int_equal(result.settings.wait_ms, 2000);
    release(&result);
}

static void test_an_unknown_name_is_a_mistake_with_a_suggestion(void **state)
{
    static const struct {
        const char *variable, *line;
    } rows[] = {
        { "SINKONCE_LISTN=x", "SINKONCE_LISTN is not a setting; did you mean SINKONCE_LISTEN?" },
        { "SINKONCE_TRAGET=x", "SINKONCE_TRAGET is not a setting; did you mean SINKONCE_TARGET?" },
        { "SINKONCE_max_body=1MiB", "SINKONCE_max_body is not a setting; did you mean SINKONCE_MAX_BODY?" },
        { "SINKONCE_ELEPHANTS=2", "SINKONCE_ELEPHANTS is not a setting; sinkonce --help names them all" },
        { "SINKONCE_=2", "SINKONCE_ is not a setting; sinkonce --help names them all" },
        { "SINKONCE_FAILPOINT=x", "SINKONCE_FAILPOINT is not a setting; sinkonce --help names them all" },
        { "SINKONCE_WAIT_FILE=/x", "SINKONCE_WAIT_FILE is not a setting: only a secret may come from a file, "
                                   "set SINKONCE_WAIT itself" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reading_result result;
        READ(&result, TARGET, rows[i].variable);
        assert_one_mistake(&result, rows[i].line);
        release(&result);
    }
}

static void test_names_of_others_are_not_looked_at(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "FAILPOINT=claim", "SINKONCEX=1", "sinkonce_wait=1", "http_proxy=http://trap:1");
    assert_good(&result);
    assert_string_equal(result.settings.target_proxy, "");
    release(&result);
}

static void test_what_kubernetes_injects_is_skipped_with_one_note(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_PORT=tcp://10.0.0.1:8650", "SINKONCE_SERVICE_HOST=10.0.0.1",
         "SINKONCE_SERVICE_PORT=8650", "SINKONCE_SERVICE_PORT_HTTP=8650",
         "SINKONCE_PORT_8650_TCP=tcp://10.0.0.1:8650", "SINKONCE_PORT_8650_TCP_PROTO=tcp",
         "SINKONCE_PORT_8650_TCP_ADDR=10.0.0.1");
    assert_good(&result);
    assert_int_equal(result.mistakes.note_count, 1);
    assert_non_null(strstr(result.mistakes.notes[0], "SINKONCE_PORT and its like are skipped: Kubernetes"));
    release(&result);
}

static void test_a_second_service_beside_it_is_skipped_too(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_ADMIN_SERVICE_HOST=10.0.0.2", "SINKONCE_ADMIN_SERVICE_PORT=8651",
         "SINKONCE_ADMIN_PORT=tcp://10.0.0.2:8651", "SINKONCE_ADMIN_PORT_8651_TCP_ADDR=10.0.0.2");
    assert_good(&result);
    assert_int_equal(result.mistakes.note_count, 1);
    release(&result);
    READ(&result, TARGET, "SINKONCE_ADMIN_PORT=8651"); /* this is somebody's guess, not a Service's */
    assert_false(result.is_good);
    release(&result);
}

/* ---- secrets ------------------------------------------------------------------------------------------------- */

static void test_a_secret_comes_from_a_file_without_its_line_end(void **state)
{
    struct reading_result result;
    char path[64], variable[128];
    (void)state;
    file_with("Basic dTpw\n", 11, path);
    snprintf(variable, sizeof variable, "SINKONCE_AUTHORIZATION_FILE=%s", path);
    READ(&result, TARGET, variable);
    unlink(path);
    assert_good(&result);
    assert_string_equal(result.settings.authorization, "Basic dTpw");
    release(&result);
}

static void test_a_password_loses_one_line_end_only(void **state)
{
    static const struct paper locked = { "locked", NULL, " pass \n", -1, 90 };
    struct reading_result result;
    struct papers papers;
    char path[64], variable[128], certificate[128], key[128];
    (void)state;
    papers_init(&papers);
    papers_make(&papers, &locked);
    file_with(" pass \n\n", 8, path);
    snprintf(variable, sizeof variable, "SINKONCE_TARGET_KEY_PASSWORD_FILE=%s", path);
    snprintf(certificate, sizeof certificate, "SINKONCE_TARGET_CERT_FILE=%s/locked.pem", papers.folder);
    snprintf(key, sizeof key, "SINKONCE_TARGET_KEY_FILE=%s/locked.key", papers.folder);
    READ(&result, TARGET, variable, certificate, key);
    unlink(path);
    papers_deinit(&papers);
    assert_good(&result);
    assert_string_equal(result.settings.target_key_password, " pass \n");
    release(&result);
}

/* Each file, and what is said of it; the secret itself is never said. */
static void test_a_secret_file_that_cannot_hold_one_is_a_mistake(void **state)
{
    static const struct {
        const char *bytes;
        size_t byte_count;
        const char *words;
    } rows[] = {
        { "", 0, "SINKONCE_ADMIN_TOKEN_FILE names a file that is empty" },
        { "\n", 1, "SINKONCE_ADMIN_TOKEN_FILE names a file that is empty" },
        { "s3cr\0t", 6, "SINKONCE_ADMIN_TOKEN_FILE names a file that holds a zero byte" },
        { "s3cret\n\n", 8, "SINKONCE_ADMIN_TOKEN_FILE becomes a bearer token" },
        { "s3cret\r\n", 8, "SINKONCE_ADMIN_TOKEN_FILE becomes a bearer token" },
        { "s3 cret", 7, "SINKONCE_ADMIN_TOKEN_FILE becomes a bearer token" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reading_result result;
        char path[64], variable[128];
        file_with(rows[i].bytes, rows[i].byte_count, path);
        snprintf(variable, sizeof variable, "SINKONCE_ADMIN_TOKEN_FILE=%s", path);
        READ(&result, TARGET, variable);
        unlink(path);
        assert_false(result.is_good);
        assert_int_equal(result.mistakes.line_count, 1);
        assert_int_equal(strncmp(result.mistakes.lines[0], rows[i].words, strlen(rows[i].words)), 0);
        assert_null(strstr(result.mistakes.lines[0], "s3"));
        release(&result);
    }
}

static void test_a_secret_file_longer_than_the_limit_is_a_mistake(void **state)
{
    struct reading_result result;
    char path[64], variable[128], bytes[4097];
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    file_with(bytes, sizeof bytes, path);
    snprintf(variable, sizeof variable, "SINKONCE_ADMIN_TOKEN_FILE=%s", path);
    READ(&result, TARGET, variable);
    unlink(path);
    assert_one_mistake(&result, "SINKONCE_ADMIN_TOKEN_FILE must be at most 4096 bytes long");
    release(&result);
}

static void test_a_secret_file_that_is_not_there_or_a_folder_is_a_mistake(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_ADMIN_TOKEN_FILE=/nowhere/token", "SINKONCE_AUTHORIZATION_FILE=/tmp");
    assert_false(result.is_good);
    assert_int_equal(result.mistakes.line_count, 2);
    assert_string_equal(result.mistakes.lines[0],
                        "SINKONCE_AUTHORIZATION_FILE cannot be read: Is a directory (/tmp)");
    assert_string_equal(
        result.mistakes.lines[1],
        "SINKONCE_ADMIN_TOKEN_FILE cannot be read: No such file or directory (/nowhere/token)");
    release(&result);
}

/* It would block, or never end; and a second reading, at SIGHUP, would find it empty. */
static void test_a_secret_file_that_is_a_pipe_or_a_device_is_a_mistake_and_is_not_waited_for(void **state)
{
    struct reading_result result;
    char folder[] = "/tmp/sinkonce-settings-XXXXXX", pipe[64], variable[128], words[160];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    snprintf(variable, sizeof variable, "SINKONCE_CLIENT_TOKEN_FILE=%s", pipe);
    READ(&result, TARGET, "SINKONCE_ADMIN_TOKEN_FILE=/dev/zero", variable);
    unlink(pipe);
    rmdir(folder);
    assert_false(result.is_good);
    assert_int_equal(result.mistakes.line_count, 2);
    snprintf(words, sizeof words,
             "SINKONCE_CLIENT_TOKEN_FILE cannot be read: it is not an ordinary file (%s)", pipe);
    assert_string_equal(result.mistakes.lines[0], words);
    assert_string_equal(result.mistakes.lines[1],
                        "SINKONCE_ADMIN_TOKEN_FILE cannot be read: it is not an ordinary file (/dev/zero)");
    release(&result);
}

static void test_a_secret_given_twice_is_a_mistake(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_ADMIN_TOKEN=abc", "SINKONCE_ADMIN_TOKEN_FILE=/etc/hostname");
    assert_one_mistake(&result, "SINKONCE_ADMIN_TOKEN and SINKONCE_ADMIN_TOKEN_FILE must not both be set");
    release(&result);
}

static void test_a_secret_that_would_break_out_of_its_header_is_a_mistake(void **state)
{
    static const char *const variables[] = {
        "SINKONCE_AUTHORIZATION=Basic s3cret\r\nX-Evil: 1",
        "SINKONCE_AUTHORIZATION=Basic s3cret\n",
        "SINKONCE_AUTHORIZATION= s3cret",
        "SINKONCE_AUTHORIZATION=s3cret\x7f",
        "SINKONCE_ADMIN_TOKEN=s3cret\n",
        "SINKONCE_ADMIN_TOKEN=s3cret\xc3\xa9",
    };
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        struct reading_result result;
        READ(&result, TARGET, variables[i]);
        assert_false(result.is_good);
        assert_int_equal(result.mistakes.line_count, 1);
        assert_null(strstr(result.mistakes.lines[0], "s3cret"));
        release(&result);
    }
}

static void test_credentials_in_a_url_are_not_repeated(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, "SINKONCE_TARGET=http://user:s3cret@target/?code=s3cret",
         "SINKONCE_TARGET_PROXY=http://user:s3cret@proxy");
    assert_false(result.is_good);
    assert_int_equal(result.mistakes.line_count, 2);
    assert_int_equal(lines_with(result.mistakes.lines, 2, "s3cret"), 0);
    assert_non_null(strstr(result.mistakes.lines[0], "(got \"http://***@target/?***\")"));
    release(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_hold_when_only_the_target_is_set),
        cmocka_unit_test(test_target_is_required),
        cmocka_unit_test(test_three_mistakes_give_three_lines),
        cmocka_unit_test(test_a_mistake_stays_one_line_whatever_the_value_holds),
        cmocka_unit_test(test_an_empty_value_is_no_value),
        cmocka_unit_test(test_an_unknown_name_is_a_mistake_with_a_suggestion),
        cmocka_unit_test(test_names_of_others_are_not_looked_at),
        cmocka_unit_test(test_what_kubernetes_injects_is_skipped_with_one_note),
        cmocka_unit_test(test_a_second_service_beside_it_is_skipped_too),
        cmocka_unit_test(test_a_secret_comes_from_a_file_without_its_line_end),
        cmocka_unit_test(test_a_password_loses_one_line_end_only),
        cmocka_unit_test(test_a_secret_file_that_cannot_hold_one_is_a_mistake),
        cmocka_unit_test(test_a_secret_file_longer_than_the_limit_is_a_mistake),
        cmocka_unit_test(test_a_secret_file_that_is_not_there_or_a_folder_is_a_mistake),
        cmocka_unit_test(test_a_secret_file_that_is_a_pipe_or_a_device_is_a_mistake_and_is_not_waited_for),
        cmocka_unit_test(test_a_secret_given_twice_is_a_mistake),
        cmocka_unit_test(test_a_secret_that_would_break_out_of_its_header_is_a_mistake),
        cmocka_unit_test(test_credentials_in_a_url_are_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
