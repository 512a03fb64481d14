/*
 * fuzz_batch_answer.c - any answer of Dapr or Splunk, and any poll for acknowledgements: what is proved is proved for
 * what was sent, and what the connector is given is JSON that names each entry once.
 *
 * The first byte chooses who answers, the second what was sent; the rest is the body.
 */
#include <stdio.h>
#include <stdlib.h>
#include "batch_answer.h"
#include "dapr_answer.h"
#include "fuzz.h"
#include "json_scan.h"
#include "json_walk.h"
#include "splunk_answer.h"

enum { HEADER_BYTES = 2, ENTRIES = 4, IDS = 3 };

static const char *const entries[ENTRIES] = {
    "{\"entryId\":\"a\"}",
    "{ \"event\":1, \"entryId\" : \"b\" }",
    "{\"entryId\":\"\\u0063\\\"\"}",
    "{\"entryId\":\"d\",\"event\":{\"entryId\":\"a\"}}",
};

static void assert_json(struct slice body)
{
    size_t end;
    enum json_status status = json_scan(body.at, body.byte_count, NULL, 0, &end);
    assert(status == JSON_DONE && end == body.byte_count);
}

/* How many elements the array "statuses" of BODY has. */
static size_t count_statuses(struct slice body)
{
    struct json_walk walk, statuses;
    struct slice name, value;
    size_t count = 0;
    json_walk_open(&walk, body, '{');
    while (json_walk_next(&walk)) {
        bool is_read = json_walk_name(&walk, &name);
        assert(is_read);
        if (!slice_equals_text(name, "statuses")) {
            is_read = json_walk_value(&walk, NULL, 0, &value);
            assert(is_read);
            continue;
        }
        json_walk_enter(&walk, &statuses, '[');
        for (; json_walk_next(&statuses); count++) {
            is_read = json_walk_value(&statuses, NULL, 0, &value);
            assert(is_read);
        }
        json_walk_join(&walk, &statuses);
    }
    return count;
}

/* The last entry has no coordinates, and always goes on. */
static void check_dapr(struct slice answer, uint8_t sent_bits)
{
    char body[256] = "";
    struct record records[ENTRIES] = { 0 };
    struct record_site sites[ENTRIES];
    bool sent[ENTRIES];
    enum outcome outcomes[ENTRIES];
    size_t body_bytes = 0, made_bytes;
    char *made;
    for (size_t i = 0; i < ENTRIES; i++) {
        size_t begin = body_bytes;
        body_bytes += (size_t)snprintf(body + body_bytes, sizeof body - body_bytes, "%s", entries[i]);
        sites[i] = (struct record_site){ .whole = { begin, body_bytes },
                                         .record = i == ENTRIES - 1 ? NO_RECORD : i };
        sent[i] = i == ENTRIES - 1 || ((unsigned)sent_bits >> i & 1u) != 0;
        outcomes[i] = OUTCOME_NOT_SENT;
    }
    struct identified identified = { .shape = SHAPE_IS_ENVELOPE,
                                     .records = records,
                                     .record_count = ENTRIES - 1,
                                     .sites = sites,
                                     .site_count = ENTRIES,
                                     .body = slice_of(body, body_bytes) };
    bool is_read = dapr_outcomes(answer, &identified, sent, outcomes);
    for (size_t i = 0; i + 1 < ENTRIES; i++)
        assert((outcomes[i] == OUTCOME_NOT_SENT) == (!is_read || !sent[i]));
    if (!dapr_answer(true, answer, &identified, sent, &made, &made_bytes))
        return;
    assert(is_read);
    if (made != NULL) {
        assert_json(slice_of(made, made_bytes));
        assert(count_statuses(slice_of(made, made_bytes)) == ENTRIES);
    }
    free(made);
}

static void check_splunk(struct slice answer)
{
    int64_t ack_id = -7;
    enum splunk_proof proof = splunk_read(answer, &ack_id);
    assert((proof == SPLUNK_ACKNOWLEDGES) == (ack_id != -7));
    assert(ack_id == -7 || ack_id >= 0);
}

/* What is read is written again, and reads the same. */
static void check_poll(struct slice poll)
{
    int64_t *ids, *again;
    size_t id_count, again_count, body_bytes;
    char *body;
    if (!splunk_poll_read(poll, &ids, &id_count))
        return;
    for (size_t i = 0; i < id_count; i++)
        assert(i == 0 || ids[i - 1] < ids[i]);
    bool is_written = splunk_poll_write(ids, id_count, &body, &body_bytes);
    assert(is_written);
    assert_json(slice_of(body, body_bytes));
    bool is_read = splunk_poll_read(slice_of(body, body_bytes), &again, &again_count);
    assert(is_read && again_count == id_count && memcmp(ids, again, id_count * sizeof ids[0]) == 0);
    free(again);
    free(body);
    free(ids);
}

static void check_acks(struct slice answer)
{
    static const int64_t ids[IDS] = { 0, 7, INT64_C(4611686018427387905) };
    bool is_done[IDS], again[IDS];
    char *body;
    size_t body_bytes;
    if (!splunk_poll_answer_read(answer, ids, IDS, is_done))
        return;
    bool is_written = splunk_poll_answer_write(ids, is_done, IDS, &body, &body_bytes);
    assert(is_written);
    assert_json(slice_of(body, body_bytes));
    bool is_read = splunk_poll_answer_read(slice_of(body, body_bytes), ids, IDS, again);
    assert(is_read && memcmp(is_done, again, sizeof again) == 0);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    if (input_bytes < HEADER_BYTES)
        return 0;
    struct slice body = slice_of((const char *)input + HEADER_BYTES, input_bytes - HEADER_BYTES);
    switch (input[0] % 4) {
    case 0:
        check_dapr(body, input[1]);
        break;
    case 1:
        check_splunk(body);
        break;
    case 2:
        check_poll(body);
        break;
    default:
        check_acks(body);
    }
    return 0;
}
