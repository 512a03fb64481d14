/*
 * env.c - the ledger's folder and file.
 *
 * One process at a time: an flock on a file of our own, because the library's locks do not tell two containers apart
 * whose processes are both number 1, and because opening a ledger twice in one process breaks them.
 *
 * A ledger is made aside, flushed, renamed, and the folder is flushed: after a power cut there is a whole one or none,
 * never an empty one that would let every record pass again.
 */
#include "env.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>
#include "pages.h"

enum { RESERVE_BYTES_MIN = 64 * 1024, RESERVE_BYTES_MAX = 4 * 1024 * 1024 };

struct why {
    char *words; /* borrowed */
    size_t byte_count_max;
};

__attribute__((format(printf, 2, 3))) static enum store_open_status unreadable(struct why why,
                                                                               const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why.words, why.byte_count_max, format, arguments);
    va_end(arguments);
    return STORE_UNREADABLE;
}

static void path_in(const struct env *env, const char *name, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%s", env->folder, name);
    assert(length > 0 && length < PATH_MAX);
}

/* ---- the folder ------------------------------------------------------------------------------------------------- */

/* Source of the numbers: statfs(2), and linux/magic.h. */
const char *env_refused_fs(unsigned long fs_type)
{
    static const struct {
        unsigned long fs_type;
        const char *name;
    } refused[] = {
        { 0x6969, "NFS" },      { 0x517B, "SMB" },      { 0xFF534D42, "CIFS" },
        { 0xFE534D42, "SMB2" }, { 0x65735546, "FUSE" }, { 0x00C36400, "Ceph" },
        { 0x01021997, "9p" },   { 0x5346414F, "AFS" },  { 0x0BD00BD0, "Lustre" },
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (refused[i].fs_type == fs_type)
            return refused[i].name;
    return NULL;
}

static enum store_open_status check_fs(const struct env *env, bool is_network_fs_allowed, struct why why)
{
    struct statfs fs;
    if (statfs(env->folder, &fs) != 0)
        return unreadable(why, "cannot examine the file system of %s: %s", env->folder, strerror(errno));
    const char *name = env_refused_fs((unsigned long)fs.f_type & 0xFFFFFFFFu);
    if (name != NULL && !is_network_fs_allowed)
        return unreadable(
            why,
            "%s is on %s, where a flush to the disk and a lock cannot be relied on; use a volume of "
            "the machine itself (ext4 or xfs)",
            env->folder, name);
    return STORE_OPENED;
}

static enum store_open_status locked(const struct env *env, struct why why)
{
    snprintf(why.words, why.byte_count_max,
             "the ledger in %s is in use by another process; one ledger serves one sinkonce: stop the other, "
             "or give "
             "this one a folder of its own",
             env->folder);
    return STORE_LOCKED;
}

/* Whoever only looks (sinkonce check, a process that is about to end) has it for a moment: is it free within WAIT_MS? */
static bool lock_within(int fd, uint32_t wait_ms)
{
    enum { TURN_MS = 20 };
    const struct timespec turn = { 0, TURN_MS * 1000000 };
    for (uint32_t waited_ms = 0;; waited_ms += TURN_MS) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK || waited_ms >= wait_ms)
            return false;
        nanosleep(&turn, NULL);
    }
}

