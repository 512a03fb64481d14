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

#define IN(place) (1u << (place))
#define ANYWHERE  (IN(PLACE_WHOLE) | IN(PLACE_ELEMENT) | IN(PLACE_SOURCE))
#define IN_VALUE  (IN(PLACE_WHOLE) | IN(PLACE_ELEMENT))

struct default_rule {
    const char *name;
    unsigned places;                       /* a bit for each */
    const char *id;                        /* composite in the form topic+partition+offset; NULL: none */
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
      .places = IN(PLACE_WHOLE),
      .columns = { "header:x-kafka-topic", "header:x-kafka-partition", "header:x-kafka-offset", "" } },
    /* Dapr's Kafka pub/sub and binding pass their metadata on as headers. */
    { .name = "dapr-headers",
      .places = IN(PLACE_WHOLE),
      .columns = { "header:__topic", "header:__partition", "header:__offset", "header:__timestamp" } },
    /* Knative KafkaSource: ce-source is ".../kafkasources/NAME#TOPIC".  ce-time may be the time of dispatch. */
    { .name = "knative-headers",
      .places = IN(PLACE_WHOLE),
      .columns = { "header:ce-source", "header:ce-knativekafkapartition", "header:ce-knativekafkaoffset",
                   "" },
      .is_topic_fragment = true },
    /* Kafka's InsertField transform with the names of our recipe. */
    { .name = "insert-field",
      .places = ANYWHERE,
      .columns = { "json:/__topic", "json:/__partition", "json:/__offset", "json:/__timestamp" } },
    /* Splunk sink with splunk.hec.track.data; hec-channel changes while the connector runs. */
    { .name = "splunk-fields",
      .places = IN_VALUE,
      .columns = { "json:/fields/kafka_topic", "json:/fields/kafka_partition", "json:/fields/kafka_offset",
                   "json:/fields/kafka_timestamp" },
      .unhashed = "json:/fields/hec-channel" },
    /* InsertField in front of the Splunk sink: the event repeats what the fields say. */
    { .name = "splunk-event",
      .places = IN_VALUE,
      .columns = { "json:/event/__topic", "json:/event/__partition", "json:/event/__offset", "" },
      .is_witness_only = true },
    /* Vector's kafka source in its legacy namespace.  Its timestamp is no number. */
    { .name = "vector",
      .places = IN_VALUE,
      .columns = { "json:/topic", "json:/partition", "json:/offset", "" },
      .telltales = { { "json:/source_type", KIND(JSON_IS_STRING), "\"kafka\"", NO_WANT },
                     { "json:/message_key", ANY_KIND, NULL, NO_WANT },
                     { "json:/headers", KIND(JSON_IS_OBJECT), NULL, NO_WANT },
                     { "json:/message", ANY_KIND, NULL, NO_WANT } } },
    /* Fluent Bit's kafka input; date is the time of reading, so it differs when the record is read again. */
    { .name = "fluent-bit",
      .places = IN_VALUE,
      .columns = { "json:/topic", "json:/partition", "json:/offset", "" },
      .unhashed = "json:/date",
      .telltales = { { "json:/date", KIND(JSON_IS_NUMBER) | KIND(JSON_IS_STRING), NULL, NO_WANT },
                     { "json:/error", ANY_KIND, NULL, NO_WANT },
                     { "json:/key", ANY_KIND, NULL, NO_WANT },
                     { "json:/payload", ANY_KIND, NULL, NO_WANT } } },
    /* InsertField in front of the Datadog sink, which puts the record into "message". */
    { .name = "datadog-message",
      .places = IN(PLACE_ELEMENT),
      .columns = { "json:/message/__topic", "json:/message/__partition", "json:/message/__offset",
                   "json:/message/__timestamp" } },
    /* Dapr's bulk subscribe: the metadata of each entry, all strings.  An entry's id is its place in the request. */
    { .name = "dapr-bulk",
      .places = IN(PLACE_ELEMENT),
      .columns = { "json:/metadata/__topic", "json:/metadata/__partition", "json:/metadata/__offset",
                   "json:/metadata/__timestamp" },
      .unhashed = "json:/entryId",
      .telltales = { { "json:/entryId", KIND(JSON_IS_STRING), NULL, NO_WANT } } },
    /* New Relic's sink: names with dots.  Its timestamp may be the time of sending. */
    { .name = "new-relic",
      .places = IN(PLACE_ELEMENT),
      .columns = { "json:/attributes/collector.metadata.kafka.topic",
                   "json:/attributes/collector.metadata.kafka.partition",
                   "json:/attributes/collector.metadata.kafka.offset", "" } },
    /* The Elasticsearch sink with key.ignore=true, the OpenSearch sink with its topic.partition.offset strategy. */
    { .name = "bulk-id", .places = IN(PLACE_SOURCE), .columns = { "", "", "", "" }, .id = "bulk-id" },
};

