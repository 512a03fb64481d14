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

enum { HEADER_BYTES = 6, BODY_BYTES_MAX = 1 << 16, RECORDS_MAX = 500 };

struct choice {
    enum shape_setting shape;
    bool has_short_names; /* /t, /p and /o instead of the defaults */
    const char *envelope, *separator, *prefix, *suffix;
};

static const struct choice choices[] = {
    { SHAPE_AUTO, false, NULL, "\n", "", "" },        { SHAPE_AUTO, true, NULL, "\n", "", "" },
    { SHAPE_AUTO, true, "/data", "\n", "", "" },      { SHAPE_JSON_ARRAY, true, NULL, "\n", "", "" },
    { SHAPE_NDJSON, true, NULL, "\n", "", "" },       { SHAPE_CONCAT, true, NULL, "\n", "", "" },
    { SHAPE_SEPARATED, true, NULL, ",", "", "" },     { SHAPE_SEPARATED, true, NULL, "\n", "<", ">" },
    { SHAPE_ENVELOPE, true, "/a/0/b", "\n", "", "" }, { SHAPE_BULK, true, NULL, "\n", "", "" },
    { SHAPE_BULK, false, NULL, "\n", "", "" },        { SHAPE_OPAQUE, false, NULL, "\n", "", "" },
};
enum { CHOICE_COUNT = sizeof choices / sizeof choices[0] };

static const char *const heads[] = {
    "POST /p HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /i/_bulk HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /_bulk?filter_path=items HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Encoding: deflate\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Encoding: zstd\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nDigest: x\r\n\r\n",
    "PUT /?insert_deduplication_token=t-0-3-9 HTTP/1.1\r\nHost: h\r\n\r\n",
};
enum { HEAD_COUNT = sizeof heads / sizeof heads[0] };

static struct settings all_settings[CHOICE_COUNT];
static struct identifier *identifiers[CHOICE_COUNT];
static struct request requests[HEAD_COUNT];

static void text_set(char **ret, const char *text)
{
    *ret = strdup(text);
    assert(*ret != NULL);
}

static void identifier_make(size_t which)
{
    const struct choice *choice = &choices[which];
    struct settings *settings = &all_settings[which];
    bool is_parsed = true;
    if (choice->has_short_names)
        is_parsed = locator_list_parse("json:/t", false, &settings->topic) == NULL &&
                    locator_list_parse("json:/p,const:1", false, &settings->partition) == NULL &&
                    locator_list_parse("json:/o", false, &settings->offset) == NULL;
    if (choice->envelope != NULL)
        is_parsed = is_parsed && locator_pointer_parse(choice->envelope, &settings->envelope) == NULL;
    assert(is_parsed);
    text_set(&settings->separator, choice->separator);
    text_set(&settings->prefix, choice->prefix);
    text_set(&settings->suffix, choice->suffix);
    settings->shape = choice->shape;
    settings->records_max = RECORDS_MAX;
    settings->body_bytes_max = BODY_BYTES_MAX;
    identifiers[which] = identifier_new(settings);
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

/* What was sent is sent whole when it comes again. */
static void check_again(const struct identifier *identifier, const struct request *like, struct slice sent)
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
        assert(is_done && !plan.is_rewritten);
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
            check_again(identifier, request, sent);
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
