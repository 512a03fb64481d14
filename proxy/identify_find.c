/*
 * identify_find.c - see identify_find.h.
 *
 * Every rule is read; all that hold must say the same.  A request that contradicts itself has no coordinates, because
 * which of them the target believes is unknown.
 */
#include "identify_find.h"

#include <assert.h>

#include "identify_header.h"

/* What one rule says. */
struct reading {
    unsigned known; /* a bit for each coordinate */
    char topic[TOPIC_BYTES_MAX];
    size_t topic_bytes;
    uint64_t numbers[COORDINATE_COUNT];
    const struct source *used[COORDINATE_COUNT + 1]; /* the last one: of the composite */
};

static const uint64_t number_max[COORDINATE_COUNT] = {
    [IN_PARTITION] = INT32_MAX,
    [IN_OFFSET] = INT64_MAX,
    [IN_TIMESTAMP] = INT64_MAX,
};

static enum look source_look(const struct sight *sight, const struct source *source, struct value *ret_value)
{
    if (source->want != NO_WANT)
        return json_look(sight->view, source->want, ret_value);
    if (source->locator->kind == LOCATOR_BULK_ID)
        return sight->line != NULL ? json_want_look(&sight->line->id, ret_value) : LOOK_ABSENT;
    return head_look(sight->request, source->locator, ret_value);
}

static enum look column_look(const struct sight *sight, const struct column *column, struct value *ret_value,
                             const struct source **ret_source)
{
    for (size_t i = 0; i < column->count; i++) {
        *ret_source = &column->sources[i];
        enum look look = source_look(sight, *ret_source, ret_value);
        if (look != LOOK_ABSENT)
            return look;
    }
    return LOOK_ABSENT;
}

static bool is_known(const struct reading *reading, enum coordinate which)
{
    return ((reading->known >> which) & 1u) != 0;
}

/* False: the topic is not legal, or another one is known.  number_set() has only the latter. */
static bool topic_set(struct reading *reading, struct slice topic)
{
    if (!topic_is_legal(topic))
        return false;
    if (is_known(reading, IN_TOPIC))
        return slice_equals(topic, slice_of(reading->topic, reading->topic_bytes));
    memcpy(reading->topic, topic.at, topic.byte_count);
    reading->topic_bytes = topic.byte_count;
    reading->known |= 1u << IN_TOPIC;
    return true;
}

static bool number_set(struct reading *reading, enum coordinate which, uint64_t number)
{
    if (is_known(reading, which))
        return reading->numbers[which] == number;
    reading->numbers[which] = number;
    reading->known |= 1u << which;
    return true;
}

static bool value_set(struct reading *reading, enum coordinate which, const struct value *value)
{
    if (which == IN_TOPIC)
        return !value->is_number && topic_set(reading, value->text);
    uint64_t number;
    return decimal_read(value->text, number_max[which], &number) && number_set(reading, which, number);
}

/* The composite value, known before the columns are read.  One of another form, such as an id that is no composite,
 * is absent. */
static enum look id_read(const struct sight *sight, const struct rule *rule, struct reading *ret)
{
    struct value value;
    const struct source *source;
    struct id_value id;
    enum look look = column_look(sight, &rule->id, &value, &source);
    if (look != LOOK_FOUND)
        return look;
    if (value.is_number || !id_format_match(rule->id_format, value.text, &id))
        return LOOK_ABSENT;
    bool has_topic = rule->id_format->part_count == 3;
    if (has_topic && !topic_is_legal(id.topic))
        return LOOK_ABSENT;
    if ((has_topic && !topic_set(ret, id.topic)) || !number_set(ret, IN_PARTITION, (uint64_t)id.partition) ||
        !number_set(ret, IN_OFFSET, (uint64_t)id.offset))
        return LOOK_BROKEN;
    ret->used[COORDINATE_COUNT] = source;
    return LOOK_FOUND;
}

static bool has_telltales(const struct rule *rule, const struct json_view *view)
{
    for (size_t i = 0; i < rule->telltale_count; i++)
        if (!json_has_telltale(view, &rule->telltales[i]))
            return false;
    return true;
}

/* A timestamp that is no number, such as "null" or an ISO date, is no timestamp, but harms nothing. */
static enum look timestamp_read(const struct sight *sight, const struct rule *rule, struct reading *reading)
{
    struct value value;
    const struct source *source;
    enum look look = column_look(sight, &rule->columns[IN_TIMESTAMP], &value, &source);
    if (look == LOOK_FOUND && value_set(reading, IN_TIMESTAMP, &value))
        reading->used[IN_TIMESTAMP] = source;
    return look;
}

/* An external version stands in for an offset that nothing else gives. */
static bool version_set(const struct sight *sight, enum coordinate which, struct reading *reading)
{
    return which == IN_OFFSET && sight->line != NULL && sight->line->has_version &&
           number_set(reading, IN_OFFSET, sight->line->version);
}

/* A rule of which a part is absent does not hold, whatever the rest is like: a lone header of that name may mean
 * anything. */
