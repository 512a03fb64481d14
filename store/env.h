/*
 * env.h - the ledger's folder and file: owned by one process, made durably, opened with every check.
 *
 * The folder holds sinkonce.lock (ours while we live), ledger.mdb, and the library's own ledger.mdb-lock.
 *
 * A backup is made with env_copy() or mdb_copy -n, which take a consistent state while we run; cp does not.  A ledger
 * put back from a backup has forgotten what came after it: those records pass again when they are delivered again.
 */
#ifndef SINKONCE_STORE_ENV_H
#define SINKONCE_STORE_ENV_H

#include <limits.h>
#include <sys/types.h>
#include "format.h"
#include "rows_lmdb.h"

enum { FOLDER_BYTES_MAX = PATH_MAX - 32 }; /* leaves room for the names within, and for the zero */

/* The caller's memory. */
struct env {
    char folder[FOLDER_BYTES_MAX + 1];
    int lock_fd;  /* owned; -1: none */
    MDB_env *mdb; /* owned; NULL: closed */
    MDB_dbi table;
    dev_t device; /* of the file that was opened: another one under its name is not ours */
    ino_t inode;
    uint64_t bytes_max;
    uint64_t reserve_bytes; /* how far ahead blocks are kept */
    uint64_t reserved_to;   /* the file's blocks are there up to here */
    bool is_reserve_off;    /* the file system cannot, or we gave up */
};

/* Take the folder, make a ledger if there is none, open it.  RET_STORE is its row as found, with scope and target
 * checked.
 * On failure WHY is a sentence, and nothing is left open. */
MUST_CHECK enum store_open_status env_init(struct env *env, const struct store_options *options,
                                           uint64_t unix_ms, struct store_row *ret_store,
                                           bool *ret_is_created, char why[], size_t why_bytes_max);
void env_deinit(struct env *env); /* also gives the folder back */

/* Is the file that was opened still the one that a restart would find?  One that was removed, or moved away, or lies
 * below another volume by now, would take every success that it holds with it. */
bool env_is_in_place(const struct env *env);

enum { ENV_FILL_REFUSED = -1 };
/* Writes the rows of a new ledger that nobody sees yet.  0, the number of what went wrong, or ENV_FILL_REFUSED: then
 * it has written the sentence itself. */
typedef int env_fill_fn(void *context, struct env *env);
/* Make a ledger in a folder without one: all of it or nothing.  Nothing stays open. */
MUST_CHECK enum store_open_status env_make(const struct store_options *options, env_fill_fn *fill,
                                           void *context, char why[], size_t why_bytes_max);

/* After a failed commit: the library is closed and opened again, so that what it believes is what the disk says.
 * False: it cannot be opened now, or is not in its place; env->mdb is NULL. */
MUST_CHECK bool env_reopen(struct env *env);

/* Keep blocks ready behind the end of the data, so that a full disk meets claims before settlements.
 * False: the disk has no room for them. */
bool env_reserve(struct env *env);

/* ERROR of a write, told better where it can be: a disk that became full in the middle of a write. */
int env_error_of(const struct env *env, int error);

enum env_copy_status { ENV_COPIED, ENV_COPY_EXISTS, ENV_COPY_FAILED };
/* [any] A consistent copy of the ledger in a file that must not exist; file and folder are flushed.  Needs no thread
 * to stand still.  Not ENV_COPIED: WHY is a sentence, and no file of ours is left. */
MUST_CHECK enum env_copy_status env_copy(const struct env *env, const char *path, uint64_t *ret_bytes,
                                         char why[], size_t why_bytes_max);

/* The name of a file system that cannot keep our promises, by statfs()'s number; NULL: none that we know. */
const char *env_refused_fs(unsigned long fs_type);

#endif
