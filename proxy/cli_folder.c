/*
 * cli_folder.c - can a ledger live in the data folder?
 *
 * Whether the ledger in it can be read is the store's to find out (cli_ledger_check()).  This tries what the ledger will
 * do, creating, writing, flushing, and takes everything away again.  The lock of an instance that runs there is looked
 * at, not kept: a shared one is asked for and let go in the same breath.
 */
#include "cli_commands.h"
#include "serve_ledger.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

/* The ledger's own names (store/env.c).  cli.sh runs check beside a real instance, so a change there shows. */
static const char lock_name[] = "sinkonce.lock", ledger_name[] = "ledger.mdb";

static int report(const char *folder, const char *words)
{
    fprintf(stderr, "SINKONCE_DATA_DIR=%s %s\n", folder, words);
    return EX_IOERR;
}

static int report_errno(const char *folder, const char *words)
{
    fprintf(stderr, "SINKONCE_DATA_DIR=%s %s: %s\n", folder, words, strerror(errno));
    return EX_IOERR;
}

static int check_lock(const char *folder)
{
    char path[1100];
    int code = 0;
    snprintf(path, sizeof path, "%s/%s", folder, lock_name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : report_errno(folder, "has a lock file that cannot be opened");
    if (flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        report(folder, "is in use: another sinkonce runs there");
        code = EX_TEMPFAIL;
    }
    close(fd);
    return code;
}

/* 0, or an errno. */
static int try_writing(const char *folder)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/.check-XXXXXX", folder);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return errno;
    const bool is_written = write(fd, path, strlen(path)) == (ssize_t)strlen(path) && fsync(fd) == 0;
    const int failure = is_written ? 0 : errno;
    close(fd);
    unlink(path);
    return failure;
}

static int check_writing(const char *folder)
{
    errno = try_writing(folder);
    return errno == 0 ? 0 : report_errno(folder, "cannot be written to");
}

bool cli_folder_has_ledger(const char *folder)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/%s", folder, ledger_name);
    return access(path, F_OK) == 0;
}

/* Not a mistake: the ledger grows slowly, and others may make room. */
static void note_space(const struct settings *settings)
{
    struct statvfs space;
    if (statvfs(settings->data_dir, &space) != 0)
        return;
    const uint64_t free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    if (free_bytes < settings->ledger_bytes_max)
        fprintf(stderr, "note: SINKONCE_LEDGER_MAX is more than the %llu MiB that are free in %s\n",
                (unsigned long long)(free_bytes >> 20), settings->data_dir);
}

/* Nor this: somebody may want it so for a trial. */
static void note_place(const char *folder)
{
    const char *fades = serve_ledger_fades(folder);
    if (fades != NULL)
        fprintf(stderr, "note: SINKONCE_DATA_DIR=%s %s\n", folder, fades);
}

static int check_present(const struct settings *settings)
{
    const char *folder = settings->data_dir;
    if (settings->is_ledger_missing_refused && !cli_folder_has_ledger(folder))
        return report(folder, "has no ledger and SINKONCE_LEDGER_MISSING=refuse: has the volume been lost?");
    const int lock_code = check_lock(folder);
    const int writing_code = check_writing(folder);
    note_space(settings);
    note_place(folder);
    return lock_code != 0 ? lock_code : writing_code;
}

/* serve makes the last part of the path (folder_make()), unless a folder that is missing means a lost volume. */
static int check_missing(const struct settings *settings)
{
    char path[1100];
    snprintf(path, sizeof path, "%s", settings->data_dir);
    if (settings->is_ledger_missing_refused)
        return report(settings->data_dir,
                      "does not exist and SINKONCE_LEDGER_MISSING=refuse: has the volume been lost?");
    if (try_writing(dirname(path)) != 0)
        return report(settings->data_dir, "does not exist; make it, owned by the user that runs sinkonce");
    fprintf(stderr, "note: SINKONCE_DATA_DIR=%s does not exist yet: serve makes it\n", settings->data_dir);
    return 0;
}

int cli_folder_check(const struct settings *settings)
{
    struct stat status;
    const int failure = stat(settings->data_dir, &status) == 0 ? 0 : errno;
    if (failure == ENOENT)
        return check_missing(settings);
    if (failure != 0)
        return report_errno(settings->data_dir, "cannot be looked at");
    if (!S_ISDIR(status.st_mode))
        return report(settings->data_dir, "is not a folder");
    return check_present(settings);
}