enum {
    DEFAULT_RULE_COUNT = sizeof default_rules / sizeof default_rules[0],
    LISTS_PER_RULE = COORDINATE_COUNT + TELLTALES_MAX + 2,
    /* One more for each set: its envelope's pointer. */
    LISTS_MAX = PLACE_COUNT * (DEFAULT_RULE_COUNT * LISTS_PER_RULE + 1),
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
static size_t want_add(struct rule_set *set, const struct locator *locator)
{
    for (size_t i = 0; i < set->want_count; i++)
        if (is_same_pointer(&set->wants[i], locator))
            return i;
    if (set->want_count == JSON_WANTS_MAX)
        return NO_WANT;
    set->wants[set->want_count] =
        (struct json_want){ .tokens = locator->tokens, .token_count = locator->token_count };
    return set->want_count++;
}

static void column_fill(struct rule_set *set, const struct locator_list *list, struct column *column)
{
    column->count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct source *source = &column->sources[column->count++];
        source->locator = &list->items[i];
        source->want = NO_WANT;
        if (source->locator->kind == LOCATOR_JSON) {
            source->want = want_add(set, source->locator);
            /* At most three lists of 8, one composite and the 18 defaults that then remain: 43.  With four lists no
             * defaults remain: 33.  With none set there are 36 defaults. */
            assert(source->want != NO_WANT);
        }
    }
}

/* Parse one of our own texts.  NULL: no memory. */
static struct locator_list *list_add(struct identifier *identifier, const char *text, bool is_composite)
{
    assert(identifier->list_count < LISTS_MAX);
    struct locator_list *list = &identifier->lists[identifier->list_count++];
    return locator_list_parse(text, is_composite, list) == NULL ? list : NULL;
}

/* A pointer of our own.  False: no memory. */
static bool pointer_add(struct identifier *identifier, struct rule_set *set, const char *text,
                        size_t *ret_want)
{
    *ret_want = NO_WANT;
    if (text == NULL)
        return true;
    struct locator_list *list = list_add(identifier, text, false);
    if (list == NULL)
        return false;
    *ret_want = want_add(set, &list->items[0]);
    assert(*ret_want != NO_WANT);
    return true;
}

static bool telltales_add(struct identifier *identifier, struct rule_set *set, const struct default_rule *row,
                          struct rule *rule)
{
    for (size_t i = 0; i < TELLTALES_MAX && row->telltales[i].pointer != NULL; i++) {
        struct telltale *telltale = &rule->telltales[rule->telltale_count++];
        *telltale = row->telltales[i];
        if (!pointer_add(identifier, set, telltale->pointer, &telltale->want))
            return false;
    }
    return true;
}

/* What the operator has set: NULL where he has not. */
struct wishes {
    const struct locator_list *columns[COORDINATE_COUNT];
    const struct locator_list *id;
    const struct id_format *id_format;
    size_t key_count; /* how many of topic, partition and offset */
};

static bool columns_fill(struct identifier *identifier, struct rule_set *set, const struct default_rule *row,
                         const struct wishes *wishes, struct rule *rule)
{
    for (size_t i = 0; i < COORDINATE_COUNT; i++) {
        const struct locator_list *list = wishes->columns[i];
        if (list == NULL) {
            struct locator_list *own = list_add(identifier, row->columns[i], false);
            if (own == NULL)
                return false;
            if (i == IN_TOPIC && row->is_topic_fragment)
                own->items[0].kind = LOCATOR_FRAGMENT;
            list = own;
        }
        column_fill(set, list, &rule->columns[i]);
    }
    return true;
}

static void id_fill(struct rule_set *set, const struct locator_list *list, const struct id_format *format,
                    struct rule *rule)
{
    column_fill(set, list, &rule->id);
    rule->id_format = format;
}

/* An offset may come from elsewhere than its column: the version of a bulk action. */
static void needs_fill(struct rule *rule, enum place place)
{
    for (size_t i = IN_TOPIC; i <= IN_OFFSET && rule->id.count == 0; i++) {
        const struct column *column = &rule->columns[i];
        if (column->count == 1 && column->sources[0].want != NO_WANT &&
            (i != IN_OFFSET || place != PLACE_SOURCE))
            rule->needs[rule->need_count++] = column->sources[0].want;
    }
}

/* A default rule, with the columns that the operator has set in place of its own. */
static bool default_rule_add(struct identifier *identifier, enum place place, const struct default_rule *row,
                             const struct wishes *wishes)
{
    struct rule_set *set = &identifier->sets[place];
    assert(set->rule_count < RULES_MAX);
    struct rule *rule = &set->rules[set->rule_count++];
    rule->name = row->name;
    rule->is_witness_only = row->is_witness_only;
    if (!columns_fill(identifier, set, row, wishes, rule))
        return false;
    if (wishes->id != NULL) {
        id_fill(set, wishes->id, wishes->id_format, rule);
    } else if (row->id != NULL) {
        struct locator_list *own = list_add(identifier, row->id, true);
        if (own == NULL)
            return false;
        id_fill(set, own, &identifier->bulk_format, rule);
    }
    needs_fill(rule, place);
    return telltales_add(identifier, set, row, rule) &&
           pointer_add(identifier, set, row->unhashed, &rule->unhashed);
}

