/*
 * identify_rules.c - see identify_rules.h.
 *
 * The default rules are a table of texts in the operator's own language; they go through the same parser.  A setting
 * replaces its column in all of them; once topic, partition and offset are all set, one rule is left.
 */
#include "identify_rules.h"

#include <assert.h>
#include <stdlib.h>

#include "identify.h"

#define KIND(kind) (1u << (kind))
#define ANY_KIND                                                                                             \
    (KIND(JSON_IS_STRING) | KIND(JSON_IS_NUMBER) | KIND(JSON_IS_NULL) | KIND(JSON_IS_OBJECT) |               \
     KIND(JSON_IS_ARRAY))

struct default_rule {
    const char *name;
    const char *columns[COORDINATE_COUNT]; /* topic, partition, offset, timestamp */
    bool is_topic_fragment;                /* the topic is what follows the last '#' of its header */
    bool is_witness_only;
    const char *unhashed;
    struct telltale telltales[TELLTALES_MAX];
};

/* In the order in which they are tried.  Sources: the products' own code, named in each row. */
static const struct default_rule default_rules[] = {
    /* The names that the recipes for header-forwarding connectors use. */
    { .name = "x-kafka-headers",
      .columns = { "header:x-kafka-topic", "header:x-kafka-partition", "header:x-kafka-offset", "" } },
    /* Dapr's Kafka pub/sub and binding pass their metadata on as headers. */
    { .name = "dapr-headers",
      .columns = { "header:__topic", "header:__partition", "header:__offset", "header:__timestamp" } },
    /* Knative KafkaSource: ce-source is ".../kafkasources/NAME#TOPIC".  ce-time may be the time of dispatch. */
    { .name = "knative-headers",
      .columns = { "header:ce-source", "header:ce-knativekafkapartition", "header:ce-knativekafkaoffset",
                   "" },
      .is_topic_fragment = true },
    /* Kafka's InsertField transform with the names of our recipe. */
    { .name = "insert-field",
      .columns = { "json:/__topic", "json:/__partition", "json:/__offset", "json:/__timestamp" } },
    /* Splunk sink with splunk.hec.track.data; hec-channel changes while the connector runs. */
    { .name = "splunk-fields",
      .columns = { "json:/fields/kafka_topic", "json:/fields/kafka_partition", "json:/fields/kafka_offset",
                   "json:/fields/kafka_timestamp" },
      .unhashed = "json:/fields/hec-channel" },
    /* InsertField in front of the Splunk sink: the event repeats what the fields say. */
    { .name = "splunk-event",
      .columns = { "json:/event/__topic", "json:/event/__partition", "json:/event/__offset", "" },
      .is_witness_only = true },
    /* Vector's kafka source in its legacy namespace.  Its timestamp is no number. */
    { .name = "vector",
      .columns = { "json:/topic", "json:/partition", "json:/offset", "" },
      .telltales = { { "json:/source_type", KIND(JSON_IS_STRING), "\"kafka\"", NO_WANT },
                     { "json:/message_key", ANY_KIND, NULL, NO_WANT },
                     { "json:/headers", KIND(JSON_IS_OBJECT), NULL, NO_WANT },
                     { "json:/message", ANY_KIND, NULL, NO_WANT } } },
    /* Fluent Bit's kafka input; date is the time of reading, so it differs when the record is read again. */
    { .name = "fluent-bit",
      .columns = { "json:/topic", "json:/partition", "json:/offset", "" },
      .unhashed = "json:/date",
      .telltales = { { "json:/date", KIND(JSON_IS_NUMBER) | KIND(JSON_IS_STRING), NULL, NO_WANT },
                     { "json:/error", ANY_KIND, NULL, NO_WANT },
                     { "json:/key", ANY_KIND, NULL, NO_WANT },
                     { "json:/payload", ANY_KIND, NULL, NO_WANT } } },
};

enum {
    DEFAULT_RULE_COUNT = sizeof default_rules / sizeof default_rules[0],
    LISTS_PER_RULE = COORDINATE_COUNT + TELLTALES_MAX + 1,
};

_Static_assert((int)DEFAULT_RULE_COUNT <= (int)RULES_MAX, "every default rule has its place");

static bool is_same_pointer(const struct json_want *want, const struct locator *locator)
{
    if (want->token_count != locator->token_count)
        return false;
    for (size_t i = 0; i < want->token_count; i++)
        if (strcmp(want->tokens[i], locator->tokens[i]) != 0)
            return false;
    return true;
}

/* The want for a locator's pointer; the same pointer is scanned for once.  NO_WANT: there is no room. */
static size_t want_add(struct identifier *identifier, const struct locator *locator)
{
    for (size_t i = 0; i < identifier->want_count; i++)
        if (is_same_pointer(&identifier->wants[i], locator))
            return i;
    if (identifier->want_count == JSON_WANTS_MAX)
        return NO_WANT;
    identifier->wants[identifier->want_count] =
        (struct json_want){ .tokens = locator->tokens, .token_count = locator->token_count };
    return identifier->want_count++;
}

