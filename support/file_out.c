/* Output files: written beside their targets, then renamed over them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* ---- streams ---- */

/* Starts writing to the disk what there is of a large file, so that there is less to wait for once
 * all of it is there. Pipes and some file systems refuse, which costs nothing. */
static void send_ahead(Sink *s) {
    enum { AHEAD = 8 << 20 };
    if (!s->ahead || s->size - s->sent < AHEAD)
        return;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(s->fd, s->sent, s->size - s->sent, SYNC_FILE_RANGE_WRITE);
#endif
    s->sent = s->size;
}

static ssize_t sink_write(void *cookie, const char *p, size_t n) {
    Sink *s = cookie;
    size_t done = 0;
    while (done < n) {
        ssize_t k = write(s->fd, p + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            s->error = s->error ? s->error : errno;
        if (k <= 0)
            break;
        if (s->hashed)
            sha256_more(&s->hash, p + done, (size_t)k);
        done += (size_t)k;
        s->size += k;
        send_ahead(s);
    }
    return (ssize_t)done;
}

static int sink_close(void *cookie) {
    Sink *s = cookie;
    int failed = close(s->fd);
    if (failed && !s->error)
        s->error = errno;
    return failed;
}

static FILE *sink_stream(Sink *s) {
    return fopencookie(s, "w", (cookie_io_functions_t){.write = sink_write, .close = sink_close});
}

static FILE *add_file(OutFiles *o, OutFile f, int fd) {
    f.sink = NEW(o->arena, Sink);
    f.sink->fd = fd;
    f.sink->ahead = o->sync && f.temp;
    f.sink->hash = sha256_begin();
    f.backup_lock = -1;
    f.lock = f.temp ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    f.f = sink_stream(f.sink);
    if (f.f)
        ARENA_PUSH(o->arena, o->files, o->n, o->cap, f);
    return f.f;
}

FILE *out_stage(OutFiles *o, OutFile f) {
    int fd = temp_create(o->arena, f.target, &f.temp);
    FILE *stream = fd >= 0 ? add_file(o, f, fd) : NULL;
    if (fd >= 0 && !stream) {
        close(fd);
        temp_remove(f.temp);
    }
    return stream;
}

static bool is_target(const OutFiles *o, const char *target) {
    for (size_t i = 0; i < o->n; i++)
        if (o->files[i].temp && strcmp(o->files[i].target, target) == 0)
            return true;
    return false;
}

/* NULL where there is no reason not to write there. */
static const char *why_not(const OutFiles *o, const char *target, const struct stat *st) {
    if (is_target(o, target))
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
        int fd = open(f.target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        f.f = fd >= 0 ? add_file(o, f, fd) : NULL;
        if (fd >= 0 && !f.f)
            close(fd);
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

/* Flushes and closes one file; a full disk shows here at the latest. */
static bool finish(OutFiles *o, OutFile *f) {
    Sink *s = f->sink;
    bool good = fflush(f->f) == 0 && !ferror(f->f);
    if (good && o->sync && f->temp && fsync(s->fd) != 0) {
        good = false;
        s->error = errno;
    }
    good = fclose(f->f) == 0 && good;
    f->f = NULL;
    return good || out_fail(o, f->path, strerror(s->error ? s->error : EIO));
}

/* Keeps the old file under a second name, so that a failed rename of a later file of the group
 * can be undone. */
static bool keep_old(OutFiles *o, OutFile *f) {
    f->backup = temp_link(o->arena, f->target, &f->backup_lock);
    return f->backup || errno == ENOENT || out_fail(o, f->path, strerror(errno));
}

static bool rename_each(OutFiles *o) {
    for (size_t i = 0; i < o->n; i++) {
        OutFile *f = &o->files[i];
        if (!f->temp)
            continue;
        if (o->n > 1 && !keep_old(o, f))
            return false;
        if (rename(f->temp, f->target) < 0)
            return out_fail(o, f->path, strerror(errno));
        temp_forget(f->temp);
        f->renamed = true;
    }
    return true;
}

static void close_lock(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void forget_old(OutFile *f, bool remove) {
    if (f->backup && remove)
        unlink(f->backup);
    close_lock(&f->backup_lock);
    f->backup = NULL;
}

/* Back to what was there. */
static void undo(OutFile *f) {
    if (f->renamed && f->backup)
        rename(f->backup, f->target);
    else if (f->renamed)
        unlink(f->target);
    forget_old(f, !f->renamed);
    f->temp = f->renamed ? NULL : f->temp;
}

/* All or none: a signal has to wait the moment that renaming takes. */
static bool rename_all(OutFiles *o) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool good = rename_each(o);
    for (size_t i = o->n; i-- > 0;)
        if (good) {
            forget_old(&o->files[i], true);
            close_lock(&o->files[i].lock);
        } else {
            undo(&o->files[i]);
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

static void sync_folder(OutFiles *o, const OutFile *f) {
    int fd = open(path_dir(o->arena, f->target), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd); /* not every file system can; the data itself is safe */
        close(fd);
    }
}

bool out_commit(OutFiles *o) {
    bool good = true;
    for (size_t i = 0; i < o->n; i++)
        if (o->files[i].f)
            good &= finish(o, &o->files[i]);
    if (!good || !rename_all(o)) {
        out_abort(o);
        return false;
    }
    close_lock(&o->lock);
    for (size_t i = 0; i < o->n; i++)
        if (o->sync && o->files[i].temp)
            sync_folder(o, &o->files[i]);
    o->n = 0;
    return true;
}

void out_drop(OutFile *f) {
    if (f->f)
        fclose(f->f);
    if (f->temp)
        temp_remove(f->temp);
    close_lock(&f->lock);
    f->f = NULL;
    f->temp = NULL;
}

void out_abort(OutFiles *o) {
    for (size_t i = o->n; i-- > 0;)
        out_drop(&o->files[i]);
    close_lock(&o->lock);
    o->n = 0;
}

bool out_is_device(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}
