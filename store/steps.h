/*
 * steps.h - a change of very much, done in steps: each is a commit of its own, and what else was posted is served between two.
 *
 *     machine_ask()        takes a step; all again from what the last durable one left, when its commit failed
 *     machine_goes_on()    the step is durable
 *     machine_give_up()    there will be no other
 *
 * What is left to do is kept in memory: a crash leaves what the durable steps made of it, and the action can be repeated.
 */
#ifndef SINKONCE_STORE_STEPS_H
#define SINKONCE_STORE_STEPS_H

#include "machine.h"

enum {
    STEP_ROWS = 2000,    /* changed in one step: a few milliseconds */
    PARTITION_ROWS = 10, /* what it costs to look for those of a partition */
};

/* The beginning of what question->steps points to; forget.c and resolve.c know the rest. */
struct steps {
    bool is_begun;   /* a step is durable */
    bool is_durable; /* the last one is */
    bool is_over;    /* nothing is left behind that one */
};

/* NULL: the first step is to be taken, perhaps once more, and what is to be done is to be found anew. */
struct steps *steps_resume(struct question *question);
/* At the end of a step.  One that was enough leaves nothing behind. */
void steps_close(struct question *question);
void steps_spend(size_t *rows_left, size_t row_count);

#endif
