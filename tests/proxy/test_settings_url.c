/*
 * test_settings_url.c - URLs and addresses, taken apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "settings_url.h"

static const struct {
    const char *text;
    bool is_https;
    const char *host;
    uint16_t port;
    const char *authority, *base_path, *base_query;
} good_urls[] = {
    { "http://target", false, "target", 80, "target", "", "" },
    { "http://target/", false, "target", 80, "target", "", "" },
    { "http://target:80", false, "target", 80, "target", "", "" },
    { "http://target:443", false, "target", 443, "target:443", "", "" },
    { "https://target", true, "target", 443, "target", "", "" },
    { "HTTPS://Target:8443/a/b/", true, "Target", 8443, "Target:8443", "/a/b", "" },
    { "http://target/base?key=1&b=/x", false, "target", 80, "target", "/base", "key=1&b=/x" },
    { "http://target?key=@1", false, "target", 80, "target", "", "key=@1" },
    { "http://target/a:b@c", false, "target", 80, "target", "/a:b@c", "" },
    { "http://[::1]", false, "::1", 80, "[::1]", "", "" },
    { "http://[fe80::1]:8080/x", false, "fe80::1", 8080, "[fe80::1]:8080", "/x", "" },
    { "http://my_service.ns.svc:65535", false, "my_service.ns.svc", 65535, "my_service.ns.svc:65535", "",
      "" },
};

static void test_a_url_is_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_urls / sizeof good_urls[0]; i++) {
        struct target_url url;
        assert_null(target_url_parse(good_urls[i].text, &url));
        assert_string_equal(url.text, good_urls[i].text);
        assert_int_equal(url.is_https, good_urls[i].is_https);
        assert_string_equal(url.host, good_urls[i].host);
        assert_int_equal(url.port, good_urls[i].port);
        assert_string_equal(url.authority, good_urls[i].authority);
        assert_string_equal(url.base_path, good_urls[i].base_path);
        assert_string_equal(url.base_query, good_urls[i].base_query);
        target_url_deinit(&url);
    }
}

/* Two spellings of one target are one; nothing secret is in it. */
static void test_a_target_is_named_by_what_tells_it_from_others(void **state)
{
    static const struct {
        const char *text, *name;
    } named[] = {
        { "http://target", "http://target" },
        { "http://TARGET:80/", "http://target" },
        { "HTTPS://Target:443/A/b/?key=secret", "https://target/A/b" },
        { "http://target:443", "http://target:443" },
        { "http://[FE80::1]:8080/x", "http://[fe80::1]:8080/x" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        struct target_url url;
        assert_null(target_url_parse(named[i].text, &url));
        assert_string_equal(url.name, named[i].name);
        target_url_deinit(&url);
    }
}

static void test_a_url_that_could_mean_two_things_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "target",
        "//target",
        "http:/target",
        "ftp://target",
        "http://",
        "http:///x",
        "http://:80",
        "http://target:",
        "http://target:0",
        "http://target:65536",
        "http://target:080808",
        "http://target:-1",
        "http://target:8o",
        "http://u@target",
        "http://u:p@target",
        "http://@target",
        "http://target#f",
        "http://target/#f",
        "http://tar get",
        "http://target/a b",
        "http://target\t",
        "http://target\r\nX: 1",
        "http://t\xc3\xa4rget",
        "http://target\\@evil",
        "http://::1",
        "http://::1:80",
        "http://[::1",
        "http://[::1]x",
        "http://[::1]80",
        "http://[127.0.0.1]",
        "http://[]",
        "http://[::1%25eth0]",
        "http://target%00",
        "http://tar,get",
        "http://a<b",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct target_url url;
        if (target_url_parse(bad[i], &url) == NULL)
            fail_msg("\"%s\" was taken", bad[i]);
        target_url_deinit(&url);
    }
}

static void test_who_puts_a_password_into_the_target_is_told_where_it_belongs(void **state)
{
    struct target_url url;
    (void)state;
    assert_string_equal(target_url_parse("http://user:pass@target", &url),
                        "must not have a user or password in it; SINKONCE_AUTHORIZATION is for them");
    target_url_deinit(&url);
}

static void test_a_proxy_may_have_a_user_and_needs_a_port(void **state)
{
    struct target_url url;
    (void)state;
    assert_null(proxy_url_parse("http://user:p@ss@proxy:3128", &url));
    assert_string_equal(url.host, "proxy");
    assert_int_equal(url.port, 3128);
    target_url_deinit(&url);
    assert_string_equal(proxy_url_parse("http://user:pass@proxy", &url),
                        "needs a port, as in http://proxy:3128");
    target_url_deinit(&url);
    assert_string_equal(proxy_url_parse("http://proxy:1?x", &url), "must not have a path or a query");
    target_url_deinit(&url);
}

static const struct {
    const char *text;
    bool is_unix;
    const char *host;
    uint16_t port;
} good_addresses[] = {
    { "127.0.0.1:8650", false, "127.0.0.1", 8650 },
    { "0.0.0.0:0", false, "0.0.0.0", 0 },
    { "localhost:65535", false, "localhost", 65535 },
    { "[::]:8650", false, "::", 8650 },
    { "unix:/run/sinkonce.sock", true, "/run/sinkonce.sock", 0 },
};

static void test_an_address_is_taken_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_addresses / sizeof good_addresses[0]; i++) {
        struct listen_address address;
        assert_null(listen_address_parse(good_addresses[i].text, &address));
        assert_string_equal(address.text, good_addresses[i].text);
        assert_int_equal(address.is_unix, good_addresses[i].is_unix);
        assert_string_equal(address.host, good_addresses[i].host);
        assert_int_equal(address.port, good_addresses[i].port);
        listen_address_deinit(&address);
    }
}

static void test_an_address_that_cannot_be_bound_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "8650",
        ":8650",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        "::1:8650",
        "[::1]",
        "[::1]8650",
        "[x]:1",
        "a b:1",
        "unix:",
        "unix:run",
        "tcp://127.0.0.1:1",
    };
    char path[128] = "unix:/";
    struct listen_address address;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (listen_address_parse(bad[i], &address) == NULL)
            fail_msg("\"%s\" was taken", bad[i]);
        listen_address_deinit(&address);
    }
    memset(path + 6, 'x', 106); /* with the slash 107, the most that a Unix socket takes */
    assert_null(listen_address_parse(path, &address));
    listen_address_deinit(&address);
    path[112] = 'x';
    assert_non_null(listen_address_parse(path, &address));
    listen_address_deinit(&address);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_is_taken_apart),
        cmocka_unit_test(test_a_target_is_named_by_what_tells_it_from_others),
        cmocka_unit_test(test_a_url_that_could_mean_two_things_is_refused),
        cmocka_unit_test(test_who_puts_a_password_into_the_target_is_told_where_it_belongs),
        cmocka_unit_test(test_a_proxy_may_have_a_user_and_needs_a_port),
        cmocka_unit_test(test_an_address_is_taken_apart),
        cmocka_unit_test(test_an_address_that_cannot_be_bound_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
