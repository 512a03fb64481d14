/*
 * admin_query.c - reads the query of a listing.
 */
#include "admin_query.h"
#include <stdio.h>
#include "json_scan.h"

enum { VALUE_BYTES_MAX = 512 };

static const struct name_row {
    unsigned bit;
    const char *name;
} names[] = { { QUERY_TOPIC, "topic" },          { QUERY_PARTITION, "partition" }, { QUERY_OFFSET, "offset" },
              { QUERY_AFTER, "after" },          { QUERY_LIMIT, "limit" },         { QUERY_FROM, "from" },
              { QUERY_AFTER_PARTITION, "after" } };

/* Cut the next "name=value" off QUERY. */
static bool pair_next(struct slice *query, struct slice *ret_name, struct slice *ret_value)
{
    while (query->byte_count > 0 && query->at[0] == '&')
        *query = slice_of(query->at + 1, query->byte_count - 1);
    if (query->byte_count == 0)
        return false;
    const char *end = memchr(query->at, '&', query->byte_count);
    struct slice pair = slice_of(query->at, end == NULL ? query->byte_count : (size_t)(end - query->at));
    *query = slice_of(pair.at + pair.byte_count, query->byte_count - pair.byte_count);
    const char *equals = memchr(pair.at, '=', pair.byte_count);
    if (equals == NULL) {
        *ret_name = pair;
        *ret_value = slice_of(pair.at + pair.byte_count, 0);
    } else {
        *ret_name = slice_of(pair.at, (size_t)(equals - pair.at));
        *ret_value = slice_of(equals + 1, pair.byte_count - ret_name->byte_count - 1);
    }
    return true;
}

/* Undo percent-encoding.  False: a broken escape, a zero byte, or longer than any value of ours. */
static bool value_decode(struct slice value, char out[VALUE_BYTES_MAX], struct slice *ret_decoded)
{
    size_t count = 0;
    for (size_t i = 0; i < value.byte_count; i++) {
        char c = (char)(value.at[i] == '+' ? ' ' : value.at[i]);
        if (c == '%') {
            int high = i + 2 < value.byte_count ? hex_digit(value.at[i + 1]) : -1;
            int low = high < 0 ? -1 : hex_digit(value.at[i + 2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || count == VALUE_BYTES_MAX)
            return false;
        out[count++] = c;
    }
    *ret_decoded = slice_of(out, count);
    return true;
}

static unsigned name_bit(struct slice name, unsigned known)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((known & names[i].bit) != 0 && slice_equals_text(name, names[i].name))
            return names[i].bit;
    }
    return 0;
}

/* NULL, or the end of a sentence that began with the parameter's name. */
static const char *topic_set(struct slice value, struct admin_query *query)
{
    if (!topic_is_legal(value))
        return "must be the name of a Kafka topic: 1 to 249 of a-z A-Z 0-9 . _ -";
    memcpy(query->topic, value.at, value.byte_count);
    query->topic[value.byte_count] = '\0';
    return NULL;
}

/* As a page of /partitions gives it in its "next". */
static const char *place_set(struct slice value, struct admin_query *query)
{
    uint64_t number;
    const char *slash = value.byte_count == 0 ? NULL : memchr(value.at, '/', value.byte_count);
    struct slice topic = slice_of(value.at, slash == NULL ? 0 : (size_t)(slash - value.at));
    if (!topic_is_legal(topic) ||
        !decimal_read(slice_of(slash + 1, value.byte_count - topic.byte_count - 1), INT32_MAX, &number))
        return "must be TOPIC/PARTITION, as \"next\" of the page before says";
    memcpy(query->after_topic, topic.at, topic.byte_count);
    query->after_topic[topic.byte_count] = '\0';
    query->after_partition = (int32_t)number;
    return NULL;
}

static const char *number_set(unsigned bit, struct slice value, struct admin_query *query)
{
    uint64_t number;
    uint64_t max = bit == QUERY_PARTITION                     ? INT32_MAX
                   : bit == QUERY_OFFSET || bit == QUERY_FROM ? INT64_MAX
                                                              : UINT64_MAX;
    if (!decimal_read(value, max, &number))
        return bit == QUERY_PARTITION ? "must be a whole number from 0 to 2147483647"
                                      : "must be a whole number from 0, in decimal digits";
    if (bit == QUERY_LIMIT && (number == 0 || number > QUERY_LIMIT_MAX))
        return "must be at least 1 and at most 1000";
    if (bit == QUERY_PARTITION)
        query->partition = (int32_t)number;
    else if (bit == QUERY_OFFSET || bit == QUERY_FROM)
        query->offset = (int64_t)number;
    else if (bit == QUERY_AFTER)
        query->after = number;
    else
        query->limit = number;
    return NULL;
}

static const char *value_set(unsigned bit, struct slice value, struct admin_query *query)
{
    if (bit == QUERY_TOPIC)
        return topic_set(value, query);
    return bit == QUERY_AFTER_PARTITION ? place_set(value, query) : number_set(bit, value, query);
}

bool admin_query_read(struct slice query, unsigned known, struct admin_query *ret_query, char ret_why[],
                      size_t why_bytes_max)
{
    struct slice name, value;
    *ret_query = (struct admin_query){ .partition = -1 };
    while (pair_next(&query, &name, &value)) {
        char decoded_bytes[VALUE_BYTES_MAX];
        unsigned bit = name_bit(name, known);
        const char *why = NULL;
        if (bit == 0)
            why = "is not a parameter of this listing";
        else if ((ret_query->given & bit) != 0)
            why = "stands there twice";
        else if (!value_decode(value, decoded_bytes, &value))
            why = "has a broken percent escape, or is too long";
        else
            why = value_set(bit, value, ret_query);
        ret_query->given |= bit;
        if (why != NULL) {
            int shown = name.byte_count > 40 ? 40 : (int)name.byte_count;
            snprintf(ret_why, why_bytes_max, "%.*s %s", shown, name.at, why);
            return false;
        }
    }
    return true;
}

bool admin_query_has(struct slice query, const char *name)
{
    struct slice given, value;
    while (pair_next(&query, &given, &value)) {
        if (slice_equals_text(given, name))
            return true;
    }
    return false;
}
