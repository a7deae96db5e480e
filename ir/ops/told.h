/* Shapes that follow from numbers which only a run tells (a Slice up to an input): how long they
 * are, and kernels that read those numbers as they run. All return false after a diagnostic. */
#ifndef QXC_IR_OPS_TOLD_H
#define QXC_IR_OPS_TOLD_H

#include "ir/ops/bind.h"

/* The call that puts the length of the open axis of result 0 into `length` (OpDef.bind_length), of
 * `dims`, the dimensions as the operands tell them: -1 where one is negative, or where another
 * one is not what the result's type says. */
bool bind_told_length(Binder *b, const Node *n, int dims, int length);
/* The same where that is a shape to which `x` is expanded. */
bool bind_expanded_length(Binder *b, const Node *n, Type x, const Value *shape, int length);
/* Operand i is a list of the lengths that results have along the axis: a run of others ends. */
bool bind_check_parts(Binder *b, const Node *n, size_t i, int axis);
/* Operand i is the shape of result 0, of one dimension or more: a run of another one ends. */
bool bind_check_shape(Binder *b, const Node *n, size_t i);
/* Operand i has the axes of length 1 that tell `with` from `without`: a run of others ends. */
bool bind_check_axes(Binder *b, const Node *n, size_t i, Type with, Type without);
/* Whether operand i is a list of so many numbers. */
bool bind_told_list(Binder *b, const Node *n, size_t i, size_t count);
/* The dimensions of x, for the params of a kernel. */
void bind_dims(Type x, int32_t *dims);

/* A box is a buffer of 3 int64 for each dimension of the result: first the dimensions, then where
 * each begins in operand 0, which may be before it, then the steps that it takes there. */
int bind_box(Binder *b, const Node *n);
/* Result 0 is what operand 0 has there; elements that it has not are left alone. */
bool bind_copy_box(Binder *b, const Node *n, int box);
/* The same, where elements that it has not come from within: "edge", "reflect" or "wrap". */
bool bind_take_in_run(Binder *b, const Node *n, Str mode, int box);

#endif
