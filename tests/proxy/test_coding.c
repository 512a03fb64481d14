/*
 * test_coding.c - bodies are opened to a limit and packed again; what is damaged, cut or too large is told apart.
 */
#include "coding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <zstd.h>

static const enum coding codings[] = { CODING_GZIP, CODING_DEFLATE, CODING_DEFLATE_RAW, CODING_ZSTD };
enum { CODING_COUNT = sizeof codings / sizeof codings[0] };

/* Release the bytes. */
static struct slice packed_of(enum coding coding, const char *bytes, size_t byte_count)
{
    struct slice part = slice_of(bytes, byte_count), packed;
    char *at;
    assert_int_equal(coding_pack(coding, &part, 1, &at, &packed.byte_count), CODING_OK);
    packed.at = at;
    return packed;
}

static void release(struct slice bytes)
{
    union {
        const char *in;
        char *out;
    } pointer = { .in = bytes.at };
    free(pointer.out);
}

static char *noise(size_t byte_count)
{
    uint32_t seed = 3;
    char *bytes = malloc(byte_count + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < byte_count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (char)(seed >> 24);
    }
    return bytes;
}

static void test_names_are_known_without_case_and_lists_are_not(void **state)
{
    static const struct {
        const char *value;
        enum coding coding;
    } rows[] = { { "", CODING_IDENTITY },   { "Identity", CODING_IDENTITY }, { "gzip", CODING_GZIP },
                 { "X-GZip", CODING_GZIP }, { "deflate", CODING_DEFLATE },   { "zstd", CODING_ZSTD },
                 { "br", CODING_OTHER },    { "gzip, gzip", CODING_OTHER },  { "gzipx", CODING_OTHER },
                 { "snappy", CODING_OTHER } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(coding_of(slice_of_text(rows[i].value)), rows[i].coding);
}

static void test_what_is_packed_opens_again(void **state)
{
    static const size_t sizes[] = { 0, 1, 100, 65537, 1000000 };
    (void)state;
    for (size_t i = 0; i < CODING_COUNT; i++) {
        for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++) {
            char *bytes = noise(sizes[size]), *opened;
            size_t opened_bytes;
            struct slice packed = packed_of(codings[i], bytes, sizes[size]);
            enum coding coding = codings[i];
            assert_int_equal(coding_open(&coding, packed, sizes[size], &opened, &opened_bytes), CODING_OK);
            assert_int_equal(coding, codings[i]);
            assert_int_equal(opened_bytes, sizes[size]);
            assert_memory_equal(opened, bytes, sizes[size]);
            free(bytes);
            free(opened);
            release(packed);
        }
    }
}

static void test_parts_are_packed_one_after_the_other(void **state)
{
    static const struct slice parts[] = { { "ab", 2 }, { "", 0 }, { "cde", 3 } };
    (void)state;
    for (size_t i = 0; i < CODING_COUNT; i++) {
        enum coding coding = codings[i];
        char *packed, *opened;
        size_t packed_bytes, opened_bytes;
        assert_int_equal(coding_pack(coding, parts, 3, &packed, &packed_bytes), CODING_OK);
        assert_int_equal(coding_open(&coding, slice_of(packed, packed_bytes), 100, &opened, &opened_bytes),
                         CODING_OK);
        assert_int_equal(opened_bytes, 5);
        assert_memory_equal(opened, "abcde", 5);
        free(packed);
        free(opened);
    }
}

/* A few bytes that promise more than the limit cost the limit, not what they promise. */
static void test_a_bomb_is_too_large(void **state)
{
    enum { BOMB_BYTES = 1 << 24 };
    char *zeros = calloc(1, BOMB_BYTES), *opened = NULL;
    size_t opened_bytes;
    (void)state;
    assert_non_null(zeros);
    for (size_t i = 0; i < CODING_COUNT; i++) {
        struct slice packed = packed_of(codings[i], zeros, BOMB_BYTES);
        enum coding coding = codings[i];
        assert_true(packed.byte_count < 100000);
        assert_int_equal(coding_open(&coding, packed, BOMB_BYTES - 1, &opened, &opened_bytes),
                         CODING_TOO_LARGE);
        assert_int_equal(coding_open(&coding, packed, 10, &opened, &opened_bytes), CODING_TOO_LARGE);
        assert_int_equal(coding_open(&coding, packed, BOMB_BYTES, &opened, &opened_bytes), CODING_OK);
        free(opened);
        release(packed);
    }
    free(zeros);
}

