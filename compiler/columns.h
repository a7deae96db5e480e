/* Values of a run as arrays, one over all samples, and as text. Elements are reported as NumPy has
 * them: of 4 bits and narrower one a byte, floats that it lacks as its float. */
#ifndef QXC_COMPILER_COLUMNS_H
#define QXC_COMPILER_COLUMNS_H

#include "exec/samples.h"

typedef struct Shape {
    int rank;
    int64_t dims[MAX_RANK + 1];
} Shape;

/* A value, sample by sample, growing as they come; all samples have one shape. */
typedef struct Column {
    const Value *v;
    Str name;
    ElemType elem; /* as reported; undefined until a sample tells it */
    Shape shape;   /* of one sample */
    size_t bytes;  /* the same */
    char *data;    /* of a constant those of one sample */
    size_t n, cap;
    bool varies; /* samples have other shapes or elements than those before: there is no array */
} Column;

/* With `open` the first sample tells the shape, and the element type where nothing else does. False
 * where there is no such array: the value is no tensor of numbers, or its shape is not fixed. */
bool column_new(Column *c, const Value *v, Str name, bool open);
/* One more sample: elements as a program has them (exec/exec.h). NULL: it has not computed them,
 * and the column lacks it. */
void column_add(Column *c, Arena *a, const void *data);
/* The same of a tensor. False after an error: it has another shape, or another element type, than
 * those before. */
bool column_add_tensor(Column *c, Arena *a, const Tensor *t, Diags *d);
/* `%y : float[2] = [0.5, 1.0]`, of the one sample there is; then there is none. */
void column_print(Column *c, Arena *a, Buf *b);
/* Its samples along a new axis in front, or with `replaces` in the place of a first one of 1. */
Shape column_stack(const Column *c, bool replaces);
/* The same along an axis that samples have, `stride` elements apart. */
Shape column_join(Column *c, Arena *a, size_t stride, int axis);

/* How samples become arrays: a feed of the model's own shape gives results of the model's own
 * shape. */
typedef struct Arrangement {
    const Batch *batch; /* the model's dimension that counts samples, or NULL */
    SamplesSeen seen;
    bool alike; /* what does not depend on that dimension is the same for all samples */
} Arrangement;

/* Of the samples that were read so far. */
Arrangement arrangement_of(const Module *m, const Samples *in, const Batch *batch);
/* Whether the value follows from how many samples run together, where those of a batch ran one by
 * one: it is none of the model's own. */
bool column_counts_samples(const Column *c, const Arrangement *as);
/* Of one that lacks no sample; its elements in that order may be new ones, of `a`. */
Shape column_arrange(Column *c, Arena *a, const Arrangement *as);

#endif
