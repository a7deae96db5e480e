/* Files that a model names: only below its folder, and only plain ones. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "support/file_map.h"

static bool has_dot_dot(Str name) {
    for (size_t i = 0; i + 1 < name.n; i++)
        if (name.s[i] == '.' && name.s[i + 1] == '.' && (i == 0 || name.s[i - 1] == '/') &&
            (i + 2 == name.n || name.s[i + 2] == '/'))
            return true;
    return false;
}

/* What is wrong with the name itself; NULL when nothing is. */
static const char *name_fault(Str name) {
    if (name.n == 0)
        return "the name is empty";
    if (memchr(name.s, 0, name.n))
        return "the name holds a NUL byte";
    if (name.s[0] == '/')
        return "the name is absolute";
    if (name.s[name.n - 1] == '/')
        return "the name is a folder's";
    if (name.n >= 4096)
        return "the name is too long";
    if (has_dot_dot(name))
        return "'..' is not allowed";
    return NULL;
}

static const char not_there[] = "No such file or directory";

/* Opens one component below `parent` without following a link. Returns -1 and says why. The
 * check of the opened file comes after opening it, so nobody can swap it in between. */
static int open_component(int parent, const char *name, bool last, struct stat *st,
                          const char **why) {
    int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st->st_mode)) {
        *why = "a symbolic link stands on the way";
        return -1;
    }
    int fd = openat(parent, name, flags);
    if (fd < 0 || fstat(fd, st) < 0)
        *why = errno == ENOENT ? not_there : strerror(errno);
    else if (!last && !S_ISDIR(st->st_mode))
        *why = "a part of the path is not a folder";
    else if (last && !S_ISREG(st->st_mode))
        *why = "it is not a regular file";
    else if (last && st->st_nlink != 1)
        *why = "it has more than one hard link";
    else
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Walks `path` (modified) from the open folder `fd`, which it closes. */
static int walk(int fd, char *path, struct stat *st, const char **why) {
    for (char *part = path, *slash; part; part = slash) {
        slash = strchr(part, '/');
        if (slash)
            *slash++ = 0;
        if (!*part || strcmp(part, ".") == 0)
            continue;
        int next = open_component(fd, part, slash == NULL, st, why);
        close(fd);
        if (next < 0)
            return -1;
        fd = next;
    }
    return fd;
}

/* Opens `name` below `dir`. Returns -1 and says why. */
static int open_beside(const char *dir, Str name, struct stat *st, const char **why) {
    char path[4096]; /* name_fault has seen to it that it fits */
    memcpy(path, name.s, name.n);
    path[name.n] = 0;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *why = fd < 0 ? strerror(errno) : NULL;
    if (fd >= 0)
        fd = walk(fd, path, st, why);
    /* A name of "." parts alone leaves the folder itself open. */
    if (fd >= 0 && !S_ISREG(st->st_mode)) {
        *why = "it is not a regular file";
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Where a file was looked for: " in the current folder or 'data'". */
static void name_folders(Folders in, char *text, size_t room) {
    bool here = strcmp(in.dir, ".") == 0;
    snprintf(text, room, " in %s%.1000s%s%s%.1000s%s", here ? "the current folder" : "'",
             here ? "" : in.dir, here ? "" : "'", in.other ? " or '" : "", in.other ? in.other : "",
             in.other ? "'" : "");
}

FileMap *file_map_beside(Folders in, Str name, bool *absent, Loc at, Diags *d) {
    const char *why = name_fault(name);
    struct stat st = {0};
    const char *dir = in.dir;
    int fd = why ? -1 : open_beside(dir, name, &st, &why);
    if (why == not_there && in.other)
        fd = open_beside(dir = in.other, name, &st, &why);
    FileMap *f = NULL;
    if (absent)
        *absent = why == not_there;
    char where[2100] = "";
    if (why == not_there)
        name_folders(in, where, sizeof where);
    if (why)
        diag(d, absent && *absent ? DIAG_WARNING : DIAG_ERROR, at, "cannot use file \"%s\": %s%s",
             diag_name(d, name), why, where);
    else
        f = file_map_open(fd, &st, dir, name, at, d);
    if (fd >= 0)
        close(fd);
    return f;
}
