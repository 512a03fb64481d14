/*
 * pages.h - may the database library be let loose on this file?
 *
 * LMDB 0.9 believes every number in its pages: one bit that a disk has turned can lead it outside of its map, and the
 * process ends, or into pages that belong to other rows, and they are lost.  So the whole tree is walked once before the
 * library sees it: each page is where it says it is, is used once, and holds keys in order between those of its parent.
 * What is in the values is the rows' own affair.
 *
 *     bytes of a page  header: its number u64, pad u16, flags u16, lower u16, upper u16 (of an overflow: pages u32),
 *                      then a u16 for each node: where in the page it begins, above upper
 *     node             size or page number in three u16, size of the key u16, key, value or number of an overflow page
 *     meta             pages 0 and 1, the later transaction counts: magic, version, two trees (free pages, rows),
 *                      last page, transaction
 *     tree             pad u32, flags u16, depth u16, pages of branches, leaves and overflows u64 each, entries u64, root u64
 */
#ifndef SINKONCE_STORE_PAGES_H
#define SINKONCE_STORE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include "slice.h"

enum pages_status {
    PAGES_SOUND,
    PAGES_UNKNOWN, /* no file of LMDB 0.9: its own words about that are better */
    PAGES_DAMAGED,
    PAGES_FAILED, /* errno says why the file cannot be read, or that there is no memory */
};

/* Reads all pages in use. */
MUST_CHECK enum pages_status pages_check(int fd);

#endif
