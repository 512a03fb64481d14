/*
 * scan_bench.c - how fast the JSON scanner reads the bodies of the benchmark, with jansson beside it.
 *
 *   scan_bench            one line per body: MB/s of both, CPU time, best of ROUNDS
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json_scan.h"

enum { ROUNDS = 7, BATCH_RECORDS = 500, ROUND_BYTES = 32 * 1024 * 1024 };

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A record of about 500 bytes, as InsertField writes it. */
static size_t record_write(char *to, int offset)
{
    static char padding[401];
    memset(padding, 'x', sizeof padding - 1);
    return (size_t)sprintf(
        to,
        "{\"amt\":9007199254740993,\"__partition\":0,\"id\":%d,\"text\":\"%s\",\"__topic\":\"orders\","
        "\"__offset\":%d}",
        offset, padding, 1000000000 + offset);
}

static char *batch_new(size_t record_count, size_t *ret_bytes)
{
    char *body = malloc(record_count * 600 + 2), *to = body;
    if (body == NULL)
        abort();
    *to++ = '[';
    for (size_t i = 0; i < record_count; i++) {
        if (i > 0)
            *to++ = ',';
        to += record_write(to, (int)i);
    }
    *to++ = ']';
    *ret_bytes = (size_t)(to - body);
    return body;
}

/* What the identification looks for in each record by default is about this many pointers. */
static void scan_ours(const char *body, size_t bytes)
{
    static char topic[] = "__topic", partition[] = "__partition", offset[] = "__offset",
                timestamp[] = "__timestamp";
    static char *const paths[][1] = { { topic }, { partition }, { offset }, { timestamp } };
    struct json_want wants[4];
    size_t end = 0;
    for (size_t i = 0; i < 4; i++)
        wants[i] = (struct json_want){ .tokens = paths[i], .token_count = 1 };
    if (json_scan(body, bytes, wants, 4, &end) != JSON_DONE)
        abort();
}

static void scan_jansson(const char *body, size_t bytes)
{
    json_t *tree = json_loadb(body, bytes, JSON_DECODE_ANY, NULL);
    if (tree == NULL)
        abort();
    json_decref(tree);
}

static double best_rate(void (*scan)(const char *body, size_t bytes), const char *body, size_t bytes,
                        size_t round_bytes)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t times = round_bytes / bytes + 1;
        double began = cpu_seconds();
        for (size_t i = 0; i < times; i++)
            scan(body, bytes);
        double rate = (double)(times * bytes) / 1e6 / (cpu_seconds() - began);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void)
{
    static const struct {
        const char *name;
        size_t record_count;
    } bodies[] = { { "one record of 500 bytes", 1 }, { "array of 500 records", BATCH_RECORDS } };
    printf("%-28s %10s %10s %10s %8s\n", "body", "bytes", "ours MB/s", "jansson", "ratio");
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        size_t bytes = 0;
        char *body = batch_new(bodies[i].record_count, &bytes);
        const char *text = bodies[i].record_count == 1 ? body + 1 : body;
        size_t text_bytes = bodies[i].record_count == 1 ? bytes - 2 : bytes;
        double ours = best_rate(scan_ours, text, text_bytes, ROUND_BYTES);
        double theirs = best_rate(scan_jansson, text, text_bytes, ROUND_BYTES / 8);
        printf("%-28s %10zu %10.0f %10.0f %8.1f\n", bodies[i].name, text_bytes, ours, theirs, ours / theirs);
        free(body);
    }
    printf("bar: at least 500 MB/s\n");
    return 0;
}