static enum store_open_status lock_folder(struct env *env, uint32_t wait_ms, struct why why)
{
    char path[PATH_MAX];
    path_in(env, "sinkonce.lock", path);
    env->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (env->lock_fd < 0)
        return unreadable(why, "cannot open %s: %s; the data folder must exist and be writable", path,
                          strerror(errno));
    if (lock_within(env->lock_fd, wait_ms))
        return STORE_OPENED;
    int error = errno;
    close(env->lock_fd);
    env->lock_fd = -1;
    if (error != EWOULDBLOCK)
        return unreadable(why, "cannot lock %s: %s", path, strerror(error));
    return locked(env, why);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static unsigned open_flags(void)
{
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS;
#ifdef BREAK_NOSYNC
    flags |= MDB_NOSYNC;
#endif
    return flags;
}

static int open_table(MDB_env *mdb, MDB_dbi *ret_table)
{
    MDB_txn *txn = NULL;
    int error = mdb_txn_begin(mdb, NULL, MDB_RDONLY, &txn);
    if (error != 0)
        return error;
    error = mdb_dbi_open(txn, NULL, 0, ret_table);
    mdb_txn_abort(txn);
    return error;
}

/* A sixteenth of what there is, between 64 KiB and 4 MiB. */
static uint64_t reserve_bytes(const struct env *env, const char *path)
{
    struct statfs fs;
    uint64_t bytes = env->bytes_max / 16;
    if (statfs(path, &fs) == 0) {
        uint64_t disk_share = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize / 16;
        bytes = disk_share < bytes ? disk_share : bytes;
    }
    bytes = bytes < RESERVE_BYTES_MIN ? RESERVE_BYTES_MIN : bytes;
    return bytes > RESERVE_BYTES_MAX ? RESERVE_BYTES_MAX : bytes;
}

/* A file that ends before the pages which it speaks of (a copy cut short) would kill the process by SIGBUS when one
 * is read.  Made longer, they read as zeros, which the library refuses as damage. */
static int pad_file(MDB_env *mdb)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat file;
    int fd;
    if (mdb_env_info(mdb, &info) != 0 || mdb_env_stat(mdb, &stat) != 0 || mdb_env_get_fd(mdb, &fd) != 0)
        return MDB_INVALID;
    off_t needed = (off_t)((info.me_last_pgno + 1) * stat.ms_psize);
    if (fstat(fd, &file) != 0)
        return errno;
    return file.st_size >= needed || ftruncate(fd, needed) == 0 ? 0 : errno;
}

/* The file is ours and no other's, even when another folder leads to it by a link. */
static int take_file(struct env *env)
{
    struct stat file;
    int fd, error = mdb_env_get_fd(env->mdb, &fd);
    if (error == 0 && fstat(fd, &file) != 0)
        error = errno;
    if (error == 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
        error = errno;
    if (error == 0) {
        env->device = file.st_dev;
        env->inode = file.st_ino;
    }
    return error;
}

/* 0: the library may read what is there, or there is nothing yet.  A file without a byte it would take for a new one,
 * and forget what the old one held. */
static int check_pages(const char *path)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno;
    int error = fstat(fd, &file) != 0 ? errno : file.st_size == 0 ? MDB_INVALID : 0;
    if (error == 0) {
        enum pages_status status = pages_check(fd);
        error = status == PAGES_DAMAGED ? MDB_CORRUPTED : status == PAGES_FAILED ? errno : 0;
    }
    close(fd); /* before the library opens it: closing a file gives up the locks that its process has on it */
    return error;
}

static int open_file(struct env *env, const char *path)
{
    assert(env->mdb == NULL);
    int dead_count, error = check_pages(path);
    if (error != 0)
        return error;
    error = mdb_env_create(&env->mdb);
    if (error != 0) {
        env->mdb = NULL;
        return error;
    }
    error = mdb_env_set_mapsize(env->mdb, env->bytes_max & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1));
    if (error == 0)
        error = mdb_env_open(env->mdb, path, open_flags(), 0600);
    if (error == 0)
        error = pad_file(env->mdb);
    if (error == 0)
        error = take_file(env);
    if (error == 0)
        error = mdb_reader_check(env->mdb, &dead_count);
    if (error == 0)
        error = open_table(env->mdb, &env->table);
    if (error != 0) {
        mdb_env_close(env->mdb);
        env->mdb = NULL;
    }
    env->reserved_to = 0;
    env->reserve_bytes = reserve_bytes(env, path);
    return error;
}

