/* Products with constant weights of 8 or 4 bits, packed for the micro-kernels: what Conv, Gemm and
 * MatMul share. Weights of a group are columns of k elements each; blocks of 16 columns lie as
 * [segments][k / 4][16][4], filled up with zeros (kernels/matmul/gemm_tile.qk), those of 4 bits in
 * half of it (kernels/matmul/unpack4.qk). Tables have one entry a column, filled up with that of a
 * group's last one. Everything belongs to the program. */
#ifndef QXC_IR_OPS_PACKED_H
#define QXC_IR_OPS_PACKED_H

#include "ir/ops/mac.h"

enum { PACKED_MOST_TERMS = 65536 }; /* of a sum: times 255 * 128 it is below 2^31 */

typedef struct Packed {
    int weights, bias;
    int tables[3]; /* multipliers and shifts; or scales, what is added, zero points */
    int n_tables;
    int params;        /* where they are computed at run time, else -1 */
    int32_t steps;     /* of four along k of a segment */
    int32_t xz;        /* zero point of x, which counts from 0 */
    ElemType types[3]; /* of x, w, y, as in the kernels' names */
    Plain plain;       /* columns 0: there is none */
} Packed;

/* The buffer of the weights `w` less their zero points, which `axis` has one for each index of:
 * what the functions below take in place of weights of 4 bits. -1 where they are none, or do not
 * fit -8 to 7. */
int packed_small(Binder *b, const Mac *m, const Value *w, int axis);

/* What belongs to a column beside its weights, a constant table each, -1 for none: what is added to
 * its sums, or `factor` times the floats of `real` that are added to a float result, NULL for none;
 * and where parameters of x are computed at run time, zero points of the weights, one for each
 * channel. */
typedef struct Beside {
    int bias;
    const Value *real;
    float factor;
    int zeros;
} Beside;

/* The 8-bit weights `w` as signed ones, of which `axis` counts channels: their buffer, and the
 * table of their zero points, or -1 where there are none any more. -1 where they are not constant
 * or not of 8 bits, or have zero points for which x must have parameters computed at run time. */
int packed_signed(Binder *b, const Mac *m, const Value *w, int axis, int *zeros);

/* Whether the operands are of these types: 8-bit activations, signed weights of 8 bits or any of 4;
 * floats to add are constant, one for each column or for all, or absent. */
bool packed_takes(const Mac *m, const Beside *o);

/* Whether these weights are worth packing and the sums of k products of them fit: operands as
 * above. */
bool packed_fits(Binder *b, const Mac *m, int32_t groups, int32_t columns, int32_t k,
                 const Beside *o);

/* Packs columns[groups * columns][segments][k] for the node. The bias takes in the zero point of x
 * and the 128 by which signed x is raised. */
Packed packed_bind(Binder *b, const Node *n, const Mac *m, const int8_t *rows, int32_t groups,
                   int32_t columns, int32_t segments, int32_t k, const Beside *o);

/* The same for one channel of output for each of input: columns[channels][k] as pairs of k,
 * [k / 2][channels][2], for kernels/conv/depthwise_nhwc_q.qk; channels of 4-bit weights are filled
 * up to a multiple of 4. xz is that of x itself. */
Packed packed_depthwise(Binder *b, const Node *n, const Mac *m, const int8_t *columns,
                        int32_t channels, int32_t k, const Beside *o);

/* Calls a kernel of this shape: (x, weights, bias, tables, y, scratch), named after x, the
 * weights and y. `pads`: where its result is float, it also takes the parameters of x, behind the
 * tables. */
bool packed_call(Binder *b, const Node *n, const char *kernel, const Mac *m, const Packed *p,
                 bool pads, const int args[3], const void *params, size_t size);

#endif
