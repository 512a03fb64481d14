/*
 * fuzz_identify.c - any bytes in any shape, any verdicts: elements lie inside the body and in order, what is sent is
 * part of it, an array stays an array, and what was cut once is not cut again.
 *
 * The first byte of the input chooses the settings, the second the head, the next four the verdicts.
 */
#include <stdlib.h>
#include "fuzz.h"
#include "identify.h"
#include "json_scan.h"
#include "plan.h"
#include "settings_of.h"

enum { HEADER_BYTES = 6, BODY_BYTES_MAX = 1 << 16, RECORDS_MAX = 500 };

#define SHORT "SINKONCE_TOPIC=json:/t", "SINKONCE_PARTITION=json:/p,const:1", "SINKONCE_OFFSET=json:/o"

enum { VARIABLES_MAX = 8 };

/* As an operator writes them. */
static const char *const choices[][VARIABLES_MAX] = {
    { NULL },
    { SHORT },
    { SHORT, "SINKONCE_ENVELOPE=/data" },
    { SHORT, "SINKONCE_SHAPE=json-array" },
    { SHORT, "SINKONCE_SHAPE=ndjson" },
    { SHORT, "SINKONCE_SHAPE=concat" },
    { SHORT, "SINKONCE_SHAPE=separated", "SINKONCE_SEPARATOR=," },
    { SHORT, "SINKONCE_SHAPE=separated", "SINKONCE_PREFIX=<", "SINKONCE_SUFFIX=>" },
    { SHORT, "SINKONCE_SHAPE=envelope", "SINKONCE_ENVELOPE=/a/0/b" },
    { SHORT, "SINKONCE_SHAPE=bulk" },
    { "SINKONCE_SHAPE=bulk" },
    { "SINKONCE_SHAPE=opaque" },
    { "SINKONCE_ID=json:/id", "SINKONCE_ID_FORMAT={topic}+{partition}+{offset}" },
    { "SINKONCE_ID=header:ce-id", "SINKONCE_ID_FORMAT=partition:{partition}/offset:{offset}",
      "SINKONCE_TOPIC=const:t" },
    { "SINKONCE_ID=bulk-id", "SINKONCE_ID_FORMAT={topic}-{partition}-{offset}", "SINKONCE_SHAPE=bulk" },
    { "SINKONCE_ID=query:id", "SINKONCE_ID_FORMAT={offset}@{partition}.{topic}" },
    { "SINKONCE_ID=path", "SINKONCE_ID_FORMAT=/{topic}/{partition}/{offset}" },
    { SHORT, "SINKONCE_TIMESTAMP=json:/ts,header:ts", "SINKONCE_IDENTITY=timestamp" },
    { SHORT, "SINKONCE_IDENTITY=body" },
    { SHORT, "SINKONCE_IDENTITY=off" },
    { "SINKONCE_TOPIC=query:t,header:t,json:/a~1b/0", "SINKONCE_PARTITION=header:p,query:p",
      "SINKONCE_OFFSET=query:o,header:o" },
};
enum { CHOICE_COUNT = sizeof choices / sizeof choices[0] };

#define HEAD(start, fields) start " HTTP/1.1\r\nHost: h\r\n" fields "\r\n"

static const char *const heads[] = {
    HEAD("POST /p", ""),
    HEAD("POST /i/_bulk", ""),
    HEAD("POST /_bulk?filter_path=items", ""),
    HEAD("POST /p", "Content-Encoding: gzip\r\n"),
    HEAD("POST /p", "Content-Encoding: deflate\r\n"),
    HEAD("POST /p", "Content-Encoding: zstd\r\n"),
    HEAD("POST /p", "Digest: x\r\n"),
    HEAD("PUT /?insert_deduplication_token=t-0-3-9", ""),
    HEAD("POST /t/0/1?id=7%403.t&t=a%62c&p=4&o=5", ""),
    HEAD("POST /p", "t: t\r\np: 1\r\no: 2\r\nts: 1700000000000\r\nce-id: partition:3/offset:4\r\n"),
    HEAD("POST /p", "X-Kafka-Topic: t\r\nX-Kafka-Partition: 0\r\nX-Kafka-Offset: 12\r\n"),
    HEAD("POST /p", "__topic: t\r\n__partition: 0\r\n__offset: 12\r\n__timestamp: 1\r\n"),
    HEAD("POST /p", "Authorization: AWS4-HMAC-SHA256 x\r\n"),
};
enum { HEAD_COUNT = sizeof heads / sizeof heads[0] };

static struct settings all_settings[CHOICE_COUNT];
static struct identifier *identifiers[CHOICE_COUNT];
static struct request requests[HEAD_COUNT];

