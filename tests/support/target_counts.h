/*
 * target_counts.h - what the counting target has applied: its journal and its counters.
 */
#ifndef TARGET_COUNTS_H
#define TARGET_COUNTS_H

#include "target_request.h"

#include <stdint.h>
#include <stdio.h>

struct target_counts;

struct target_totals {
    uint64_t requests;    /* read whole, of any method */
    uint64_t writes;      /* of them POST, PUT, PATCH, DELETE */
    uint64_t applied;     /* records applied */
    uint64_t duplicates;  /* of them applied before */
    uint64_t connections; /* accepted */
    uint64_t open;        /* of them open now */
    uint64_t faulted;     /* requests that met a rule */
};

/* JOURNAL_PATH may be NULL: no journal.  With KEEPS_KEYS off only the totals are kept, for loads of millions. */
struct target_counts *target_counts_new(const char *journal_path, bool keeps_keys);

struct target_totals *target_counts_totals(struct target_counts *counts);

/* The write of KEY takes effect: counted, and on its line in the journal before this returns. */
void target_counts_apply(struct target_counts *counts, const char *key, struct target_text record);

/* Remember that the record KEY came in a request that met a rule, whether it was applied, and whether the request was
 * left without a whole answer. */
void target_counts_faulted(struct target_counts *counts, const char *key, bool is_applied,
                           bool is_broken_off);

uint64_t target_counts_of(const struct target_counts *counts, const char *key);

void target_counts_reset(struct target_counts *counts);

/* The counters as one JSON object; WITH_KEYS adds "keys": {key: count}. */
void target_counts_print(struct target_counts *counts, bool with_keys, FILE *out);
/* [{"key":…,"applied":true|false,"broken_off":true|false}, …] of the records in requests that met a rule. */
void target_counts_print_faulted(struct target_counts *counts, FILE *out);

#endif
