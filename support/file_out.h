/* What the parts of writing files share: file_out.c opens them, file_sink.c writes, file_side.c
 * settles on names of files beside others, file_commit.c gives all their names. Private to support.
 */
#ifndef QXC_SUPPORT_FILE_OUT_H
#define QXC_SUPPORT_FILE_OUT_H

#include <sys/stat.h>

#include "support/file.h"
#include "support/platform.h"
#include "support/sha256.h"

/* Where a stream's bytes go. stdio remembers that a write failed, not why. */
typedef struct Sink {
    Stream stream;
    int fd;
    int error;  /* errno of the first write that failed, 0 */
    bool ahead; /* bytes are sent to the disk before all are written */
    bool hashed;
    off_t size; /* bytes written */
    off_t sent; /* of these, so many are on their way to the disk */
    Sha256 hash;
} Sink;

typedef struct OutFile {
    const char *path;   /* as the user wrote it, for messages */
    const char *target; /* with links resolved, so that a link stays a link */
    const char *dir;    /* of target */
    char *names[2];     /* room for temp and backup */
    const char *temp;   /* NULL for a device or pipe, which is written directly */
    int lock;           /* of temp, held until it has its name; -1 */
    const char *backup; /* the old file under another name while a group is renamed, or NULL */
    int backup_lock;    /* of that name; -1: none */
    Sink *sink;
    FILE *f; /* NULL once closed */
    bool renamed;
} OutFile;

/* A file beside another that has its name. */
typedef struct Settled {
    SideFile file;
    const char *target, *dir;
    bool there; /* before, as `was` */
    struct stat was;
} Settled;

typedef struct FileId {
    dev_t dev;
    ino_t ino;
} FileId;

struct OutFiles {
    Arena *arena;
    Diags *diags;
    bool sync, force, failed;
    OutFile *files;
    size_t n, cap;
    FileId *kept; /* never replaced */
    size_t n_kept, cap_kept;
    Settled *sides; /* written or left as they are */
    size_t n_sides, cap_sides;
    int lock; /* of their folder, while files get their names; -1 */
};

/* The stream of an open sink; NULL with errno set, and then fd is still open. */
FILE *sink_stream(Sink *s);

bool out_fail(OutFiles *o, const char *path, const char *why);
/* Where the path leads, links followed, whether or not a file is there yet. NULL with errno set. */
const char *out_resolve(Arena *a, const char *path);
/* The same where the file itself is no link to be followed. */
const char *out_in_folder(Arena *a, const char *path);
bool out_is_target(const OutFiles *o, const char *target); /* of another file of the group */
bool out_is_kept(const OutFiles *o, const struct stat *st);
/* A temporary file that is to become `f->target`, as a stream in the group; NULL with errno set. */
FILE *out_stage(OutFiles *o, OutFile f);
/* Whether the files beside others may be renamed. Others wait from now on, until o->lock is closed.
 * False after a diagnostic. */
bool out_sides_hold(OutFiles *o);
/* Closes and removes; the group forgets it. */
void out_drop(OutFile *f);

#endif
