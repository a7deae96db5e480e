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

/* How an array holds the samples of an input. */
typedef struct SampleLayout {
    bool fits;      /* it has a number of dimensions that one of the ways below has */
    bool whole;     /* it is the one value of all samples of its file */
    bool extra;     /* the axis of samples stands before those of the input */
    int type, data; /* where the dimensions of a sample begin: in the type, in the array */
    int64_t n;      /* samples; 1 of a whole one */
} SampleLayout;

/* An array of one dimension more than the input has the samples along its first axis. One of as
 * many has them along a first dimension that is 1 in the input, or open, unless it is 1 as well;
 * else it is a whole value. Lengths behind the first are not compared. */
SampleLayout sample_layout(Type t, const NpyArray *a);

/* Open dimensions of graph inputs become those of the arrays in the first file, but for a first one
 * whose array may have samples there. False after a diagnostic. */
bool sample_dims(Module *m, const char *const *paths, size_t n, Diags *d);

/* `n` elements of type `from` at `src` as those of `v` at `dst`. Integers must fit, and be exact as
 * floats; floats of more bits are rounded; floats for a quantized input are quantized. */
bool sample_convert(const Value *v, ElemType from, const uint8_t *src, uint8_t *dst, size_t n,
                    Diags *d);
/* Whether sample_convert has a way at all. */
bool sample_convertible(const Value *v, ElemType from);

#endif
