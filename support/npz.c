#include "support/npz.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "support/file.h"
#include "support/map.h"

struct Npz {
    Arena *arena;
    Diags *diags;
    Loc at;
    const char *path;
    zip_t *zip; /* NULL for a single array, */
    int fd;     /* which is read from here */
    uint64_t file_size;
    NpyArray *arrays;
    zip_uint64_t *entries; /* the arrays' places in the archive */
    size_t n, cap, cap_entries;
};

struct NpyReader {
    Npz *z;
    const NpyArray *array;
    size_t index;
    zip_file_t *file; /* NULL for a single array */
    uint64_t next;    /* number of the element that comes next */
    const char *held; /* all elements in C's order, of an array in Fortran's; else NULL */
};

static bool fail(const Npz *z, Str name, const char *why) {
    if (name.s)
        return diag_error(z->diags, z->at, "cannot read '%s', array \"%s\": %s", z->path,
                          diag_name(z->diags, name), why);
    return diag_error(z->diags, z->at, "cannot read '%s': %s", z->path, why);
}

/* Reads exactly `n` bytes at `offset`; false with errno set, 0 when the file is too short. */
static bool read_at(int fd, void *out, size_t n, uint64_t offset) {
    char *p = out;
    while (n) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : 0;
            return false;
        }
        p += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

/* The same from an open entry. NULL, or what went wrong. */
static const char *read_entry(zip_file_t *f, void *out, size_t n) {
    char *p = out;
    while (n) {
        zip_int64_t got = zip_fread(f, p, n);
        if (got < 0)
            return zip_file_strerror(f);
        if (got == 0)
            return "it is cut short";
        p += got;
        n -= (size_t)got;
    }
    return NULL;
}

static const char *read_bytes(const Npz *z, zip_file_t *f, void *out, size_t n, uint64_t offset) {
    if (f)
        return read_entry(f, out, n);
    if (read_at(z->fd, out, n, offset))
        return NULL;
    return errno ? strerror(errno) : "it is cut short";
}

/* Reads and checks the header of one array whose header and data together take `size` bytes. */
static const char *read_header(const Npz *z, zip_file_t *f, uint64_t size, NpyArray *out) {
    char prefix[NPY_PREFIX];
    if (size < NPY_PREFIX)
        return "it is not a .npy array";
    const char *why = read_bytes(z, f, prefix, sizeof prefix, 0);
    if (why)
        return why;
    size_t n = npy_header_size(prefix, &why);
    if (!n)
        return why;
    if (n > size)
        return "it is cut short";
    char *header = arena_alloc(z->arena, n);
    memcpy(header, prefix, sizeof prefix);
    why = read_bytes(z, f, header + sizeof prefix, n - sizeof prefix, sizeof prefix);
    if (!why)
        why = npy_parse(z->arena, (Str){header, n}, out);
    if (!why && out->count * out->elem_size > size - n)
        why = "its shape says more data than there are";
    return why;
}

static bool add(Npz *z, Str name, zip_uint64_t entry, zip_file_t *f, uint64_t size) {
    NpyArray array;
    const char *why = read_header(z, f, size, &array);
    if (why)
        return fail(z, name, why);
    array.name = name;
    ARENA_PUSH(z->arena, z->arrays, z->n, z->cap, array);
    size_t n = z->n - 1;
    ARENA_PUSH(z->arena, z->entries, n, z->cap_entries, entry);
    return true;
}

/* What is wrong with an archive's own words about an entry. An entry cannot hold more than its
 * compressed bytes unfold to; a size beyond that is a trap for whoever allocates by it. */
static const char *entry_fault(const Npz *z, const zip_stat_t *st) {
    enum { DEFLATE_MOST = 1032 };
    zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD;
    if ((st->valid & needed) != needed)
        return "the archive does not say how large it is";
    if (st->comp_method != ZIP_CM_STORE && st->comp_method != ZIP_CM_DEFLATE)
        return "its compression method is not supported";
    if (st->size / (st->comp_method == ZIP_CM_STORE ? 1 : DEFLATE_MOST) > z->file_size)
        return "the archive says it is larger than it can be";
    return NULL;
}

