/* Files beside others: what may be replaced, and under which name they are written. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "support/file_out.h"

enum { DIGITS = 8 };

FILE *out_side(OutFiles *o, const char *path) {
    OutFile f = {.path = arena_str(o->arena, str_from(path)).s, .target = path};
    f.target = arena_strf(o->arena, "%s/%s", path_dir(o->arena, path), path_base(path)).s;
    FILE *stream = out_stage(o, f);
    if (stream)
        o->files[o->n - 1].sink->hashed = true;
    else
        out_fail(o, path, strerror(errno));
    return stream;
}

/* From here to out_commit no other run decides in this folder, so that text and constants of two
 * runs do not mix. Where folders cannot be locked there is no such promise. */
static void lock_folder(OutFiles *o, const char *target) {
    if (o->lock < 0)
        o->lock = open(path_dir(o->arena, target), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (o->lock >= 0 && flock(o->lock, LOCK_EX) != 0 && errno == EINTR)
        ;
}

/* ---- what is there ---- */

/* The bytes of a file, quietly; NULL where it cannot be read. */
static FileMap *look(OutFiles *o, const char *path) {
    return file_map(path, LOC_NONE, diags_new(o->arena, NULL, false));
}

static bool holds(Str text, const char *part) {
    return memmem(text.s, text.n, part, strlen(part)) != NULL;
}

/* Whether the file names `name`, together with `hash` where that is given. What cannot be read may
 * hold anything: `otherwise`. */
static bool names(OutFiles *o, const char *file, const char *name, const char *hash,
                  bool otherwise) {
    FileMap *f = look(o, file);
    if (!f)
        return otherwise;
    Str text = file_bytes(f);
    bool found = holds(text, name) && (!hash || holds(text, hash));
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

/* ---- the name ---- */

typedef struct Found {
    bool there, same; /* something; the very bytes that are to be written */
    bool ours;        /* to be replaced */
    const char *why;  /* else: what it is */
} Found;

static Found find(OutFiles *o, const SideFile *s, const char *target, const char *main) {
    struct stat st;
    Found f = {.there = lstat(target, &st) == 0};
    if (!f.there)
        return f;
    FileMap *map = S_ISREG(st.st_mode) ? look(o, target) : NULL;
    char hash[SHA256_HEX + 1] = "";
    if (map && file_bytes(map).n == (size_t)s->size)
        sha256_hex(file_bytes(map), hash);
    f.same = map && strcmp(hash, s->hash) == 0;
    if (map && !*hash)
        sha256_hex(file_bytes(map), hash);
    file_unmap(map);
    const char *owner;
    if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
        f.why = "it is a link or no regular file"; /* no model may name such a file */
    else if (out_is_kept(o, &st))
        f.why = "it is an input of this run";
    else if (!o->force && !(*hash && names(o, main, path_base(target), hash, false)))
        f.why = arena_strf(o->arena, "it is there, and '%s' does not refer to it as it stands",
                           path_base(main))
                    .s;
    else if (!o->force && (owner = other_owner(o, target, main)))
        f.why = arena_strf(o->arena, "'%s' names it, too", owner).s;
    f.ours = !f.why;
    return f;
}

/* "dir/model.safetensors" with digits: "dir/model-1a2b3c4d.safetensors". */
static const char *with_hash(Arena *a, const char *path, const char *hash) {
    const char *base = path_base(path), *dot = strchr(base + (*base == '.'), '.');
    size_t n = dot ? (size_t)(dot - path) : strlen(path);
    return arena_strf(a, "%.*s-%.*s%s", (int)n, path, DIGITS, hash, path + n).s;
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
    SideFile s = {.main = main, .path = f->path};
    if (!measure(o, f, &s))
        return NULL;
    lock_folder(o, f->target);
    Found there = find(o, &s, f->target, main);
    if (there.there && !there.ours && !there.same && !fixed) {
        const char *why = there.why;
        f->target = with_hash(o->arena, f->target, s.hash);
        s.path = with_hash(o->arena, f->path, s.hash);
        there = find(o, &s, f->target, main);
        if (there.same || !there.there)
            diag(o->diags, DIAG_NOTE, LOC_NONE, "'%s' stays: %s; '%s' is written instead", f->path,
                 why, path_base(s.path));
    }
    if (there.there && !there.ours && !there.same) {
        out_fail(o, s.path,
                 arena_strf(o->arena, "%s%s", there.why, o->force ? "" : "; -force replaces it").s);
        return NULL;
    }
    if (there.there && !there.ours) {
        out_drop(f); /* the same bytes are there already */
        f->target = "";
    }
    s.name = path_base(s.path);
    f->path = s.path;
    ARENA_PUSH(o->arena, o->sides, o->n_sides, o->cap_sides, s);
    return &o->sides[o->n_sides - 1];
}

const SideFile *out_sides(const OutFiles *o, size_t *n) {
    *n = o->n_sides;
    return o->sides;
}
