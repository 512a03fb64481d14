/*
 * image.h - the disk as a power cut could leave it.
 *
 * The recorder (disk.h) has written down every write, flush, creation and rename.  image_play() lets them happen one by
 * one; at any moment image_build() writes the folder as it may be found then.
 */
#ifndef SINKONCE_TESTS_IMAGE_H
#define SINKONCE_TESTS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "disk.h"

enum { IMAGE_FILE_BYTES_MAX = 8 * 1024 * 1024 };

/* Which of the writes that were not flushed are there. */
enum image_kind {
    IMAGE_NONE,
    IMAGE_ALL,
    IMAGE_HALF, /* a random half of them */
    IMAGE_TORN, /* all, the last one cut at a sector, or anywhere inside one */
    IMAGE_KIND_COUNT
};

void image_begin(const char *folder); /* where images are written; an empty disk */
void image_play(size_t index);        /* the event of that number has happened */
/* The folder as it may be found, while RUNNING (or nothing: NULL) was under way. */
void image_build(enum image_kind kind, const struct disk_event *running);
void image_remove(const char *folder); /* a ledger's files, and the folder */
void image_end(void);

#endif
