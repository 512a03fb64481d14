/*
 * pass.h - which fields of a request go on to the target.
 *
 * A decider.  Order, repetition and case stay as they came (RFC 9110, 5.3); hop-by-hop fields, framing and what would
 * let a client speak in our name end here.
 */
#ifndef SINKONCE_PASS_H
#define SINKONCE_PASS_H

#include "identify.h"
#include "request.h"
#include "settings.h"

enum { PASS_FIELDS_MAX = HTTP1_FIELDS_MAX + 4, PASS_KEY_BYTES_MAX = 512 };

struct pass {
    struct http1_field fields[PASS_FIELDS_MAX];
    size_t field_count;
    struct slice host;            /* to send; empty: the target's own */
    char key[PASS_KEY_BYTES_MAX]; /* scope/topic/partition/offset, behind a field's value */
    char max_forwards[24];
};

/* IDENTIFIED may be NULL, or hold no records.  VIA: the value of our own Via field, NULL: none. */
void pass_build(struct pass *pass, const struct request *request, const struct identified *identified,
                const struct settings *settings, const char *via);

/* The idempotency key of RECORD, when the setting names a field for it; pass_build() does so for a request of one. */
void pass_key_add(struct pass *pass, const struct record *record, const struct settings *settings);
/* Leave out what stands in fields of that name: an answer that must be read should come uncompressed. */
void pass_drop(struct pass *pass, const char *lower_case_name);

/* True when REQUEST has been here before: a Via field names VIA's pseudonym (RFC 9110, 7.6.3). */
bool pass_is_loop(const struct request *request, const char *via);
/* OPTIONS or TRACE with Max-Forwards: 0 must be answered here (RFC 9110, 7.6.2). */
bool pass_ends_here(const struct request *request);

#endif