static void identifier_make(size_t which)
{
    static const char *const common[] = { "SINKONCE_TARGET=http://127.0.0.1:9", "SINKONCE_MAX_RECORDS=500",
                                          "SINKONCE_MAX_BODY=64KiB" };
    enum { COMMON = sizeof common / sizeof common[0] };
    settings_of(common, COMMON, choices[which], VARIABLES_MAX, &all_settings[which]);
    identifiers[which] = identifier_new(&all_settings[which]);
    assert(identifiers[which] != NULL);
}

static void prepare(void)
{
    if (identifiers[0] != NULL)
        return;
    for (size_t i = 0; i < CHOICE_COUNT; i++)
        identifier_make(i);
    for (size_t i = 0; i < HEAD_COUNT; i++) {
        enum finish why;
        enum http1_status status =
            http1_head(heads[i], strlen(heads[i]), 1000, BODY_BYTES_MAX, &requests[i].head, &why);
        assert(status == HTTP1_DONE);
    }
}

/* ---- what was found ------------------------------------------------------------------------------------------ */

static void check_site(const struct identified *identified, size_t index)
{
    const struct record_site *site = &identified->sites[index];
    size_t at = index == 0 ? 0 : identified->sites[index - 1].whole.end;
    assert(site->whole.begin >= at && site->whole.end >= site->whole.begin);
    assert(site->whole.end <= identified->body.byte_count);
    assert(site->record == NO_RECORD || site->record < identified->record_count);
    assert(!site->is_repeat || site->record != NO_RECORD);
    at = site->whole.begin;
    for (size_t i = 0; i < site->strip_count; i++) {
        const struct range *range = &identified->strip_ranges[site->strip_first + i];
        assert(range->begin >= at && range->end > range->begin && range->end <= site->whole.end);
        at = range->end;
    }
}

static void check_records(const struct identified *identified)
{
    for (size_t i = 0; i < identified->record_count; i++) {
        const struct record_key *key = &identified->records[i].key;
        assert(topic_is_legal(key->topic) && key->partition >= 0 && key->offset >= 0);
        for (size_t other = 0; other < i; other++) {
            const struct record_key *before = &identified->records[other].key;
            assert(key->offset != before->offset || key->partition != before->partition ||
                   !slice_equals(key->topic, before->topic));
        }
    }
}

static void check_identified(const struct identified *identified)
{
    assert((identified->record_count == 0) == (identified->site_count == 0));
    assert(identified->record_count <= RECORDS_MAX && identified->site_count <= RECORDS_MAX);
    assert(!identified->is_too_many || identified->record_count == 0);
    assert(identified->shape != SHAPE_IS_BULK || identified->site_count == 0 || identified->actions != NULL);
    for (size_t i = 0; i < identified->site_count; i++)
        check_site(identified, i);
    check_records(identified);
}

/* ---- what is sent -------------------------------------------------------------------------------------------- */

/* How many elements the array holds that BYTES begin with; SIZE_MAX: it is none. */
static size_t array_count(struct slice bytes, size_t at)
{
    size_t count = 0;
    for (at++;; count++) {
        size_t end;
        while (at < bytes.byte_count && json_is_blank(bytes.at + at, 1, 0))
            at++;
        if (at < bytes.byte_count && bytes.at[at] == ']')
            return count;
        if (json_scan(bytes.at + at, bytes.byte_count - at, NULL, 0, &end) != JSON_DONE)
            return SIZE_MAX;
        at += end;
        while (at < bytes.byte_count && json_is_blank(bytes.at + at, 1, 0))
            at++;
        if (at < bytes.byte_count && bytes.at[at] == ',')
            at++;
        else if (at == bytes.byte_count || bytes.at[at] != ']')
            return SIZE_MAX;
    }
}

static void check_array(const struct identified *identified, struct slice sent, size_t sent_count)
{
    size_t begin = 0;
    while (json_is_blank(sent.at + begin, 1, 0))
        begin++;
    assert(identified->body.at[begin] == '[' && sent.at[begin] == '[');
    assert(array_count(sent, begin) == sent_count);
}

/* The parts, opened and joined.  Release the bytes. */
static struct slice joined(const struct plan *plan, const struct request *request,
                           const struct identified *identified)
{
    char *bytes = malloc(plan->body_bytes + 1), *opened;
    size_t at = 0, opened_bytes;
    assert(bytes != NULL);
    for (size_t i = 0; i < plan->part_count; i++) {
        assert(plan->parts[i].byte_count > 0);
        if (plan->packed == NULL && plan->is_rewritten)
            assert_inside(plan->parts[i], identified->body.at, identified->body.byte_count);
        else if (plan->packed == NULL)
            assert_inside(plan->parts[i], request->body, request->body_bytes);
        memcpy(bytes + at, plan->parts[i].at, plan->parts[i].byte_count);
        at += plan->parts[i].byte_count;
    }
    assert(at == plan->body_bytes);
    enum coding coding = identified->coding;
    if (identified->decoded == NULL || at == 0)
        return slice_of(bytes, at);
    enum coding_status status =
        coding_open(&coding, slice_of(bytes, at), BODY_BYTES_MAX, &opened, &opened_bytes);
    assert(status == CODING_OK);
    free(bytes);
    return slice_of(opened, opened_bytes);
}

