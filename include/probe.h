/*
 * probe.h - the URL at which a target can be asked for one record, as the operator wrote it.
 *
 *     https://erp.example/orders/{json:/id}?from={topic}-{partition}-{offset}
 *
 * Placeholders stand in the path and the query only: no record chooses the host.  What replaces them is
 * percent-encoded (RFC 3986, 2.1), so that no record adds a segment or a parameter.
 */
#ifndef SINKONCE_PROBE_H
#define SINKONCE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include "locator.h"
#include "slice.h"

enum { PROBE_PIECES_MAX = 24, PROBE_POINTERS_MAX = 4, PROBE_VALUE_BYTES_MAX = 256 };

enum probe_piece_kind { PROBE_TEXT, PROBE_TOPIC, PROBE_PARTITION, PROBE_OFFSET, PROBE_SCOPE, PROBE_JSON };

struct probe_piece {
    enum probe_piece_kind kind;
    char *text;     /* owned: of PROBE_TEXT */
    size_t pointer; /* of PROBE_JSON: which of the pointers */
};

struct probe_template {
    char *text; /* owned: as given; NULL when none */
    char *base; /* owned: scheme, host and port; "": those of the target, and its path in front */
    struct probe_piece pieces[PROBE_PIECES_MAX]; /* path and query */
    size_t piece_count;
    struct locator_list pointers[PROBE_POINTERS_MAX]; /* of one LOCATOR_JSON each */
    size_t pointer_count;
};

/* The record that is asked about. */
struct probe_subject {
    struct slice scope, topic, context; /* CONTEXT: what probe_context_write() left when the record was claimed */
    int32_t partition;
    int64_t offset;
};

/* [main] NULL when TEXT was understood, else what is wrong, in words that follow the setting's name (static).  RET must
 * be deinitialised in both cases. */
const char *probe_template_parse(const char *text, struct probe_template *ret);
void probe_template_deinit(struct probe_template *url);

/* Path and query for SUBJECT as text with its zero.  False: a value of the record is not known, or it does not fit; the
 * record cannot be asked for. */
MUST_CHECK bool probe_template_render(const struct probe_template *url, const struct probe_subject *subject,
                                      char out[], size_t out_bytes_max);

/* What a probe needs of a record's JSON text, into OUT; RET_BYTES at most OUT_BYTES_MAX.  A value that cannot stand in
 * a URL is left out, and then there will be no probe; so it is when all do not fit. */
void probe_context_write(const struct probe_template *url, struct slice json, char out[], size_t out_bytes_max,
                         size_t *ret_bytes);

#endif
