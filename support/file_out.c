/* Output files: written beside their targets, then renamed over them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/file.h"

/* Where a stream's bytes go. stdio remembers that a write failed, not why. */
typedef struct Sink {
    int fd;
    int error;  /* errno of the first write that failed, 0 */
    bool ahead; /* bytes are sent to the disk before all are written */
    off_t size; /* bytes written */
    off_t sent; /* of these, so many are on their way to the disk */
} Sink;

typedef struct OutFile {
    const char *path;   /* as the user wrote it, for messages */
    const char *target; /* with links resolved, so that a link stays a link */
    const char *temp;   /* NULL for a device or pipe, which is written directly */
    const char *backup; /* the old file under another name while a group is renamed, or NULL */
    Sink *sink;
    FILE *f; /* NULL once closed */
    bool renamed;
} OutFile;

struct OutFiles {
    Arena *arena;
    Diags *diags;
    bool sync;
    OutFile *files;
    size_t n, cap;
};

OutFiles *out_new(Arena *a, Diags *d, bool sync) {
    OutFiles *o = NEW(a, OutFiles);
    o->arena = a;
    o->diags = d;
    o->sync = sync;
    return o;
}

static bool fail(OutFiles *o, const char *path, const char *why) {
    return diag_error(o->diags, LOC_NONE, "cannot write '%s': %s", path, why);
}

/* A name in the target's folder that nobody uses: ".NAME.PID-N.KIND". */
static const char *side_name(OutFiles *o, const char *target, const char *kind, unsigned n) {
    const char *slash = strrchr(target, '/');
    const char *base = slash ? slash + 1 : target;
    const char *dir = path_dir(o->arena, target);
    return arena_strf(o->arena, "%s/.%.200s.%ld-%u.%s", dir, base, (long)getpid(), n, kind).s;
}

/* Creates the temporary file. O_EXCL and the usual mode bits rather than mkstemp, so that the
 * user's umask decides who may read the result. */
static int create_temp(OutFiles *o, OutFile *f) {
    int fd = -1;
    for (unsigned n = 0; n < 1000; n++) {
        f->temp = side_name(o, f->target, "tmp", n);
        fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            break;
    }
    return fd;
}

/* Opens the file to write to; -1 with errno set. */
static int open_target(OutFiles *o, OutFile *f) {
    char *real = realpath(f->path, NULL);
    struct stat st;
    bool exists = real && stat(real, &st) == 0;
    f->target = arena_str(o->arena, str_from(exists ? real : f->path)).s;
    free(real);
    if (!exists)
        return create_temp(o, f);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (!S_ISREG(st.st_mode))
        return open(f->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (access(f->target, W_OK) < 0)
        return -1; /* renaming would get around the file's own protection */
    int fd = create_temp(o, f);
    if (fd >= 0 && fchmod(fd, st.st_mode & 0777) < 0) {
        close(fd);
        unlink(f->temp);
        return -1;
    }
    return fd;
}

static bool same_target(const OutFiles *o, const char *target) {
    for (size_t i = 0; i < o->n; i++)
        if (o->files[i].temp && strcmp(o->files[i].target, target) == 0)
            return true;
    return false;
}

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

FILE *out_open(OutFiles *o, const char *path) {
    OutFile f = {.path = arena_str(o->arena, str_from(path)).s};
    if (!*path) {
        fail(o, path, "the name is empty");
        return NULL;
    }
    int fd = open_target(o, &f);
    bool twice = fd >= 0 && f.temp && same_target(o, f.target);
    f.sink = NEW(o->arena, Sink);
    f.sink->fd = fd;
    f.sink->ahead = o->sync && f.temp;
    f.f = fd >= 0 && !twice ? sink_stream(f.sink) : NULL;
    if (!f.f) {
        fail(o, path, twice ? "it is named as output twice" : strerror(errno));
        if (fd >= 0) {
            close(fd);
            if (f.temp)
                unlink(f.temp);
        }
        return NULL;
    }
    ARENA_PUSH(o->arena, o->files, o->n, o->cap, f);
    return f.f;
}

bool out_check(Arena *a, const char *path, Diags *d) {
    struct stat st;
    bool there = *path && stat(path, &st) == 0;
    bool can = there && S_ISDIR(st.st_mode) ? (errno = EISDIR, false)
               : there                      ? access(path, W_OK) == 0
                                            : access(path_dir(a, path), W_OK | X_OK) == 0;
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
    return good || fail(o, f->path, strerror(s->error ? s->error : EIO));
}

/* Keeps the old file under a second name, so that a failed rename of a later file of the group
 * can be undone. */
static bool keep_old(OutFiles *o, OutFile *f) {
    for (unsigned n = 0; n < 1000; n++) {
        const char *name = side_name(o, f->target, "old", n);
        if (link(f->target, name) == 0) {
            f->backup = name;
            return true;
        }
        if (errno == ENOENT)
            return true; /* no old file */
        if (errno != EEXIST)
            break;
    }
    return fail(o, f->path, strerror(errno));
}

static bool rename_all(OutFiles *o) {
    for (size_t i = 0; i < o->n; i++) {
        OutFile *f = &o->files[i];
        if (!f->temp)
            continue;
        if (o->n > 1 && !keep_old(o, f))
            return false;
        if (rename(f->temp, f->target) < 0)
            return fail(o, f->path, strerror(errno));
        f->renamed = true;
    }
    return true;
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
    for (size_t i = 0; i < o->n; i++) {
        if (o->files[i].backup)
            unlink(o->files[i].backup);
        if (o->sync && o->files[i].temp)
            sync_folder(o, &o->files[i]);
    }
    o->n = 0;
    return true;
}

void out_abort(OutFiles *o) {
    for (size_t i = o->n; i-- > 0;) {
        OutFile *f = &o->files[i];
        if (f->f)
            fclose(f->f);
        if (f->renamed && f->backup)
            rename(f->backup, f->target);
        else if (f->renamed)
            unlink(f->target);
        else if (f->temp)
            unlink(f->temp);
        if (!f->renamed && f->backup)
            unlink(f->backup);
    }
    o->n = 0;
}

bool out_is_device(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}