bool env_is_in_place(const struct env *env)
{
    char path[PATH_MAX];
    struct stat file;
    path_in(env, "ledger.mdb", path);
    return stat(path, &file) == 0 && file.st_dev == env->device && file.st_ino == env->inode;
}

/* The library would make a new file where none is, and with it forget everything. */
bool env_reopen(struct env *env)
{
    char path[PATH_MAX];
    if (env->mdb != NULL)
        mdb_env_close(env->mdb);
    env->mdb = NULL;
    path_in(env, "ledger.mdb", path);
    return env_is_in_place(env) && open_file(env, path) == 0;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

static bool make_id(char id[STORE_ID_CHARS + 1])
{
    uint8_t random[STORE_ID_CHARS / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(&id[2 * i], 3, "%02x", random[i]);
    return true;
}

struct first_row {
    const struct store_options *options; /* borrowed */
    uint64_t unix_ms;
};

/* An env_fill_fn. */
static int write_first_row(void *context, struct env *env)
{
    const struct first_row *first = context;
    struct rows rows;
    struct store_row row = { .format = FORMAT_VERSION, .created_ms = first->unix_ms };
    struct key key = key_meta(META_STORE);
    struct value value;
    if (!make_id(row.id))
        return errno;
    memcpy(row.scope, first->options->scope, strlen(first->options->scope) + 1);
    store_row_write(&row, &value);
    if (rows_begin(&rows, env->mdb, env->table) != ROWS_OK)
        return rows.error;
    rows_put(&rows, key_slice(&key), value_slice(&value));
    return rows_commit(&rows) == ROWS_OK ? 0 : rows.error;
}

/* 0, or the number of what went wrong. */
static int flush_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* 0, or the number of what went wrong: then there is no PATH. */
static int move_in_place(const struct env *env, const char *aside, const char *path)
{
    if (rename(aside, path) != 0)
        return errno;
    int error = flush_path(env->folder, O_RDONLY | O_DIRECTORY);
    if (error != 0)
        unlink(path); /* it would be called a failure now and found as a ledger later */
    return error;
}

static enum store_open_status make_ledger(struct env *env, env_fill_fn *fill, void *context, struct why why)
{
    char path[PATH_MAX], aside[PATH_MAX], aside_lock[PATH_MAX];
    path_in(env, "ledger.mdb", path);
    path_in(env, "ledger.mdb.new", aside);
    path_in(env, "ledger.mdb.new-lock", aside_lock);
    unlink(aside); /* what an attempt left that did not come to its end */
    unlink(aside_lock);
    int error = open_file(env, aside);
    if (error == 0)
        error = fill(context, env);
    error = env_error_of(env, error);
    if (env->mdb != NULL)
        mdb_env_close(env->mdb);
    env->mdb = NULL;
    unlink(aside_lock);
    if (error == 0)
        error = flush_path(aside, O_RDWR);
    if (error == 0)
        error = move_in_place(env, aside, path);
    if (error != 0)
        unlink(aside);
    if (error == ENV_FILL_REFUSED)
        return STORE_UNREADABLE;
    if (error != 0)
        return unreadable(why, "cannot make a ledger in %s: %s", env->folder, mdb_strerror(error));
    return STORE_OPENED;
}

/* ---- checking --------------------------------------------------------------------------------------------------- */

/* What one target has applied says nothing about another one: all of it would be dropped as known, and lost. */
static bool is_of_target(const struct store_row *row, const struct store_options *options)
{
    return options->target == NULL || row->target[0] == '\0' || strcmp(row->target, options->target) == 0 ||
           (options->former_target != NULL && strcmp(row->target, options->former_target) == 0);
}

static enum store_open_status check_row(const struct store_row *row, const struct store_options *options,
                                        struct why why)
{
    if (row->format != FORMAT_VERSION)
        return unreadable(
            why,
            "the ledger has format %u and this program reads format %d; start the version that wrote it, or "
            "export the ledger with that version and import it with this one",
            row->format, FORMAT_VERSION);
    if (strcmp(row->scope, options->scope) != 0)
        return unreadable(
            why,
            "the ledger belongs to the scope \"%s\", the settings say \"%s\"; a ledger knows one "
            "connector and one target: give the other one a folder of its own",
            row->scope, options->scope);
    if (!is_of_target(row, options))
        return unreadable(why,
                          "the ledger is about the target %.140s, the settings say %.140s, of which it knows "
                          "nothing: give another "
                          "target a folder of its own; if it is the same one under a new name, set "
                          "SINKONCE_TARGET_WAS to the old",
                          row->target, options->target);
    return STORE_OPENED;
}

static bool read_target(struct rows *rows, struct store_row *ret_row)
{
    struct key key = key_meta(META_TARGET);
    struct slice value;
    if (!rows_get(rows, key_slice(&key), &value))
        return rows_status(rows) == ROWS_OK;
    return target_row_read(value, ret_row);
}

static enum store_open_status read_row(struct env *env, const struct store_options *options,
                                       struct store_row *ret_row, struct why why)
{
    struct rows rows;
    struct key key = key_meta(META_STORE);
    struct slice value;
    ret_row->target[0] = '\0';
    if (rows_begin(&rows, env->mdb, env->table) != ROWS_OK)
        return unreadable(why, "cannot read the ledger in %s: %s", env->folder, mdb_strerror(rows.error));
    bool is_there = rows_get(&rows, key_slice(&key), &value) && store_row_read(value, ret_row);
    if (is_there && ret_row->format == FORMAT_VERSION)
        is_there = read_target(&rows, ret_row);
    rows_abort(&rows);
    if (!is_there)
        return unreadable(why, "%s/ledger.mdb is no ledger of sinkonce, or damaged; put back the right file",
                          env->folder);
    return check_row(ret_row, options, why);
}

static enum store_open_status open_existing(struct env *env, struct why why)
{
    char path[PATH_MAX];
    path_in(env, "ledger.mdb", path);
    int error = open_file(env, path);
    if (error == EWOULDBLOCK)
        return locked(env, why);
    if (error == MDB_VERSION_MISMATCH)
        return unreadable(
            why,
            "%s was written by another version of the database library (LMDB); start the program "
            "version that wrote it",
            path);
    if (error == MDB_INVALID || error == MDB_CORRUPTED)
        return unreadable(why, "%s is no ledger of sinkonce, or damaged; put back the right file", path);
    if (error != 0)
        return unreadable(why, "cannot open %s: %s", path, mdb_strerror(error));
    return STORE_OPENED;
}

/* A file without a byte is what a broken copy leaves; the library would take it for a new ledger. */
static enum store_open_status look_for_ledger(const struct env *env, const struct store_options *options,
                                              bool *ret_is_missing, struct why why)
{
    char path[PATH_MAX];
    struct stat file;
    path_in(env, "ledger.mdb", path);
    *ret_is_missing = stat(path, &file) != 0;
    if (*ret_is_missing && errno != ENOENT)
        return unreadable(why, "cannot examine %s: %s", path, strerror(errno));
    if (*ret_is_missing && options->is_missing_refused)
        return unreadable(
            why,
            "there is no ledger in %s and the settings refuse to begin a new one; has the volume been "
            "lost?  A new ledger lets every redelivered record pass again",
            env->folder);
    if (!*ret_is_missing && (!S_ISREG(file.st_mode) || file.st_size == 0))
        return unreadable(why, "%s is no ledger of sinkonce, or damaged; put back the right file", path);
    return STORE_OPENED;
}

static enum store_open_status open_all(struct env *env, const struct store_options *options, uint64_t unix_ms,
                                       struct store_row *ret_store, bool *ret_is_created, struct why why)
{
    enum store_open_status status = lock_folder(env, options->lock_wait_ms, why);
    if (status == STORE_OPENED)
        status = check_fs(env, options->is_network_fs_allowed, why);
    if (status == STORE_OPENED)
        status = look_for_ledger(env, options, ret_is_created, why);
    if (status == STORE_OPENED && *ret_is_created)
        status = make_ledger(env, write_first_row, &(struct first_row){ options, unix_ms }, why);
    if (status == STORE_OPENED)
        status = open_existing(env, why);
    if (status == STORE_OPENED)
        status = read_row(env, options, ret_store, why);
    return status;
}

static enum store_open_status name_folder(struct env *env, const struct store_options *options,
                                          struct why why)
{
    *env = (struct env){ .lock_fd = -1, .bytes_max = options->ledger_bytes_max };
    if (strlen(options->scope) > SCOPE_BYTES_MAX)
        return unreadable(why, "the scope is longer than %d bytes", SCOPE_BYTES_MAX);
    if (options->target != NULL && strlen(options->target) > TARGET_BYTES_MAX)
        return unreadable(why, "the name of the target is longer than %d bytes", TARGET_BYTES_MAX);
    if (strlen(options->folder) > FOLDER_BYTES_MAX)
        return unreadable(why, "the name of the data folder is too long");
    memcpy(env->folder, options->folder, strlen(options->folder) + 1);
    return STORE_OPENED;
}

enum store_open_status env_init(struct env *env, const struct store_options *options, uint64_t unix_ms,
                                struct store_row *ret_store, bool *ret_is_created, char words[],
                                size_t words_bytes_max)
{
    struct why why = { words, words_bytes_max };
    enum store_open_status status = name_folder(env, options, why);
    if (status == STORE_OPENED)
        status = open_all(env, options, unix_ms, ret_store, ret_is_created, why);
    if (status != STORE_OPENED)
        env_deinit(env);
    return status;
}

static enum store_open_status make_all(struct env *env, const struct store_options *options,
                                       env_fill_fn *fill, void *context, struct why why)
{
    bool is_missing = false;
    struct store_options willing = *options;
    willing.is_missing_refused = false;
    enum store_open_status status = lock_folder(env, options->lock_wait_ms, why);
    if (status == STORE_OPENED)
        status = check_fs(env, options->is_network_fs_allowed, why);
    if (status == STORE_OPENED)
        status = look_for_ledger(env, &willing, &is_missing, why);
    if (status == STORE_OPENED && !is_missing)
        return unreadable(why, "there is a ledger in %s already; nothing was changed", env->folder);
    return status == STORE_OPENED ? make_ledger(env, fill, context, why) : status;
}

enum store_open_status env_make(const struct store_options *options, env_fill_fn *fill, void *context,
                                char words[], size_t words_bytes_max)
{
    struct why why = { words, words_bytes_max };
    struct env env;
    enum store_open_status status = name_folder(&env, options, why);
    if (status == STORE_OPENED)
        status = make_all(&env, options, fill, context, why);
    env_deinit(&env);
    return status;
}

void env_deinit(struct env *env)
{
    if (env->mdb != NULL)
        mdb_env_close(env->mdb);
    env->mdb = NULL;
    if (env->lock_fd >= 0)
        close(env->lock_fd); /* and with it the lock */
    env->lock_fd = -1;
}

/* ---- room ------------------------------------------------------------------------------------------------------- */

/* May the process make no file that reaches to END?  Its limit (setrlimit(2), RLIMIT_FSIZE) is that of a disk. */
static bool is_beyond_limit(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

bool env_reserve(struct env *env)
{
    MDB_envinfo info;
    MDB_stat stat;
    int fd;
    if (env->is_reserve_off || mdb_env_info(env->mdb, &info) != 0 || mdb_env_stat(env->mdb, &stat) != 0 ||
        mdb_env_get_fd(env->mdb, &fd) != 0)
        return true;
    uint64_t end = (info.me_last_pgno + 1) * stat.ms_psize;
    if (is_beyond_limit(end + env->reserve_bytes / 2))
        return false;
    if (env->reserved_to >= end + env->reserve_bytes / 2)
        return true;
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)end, (off_t)env->reserve_bytes) == 0) {
        env->reserved_to = end + env->reserve_bytes;
        return true;
    }
    if (errno == ENOSPC || errno == EDQUOT)
        return false;
    env->is_reserve_off = errno != EINTR; /* the file system cannot: then a full disk is met when it is */
    return true;
}

