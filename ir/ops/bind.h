/* What the bind functions of several operators share: shapes as kernels take them, multipliers,
 * tables. Types are static and counts fit int32 (the binder checks). Everything a function makes
 * belongs to the program; what cannot run is reported through bind_unsupported, as false. */
#ifndef QXC_IR_OPS_BIND_H
#define QXC_IR_OPS_BIND_H

#include "ir/ops/op.h"
#include "kernels_gen.h"

/* ---- nodes: bind_node.c, bind_double.c, room.c ---- */

/* The input of a body has its elements now; they are rounded where its type says so. */
void bind_body_input(Binder *b, const Node *n, const Value *v);
/* Binds all nodes of a subgraph in place. */
bool bind_graph(Binder *b, const Graph *g);
/* Binds the node as its meaning is defined: operands dequantized exactly, the float operator in
 * double, its result quantized or rounded to float. For what has no integer kernel: more than 16
 * bits, parameters along an axis. Within 2^-40 of the real result for sums of up to 2^12 terms,
 * before that last rounding. */
bool bind_in_double(Binder *b, const Node *n);
/* The same, with words of its own for why (Program.why_double), behind "computed in double: ". */
bool bind_in_double_as(Binder *b, const Node *n, const char *why);
/* Binds a node of real numbers whose operands are plain integers, those with a bit in `data`: they
 * become doubles, and the result is cut towards 0; numbers outside of int32 become its least. */
bool bind_integers_in_double(Binder *b, const Node *n, unsigned data);
/* The node of the module that `n` stands for while it is bound, with other types; else n itself. */
const Node *bind_original(const Binder *b, const Node *n);
/* Whether the node being bound stands for another, with other types. */
bool bind_is_stand_in(const Binder *b);
/* How much scratch `n` may ask for without being what the size of the arena depends on: the bytes
 * by which what is alive while it runs falls short of the busiest time and a 32nd more. */
size_t bind_room(Binder *b, const Node *n);
/* Whether less scratch is worth a slower way. */
bool bind_spares_scratch(const Binder *b);

/* ---- shapes and parameters ---- */

/* Element type as kernels see it: 4 bits and narrower are unpacked to a byte. */
ElemType bind_elem(const Value *v);
int32_t bind_count(const Value *v);
/* Product of dims [from, to). */
int32_t bind_extent(Type t, int from, int to);
/* Constants below 8 bits stay as ONNX packs them where the kernel takes them apart itself. */
bool bind_is_packed(const Value *v);
int bind_packed(Binder *b, const Value *v);
bool bind_equal_quant(const Value *x, const Value *y); /* both without, or the same */

/* Known parameters for the whole tensor: what the integer kernels take. */
bool quant_plain(const Quant *q);
void quant_range(const Quant *q, int32_t *lo, int32_t *hi);
int32_t quant_zero(const Quant *q); /* zero point of a plain one */
/* What all kernels that make integers call the same: initializers for results of this one. */
#define RESULT_PARAMS(q) .yz = quant_zero(q), .lo = (int32_t)quant_lo(q), .hi = (int32_t)quant_hi(q)

/* Cuts the first result, which a kernel filled as if all numbers of its storage were in use, to
 * those that its quantization has; nothing where it has all. */
bool bind_into_range(Binder *b, const Node *n);

/* False after saying so, unless all operands and the result are float. */
bool bind_floats_only(Binder *b, const Node *n);
bool bind_any_quant(const Node *n);
/* Whether all operands and the first result are integers of one storage type with parameters for
 * the whole tensor. */
bool bind_one_storage(const Node *n);

/* A broadcast elementwise operation, neighbouring dimensions merged where both operands allow. */
typedef struct Broadcast {
    int32_t rank, dim[MAX_RANK], as[MAX_RANK], bs[MAX_RANK];
} Broadcast;
Broadcast bind_broadcast(Type a, Type b, Type y);
/* Params that begin with one take it by memcpy. */
#define BEGINS_WITH_BROADCAST(params)                                                              \
    _Static_assert(offsetof(params, bs) == offsetof(Broadcast, bs), "copied as it is")
/* y = a op b of elements e by kernels/pointwise/binary.qk ("add", "max", ...); args: the buffers of
 * a, b, y. */
bool bind_binary(Binder *b, const Node *n, const char *op, ElemType e, Broadcast s,
                 const int args[3]);
/* A quantized operand in the parameters of the node's result, another as it is. */
int bind_joined(Binder *b, const Node *n, const Value *x, bool *ok);
int bind_joined_to(Binder *b, const Node *n, const Value *x, const Value *y, bool *ok);
/* y = x . w + bias on floats, by the strides that the params say; args: the buffers of x, w,
 * bias (-1 for none) and y.
 * Constant w is laid out anew where the kernel's scratch would make the arena larger (product.c).
 */
bool bind_matmul(Binder *b, const Node *n, const qk_matmul_f32_params *p, const int args[4]);
/* Strides in elements of an operand that broadcasts to `rank` dimensions; 0 where it repeats. */
void bind_strides(Type t, int rank, int32_t *stride);
/* The same for the two operands and the result of a node, with their buffers: channels come last
 * where those of an operand do. */
Broadcast bind_pair(Binder *b, const Node *n, int args[3]);

/* Conv and pools on [N, C, W] or [N, C, H, W], the first with height 1; of [N, C, D, H, W] the last
 * two dimensions. */
