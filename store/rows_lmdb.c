/*
 * rows_lmdb.c - one LMDB write transaction as rows.
 *
 * All rows live in LMDB's unnamed table: a commit of few rows then touches few pages, and the pages in use can be
 * read off in one call.
 */
#include "rows_lmdb.h"

#include <assert.h>
#include <errno.h>

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
    if (error == 0)
        return ROWS_OK;
    bool is_full = error == MDB_MAP_FULL || error == MDB_TXN_FULL || error == ENOSPC || error == EDQUOT;
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
    return rows->status;
}

void rows_abort(struct rows *rows)
{
    if (rows->txn != NULL)
        mdb_txn_abort(rows->txn);
    rows->txn = NULL;
    rows->cursor = NULL;
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

bool rows_get(struct rows *rows, struct slice key, struct slice *ret_value)
{
    MDB_val key_val = val_of(key), value;
    if (rows->status != ROWS_OK || !is_done(rows, mdb_get(rows->txn, rows->table, &key_val, &value)))
        return false;
    *ret_value = slice_of_val(value);
    return true;
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
    *ret_value = slice_of_val(value);
    return true;
}

bool rows_seek_back(struct rows *rows, struct slice key, struct slice *ret_key, struct slice *ret_value)
{
    MDB_val found = val_of(key), value;
    bool is_behind = cursor_get(rows, &found, &value, MDB_SET_RANGE);
    if (is_behind && slice_equals(slice_of_val(found), key)) {
        *ret_key = slice_of_val(found);
        *ret_value = slice_of_val(value);
        return true;
    }
    if (!cursor_get(rows, &found, &value, is_behind ? MDB_PREV : MDB_LAST))
        return false;
    *ret_key = slice_of_val(found);
    *ret_value = slice_of_val(value);
    return true;
}

void rows_put(struct rows *rows, struct slice key, struct slice value)
{
    MDB_val key_val = val_of(key), value_val = val_of(value);
    rows->is_changed = true;
    if (rows->status == ROWS_OK)
        is_done(rows, mdb_put(rows->txn, rows->table, &key_val, &value_val, 0));
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
