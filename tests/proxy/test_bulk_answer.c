/*
 * test_bulk_answer.c - what bulk answers prove per item, and the answers that are completed for the connector.
 *
 * jansson reads what was written; forwarded items are compared byte by byte.
 */
#include "bulk_answer.h"

#include <jansson.h>
#include "batch_of.h"
#include "json_walk.h"

static struct settings settings;

static int settings_init(void **state)
{
    (void)state;
    statuses_fill(&settings);
    return 0;
}

static bool outcomes_read(struct batch *batch, const char *body)
{
    return bulk_outcomes(slice_of_text(body), &batch->identified, batch->sent, &settings, batch->outcomes);
}

/* The whole answer as text, owned; NULL: refused. */
static char *answer_text(struct batch *batch, const char *body)
{
    char *bytes;
    size_t byte_count;
    struct slice answer = body != NULL ? slice_of_text(body) : slice_of(NULL, 0);
    if (!bulk_answer(body != NULL, answer, &batch->identified, batch->sent, &bytes, &byte_count))
        return NULL;
    char *text = strndup(bytes, byte_count);
    assert_non_null(text);
    assert_int_equal(strlen(text), byte_count);
    free(bytes);
    return text;
}

static void expect_answer(struct batch *batch, const char *body, const char *expected)
{
    char *text = answer_text(batch, body);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

#define ITEMS(items) "{\"took\":3,\"errors\":false,\"items\":[" items "]}"
#define TWO_ITEMS(status)                                                                                    \
    "\"items\":[{\"index\":{\"status\":" status "}},{\"index\":{\"status\":" status "}}]"
#define SHARDS         "\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0},\"_seq_no\":0,\"_primary_term\":1"
#define CONFLICT       "\"error\":{\"type\":\"version_conflict_engine_exception\",\"reason\":\"r\"},\"status\":409"
#define OTHER_CONFLICT "\"error\":{\"type\":\"illegal_state_exception\",\"reason\":\"r\"},\"status\":409"

/* ---- outcomes ------------------------------------------------------------------------------------------------ */

struct item_row {
    const char *name;
    struct element element;
    const char *item;
    enum outcome outcome;
};

static const struct item_row item_rows[] = {
    { "created",
      { .kind = BULK_INDEX, .id = "k", .is_sent = true },
      "{\"index\":{\"_id\":\"k\",\"status\":201}}",
      OUTCOME_APPLIED },
    { "updated, white space",
      { .kind = BULK_INDEX, .is_sent = true },
      "{ \"index\" : { \"status\" : 200 } }",
      OUTCOME_APPLIED },
    { "noop",
      { .kind = BULK_UPDATE, .is_sent = true },
      "{\"update\":{\"result\":\"noop\",\"status\":200}}",
      OUTCOME_APPLIED },
    { "null is no error",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"error\":null,\"status\":201}}",
      OUTCOME_APPLIED },
    { "2xx with error",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"error\":{\"type\":\"x\"},\"status\":200}}",
      OUTCOME_UNKNOWN },
    { "2xx with error as text",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"error\":\"x\",\"status\":200}}",
      OUTCOME_UNKNOWN },
    { "too many",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"status\":429,\"error\":{\"type\":\"es_rejected_execution_exception\"}}}",
      OUTCOME_NOT_APPLIED },
    { "malformed",
      { .kind = BULK_CREATE, .is_sent = true },
      "{\"create\":{\"status\":400,\"error\":{\"type\":\"mapper_parsing_exception\"}}}",
      OUTCOME_NOT_APPLIED },
    { "unavailable",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"status\":503,\"error\":{\"type\":\"unavailable_shards_exception\"}}}",
      OUTCOME_NOT_APPLIED },
    { "500 is unknown",
      { .kind = BULK_INDEX, .is_sent = true },
      "{\"index\":{\"status\":500,\"error\":{\"type\":\"x\"}}}",
      OUTCOME_UNKNOWN },
    { "conflict of a create with its own id",
      { .kind = BULK_CREATE, .id = "orders+0+100", .is_sent = true },
      "{\"create\":{\"_id\":\"orders+0+100\"," CONFLICT "}}",
      OUTCOME_APPLIED },
    { "another conflict of it",
      { .kind = BULK_CREATE, .id = "orders+0+100", .is_sent = true },
      "{\"create\":{" OTHER_CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of a create with a key as id",
      { .kind = BULK_CREATE, .id = "customer-7", .is_sent = true },
      "{\"create\":{" CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of a create with another record's id",
      { .kind = BULK_CREATE, .id = "orders+0+101", .is_sent = true },
      "{\"create\":{" CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of a create without id",
      { .kind = BULK_CREATE, .is_sent = true },
      "{\"create\":{" CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of an index with its own id",
      { .kind = BULK_INDEX, .id = "orders+0+100", .is_sent = true },
      "{\"index\":{" CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of external versioning",
      { .kind = BULK_INDEX, .id = "k", .version = "100", .is_version_external = true, .is_sent = true },
      "{\"index\":{" CONFLICT "}}",
      OUTCOME_APPLIED },
    { "another conflict of it",
      { .kind = BULK_INDEX, .id = "k", .version = "100", .is_version_external = true, .is_sent = true },
      "{\"index\":{" OTHER_CONFLICT "}}",
      OUTCOME_NOT_APPLIED },
    { "conflict of a delete of external versioning",
      { .kind = BULK_DELETE, .id = "k", .version = "100", .is_version_external = true, .is_sent = true },
      "{\"delete\":{" CONFLICT "}}",
      OUTCOME_APPLIED },
    { "nothing to delete",
      { .kind = BULK_DELETE, .id = "k", .is_sent = true },
      "{\"delete\":{\"_id\":\"k\",\"result\":\"not_found\",\"status\":404}}",
      OUTCOME_APPLIED },
    { "no index to delete from",
      { .kind = BULK_DELETE, .id = "k", .is_sent = true },
      "{\"delete\":{\"status\":404,\"error\":{\"type\":\"index_not_found_exception\"}}}",
      OUTCOME_NOT_APPLIED },
    { "index with op_type create",
      { .kind = BULK_INDEX, .id = "k", .is_sent = true },
      "{\"create\":{\"_id\":\"k\",\"status\":201}}",
      OUTCOME_APPLIED },
    { "an id set by a pipeline",
      { .kind = BULK_INDEX, .id = "k", .is_sent = true },
      "{\"index\":{\"_id\":\"fingerprint\",\"status\":201}}",
      OUTCOME_APPLIED },
    { "an id spelled with another escape",
      { .kind = BULK_INDEX, .id = "a/b", .is_sent = true },
      "{\"index\":{\"_id\":\"a\\/b\",\"status\":201}}",
      OUTCOME_APPLIED },
};

static void test_each_item_is_judged_by_its_own_status_A8(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof item_rows / sizeof item_rows[0]; i++) {
        const struct item_row *row = &item_rows[i];
        struct batch batch;
        char body[512];
        batch_of(&batch, &row->element, 1);
        snprintf(body, sizeof body, "{\"took\":1,\"errors\":true,\"items\":[%s]}", row->item);
        if (!outcomes_read(&batch, body) || batch.outcomes[0] != row->outcome)
            fail_msg("%s: %d", row->name, (int)batch.outcomes[0]);
    }
}

