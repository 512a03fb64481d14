/*
 * walk.h - a claim machine on rows in memory that a test leads through a change step by step: batches that are committed,
 * that fail, and the end of the process between them.
 */
#ifndef SINKONCE_TESTS_WALK_H
#define SINKONCE_TESTS_WALK_H

#include "machine.h"
#include "rows_mem.h"

struct walk {
    struct rows *rows;
    struct machine *machine;
};

extern struct walk walk;

int walk_setup(void **state);    /* cmocka: an empty ledger */
int walk_teardown(void **state); /* cmocka */
void walk_begin(enum machine_mode mode);
void walk_commit(void);

/* Inside a batch: one record is claimed and, if it is new, ends as OUTCOME, with ANSWER unless it is "". */
enum verdict walk_offer(const char *topic, int32_t partition, int64_t offset, enum outcome outcome,
                        const char *answer);
/* In a batch of its own, applied. */
enum verdict walk_deliver(const char *topic, int32_t partition, int64_t offset);

/* Each in a batch of its own. */
bool walk_step(struct question *question);         /* true: it goes on */
size_t walk_to_the_end(struct question *question); /* how many steps it took */
void walk_fail(struct question *question);         /* a step that cannot be committed */
/* The process ends between two steps, and begins anew. */
void walk_crash(struct question *question);

struct machine_figures walk_figures(void);
/* The events of KIND, all of TOPIC, are DETAILS in this order. */
void walk_assert_events(enum event_kind kind, const char *topic, const char *const details[], size_t count);

#endif
