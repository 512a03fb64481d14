/*
 * steps.c - see steps.h.
 */
#include "steps.h"

#include <stdlib.h>

struct steps *steps_resume(struct question *question)
{
    if (question->steps != NULL && !question->steps->is_begun)
        machine_give_up(question); /* its first step could not be committed */
    return question->steps;
}

void steps_close(struct question *question)
{
    if (question->steps->is_over && !question->steps->is_begun)
        machine_give_up(question);
}

void steps_spend(size_t *rows_left, size_t row_count)
{
    *rows_left -= row_count < *rows_left ? row_count : *rows_left;
}

bool machine_goes_on(struct question *question)
{
    struct steps *steps = question->steps;
    if (steps == NULL)
        return false;
    if (steps->is_over) {
        machine_give_up(question);
        return false;
    }
    steps->is_begun = steps->is_durable = true;
    return true;
}

void machine_give_up(struct question *question)
{
    free(question->steps);
    question->steps = NULL;
}