static void test_an_id_format_of_the_operator_names_the_record_too(void **state)
{
    const struct element element = { .kind = BULK_CREATE, .id = "orders-0-100", .is_sent = true };
    struct settings formatted = settings;
    struct batch batch;
    (void)state;
    assert_null(id_format_parse("{topic}-{partition}-{offset}", &formatted.id_format));
    batch_of(&batch, &element, 1);
    assert_true(bulk_outcomes(slice_of_text(ITEMS("{\"create\":{" CONFLICT "}}")), &batch.identified,
                              batch.sent, &formatted, batch.outcomes));
    assert_int_equal(batch.outcomes[0], OUTCOME_APPLIED);
    id_format_deinit(&formatted.id_format);
}

static void test_only_records_that_were_sent_have_outcomes(void **state)
{
    const struct element elements[] = {
        { .kind = BULK_INDEX, .record = 0 },
        { .kind = BULK_DELETE, .record = UNKEYED, .is_sent = true },
        { .kind = BULK_INDEX, .record = 1, .is_sent = true },
        { .kind = BULK_INDEX, .record = 1, .is_repeat = true },
        { .kind = BULK_INDEX, .record = 2, .is_sent = true },
    };
    struct batch batch;
    (void)state;
    batch_of(&batch, elements, 5);
    assert_true(outcomes_read(&batch, ITEMS("{\"delete\":{\"status\":200}},{\"index\":{\"status\":429}},"
                                            "{\"index\":{\"status\":201}}")));
    assert_int_equal(batch.outcomes[0], OUTCOME_NOT_SENT);
    assert_int_equal(batch.outcomes[1], OUTCOME_NOT_APPLIED);
    assert_int_equal(batch.outcomes[2], OUTCOME_APPLIED);
}

