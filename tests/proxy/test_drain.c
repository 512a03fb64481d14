/*
 * test_drain.c - how the program comes to rest, with doors and loops that only say what was asked of them.
 */
#include "drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "clock.h"

#define S ((uint64_t)NS_PER_S)

/* ---- doubles ---------------------------------------------------------------------------------------------------- */

static const char open_port[] = "there is one";
static const char bound_address[] = "127.0.0.1:34567";
static unsigned drained_count, resumed_count;
static bool is_memory_short, is_port_taken;

void loops_drain(const struct loops *loops)
{
    (void)loops;
    drained_count++;
}

bool loops_resume(const struct loops *loops)
{
    (void)loops;
    resumed_count += !is_memory_short;
    return !is_memory_short;
}

static struct listener *some_listener(void)
{
    return (struct listener *)(uintptr_t)open_port;
}

bool doors_open_data(struct doors *doors, const struct listen_address *address, char ret_why[],
                     size_t why_bytes_max)
{
    assert_string_equal(address->text, bound_address);
    snprintf(ret_why, why_bytes_max, "%s", is_port_taken ? "Address already in use" : "");
    doors->data_listener = is_port_taken ? NULL : some_listener();
    return !is_port_taken;
}

void doors_close_data(struct doors *doors)
{
    doors->data_listener = NULL;
}

const char *listener_address(const struct listener *listener)
{
    assert_ptr_equal(listener, open_port);
    return bound_address;
}

/* ---- one program ------------------------------------------------------------------------------------------------ */

static struct settings settings;
static struct program program;
static struct program_state told;
static struct doors doors;
static struct drain drain;
static char why[128];

static int setup(void **state)
{
    (void)state;
    settings = (struct settings){ .drain_delay_ms = 3000, .drain_timeout_ms = 20000 };
    memset(&program, 0, sizeof program);
    program.settings = &settings;
    told = (struct program_state){ .is_started = true, .is_ready = true };
    doors = (struct doors){ .data_listener = some_listener() };
    drain = (struct drain){ .program = &program, .state = &told, .doors = &doors };
    drained_count = resumed_count = 0;
    is_memory_short = is_port_taken = false;
    why[0] = '\0';
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drain_deinit(&drain);
    return 0;
}

static bool set(bool is_draining)
{
    return drain_set(&drain, is_draining, why, sizeof why);
}

static void assert_open(void)
{
    assert_ptr_equal(doors.data_listener, open_port);
    assert_true(told.is_ready && !told.is_draining);
}

static void assert_shut(void)
{
    assert_null(doors.data_listener);
    assert_true(!told.is_ready && told.is_draining);
}

/* ---- for good ---------------------------------------------------------------------------------------------------- */

static void test_the_port_stays_open_through_the_delay_although_it_is_not_ready(void **state)
{
    (void)state;
    atomic_store(&program.in_flight, 1);
    drain_stop(&drain);
    uint64_t delay_until_ns = drain.life_until_ns;
    assert_true(!told.is_ready && told.is_draining && told.is_stopping);
    assert_false(drain_tick(&drain, delay_until_ns - 1));
    assert_non_null(doors.data_listener);
    assert_int_equal(drained_count, 0);
    assert_false(drain_tick(&drain, delay_until_ns));
    assert_shut();
    assert_int_equal(drained_count, 1);
}

static void test_without_a_delay_the_port_is_closed_at_once(void **state)
{
    (void)state;
    settings.drain_delay_ms = 0;
    drain_stop(&drain);
    assert_shut();
    assert_int_equal(drained_count, 1);
}

