/*
 * test_settings_print.c - the print-outs: complete, without secrets, and the same as the committed file.
 */
#include "settings_reading.h"
#include "settings_rows.h"

/* All of FILE from its beginning, which is closed; owned by the caller. */
static char *whole_text(FILE *file)
{
    enum { BYTES_MAX = 1 << 18 };
    char *text = calloc(1, BYTES_MAX);
    assert_non_null(file);
    assert_non_null(text);
    rewind(file);
    assert_true(fread(text, 1, BYTES_MAX - 1, file) > 0);
    fclose(file);
    return text;
}

/* What WRITE_ALL prints; owned by the caller. */
static char *text_of(void (*write_all)(FILE *out))
{
    FILE *out = tmpfile();
    assert_non_null(out);
    write_all(out);
    return whole_text(out);
}

static char *file_text(const char *path)
{
    return whole_text(fopen(path, "r"));
}

static void test_the_committed_file_is_what_is_printed(void **state)
{
    char *printed = text_of(settings_print_env);
    char *committed = file_text(TESTS_DIR "/../conf/sinkonce.env");
    (void)state;
    assert_string_equal(printed, committed); /* sinkonce config env > conf/sinkonce.env makes it again */
    free(printed);
    free(committed);
}

static void test_the_table_of_the_readme_is_what_is_printed(void **state)
{
    static const char begin[] = "<!-- settings:begin (sinkonce config docs) -->\n",
                      end[] = "<!-- settings:end -->";
    char *readme = file_text(TESTS_DIR "/../README.md");
    char *printed = text_of(settings_print_docs);
    (void)state;
    char *table = strstr(readme, begin);
    assert_non_null(table);
    table += strlen(begin);
    assert_non_null(strstr(table, end));
    *strstr(table, end) = '\0';
    assert_string_equal(table, printed);
    free(readme);
    free(printed);
}

static void test_every_row_has_words_and_stands_in_every_print_out(void **state)
{
    char *env = text_of(settings_print_env), *docs = text_of(settings_print_docs),
         *help = text_of(settings_print_help);
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char name[80];
        assert_true(strlen(settings_rows[i].words) > 5);
        assert_null(strchr(settings_rows[i].words, '\n'));
        snprintf(name, sizeof name, "\n#%s=", settings_rows[i].name);
        assert_non_null(strstr(env, name));
        snprintf(name, sizeof name, "| `%s`", settings_rows[i].name);
        assert_non_null(strstr(docs, name));
        assert_non_null(strstr(docs, settings_rows[i].words));
        snprintf(name, sizeof name, "    %s", settings_rows[i].name);
        assert_non_null(strstr(help, name));
    }
    free(env);
    free(docs);
    free(help);
}

/* The file works as it is once the target is filled in: docker --env-file and systemd read it line by line. */
static void test_the_defaults_of_the_file_can_be_read_back(void **state)
{
    char *text = text_of(settings_print_env), *environment[ROW_COUNT + 1] = { NULL }, *rest = text;
    struct reading_result result;
    size_t count = 0;
    (void)state;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strncmp(line, "#SINKONCE_", 10) != 0)
            continue;
        assert_true(count < ROW_COUNT);
        environment[count++] = line + 1;
    }
    assert_int_equal(count, ROW_COUNT);
    environment[ROW_TARGET] = strdup(TARGET);
    result.is_good = settings_read(environment, &result.settings, &result.mistakes);
    assert_good(&result);
    release(&result);
    free(environment[ROW_TARGET]);
    free(text);
}

/* How far into TEXT the words stand. */
static long place_of(const char *text, const char *words)
{
    const char *found = strstr(text, words);
    if (found == NULL)
        fail_msg("%s is not there", words);
    return found - text;
}

static void test_groups_stand_in_their_order(void **state)
{
    char *docs = text_of(settings_print_docs);
    (void)state;
    assert_true(place_of(docs, "| **Core** | | |") < place_of(docs, "`SINKONCE_TARGET`"));
    assert_true(place_of(docs, "`SINKONCE_LEDGER_MAX`") < place_of(docs, "| **Life** | | |"));
    assert_true(place_of(docs, "| **Life** | | |") < place_of(docs, "`SINKONCE_DRAIN_DELAY`"));
    assert_non_null(strstr(docs, "| `SINKONCE_TARGET` | required | "));
    assert_non_null(strstr(docs, "| `SINKONCE_ADMIN_TOKEN` (F) | none | "));
    assert_non_null(strstr(docs, "| `SINKONCE_WAIT` | `2s` | "));
    free(docs);
}

