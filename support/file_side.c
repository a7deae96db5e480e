/* Files beside others: what may be replaced, and under which name they are written. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "support/file_out.h"
#include "support/file_temp.h"

enum { DIGITS = 8 };

FILE *out_side(OutFiles *o, const char *path) {
    OutFile f = {.path = arena_str(o->arena, str_from(path)).s};
    f.target = out_in_folder(o->arena, path);
    bool twice = f.target && out_is_target(o, f.target);
    FILE *stream = f.target && !twice ? out_stage(o, f) : NULL;
    if (stream)
        o->files[o->n - 1].sink->hashed = true;
    else
        out_fail(o, path, twice ? "it is named as output twice" : strerror(errno));
    return stream;
}

/* ---- what is there ---- */

/* A file that is there, quietly; NULL where it cannot be read. */
static FileMap *look(OutFiles *o, const char *path) {
    return file_map(path, LOC_NONE, diags_new(o->arena, NULL, false));
}

/* "" where it cannot be read. */
static void hash_of(OutFiles *o, const char *path, char hash[SHA256_HEX + 1]) {
    FileMap *f = look(o, path);
    *hash = 0;
    if (f)
        file_sha256(f, hash);
    file_unmap(f);
}

static bool is_absent(Str part, void *what) {
    return !memmem(part.s, part.n, what, strlen(what));
}

static bool holds(const FileMap *f, const char *what) {
    return !file_each_part(f, strlen(what), is_absent, (void *)(uintptr_t)what);
}

/* Whether the file names `name`, together with `hash` where that is given. What cannot be read may
 * hold anything: `otherwise`. */
static bool names(OutFiles *o, const char *file, const char *name, const char *hash,
                  bool otherwise) {
    FileMap *f = look(o, file);
    bool found = f ? holds(f, name) && (!hash || holds(f, hash)) : otherwise;
    file_unmap(f);
    return found;
}

/* Another model of the folder that names the file, or NULL. */
static const char *other_owner(OutFiles *o, const char *target, const char *main) {
    const char *dir = path_dir(o->arena, target), *owner = NULL;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && !owner && (e = readdir(d));) {
        Str name = str_from(e->d_name);
        if (!str_ends(name, ".qir") && !str_ends(name, ".onnx"))
            continue;
        const char *path = arena_strf(o->arena, "%s/%s", dir, e->d_name).s;
        if (!same_file(path, main) && names(o, path, path_base(target), NULL, true))
            owner = arena_str(o->arena, name).s;
    }
    if (d)
        closedir(d);
    return owner;
}

bool file_is_named(OutFiles *o, const char *path) {
    return other_owner(o, path, "");
}

/* ---- the name ---- */

typedef struct Found {
    bool there; /* something, of which this is known */
    struct stat st;
    bool same;       /* the very bytes that are to be written, as a model may name them */
    const char *why; /* NULL, or why it is not to be replaced */
    bool forced;     /* but -force would replace it */
} Found;

/* Why a file with these bytes is none that the model `main` was written with; NULL where it is. */
static const char *not_ours(OutFiles *o, const char *target, const char *main, const char *hash) {
    if (!*hash || !names(o, main, path_base(target), hash, false))
        return arena_strf(o->arena, "it is there, and '%s' does not refer to it as it stands",
                          path_base(main))
            .s;
    const char *owner = other_owner(o, target, main);
    return owner ? arena_strf(o->arena, "'%s' names it, too", owner).s : NULL;
}

/* What is there under the name of `f`. One of ours hands on its permissions. */
static Found find(OutFiles *o, const SideFile *s, const OutFile *f, const char *main) {
    struct stat st; /* first of all: whoever writes to the file from now on is noticed */
    if (lstat(f->target, &st) != 0)
        return (Found){0};
    /* Models name no links, and replacing a name of several leaves the others as they are. */
    bool link = S_ISLNK(st.st_mode), plain = S_ISREG(st.st_mode) && st.st_nlink == 1;
    char hash[SHA256_HEX + 1] = "";
    if (plain)
        hash_of(o, f->target, hash);
    Found is = {.there = true, .st = st, .same = strcmp(hash, s->hash) == 0};
    if (!link && !S_ISREG(st.st_mode))
        is.why = "it is no regular file";
    else if (!link && out_is_kept(o, &st))
        is.why = "it is an input of this run";
    else if (!link && access(f->target, W_OK) != 0)
        is.why = strerror(errno); /* renaming would get around the file's own protection */
    else
        is.forced = true;
    if (is.forced && !o->force)
        is.why = plain ? not_ours(o, f->target, main, hash) : "it is a link";
    if (!is.why && !link)
        fchmod(f->sink->fd, st.st_mode & 0777);
    return is;
}

