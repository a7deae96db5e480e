#include "support/file_map.h"
#include "support/platform.h"
#include "support/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct FileMap {
    Str bytes;
    bool mapped;      /* else malloc'ed: standard input, or empty */
    char *path;       /* malloc'ed; NULL of standard input */
    struct stat stat; /* where there is a path */
};

static FileMap *mapping_new(Str bytes, bool mapped) {
    FileMap *f = malloc(sizeof *f);
    if (f)
        *f = (FileMap){.bytes = bytes, .mapped = mapped};
    return f;
}

/* Reads until the end; NULL with errno set when that fails. The result is malloc'ed. */
static char *read_all(int fd, size_t *size) {
    size_t n = 0, cap = 64 * 1024;
    char *p = malloc(cap);
    while (p) {
        ssize_t got = read(fd, p + n, cap - n);
        if (got == 0) {
            *size = n;
            return p;
        }
        if (got < 0 && errno != EINTR)
            break;
        n += got > 0 ? (size_t)got : 0;
        if (n == cap) {
            char *larger = realloc(p, cap *= 2);
            if (!larger)
                break;
            p = larger;
        }
    }
    int e = errno;
    free(p);
    errno = e;
    return NULL;
}

static FileMap *map_stdin(Loc at, Diags *d) {
    size_t n = 0;
    char *p = read_all(STDIN_FILENO, &n);
    FileMap *f = p ? mapping_new((Str){p, n}, false) : NULL;
    if (!f) {
        diag_error(d, at, "cannot read standard input: %s",
                   errno == EBADF ? "it is closed" : strerror(errno));
        free(p);
    }
    return f;
}

static char *path_in(const char *dir, Str name) {
    size_t n = strlen(dir) + name.n + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, strcmp(dir, ".") == 0 ? "%.0s%.*s" : "%s/%.*s", dir, STR_ARG(name));
    return path;
}

FileMap *file_map_open(int fd, const struct stat *st, const char *dir, Str name, Loc at, Diags *d) {
    size_t n = (size_t)st->st_size;
    void *p = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : calloc(1, 1);
    if (p == MAP_FAILED || !p) {
        diag_error(d, at, "cannot read '%s': %s", diag_name(d, name), strerror(errno));
        return NULL;
    }
    FileMap *f = mapping_new((Str){p, n}, n > 0);
    if (!f || !(f->path = path_in(dir, name))) {
        free(f);
        if (n)
            munmap(p, n);
        else
            free(p);
        diag_error(d, at, "cannot read '%s': %s", diag_name(d, name), strerror(ENOMEM));
        return NULL;
    }
    f->stat = *st;
    return f;
}

FileMap *file_map(const char *path, Loc at, Diags *d) {
    if (strcmp(path, "-") == 0)
        return map_stdin(at, d);
    /* Opening a FIFO would otherwise wait for a writer before we can refuse it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    FileMap *f = NULL;
    if (fd < 0 || fstat(fd, &st) < 0)
        diag_error(d, at, "cannot open '%s': %s", path, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        diag_error(d, at, "cannot read '%s': it is a folder", path);
    else if (!S_ISREG(st.st_mode))
        diag_error(d, at, "cannot read '%s': it is not a regular file", path);
    else
        f = file_map_open(fd, &st, ".", str_from(path), at, d);
    if (fd >= 0)
        close(fd);
    return f;
}

void file_release(const FileMap *f, Str bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes.s, end;
    if (!f->mapped || bytes.s < f->bytes.s || bytes.n > f->bytes.n ||
        (size_t)(bytes.s - f->bytes.s) > f->bytes.n - bytes.n)
        return;
    end = (begin + bytes.n + page - 1) & ~(page - 1);
    begin &= ~(page - 1); /* what shares a page is read again when it is needed */
    if (bytes.n)
        madvise((void *)begin, end - begin, MADV_DONTNEED); /* a hint: it may fail */
}

bool file_is_whole(const FileMap *f, Diags *d) {
    struct stat st;
    const struct stat *was = &f->stat;
    /* One that was replaced is still mapped as it was. */
    if (!f->path || stat(f->path, &st) != 0 || st.st_dev != was->st_dev || st.st_ino != was->st_ino)
        return true;
    if (st.st_size != was->st_size)
        return diag_error(
            d, LOC_NONE, "'%s' was changed while it was read: it had %lld bytes and has %lld",
            diag_name(d, str_from(f->path)), (long long)was->st_size, (long long)st.st_size);
    return file_same_time(&st, was) || diag_error(d, LOC_NONE, "'%s' was changed while it was read",
                                                  diag_name(d, str_from(f->path)));
}

bool file_each_part(const FileMap *f, size_t overlap, FilePart *fn, void *ctx) {
    enum { PART = 1 << 22 };
    size_t at = 0, end = 0;
    while (end < f->bytes.n) {
        end = f->bytes.n - at > PART + overlap ? at + PART + overlap : f->bytes.n;
        if (!fn((Str){f->bytes.s + at, end - at}, ctx))
            return false;
        file_release(f, (Str){f->bytes.s + at, end - at});
        at = end - overlap;
    }
    return true;
}

static bool hash_part(Str part, void *ctx) {
    sha256_more(ctx, part.s, part.n);
    return true;
}

void file_sha256(const FileMap *f, char out[SHA256_HEX + 1]) {
    Sha256 h = sha256_begin();
    file_each_part(f, 0, hash_part, &h);
    sha256_end(&h, out);
}

const struct stat *file_stat(const FileMap *f) {
    return f->path ? &f->stat : NULL;
}

Str file_bytes(const FileMap *f) {
    return f->bytes;
}

void file_unmap(FileMap *f) {
    if (!f)
        return;
    if (f->mapped)
        munmap((void *)(uintptr_t)f->bytes.s, f->bytes.n);
    else
        free((void *)(uintptr_t)f->bytes.s);
    free(f->path);
    free(f);
}

bool file_text(Arena *a, const char *path, Loc at, Diags *d, Str *out) {
    FileMap *f = file_map(path, at, d);
    if (!f)
        return false;
    *out = arena_str(a, file_bytes(f));
    bool whole = file_is_whole(f, d);
    file_unmap(f);
    return whole;
}

const char *temp_folder(void) {
    const char *set = getenv("TMPDIR");
    return set && *set ? set : "/tmp";
}

const char *path_dir(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    while (slash > path && slash[-1] == '/')
        slash--;
    size_t n = slash == path ? 1 : (size_t)(slash - path);
    return arena_str(a, (Str){path, n}).s;
}

const char *path_base(const char *path) {
    const char *base = path;
    for (const char *p = path; *p; p++)
        if (p[0] == '/' && p[1] && p[1] != '/')
            base = p + 1;
    return base;
}

Str path_stem(Arena *a, const char *path) {
    Str base = str_from(path_base(path));
    for (size_t i = base.n; i-- > 1;)
        if (base.s[i] == '.') {
            base.n = i;
            break;
        }
    return arena_str(a, base);
}

uint32_t crc32_more(uint32_t crc, const void *data, size_t n) {
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xEDB88320u : c >> 1;
        table[i] = c;
    }
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xFF];
    return ~crc;
}

uint32_t crc32_of(const void *data, size_t n) {
    return crc32_more(0, data, n);
}

bool same_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && S_ISREG(one.st_mode) && stat(b, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}