/* Is there no room for what the library writes in one call?  Asked with a file without a name, which takes its blocks
 * along when it is closed: in our own file the blocks may be there already, and those of a probe would stay. */
static bool is_disk_full(const struct env *env)
{
    enum { WRITE_BYTES_MAX = 64 * 4096 }; /* MDB_COMMIT_PAGES */
    char path[PATH_MAX];
    struct stat file;
    struct statfs fs;
    path_in(env, "ledger.mdb", path);
    if (stat(path, &file) == 0 && is_beyond_limit((uint64_t)file.st_size + WRITE_BYTES_MAX))
        return true;
    int fd = open(env->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        int error = fallocate(fd, 0, 0, WRITE_BYTES_MAX) == 0 ? 0 : errno;
        close(fd);
        if (error == 0 || error == ENOSPC || error == EDQUOT)
            return error != 0;
    }
    return statfs(env->folder, &fs) == 0 && (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize < WRITE_BYTES_MAX;
}

/* A disk becomes full in the middle of a write, which then is short, and LMDB 0.9 calls that an I/O error (mdb.c,
 * mdb_page_flush). */
int env_error_of(const struct env *env, int error)
{
    return error == EFBIG || (error == EIO && is_disk_full(env)) ? ENOSPC : error;
}

/* ---- copying ---------------------------------------------------------------------------------------------------- */

/* 0, or the number of what went wrong: the folder that PATH names a file in, which could be opened. */
static int flush_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return flush_path(".", O_RDONLY | O_DIRECTORY);
    size_t byte_count = slash == path ? 1 : (size_t)(slash - path); /* the root keeps its name */
    memcpy(folder, path, byte_count);
    folder[byte_count] = '\0';
    return flush_path(folder, O_RDONLY | O_DIRECTORY);
}

