/* NumPy files: .npz archives and single .npy arrays, read as a stream and written.
 *
 * Opening reads headers only. Data come through a reader, element after element or from any
 * place on, converted to this machine's byte order, in memory of the caller's. Every
 * failure is a diagnostic at the place given when the file was opened. Objects live in the arena;
 * npz_close and npy_reader_close give back what the system lent. */
#ifndef QXC_SUPPORT_NPZ_H
#define QXC_SUPPORT_NPZ_H

#include "support/diag.h"
#include "support/npy.h"

typedef struct Npz Npz;
typedef struct NpyReader NpyReader;

/* Opens an archive or a single array (told by content; its name is then the file's stem). */
Npz *npz_open(Arena *a, const char *path, Loc at, Diags *d);
void npz_close(Npz *z); /* NULL is fine; close its readers first */
size_t npz_size(const Npz *z);
const NpyArray *npz_at(const Npz *z, size_t i);
/* The number of the array with this name, or -1. */
int npz_find(const Npz *z, Str name);

/* Starts reading array `i`. NULL after a diagnostic, also for a type that cannot be read. One in
 * Fortran's order is read as a whole, into the arena. */
NpyReader *npy_reader(Npz *z, size_t i);
void npy_reader_close(NpyReader *r); /* NULL is fine */
/* The next `n` elements. Reading the last one also checks the archive's checksum. */
bool npy_read(NpyReader *r, void *out, size_t n);
/* Elements [first, first + n), which must lie inside it. Cheap in ascending order: an archive is
 * read from its start again to go back. */
bool npy_read_at(NpyReader *r, uint64_t first, uint64_t n, void *out);

/* Writing. The same arrays give the same bytes: entries are stored, with a fixed date. Failed
 * writes show when the file is flushed or closed, as out_commit does. */
typedef struct NpzWriter NpzWriter;
NpzWriter *npz_writer(Arena *a, FILE *f);
/* False where the name is too long for an archive (65531 bytes). */
bool npz_add(NpzWriter *w, Str name, int elem, int rank, const int64_t *dims, const void *data);
void npz_finish(NpzWriter *w);
/* A single .npy array. */
void npy_write(Arena *a, FILE *f, int elem, int rank, const int64_t *dims, const void *data);

#endif