static void column_fill(struct identifier *identifier, const struct locator_list *list, struct column *column)
{
    column->count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct source *source = &column->sources[column->count++];
        source->locator = &list->items[i];
        source->want = NO_WANT;
        if (source->locator->kind == LOCATOR_JSON) {
            source->want = want_add(identifier, source->locator);
            /* At most three lists of 8, one composite and the 13 defaults that then remain: 38.  With four lists no
             * defaults remain: 33. */
            assert(source->want != NO_WANT);
        }
    }
}

/* Parse one of our own texts.  NULL: no memory. */
static struct locator_list *list_add(struct identifier *identifier, const char *text)
{
    struct locator_list *list = &identifier->lists[identifier->list_count++];
    return locator_list_parse(text, false, list) == NULL ? list : NULL;
}

/* A pointer of our own.  False: no memory. */
static bool pointer_add(struct identifier *identifier, const char *text, size_t *ret_want)
{
    *ret_want = NO_WANT;
    if (text == NULL)
        return true;
    struct locator_list *list = list_add(identifier, text);
    if (list == NULL)
        return false;
    *ret_want = want_add(identifier, &list->items[0]);
    assert(*ret_want != NO_WANT);
    return true;
}

static bool telltales_add(struct identifier *identifier, const struct default_rule *row, struct rule *rule)
{
    for (size_t i = 0; i < TELLTALES_MAX && row->telltales[i].pointer != NULL; i++) {
        struct telltale *telltale = &rule->telltales[rule->telltale_count++];
        *telltale = row->telltales[i];
        if (!pointer_add(identifier, telltale->pointer, &telltale->want))
            return false;
    }
    return true;
}

/* A default rule, with the columns that the operator has SET in place of its own. */
static bool default_rule_add(struct identifier *identifier, const struct default_rule *row,
                             const struct locator_list *const set[COORDINATE_COUNT])
{
    struct rule *rule = &identifier->rules[identifier->rule_count++];
    rule->name = row->name;
    rule->is_witness_only = row->is_witness_only;
    for (size_t i = 0; i < COORDINATE_COUNT; i++) {
        const struct locator_list *list = set[i];
        if (list == NULL) {
            struct locator_list *own = list_add(identifier, row->columns[i]);
            if (own == NULL)
                return false;
            if (i == IN_TOPIC && row->is_topic_fragment)
                own->items[0].kind = LOCATOR_FRAGMENT;
            list = own;
        }
        column_fill(identifier, list, &rule->columns[i]);
    }
    return telltales_add(identifier, row, rule) && pointer_add(identifier, row->unhashed, &rule->unhashed);
}

static void configured_rule_add(struct identifier *identifier,
                                const struct locator_list *const set[COORDINATE_COUNT])
{
    struct rule *rule = &identifier->rules[identifier->rule_count++];
    rule->name = "configured";
    rule->unhashed = NO_WANT;
    for (size_t i = 0; i < COORDINATE_COUNT; i++)
        if (set[i] != NULL)
            column_fill(identifier, set[i], &rule->columns[i]);
}

static bool is_part_of_id(const struct id_format *format, enum id_part part)
{
    for (size_t i = 0; i < format->part_count; i++)
        if (format->parts[i] == part)
            return true;
    return false;
}

static bool rules_add(struct identifier *identifier, const struct settings *settings)
{
    const struct locator_list *set[COORDINATE_COUNT] = {
        [IN_TOPIC] = &settings->topic,
        [IN_PARTITION] = &settings->partition,
        [IN_OFFSET] = &settings->offset,
        [IN_TIMESTAMP] = &settings->timestamp,
    };
    static const enum id_part parts[] = { ID_TOPIC, ID_PARTITION, ID_OFFSET };
    bool has_id = settings->id.count > 0 && settings->id_format.part_count > 0;
    if (has_id) {
        column_fill(identifier, &settings->id, &identifier->id);
        identifier->id_format = &settings->id_format;
    }
    size_t set_count = 0;
    for (size_t i = 0; i < COORDINATE_COUNT; i++) {
        bool is_in_id =
            has_id && i < sizeof parts / sizeof parts[0] && is_part_of_id(&settings->id_format, parts[i]);
        if (set[i]->count == 0 && !is_in_id)
            set[i] = NULL;
        else if (i != IN_TIMESTAMP)
            set_count++;
    }
    if (set_count == 3) {
        configured_rule_add(identifier, set);
        return true;
    }
    for (size_t i = 0; i < DEFAULT_RULE_COUNT; i++)
        if (!default_rule_add(identifier, &default_rules[i], set))
            return false;
    return true;
}

struct identifier *identifier_new(const struct settings *settings)
{
    struct identifier *identifier = calloc(1, sizeof *identifier);
    if (identifier == NULL)
        return NULL;
    identifier->identity = settings->identity;
    identifier->records_max = settings->records_max;
    identifier->lists = calloc((size_t)DEFAULT_RULE_COUNT * LISTS_PER_RULE, sizeof *identifier->lists);
    if (identifier->lists == NULL || !rules_add(identifier, settings)) {
        identifier_free(identifier);
        return NULL;
    }
    return identifier;
}

void identifier_free(struct identifier *identifier)
{
    if (identifier == NULL)
        return;
    for (size_t i = 0; i < identifier->list_count; i++)
        locator_list_deinit(&identifier->lists[i]);
    free(identifier->lists);
    free(identifier);
}