/* Lists the entries called NAME.npy; others are none of our business. */
static bool list_archive(Npz *z) {
    Map *names = map_new(z->arena);
    zip_int64_t n = zip_get_num_entries(z->zip, 0);
    for (zip_int64_t i = 0; i < n; i++) {
        zip_stat_t st;
        Str name = str_from(zip_get_name(z->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW));
        if (!str_ends(name, ".npy"))
            continue;
        name = arena_str(z->arena, (Str){name.s, name.n - 4});
        if (!map_set(names, name, z))
            return fail(z, name, "the archive holds it twice");
        if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &st) < 0)
            return fail(z, name, zip_strerror(z->zip));
        const char *why = entry_fault(z, &st);
        if (why)
            return fail(z, name, why);
        zip_file_t *f = zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
        if (!f)
            return fail(z, name, zip_strerror(z->zip));
        bool good = add(z, name, (zip_uint64_t)i, f, st.size);
        zip_fclose(f);
        if (!good)
            return false;
    }
    return true;
}

static bool open_archive(Npz *z) {
    int code = 0;
    z->zip = zip_fdopen(z->fd, 0, &code);
    if (!z->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        fail(z, STR_NONE, zip_error_strerror(&error));
        zip_error_fini(&error);
        return false;
    }
    z->fd = -1; /* it belongs to libzip now */
    return list_archive(z);
}

