/*
 * cli_folder.c - can a ledger live in the data folder?
 *
 * It tries what the ledger will do, creating, writing, flushing, and takes everything away again.  The lock of an
 * instance that runs there is looked at, not taken: a shared lock is asked for and let go in the same breath.
 */
#include "cli_commands.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

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
    snprintf(path, sizeof path, "%s/lock", folder);
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

static int check_writing(const char *folder)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/.check-XXXXXX", folder);
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return report_errno(folder, "cannot be written to");
    const bool is_written = write(fd, path, strlen(path)) == (ssize_t)strlen(path) && fsync(fd) == 0;
    const int code = is_written ? 0 : report_errno(folder, "cannot be written to");
    close(fd);
    unlink(path);
    return code;
}

/* A fresh volume has lost+found; both are what a lost ledger looks like. */
static bool is_empty(const char *folder)
{
    DIR *entries = opendir(folder);
    bool is_nothing_found = true;
    if (entries == NULL)
        return false;
    for (const struct dirent *entry; is_nothing_found && (entry = readdir(entries)) != NULL;)
        is_nothing_found = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                           strcmp(entry->d_name, "lost+found") == 0;
    closedir(entries);
    return is_nothing_found;
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

static int check_present(const struct settings *settings)
{
    const char *folder = settings->data_dir;
    if (settings->is_ledger_missing_refused && is_empty(folder))
        return report(folder, "is empty and SINKONCE_LEDGER_MISSING=refuse: has the volume been lost?");
    const int lock_code = check_lock(folder);
    const int writing_code = check_writing(folder);
    note_space(settings);
    return lock_code != 0 ? lock_code : writing_code;
}

static int check_absent(const struct settings *settings)
{
    const char *folder = settings->data_dir;
    if (settings->is_ledger_missing_refused)
        return report(folder, "does not exist and SINKONCE_LEDGER_MISSING=refuse: has the volume been lost?");
    if (mkdir(folder, 0700) != 0)
        return report_errno(folder, "does not exist and cannot be created");
    const int code = check_writing(folder);
    rmdir(folder);
    return code;
}

int cli_folder_check(const struct settings *settings)
{
    struct stat status;
    if (stat(settings->data_dir, &status) != 0)
        return errno == ENOENT ? check_absent(settings)
                               : report_errno(settings->data_dir, "cannot be looked at");
    if (!S_ISDIR(status.st_mode))
        return report(settings->data_dir, "is not a folder");
    return check_present(settings);
}
