/*
 * test_settings_check.c - combinations of settings: mistakes, and notes.
 */
#include "papers.h"
#include "settings_reading.h"
#include <sys/stat.h>

enum { VARIABLES_MAX = 5 };

/* Each row beside a good target, unless it names one; NULL: it works. */
static const struct {
    const char *variables[VARIABLES_MAX];
    const char *mistake;
} combinations[] = {
    { { "SINKONCE_LISTEN=127.0.0.1:8651" }, "SINKONCE_ADMIN_LISTEN must be another address" },
    { { "SINKONCE_LISTEN=0.0.0.0:8651" }, "SINKONCE_ADMIN_LISTEN must be another address" },
    { { "SINKONCE_LISTEN=unix:/a", "SINKONCE_ADMIN_LISTEN=unix:/a" },
      "SINKONCE_ADMIN_LISTEN must be another" },
    { { "SINKONCE_LISTEN=unix:/a", "SINKONCE_ADMIN_LISTEN=unix:/b" }, NULL },
    { { "SINKONCE_LISTEN=127.0.0.1:0", "SINKONCE_ADMIN_LISTEN=127.0.0.1:0" }, NULL },
    { { "SINKONCE_LISTEN=127.0.0.2:8651" }, NULL },
    { { "SINKONCE_TARGET=http://localhost:8650" }, "SINKONCE_TARGET must not be sinkonce's own address" },
    { { "SINKONCE_TARGET=http://127.0.0.1:8651/x" }, "SINKONCE_TARGET must not be sinkonce's own address" },
    { { "SINKONCE_TARGET=http://127.0.0.1:9", "SINKONCE_LISTEN=0.0.0.0:9" }, "SINKONCE_TARGET must not be" },
    { { "SINKONCE_TARGET=http://other:8650" }, NULL },
    { { "SINKONCE_ID=path" }, "SINKONCE_ID needs SINKONCE_ID_FORMAT too" },
    { { "SINKONCE_ID_FORMAT={topic}+{partition}+{offset}" }, "SINKONCE_ID_FORMAT needs SINKONCE_ID too" },
    { { "SINKONCE_ID=path", "SINKONCE_ID_FORMAT=/t/{topic}/{partition}/{offset}" }, NULL },
    { { "SINKONCE_ID=header:ce-id", "SINKONCE_ID_FORMAT=p:{partition}/o:{offset}" },
      "SINKONCE_ID_FORMAT has no {topic}" },
    { { "SINKONCE_ID=header:ce-id", "SINKONCE_ID_FORMAT=p:{partition}/o:{offset}", "SINKONCE_TOPIC=const:t" },
      NULL },
    { { "SINKONCE_ID=path,header:a", "SINKONCE_ID_FORMAT=/{topic}/{partition}/{offset}" }, "SINKONCE_ID " },
    { { "SINKONCE_MAX_BODY=128MiB" }, NULL },
    { { "SINKONCE_MAX_BODY=129MiB" }, "SINKONCE_MAX_BODIES must be at least twice SINKONCE_MAX_BODY" },
    { { "SINKONCE_MAX_BODY=1GiB", "SINKONCE_MAX_BODIES=2GiB" }, NULL },
    { { "SINKONCE_MAX_BODIES=31MiB" }, "SINKONCE_MAX_BODIES must be at least twice SINKONCE_MAX_BODY" },
    { { "SINKONCE_MAX_BODY=1GiB", "SINKONCE_MAX_BODIES=1" }, "SINKONCE_MAX_BODIES needs a unit" },
    { { "SINKONCE_SHAPE=envelope" }, "SINKONCE_SHAPE=envelope needs SINKONCE_ENVELOPE too" },
    { { "SINKONCE_SHAPE=envelope", "SINKONCE_ENVELOPE=/rows" }, NULL },
    { { "SINKONCE_SHAPE=bulk", "SINKONCE_ENVELOPE=/rows" }, "SINKONCE_ENVELOPE needs SINKONCE_SHAPE" },
    { { "SINKONCE_PREFIX=[" }, "SINKONCE_PREFIX and SINKONCE_SUFFIX need SINKONCE_SHAPE=separated" },
    { { "SINKONCE_SHAPE=separated", "SINKONCE_PREFIX=[", "SINKONCE_SUFFIX=]", "SINKONCE_SEPARATOR=," },
      NULL },
    /* A coordinate that is set replaces its column in every default rule, so that each may stand alone. */
    { { "SINKONCE_PARTITION=header:p", "SINKONCE_TOPIC=const:t" }, NULL },
    { { "SINKONCE_OFFSET=header:o" }, NULL },
    { { "SINKONCE_TOPIC=const:t" }, NULL },
    { { "SINKONCE_TOPIC=const:t", "SINKONCE_PARTITION=json:/p", "SINKONCE_OFFSET=query:o,header:o" }, NULL },
    { { "SINKONCE_TOPIC=cookie:t", "SINKONCE_PARTITION=json:/p", "SINKONCE_OFFSET=json:/o" },
      "SINKONCE_TOPIC " },
    { { "SINKONCE_TOPIC=const:t", "SINKONCE_ID=cookie:x", "SINKONCE_ID_FORMAT={partition}+{offset}" },
      "SINKONCE_ID " },
    { { "SINKONCE_APPLIED_STATUS=200,400,x", "SINKONCE_NOT_APPLIED_STATUS=400" },
      "SINKONCE_APPLIED_STATUS must be statuses" },
    { { "SINKONCE_APPLIED_STATUS=200-299,409", "SINKONCE_NOT_APPLIED_STATUS=400-499" },
      "SINKONCE_NOT_APPLIED_STATUS and SINKONCE_APPLIED_STATUS must not share a status (409)" },
    { { "SINKONCE_APPLIED_STATUS=200-299,409" }, NULL },
    { { "SINKONCE_NOT_APPLIED_STATUS=207,400-499" }, NULL },
    { { "SINKONCE_TARGET_CERT_FILE=/dev/null" },
      "SINKONCE_TARGET_CERT_FILE needs SINKONCE_TARGET_KEY_FILE too" },
    { { "SINKONCE_TARGET_KEY_FILE=/dev/null" },
      "SINKONCE_TARGET_KEY_FILE needs SINKONCE_TARGET_CERT_FILE too" },
    { { "SINKONCE_TARGET_KEY_PASSWORD=x" },
      "SINKONCE_TARGET_KEY_PASSWORD needs SINKONCE_TARGET_KEY_FILE too" },
    { { "SINKONCE_TARGET_CERT_FILE=/nowhere", "SINKONCE_TARGET_KEY_FILE=good.key" },
      "SINKONCE_TARGET_CERT_FILE names a file that cannot be read: No such file or directory (/nowhere)" },
    { { "SINKONCE_IN_DOUBT=probe" }, "SINKONCE_IN_DOUBT=probe needs SINKONCE_PROBE_URL too" },
    { { "SINKONCE_IN_DOUBT=probe", "SINKONCE_PROBE_URL=/o/{offset}" }, NULL },
    { { "SINKONCE_IN_DOUBT=probe", "SINKONCE_PROBE_URL=x" }, "SINKONCE_PROBE_URL must begin with" },
    { { "SINKONCE_PROBE_APPLIED=status:200-299", "SINKONCE_PROBE_ABSENT=status:204,404" },
      "SINKONCE_PROBE_APPLIED and SINKONCE_PROBE_ABSENT must not both hold" },
    { { "SINKONCE_PROBE_APPLIED=json:/a", "SINKONCE_PROBE_ABSENT=json:/a" },
      "SINKONCE_PROBE_APPLIED and SINKONCE_PROBE_ABSENT must not both hold" },
    { { "SINKONCE_PROBE_APPLIED=json:/a", "SINKONCE_PROBE_ABSENT=no-json:/a" }, NULL },
    { { "SINKONCE_PROBE_APPLIED=json:/a", "SINKONCE_PROBE_METHOD=HEAD" },
      "SINKONCE_PROBE_METHOD=HEAD gets no body" },
    { { "SINKONCE_TARGET=https://h", "SINKONCE_TARGET_CA_FILE=/etc" },
      "SINKONCE_TARGET_CA_FILE names a file that cannot be read: Is a directory (/etc)" },
    { { "SINKONCE_WAIT=10m", "SINKONCE_TARGET_TIMEOUT=1s" }, NULL },
    /* the files are made by setup(), in the folder where the test runs */
    { { "SINKONCE_LISTEN_CERT_FILE=good.pem" },
      "SINKONCE_LISTEN_CERT_FILE needs SINKONCE_LISTEN_KEY_FILE too" },
    { { "SINKONCE_LISTEN_KEY_FILE=good.key" },
      "SINKONCE_LISTEN_KEY_FILE needs SINKONCE_LISTEN_CERT_FILE too" },
    { { "SINKONCE_ADMIN_CERT_FILE=good.pem" }, "SINKONCE_ADMIN_CERT_FILE needs SINKONCE_ADMIN_KEY_FILE too" },
    { { "SINKONCE_ADMIN_CLIENT_CA_FILE=ca.pem" },
      "SINKONCE_ADMIN_CLIENT_CA_FILE needs SINKONCE_ADMIN_CERT_FILE too" },
    { { "SINKONCE_LISTEN_CLIENT_CA_FILE=ca.pem" },
      "SINKONCE_LISTEN_CLIENT_CA_FILE needs SINKONCE_LISTEN_CERT_FILE too" },
    { { "SINKONCE_LISTEN_CERT_FILE=good.pem", "SINKONCE_LISTEN_KEY_FILE=good.key",
        "SINKONCE_LISTEN_CLIENT_CA_FILE=ca.pem" },
      NULL },
    { { "SINKONCE_LISTEN_CERT_FILE=good.pem", "SINKONCE_LISTEN_KEY_FILE=other.key" },
      "SINKONCE_LISTEN_KEY_FILE names a key that does not belong to the certificate (other.key)" },
    { { "SINKONCE_ADMIN_CERT_FILE=good.pem", "SINKONCE_ADMIN_KEY_FILE=nowhere.key" },
      "SINKONCE_ADMIN_KEY_FILE names a file that cannot be read: No such file or directory (nowhere.key)" },
    { { "SINKONCE_LISTEN_CERT_FILE=good.pem", "SINKONCE_LISTEN_KEY_FILE=locked.key" },
      "SINKONCE_LISTEN_KEY_FILE names a file without a usable key: it is encrypted, and there is no "
      "password" },
    { { "SINKONCE_LISTEN_CERT_FILE=old.pem", "SINKONCE_LISTEN_KEY_FILE=old.key" },
      "SINKONCE_LISTEN_CERT_FILE: its certificate expired on " },
    { { "SINKONCE_TARGET=https://h", "SINKONCE_TARGET_CERT_FILE=locked.pem",
        "SINKONCE_TARGET_KEY_FILE=locked.key", "SINKONCE_TARGET_KEY_PASSWORD=opensesame" },
      NULL },
    { { "SINKONCE_TARGET=https://h", "SINKONCE_TARGET_CERT_FILE=locked.pem",
        "SINKONCE_TARGET_KEY_FILE=locked.key", "SINKONCE_TARGET_KEY_PASSWORD=other" },
      "SINKONCE_TARGET_KEY_FILE names a file without a usable key: the password does not open it" },
    { { "SINKONCE_CLIENT_TOKEN=two words" }, "SINKONCE_CLIENT_TOKEN becomes a bearer token" },
};

