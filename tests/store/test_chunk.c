/*
 * test_chunk.c - the applied set of one chunk against a naive bitmap.
 */
#include "chunk.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

static struct chunk chunk, read_chunk;
static uint8_t bytes[CHUNK_BYTES_MAX];
static bool naive[CHUNK_OFFSETS];

static void assert_as_naive(const struct chunk *actual)
{
    uint32_t count = 0, runs = 0;
    for (uint32_t i = 0; i < CHUNK_OFFSETS; i++) {
        count += naive[i];
        runs += naive[i] && (i == 0 || !naive[i - 1]);
    }
    assert_int_equal(actual->applied_count, count);
    assert_int_equal(actual->run_count, runs);
    for (uint32_t at = 0; at < CHUNK_OFFSETS;) {
        uint16_t last;
        bool is_in = chunk_stretch(actual, (uint16_t)at, &last);
        assert_true(last >= at);
        for (uint32_t i = at; i <= last; i++)
            assert_int_equal(naive[i], is_in);
        assert_true(last == CHUNK_OFFSETS - 1 || naive[last + 1] != is_in);
        at = (uint32_t)last + 1;
    }
}

static void add(uint16_t first, uint16_t last)
{
    uint32_t fresh = 0;
    for (uint32_t i = first; i <= last; i++) {
        fresh += !naive[i];
        naive[i] = true;
    }
    assert_int_equal(chunk_add(&chunk, first, last), fresh);
}

static int begin(void **state)
{
    (void)state;
    chunk_init(&chunk);
    memset(naive, 0, sizeof naive);
    return 0;
}

static void assert_survives_the_disk(void)
{
    size_t byte_count = chunk_write(&chunk, bytes);
    assert_true(byte_count <= CHUNK_BYTES_MAX);
    assert_true(chunk_read(slice_of((const char *)bytes, byte_count), &read_chunk));
    assert_as_naive(&read_chunk);
}

static void test_runs_that_touch_become_one(void **state)
{
    (void)state;
    add(10, 19);
    add(30, 39);
    add(20, 29);
    assert_int_equal(chunk.run_count, 1);
    assert_as_naive(&chunk);
    assert_survives_the_disk();
}

static void test_the_ends_of_the_chunk_are_ordinary(void **state)
{
    (void)state;
    add(0, 0);
    add(65535, 65535);
    assert_true(chunk_contains(&chunk, 0));
    assert_true(chunk_contains(&chunk, 65535));
    assert_false(chunk_contains(&chunk, 1));
    assert_false(chunk_contains(&chunk, 65534));
    assert_survives_the_disk();
    add(0, 65535);
    assert_int_equal(chunk.applied_count, CHUNK_OFFSETS);
    assert_int_equal(chunk.run_count, 1);
    assert_survives_the_disk();
}

static void test_a_run_costs_a_few_bytes(void **state)
{
    (void)state;
    add(5, 60000);
    assert_int_equal(chunk_write(&chunk, bytes), 1 + 4);
}

static void test_the_most_ragged_chunk_is_a_bitmap_of_8_KiB(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CHUNK_OFFSETS; i += 2)
        add((uint16_t)i, (uint16_t)i);
    assert_int_equal(chunk_write(&chunk, bytes), CHUNK_BYTES_MAX);
    assert_survives_the_disk();
    for (uint32_t i = 1; i < CHUNK_OFFSETS; i += 2)
        add((uint16_t)i, (uint16_t)i);
    assert_int_equal(chunk.applied_count, CHUNK_OFFSETS);
    assert_int_equal(chunk_write(&chunk, bytes), 1 + 4); /* whichever is smaller */
    assert_survives_the_disk();
}

static void test_random_additions_are_as_a_naive_bitmap(void **state)
{
    unsigned seed = 11;
    (void)state;
    for (int round = 0; round < 20; round++) {
        begin(NULL);
        int additions = round % 2 == 0 ? 50 : 6000;
        for (int i = 0; i < additions; i++) {
            uint16_t first = (uint16_t)rand_r(&seed);
            uint32_t last = first + (uint32_t)rand_r(&seed) % (round % 4 == 3 ? 3 : 200);
            add(first, (uint16_t)(last > 65535 ? 65535 : last));
        }
        assert_as_naive(&chunk);
        assert_survives_the_disk();
    }
}

static void assert_refused(const uint8_t damaged[], size_t byte_count)
{
    assert_false(chunk_read(slice_of((const char *)damaged, byte_count), &read_chunk));
    assert_int_equal(read_chunk.applied_count, 0);
}

static void test_bytes_that_are_no_chunk_are_refused(void **state)
{
    static const uint8_t unknown_form[] = { 9, 0, 0, 0, 0 }, cut[] = { 1, 0, 0, 0 }, nothing[] = { 1 };
    static const uint8_t descending[] = { 1, 0, 9, 0, 0, 0, 1, 0, 0 },
                         touching[] = { 1, 0, 1, 0, 0, 0, 2, 0, 0 };
    static const uint8_t beyond[] = { 1, 0xFF, 0xFF, 0, 1 };
    static uint8_t empty_bitmap[CHUNK_BYTES_MAX] = { 2 };
    (void)state;
    assert_refused(unknown_form, 0);
    assert_refused(unknown_form, sizeof unknown_form);
    assert_refused(cut, sizeof cut);
    assert_refused(nothing, sizeof nothing);
    assert_refused(descending, sizeof descending);
    assert_refused(touching, sizeof touching);
    assert_refused(beyond, sizeof beyond);
    assert_refused(empty_bitmap, sizeof empty_bitmap);
    assert_refused(empty_bitmap, sizeof empty_bitmap - 1);
}

static void test_what_is_taken_out_is_out_and_the_rest_stays(void **state)
{
    static bool model[CHUNK_OFFSETS];
    static struct chunk set;
    unsigned which = 11;
    (void)state;
    for (int round = 0; round < 40; round++) {
        chunk_init(&set);
        memset(model, 0, sizeof model);
        for (int i = 0; i < 60; i++) {
            unsigned first = (unsigned)rand_r(&which) % CHUNK_OFFSETS;
            unsigned last = first + (unsigned)rand_r(&which) % (round % 2 == 0 ? 3000 : 3);
            last = last < CHUNK_OFFSETS ? last : CHUNK_OFFSETS - 1;
            bool is_out = i % 3 == 2;
            uint32_t expected = 0, changed;
            for (unsigned at = first; at <= last; at++) {
                expected += model[at] == is_out;
                model[at] = !is_out;
            }
            changed = is_out ? chunk_remove(&set, (uint16_t)first, (uint16_t)last)
                             : chunk_add(&set, (uint16_t)first, (uint16_t)last);
            assert_int_equal(changed, expected);
        }
        for (unsigned at = 0; at < CHUNK_OFFSETS; at++)
            assert_int_equal(chunk_contains(&set, (uint16_t)at), model[at]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_runs_that_touch_become_one, begin),
        cmocka_unit_test_setup(test_the_ends_of_the_chunk_are_ordinary, begin),
        cmocka_unit_test_setup(test_a_run_costs_a_few_bytes, begin),
        cmocka_unit_test_setup(test_the_most_ragged_chunk_is_a_bitmap_of_8_KiB, begin),
        cmocka_unit_test_setup(test_random_additions_are_as_a_naive_bitmap, begin),
        cmocka_unit_test_setup(test_bytes_that_are_no_chunk_are_refused, begin),
        cmocka_unit_test(test_what_is_taken_out_is_out_and_the_rest_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
