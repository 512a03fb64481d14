/*
 * stub_store.h - a store that decides nothing: it keeps the last question until the test answers it.
 *
 * For tests of what stands in front of the ledger.  Defines the symbols of store.h that the admin port and the metrics
 * use, so that the linker leaves the real store out; included by one file per executable.
 */
#ifndef SINKONCE_STUB_STORE_H
#define SINKONCE_STUB_STORE_H

#include <stdlib.h>
#include "store.h"

static struct store_figures stub_figures;
static struct question *stub_question; /* borrowed: the last one asked, NULL once answered */
static size_t stub_question_count;

void store_figures_get(const struct store *store, struct store_figures *ret_figures)
{
    (void)store;
    *ret_figures = stub_figures;
}

const char *store_id(const struct store *store)
{
    (void)store;
    return "00112233445566778899aabbccddeeff";
}

void store_ask(struct store_port *port, struct question *question)
{
    (void)port;
    stub_question = question;
    stub_question_count++;
}

void store_question_deinit(struct question *question)
{
    free(question->ret.any);
    question->ret.any = NULL;
}

const char *doubt_cause_name(enum doubt_cause cause)
{
    static const char *const names[DOUBT_COUNT] = { "crash", "no_reply", "timeout", "status", "guard" };
    return names[cause];
}

const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KIND_COUNT] = {
        "ledger.created", "ledger.recovered",      "record.in_doubt",  "record.resolved", "record.conflict",
        "record.decided", "partition.first_sight", "record.forgotten", "admin.change",    "ledger.error"
    };
    return names[kind];
}

const char *record_state_name(enum record_state state)
{
    static const char *const names[] = { "absent", "in-flight", "applied", "in-doubt", "below-window" };
    return names[state];
}

#endif
