/* How a group of output files gets its names: all or none. Nothing here takes memory of the arena.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "support/file_out.h"
#include "support/file_temp.h"

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
static bool keep_old(OutFile *f) {
    bool kept = temp_link(f->target, f->names[1], &f->backup_lock);
    f->backup = kept ? f->names[1] : NULL;
    return kept || errno == ENOENT;
}

/* NULL, or the file that could not get its name, with errno set. */
static const OutFile *rename_each(OutFiles *o) {
    for (size_t i = 0; i < o->n; i++) {
        OutFile *f = &o->files[i];
        if (!f->temp)
            continue;
        if ((o->n > 1 && !keep_old(f)) || rename(f->temp, f->target) < 0)
            return f;
        temp_forget(f->temp);
        f->renamed = true;
    }
    return NULL;
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

/* All or none: a signal has to wait the moment that renaming takes, and so has the message. */
static bool rename_all(OutFiles *o) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const OutFile *failed = rename_each(o);
    int why = errno;
    for (size_t i = o->n; i-- > 0;)
        if (failed) {
            undo(&o->files[i]);
        } else {
            forget_old(&o->files[i], true);
            close_lock(&o->files[i].lock);
        }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !failed || out_fail(o, failed->path, strerror(why));
}

static void sync_folder(const OutFile *f) {
    int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    if (!good || !out_sides_hold(o) || !rename_all(o)) {
        out_abort(o);
        return false;
    }
    close_lock(&o->lock);
    for (size_t i = 0; i < o->n; i++)
        if (o->sync && o->files[i].temp)
            sync_folder(&o->files[i]);
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