static void test_a_body_that_is_cut_anywhere_is_damaged(void **state)
{
    static const char text[] = "[{\"a\":1},{\"a\":2},{\"a\":3},{\"a\":4},{\"a\":5}]";
    (void)state;
    for (size_t i = 0; i < CODING_COUNT; i++) {
        struct slice packed = packed_of(codings[i], text, sizeof text - 1);
        for (size_t length = 0; length < packed.byte_count; length++) {
            enum coding coding = codings[i];
            char *opened = NULL;
            size_t opened_bytes;
            assert_int_equal(coding_open(&coding, slice_of(packed.at, length), 1000, &opened, &opened_bytes),
                             CODING_DAMAGED);
        }
        release(packed);
    }
}

static void test_bytes_behind_the_end_are_damage(void **state)
{
    static const enum coding strict[] = { CODING_GZIP, CODING_DEFLATE, CODING_DEFLATE_RAW, CODING_ZSTD };
    (void)state;
    for (size_t i = 0; i < sizeof strict / sizeof strict[0]; i++) {
        struct slice packed = packed_of(strict[i], "abc", 3);
        char *longer = malloc(packed.byte_count + 4), *opened = NULL;
        size_t opened_bytes;
        enum coding coding = strict[i];
        assert_non_null(longer);
        memcpy(longer, packed.at, packed.byte_count);
        memcpy(longer + packed.byte_count, "junk", 4);
        assert_int_equal(
            coding_open(&coding, slice_of(longer, packed.byte_count + 4), 1000, &opened, &opened_bytes),
            CODING_DAMAGED);
        free(longer);
        release(packed);
    }
}

/* Source: RFC 1952, 2.2; RFC 8878, 3.1. */
static void test_members_and_frames_may_follow_each_other(void **state)
{
    static const enum coding several[] = { CODING_GZIP, CODING_ZSTD };
    (void)state;
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        struct slice packed = packed_of(several[i], "abc", 3);
        char *twice = malloc(2 * packed.byte_count), *opened;
        size_t opened_bytes;
        enum coding coding = several[i];
        assert_non_null(twice);
        memcpy(twice, packed.at, packed.byte_count);
        memcpy(twice + packed.byte_count, packed.at, packed.byte_count);
        assert_int_equal(
            coding_open(&coding, slice_of(twice, 2 * packed.byte_count), 6, &opened, &opened_bytes),
            CODING_OK);
        assert_int_equal(opened_bytes, 6);
        assert_memory_equal(opened, "abcabc", 6);
        free(opened);
        free(twice);
        release(packed);
    }
}

static void test_bare_deflate_is_understood_and_remembered(void **state)
{
    struct slice packed = packed_of(CODING_DEFLATE_RAW, "hello", 5);
    enum coding coding = CODING_DEFLATE;
    char *opened;
    size_t opened_bytes;
    (void)state;
    assert_int_equal(coding_open(&coding, packed, 100, &opened, &opened_bytes), CODING_OK);
    assert_int_equal(coding, CODING_DEFLATE_RAW);
    assert_memory_equal(opened, "hello", 5);
    free(opened);
    release(packed);
}

/* A frame may ask for a window of gigabytes before the first byte of it is opened. */
static void test_a_window_beyond_8_MiB_is_refused(void **state)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    char packed[200], *opened = NULL;
    size_t opened_bytes;
    (void)state;
    assert_non_null(context);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27)));
    ZSTD_inBuffer in = { "hello", 5, 0 };
    ZSTD_outBuffer out = { packed, sizeof packed, 0 };
    assert_false(ZSTD_isError(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush)));
    assert_int_equal(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0);
    enum coding coding = CODING_ZSTD;
    assert_int_equal(coding_open(&coding, slice_of(packed, out.pos), 1000, &opened, &opened_bytes),
                     CODING_DAMAGED);
    ZSTD_freeCCtx(context);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_known_without_case_and_lists_are_not),
        cmocka_unit_test(test_what_is_packed_opens_again),
        cmocka_unit_test(test_parts_are_packed_one_after_the_other),
        cmocka_unit_test(test_a_bomb_is_too_large),
        cmocka_unit_test(test_a_body_that_is_cut_anywhere_is_damaged),
        cmocka_unit_test(test_bytes_behind_the_end_are_damage),
        cmocka_unit_test(test_members_and_frames_may_follow_each_other),
        cmocka_unit_test(test_bare_deflate_is_understood_and_remembered),
        cmocka_unit_test(test_a_window_beyond_8_MiB_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
