/*
 * test_acks.c - claims that wait for an acknowledgement, against a book kept by the test.
 */
#include "acks.h"

#include <pthread.h>
#include "request_of.h"

enum { TIMEOUT = 300, OPEN_MAX = 4 };

static const struct slice channel = { "c1", 2 }, other_channel = { "c2", 2 };
static const enum verdict verdicts[] = { VERDICT_NEW, VERDICT_APPLIED, VERDICT_NEW };

/* Three records, whose memory is gone once this returns. */
static enum acks_status open_at(struct acks *acks, struct slice on, int64_t ack_id, uint64_t claim_id,
                                uint64_t now_ns, struct ack **ret_replaced)
{
    char topic[] = "orders";
    const struct record records[] = {
        { { slice_of(topic, 6), 0, 100 }, 4 },
        { { slice_of("payments", 8), 1, 7 }, 6 },
        { { slice_of(topic, 6), 0, INT64_MAX }, MARK_NONE },
    };
    enum acks_status status =
        acks_open(acks, on, ack_id, claim_id, records, verdicts, 3, now_ns, ret_replaced);
    memset(topic, 'x', sizeof topic);
    return status;
}

static void open_well(struct acks *acks, struct slice on, int64_t ack_id, uint64_t claim_id, uint64_t now_ns)
{
    struct ack *replaced;
    assert_int_equal(open_at(acks, on, ack_id, claim_id, now_ns, &replaced), ACKS_OPENED);
    assert_null(replaced);
}

/* The claims of LIST in its order, which is freed. */
static void expect_claims(struct ack *list, const uint64_t claim_ids[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_non_null(list);
        assert_true(list->claim_id == claim_ids[i]);
        struct ack *next = list->next;
        ack_free(list);
        list = next;
    }
    assert_null(list);
}

static struct acks *acks_new_here(void)
{
    struct acks *acks = acks_new(OPEN_MAX, TIMEOUT, 12345);
    assert_non_null(acks);
    return acks;
}

static void test_an_entry_has_all_that_a_settlement_needs(void **state)
{
    struct acks *acks = acks_new_here();
    (void)state;
    open_well(acks, channel, 7, 70, 1000);
    struct ack *ack = acks_take_done(acks, channel, (const int64_t[]){ 7 }, (const bool[]){ true }, 1);
    assert_non_null(ack);
    assert_true(ack->claim_id == 70 && ack->ack_id == 7 && ack->opened_ns == 1000 && ack->record_count == 3);
    assert_true(slice_equals(ack->channel, channel));
    assert_true(slice_equals_text(ack->records[0].key.topic, "orders"));
    assert_true(slice_equals_text(ack->records[1].key.topic, "payments"));
    assert_true(slice_equals_text(ack->records[2].key.topic, "orders"));
    assert_true(ack->records[0].mark == 4 && ack->records[1].key.partition == 1 &&
                ack->records[2].key.offset == INT64_MAX);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ack->verdicts[i], verdicts[i]);
        assert_int_equal(ack->outcomes[i], OUTCOME_UNKNOWN);
    }
    ack_free(ack);
    acks_free(acks);
}

static void test_only_ids_that_came_true_on_their_channel_are_taken(void **state)
{
    const int64_t ids[] = { 6, 7, 8, 9 };
    const bool is_done[] = { true, true, false, true };
    struct acks *acks = acks_new_here();
    (void)state;
    open_well(acks, channel, 7, 70, 1);
    open_well(acks, channel, 8, 80, 2);
    open_well(acks, other_channel, 9, 90, 3);
    open_well(acks, other_channel, 7, 71, 4);
    expect_claims(acks_take_done(acks, channel, ids, is_done, 4), (const uint64_t[]){ 70 }, 1);
    expect_claims(acks_take_done(acks, channel, ids, is_done, 4), NULL, 0);
    expect_claims(acks_take_done(acks, other_channel, ids, is_done, 4), (const uint64_t[]){ 71, 90 }, 2);
    assert_int_equal(acks_open_count(acks), 1);
    acks_free(acks); /* with one entry open */
}