static void release(struct slice bytes)
{
    union {
        const char *in;
        char *out;
    } pointer = { .in = bytes.at };
    free(pointer.out);
}

static size_t sent_count_of(const struct identified *identified, const enum verdict verdicts[])
{
    size_t count = 0;
    for (size_t i = 0; i < identified->site_count; i++)
        count += plan_site_is_sent(identified, verdicts, i);
    return count;
}

/* Of values end to end one may be left, and that may be an array or an envelope: it is read as one, for its company
 * gave it no coordinates. */
static bool is_container_alone(const struct identified *before, const struct identified *again,
                               size_t sent_count)
{
    return sent_count == 1 && (before->shape == SHAPE_IS_CONCAT || before->shape == SHAPE_IS_NDJSON) &&
           (again->shape == SHAPE_IS_JSON_ARRAY || again->shape == SHAPE_IS_ENVELOPE);
}

/* What was sent is sent whole when it comes again. */
static void check_again(const struct identifier *identifier, const struct request *like,
                        const struct identified *before, size_t sent_count, struct slice sent)
{
    struct request request = *like;
    struct identified identified;
    struct plan plan;
    union {
        const char *in;
        char *out;
    } pointer = { .in = sent.at };
    request.body = pointer.out;
    request.body_bytes = sent.byte_count;
    bool is_done = identify(identifier, &request, &identified);
    assert(is_done);
    check_identified(&identified);
    if (!identified.is_too_many) {
        is_done = plan_build(&request, &identified, NULL, false, &plan);
        assert(is_done && (!plan.is_rewritten || is_container_alone(before, &identified, sent_count)));
        plan_deinit(&plan);
    }
    identified_deinit(&identified);
}

static void check_plan(const struct identifier *identifier, const struct request *request,
                       const struct identified *identified, const enum verdict verdicts[], bool is_stripped)
{
    struct plan plan;
    bool is_built = plan_build(request, identified, verdicts, is_stripped, &plan);
    assert(is_built);
    struct slice sent = joined(&plan, request, identified);
    if (identified->site_count > 0) {
        size_t sent_count = sent_count_of(identified, verdicts);
        assert(plan.site_count == sent_count || !plan.is_rewritten);
        assert(!identified->is_uncuttable || plan.body_bytes == 0 || !plan.is_rewritten);
        if (identified->shape == SHAPE_IS_JSON_ARRAY && !identified->is_uncuttable)
            check_array(identified, sent, sent_count);
        if (!is_stripped && identified->decoded == NULL && !identified->is_uncuttable)
            check_again(identifier, request, identified, sent_count, sent);
    }
    release(sent);
    plan_deinit(&plan);
}

static void check_alone(const struct request *request, const struct identified *identified, size_t site,
                        bool is_stripped)
{
    struct plan plan;
    bool is_built = plan_build_site(request, identified, site, is_stripped, &plan);
    assert(is_built && plan.site_count == 1);
    release(joined(&plan, request, identified));
    plan_deinit(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct identified identified;
    enum verdict verdicts[RECORDS_MAX];
    uint32_t seed;
    if (input_bytes < HEADER_BYTES || input_bytes > BODY_BYTES_MAX)
        return 0;
    prepare();
    const struct identifier *identifier = identifiers[input[0] % CHOICE_COUNT];
    struct request request = requests[input[1] % HEAD_COUNT];
    memcpy(&seed, input + 2, sizeof seed);
    request.body_bytes = input_bytes - HEADER_BYTES;
    request.body = malloc(request.body_bytes + (request.body_bytes == 0));
    assert(request.body != NULL);
    memcpy(request.body, input + HEADER_BYTES, request.body_bytes);
    bool is_done = identify(identifier, &request, &identified);
    assert(is_done);
    check_identified(&identified);
    for (size_t i = 0; i < identified.record_count; i++)
        verdicts[i] = ((seed >> (i % 32)) & 1u) != 0 ? VERDICT_APPLIED : VERDICT_NEW;
    if (!identified.is_too_many) {
        check_plan(identifier, &request, &identified, NULL, false);
        check_plan(identifier, &request, &identified, verdicts, false);
        check_plan(identifier, &request, &identified, verdicts, true);
        for (size_t i = 0; i < identified.site_count; i += cut_step(identified.site_count))
            check_alone(&request, &identified, i, seed % 2 == 0);
    }
    identified_deinit(&identified);
    free(request.body);
    return 0;
}