static void test_it_is_over_once_nothing_is_in_flight_and_nobody_is_connected(void **state)
{
    (void)state;
    settings.drain_delay_ms = 0;
    atomic_store(&program.in_flight, 1);
    atomic_store(&program.connections, 1);
    assert_false(drain_tick(&drain, 1)); /* nobody wants it to end */
    drain_stop(&drain);
    uint64_t now_ns = drain.life_until_ns - 15 * S;
    assert_false(drain_tick(&drain, now_ns));
    atomic_store(&program.in_flight, 0);
    assert_false(drain_tick(&drain, now_ns)); /* somebody still reads an answer */
    atomic_store(&program.connections, 0);
    assert_true(drain_tick(&drain, now_ns));
    assert_false(drain_tick(&drain, now_ns)); /* it is told once */
}

static void test_who_does_not_leave_has_half_a_second_after_the_last_answer(void **state)
{
    (void)state;
    settings.drain_delay_ms = 0;
    atomic_store(&program.connections, 1);
    drain_stop(&drain);
    uint64_t now_ns = drain.life_until_ns - 15 * S;
    assert_false(drain_tick(&drain, now_ns));
    atomic_store(&program.in_flight, 1);
    assert_false(drain_tick(&drain, now_ns + S / 4)); /* another request: it begins anew */
    atomic_store(&program.in_flight, 0);
    assert_false(drain_tick(&drain, now_ns + S));
    assert_false(drain_tick(&drain, now_ns + S + S / 2));
    assert_true(drain_tick(&drain, now_ns + S + S / 2 + 1));
}

/* ---- for a while ------------------------------------------------------------------------------------------------- */

static void test_an_operator_closes_the_port_and_opens_the_same_one_again(void **state)
{
    (void)state;
    assert_true(set(true));
    assert_shut();
    assert_true(set(true)); /* it is already */
    assert_int_equal(drained_count, 1);
    assert_true(set(false));
    assert_open();
    assert_int_equal(resumed_count, 1);
    assert_true(set(false));
    assert_int_equal(resumed_count, 1);
    assert_true(set(true)); /* and once more */
    assert_shut();
}

static void test_a_port_that_another_has_taken_stays_closed_until_it_is_free(void **state)
{
    (void)state;
    assert_true(set(true));
    is_port_taken = true;
    assert_false(set(false));
    assert_string_equal(why, "Address already in use");
    assert_shut();
    is_port_taken = false;
    assert_true(set(false));
    assert_open();
}

static void test_when_memory_is_short_some_drain_on_and_it_may_be_asked_again(void **state)
{
    (void)state;
    assert_true(set(true));
    is_memory_short = true;
    assert_false(set(false));
    assert_string_equal(why, "out of memory: some connections still drain");
    assert_true(!told.is_ready && told.is_draining);
    is_memory_short = false;
    assert_true(set(false));
    assert_open();
}

static void test_after_a_resume_that_failed_half_way_a_drain_closes_the_port_again(void **state)
{
    (void)state;
    assert_true(set(true));
    is_memory_short = true;
    assert_false(set(false));
    assert_true(set(true));
    assert_shut();
    assert_int_equal(drained_count, 2); /* those loops that had resumed drain again */
    is_memory_short = false;
    assert_true(set(false));
    assert_open();
}

static void test_while_the_program_stops_no_operator_opens_the_port(void **state)
{
    (void)state;
    settings.drain_delay_ms = 0;
    assert_true(set(true));
    drain_stop(&drain);
    assert_false(set(false));
    assert_string_equal(why, "the program is stopping");
    assert_null(doors.data_listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_port_stays_open_through_the_delay_although_it_is_not_ready),
        TEST(test_without_a_delay_the_port_is_closed_at_once),
        TEST(test_it_is_over_once_nothing_is_in_flight_and_nobody_is_connected),
        TEST(test_who_does_not_leave_has_half_a_second_after_the_last_answer),
        TEST(test_an_operator_closes_the_port_and_opens_the_same_one_again),
        TEST(test_a_port_that_another_has_taken_stays_closed_until_it_is_free),
        TEST(test_when_memory_is_short_some_drain_on_and_it_may_be_asked_again),
        TEST(test_after_a_resume_that_failed_half_way_a_drain_closes_the_port_again),
        TEST(test_while_the_program_stops_no_operator_opens_the_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
