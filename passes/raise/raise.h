/* Raising in steps, each leaving a module that computes the same:
 *   raise_channels_last com.microsoft's operators with channels last become ONNX's, and Transposes
 *   raise_nbits       MatMulNBits becomes DequantizeLinear of typed weights, and MatMul
 *   raise_gather      GatherBlockQuantized becomes DequantizeLinear of a typed table, and Gather
 *   raise_dynamic     products with parameters computed at run time read `uint8q<dynamic>`
 *   raise_accumulators MatMulInteger, Add, Cast, Mul become MatMul and Add of int32q
 *   raise_qoperators  QLinearConv and the like become DequantizeLinear, operator, QuantizeLinear
 *   raise_emulated    chains of Div, Round, Clip, Cast become Q; of Cast, Sub, Mul DQ (emulate.h);
 *                     what lowering cut off before a Q its range
 *   raise_clips       a Clip of integers between Q and DQ becomes the range of their type
 *   raise_integers    plain integers between those get quantized types; Q and DQ one operand
 *   raise_affine      BatchNormalization behind products goes into the scales of their weights
 *   raise_operators   an operator between DQ and Q computes on the quantized types itself
 *   raise_conversions what is left of Q and DQ: pairs, requantizations, dead ones
 *   raise_reasons     where none does, each operator beside Q and DQ says what stopped it first
 * What cannot be raised stays as it is, with a note. Memory is the module's. */
#ifndef QXC_PASSES_RAISE_RAISE_H
#define QXC_PASSES_RAISE_RAISE_H

#include "passes/quant_build.h"

typedef struct RaisedConst { /* a constant and its quantized twin */
    Value *plain, *quantized;
    bool own_grid;         /* the model rounds it: its numbers before that are not what it adds */
    const Tensor *numbers; /* those that it adds, where no integers of the twin are the same */
} RaisedConst;

typedef struct Spelling Spelling;
typedef struct Emulated Emulated;

typedef struct Raise {
    QuantBuild b;
    PassContext *c;
    Module *m;
    Uses *uses; /* as of the start of the step */
    Map *made;  /* names of float values that raise_qoperators invented */
    RaisedConst *consts;
    size_t n_consts, cap_consts;
    Map *twins;    /* quantized value by plain one and quantization, for the same data */
    Map *plains;   /* plain value by quantized one */
    Map *moved;    /* what took the place of a value that went */
    Map *emulated; /* what is Q or DQ for now and was spelled out (Emulated), by node id */
    Spelling *spelling;
    uint32_t first_made; /* nodes from here on were made by raising */
} Raise;

void raise_channels_last(Raise *r);
void raise_nbits(Raise *r);
void raise_gather(Raise *r);
void raise_dynamic(Raise *r);
/* raise_form.c: the node, where it is one of these, is replaced. `input` gives `x` quantized at run
 * time, by `dynamic` (DynamicQuantizeLinear, or NULL where `user` did it itself). */
typedef Value *RaiseInput(void *ctx, Node *user, Value *x, Node *dynamic);
bool raise_form(Raise *r, Node *n, RaiseInput *input, void *ctx);
/* Without the suffix that a QOperator's node has. */
Str raise_float_name(Str name);
void raise_accumulators(Raise *r);
void raise_qoperators(Raise *r);
/* Chains become Q and DQ as ONNX has them; what raise_integers left so becomes the chain again. */
void raise_emulated(Raise *r);
void raise_emulated_settle(Raise *r);
const Quant *raise_emulated_params(const Raise *r, const Node *n); /* NULL: it is none of these */
void raise_clips(Raise *r);
/* Bytes of which 0 and 1 are in use are one bit, which ONNX does not have. */
void raise_one_bit(Quant *q);
void raise_integers(Raise *r);
void raise_affine(Raise *r);
void raise_operators(Raise *r);
void raise_conversions(Raise *r);
void raise_reasons(Raise *r);

/* The quantization that a QuantizeLinear or DequantizeLinear of ONNX states. NULL when it cannot be
 * a type (computed, negative, float8, ...), with the reason in *why. */
const Quant *raise_params(Raise *r, const Node *n, const char **why);

/* Where several axes vary: what is equal in all neighbours on an axis becomes blocks, and an axis
 * on which nothing varies goes, as ONNX's blocks lie on one axis only. q is not used yet; `grid`
 * has the number of its entries on each of its axes. */
void raise_merge_blocks(Raise *r, Quant *q, const int64_t *grid);

/* The type of weights of elements e with `count` parameters along `axis`, or one. Of each of s
 * (scales, float) and z (zero points, NULL: 0) there are `count`, or one for all; in s each is
 * already multiplied by `times`. NULL where a scale is no normal number. */
const Quant *raise_weights(Raise *r, ElemType e, int axis, size_t count, const Tensor *s,
                           const Tensor *z, float times);

/* A quantized constant with the data of `v`, which may be a Constant node; shared by equal asks. */
Value *raise_const(Raise *r, Value *v, const Quant *q);

/* The value with the integers of `v` in the quantized type q, NULL: there is none yet; `twin` is
 * one. */
Value *raise_twin(Raise *r, const Value *v, const Quant *q);
void raise_note_twin(Raise *r, const Value *v, Value *twin);

/* Records that `quantized` came of `plain`, and returns the record, which stays where it is until
 * the next one; the plain one of a value, or the value itself. */
RaisedConst *raise_note_const(Raise *r, Value *plain, Value *quantized);
Value *raise_plain(const Raise *r, Value *v);

/* `to` takes the place of `from` everywhere; what has taken the place of `v`, or v itself. */
void raise_replace(Raise *r, Value *from, Value *to);
Value *raise_follow(const Raise *r, Value *v);

/* Calls fn for every graph but function bodies, outer first. */
void raise_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx);

/* The quantized value behind a DequantizeLinear of ours, the value itself where it is quantized,
 * or NULL. */
Value *raise_source(Value *v);

/* The QuantizeLinear that all of y reaches, through nodes that commute with it, or NULL; and y with
 * all up to there takes the type `type` that it makes. */
Node *raise_reached_quantize(const Raise *r, const Value *y);
void raise_result(Raise *r, Value *y, Node *q, const Quant *type);
/* LSTM and its like, with two weights and several results (raise_recurrent.c). */
void raise_recurrent(Raise *r, Node *n);

/* Bias operand of a multiply-accumulate node whose operands will be x and w: an int32 value on the
 * accumulator's grid, or real numbers where those are to stay. NULL with *why when there can be
 * none. `y` is what the result is quantized to, NULL: it stays float. */
Value *raise_bias(Raise *r, Node *n, Value *bias, const Value *x, const Value *w, const Quant *y,
                  const char **why);

/* How ONNX spelled all this (raise_spelling.c, passes/spelling.h). */
/* Notes every Q and DQ as it stands; call before they change. */
void spelling_capture(Raise *r);
/* Hangs what was captured on the quantized values; call when names are final. */
void spelling_record(Raise *r);

/* s(q - z) with a scale s below 0 is |s|(m(q) - m(z)), where m turns the range around. */
static inline int64_t turned_around(ElemType e, int64_t v) {
    return elem_min(e) + elem_max(e) - v;
}

#endif
