/*
 * rows_lmdb.c - one LMDB write transaction as rows.
 *
 * All rows live in LMDB's unnamed table: a commit of few rows then touches few pages, and the pages in use can be
 * read off in one call.
 *
 * Behind each value stands a sum over key and value (format.h).  The library has none: a bit that a disk has turned
 * would else be another record's "applied".
 */
#include "rows_lmdb.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>
#include "format.h"

enum { SUM_BYTES = 4 };

static MDB_val val_of(struct slice slice)
{
    /* the library takes keys and values by a pointer that it does not write through */
    union {
        const char *in;
        void *out;
    } at = { .in = slice.at };
    return (MDB_val){ slice.byte_count, at.out };
}

static struct slice slice_of_val(MDB_val val)
{
    return slice_of(val.mv_data, val.mv_size);
}

enum rows_status rows_status_of(int error)
{
    bool is_full = error == MDB_MAP_FULL || error == MDB_TXN_FULL || error == ENOSPC || error == EDQUOT ||
                   error == EFBIG;
    return is_full ? ROWS_FULL : ROWS_FAILED;
}

/* True: the call succeeded.  The first failure stays. */
static bool is_done(struct rows *rows, int error)
{
    if (error != 0 && error != MDB_NOTFOUND && rows->status == ROWS_OK) {
        rows->status = rows_status_of(error);
        rows->error = error;
    }
    return error == 0;
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

/* The row that says which format the others have must be readable by any version. */
static bool has_sum(struct slice key)
{
    struct key bare = key_meta(META_STORE);
    return !slice_equals(key, key_slice(&bare));
}

static uint32_t sum_of(struct slice key, struct slice value)
{
    return (uint32_t)XXH3_64bits_withSeed(value.at, value.byte_count, XXH3_64bits(key.at, key.byte_count));
}

/* What goes to the disk; lives until the next call.  False: no memory. */
static bool seal(struct rows *rows, struct slice key, struct slice value, MDB_val *ret)
{
    if (value.byte_count + SUM_BYTES > rows->sealed_bytes_max) {
        char *grown = realloc(rows->sealed, 2 * value.byte_count + 1024);
        if (grown == NULL)
            return false;
        rows->sealed = grown;
        rows->sealed_bytes_max = 2 * value.byte_count + 1024;
    }
    uint32_t sum = sum_of(key, value);
    if (value.byte_count > 0)
        memcpy(rows->sealed, value.at, value.byte_count);
    for (size_t i = 0; i < SUM_BYTES; i++)
        rows->sealed[value.byte_count + i] = (char)(sum >> (8 * (SUM_BYTES - 1 - i)));
    *ret = (MDB_val){ value.byte_count + (has_sum(key) ? SUM_BYTES : 0), rows->sealed };
    return true;
}

/* The value alone.  False: it or its key is not what was written. */
static bool unseal(struct slice key, struct slice sealed, struct slice *ret_value)
{
    uint32_t sum = 0;
    *ret_value = sealed;
    if (!has_sum(key))
        return true;
    if (sealed.byte_count < SUM_BYTES)
        return false;
    ret_value->byte_count -= SUM_BYTES;
    for (size_t i = 0; i < SUM_BYTES; i++)
        sum = sum << 8 | (uint8_t)sealed.at[ret_value->byte_count + i];
    return sum == sum_of(key, *ret_value);
}

static void release_room(struct rows *rows)
{
    free(rows->sealed);
    rows->sealed = NULL;
    rows->sealed_bytes_max = 0;
}

/* ---- transactions ----------------------------------------------------------------------------------------------- */

enum rows_status rows_begin(struct rows *ret_rows, MDB_env *env, MDB_dbi table)
{
    *ret_rows = (struct rows){ .env = env, .table = table };
    if (!is_done(ret_rows, mdb_txn_begin(env, NULL, 0, &ret_rows->txn)))
        ret_rows->txn = NULL;
    return ret_rows->status;
}

enum rows_status rows_commit(struct rows *rows)
{
    assert(rows->txn != NULL);
    if (rows->status != ROWS_OK) {
        rows_abort(rows);
        return rows->status;
    }
    is_done(rows, mdb_txn_commit(rows->txn)); /* frees it, whatever comes back */
    rows->txn = NULL;
    rows->cursor = NULL;
    release_room(rows);
    return rows->status;
}

void rows_abort(struct rows *rows)
{
    if (rows->txn != NULL)
        mdb_txn_abort(rows->txn);
    rows->txn = NULL;
    rows->cursor = NULL;
    release_room(rows);
}

uint64_t rows_used_bytes(struct rows *rows)
{
    MDB_stat rows_stat, free_stat;
    if (mdb_stat(rows->txn, rows->table, &rows_stat) != 0 || mdb_stat(rows->txn, 0, &free_stat) != 0)
        return 0;
    uint64_t pages = 2 + rows_stat.ms_branch_pages + rows_stat.ms_leaf_pages + rows_stat.ms_overflow_pages +
                     free_stat.ms_branch_pages + free_stat.ms_leaf_pages + free_stat.ms_overflow_pages;
    return pages * rows_stat.ms_psize;
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

/* True: this is the row.  The transaction fails when its sum is wrong. */
static bool give(struct rows *rows, struct slice key, MDB_val value, struct slice *ret_value)
{
    bool is_good = unseal(key, slice_of_val(value), ret_value);
    if (!is_good)
        rows_spoil(rows);
    return is_good;
}

bool rows_get(struct rows *rows, struct slice key, struct slice *ret_value)
{
    MDB_val key_val = val_of(key), value;
    if (rows->status != ROWS_OK || !is_done(rows, mdb_get(rows->txn, rows->table, &key_val, &value)))
        return false;
    return give(rows, key, value, ret_value);
}

static bool cursor_get(struct rows *rows, MDB_val *key, MDB_val *value, MDB_cursor_op op)
{
    if (rows->status != ROWS_OK)
        return false;
    if (rows->cursor == NULL && !is_done(rows, mdb_cursor_open(rows->txn, rows->table, &rows->cursor)))
        return false;
    return is_done(rows, mdb_cursor_get(rows->cursor, key, value, op));
}

bool rows_seek(struct rows *rows, struct slice key, struct slice *ret_key, struct slice *ret_value)
{
    MDB_val found = val_of(key), value;
    if (!cursor_get(rows, &found, &value, MDB_SET_RANGE))
        return false;
    *ret_key = slice_of_val(found);
    return give(rows, *ret_key, value, ret_value);
}

bool rows_seek_back(struct rows *rows, struct slice key, struct slice *ret_key, struct slice *ret_value)
{
    MDB_val found = val_of(key), value;
    bool is_behind = cursor_get(rows, &found, &value, MDB_SET_RANGE);
    bool is_there = is_behind && slice_equals(slice_of_val(found), key);
    if (!is_there && !cursor_get(rows, &found, &value, is_behind ? MDB_PREV : MDB_LAST))
        return false;
    *ret_key = slice_of_val(found);
    return give(rows, *ret_key, value, ret_value);
}

void rows_put(struct rows *rows, struct slice key, struct slice value)
{
    MDB_val key_val = val_of(key), sealed;
    rows->is_changed = true;
    if (rows->status != ROWS_OK)
        return;
    bool is_sealed = seal(rows, key, value, &sealed);
    is_done(rows, is_sealed ? mdb_put(rows->txn, rows->table, &key_val, &sealed, 0) : ENOMEM);
}

void rows_delete(struct rows *rows, struct slice key)
{
    MDB_val key_val = val_of(key);
    rows->is_changed = true;
    if (rows->status == ROWS_OK)
        is_done(rows, mdb_del(rows->txn, rows->table, &key_val, NULL));
}

void rows_fail(struct rows *rows, int error)
{
    is_done(rows, error);
}

void rows_spoil(struct rows *rows)
{
    rows_fail(rows, MDB_CORRUPTED);
}

enum rows_status rows_status(const struct rows *rows)
{
    return rows->status;
}

bool rows_is_changed(const struct rows *rows)
{
    return rows->is_changed;
}
