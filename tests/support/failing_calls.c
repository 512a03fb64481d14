/*
 * failing_calls.c - the Nth call of the system or of LMDB fails.  The linker's --wrap leads every call here first.
 */
#include "failing_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

static _Atomic int error = EIO;
static atomic_bool is_dead;
static _Atomic long fs_type;
static _Atomic uint64_t skipped_ms;

void calls_error(int number)
{
    atomic_store(&error, number);
}

void calls_die(bool is_dead_now)
{
    atomic_store(&is_dead, is_dead_now);
}

void calls_fs_type(long number)
{
    atomic_store(&fs_type, number);
}

void calls_skip_ms(uint64_t ms)
{
    atomic_fetch_add(&skipped_ms, ms);
}

/* True: this call is to fail, and errno says why. */
static bool refuses(void)
{
    if (!memory_refuses())
        return false;
    errno = atomic_load(&error);
    return true;
}

/* ---- those that fail with -1 and errno -------------------------------------------------------------------------- */

#define SYSTEM(type, name, parameters, arguments)                                                            \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters                                                                            \
    {                                                                                                        \
        return refuses() ? -1 : __real_##name arguments;                                                     \
    }

SYSTEM(int, flock, (int fd, int how), (fd, how))
SYSTEM(int, stat, (const char *path, struct stat *file), (path, file))
SYSTEM(int, fstat, (int fd, struct stat *file), (fd, file))
SYSTEM(int, rename, (const char *from, const char *to), (from, to))
SYSTEM(int, ftruncate, (int fd, off_t byte_count), (fd, byte_count))
SYSTEM(int, fallocate, (int fd, int mode, off_t from, off_t byte_count), (fd, mode, from, byte_count))
SYSTEM(int, eventfd, (unsigned count, int flags), (count, flags))
SYSTEM(ssize_t, pread, (int fd, void *bytes, size_t byte_count, off_t at), (fd, bytes, byte_count, at))
SYSTEM(ssize_t, getrandom, (void *bytes, size_t byte_count, unsigned flags), (bytes, byte_count, flags))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return refuses() ? -1 : __real_open(path, flags, mode);
}

int __real_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs)
{
    if (refuses())
        return -1;
    int status = __real_statfs(path, fs);
    if (atomic_load(&fs_type) != 0)
        fs->f_type = atomic_load(&fs_type);
    return status;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return refuses() ? -1 : 0;
}

/* Before the C library's own: LMDB calls it. */
int fdatasync(int fd)
{
    (void)fd;
    return 0;
}

/* ---- those that return the number ------------------------------------------------------------------------------- */

#define NUMBER(name, parameters, arguments)                                                                  \
    int __real_##name parameters;                                                                            \
    int __wrap_##name parameters;                                                                            \
    int __wrap_##name parameters                                                                             \
    {                                                                                                        \
        return refuses() ? errno : __real_##name arguments;                                                  \
    }

NUMBER(pthread_create,
       (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
       (thread, attributes, run, argument))
NUMBER(mdb_env_create, (MDB_env * *ret_env), (ret_env))
NUMBER(mdb_env_set_mapsize, (MDB_env * env, size_t byte_count), (env, byte_count))
NUMBER(mdb_env_open, (MDB_env * env, const char *path, unsigned flags, mdb_mode_t mode),
       (env, path, flags, mode))
NUMBER(mdb_env_info, (MDB_env * env, MDB_envinfo *info), (env, info))
NUMBER(mdb_env_stat, (MDB_env * env, MDB_stat *about), (env, about))
NUMBER(mdb_env_get_fd, (MDB_env * env, mdb_filehandle_t *fd), (env, fd))
NUMBER(mdb_env_copyfd2, (MDB_env * env, mdb_filehandle_t fd, unsigned flags), (env, fd, flags))
NUMBER(mdb_reader_check, (MDB_env * env, int *dead_count), (env, dead_count))
NUMBER(mdb_txn_begin, (MDB_env * env, MDB_txn *parent, unsigned flags, MDB_txn **ret_txn),
       (env, parent, flags, ret_txn))
NUMBER(mdb_dbi_open, (MDB_txn * txn, const char *name, unsigned flags, MDB_dbi *table),
       (txn, name, flags, table))
NUMBER(mdb_stat, (MDB_txn * txn, MDB_dbi table, MDB_stat *about), (txn, table, about))
NUMBER(mdb_get, (MDB_txn * txn, MDB_dbi table, MDB_val *key, MDB_val *value), (txn, table, key, value))
NUMBER(mdb_put, (MDB_txn * txn, MDB_dbi table, MDB_val *key, MDB_val *value, unsigned flags),
       (txn, table, key, value, flags))
NUMBER(mdb_del, (MDB_txn * txn, MDB_dbi table, MDB_val *key, MDB_val *value), (txn, table, key, value))
NUMBER(mdb_cursor_open, (MDB_txn * txn, MDB_dbi table, MDB_cursor **ret_cursor), (txn, table, ret_cursor))
NUMBER(mdb_cursor_get, (MDB_cursor * cursor, MDB_val *key, MDB_val *value, MDB_cursor_op op),
       (cursor, key, value, op))

int __real_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn);
int __wrap_mdb_txn_commit(MDB_txn *txn)
{
    if (atomic_load(&is_dead) || refuses()) {
        int number = atomic_load(&error);
        mdb_txn_abort(txn); /* as the library: it frees the transaction, whatever comes back */
        return number;
    }
    int number = __real_mdb_txn_commit(txn);
    return refuses() ? EIO : number; /* what is on disk had room */
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* MS may be below 0. */
static struct timespec later_by(struct timespec now, int64_t ms)
{
    int64_t ns = now.tv_nsec + ms % 1000 * 1000000;
    int64_t carry = ns < 0 ? -1 : ns / 1000000000;
    return (struct timespec){ now.tv_sec + (time_t)(ms / 1000 + carry), (long)(ns - carry * 1000000000) };
}

int __real_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
    int status = __real_clock_gettime(clock, ret_now);
    *ret_now = later_by(*ret_now, (int64_t)atomic_load(&skipped_ms));
    return status;
}

/* The kernel's clock has skipped nothing. */
int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    struct timespec then = later_by(*until, -(int64_t)atomic_load(&skipped_ms));
    return __real_pthread_cond_timedwait(cond, lock, &then);
}
