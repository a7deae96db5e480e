/* See compiler/work_folder.h. */
#define _GNU_SOURCE
#include "compiler/work_folder.h"
#include "support/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "qxc-reduce-";

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where) {
    (void)st;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

void remove_folder(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool fresh_folder(const char *path, Diags *d) {
    remove_folder(path);
    return mkdir(path, 0700) == 0 ||
           diag_error(d, LOC_NONE, "cannot make the folder %s: %s", path, strerror(errno));
}

/* The folder, locked for us alone; -1 with errno where it is another's, or somebody is at work in
 * it (EWOULDBLOCK). */
static int hold(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_nlink > 0 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

static void sweep(Arena *a, const char *tmp) {
    DIR *d = opendir(tmp);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!str_starts(str_from(e->d_name), prefix))
            continue;
        const char *path = arena_strf(a, "%s/%s", tmp, e->d_name).s;
        int fd = hold(path);
        if (fd >= 0) {
            remove_folder(path);
            close(fd);
        }
    }
    if (d)
        closedir(d);
}

const char *work_folder(Arena *a, int *lock, Diags *d) {
    enum { TRIES = 10 };
    const char *tmp = temp_folder(), *path = NULL;
    sweep(a, tmp);
    /* Another run may sweep a new one away before it is locked. Where there are no locks nobody
     * sweeps. */
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        char *made = (char *)arena_strf(a, "%s/%sXXXXXX", tmp, prefix).s;
        path = mkdtemp(made);
        if (!path)
            break;
        *lock = hold(path);
        if ((*lock >= 0 || errno != EWOULDBLOCK) && stat(path, &st) == 0)
            return path;
        if (*lock >= 0)
            close(*lock);
        errno = EBUSY;
    }
    diag_error(d, LOC_NONE, "cannot make a folder in %s: %s", tmp, strerror(errno));
    return NULL;
}
