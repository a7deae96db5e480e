/* QONNX: quantizers as operators of a domain of their own (Brevitas, QKeras, FINN). They compute on
 * floats, and the integers never stand in the graph. */
#ifndef QXC_PASSES_RAISE_RAISE_QONNX_H
#define QXC_PASSES_RAISE_RAISE_QONNX_H

#include "passes/quant_build.h"

/* ---- what the parts of the pass share ---- */

typedef struct Qonnx {
    QuantBuild b;
    const Uses *uses; /* as of the start */
    bool ok;
} Qonnx;

/* Operand i as a float constant in *out; else `why`. */
const char *qonnx_const(const Node *n, size_t i, const char *why, const Tensor **out);
/* Why these are no scales, or NULL. */
const char *qonnx_check_scale(const Tensor *s);
/* The number that all elements are, where it is an integer within lo..hi. */
bool qonnx_integer(const Tensor *t, int64_t lo, int64_t hi, int64_t *out);
/* Parameters of these scales, which spread over x, and this zero point; why there are none. The
 * range is that of `bits` bits; constants are stored as small as they are, what is computed in
 * bytes, as few runtimes have anything narrower for that. */
typedef struct QonnxInts {
    int64_t bits, zp;
    bool is_signed, narrow, constant;
} QonnxInts;
const char *qonnx_quant(Qonnx *o, const Tensor *s, Type x, QonnxInts ints, Quant **out);

/* The result of a new node before n, named after n's result. */
Value *qonnx_node(Qonnx *o, Node *n, const char *op, size_t n_in, Value **in, Type t);
/* n becomes the DequantizeLinear of x quantized to q. */
void qonnx_becomes_pair(Qonnx *o, Node *n, Value *x, const Quant *q);
/* `t` as float, its shape kept. */
Type qonnx_float(Type t);

/* Each replaces the node; returns why it cannot, or NULL. */
const char *raise_rounding(Qonnx *o, Node *n);   /* Trunc; Quant of another rounding */
const char *raise_thresholds(Qonnx *o, Node *n); /* MultiThreshold */
/* Whether the rounding_mode is that of quantized types. */
bool rounds_to_even(const Node *n);

#endif