static bool open_file(Npz *z) {
    struct stat st;
    char magic[4] = {0};
    z->fd = open(z->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (z->fd < 0 || fstat(z->fd, &st) < 0)
        return fail(z, STR_NONE, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fail(z, STR_NONE, "it is not a regular file");
    z->file_size = (uint64_t)st.st_size;
    if (!read_at(z->fd, magic, sizeof magic, 0) && errno)
        return fail(z, STR_NONE, strerror(errno));
    if (memcmp(magic, "\x93NUM", 4) == 0)
        return add(z, path_stem(z->arena, z->path), 0, NULL, z->file_size);
    if (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0)
        return open_archive(z);
    return fail(z, STR_NONE, "it is neither a .npz archive nor a .npy array");
}

Npz *npz_open(Arena *a, const char *path, Loc at, Diags *d) {
    Npz *z = NEW(a, Npz);
    *z = (Npz){.arena = a, .diags = d, .at = at, .fd = -1};
    z->path = arena_str(a, str_from(path)).s;
    if (open_file(z))
        return z;
    npz_close(z);
    return NULL;
}

void npz_close(Npz *z) {
    if (!z)
        return;
    if (z->zip)
        zip_discard(z->zip);
    if (z->fd >= 0)
        close(z->fd);
    z->zip = NULL;
    z->fd = -1;
}

size_t npz_size(const Npz *z) {
    return z->n;
}
const NpyArray *npz_at(const Npz *z, size_t i) {
    return &z->arrays[i];
}

int npz_find(const Npz *z, Str name) {
    for (size_t i = 0; i < z->n; i++)
        if (str_eq(z->arrays[i].name, name))
            return (int)i;
    return -1;
}

/* Opens the entry and passes over its header. */
static bool rewind_reader(NpyReader *r) {
    Npz *z = r->z;
    r->next = 0;
    if (!z->zip)
        return true;
    if (r->file)
        zip_fclose(r->file);
    r->file = zip_fopen_index(z->zip, z->entries[r->index], 0);
    if (!r->file)
        return fail(z, r->array->name, zip_strerror(z->zip));
    char header[1024];
    for (size_t left = r->array->header; left;) {
        size_t n = left < sizeof header ? left : sizeof header;
        const char *why = read_entry(r->file, header, n);
        if (why)
            return fail(z, r->array->name, why);
        left -= n;
    }
    return true;
}

static void to_native(const NpyArray *array, char *p, size_t n) {
    size_t size = array->elem_size;
    if (array->swapped)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < size / 2; k++) {
                char c = p[i * size + k];
                p[i * size + k] = p[i * size + size - 1 - k];
                p[i * size + size - 1 - k] = c;
            }
    if (array->elem == 9) /* a bool of 2 would surprise every later stage */
        for (size_t i = 0; i < n; i++)
            p[i] = p[i] != 0;
}

bool npy_read(NpyReader *r, void *out, size_t n) {
    const NpyArray *array = r->array;
    assert(n <= array->count - r->next);
    size_t bytes = n * array->elem_size;
    if (r->held) {
        memcpy(out, r->held + r->next * array->elem_size, bytes);
        r->next += n;
        return true;
    }
    const char *why =
        read_bytes(r->z, r->file, out, bytes, array->header + r->next * array->elem_size);
    if (why)
        return fail(r->z, array->name, why);
    r->next += n;
    /* libzip compares the checksum when it sees the end of the entry. */
    char beyond;
    if (r->file && r->next == array->count && zip_fread(r->file, &beyond, 1) < 0)
        return fail(r->z, array->name, zip_file_strerror(r->file));
    to_native(array, out, n);
    return true;
}

/* An array in Fortran's order is read as a whole: samples of the leading axis lie scattered in it.
 */
static bool hold(NpyReader *r) {
    const NpyArray *array = r->array;
    size_t size = array->elem_size, step[NPY_MAX_RANK], to = 0, n = 0;
    int64_t index[NPY_MAX_RANK] = {0};
    char some[4096], *held = arena_alloc(r->z->arena, array->count * size);
    for (int k = array->rank - 1; k >= 0; k--)
        step[k] = k == array->rank - 1 ? size : step[k + 1] * (size_t)array->dims[k + 1];
    for (uint64_t i = 0; i < array->count; i++) {
        size_t at = i % (sizeof some / size);
        n = array->count - i < sizeof some / size ? (size_t)(array->count - i) : sizeof some / size;
        if (at == 0 && !npy_read(r, some, n))
            return false;
        memcpy(held + to, some + at * size, size);
        for (int k = 0; k < array->rank; k++) {
            to += step[k];
            if (++index[k] < array->dims[k])
                break;
            to -= step[k] * (size_t)array->dims[k];
            index[k] = 0;
        }
    }
    r->held = held;
    r->next = 0;
    return true;
}

NpyReader *npy_reader(Npz *z, size_t i) {
    const NpyArray *array = &z->arrays[i];
    NpyReader *r = NEW(z->arena, NpyReader);
    *r = (NpyReader){.z = z, .array = array, .index = i};
    if (!array->elem) {
        diag_error(z->diags, z->at, "cannot read '%s', array \"%s\": dtype '%s' is not supported",
                   z->path, diag_name(z->diags, array->name), array->dtype);
        return NULL;
    }
    if (rewind_reader(r) && (!array->fortran || hold(r)))
        return r;
    npy_reader_close(r);
    return NULL;
}

void npy_reader_close(NpyReader *r) {
    if (r && r->file)
        zip_fclose(r->file);
    if (r)
        r->file = NULL;
}

/* Makes element `target` the next one. */
static bool seek(NpyReader *r, uint64_t target) {
    if (!r->held && target < r->next && !rewind_reader(r))
        return false;
    if (r->held || !r->file) {
        r->next = target;
        return true;
    }
    char skipped[4096];
    size_t most = sizeof skipped / r->array->elem_size;
    while (r->next < target) {
        uint64_t left = target - r->next;
        if (!npy_read(r, skipped, left < most ? (size_t)left : most))
            return false;
    }
    return true;
}

bool npy_read_at(NpyReader *r, uint64_t first, uint64_t n, void *out) {
    assert(first <= r->array->count && n <= r->array->count - first);
    return n == 0 || (seek(r, first) && npy_read(r, out, (size_t)n));
}
