/* Multiply and accumulate on integers: what Conv, Gemm and MatMul share when they are bound.
 *
 *   acc = sum (x - xz) (w - wz[c]) + bias[c],  y = sat(rint(acc * m[c]) + yz)
 *   m[c] = float32(float32(float32(alpha * sx) * sw[c]) / sy), rounded in this order; what rint and
 *   m are where -requant asks for fixed point: kernels/round, ir/ops/rounding.h */
#ifndef QXC_IR_OPS_MAC_H
#define QXC_IR_OPS_MAC_H

#include "ir/ops/bind.h"
#include "ir/ops/rounding.h"

typedef struct Mac {
    const Quant *x, *w, *y; /* y NULL: the result is float */
    ElemType types[3];      /* of x, w, y, as in the kernels' names */
    ElemType acc, expand;
    size_t channels;
    float *scale; /* of the accumulator: one, or one a channel */
    int32_t m_step;
    int32_t wbits, wsign; /* of packed weights (bind_packed); else 0 */
    SumRounding rounding; /* of sums, exact where they become no integers */
    int32_t xz, yz, lo, hi;
    bool dynamic;      /* x has parameters computed at run time, and is taken less its zero point */
    bool raw;          /* the result is the accumulator itself (int32q with its scale) */
    const Value *real; /* a float bias that is no part of the sum; NULL: there is none */
    float alpha;
    const char *why; /* it has to be computed in double, where a function below says so */
    int out_args[2]; /* multipliers and shifts, or scales; between the operands and the result */
    int n_out_args;
} Mac;

/* What the params of all these kernels call the same: initializers. MAC_PARAMS are those of kernels
 * that read weights as ONNX lays them out. */
#define MAC_RESULT(m) .yz = (m)->yz, .lo = (m)->lo, .hi = (m)->hi
#define MAC_PARAMS(m) MAC_RESULT(m), .m_step = (m)->m_step, .wbits = (m)->wbits, .wsign = (m)->wsign

/* Whether one accumulator a result can do: neither operand is quantized in blocks. Where not, the
 * node is computed in float between conversions, as its meaning is defined. */
bool mac_fits(const Value *x, const Value *w);
/* Float versions of up to three operands (x, w, bias) and of the result; false after saying why. */
bool mac_floats(Binder *b, const Node *n, const Value *bias, int buffers[4]);
/* Quantizes the float result in buffers[3] where the result is quantized. */
bool mac_store(Binder *b, const Node *n, const int buffers[4]);

/* Reads the quantization of operands and result. `axis` is the weight's channel axis, `terms` how
 * many products make a sum. False where the integer kernels cannot hold it (storage above 16 bits,
 * parameters along other axes, 8-bit sums beyond int32): the node has to be computed in double, for
 * the reason in `why`. */
bool mac_prepare(Binder *b, const Value *x, const Value *w, const Value *y, int axis,
                 size_t channels, int64_t terms, float alpha, Mac *m);
/* The largest |q - zp| of a quantization. */
int64_t mac_reach(const Quant *q);
/* False, with the reason in `why`. */
bool mac_refuse(Mac *m, const char *why);
/* Where x has parameters computed at run time (mac_dynamic.c): true after saying so where the
 * operator does not take it, the weights are not integers or the result is. */
bool mac_dynamic_refused(Binder *b, const Node *n, const Value *w);
/* The buffers that the product reads x from and writes its result to. A dynamic x is taken less its
 * zero point, which is entered in `m` with the table of scales. mac_finish, called behind the
 * product, adds beta times a bias that is no part of the sum. Packed products do all of it
 * themselves. */
int mac_input(Binder *b, const Node *n, Mac *m);
int mac_output(Binder *b, const Node *n, const Mac *m);
bool mac_finish(Binder *b, const Node *n, const Mac *m, float beta, int from);
/* Calls `kernel`, of the types in `m`: operands and result, tables between them and scratch behind
 * them, in the order that all kernels of products take them. -1: none. */
typedef struct MacBuffers {
    int x, w, bias, wz, y;
} MacBuffers;
bool mac_call(Binder *b, const Node *n, const Mac *m, const char *kernel, const void *params,
              size_t params_size, MacBuffers at, int n_scratch, const int *scratch);
/* Zero points of the weights, as a table of one or of all channels, less `bias`. */
int mac_weight_zp(Binder *b, const Mac *m, int32_t bias, int32_t *step, bool *all_zero);
/* The bias in units of the accumulator, rows x channels, times beta; -1 without one, or where it is
 * no part of the sum but m->real, which mac_finish adds: floats beside a float result (a constant,
 * or with a beta of 1), and each beside a dynamic x. False as above: it is computed, and not in
 * these units. */
bool mac_bias(Binder *b, Mac *m, const Value *bias, int32_t rows, float beta, int *buffer);

/* A constant bias (of quantization q, NULL: float) that is added to sums of x and w for a result y
 * = alpha * (sum + factor * bias); x and y per tensor (mac_finer.c). */
typedef struct BiasUnits {
    const Tensor *bias;
    const Quant *q, *x, *w, *y;
    double alpha, factor;
} BiasUnits;
/* Those of a node with a float bias; false where it has none, or is not of this form. */
bool mac_bias_units(const Node *n, BiasUnits *u);
/* How far rounding to 2^-bits of a unit moves results at most, in steps of y. */
double mac_bias_error(const BiasUnits *u, int bits);
/* How many bits behind the point of a unit a result of 16 bits needs; 0 where whole units do, or
 * the weights `w` leave no room (16 bits, not constant). */
int mac_bias_bits(const BiasUnits *u, const Value *w);
/* `w` times 2^bits as int16, its scale over that: a stand-in that still needs an id. */
Value *mac_finer_weights(Arena *a, const Value *w, int bits);

#endif