/* More channels than buckets: some share one with the entry. */
static void test_an_id_of_any_other_channel_is_another_batch(void **state)
{
    struct acks *acks = acks_new_here();
    (void)state;
    open_well(acks, channel, 7, 70, 1);
    for (int i = 0; i < 1000; i++) {
        char name[24];
        snprintf(name, sizeof name, "other-%d", i);
        expect_claims(
            acks_take_done(acks, slice_of_text(name), (const int64_t[]){ 7 }, (const bool[]){ true }, 1),
            NULL, 0);
    }
    assert_int_equal(acks_open_count(acks), 1);
    acks_free(acks);
}

static void test_entries_expire_in_their_order_and_not_before(void **state)
{
    struct acks *acks = acks_new_here();
    (void)state;
    open_well(acks, channel, 1, 10, 1000);
    open_well(acks, channel, 2, 20, 1100);
    open_well(acks, channel, 3, 30, 1200);
    expect_claims(acks_take_expired(acks, 1299), NULL, 0);
    expect_claims(acks_take_expired(acks, 999), NULL, 0); /* a loop whose clock was read earlier */
    expect_claims(acks_take_expired(acks, 1400), (const uint64_t[]){ 10, 20 }, 2);
    /* What has expired is not done any more, even when its answer comes late. */
    expect_claims(acks_take_done(acks, channel, (const int64_t[]){ 1, 3 }, (const bool[]){ true, true }, 2),
                  (const uint64_t[]){ 30 }, 1);
    expect_claims(acks_take_expired(acks, 9999), NULL, 0);
    acks_free(acks);
}

static void test_an_entry_in_the_middle_leaves_its_neighbours_in_place(void **state)
{
    struct acks *acks = acks_new_here();
    (void)state;
    for (int i = 1; i <= 3; i++)
        open_well(acks, channel, i, (uint64_t)i * 10, (uint64_t)i);
    expect_claims(acks_take_done(acks, channel, (const int64_t[]){ 2 }, (const bool[]){ true }, 1),
                  (const uint64_t[]){ 20 }, 1);
    open_well(acks, channel, 4, 40, 4);
    expect_claims(acks_take_expired(acks, UINT64_MAX), (const uint64_t[]){ 10, 30, 40 }, 3);
    expect_claims(acks_take_expired(acks, UINT64_MAX), NULL, 0);
    assert_int_equal(acks_open_count(acks), 0);
    acks_free(acks);
}

static void test_a_full_registry_keeps_nothing_more(void **state)
{
    struct acks *acks = acks_new_here();
    struct ack *replaced;
    (void)state;
    for (int i = 0; i < OPEN_MAX; i++)
        open_well(acks, channel, i, 1, 1);
    assert_int_equal(open_at(acks, channel, OPEN_MAX, 1, 1, &replaced), ACKS_FULL);
    assert_null(replaced);
    assert_int_equal(acks_open_count(acks), OPEN_MAX);
    expect_claims(acks_take_done(acks, channel, (const int64_t[]){ 0 }, (const bool[]){ true }, 1),
                  (const uint64_t[]){ 1 }, 1);
    open_well(acks, channel, OPEN_MAX, 1, 1);
    acks_free(acks);
}

static void test_an_id_that_is_given_again_frees_the_earlier_batch(void **state)
{
    struct acks *acks = acks_new(1, TIMEOUT, 0);
    struct ack *replaced;
    (void)state;
    assert_non_null(acks);
    open_well(acks, channel, 7, 70, 1);
    assert_int_equal(open_at(acks, channel, 7, 71, 2, &replaced), ACKS_OPENED);
    expect_claims(replaced, (const uint64_t[]){ 70 }, 1);
    expect_claims(acks_take_done(acks, channel, (const int64_t[]){ 7 }, (const bool[]){ true }, 1),
                  (const uint64_t[]){ 71 }, 1);
    acks_free(acks);
}

