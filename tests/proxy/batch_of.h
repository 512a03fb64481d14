/*
 * batch_of.h - requests of several records as the identification hands them over, made by hand for tests of deciders.
 *
 * Included by one file per executable.
 */
#ifndef SINKONCE_BATCH_OF_H
#define SINKONCE_BATCH_OF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include "identify.h"

enum { BATCH_SITES_MAX = 64, UNKEYED = -1 };

/* One element; records are numbered from 0 in the order of their first elements, offsets from 100 on. */
struct element {
    enum bulk_kind kind;
    const char *id;      /* NULL: none */
    const char *version; /* NULL: none */
    int record;          /* or UNKEYED */
    bool is_sent;
    bool is_repeat, is_version_external;
};

struct batch {
    struct identified identified;
    struct record records[BATCH_SITES_MAX];
    struct record_site sites[BATCH_SITES_MAX];
    struct bulk_action actions[BATCH_SITES_MAX];
    bool sent[BATCH_SITES_MAX];
    enum outcome outcomes[BATCH_SITES_MAX];
};

/* Nothing of it is on the heap. */
static void batch_init(struct batch *batch, enum shape shape)
{
    memset(batch, 0, sizeof *batch);
    batch->identified = (struct identified){
        .shape = shape,
        .rule = "",
        .records = batch->records,
        .sites = batch->sites,
        .actions = batch->actions,
        .body = slice_of_text("{}"),
    };
    for (size_t i = 0; i < BATCH_SITES_MAX; i++) {
        batch->records[i].key = (struct record_key){ slice_of_text("orders"), 0, 100 + (int64_t)i };
        batch->outcomes[i] = OUTCOME_NOT_SENT; /* what no answer proves: a cell that nobody wrote */
    }
}

static inline void batch_add(struct batch *batch, const struct element *element)
{
    struct identified *identified = &batch->identified;
    size_t site = identified->site_count++;
    assert_true(site < BATCH_SITES_MAX);
    batch->sites[site] = (struct record_site){
        .record = element->record == UNKEYED ? NO_RECORD : (size_t)element->record,
        .is_repeat = element->is_repeat,
    };
    batch->actions[site] = (struct bulk_action){
        .kind = element->kind,
        .index = slice_of_text("orders"),
        .id = element->id != NULL ? slice_of_text(element->id) : slice_of(NULL, 0),
        .version = element->version != NULL ? slice_of_text(element->version) : slice_of(NULL, 0),
        .is_version_external = element->is_version_external,
    };
    batch->sent[site] = element->is_sent;
    if (element->record != UNKEYED && (size_t)element->record >= identified->record_count)
        identified->record_count = (size_t)element->record + 1;
}

static inline void batch_of(struct batch *batch, const struct element elements[], size_t count)
{
    batch_init(batch, SHAPE_IS_BULK);
    for (size_t i = 0; i < count; i++)
        batch_add(batch, &elements[i]);
}

/* The two settings of statuses, with their defaults. */
static inline void statuses_fill(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    for (int status = 200; status <= 505; status++) {
        struct status_set *set = status < 300 ? &settings->applied_status : &settings->not_applied_status;
        if (status < 500 || status == 501 || status == 503 || status == 505)
            set->bits[status / 64] |= UINT64_C(1) << (status % 64);
    }
}

#endif
