/* Output files: written beside their targets, then renamed over them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/file_out.h"
#include "support/file_temp.h"

OutFiles *out_new(Arena *a, Diags *d, bool sync) {
    OutFiles *o = NEW(a, OutFiles);
    o->arena = a;
    o->diags = d;
    o->sync = sync;
    o->lock = -1;
    return o;
}

bool out_fail(OutFiles *o, const char *path, const char *why) {
    o->failed = true;
    return diag_error(o->diags, LOC_NONE, "cannot write '%s': %s", path, why);
}

bool out_failed(const OutFiles *o) {
    return o->failed;
}

/* ---- what is replaced ---- */

void out_force(OutFiles *o) {
    o->force = true;
}

static void keep(OutFiles *o, const struct stat *st) {
    FileId id = {st->st_dev, st->st_ino};
    ARENA_PUSH(o->arena, o->kept, o->n_kept, o->cap_kept, id);
}

void out_keep(OutFiles *o, const char *path) {
    struct stat st;
    if (stat(path, &st) == 0)
        keep(o, &st);
}

void out_keep_map(OutFiles *o, const FileMap *f) {
    const struct stat *st = file_stat(f);
    if (st)
        keep(o, st);
}

bool out_is_kept(const OutFiles *o, const struct stat *st) {
    for (size_t i = 0; i < o->n_kept; i++)
        if (o->kept[i].dev == st->st_dev && o->kept[i].ino == st->st_ino)
            return true;
    return false;
}

/* The target of the link `path`, as a path. */
static const char *link_target(Arena *a, const char *path) {
    char to[4096];
    ssize_t n = readlink(path, to, sizeof to);
    if (n < 0)
        return NULL;
    if (n == sizeof to) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return n && to[0] == '/' ? arena_strf(a, "%.*s", (int)n, to).s
                             : arena_strf(a, "%s/%.*s", path_dir(a, path), (int)n, to).s;
}

const char *out_in_folder(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (!*base) {
        errno = *path ? EISDIR : ENOENT;
        return NULL;
    }
    char *dir = realpath(path_dir(a, path), NULL);
    if (!dir)
        return NULL;
    const char *whole = arena_strf(a, "%s/%s", strcmp(dir, "/") ? dir : "", base).s;
    free(dir);
    return whole;
}

const char *out_resolve(Arena *a, const char *path) {
    enum { MOST_LINKS = 40 }; /* as the kernel has it */
    struct stat st;
    int links = 0;
    while (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        if (links++ == MOST_LINKS) {
            errno = ELOOP;
            return NULL;
        }
        if (!(path = link_target(a, path)))
            return NULL;
    }
    return out_in_folder(a, path);
}

/* ---- streams ---- */

/* All that takes memory comes first: once a file is made, the group knows it. */
static OutFile *add(OutFiles *o, OutFile f) {
    f.lock = f.backup_lock = -1;
    f.sink = NEW(o->arena, Sink);
    f.sink->hash = sha256_begin();
    f.dir = path_dir(o->arena, f.target);
    f.names[0] = arena_alloc(o->arena, temp_room(f.target));
    f.names[1] = arena_alloc(o->arena, temp_room(f.target));
    ARENA_PUSH(o->arena, o->files, o->n, o->cap, f);
    return &o->files[o->n - 1];
}

/* The stream of `fd`, as which the file is open. NULL with errno set: then it is closed, and the
 * group forgets the file. */
static FILE *start(OutFiles *o, OutFile *f, int fd) {
    f->sink->fd = fd;
    f->sink->ahead = o->sync && f->temp;
    f->lock = fd >= 0 && f->temp ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    f->f = fd >= 0 ? sink_stream(f->sink) : NULL;
    int why = errno;
    if (!f->f) {
        if (fd >= 0)
            close(fd);
        out_drop(f);
        o->n--;
    }
    errno = why;
    return f->f;
}

FILE *out_stage(OutFiles *o, OutFile f) {
    OutFile *to = add(o, f);
    int fd = temp_create(to->dir, to->target, to->names[0]);
    to->temp = fd >= 0 ? to->names[0] : NULL;
    return start(o, to, fd);
}

bool out_is_target(const OutFiles *o, const char *target) {
    for (size_t i = 0; i < o->n; i++)
        if (o->files[i].temp && strcmp(o->files[i].target, target) == 0)
            return true;
    return false;
}

/* NULL where there is no reason not to write there. */
static const char *why_not(const OutFiles *o, const char *target, const struct stat *st) {
    if (out_is_target(o, target))
        return "it is named as output twice";
    if (!st)
        return NULL;
    if (S_ISDIR(st->st_mode))
        return strerror(EISDIR);
    if (!S_ISREG(st->st_mode))
        return NULL;
    if (out_is_kept(o, st))
        return "it is an input of this run";
    /* renaming would get around the file's own protection */
    return access(target, W_OK) < 0 ? strerror(errno) : NULL;
}

FILE *out_open(OutFiles *o, const char *path) {
    OutFile f = {.path = arena_str(o->arena, str_from(path)).s};
    struct stat st;
    f.target = *path ? out_resolve(o->arena, path) : NULL;
    if (!f.target) {
        out_fail(o, path, *path ? strerror(errno) : "the name is empty");
        return NULL;
    }
    bool exists = stat(f.target, &st) == 0;
    const char *why = why_not(o, f.target, exists ? &st : NULL);
    if (why) {
        out_fail(o, path, why);
        return NULL;
    }
    if (exists && !S_ISREG(st.st_mode)) {
        OutFile *to = add(o, f);
        f.f = start(o, to, open(f.target, O_WRONLY | O_CLOEXEC | O_NOCTTY));
    } else {
        f.f = out_stage(o, f);
        if (f.f && exists)
            fchmod(o->files[o->n - 1].sink->fd, st.st_mode & 0777);
    }
    if (!f.f)
        out_fail(o, path, strerror(errno));
    return f.f;
}

bool out_check(Arena *a, const char *path, Diags *d) {
    struct stat st;
    const char *target = *path ? out_resolve(a, path) : NULL;
    bool can = target || (errno = *path ? errno : ENOENT, false);
    bool there = can && stat(target, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        can = (errno = EISDIR, false);
    else if (there)
        can = access(target, W_OK) == 0;
    if (can && (!there || S_ISREG(st.st_mode)))
        can = access(path_dir(a, target), W_OK | X_OK) == 0;
    return can || diag_error(d, LOC_NONE, "cannot write '%s': %s", path, strerror(errno));
}

long long out_size(OutFiles *o, const char *path) {
    for (size_t i = 0; i < o->n; i++) {
        const OutFile *f = &o->files[i];
        struct stat st;
        if (f->temp && strcmp(f->path, path) == 0 && (!f->f || fflush(f->f) == 0) &&
            stat(f->temp, &st) == 0)
            return (long long)st.st_size;
    }
    return -1;
}

bool out_is_device(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}
