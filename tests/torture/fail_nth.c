/*
 * fail_nth.c - a library to preload: the Nth call of one kind fails (F-10).
 *
 * FAIL_NTH names a file that the driver and this library share as memory (struct plan, run.py knows its layout).  The
 * driver writes which call fails, from which one on, how many in a row and with what; the library counts every call, so
 * that a run without a fault says how many there are.
 *
 * Only calls from the program and the libraries that do its work count (counted_objects below), so that the start of the
 * TLS library, which we never use in these runs, does not drown them.  Calls on descriptors that cannot fail in that way
 * (the counter of an eventfd, the pair that a signal wakes the loop by) are left alone: a fault that the kernel cannot produce proves nothing.
 *
 * FAIL_NTH_TRACE set: the stack of each call that failed goes to stderr (addr2line reads it).
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Every kind of call, in the order of the plan's counters. */
/* clang-format off */
#define CALLS(X)                                                                                             \
    X(malloc) X(calloc) X(realloc) X(strdup) X(open) X(stat) X(fstat) X(statfs) X(flock) X(rename) X(read)   \
    X(readv) X(write) X(writev) X(pread) X(pwrite) X(lseek) X(fsync) X(fdatasync) X(ftruncate) X(fallocate)  \
    X(mmap) X(socket) X(socketpair) X(bind) X(listen) X(connect) X(accept4) X(getsockopt) X(setsockopt)      \
    X(getsockname) X(send) X(sendmsg) X(recv) X(epoll_create1) X(epoll_ctl) X(epoll_wait) X(eventfd)         \
    X(pipe2) X(getrandom) X(pthread_create)
/* clang-format on */

enum call {
#define ONE(name) CALL_##name,
    CALLS(ONE)
#undef ONE
        CALL_COUNT
};

enum { SITES_MAX = 16384, FRAMES_MAX = 24, FRAMES_OURS = 2, FRAMES_OF_SITE = 8 };

struct plan {
    _Atomic int32_t call;   /* which kind fails; negative: none */
    _Atomic int32_t error;  /* the number that it fails with */
    _Atomic uint32_t nth;   /* 1: the first call from now on */
    _Atomic uint32_t burst; /* how many in a row */
    _Atomic uint32_t fired;
    _Atomic uint32_t call_count;
    struct {
        char name[24];
        _Atomic uint32_t seen;
    } calls[CALL_COUNT];
    _Atomic uint32_t is_noting; /* every call is written down with its place in the program */
    _Atomic uint32_t site_count;
    struct {
        uint32_t call, number;
        uint64_t stack; /* equal for calls from the same place by the same way */
    } sites[SITES_MAX];
};

static const char *const names[] = {
#define ONE(name) #name,
    CALLS(ONE)
#undef ONE
};

/* The C library comes first. */
static const char *const counted_objects[] = { "libc.so", "libevent", "libcurl", "libjansson",
                                               "liblmdb", "libz.so",  "libzstd" };

enum { RANGES_MAX = 16 };
static struct {
    uintptr_t from, to;
} ranges[RANGES_MAX];
static size_t range_count;
static struct plan *plan; /* NULL: nothing fails */
static bool is_traced;

/* ---- the functions that ours stand before ----------------------------------------------------------------------- */

static void *real(enum call call)
{
    static void *functions[CALL_COUNT];
    if (functions[call] == NULL)
        functions[call] = dlsym(RTLD_NEXT, names[call]);
    return functions[call];
}

#define REAL(name) ((__typeof__(&name))real(CALL_##name))

/* ---- the plan --------------------------------------------------------------------------------------------------- */

/* A sanitizer's threads start with allocations of the C library that it cannot do without: there they do not count. */
extern void *__interceptor_malloc(size_t byte_count) __attribute__((weak));

static int add_ranges(struct dl_phdr_info *info, size_t info_bytes, void *context)
{
    bool is_counted = info->dlpi_name[0] == '\0' && info->dlpi_addr != 0; /* the program itself */
    (void)info_bytes;
    (void)context;
    for (size_t i = __interceptor_malloc != NULL; i < sizeof counted_objects / sizeof counted_objects[0]; i++)
        is_counted = is_counted || strstr(info->dlpi_name, counted_objects[i]) != NULL;
    for (size_t i = 0; is_counted && i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0)
            continue;
        ranges[range_count].from = info->dlpi_addr + segment->p_vaddr;
        ranges[range_count++].to = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
    }
    return 0;
}