static void read_row(struct reading_result *result, const char *const variables[VARIABLES_MAX])
{
    const char *all[VARIABLES_MAX + 2] = { NULL };
    size_t count = 0;
    if (strncmp(variables[0], "SINKONCE_TARGET=", 16) != 0)
        all[count++] = TARGET;
    for (size_t i = 0; i < VARIABLES_MAX && variables[i] != NULL; i++)
        all[count++] = variables[i];
    read_from(result, all);
}

static void test_each_combination_works_or_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof combinations / sizeof combinations[0]; i++) {
        struct reading_result result;
        const char *wanted = combinations[i].mistake;
        read_row(&result, combinations[i].variables);
        if (result.mistakes.line_count != (wanted != NULL)) {
            print_error("row %zu: %s\n", i, combinations[i].variables[0]);
            print_lines(&result.mistakes);
        }
        assert_int_equal(result.is_good, wanted == NULL);
        assert_int_equal(result.mistakes.line_count, wanted != NULL);
        if (wanted != NULL)
            assert_int_equal(strncmp(result.mistakes.lines[0], wanted, strlen(wanted)), 0);
        release(&result);
    }
}

static void test_a_status_set_in_one_list_leaves_the_default_of_the_other(void **state)
{
    struct reading_result result;
    (void)state;
    READ(&result, TARGET, "SINKONCE_APPLIED_STATUS=200-299,409");
    assert_true(status_set_has(&result.settings.applied_status, 409));
    assert_false(status_set_has(&result.settings.not_applied_status, 409));
    assert_true(status_set_has(&result.settings.not_applied_status, 410));
    release(&result);
}

