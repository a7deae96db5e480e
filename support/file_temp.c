/* See support/file_temp.h. */
#define _GNU_SOURCE
#include "support/file_temp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.h"

static const char suffix[] = ".qxc-tmp";
enum { TRIES = 1000 };

/* ---- signals ---- */

/* What a signal that ends the process removes: names of files that we made and that have not become
 * their targets. A handler is handed nothing but the number of the signal, so this is global; it
 * may run at any time, in any thread. What has no slot, or none yet, is left for the next run. */
enum { SLOTS = 16 };
static const char *_Atomic staged[SLOTS];

static void remember(const char *name) {
    for (int i = 0; i < SLOTS; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&staged[i], &none, name))
            return;
    }
}

void temp_forget(const char *name) {
    for (int i = 0; i < SLOTS; i++) {
        const char *same = name;
        if (atomic_compare_exchange_strong(&staged[i], &same, NULL))
            return;
    }
}

void temp_remove(const char *name) {
    unlink(name);
    temp_forget(name);
}

/* SA_RESETHAND has brought the default action back: the process ends as it would have. */
static void on_signal(int sig) {
    for (int i = 0; i < SLOTS; i++) {
        const char *name = atomic_load(&staged[i]);
        if (name)
            unlink(name);
    }
    raise(sig);
}

void out_catch_signals(void) {
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXCPU};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER},
                     old;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(ends[i], &act, NULL); /* nohup's and others' stay */
}

/* ---- what killed runs left ---- */

static bool is_temp(const char *name) {
    return name[0] == '.' && str_ends(str_from(name), suffix);
}

static void remove_dead(int dir, const char *name) {
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(dir, name, 0);
    if (fd >= 0)
        close(fd);
}

static void sweep(const char *folder) {
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_temp(e->d_name))
            remove_dead(dirfd(d), e->d_name);
    if (d)
        closedir(d);
}

/* ---- names ---- */

size_t temp_room(const char *target) {
    enum { MORE = 64 }; /* two numbers, the suffix */
    return strlen(target) + sizeof suffix + MORE;
}

/* ".NAME.PID-N.qxc-tmp" beside the target. */
static void put_name(const char *target, int n, char *name) {
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    snprintf(name, temp_room(target), "%.*s.%.200s.%ld-%d%s", (int)(base - target), target, base,
             (long)getpid(), n, suffix);
}

/* Whether the lock is ours and the file is still there: another run may have looked at it before it
 * was locked, and taken it for a dead one. Where there are no locks nobody removes anything. */
static bool hold(int fd) {
    struct stat st;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

/* O_EXCL and the usual mode bits rather than mkstemp, so that the user's umask decides who may read
 * the result. A file of that name that is there is another's, so the name is remembered once the
 * file is made; a signal waits for both. */
static int create(const char *name) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), why = errno;
    if (fd >= 0)
        remember(name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return fd;
}

int temp_create(const char *dir, const char *target, char *name) {
    sweep(dir);
    for (int n = 0; n < TRIES; n++) {
        put_name(target, n, name);
        int fd = create(name);
        if (fd >= 0 && hold(fd))
            return fd;
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0) {
            temp_forget(name);
            close(fd);
        }
    }
    errno = EEXIST;
    return -1;
}

int temp_unnamed(const char *dir) {
    char target[PATH_MAX], name[PATH_MAX + 128];
    if ((size_t)snprintf(target, sizeof target, "%s/scratch", dir) >= sizeof target) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = temp_create(dir, target, name);
    if (fd >= 0)
        temp_remove(name);
    return fd;
}

bool temp_link(const char *target, char *name, int *lock) {
    *lock = open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (*lock >= 0)
        flock(*lock, LOCK_SH | LOCK_NB);
    for (int n = 0; n < TRIES; n++) {
        put_name(target, n, name);
        if (link(target, name) == 0)
            return true;
        if (errno != EEXIST)
            break;
    }
    int why = errno;
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
    errno = why;
    return false;
}