__attribute__((constructor)) static void plan_open(void)
{
    const char *path = getenv("FAIL_NTH");
    void *warm[1];
    is_traced =
        backtrace(warm, 1) >= 0 && getenv("FAIL_NTH_TRACE") != NULL; /* the first backtrace allocates */
    for (int call = 0; call < CALL_COUNT; call++)
        (void)real((enum call)call);
    dl_iterate_phdr(add_ranges, NULL);
    int fd = path == NULL ? -1 : REAL(open)(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *memory = REAL(mmap)(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        abort();
    struct plan *opened = memory;
    for (int call = 0; call < CALL_COUNT; call++)
        strcpy(opened->calls[call].name, names[call]);
    atomic_store(&opened->call_count, CALL_COUNT);
    plan = opened;
}

static void trace(void)
{
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    if (count > FRAMES_OURS)
        backtrace_symbols_fd(frames + FRAMES_OURS, count - FRAMES_OURS, STDERR_FILENO);
}

static void note(enum call call, uint32_t number)
{
    void *frames[FRAMES_OURS + FRAMES_OF_SITE];
    uint32_t at = atomic_fetch_add(&plan->site_count, 1);
    if (at >= SITES_MAX)
        return;
    int count = backtrace(frames, FRAMES_OURS + FRAMES_OF_SITE);
    uint64_t stack = 14695981039346656037u; /* FNV-1a */
    for (int i = FRAMES_OURS; i < count; i++)
        stack = (stack ^ (uintptr_t)frames[i]) * 1099511628211u;
    plan->sites[at].call = (uint32_t)call;
    plan->sites[at].number = number;
    plan->sites[at].stack = stack;
}

/* True: this call is to fail, and errno says why. */
static bool is_failing(enum call call, const void *caller)
{
    bool is_counted = false;
    for (size_t i = 0; plan != NULL && i < range_count; i++)
        is_counted = is_counted || ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to);
    if (!is_counted)
        return false;
    uint32_t number = atomic_fetch_add(&plan->calls[call].seen, 1) + 1;
    uint32_t nth = atomic_load(&plan->nth);
    if (atomic_load(&plan->is_noting) != 0)
        note(call, number);
    if (atomic_load(&plan->call) != (int32_t)call || number < nth ||
        number - nth >= atomic_load(&plan->burst))
        return false;
    atomic_fetch_add(&plan->fired, 1);
    if (is_traced)
        trace();
    errno = atomic_load(&plan->error);
    return true;
}

#define FAILS(name) is_failing(CALL_##name, __builtin_return_address(0))

/* A counter (eventfd) or a pair of sockets within the process has no disk and no network to fail. */
static bool can_fail(int fd)
{
    struct stat file;
    struct sockaddr_storage address;
    socklen_t byte_count = sizeof address;
    int saved = errno;
    bool is_file = REAL(fstat)(fd, &file) == 0 && S_ISREG(file.st_mode);
    bool is_inet =
        REAL(getsockname)(fd, (struct sockaddr *)&address, &byte_count) == 0 && address.ss_family != AF_UNIX;
    errno = saved;
    return is_file || is_inet;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* dlsym() allocates, so these are found by the linker: the C library's own, or those of a sanitizer before it. */
#define FUNCTION(type, name, parameters, arguments)                                                          \
    extern type __libc_##name parameters;                                                                    \
    extern type __interceptor_##name parameters __attribute__((weak));                                       \
    type name parameters                                                                                     \
    {                                                                                                        \
        if (FAILS(name))                                                                                     \
            return NULL;                                                                                     \
        return __interceptor_##name != NULL ? __interceptor_##name arguments : __libc_##name arguments;      \
    }
FUNCTION(void *, malloc, (size_t byte_count), (byte_count))
FUNCTION(void *, calloc, (size_t count, size_t byte_count), (count, byte_count))
FUNCTION(void *, realloc, (void *old, size_t byte_count), (old, byte_count))

char *strdup(const char *text)
{
    return FAILS(strdup) ? NULL : REAL(strdup)(text);
}

void *mmap(void *address, size_t byte_count, int protection, int flags, int fd, off_t offset)
{
    return FAILS(mmap) ? MAP_FAILED : REAL(mmap)(address, byte_count, protection, flags, fd, offset);
}

/* ---- the rest: each fails with -1, or goes through --------------------------------------------------------------- */

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return FAILS(open) ? -1 : REAL(open)(path, flags, mode);
}

#define THROUGH(type, name, parameters, arguments)                                                           \
    type name parameters                                                                                     \
    {                                                                                                        \
        return FAILS(name) ? -1 : REAL(name) arguments;                                                      \
    }
#define THROUGH_ABLE(type, name, parameters, arguments)                                                      \
    type name parameters                                                                                     \
    {                                                                                                        \
        return can_fail(fd) && FAILS(name) ? -1 : REAL(name) arguments;                                      \
    }

THROUGH(int, stat, (const char *restrict path, struct stat *restrict file), (path, file))
THROUGH(int, fstat, (int fd, struct stat *file), (fd, file))
THROUGH(int, statfs, (const char *path, struct statfs *fs), (path, fs))
THROUGH(int, flock, (int fd, int how), (fd, how))
THROUGH(int, rename, (const char *from, const char *to), (from, to))
THROUGH_ABLE(ssize_t, read, (int fd, void *bytes, size_t byte_count), (fd, bytes, byte_count))
THROUGH_ABLE(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
THROUGH_ABLE(ssize_t, write, (int fd, const void *bytes, size_t byte_count), (fd, bytes, byte_count))
THROUGH_ABLE(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
THROUGH(ssize_t, pread, (int fd, void *bytes, size_t byte_count, off_t at), (fd, bytes, byte_count, at))
THROUGH(ssize_t, pwrite, (int fd, const void *bytes, size_t byte_count, off_t at),
        (fd, bytes, byte_count, at))
THROUGH(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence))
THROUGH(int, fsync, (int fd), (fd))
THROUGH(int, fdatasync, (int fd), (fd))
THROUGH(int, ftruncate, (int fd, off_t byte_count), (fd, byte_count))
THROUGH(int, fallocate, (int fd, int mode, off_t from, off_t byte_count), (fd, mode, from, byte_count))
THROUGH(int, socket, (int family, int type, int protocol), (family, type, protocol))
THROUGH(int, socketpair, (int family, int type, int protocol, int fds[2]), (family, type, protocol, fds))
THROUGH(int, bind, (int fd, const struct sockaddr *address, socklen_t byte_count), (fd, address, byte_count))
THROUGH(int, listen, (int fd, int backlog), (fd, backlog))
THROUGH(int, connect, (int fd, const struct sockaddr *address, socklen_t byte_count),
        (fd, address, byte_count))
THROUGH(int, accept4, (int fd, struct sockaddr *restrict address, socklen_t *restrict byte_count, int flags),
        (fd, address, byte_count, flags))
THROUGH(int, getsockopt, (int fd, int level, int name, void *restrict value, socklen_t *restrict byte_count),
        (fd, level, name, value, byte_count))
THROUGH(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t byte_count),
        (fd, level, name, value, byte_count))
THROUGH(int, getsockname, (int fd, struct sockaddr *restrict address, socklen_t *restrict byte_count),
        (fd, address, byte_count))
THROUGH(ssize_t, send, (int fd, const void *bytes, size_t byte_count, int flags),
        (fd, bytes, byte_count, flags))
THROUGH(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
THROUGH(ssize_t, recv, (int fd, void *bytes, size_t byte_count, int flags), (fd, bytes, byte_count, flags))
THROUGH(int, epoll_create1, (int flags), (flags))
THROUGH(int, epoll_ctl, (int epoll, int what, int fd, struct epoll_event *event), (epoll, what, fd, event))
THROUGH(int, epoll_wait, (int epoll, struct epoll_event *events, int max, int wait_ms),
        (epoll, events, max, wait_ms))
int eventfd(unsigned count, int flags);
THROUGH(int, eventfd, (unsigned count, int flags), (count, flags))
THROUGH(int, pipe2, (int fds[2], int flags), (fds, flags))
ssize_t getrandom(void *bytes, size_t byte_count, unsigned flags);
THROUGH(ssize_t, getrandom, (void *bytes, size_t byte_count, unsigned flags), (bytes, byte_count, flags))

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict argument)
{
    return FAILS(pthread_create) ? errno : REAL(pthread_create)(thread, attributes, run, argument);
}