static void test_own_ids_are_known_and_far_from_the_targets(void **state)
{
    const uint64_t floor = UINT64_C(1) << 62;
    (void)state;
    for (uint64_t random = 0; random < 3; random++) {
        struct acks *acks = acks_new(OPEN_MAX, TIMEOUT, random == 2 ? UINT64_MAX : random * 1000);
        struct ack *replaced;
        assert_non_null(acks);
        int64_t first = acks_make_id(acks), second = acks_make_id(acks);
        assert_true(first > 0 && (uint64_t)first >= floor && second == first + 1);
        assert_true(acks_is_own(acks, first) && acks_is_own(acks, second) && acks_is_own(acks, first));
        assert_false(acks_is_own(acks, second + 1));
        assert_false(acks_is_own(acks, first - 1));
        assert_false(acks_is_own(acks, 7));
        assert_false(acks_is_own(acks, -1));
        assert_int_equal(open_at(acks, channel, first, 1, 1, &replaced), ACKS_COLLIDES);
        assert_int_equal(open_at(acks, channel, second + 1, 1, 1, &replaced), ACKS_COLLIDES);
        assert_int_equal(acks_open_count(acks), 0);
        acks_free(acks);
    }
}

static void test_another_start_has_other_ids(void **state)
{
    struct acks *one = acks_new(OPEN_MAX, TIMEOUT, UINT64_C(0x123456789abcdef));
    struct acks *two = acks_new(OPEN_MAX, TIMEOUT, UINT64_C(0xfedcba987654321));
    (void)state;
    assert_false(acks_is_own(two, acks_make_id(one)));
    assert_false(acks_is_own(one, acks_make_id(two)));
    acks_free(one);
    acks_free(two);
}

static void expect_channel(const char *head, const char *expected)
{
    struct request *request = request_of_texts(head, "");
    assert_true(slice_equals_text(acks_channel_of(request), expected));
    request_release(request);
}

static void test_the_channel_is_in_a_field_or_in_the_url(void **state)
{
    (void)state;
    expect_channel("POST /services/collector/ack HTTP/1.1\r\nX-SPLUNK-request-channel: a-b\r\n", "a-b");
    expect_channel("POST /a?channel=q HTTP/1.1\r\nX-Splunk-Request-Channel: a-b\r\n", "a-b");
    expect_channel("POST /a?x=1&channel=a-b&y=2 HTTP/1.1\r\n", "a-b");
    expect_channel("POST /a?channel=a-b HTTP/1.1\r\n", "a-b");
    expect_channel("POST /a?xchannel=a-b&channel HTTP/1.1\r\n", "");
    expect_channel("POST /a?channel= HTTP/1.1\r\n", "");
    expect_channel("POST /a HTTP/1.1\r\n", "");
}

/* ---- any order of calls -------------------------------------------------------------------------------------- */

enum { MODEL_IDS = 24, MODEL_OPEN_MAX = 12 };

struct model {
    struct acks *acks;
    bool is_open[MODEL_IDS];
    uint64_t opened_ns[MODEL_IDS], now_ns;
    size_t open_count;
};

static void model_forget(struct model *model, const struct ack *ack)
{
    size_t id = (size_t)ack->ack_id;
    assert_true(id < MODEL_IDS && model->is_open[id] && ack->claim_id == id + 1000);
    assert_true(ack->opened_ns == model->opened_ns[id]);
    model->is_open[id] = false;
    model->open_count--;
}

static void model_forget_all(struct model *model, struct ack *list)
{
    while (list != NULL) {
        struct ack *next = list->next;
        model_forget(model, list);
        ack_free(list);
        list = next;
    }
}

static void model_open(struct model *model, size_t id)
{
    struct ack *replaced;
    bool is_full = model->open_count == MODEL_OPEN_MAX && !model->is_open[id];
    bool was_open = model->is_open[id];
    enum acks_status status = open_at(model->acks, channel, (int64_t)id, id + 1000, model->now_ns, &replaced);
    assert_int_equal(status, is_full ? ACKS_FULL : ACKS_OPENED);
    assert_true((replaced != NULL) == (was_open && !is_full));
    model_forget_all(model, replaced);
    if (is_full)
        return;
    model->is_open[id] = true;
    model->opened_ns[id] = model->now_ns;
    model->open_count++;
}