/* Two index actions, a and b, both sent. */
static const char *const damaged[] = {
    "",
    "null",
    "[]",
    "<html>bad gateway</html>",
    "{}",
    "{\"took\":1,\"errors\":false}",
    "{\"took\":1,\"errors\":false,\"items\":null}",
    "{\"took\":1,\"errors\":false,\"items\":{}}",
    ITEMS(""),
    ITEMS("{\"index\":{\"status\":201}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201}},{\"index\":{\"status\":201}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"delete\":{\"status\":200}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"update\":{\"status\":200}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":[]}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":\"201\"}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":2e2}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":99}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":600}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201,\"status\":429}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201,\"error\":null,\"error\":{}}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201},\"index\":{\"status\":429}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201},\"more\":1}"),
    ITEMS("{\"index\":{\"status\":201}},{\"more\":1,\"index\":{\"status\":201}}"),
    ITEMS("{\"index\":{\"status\":201}},{}"),
    ITEMS("{\"index\":{\"status\":201}},null"),
    ITEMS("{\"index\":{\"status\":201}},[{\"index\":{\"status\":201}}]"),
    ITEMS("{\"index\":{\"status\":201}} {\"index\":{\"status\":201}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201}},"),
    ITEMS("{\"index\":{\"_id\":\"b\",\"status\":201}},{\"index\":{\"_id\":\"a\",\"status\":429}}"),
    ITEMS("{\"index\":{\"status\":201}},{\"index\":{\"status\":201}}") "x",
    "{" TWO_ITEMS("201") "," TWO_ITEMS("429") "}",
    "{\"items\":[],\"items\":[{\"index\":{\"status\":201}},{\"index\":{\"status\":201}}]}",
    "{\"items\":[{\"index\":{\"status\":201}},{\"index\":{\"status\":201}}],\"items\":[]}",
    "{\"took\":01,\"items\":[{\"index\":{\"status\":201}},{\"index\":{\"status\":201}}]}",
};

static const struct element two[] = {
    { .kind = BULK_INDEX, .id = "a", .record = 0, .is_sent = true },
    { .kind = BULK_INDEX, .id = "b", .record = 1, .is_sent = true },
};

static void expect_refused(struct batch *batch, const char *body)
{
    if (outcomes_read(batch, body) || batch->outcomes[0] != OUTCOME_NOT_SENT ||
        batch->outcomes[1] != OUTCOME_NOT_SENT)
        fail_msg("read: %s", body);
    char *text = answer_text(batch, body);
    if (text != NULL)
        fail_msg("answered: %s", body);
}

static void test_an_answer_that_does_not_fit_proves_nothing(void **state)
{
    struct batch batch;
    (void)state;
    batch_of(&batch, two, 2);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++)
        expect_refused(&batch, damaged[i]);
}