/* 0, or the number of what went wrong. */
static int copy_to(MDB_env *mdb, int fd, const char *path, uint64_t *ret_bytes)
{
    struct stat file;
    int error = mdb_env_copyfd2(mdb, fd, 0);
    if (error == 0 && (fsync(fd) != 0 || fstat(fd, &file) != 0))
        error = errno;
    if (error == 0)
        error = flush_folder_of(path);
    if (error == 0)
        *ret_bytes = (uint64_t)file.st_size;
    return error;
}

enum env_copy_status env_copy(const struct env *env, const char *path, uint64_t *ret_bytes, char why[],
                              size_t why_bytes_max)
{
    why[0] = '\0';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        snprintf(why, why_bytes_max, "%s exists already; nothing was written", path);
        return ENV_COPY_EXISTS;
    }
    if (fd < 0) {
        snprintf(why, why_bytes_max, "cannot create %s: %s", path, strerror(errno));
        return ENV_COPY_FAILED;
    }
    int error = copy_to(env->mdb, fd, path, ret_bytes);
    close(fd);
    if (error == 0)
        return ENV_COPIED;
    unlink(path);
    snprintf(why, why_bytes_max, "cannot write %s: %s", path, mdb_strerror(error));
    return ENV_COPY_FAILED;
}

void store_database_version(char ret_version[STORE_VERSION_BYTES])
{
    int major, minor, patch;
    (void)mdb_version(&major, &minor, &patch);
    snprintf(ret_version, STORE_VERSION_BYTES, "%d.%d.%d", major, minor, patch);
}