static void model_poll(struct model *model, size_t id)
{
    bool is_open = model->is_open[id];
    struct ack *list =
        acks_take_done(model->acks, channel, (const int64_t[]){ (int64_t)id }, (const bool[]){ true }, 1);
    assert_true((list != NULL) == is_open);
    model_forget_all(model, list);
}

static void model_expire(struct model *model)
{
    model_forget_all(model, acks_take_expired(model->acks, model->now_ns));
    for (size_t id = 0; id < MODEL_IDS; id++)
        assert_true(!model->is_open[id] || model->now_ns - model->opened_ns[id] < TIMEOUT);
}

static void test_any_order_of_calls_gives_each_claim_back_once(void **state)
{
    struct model model = { .acks = acks_new(MODEL_OPEN_MAX, TIMEOUT, 1) };
    uint32_t random = 1;
    (void)state;
    assert_non_null(model.acks);
    for (int i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        size_t id = (random >> 8) % MODEL_IDS;
        model.now_ns += (random >> 16) % 32;
        switch ((random >> 28) % 4) {
        case 0:
        case 1:
            model_open(&model, id);
            break;
        case 2:
            model_poll(&model, id);
            break;
        default:
            model_expire(&model);
        }
        assert_int_equal(acks_open_count(model.acks), model.open_count);
    }
    model_forget_all(&model, acks_take_expired(model.acks, UINT64_MAX));
    assert_int_equal(model.open_count, 0);
    acks_free(model.acks);
}

/* ---- several loops ------------------------------------------------------------------------------------------- */

enum { ROUNDS = 2000 };

static void *loop_run(void *context)
{
    struct acks *acks = context;
    char name[] = "loop";
    const struct slice own = slice_of(name, 4);
    for (int64_t i = 0; i < ROUNDS; i++) {
        struct ack *replaced;
        int64_t id = acks_make_id(acks);
        if (!acks_is_own(acks, id) ||
            open_at(acks, own, i, (uint64_t)i, (uint64_t)i, &replaced) != ACKS_OPENED)
            return NULL;
        ack_free(replaced);
        for (struct ack *ack = acks_take_done(acks, own, &i, (const bool[]){ true }, 1); ack != NULL;) {
            struct ack *next = ack->next;
            ack_free(ack);
            ack = next;
        }
    }
    return context;
}

static void test_loops_share_one_registry(void **state)
{
    struct acks *acks = acks_new(OPEN_MAX, UINT64_MAX, 1);
    pthread_t threads[3];
    (void)state;
    assert_non_null(acks);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, loop_run, acks), 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    assert_int_equal(acks_open_count(acks), 0);
    acks_free(acks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entry_has_all_that_a_settlement_needs),
        cmocka_unit_test(test_only_ids_that_came_true_on_their_channel_are_taken),
        cmocka_unit_test(test_an_id_of_any_other_channel_is_another_batch),
        cmocka_unit_test(test_entries_expire_in_their_order_and_not_before),
        cmocka_unit_test(test_an_entry_in_the_middle_leaves_its_neighbours_in_place),
        cmocka_unit_test(test_a_full_registry_keeps_nothing_more),
        cmocka_unit_test(test_an_id_that_is_given_again_frees_the_earlier_batch),
        cmocka_unit_test(test_own_ids_are_known_and_far_from_the_targets),
        cmocka_unit_test(test_another_start_has_other_ids),
        cmocka_unit_test(test_the_channel_is_in_a_field_or_in_the_url),
        cmocka_unit_test(test_any_order_of_calls_gives_each_claim_back_once),
        cmocka_unit_test(test_loops_share_one_registry),
    };
    return cmocka_run_group_tests_name("acks", tests, NULL, NULL);
}