typedef struct Spatial {
    int32_t n, ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, dh, dw, pt, pl, pb, pr;
} Spatial;
/* What all kernels with windows call the same: the initializers of these params, channels apart. */
#define WINDOW_PARAMS(s)                                                                           \
    .n = (s)->n, .ih = (s)->ih, .iw = (s)->iw, .oh = (s)->oh, .ow = (s)->ow, .kh = (s)->kh,        \
    .kw = (s)->kw, .sh = (s)->sh, .sw = (s)->sw, .dh = (s)->dh, .dw = (s)->dw, .pt = (s)->pt,      \
    .pl = (s)->pl
bool bind_spatial(Binder *b, const Node *n, const Window *w, Type x, Type y, Spatial *s);
/* Spatial dimension i of a window from x to y, which bind_spatial took. A stride that is never
 * taken and a dilation of one element say nothing, however large: they are 1, so that all indices
 * and scratch stay within the padded input. Below 0 is a dimension that is not there, of 1. */
typedef struct WindowAxis {
    int32_t in, out, kernel, stride, dilation, begin, end; /* begin, end: pads */
} WindowAxis;
WindowAxis window_axis(const Window *w, int i, Type x, Type y);

/* Copies x into a box of y: `offset` elements in, rows of `row` elements every `step`. */
bool bind_copy_rows(Binder *b, const Node *n, int x, int y, ElemType e, int32_t rows, int32_t row,
                    int32_t step, int64_t offset);

/* The call of a kernel that takes the node's first operand and makes its first result. */
bool bind_first(Binder *b, const Node *n, const char *kernel, const void *params, size_t size);

/* The node's result is quantize(f(dequantize(x))) of its first operand, by table. */
typedef float UnaryFn(float x, const void *ctx);
bool bind_table(Binder *b, const Node *n, UnaryFn *f, const void *ctx);
/* The same where f is a kernel on floats, which takes x and y, may write over x, and whose params
 * begin with the number of elements: by table of what its twin in double yields where the operand
 * is quantized, else by the kernel itself. */
bool bind_unary(Binder *b, const Node *n, const char *kernel, const void *params, size_t size);
/* What the rows of such operators have in common. */
#define CURVE_ROW                                                                                  \
    .infer = op_same_type, .slices = op_slices_each,                                               \
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .curve = true}
/* y, whose element i[0], i[1], ... is x's element from[0][i[0]], from[1][i[1]], ... */
bool bind_take(Binder *b, const Node *n, const Value *x, const Value *y, int64_t *const *from);
/* A kernel that takes elements of operand 0 by indices, operand 1: see Within of their lengths. */
bool bind_indexed(Binder *b, const Node *n, const char *kernel, const void *params, size_t size,
                  bool from_end, const int32_t *lengths, int n_lengths);
/* The same for indices along one axis. */
bool bind_gather(Binder *b, const Node *n, int axis, bool from_end);

/* Constants of the type in which operators compute on real numbers (bind_real). */
int bind_reals(Binder *b, size_t count, const double *data, const char *comment);

/* Requantization to `out`, then a clamp to [lo, hi] in its integers; both one step for the kernels.
 * Exact for 8-bit operands, else see kernels/convert/requantize.qk. */
bool bind_requantize(Binder *b, const Node *n, const Value *x, int x_buffer, const Quant *out,
                     int y_buffer, int32_t lo, int32_t hi);

/* y = the sum of all operands, integers, divided by `divisor`; rounded once (mean.c). */
bool bind_sum_integers(Binder *b, const Node *n, int64_t divisor);

/* A table of exp of the differences of two of x's numbers, as softmax_q takes it (softmax.c). */
int bind_exponentials(Binder *b, const Value *x);

/* y = LayerNormalization of x[rows, width] with `scale` and, unless -1, `bias` of width numbers
 * (layernorm.c). */
bool bind_layer_rows(Binder *b, const Node *n, int32_t rows, int32_t width, float eps, int x,
                     int scale, int bias, int y);

/* Rows of integers whose parameters are computed at run time by rows of constant 8-bit weights
 * [parts, columns, len], of which part `part` is taken, to floats [parts, rows, columns]
 * (project.c).
 */
typedef struct Projection {
    int32_t rows, columns, len, part, parts;
    int weights; /* buffer, its rows as above whatever the value's */
} Projection;
/* Whether weights are of 8 bits, and few enough a row for sums in int32. */
bool bind_projects(const Value *w, int64_t len);
/* Scales and zero points of `n` rows (parts and columns), which `w` has in this order. */
void bind_row_params(Binder *b, const Value *w, size_t n, int *scale, int *zp);
bool bind_projection(Binder *b, const Node *n, const Projection *p, const Value *x, const Value *w,
                     int bias, int y);

/* Where the parameters of an element stand: those of x[o, a, i] in x[outer, axis, inner] at
 * o * s_outer + a / block * s_axis + i * s_inner. The fields open the params of all kernels that
 * convert. */
typedef struct Grid {
    int32_t outer, axis, inner, block, s_outer, s_axis, s_inner;
} Grid;
/* The parameters of a quantization as tables: float scales, int32 zero points (int64 if `wide`). */
Grid bind_grid(Binder *b, const Quant *q, Type t, bool wide, int *scale, int *zp);

/* Where no integer kernel fits (weights in blocks, sums of more than two): a float version of an
 * operand, and a result quantized from floats (quantize_bind.c). -1 and false after saying why not.
 */
int bind_dequantized(Binder *b, const Node *n, const Value *v);
bool bind_quantized(Binder *b, const Node *n, int from, const Value *y);

#endif