/* ---- values -------------------------------------------------------------------------------------------------- */

/* What settings_print() says of ENVIRONMENT; owned by the caller. */
static char *printed_with(char *environment[])
{
    struct reading_result result;
    FILE *out = tmpfile();
    assert_non_null(out);
    result.is_good = settings_read(environment, &result.settings, &result.mistakes);
    assert_good(&result);
    settings_print(&result.settings, environment, out);
    release(&result);
    return whole_text(out);
}

static void test_values_come_with_their_source(void **state)
{
    char target[] = "SINKONCE_TARGET=http://target:8080/base", wait[] = "SINKONCE_WAIT=3s";
    char *environment[] = { target, wait, NULL };
    char *text = printed_with(environment);
    (void)state;
    assert_non_null(strstr(text, "SINKONCE_TARGET=http://target:8080/base  # environment\n"));
    assert_non_null(strstr(text, "SINKONCE_WAIT=3s  # environment\n"));
    assert_non_null(strstr(text, "SINKONCE_RETRY_AFTER=1s  # default\n"));
    assert_null(strstr(text, "SINKONCE_WORKERS=auto")); /* but the number that it became */
    free(text);
}

static void test_secrets_are_never_printed(void **state)
{
    char path[64], file[128];
    char target[] = "SINKONCE_TARGET=http://target/?code=s3cret",
         authorization[] = "SINKONCE_AUTHORIZATION=s3cret";
    char proxy[] = "SINKONCE_TARGET_PROXY=http://user:s3cret@proxy:3128";
    char *environment[] = { target, authorization, proxy, file, NULL };
    (void)state;
    file_with("s3cret", 6, path);
    snprintf(file, sizeof file, "SINKONCE_ADMIN_TOKEN_FILE=%s", path);
    char *text = printed_with(environment);
    unlink(path);
    assert_null(strstr(text, "s3cret"));
    assert_non_null(strstr(text, "SINKONCE_TARGET=http://target/?***  # environment\n"));
    assert_non_null(strstr(text, "SINKONCE_AUTHORIZATION=***  # environment\n"));
    assert_non_null(strstr(text, "SINKONCE_ADMIN_TOKEN=***  # file\n"));
    assert_non_null(strstr(text, "SINKONCE_TARGET_KEY_PASSWORD=  # default\n"));
    assert_non_null(strstr(text, "SINKONCE_TARGET_PROXY=http://***@proxy:3128  # environment\n"));
    free(text);
}

static void test_statuses_are_printed_as_they_hold(void **state)
{
    char target[] = TARGET, applied[] = "SINKONCE_APPLIED_STATUS=200-299,409";
    char *environment[] = { target, applied, NULL };
    char *text = printed_with(environment);
    (void)state;
    assert_non_null(strstr(text, "SINKONCE_APPLIED_STATUS=200-299,409  # environment\n"));
    assert_non_null(strstr(text, "SINKONCE_NOT_APPLIED_STATUS=300-408,410-499,501,503,505  # default\n"));
    free(text);
}

static void test_a_url_is_masked_wherever_its_parts_stand(void **state)
{
    static const struct {
        const char *text, *masked;
    } rows[] = {
        { "http://h/p", "http://h/p" },
        { "http://u:p@h/p?q", "http://***@h/p?***" },
        { "http://u:a/b?c@h", "http://***@h" }, /* not a URL, but somebody's password */
        { "u:p@h", "***@h" },
        { "", "" },
    };
    char room[SETTINGS_WORDS_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        settings_mask_url(rows[i].text, room);
        assert_string_equal(room, rows[i].masked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_committed_file_is_what_is_printed),
        cmocka_unit_test(test_the_table_of_the_readme_is_what_is_printed),
        cmocka_unit_test(test_every_row_has_words_and_stands_in_every_print_out),
        cmocka_unit_test(test_the_defaults_of_the_file_can_be_read_back),
        cmocka_unit_test(test_groups_stand_in_their_order),
        cmocka_unit_test(test_values_come_with_their_source),
        cmocka_unit_test(test_secrets_are_never_printed),
        cmocka_unit_test(test_statuses_are_printed_as_they_hold),
        cmocka_unit_test(test_a_url_is_masked_wherever_its_parts_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