static void configured_rule_add(struct rule_set *set, enum place place, const struct wishes *wishes)
{
    struct rule *rule = &set->rules[set->rule_count++];
    rule->name = "configured";
    rule->unhashed = NO_WANT;
    for (size_t i = 0; i < COORDINATE_COUNT; i++)
        if (wishes->columns[i] != NULL)
            column_fill(set, wishes->columns[i], &rule->columns[i]);
    if (wishes->id != NULL)
        id_fill(set, wishes->id, wishes->id_format, rule);
    needs_fill(rule, place);
}

static bool is_part_of_id(const struct id_format *format, enum id_part part)
{
    for (size_t i = 0; i < format->part_count; i++)
        if (format->parts[i] == part)
            return true;
    return false;
}

static void wishes_read(const struct settings *settings, struct wishes *ret)
{
    *ret = (struct wishes){ .columns = { [IN_TOPIC] = &settings->topic,
                                         [IN_PARTITION] = &settings->partition,
                                         [IN_OFFSET] = &settings->offset,
                                         [IN_TIMESTAMP] = &settings->timestamp } };
    static const enum id_part parts[] = { ID_TOPIC, ID_PARTITION, ID_OFFSET };
    if (settings->id.count > 0 && settings->id_format.part_count > 0) {
        ret->id = &settings->id;
        ret->id_format = &settings->id_format;
    }
    for (size_t i = 0; i < COORDINATE_COUNT; i++) {
        bool is_in_id =
            ret->id != NULL && i < sizeof parts / sizeof parts[0] && is_part_of_id(ret->id_format, parts[i]);
        if (ret->columns[i]->count == 0 && !is_in_id)
            ret->columns[i] = NULL;
        else if (i != IN_TIMESTAMP)
            ret->key_count++;
    }
}

static bool has_pointer(const struct locator_list *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (list->items[i].kind == LOCATOR_JSON)
            return true;
    return false;
}

/* A rule of headers tells the elements of one request apart only with a pointer that the operator has put in. */
static bool is_in_place(const struct default_rule *row, enum place place, const struct wishes *wishes)
{
    if ((row->places & IN(place)) != 0)
        return true;
    return row->places == IN(PLACE_WHOLE) &&
           (has_pointer(wishes->columns[IN_TOPIC]) || has_pointer(wishes->columns[IN_PARTITION]) ||
            has_pointer(wishes->columns[IN_OFFSET]));
}

static bool set_fill(struct identifier *identifier, enum place place, const struct wishes *wishes)
{
    struct rule_set *set = &identifier->sets[place];
    /* What a body must hold to be looked at as the envelope of a known product. */
    static const char *const envelopes[] = {
        [PLACE_WHOLE] = "json:/entries", [PLACE_ELEMENT] = "json:/logs", [PLACE_SOURCE] = NULL
    };
    if (!pointer_add(identifier, set, envelopes[place], &set->envelope))
        return false;
    if (wishes->key_count == 3) {
        configured_rule_add(set, place, wishes);
        return true;
    }
    for (size_t i = 0; i < DEFAULT_RULE_COUNT; i++)
        if (is_in_place(&default_rules[i], place, wishes) &&
            !default_rule_add(identifier, place, &default_rules[i], wishes))
            return false;
    return true;
}

static bool identifier_fill(struct identifier *identifier)
{
    struct wishes wishes;
    wishes_read(identifier->settings, &wishes);
    for (enum place place = PLACE_WHOLE; place < PLACE_COUNT; place++) {
        struct rule_set *set = &identifier->sets[place];
        if (!set_fill(identifier, place, &wishes))
            return false;
        json_search_init(&set->search, set->wants, set->want_count);
    }
    return locator_pointer_parse("/entries", &identifier->dapr_envelope) == NULL &&
           locator_pointer_parse("/0/logs", &identifier->relic_envelope) == NULL &&
           locator_pointer_parse("/doc", &identifier->document) == NULL &&
           locator_pointer_parse("/upsert", &identifier->upsert) == NULL;
}

struct identifier *identifier_new(const struct settings *settings)
{
    struct identifier *identifier = calloc(1, sizeof *identifier);
    if (identifier == NULL)
        return NULL;
    identifier->settings = settings;
    /* Where the heap lies differs from process to process: enough for nobody to fill one slot of a table on purpose. */
    identifier->seed = (uint64_t)(uintptr_t)identifier;
    identifier->lists = calloc(LISTS_MAX, sizeof *identifier->lists);
    if (identifier->lists == NULL ||
        id_format_parse("{topic}+{partition}+{offset}", &identifier->bulk_format) != NULL ||
        !identifier_fill(identifier)) {
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
    locator_list_deinit(&identifier->dapr_envelope);
    locator_list_deinit(&identifier->relic_envelope);
    locator_list_deinit(&identifier->document);
    locator_list_deinit(&identifier->upsert);
    id_format_deinit(&identifier->bulk_format);
    free(identifier);
}
