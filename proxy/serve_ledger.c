/*
 * serve_ledger.c - the ledger as the settings want it opened, and what the log tells of it.
 */
#include "serve_ledger.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sysexits.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

enum { LOCK_WAIT_MS = 3000 }; /* who holds the ledger's folder may only be looking: sinkonce check */

/* The last part of the path, durably; its parent must be there.  What goes wrong the ledger will say better. */
static void folder_make(const char *folder)
{
    char path[PATH_MAX];
    if (mkdir(folder, 0700) != 0)
        return;
    snprintf(path, sizeof path, "%s", folder);
    int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

/* What the prober resolves, the ledger only holds. */
static enum doubt_policy policy_of(enum doubt_setting setting)
{
    return setting == IN_DOUBT_PROBE ? POLICY_HOLD : (enum doubt_policy)setting;
}

static void log_opened(const struct store *store)
{
    struct store_figures figures;
    store_figures_get(store, &figures);
    LOG_EVENT(LOG_LEVEL_INFO, figures.boot_count <= 1 ? "ledger.created" : "ledger.open",
              figures.boot_count <= 1 ? "a new ledger: every record is unknown to it" : "the ledger is open",
              log_text("id", store_id(store)), log_integer("boot", (int64_t)figures.boot_count),
              log_integer("in_doubt", (int64_t)figures.in_doubt_records),
              log_integer("used_bytes", (int64_t)figures.used_bytes));
    if (figures.in_doubt_records > 0)
        LOG_EVENT(LOG_LEVEL_WARN, "ledger.recovered",
                  "records are in doubt; see GET /in-doubt of the admin port",
                  log_integer("in_doubt", (int64_t)figures.in_doubt_records));
}

struct store_options serve_ledger_options(const struct settings *settings)
{
    return (struct store_options){
        .folder = settings->data_dir,
        .scope = settings->scope,
        .target = settings->target.name,
        .former_target = settings->target_was.name,
        .ledger_bytes_max = settings->ledger_bytes_max,
        .is_missing_refused = settings->is_ledger_missing_refused,
        .policy = policy_of(settings->in_doubt),
        .in_doubt_max = settings->in_doubt_max,
        .partitions_max = settings->partitions_max,
        .marks = (uint32_t)settings->marks,
        .is_identity_checked = settings->identity != IDENTITY_OFF,
        .window = settings->window,
        .is_first_sight_held = settings->is_first_sight_held,
        .replies = (uint32_t)settings->replies,
        .reply_bytes_max = (uint32_t)settings->reply_bytes,
        .commit_delay_us = (uint32_t)settings->commit_delay_ms * 1000,
    };
}

/* Numbers of linux/magic.h. */
const char *serve_ledger_fades(const char *folder)
{
    enum { TMPFS = 0x01021994, RAMFS = 0x858458F6, OVERLAYFS = 0x794C7630 };
    struct statfs fs;
    if (statfs(folder, &fs) != 0)
        return NULL;
    switch ((unsigned)fs.f_type) {
    case TMPFS:
    case (unsigned)RAMFS:
        return "lies in memory (tmpfs): a restart of the machine forgets the ledger, and what was applied "
               "may be sent again";
    case OVERLAYFS:
        return "lies in a container's own layer (overlayfs): the ledger goes with it, and what was applied "
               "may be sent again";
    default:
        return NULL;
    }
}

static void log_place(const char *folder)
{
    const char *fades = serve_ledger_fades(folder);
    if (fades != NULL)
        LOG_EVENT(LOG_LEVEL_WARN, "config.risky", fades, log_text("SINKONCE_DATA_DIR", folder));
}

int serve_ledger_open(const struct settings *settings, struct store **ret_store)
{
    struct store_options options = serve_ledger_options(settings);
    char why[512] = "";
    options.lock_wait_ms = LOCK_WAIT_MS;
    if (!settings->is_ledger_missing_refused)
        folder_make(settings->data_dir);
    enum store_open_status status = store_open(&options, ret_store, why, sizeof why);
    if (status == STORE_OPENED) {
        log_opened(*ret_store);
        log_place(settings->data_dir);
        return EX_OK;
    }
    LOG_EVENT(LOG_LEVEL_ERROR, status == STORE_LOCKED ? "ledger.locked" : "ledger.error", why,
              log_text("folder", settings->data_dir));
    return status == STORE_LOCKED ? EX_TEMPFAIL : EX_IOERR;
}

/* Who read that the ledger fails should also read that it does no more.  One that comes and goes is told of now and
 * then, but its last end always. */
void serve_ledger_tell(const struct store *store, struct ledger_told *told, uint64_t now_ns)
{
    const uint64_t pause_ns = (uint64_t)10 * MS_PER_S * NS_PER_MS;
    struct store_figures figures;
    store_figures_get(store, &figures);
    if (figures.refusal_count == told->refusal_count || figures.is_full || figures.is_failing ||
        now_ns < told->again_ns)
        return;
    LOG_EVENT(LOG_LEVEL_INFO, "ledger.resumed", "the ledger takes new writes again",
              log_integer("refused_ms", (int64_t)figures.refusal_ms),
              log_integer("times", (int64_t)(figures.refusal_count - told->refusal_count)),
              log_text("detail", figures.failure));
    told->refusal_count = figures.refusal_count;
    told->again_ns = now_ns + pause_ns;
}
