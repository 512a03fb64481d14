/*
 * waiters.c - claims that wait: one list in the order of arrival, which is the order in which they are judged again.
 *
 * The list is as short as there are requests in flight, so that a change of a range that somebody waits for may look
 * through all of it.
 */
#include "waiters.h"

#include <assert.h>
#include <stdlib.h>

struct waiter *waiters_add(struct machine *machine, struct claim *claim, struct open_range *range)
{
    struct waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL)
        return NULL;
    *waiter = (struct waiter){ .claim = claim,
                               .deadline_ms = machine->now.mono_ms + claim->wait_ms,
                               .range = range,
                               .is_behind = range == NULL,
                               .previous = machine->last_waiter };
    if (machine->last_waiter != NULL)
        machine->last_waiter->next = waiter;
    else
        machine->first_waiter = waiter;
    machine->last_waiter = waiter;
    machine->waiter_count++;
    if (range != NULL)
        range->waiter_count++;
    claim->waiter = waiter;
    return waiter;
}

void waiters_wake(struct machine *machine, struct open_range *range)
{
    for (struct waiter *waiter = machine->first_waiter; waiter != NULL && range->waiter_count > 0;
         waiter = waiter->next) {
        if (waiter->range != range)
            continue;
        waiter->range = NULL;
        range->waiter_count--;
        machine->woken_count++;
    }
    assert(range->waiter_count == 0);
}

static void leave_range(struct machine *machine, struct waiter *waiter)
{
    if (waiter->range != NULL)
        waiter->range->waiter_count--;
    else if (!waiter->is_behind)
        machine->woken_count--;
}

void waiters_wait_on(struct machine *machine, struct waiter *waiter, struct open_range *range)
{
    leave_range(machine, waiter);
    waiter->range = range;
    waiter->is_behind = range == NULL;
    if (range != NULL)
        range->waiter_count++;
}

/* One has gone: whoever was behind it may be free. */
static void wake_behind(struct machine *machine, struct waiter *first)
{
    for (struct waiter *waiter = first; waiter != NULL; waiter = waiter->next) {
        if (!waiter->is_behind)
            continue;
        waiter->is_behind = false;
        machine->woken_count++;
    }
}

void waiters_remove(struct machine *machine, struct waiter *waiter)
{
    leave_range(machine, waiter);
    if (waiter->previous != NULL)
        waiter->previous->next = waiter->next;
    else
        machine->first_waiter = waiter->next;
    if (waiter->next != NULL)
        waiter->next->previous = waiter->previous;
    else
        machine->last_waiter = waiter->previous;
    machine->waiter_count--;
    wake_behind(machine, waiter->next);
    waiter->claim->waiter = NULL;
    free(waiter);
}