static const struct {
    const char *variables[VARIABLES_MAX];
    const char *note; /* NULL: none */
} risks[] = {
    { { "SINKONCE_MODE=off" }, "SINKONCE_MODE=off: " },
    { { "SINKONCE_MODE=observe" }, NULL },
    { { "SINKONCE_IN_DOUBT=retry" }, "SINKONCE_IN_DOUBT=retry: " },
    { { "SINKONCE_IN_DOUBT=assume-applied" }, "SINKONCE_IN_DOUBT=assume-applied: " },
    { { "SINKONCE_TARGET_VERIFY=off" }, "SINKONCE_TARGET_VERIFY=off: " },
    { { "SINKONCE_ADMIN_LISTEN=0.0.0.0:8651" }, "SINKONCE_ADMIN_LISTEN can be reached" },
    { { "SINKONCE_ADMIN_LISTEN=0.0.0.0:8651", "SINKONCE_ADMIN_TOKEN=x" }, NULL },
    { { "SINKONCE_ADMIN_LISTEN=0.0.0.0:8651", "SINKONCE_ADMIN_TOKEN=x", "SINKONCE_ADMIN_CERT_FILE=good.pem",
        "SINKONCE_ADMIN_KEY_FILE=good.key" },
      NULL },
    { { "SINKONCE_CLIENT_TOKEN=x" }, NULL },
    { { "SINKONCE_CLIENT_TOKEN=x", "SINKONCE_LISTEN=0.0.0.0:8650" },
      "SINKONCE_CLIENT_TOKEN crosses the network as it is" },
    { { "SINKONCE_CLIENT_TOKEN=x", "SINKONCE_LISTEN=0.0.0.0:8650", "SINKONCE_LISTEN_CERT_FILE=good.pem",
        "SINKONCE_LISTEN_KEY_FILE=good.key" },
      NULL },
    { { "SINKONCE_LISTEN_CERT_FILE=soon.pem", "SINKONCE_LISTEN_KEY_FILE=soon.key" },
      "SINKONCE_LISTEN_CERT_FILE: its certificate expires on " },
    { { "SINKONCE_LISTEN_CERT_FILE=early.pem", "SINKONCE_LISTEN_KEY_FILE=early.key" },
      "SINKONCE_LISTEN_CERT_FILE: its certificate is not valid yet" },
    { { "SINKONCE_LISTEN_CERT_FILE=open.pem", "SINKONCE_LISTEN_KEY_FILE=open.key" },
      "SINKONCE_LISTEN_KEY_FILE can be read by every user of this machine (open.key)" },
    { { "SINKONCE_TARGET=https://h", "SINKONCE_TARGET_CERT_FILE=old.pem",
        "SINKONCE_TARGET_KEY_FILE=old.key" },
      "SINKONCE_TARGET_CERT_FILE: its certificate expired on " },
    { { "SINKONCE_ADMIN_LISTEN=unix:/a" }, NULL },
    { { "SINKONCE_ADMIN_LISTEN=[::1]:1" }, NULL },
    { { "SINKONCE_ADMIN_LISTEN=localhost:1" }, NULL },
    { { "SINKONCE_TARGET_CA_FILE=ca.pem" }, "SINKONCE_TARGET begins with http://: " },
    { { "SINKONCE_TARGET=https://h", "SINKONCE_TARGET_CA_FILE=ca.pem" }, NULL },
    { { "SINKONCE_UNKEYED=forward" }, NULL },
};

