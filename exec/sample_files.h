/* Which files the paths of -calib and -input stand for, and how elements become those of an input.
 * Failures are diagnostics. */
#ifndef QXC_EXEC_SAMPLE_FILES_H
#define QXC_EXEC_SAMPLE_FILES_H

#include "ir/ir.h"
#include "support/npz.h"

typedef struct SampleFiles {
    const char **paths;
    size_t n, cap;
} SampleFiles;

/* A file stands for itself, a folder for its .npz and .npy files in order of name. */
bool sample_files(Arena *a, const char *const *paths, size_t n, SampleFiles *out, Diags *d);

/* The place in `npz`, read from `path`, of the array for graph input `v` of `n_inputs` without a
 * default: the one with its name, or for the only input a lone one without a name (.npy, or savez
 * without a key). -1: there is none. */
int sample_array_of(const Npz *npz, const char *path, const Value *v, size_t n_inputs);
/* How many inputs have no default: those that need data. */
size_t sample_inputs(const Graph *g);

/* `n` elements of type `from` at `src` as those of `v` at `dst`. Integers must fit, and be exact as
 * floats; floats of more bits are rounded; floats for a quantized input are quantized. */
bool sample_convert(const Value *v, ElemType from, const uint8_t *src, uint8_t *dst, size_t n,
                    Diags *d);
/* Whether sample_convert has a way at all. */
bool sample_convertible(const Value *v, ElemType from);

#endif