static void test_an_answer_cut_anywhere_proves_nothing(void **state)
{
    static const char whole[] =
        "{\"took\":7,\"ingest_took\":1,\"errors\":true,\"items\":[{\"index\":{\"_id\":\"a\",\"status\":201}} "
        ", "
        "{\"index\":{\"_id\":\"b\",\"error\":{\"type\":\"\\u00e9\\\\\"},\"status\":400}}]}";
    struct batch batch;
    (void)state;
    batch_of(&batch, two, 2);
    for (size_t length = 0; length + 1 < sizeof whole; length++) {
        char *cut = strndup(whole, length);
        assert_non_null(cut);
        expect_refused(&batch, cut);
        free(cut);
    }
    assert_true(outcomes_read(&batch, whole));
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static void test_made_up_items_have_what_the_clients_demand(void **state)
{
    const struct element elements[] = {
        { .kind = BULK_INDEX, .id = "orders+0+100", .record = 0 },
        { .kind = BULK_CREATE, .id = "orders+0+101", .record = 1 },
        { .kind = BULK_UPDATE, .id = "k\\u00e9\\\"", .record = 2 },
        { .kind = BULK_DELETE, .id = "k", .version = "9007199254740993", .record = 3 },
        { .kind = BULK_INDEX, .record = 4 },
        { .kind = BULK_INDEX, .id = "k", .version = "007", .record = 5 },
    };
    struct batch batch;
    (void)state;
    batch_of(&batch, elements, 6);
    expect_answer(
        &batch, NULL,
        "{\"took\":0,\"errors\":false,\"items\":["
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"orders+0+100\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}},"
        "{\"create\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"orders+0+101\",\"_version\":1,"
        "\"result\":\"created\"," SHARDS ",\"status\":201}},"
        "{\"update\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"k\\u00e9\\\"\",\"_version\":1,"
        "\"result\":\"noop\"," SHARDS ",\"status\":200}},"
        "{\"delete\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"k\",\"_version\":9007199254740993,"
        "\"result\":\"deleted\"," SHARDS ",\"status\":200}},"
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"orders+0+104\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}},"
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"k\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}}]}");
}

static void test_an_index_of_the_url_becomes_json_text(void **state)
{
    const struct element element = { .kind = BULK_INDEX, .id = "k", .record = 0 };
    struct batch batch;
    (void)state;
    batch_of(&batch, &element, 1);
    batch.actions[0].index = slice_of_text("%3Corders-%7Bnow%2Fd%7D%3E\"\\%zz%c3%a9%2");
    expect_answer(&batch, NULL,
                  "{\"took\":0,\"errors\":false,\"items\":[{\"index\":{\"_index\":"
                  "\"<orders-{now/d}>\\\"\\\\%zz%c3%a9%2\",\"_type\":\"_doc\",\"_id\":\"k\",\"_version\":1,"
                  "\"result\":\"updated\"," SHARDS ",\"status\":200}}]}");
}

static void test_an_index_of_the_action_line_is_copied_with_its_escapes(void **state)
{
    static const char line[] = "{\"index\":{\"_index\":\"or\\u0064ers%20\"}}";
    const struct element element = { .kind = BULK_INDEX, .id = "k", .record = 0 };
    struct batch batch;
    (void)state;
    batch_of(&batch, &element, 1);
    batch.identified.body = slice_of_text(line);
    batch.actions[0].index = slice_of(line + 20, 14);
    char *text = answer_text(&batch, NULL);
    assert_non_null(strstr(text, "\"_index\":\"or\\u0064ers%20\","));
    free(text);
}

static void test_the_targets_items_keep_every_byte_and_their_places(void **state)
{
    const struct element elements[] = {
        { .kind = BULK_INDEX, .id = "orders+0+100", .record = 0 },
        { .kind = BULK_DELETE, .id = "k", .record = UNKEYED, .is_sent = true },
        { .kind = BULK_INDEX, .id = "orders+0+102", .record = 1 },
    };
    struct batch batch;
    (void)state;
    batch_of(&batch, elements, 3);
    expect_answer(
        &batch,
        " {\"errors\":true, \"took\":30,\"x\":[1,{}],\"ingest_took\":4 , \"items\":[ {\"delete\" : "
        "{\"_id\":\"k\","
        "\"_version\":1.50e3, \"status\":200,\"status_\":1}}\n]}\n",
        "{\"took\":30,\"ingest_took\":4,\"errors\":false,\"items\":["
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"orders+0+100\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}},"
        "{\"delete\" : {\"_id\":\"k\",\"_version\":1.50e3, \"status\":200,\"status_\":1}},"
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"orders+0+102\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}}]}");
}

/* "errors" is what OpenSearch's clients look at before they look at any item. */
static void test_a_whole_answer_keeps_every_byte_but_for_a_word_that_contradicts_its_items(void **state)
{
    static const char failed[] = "{\"index\":{\"_id\":\"k\",\"error\":{\"type\":\"x\"},\"status\":429}}";
    static const char good[] = "{\"index\":{\"_id\":\"k\",\"status\":201}}";
    static const struct {
        const char *head, *item, *tail, *head_told; /* told NULL: as it came */
    } rows[] = {
        { "{\"took\":3,\"errors\":false,\"items\":[", good, "]}", NULL },
        { "{\"took\":3,\"errors\":true,\"items\":[", failed, "]}", NULL },
        { "{\"took\":3,\"errors\":true,\"items\":[", good, "]}", NULL },
        { "{\"took\":3,\"items\":[", failed, "]}", NULL },
        { "{ \"took\" :3, \"errors\" : false , \"items\":[ ", failed, " ] , \"more\":{\"errors\":false}}\n",
          "{ \"took\" :3, \"errors\" : true , \"items\":[ " },
        { "{\"errors\":null,\"errors\":false,\"items\":[", failed, "]}",
          "{\"errors\":true,\"errors\":true,\"items\":[" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct batch batch;
        char body[512], expected[512], *bytes;
        size_t byte_count;
        batch_init(&batch, SHAPE_IS_BULK);
        batch_add(&batch, &(struct element){ .kind = BULK_INDEX, .id = "k", .is_sent = true });
        snprintf(body, sizeof body, "%s%s%s", rows[i].head, rows[i].item, rows[i].tail);
        assert_true(
            bulk_answer_whole(slice_of_text(body), &batch.identified, batch.sent, &bytes, &byte_count));
        if (rows[i].head_told == NULL) {
            assert_null(bytes);
            continue;
        }
        snprintf(expected, sizeof expected, "%s%s%s", rows[i].head_told, rows[i].item, rows[i].tail);
        assert_int_equal(byte_count, strlen(expected));
        assert_memory_equal(bytes, expected, byte_count);
        free(bytes);
    }
}

static void test_a_refusal_without_an_error_is_hidden_from_every_client(void **state)
{
    static const struct {
        enum bulk_kind kind;
        const char *item;
        bool is_hidden;
    } rows[] = {
        { BULK_INDEX, "{\"index\":{\"status\":201}}", false },
        { BULK_INDEX, "{\"index\":{\"status\":429}}", true },
        { BULK_INDEX, "{\"index\":{\"error\":null,\"status\":400}}", true },
        { BULK_INDEX, "{\"index\":{\"error\":{},\"status\":429}}", false },
        { BULK_DELETE, "{\"delete\":{\"status\":404}}", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct batch batch;
        char body[256];
        batch_init(&batch, SHAPE_IS_BULK);
        batch_add(&batch, &(struct element){ .kind = rows[i].kind, .is_sent = true });
        snprintf(body, sizeof body, ITEMS("%s"), rows[i].item);
        assert_int_equal(bulk_hides_refusal(slice_of_text(body), &batch.identified, batch.sent, &settings),
                         rows[i].is_hidden);
    }
}

static void test_a_repeat_of_a_failed_record_fails_too(void **state)
{
    const struct element elements[] = {
        { .kind = BULK_INDEX, .id = "a", .record = 0, .is_sent = true },
        { .kind = BULK_CREATE, .id = "a", .record = 0, .is_repeat = true },
        { .kind = BULK_INDEX, .id = "b", .record = 1, .is_sent = true },
        { .kind = BULK_INDEX, .id = "b", .record = 1, .is_repeat = true },
    };
    struct batch batch;
    (void)state;
    batch_of(&batch, elements, 4);
    expect_answer(
        &batch,
        "{\"took\":1,\"errors\":false,\"items\":[{\"index\":{\"error\":{\"type\":\"x\"},\"status\":429}},"
        "{\"index\":{\"status\":201}}]}",
        "{\"took\":1,\"errors\":true,\"items\":[{\"index\":{\"error\":{\"type\":\"x\"},\"status\":429}},"
        "{\"create\":{\"error\":{\"type\":\"x\"},\"status\":429}},{\"index\":{\"status\":201}},"
        "{\"index\":{\"_index\":\"orders\",\"_type\":\"_doc\",\"_id\":\"b\",\"_version\":1,"
        "\"result\":\"updated\"," SHARDS ",\"status\":200}}]}");
}

/* ---- any batch, any cut, any results ------------------------------------------------------------------------- */

static uint64_t random_state;

static unsigned random_below(unsigned limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)((random_state >> 16) % limit);
}

static const char *const kind_names[] = { "index", "create", "update", "delete" };
static const struct {
    const char *rest;
    enum outcome outcome;
    bool has_error;
} results[] = {
    { "\"result\":\"created\",\"status\":201", OUTCOME_APPLIED, false },
    { "\"status\" : 200,\"_version\":123456789012345678901234567890", OUTCOME_APPLIED, false },
    { "\"error\":{\"type\":\"e\",\"reason\":\"]},{\\\"\"},\"status\":429", OUTCOME_NOT_APPLIED, true },
    { "\"status\":400,\"error\":{\"type\":\"mapper_parsing_exception\"}", OUTCOME_NOT_APPLIED, true },
    { "\"status\":500,\"error\":\"text\"", OUTCOME_UNKNOWN, true },
    { "\"status\":504", OUTCOME_UNKNOWN, false },
};

struct run {
    struct batch batch;
    char ids[BATCH_SITES_MAX][24];
    char items[BATCH_SITES_MAX][160];  /* of the target; "" where nothing was sent */
    unsigned results[BATCH_SITES_MAX]; /* by site */
    char body[BATCH_SITES_MAX * 160 + 128];
};

static void run_add(struct run *run, size_t site, int *record_count)
{
    struct element element = { .kind = (enum bulk_kind)random_below(4), .is_sent = random_below(2) == 0 };
    unsigned what = random_below(8);
    element.is_repeat = what == 0 && *record_count > 0;
    if (element.is_repeat)
        element.record = (int)random_below((unsigned)*record_count);
    else
        element.record = what == 1 ? UNKEYED : (*record_count)++;
    element.is_sent = element.record == UNKEYED || (element.is_sent && !element.is_repeat);
    snprintf(run->ids[site], sizeof run->ids[site], "id-%zu", site);
    element.id = random_below(4) == 0 ? NULL : run->ids[site];
    batch_add(&run->batch, &element);
    run->results[site] = random_below(sizeof results / sizeof results[0]);
    if (element.is_sent)
        snprintf(run->items[site], sizeof run->items[site], "{%s\"%s\":{\"_id\":\"id-%zu\",%s}}",
                 random_below(2) == 0 ? " " : "", kind_names[element.kind], site,
                 results[run->results[site]].rest);
}

static void run_make(struct run *run)
{
    int record_count = 0;
    size_t site_count = 1 + random_below(BATCH_SITES_MAX - 1), at;
    memset(run, 0, sizeof *run);
    batch_init(&run->batch, SHAPE_IS_BULK);
    for (size_t i = 0; i < site_count; i++)
        run_add(run, i, &record_count);
    at = (size_t)snprintf(run->body, sizeof run->body, "{\"took\":%u,\"errors\":false,\"items\":[",
                          random_below(1000));
    const char *comma = "";
    for (size_t i = 0; i < site_count; i++) {
        if (!run->batch.sent[i])
            continue;
        at += (size_t)snprintf(run->body + at, sizeof run->body - at, "%s%s", comma, run->items[i]);
        comma = random_below(2) == 0 ? "," : " ,\n";
    }
    snprintf(run->body + at, sizeof run->body - at, "]}");
}

/* What became of the record of SITE, by the test's own books; -1: it was not sent. */
static int result_of(const struct run *run, size_t site)
{
    for (size_t i = 0; i < run->batch.identified.site_count; i++) {
        if (run->batch.sent[i] && run->batch.sites[i].record != NO_RECORD &&
            run->batch.sites[i].record == run->batch.sites[site].record)
            return (int)run->results[i];
    }
    return -1;
}

static void check_outcomes(struct run *run)
{
    assert_true(outcomes_read(&run->batch, run->body));
    for (size_t i = 0; i < run->batch.identified.site_count; i++) {
        size_t record = run->batch.sites[i].record;
        if (record == NO_RECORD)
            continue;
        int result = result_of(run, i);
        assert_int_equal(run->batch.outcomes[record],
                         result < 0 ? OUTCOME_NOT_SENT : results[result].outcome);
    }
}

static bool check_item(const struct run *run, size_t site, struct slice text, json_t *item)
{
    const char *name = kind_names[run->batch.actions[site].kind];
    json_t *inside = json_object_get(item, name);
    assert_int_equal(json_object_size(item), 1);
    assert_non_null(inside);
    if (run->batch.sent[site]) {
        assert_int_equal(text.byte_count, strlen(run->items[site]));
        assert_memory_equal(text.at, run->items[site], text.byte_count);
        return results[run->results[site]].has_error;
    }
    int first = result_of(run, site);
    bool has_error = run->batch.sites[site].is_repeat && first >= 0 && results[first].has_error;
    assert_true((json_object_get(inside, "error") != NULL) == has_error);
    if (!has_error) {
        assert_string_equal(json_string_value(json_object_get(inside, "_type")), "_doc");
        assert_true(json_string_length(json_object_get(inside, "_id")) > 0);
        assert_int_equal((int)json_number_value(json_object_get(inside, "status")) / 100, 2);
        assert_int_equal(json_object_size(inside), 9);
    }
    return has_error;
}

static void check_answer(struct run *run)
{
    struct json_walk walk;
    char *text = answer_text(&run->batch, run->body);
    assert_non_null(text);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    assert_non_null(root);
    json_t *items = json_object_get(root, "items");
    assert_int_equal(json_object_size(root), 3);
    assert_int_equal(json_array_size(items), run->batch.identified.site_count);
    bool has_errors = false;
    json_walk_open(&walk, slice_of_text(strstr(text, "\"items\":") + 8), '[');
    for (size_t i = 0; json_walk_next(&walk); i++) {
        struct slice item;
        assert_true(json_walk_value(&walk, NULL, 0, &item));
        json_t *parsed = json_loadb(item.at, item.byte_count, JSON_DECODE_INT_AS_REAL, NULL);
        has_errors |= check_item(run, i, item, parsed);
        json_decref(parsed);
    }
    assert_true(json_is_true(json_object_get(root, "errors")) == has_errors);
    json_decref(root);
    free(text);
}

static void test_every_action_is_answered_in_its_place_whatever_was_cut_Z05(void **state)
{
    static struct run run;
    (void)state;
    random_state = UINT64_C(0x5eed0001);
    for (int i = 0; i < 3000; i++) {
        run_make(&run);
        check_outcomes(&run);
        check_answer(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_is_judged_by_its_own_status_A8),
        cmocka_unit_test(test_an_id_format_of_the_operator_names_the_record_too),
        cmocka_unit_test(test_only_records_that_were_sent_have_outcomes),
        cmocka_unit_test(test_an_answer_that_does_not_fit_proves_nothing),
        cmocka_unit_test(test_an_answer_cut_anywhere_proves_nothing),
        cmocka_unit_test(test_made_up_items_have_what_the_clients_demand),
        cmocka_unit_test(test_an_index_of_the_url_becomes_json_text),
        cmocka_unit_test(test_an_index_of_the_action_line_is_copied_with_its_escapes),
        cmocka_unit_test(test_the_targets_items_keep_every_byte_and_their_places),
        cmocka_unit_test(test_a_whole_answer_keeps_every_byte_but_for_a_word_that_contradicts_its_items),
        cmocka_unit_test(test_a_refusal_without_an_error_is_hidden_from_every_client),
        cmocka_unit_test(test_a_repeat_of_a_failed_record_fails_too),
        cmocka_unit_test(test_every_action_is_answered_in_its_place_whatever_was_cut_Z05),
    };
    return cmocka_run_group_tests_name("bulk_answer", tests, settings_init, NULL);
}
