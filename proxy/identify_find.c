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

static enum look source_look(const struct request *request, const struct json_view *view,
                             const struct source *source, struct value *ret_value)
{
    return source->want != NO_WANT ? json_look(view, source->want, ret_value)
                                   : head_look(request, source->locator, ret_value);
}

static enum look column_look(const struct request *request, const struct json_view *view,
                             const struct column *column, struct value *ret_value,
                             const struct source **ret_source)
{
    for (size_t i = 0; i < column->count; i++) {
        *ret_source = &column->sources[i];
        enum look look = source_look(request, view, *ret_source, ret_value);
        if (look != LOOK_ABSENT)
            return look;
    }
    return LOOK_ABSENT;
}

static bool is_known(const struct reading *reading, enum coordinate which)
{
    return ((reading->known >> which) & 1u) != 0;
}

/* Both are false when the value is not legal, or contradicts what is known. */
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

/* The composite value, known before any rule is read.  One of another form, such as an id that is no composite, is
 * absent. */
static enum look id_read(const struct identifier *identifier, const struct request *request,
                         const struct json_view *view, struct reading *ret)
{
    struct value value;
    const struct source *source;
    struct id_value id;
    enum look look = column_look(request, view, &identifier->id, &value, &source);
    if (look != LOOK_FOUND)
        return look;
    if (value.is_number || !id_format_match(identifier->id_format, value.text, &id))
        return LOOK_ABSENT;
    bool has_topic = identifier->id_format->part_count == 3;
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
static enum look timestamp_read(const struct request *request, const struct json_view *view,
                                const struct rule *rule, struct reading *reading)
{
    struct value value;
    const struct source *source;
    enum look look = column_look(request, view, &rule->columns[IN_TIMESTAMP], &value, &source);
    if (look == LOOK_FOUND && value_set(reading, IN_TIMESTAMP, &value))
        reading->used[IN_TIMESTAMP] = source;
    return look;
}

/* READING comes in with what the composite said.  A rule of which a part is absent does not hold, whatever the rest
 * is like: a lone header of that name may mean anything. */
static enum look rule_read(const struct request *request, const struct json_view *view,
                           const struct rule *rule, struct reading *reading)
{
    enum look whole = LOOK_FOUND;
    for (enum coordinate which = IN_TOPIC; which <= IN_OFFSET; which++) {
        struct value value;
        const struct source *source;
        enum look look = column_look(request, view, &rule->columns[which], &value, &source);
        if (look == LOOK_ABSENT && !is_known(reading, which))
            return LOOK_ABSENT;
        if (look == LOOK_BROKEN || (look == LOOK_FOUND && !value_set(reading, which, &value)))
            whole = LOOK_BROKEN;
        if (look == LOOK_FOUND)
            reading->used[which] = source;
    }
    if (!has_telltales(rule, view))
        return LOOK_ABSENT;
    if (timestamp_read(request, view, rule, reading) == LOOK_BROKEN)
        whole = LOOK_BROKEN;
    return whole;
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
            assert(finding->member_count < CUT_MEMBERS_MAX);
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

bool coordinates_find(const struct identifier *identifier, const struct request *request,
                      const struct json_view *view, struct finding *ret)
{
    struct reading composite = { .known = 0 };
    bool is_first = true;
    ret->rule = NULL;
    ret->has_timestamp = false;
    ret->member_count = ret->header_count = 0;
    ret->unhashed = slice_of(NULL, 0);
    if (id_read(identifier, request, view, &composite) == LOOK_BROKEN)
        return false;
    for (size_t i = 0; i < identifier->rule_count; i++) {
        struct reading reading = composite;
        enum look look = rule_read(request, view, &identifier->rules[i], &reading);
        if (look == LOOK_BROKEN)
            return false;
        if (look == LOOK_ABSENT)
            continue;
        if (!reading_add(ret, &identifier->rules[i], &reading, view, is_first))
            return false;
        is_first = false;
    }
    return ret->rule != NULL;
}
