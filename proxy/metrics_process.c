/*
 * metrics_process.c - reads getrusage() and /proc for the process_* metrics.
 *
 * Each call costs a few small reads of /proc, which never wait for a disk; it runs once per scrape.
 * Source: proc(5).
 */
#include "metrics_process.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static uint64_t cpu_ns(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
}

static void memory_read(struct process_figures *figures)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t total_pages, resident_pages;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm == NULL)
        return;
    if (fscanf(statm, "%" SCNu64 " %" SCNu64, &total_pages, &resident_pages) == 2) {
        figures->virtual_bytes = total_pages * page_bytes;
        figures->resident_bytes = resident_pages * page_bytes;
    }
    fclose(statm);
}

static uint64_t open_fd_count(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without the folder's own */
}

static uint64_t fd_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 0;
}

/* Clock ticks from boot to our start: field 22 of /proc/self/stat, counted behind the command's closing bracket,
 * because the command itself may hold spaces and brackets. */
static uint64_t start_ticks(void)
{
    char line[1024];
    uint64_t ticks = 0;
    FILE *stat = fopen("/proc/self/stat", "re");
    if (stat == NULL)
        return 0;
    const char *at = fgets(line, sizeof line, stat) == NULL ? NULL : strrchr(line, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    if (at != NULL && sscanf(at, "%" SCNu64, &ticks) != 1)
        ticks = 0;
    fclose(stat);
    return ticks;
}

static uint64_t boot_seconds(void)
{
    char line[256];
    uint64_t seconds = 0;
    FILE *stat = fopen("/proc/stat", "re");
    if (stat == NULL)
        return 0;
    while (seconds == 0 && fgets(line, sizeof line, stat) != NULL) {
        if (sscanf(line, "btime %" SCNu64, &seconds) != 1)
            seconds = 0;
    }
    fclose(stat);
    return seconds;
}

void process_figures_get(struct process_figures *ret_figures)
{
    uint64_t boot = boot_seconds();
    uint64_t ticks = start_ticks();
    *ret_figures =
        (struct process_figures){ .cpu_ns = cpu_ns(), .open_fds = open_fd_count(), .max_fds = fd_limit() };
    memory_read(ret_figures);
    if (boot != 0 && ticks != 0)
        ret_figures->start_seconds = (double)boot + (double)ticks / (double)sysconf(_SC_CLK_TCK);
}