static void test_what_gives_a_promise_away_is_noted_but_works(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof risks / sizeof risks[0]; i++) {
        struct reading_result result;
        read_row(&result, risks[i].variables);
        if (result.mistakes.note_count != (risks[i].note != NULL))
            print_error("row %zu: %s\n", i, risks[i].variables[0]);
        assert_good(&result);
        assert_int_equal(result.mistakes.note_count, risks[i].note != NULL);
        if (risks[i].note != NULL)
            assert_int_equal(strncmp(result.mistakes.notes[0], risks[i].note, strlen(risks[i].note)), 0);
        release(&result);
    }
}

static struct papers papers;

static int setup(void **state)
{
    static const struct paper all[] = {
        { "ca", NULL, NULL, -1, 90 },    { "good", "ca", NULL, -1, 60 },
        { "other", "ca", NULL, -1, 60 }, { "old", "ca", NULL, -40, -10 },
        { "soon", "ca", NULL, -1, 10 },  { "early", "ca", NULL, 2, 60 },
        { "open", "ca", NULL, -1, 60 },  { "locked", "ca", "opensesame", -1, 60 },
    };
    (void)state;
    papers_init(&papers);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        papers_make(&papers, &all[i]);
    return chdir(papers.folder) | chmod("open.key", 0644);
}

static int teardown(void **state)
{
    (void)state;
    papers_deinit(&papers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_combination_works_or_is_named),
        cmocka_unit_test(test_a_status_set_in_one_list_leaves_the_default_of_the_other),
        cmocka_unit_test(test_what_gives_a_promise_away_is_noted_but_works),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