static enum look columns_read(const struct sight *sight, const struct rule *rule, struct reading *reading)
{
    enum look whole = LOOK_FOUND;
    for (enum coordinate which = IN_TOPIC; which <= IN_OFFSET; which++) {
        struct value value;
        const struct source *source;
        enum look look = column_look(sight, &rule->columns[which], &value, &source);
        if (look == LOOK_ABSENT && !is_known(reading, which) && !version_set(sight, which, reading))
            return LOOK_ABSENT;
        if (look == LOOK_BROKEN || (look == LOOK_FOUND && !value_set(reading, which, &value)))
            whole = LOOK_BROKEN;
        if (look == LOOK_FOUND)
            reading->used[which] = source;
    }
    return whole;
}

static bool is_possible(const struct sight *sight, const struct rule *rule)
{
    for (size_t i = 0; i < rule->need_count; i++)
        if (!sight->view->is_read || sight->view->wants[rule->needs[i]].kind == JSON_IS_MISSING)
            return false;
    return true;
}

static enum look rule_read(const struct sight *sight, const struct rule *rule, struct reading *reading)
{
    reading->known = 0;
    memset(reading->used, 0, sizeof reading->used);
    if (id_read(sight, rule, reading) == LOOK_BROKEN)
        return LOOK_BROKEN;
    enum look whole = columns_read(sight, rule, reading);
    if (whole == LOOK_ABSENT || !has_telltales(rule, sight->view))
        return LOOK_ABSENT;
    return timestamp_read(sight, rule, reading) == LOOK_BROKEN ? LOOK_BROKEN : whole;
}

static void header_add(struct finding *finding, const char *name)
{
    /* A CloudEvent is none without these. */
    if (strcmp(name, "ce-id") == 0 || strcmp(name, "ce-source") == 0)
        return;
    for (size_t i = 0; i < finding->header_count; i++)
        if (strcmp(finding->headers[i], name) == 0)
            return;
    if (finding->header_count < STRIP_HEADERS_MAX)
        finding->headers[finding->header_count++] = name;
}

static void used_add(struct finding *finding, const struct reading *reading, const struct json_view *view)
{
    for (size_t i = 0; i < COORDINATE_COUNT + 1; i++) {
        const struct source *source = reading->used[i];
        if (source == NULL)
            continue;
        if (source->locator->kind == LOCATOR_HEADER)
            header_add(finding, source->locator->text);
        if (source->want != NO_WANT) {
            assert(finding->member_count < CUT_MEMBERS_MAX / 2);
            finding->members[finding->member_count++] = view->wants[source->want].member;
        }
    }
}

static void key_set(struct finding *finding, const struct reading *reading)
{
    memcpy(finding->topic, reading->topic, reading->topic_bytes);
    finding->key = (struct record_key){ .topic = slice_of(finding->topic, reading->topic_bytes),
                                        .partition = (int32_t)reading->numbers[IN_PARTITION],
                                        .offset = (int64_t)reading->numbers[IN_OFFSET] };
}

static bool is_same(const struct finding *finding, const struct reading *reading)
{
    return slice_equals(finding->key.topic, slice_of(reading->topic, reading->topic_bytes)) &&
           (uint64_t)finding->key.partition == reading->numbers[IN_PARTITION] &&
           (uint64_t)finding->key.offset == reading->numbers[IN_OFFSET];
}

/* Take a rule that holds into the finding.  False: it contradicts an earlier one. */
static bool reading_add(struct finding *finding, const struct rule *rule, const struct reading *reading,
                        const struct json_view *view, bool is_first)
{
    if (is_first)
        key_set(finding, reading);
    else if (!is_same(finding, reading))
        return false;
    if (finding->rule == NULL && !rule->is_witness_only)
        finding->rule = rule->name;
    if (!finding->has_timestamp && is_known(reading, IN_TIMESTAMP)) {
        finding->has_timestamp = true;
        finding->timestamp_ms = reading->numbers[IN_TIMESTAMP];
    }
    if (rule->unhashed != NO_WANT && view->is_read && view->wants[rule->unhashed].kind != JSON_IS_MISSING)
        finding->unhashed = view->wants[rule->unhashed].member;
    used_add(finding, reading, view);
    return true;
}

/* The version of an action is a witness for the offset, however that was found. */
static bool is_version_right(const struct sight *sight, const struct finding *finding)
{
    const struct bulk_line *line = sight->line;
    return line == NULL || (!line->is_version_broken &&
                            (!line->has_version || (int64_t)line->version == finding->key.offset));
}

enum look coordinates_find(const struct sight *sight, struct finding *ret)
{
    bool is_first = true;
    ret->rule = NULL;
    ret->has_timestamp = false;
    ret->member_count = ret->header_count = 0;
    ret->unhashed = slice_of(NULL, 0);
    for (size_t i = 0; i < sight->rules->rule_count; i++) {
        const struct rule *rule = &sight->rules->rules[i];
        struct reading reading;
        if (!is_possible(sight, rule))
            continue;
        enum look look = rule_read(sight, rule, &reading);
        if (look == LOOK_ABSENT)
            continue;
        if (look == LOOK_BROKEN || !reading_add(ret, rule, &reading, sight->view, is_first))
            return LOOK_BROKEN;
        is_first = false;
    }
    if (ret->rule == NULL)
        return LOOK_ABSENT;
    return is_version_right(sight, ret) ? LOOK_FOUND : LOOK_BROKEN;
}
