/* The only file that asks which system it is for. It asks for each function alone, so that a system
 * of which nobody thought gets what it has. */
#define _GNU_SOURCE
#include "support/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { USUAL_COLUMNS = 80 };

/* ---- time, memory, processors, terminals ---- */

double clock_seconds(void) {
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
                                                   : 0;
}

size_t memory_peak(void) {
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0)
        return 0;
#ifdef __APPLE__
    return (size_t)use.ru_maxrss;
#else
    return (size_t)use.ru_maxrss * 1024;
#endif
}

void *memory_share(size_t n) {
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void memory_unshare(void *p, size_t n) {
    munmap(p, n);
}

int processors_usable(void) {
#ifdef CPU_COUNT
    cpu_set_t may;
    return sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : 1;
#else
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
}

bool stream_is_terminal(FILE *f) {
    return isatty(fileno(f));
}

int stream_columns(FILE *f) {
    struct winsize w;
    return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : USUAL_COLUMNS;
}

/* ---- files ---- */

#ifdef MFD_CLOEXEC
int file_in_memory(const char *name) {
    return memfd_create(name, MFD_CLOEXEC);
}
#else
int file_in_memory(const char *name) {
    (void)name;
    FILE *f = tmpfile();
    int fd = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1, why = errno;
    if (f)
        fclose(f);
    errno = why;
    return fd;
}
#endif

bool file_same_time(const struct stat *a, const struct stat *b) {
#ifdef __APPLE__
    struct timespec s = a->st_mtimespec, t = b->st_mtimespec;
#else
    struct timespec s = a->st_mtim, t = b->st_mtim;
#endif
    return s.tv_sec == t.tv_sec && s.tv_nsec == t.tv_nsec;
}

void file_send(int fd, off_t from, off_t n) {
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(fd, from, n, SYNC_FILE_RANGE_WRITE);
#else
    (void)fd;
    (void)from;
    (void)n;
#endif
}

bool file_reserve(int fd, off_t from, off_t n) {
#ifdef FALLOC_FL_KEEP_SIZE
    int failed;
    do
        failed = fallocate(fd, 0, from, n);
    while (failed && errno == EINTR);
    return !failed || errno == EOPNOTSUPP || errno == ENOSYS;
#else
    (void)fd;
    (void)from;
    (void)n;
    return true;
#endif
}

/* C's libraries agree neither on the function for this nor on the types of what it is given. */
static int stream_close(void *cookie) {
    Stream *s = cookie;
    return s->close(s);
}

#ifdef __APPLE__
static int stream_write(void *cookie, const char *p, int n) {
    Stream *s = cookie;
    return (int)s->write(s, p, (size_t)n);
}

FILE *stream_new(Stream *s) {
    return funopen(s, NULL, stream_write, NULL, stream_close);
}
#else
static ssize_t stream_write(void *cookie, const char *p, size_t n) {
    Stream *s = cookie;
    return (ssize_t)s->write(s, p, n);
}

FILE *stream_new(Stream *s) {
    cookie_io_functions_t with = {.write = stream_write, .close = stream_close};
    return fopencookie(s, "w", with);
}
#endif

/* ---- processes ---- */

void process_follow(pid_t parent, int signal) {
#ifdef PR_SET_PDEATHSIG
    prctl(PR_SET_PDEATHSIG, signal);
#endif
    if (getppid() != parent)
        raise(signal); /* it went before */
}

#ifdef __APPLE__ /* has no sigtimedwait, and drops a SIGCHLD that is blocked */
int signal_take(const sigset_t *of, const struct timespec *most) {
    struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};
    sigset_t come;
    if (sigpending(&come) != 0)
        return -1;
    for (int sig = 1, taken; sig < NSIG; sig++)
        if (sigismember(of, sig) == 1 && sigismember(&come, sig) == 1)
            return sigwait(of, &taken) == 0 ? taken : -1;
    if (most && most->tv_sec == 0 && most->tv_nsec < moment.tv_nsec)
        moment = *most;
    if (moment.tv_nsec > 0)
        nanosleep(&moment, NULL);
    errno = EAGAIN;
    return moment.tv_nsec > 0 ? 0 : -1;
}
#else
int signal_take(const sigset_t *of, const struct timespec *most) {
    return sigtimedwait(of, NULL, most);
}
#endif
