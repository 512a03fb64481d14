/*
 * disk_fault.c - a disk that is slow, broken or full while a test says so.  For LD_PRELOAD.
 *
 * DISK_FAULT names a file of three 32-bit numbers that this library maps.  The test writes two: milliseconds by which each
 * sync is late, and the error number with which writes and syncs of regular files fail (0: they do not).  The third tells
 * it how many syncs are late now.  They look at their order again and again: they come back when the test takes it back.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static volatile uint32_t *orders; /* {delay_ms, error, late_count}; NULL: none */

__attribute__((constructor)) static void orders_map(void)
{
    const char *path = getenv("DISK_FAULT");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    void *page = mmap(NULL, 3 * sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        orders = page;
}

static int is_failing(int fd)
{
    struct stat about;

    if (orders == NULL || orders[1] == 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return 0;
    errno = (int)orders[1];
    return 1;
}

static void sync_delay(void)
{
    enum { LOOK_MS = 10 };

    if (orders == NULL || orders[0] == 0)
        return;
    __atomic_add_fetch(&orders[2], 1, __ATOMIC_SEQ_CST);
    for (uint32_t waited_ms = 0; waited_ms < orders[0]; waited_ms += LOOK_MS) {
        uint32_t left_ms = orders[0] - waited_ms;
        struct timespec delay = { 0, (long)(left_ms < LOOK_MS ? left_ms : LOOK_MS) * 1000000 };
        nanosleep(&delay, NULL);
    }
    __atomic_sub_fetch(&orders[2], 1, __ATOMIC_SEQ_CST);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fdatasync(int fd)
{
    sync_delay();
    return is_failing(fd) ? -1 : NEXT(fdatasync)(fd);
}

int fsync(int fd)
{
    sync_delay();
    return is_failing(fd) ? -1 : NEXT(fsync)(fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return is_failing(fd) ? -1 : NEXT(pwrite)(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    return is_failing(fd) ? -1 : NEXT(pwrite64)(fd, bytes, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return is_failing(fd) ? -1 : NEXT(writev)(fd, parts, count);
}
