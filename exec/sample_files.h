/* Which files the paths of -calib and -input stand for, and how elements become those of an input.
 * Failures are diagnostics. */
#ifndef QXC_EXEC_SAMPLE_FILES_H
#define QXC_EXEC_SAMPLE_FILES_H

#include "ir/ir.h"

typedef struct SampleFiles {
    const char **paths;
    size_t n, cap;
} SampleFiles;

/* A file stands for itself, a folder for its .npz and .npy files in order of name. */
bool sample_files(Arena *a, const char *const *paths, size_t n, SampleFiles *out, Diags *d);

/* `n` elements of type `from` at `src` as those of `v` at `dst`. Integers must fit, and be exact as
 * floats; floats of more bits are rounded; floats for a quantized input are quantized. */
bool sample_convert(const Value *v, ElemType from, const uint8_t *src, uint8_t *dst, size_t n,
                    Diags *d);
/* Whether sample_convert has a way at all. */
bool sample_convertible(const Value *v, ElemType from);

#endif
