/*
 * identify_opaque.c - requests that are one record, or one range of offsets, as a whole.
 */
#include "identify_shapes.h"

#include <assert.h>
#include <stdlib.h>

#include "identify_header.h"

/* A JSON value without the white space around it: the same bytes as when it comes among others. */
static struct range value_of(struct slice body)
{
    struct range value = { json_blank_end(body, 0), body.byte_count };
    while (value.end > value.begin && strchr(" \t\r\n", body.at[value.end - 1]) != NULL)
        value.end--;
    return value;
}

enum read_status single_take(struct gather *gather)
{
    struct slice body = gather->ret->body;
    struct range whole = { 0, body.byte_count };
    if (gather_look(gather) != LOOK_FOUND)
        return READ_NONE;
    return gather_add(gather, whole, gather->view.is_read ? value_of(body) : whole, true, NULL);
}

enum read_status single_read(struct gather *gather)
{
    gather->view.is_read = false;
    if (is_readable(gather->ret))
        json_view_read_alone(&gather->view, gather->ret->body.at, gather->ret->body.byte_count);
    return single_take(gather);
}

/* ---- ClickHouse's token -------------------------------------------------------------------------------------- */

struct token {
    struct slice topic;
    uint64_t partition, first, last;
};

/* Take "-DIGITS" from the end of TEXT. */
static bool tail_take(struct slice *text, uint64_t max, uint64_t *ret_number)
{
    const char *dash = text->byte_count > 0 ? memrchr(text->at, '-', text->byte_count) : NULL;
    if (dash == NULL)
        return false;
    size_t left = (size_t)(dash - text->at);
    if (!decimal_read(slice_of(dash + 1, text->byte_count - left - 1), max, ret_number))
        return false;
    text->byte_count = left;
    return true;
}

/* TOPIC-PARTITION-MIN-MAX, split from the right, as topics may hold dashes.
 * Source: clickhouse-kafka-connect, which gives it to each insert of one partition. */
static bool token_parse(struct slice text, struct token *ret)
{
    if (!tail_take(&text, INT64_MAX, &ret->last) || !tail_take(&text, INT64_MAX, &ret->first) ||
        !tail_take(&text, INT32_MAX, &ret->partition))
        return false;
    ret->topic = text;
    return ret->first <= ret->last && topic_is_legal(text);
}

static enum look token_look(const struct gather *gather, struct value *value, struct token *ret)
{
    static char name[] = "insert_deduplication_token";
    static const struct locator locator = { .kind = LOCATOR_QUERY, .text = name };
    enum look look = head_look(gather->request, &locator, value);
    return look == LOOK_FOUND && !token_parse(value->text, ret) ? LOOK_ABSENT : look;
}

/* A record for each offset of the range, which may have gaps: an offset that holds no record comes from nowhere else.
 * They have no marks, because the bytes are those of another range when the batch is cut anew. */
static bool token_keep(struct identified *ret, const struct token *token)
{
    size_t record_count = (size_t)(token->last - token->first + 1);
    ret->records = calloc(record_count, sizeof *ret->records);
    ret->sites = calloc(1, sizeof *ret->sites);
    ret->topics = malloc(token->topic.byte_count);
    if (ret->records == NULL || ret->sites == NULL || ret->topics == NULL)
        return false;
    memcpy(ret->topics, token->topic.at, token->topic.byte_count);
    for (size_t i = 0; i < record_count; i++)
        ret->records[i] = (struct record){ .key = { .topic = slice_of(ret->topics, token->topic.byte_count),
                                                    .partition = (int32_t)token->partition,
                                                    .offset = (int64_t)(token->first + i) },
                                           .mark = MARK_NONE };
    ret->sites[0].whole = (struct range){ 0, ret->body.byte_count };
    ret->record_count = record_count;
    ret->site_count = 1;
    ret->rule = "clickhouse-token";
    return true;
}

enum read_status token_read(struct gather *gather)
{
    struct identified *ret = gather->ret;
    struct value value;
    struct token token;
    assert(ret->records == NULL && ret->sites == NULL);
    if (token_look(gather, &value, &token) != LOOK_FOUND)
        return READ_NONE;
    if (token.last - token.first >= gather->identifier->settings->records_max)
        return READ_TOO_MANY;
    return token_keep(ret, &token) ? READ_OK : READ_NO_MEMORY;
}

enum read_status opaque_read(struct gather *gather)
{
    struct range whole = { 0, gather->ret->body.byte_count };
    gather->view.is_read = false;
    enum look look = gather_look(gather);
    if (look == LOOK_ABSENT)
        return token_read(gather);
    return look == LOOK_FOUND ? gather_add(gather, whole, whole, true, NULL) : READ_NONE;
}
