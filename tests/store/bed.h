/*
 * bed.h - a real store in a folder of its own, opened, closed and opened again by a test.
 */
#ifndef SINKONCE_TESTS_BED_H
#define SINKONCE_TESTS_BED_H

#include "desk.h"

struct bed {
    char folder[96];
    struct store_options options; /* a test may change them before bed_open() */
    struct store *store;
    struct desk desk;
    char why[256];
};

extern struct bed bed;
extern const char *bed_root; /* where the folders are made; a test may change it before bed_setup() */

int bed_setup(void **state);               /* cmocka: an empty folder */
int bed_teardown(void **state);            /* cmocka: closes, and removes the folder */
void bed_open(void);                       /* must succeed */
enum store_open_status bed_try_open(void); /* bed.why holds the sentence */
void bed_close(void);
void bed_path(const char *name, char path[160]);

#endif