/* "dir/model.safetensors" with digits: "dir/model-1a2b3c4d.safetensors". */
static const char *with_hash(Arena *a, const char *path, const char *hash) {
    const char *base = path_base(path), *dot = strchr(base + (*base == '.'), '.');
    size_t n = dot ? (size_t)(dot - path) : strlen(path);
    return arena_strf(a, "%.*s-%.*s%s", (int)n, path, DIGITS, hash, path + n).s;
}

/* From now on it is to be called that. */
static void add_hash(OutFiles *o, OutFile *f, const char *hash) {
    f->target = with_hash(o->arena, f->target, hash);
    f->path = with_hash(o->arena, f->path, hash);
    f->names[1] = arena_alloc(o->arena, temp_room(f->target));
}

static OutFile *file_of(OutFiles *o, const FILE *f) {
    size_t i = 0;
    while (o->files[i].f != f)
        i++;
    return &o->files[i];
}

/* Flushes, and has what was written as a SideFile. */
static bool measure(OutFiles *o, OutFile *f, SideFile *s) {
    if (fflush(f->f) != 0 || ferror(f->f))
        return out_fail(o, f->path, strerror(f->sink->error ? f->sink->error : EIO));
    s->size = (long long)f->sink->size;
    sha256_end(&f->sink->hash, s->hash);
    return true;
}

const SideFile *out_settle(OutFiles *o, FILE *stream, const char *main, bool fixed) {
    OutFile *f = file_of(o, stream);
    SideFile s = {.path = f->path};
    if (!measure(o, f, &s))
        return NULL;
    Found there = find(o, &s, f, main);
    if (there.why && !there.same && !fixed) {
        const char *why = there.why, *wished = f->path;
        add_hash(o, f, s.hash);
        s.path = f->path;
        there = find(o, &s, f, main);
        if (there.same || !there.there)
            diag(o->diags, DIAG_NOTE, LOC_NONE, "'%s' stays: %s; '%s' is written instead", wished,
                 why, path_base(s.path));
    }
    if (there.why && !there.same) {
        const char *hint = there.forced ? "; -force replaces it" : "";
        out_fail(o, s.path, arena_strf(o->arena, "%s%s", there.why, hint).s);
        return NULL;
    }
    s.name = path_base(s.path);
    Settled to = {s, f->target, f->dir, there.there, there.st};
    ARENA_PUSH(o->arena, o->sides, o->n_sides, o->cap_sides, to);
    if (there.why)
        out_drop(f); /* the same bytes are there already */
    return &o->sides[o->n_sides - 1].file;
}

const SideFile *out_side_at(const OutFiles *o, size_t i) {
    return i < o->n_sides ? &o->sides[i].file : NULL;
}

/* ---- the end ---- */

/* Others hold it for the moment that renaming takes. Where folders cannot be locked there is no
 * promise that two runs do not mix what they write. */
static bool lock_folder(OutFiles *o, const Settled *s) {
    enum { TRIES = 250 };
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    o->lock = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; o->lock >= 0 && flock(o->lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        if (i == TRIES)
            return out_fail(o, s->file.path,
                            "for 5 seconds another program has had a lock on its folder");
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Whether it is as it was when we settled on it, or has become what it was to become. */
static bool still_stands(OutFiles *o, const Settled *s) {
    struct stat st;
    const struct stat *was = &s->was;
    bool there = lstat(s->target, &st) == 0;
    if (there == s->there && (!there || (st.st_dev == was->st_dev && st.st_ino == was->st_ino &&
                                         st.st_size == was->st_size && file_same_time(&st, was))))
        return true;
    char hash[SHA256_HEX + 1] = "";
    if (there && S_ISREG(st.st_mode))
        hash_of(o, s->target, hash);
    return strcmp(hash, s->file.hash) == 0 ||
           out_fail(o, s->file.path, "another program has changed it meanwhile");
}

bool out_sides_hold(OutFiles *o) {
    bool good = true;
    for (size_t i = 0; good && i < o->n_sides; i++)
        good = (o->lock >= 0 || lock_folder(o, &o->sides[i])) && still_stands(o, &o->sides[i]);
    return good;
}
