/*
 * histories.h - runs of a ledger, recorded, with what was told to the outside at each moment.
 *
 * A subject is a record that a history says something about.  Before each step it marks what a power cut from now on may
 * leave of it, and after the step what must be there.
 */
#ifndef SINKONCE_TESTS_HISTORIES_H
#define SINKONCE_TESTS_HISTORIES_H

#include "desk.h"

/* What may be found; several at once while a step runs. */
enum { MAY_BE_ABSENT = 1, MAY_BE_IN_DOUBT = 2, MAY_BE_APPLIED = 4, MAY_BE_BITS = 3 };
enum { MARK_READY = -1 }; /* the mark of "store_open() returned"; else subject * 8 + what it may be */

enum { SUBJECTS_MAX = 8000 };
struct subject {
    int32_t partition; /* of the topic orders */
    int64_t offset;
};
extern struct subject subjects[SUBJECTS_MAX];
extern size_t subject_count;
extern char history_ledger_id[40];

struct history {
    const char *name;
    void (*run)(void);
    void (*options)(struct store_options *options); /* NULL: those of desk_options() */
};
extern const struct history histories[];
extern const size_t history_count;

/* Run it in FOLDER under the recorder; what it opened is closed again. */
void history_record(const struct history *history, const char *folder);
struct store_options history_options(const struct history *history, const char *folder);

#endif
