/*
 * rows.h - one transaction over the ledger's rows: an ordered map from bytes to bytes.
 *
 * The claim machine is written against this header alone.  rows_lmdb.c implements it on the disk, the tests in
 * memory; which one it is, is decided when the program is linked.
 *
 * A transaction remembers its first failure: from then on every read finds nothing and every change is ignored,
 * and whoever would commit must give up instead.  So the machine needs no check after each row.
 * Slices that come out live until the next change of the same transaction.  [ledger] throughout.
 */
#ifndef SINKONCE_STORE_ROWS_H
#define SINKONCE_STORE_ROWS_H

#include "slice.h"

struct rows;

enum rows_status {
    ROWS_OK,
    ROWS_FULL,   /* no room: the size limit or the disk */
    ROWS_FAILED, /* the disk, the memory, or a row that is no row of ours */
};

/* False: there is none. */
MUST_CHECK bool rows_get(struct rows *rows, struct slice key, struct slice *ret_value);
/* The first row at KEY or behind it. */
MUST_CHECK bool rows_seek(struct rows *rows, struct slice key, struct slice *ret_key,
                          struct slice *ret_value);
/* The last row at KEY or before it. */
MUST_CHECK bool rows_seek_back(struct rows *rows, struct slice key, struct slice *ret_key,
                               struct slice *ret_value);
void rows_put(struct rows *rows, struct slice key, struct slice value);
void rows_delete(struct rows *rows, struct slice key); /* one that is not there is fine */

/* The reader found bytes that cannot be, or had no memory: the transaction fails. */
void rows_spoil(struct rows *rows);
enum rows_status rows_status(const struct rows *rows);
bool rows_is_changed(const struct rows *rows); /* something was put or deleted */

#endif
