/*
 * identify_shapes.h - the shapes of requests that hold several records.  Private to identify*.c.
 *
 * Each reads the body of the gather's request.  READ_NONE: the body does not have that shape, and what was gathered
 * until then means nothing.
 */
#ifndef SINKONCE_IDENTIFY_SHAPES_H
#define SINKONCE_IDENTIFY_SHAPES_H

#include "identify_gather.h"

/* Could the body be opened?  One that was not is as good as any bytes. */
static inline bool is_readable(const struct identified *identified)
{
    return identified->coding == CODING_IDENTITY || identified->decoded != NULL;
}

/* [{...}, {...}], perhaps with a comma behind the last. */
MUST_CHECK enum read_status array_read(struct gather *gather);
/* Such an array somewhere inside of one JSON value. */
MUST_CHECK enum read_status envelope_read(struct gather *gather, const struct locator *pointer);

/* JSON values one after the other, after an INSERT statement perhaps.  *RET_SHAPE is NDJSON when a line end stands
 * between any two, else CONCAT. */
MUST_CHECK enum read_status values_read(struct gather *gather, enum shape *ret_shape);
/* Values that must stand on one line each. */
MUST_CHECK enum read_status lines_read(struct gather *gather);
/* Does the body begin with a statement such as ClickHouse's "INSERT INTO t FORMAT JSONEachRow", objects following? */
bool has_statement(struct slice body);

/* Pieces between the prefix, the separators and the suffix of the settings. */
MUST_CHECK enum read_status separated_read(struct gather *gather);

/* Actions and their sources, as for Elasticsearch's and OpenSearch's _bulk. */
MUST_CHECK enum read_status bulk_read(struct gather *gather);
bool is_bulk_path(const struct request *request);
bool begins_like_bulk(struct slice body); /* its first line is an action */

/* The whole request: one record, by what its head and its body say. */
MUST_CHECK enum read_status single_read(struct gather *gather);
/* The same, where the view holds what its body says: by json_view_read_alone(), or nothing. */
MUST_CHECK enum read_status single_take(struct gather *gather);
/* The whole request: what its head says, be it one record or ClickHouse's token for a range of offsets. */
MUST_CHECK enum read_status opaque_read(struct gather *gather);
MUST_CHECK enum read_status token_read(struct gather *gather);

#endif
