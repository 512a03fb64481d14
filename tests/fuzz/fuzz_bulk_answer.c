/*
 * fuzz_bulk_answer.c - any answer to any bulk request: refused as a whole, or one item per action, the target's own ones
 * byte for byte.
 *
 * The input's first byte says how many actions there are; each of the next says of one its kind (two bits), whether it
 * was sent, is a repeat, has coordinates, an id, a version, external versioning.  The rest is the answer.
 */
#include <stdlib.h>
#include "bulk_answer.h"
#include "fuzz.h"
#include "json_walk.h"

enum { ACTIONS_MAX = 16 };

struct request_of_input {
    struct identified identified;
    struct record records[ACTIONS_MAX];
    struct record_site sites[ACTIONS_MAX];
    struct bulk_action actions[ACTIONS_MAX];
    bool sent[ACTIONS_MAX];
    enum outcome outcomes[ACTIONS_MAX];
};

/* Ids are "0" to "15": short enough that answers with them are found. */
static void add_action(struct request_of_input *made, uint8_t bits)
{
    static const char digits[] = "0123456789101112131415";
    struct identified *identified = &made->identified;
    size_t site = identified->site_count++;
    bool is_repeat = (bits & 8) != 0 && identified->record_count > 0,
         is_keyed = (bits & 16) == 0 || is_repeat;
    size_t record = is_repeat ? 0 : identified->record_count;
    if (is_keyed && !is_repeat) {
        made->records[record].key = (struct record_key){ slice_of_text("t"), 0, (int64_t)site };
        identified->record_count++;
    }
    made->sites[site] =
        (struct record_site){ .record = is_keyed ? record : NO_RECORD, .is_repeat = is_repeat };
    made->actions[site] = (struct bulk_action){
        .kind = (enum bulk_kind)(bits & 3),
        .index = slice_of("%22i\"%", (bits & 32) != 0 ? 6 : 0),
        .id = (bits & 32) != 0 ? slice_of(digits + (site < 10 ? site : 2 * site - 10), site < 10 ? 1 : 2)
                               : slice_of(NULL, 0),
        .version = slice_of("12", (bits & 64) != 0 ? 2 : 0),
        .is_version_external = (bits & 128) != 0,
    };
    made->sent[site] = !is_keyed || ((bits & 4) != 0 && !is_repeat);
    made->outcomes[site] = OUTCOME_NOT_SENT;
}

static size_t make_request(struct request_of_input *made, const uint8_t *input, size_t input_bytes)
{
    size_t count = input_bytes > 0 ? input[0] % (ACTIONS_MAX + 1) : 0;
    memset(made, 0, sizeof *made);
    made->identified = (struct identified){ .shape = SHAPE_IS_BULK,
                                            .records = made->records,
                                            .sites = made->sites,
                                            .actions = made->actions,
                                            .body = slice_of_text("{}") };
    if (input_bytes < 1 + count)
        return input_bytes;
    for (size_t i = 0; i < count; i++)
        add_action(made, input[1 + i]);
    return 1 + count;
}

/* The sent actions' items stand in ANSWER one behind the other. */
static const char *check_item(const struct request_of_input *made, size_t site, struct slice item,
                              const char *from, const char *answer_end)
{
    if (!made->sent[site])
        return from;
    const char *found = memmem(from, (size_t)(answer_end - from), item.at, item.byte_count);
    assert(found != NULL);
    return found + item.byte_count;
}

static void check_whole(const struct request_of_input *made, struct slice answer, struct slice body)
{
    struct json_walk walk, items;
    struct slice name, value;
    const char *from = answer.at;
    size_t end, site = 0;
    assert(json_scan(body.at, body.byte_count, NULL, 0, &end) == JSON_DONE &&
           json_is_blank(body.at, body.byte_count, end));
    json_walk_open(&walk, body, '{');
    while (json_walk_next(&walk)) {
        bool is_named = json_walk_name(&walk, &name);
        assert(is_named);
        if (!slice_equals_text(name, "items")) {
            bool is_read = json_walk_value(&walk, NULL, 0, &value);
            assert(is_read);
            continue;
        }
        json_walk_enter(&walk, &items, '[');
        for (; json_walk_next(&items); site++) {
            bool is_read = json_walk_value(&items, NULL, 0, &value);
            assert(is_read && site < made->identified.site_count);
            from = check_item(made, site, value, from, answer.at + answer.byte_count);
        }
        json_walk_join(&walk, &items);
    }
    assert(site == made->identified.site_count);
}

static void check_outcomes(const struct request_of_input *made, bool is_read)
{
    for (size_t i = 0; i < made->identified.site_count; i++) {
        size_t record = made->sites[i].record;
        if (record != NO_RECORD && made->sent[i])
            assert((made->outcomes[record] == OUTCOME_NOT_SENT) == !is_read);
    }
}

/* An answer that passes as it came, or with a word about errors made true: its items are the same, and it does not contradict
 * itself any more. */
static void check_passed(const struct request_of_input *made, struct slice answer, bool is_read)
{
    char *body, *again;
    size_t body_bytes, again_bytes;
    bool is_told = bulk_answer_whole(answer, &made->identified, made->sent, &body, &body_bytes);
    assert(is_told && (body == NULL || is_read));
    if (body == NULL)
        return;
    check_whole(made, answer, slice_of(body, body_bytes));
    is_told =
        bulk_answer_whole(slice_of(body, body_bytes), &made->identified, made->sent, &again, &again_bytes);
    assert(is_told && again == NULL);
    free(body);
}

static bool is_all_sent(const struct request_of_input *made)
{
    bool is_all = true;
    for (size_t i = 0; i < made->identified.site_count; i++)
        is_all = is_all && made->sent[i];
    return is_all;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_bytes)
{
    struct request_of_input made;
    struct settings settings = { 0 };
    size_t used = make_request(&made, input, input_bytes), body_bytes;
    struct slice answer = slice_of((const char *)input + used, input_bytes - used);
    char *body;
    settings.applied_status.bits[3] = UINT64_MAX;     /* 192 to 255 */
    settings.not_applied_status.bits[6] = UINT64_MAX; /* 384 to 447 */
    bool is_read = bulk_outcomes(answer, &made.identified, made.sent, &settings, made.outcomes);
    check_outcomes(&made, is_read);
    bool is_answered = bulk_answer(true, answer, &made.identified, made.sent, &body, &body_bytes);
    assert(is_answered == is_read);
    if (is_answered) {
        check_whole(&made, answer, slice_of(body, body_bytes));
        free(body);
    }
    if (is_all_sent(&made))
        check_passed(&made, answer, is_read);
    return 0;
}
