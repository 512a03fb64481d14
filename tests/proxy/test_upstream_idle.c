/*
 * test_upstream_idle.c - the table of last uses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "clock.h"
#include "upstream_idle.h"

static uint64_t ms(uint64_t count)
{
    return count * NS_PER_MS;
}

static void test_a_connection_is_fresh_up_to_its_limit_and_not_at_it(void **state)
{
    struct idle_table table;
    (void)state;
    assert_true(idle_table_init(&table, 4));
    idle_table_note(&table, 40000, 7, 500, ms(1000));
    assert_non_null(idle_table_fresh(&table, 40000, ms(1000)));
    assert_int_equal(idle_table_fresh(&table, 40000, ms(1500) - 1)->fd, 7);
    assert_null(idle_table_fresh(&table, 40000, ms(1500)));
    assert_null(idle_table_fresh(&table, 40001, ms(1000)));
    idle_table_note(&table, 40000, 8, 100, ms(2000));
    assert_int_equal(idle_table_fresh(&table, 40000, ms(2000))->fd, 8);
    assert_null(idle_table_fresh(&table, 40000, ms(2100)));
    idle_table_note(&table, 40000, 8, 0, ms(3000));
    assert_null(idle_table_fresh(&table, 40000, ms(3000)));
    idle_table_deinit(&table);
}

static void test_the_oldest_is_forgotten_and_forgotten_is_too_old(void **state)
{
    struct idle_table table;
    unsigned fresh_count = 0;
    (void)state;
    assert_true(idle_table_init(&table, 1)); /* two sets */
    for (int port = 1; port <= 1000; port++)
        idle_table_note(&table, port, port, 60000, ms((uint64_t)port));
    for (int port = 1; port <= 1000; port++)
        fresh_count += idle_table_fresh(&table, port, ms(1000)) != NULL;
    assert_int_equal(fresh_count, 2 * IDLE_WAYS);
    assert_non_null(idle_table_fresh(&table, 1000, ms(1000)));
    assert_null(idle_table_fresh(&table, 1, ms(1000)));
    idle_table_deinit(&table);
}

static void test_ports_of_one_parity_find_room(void **state)
{
    enum { CONNECTIONS = 64 };
    struct idle_table table;
    unsigned fresh_count = 0;
    (void)state;
    assert_true(idle_table_init(&table, CONNECTIONS));
    for (int i = 0; i < CONNECTIONS; i++)
        idle_table_note(&table, 32768 + 2 * i, i, 1000, ms(1));
    for (int i = 0; i < CONNECTIONS; i++)
        fresh_count += idle_table_fresh(&table, 32768 + 2 * i, ms(1)) != NULL;
    assert_int_equal(fresh_count, CONNECTIONS);
    idle_table_deinit(&table);
}

static void test_the_time_that_a_target_names_is_found(void **state)
{
    const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        { "timeout=5", 5 },
        { "timeout=5, max=100", 5 },
        { "max=100, timeout=15", 15 },
        { "max=1,Timeout=0", 0 },
        { "", IDLE_TIMEOUT_NONE },
        { "timeout=", IDLE_TIMEOUT_NONE },
        { "timeout=x", IDLE_TIMEOUT_NONE },
        { "xtimeout=5", IDLE_TIMEOUT_NONE },
        { "max=100", IDLE_TIMEOUT_NONE },
        { "timeout=-1", IDLE_TIMEOUT_NONE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(idle_timeout_seconds(slice_of_text(rows[i].text)), rows[i].seconds);
    assert_true(idle_timeout_seconds(slice_of_text("timeout=99999999999999999999999")) >= UINT32_MAX);
}

static void test_the_shorter_of_setting_and_target_counts(void **state)
{
    (void)state;
    assert_int_equal(idle_limit_ms(2000, IDLE_TIMEOUT_NONE), 2000);
    assert_int_equal(idle_limit_ms(2000, 60), 2000);
    assert_int_equal(idle_limit_ms(2000, 2), 1800);
    assert_int_equal(idle_limit_ms(2000, 0), 0);
    assert_int_equal(idle_limit_ms(0, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_connection_is_fresh_up_to_its_limit_and_not_at_it),
        cmocka_unit_test(test_the_oldest_is_forgotten_and_forgotten_is_too_old),
        cmocka_unit_test(test_ports_of_one_parity_find_room),
        cmocka_unit_test(test_the_time_that_a_target_names_is_found),
        cmocka_unit_test(test_the_shorter_of_setting_and_target_counts),
    };
    return cmocka_run_group_tests_name("upstream_idle", tests, NULL, NULL);
}
