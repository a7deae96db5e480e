/* What the files of Resize and Upsample share. Everything made belongs to the program; what cannot
 * run is reported through bind_unsupported, as false. */
#ifndef QXC_IR_OPS_RESIZE_H
#define QXC_IR_OPS_RESIZE_H

#include "ir/ops/bind.h"

typedef struct ResizeAttrs {
    Str mode, coordinates, nearest, policy;
    float cubic_coeff_a, extrapolation_value;
    int64_t antialias, exclude_outside;
    Ints axes;
} ResizeAttrs;

/* One axis: its lengths, what it is scaled by, and of what part (roi; 0 to 1: of all). */
typedef struct Extent {
    int64_t in, out;
    float scale, start, end;
} Extent;

enum { RESIZE_X, RESIZE_ROI, RESIZE_SCALES, RESIZE_SIZES }; /* operands, from opset 11 on */

/* The length of an axis of length `in` after scaling; onnxruntime multiplies in float. False after
 * a diagnostic, as is resize_extents. */
bool resize_scale(const OpCtx *c, float scale, Extent *e);
/* Each axis before and after; `known` is false where that is computed at run time. */
bool resize_extents(const OpCtx *c, Extent *e, bool *known);

/* Opset 10's form of Resize becomes that of 11; `shrinks`: it makes axes shorter. */
void resize_to_eleven(Node *n, bool shrinks, UniqueNames *names);
/* OpDef.upgrade */
bool resize_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d);

/* The place in the operand of result `i` of an axis, in float as onnxruntime computes it. */
float resize_origin(Str how, Extent e, int64_t i);
/* The element of the operand for a place; may lie outside. */
int64_t resize_nearest(Str how, float at);
/* Whether an axis stays as it is. */
bool resize_keeps(Extent e);

/* Linear, between two neighbours along each axis. Quantized, it is rounded once, to the grid of the
 * result: to the nearest of the exact sum, ties to even, where weights have up to 22 bits (8-bit
 * operands: 24) behind the point, as whole multiples of 1/8 do; others are rounded to so many. */
bool resize_linear_bind(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e);

/* Axis after axis, each result from as many elements as the mode takes: cubic, antialias,
 * extrapolation, and linear along more axes than two. On integers the numbers between two axes have
 * 30 bits: before it is rounded the result is off by less than 2^-22 of the operand's steps (of 16
 * bits: 2^-14) for each coefficient, by nothing where they are those of whole multiples of 1/4. */
bool resize_taps_bind(Binder *b, const Node *n, const ResizeAttrs *a, const Extent *e);

/* Whether integer kernels take operand and result. */
bool resize_integers_fit(const Node *n);
/* All axes stay as they are: the result is the operand, on a grid of its own perhaps. */
bool resize_nothing(Binder *b, const Node *n);

#endif
