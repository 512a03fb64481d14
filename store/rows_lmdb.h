/*
 * rows_lmdb.h - a ledger transaction on LMDB (the reads and changes are those of rows.h).
 */
#ifndef SINKONCE_STORE_ROWS_LMDB_H
#define SINKONCE_STORE_ROWS_LMDB_H

#include <lmdb.h>
#include <stdint.h>
#include "rows.h"

/* One write transaction; the caller's memory.  Between begin and the end it belongs to one thread. */
struct rows {
    MDB_env *env; /* borrowed */
    MDB_dbi table;
    MDB_txn *txn;       /* owned; NULL: none runs */
    MDB_cursor *cursor; /* owned by the transaction; NULL until the first seek */
    enum rows_status status;
    int error; /* the library's number behind STATUS, for a person */
    bool is_changed;
    char *sealed; /* owned: room to put a value and its sum together */
    size_t sealed_bytes_max;
};

/* Not ROWS_OK: no transaction runs.  RET_ROWS->error says why. */
MUST_CHECK enum rows_status rows_begin(struct rows *ret_rows, MDB_env *env, MDB_dbi table);
/* Ends the transaction either way.  Not ROWS_OK: what is on the disk is known only after it has been read back. */
MUST_CHECK enum rows_status rows_commit(struct rows *rows);
void rows_abort(struct rows *rows);
/* From now on the transaction cannot be committed, for this number's reason. */
void rows_fail(struct rows *rows, int error);
/* Bytes of the file that hold something, as this transaction sees it. */
uint64_t rows_used_bytes(struct rows *rows);
/* What a number of the library that is not 0 means to a transaction: ROWS_FULL or ROWS_FAILED. */
enum rows_status rows_status_of(int error);

#endif
