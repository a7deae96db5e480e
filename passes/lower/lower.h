/* What lower-qdq and lower-qop share: each quantized value becomes plain integers and, where an
 * operator needs one, a float companion behind QuantizeLinear or DequantizeLinear.
 *
 * Both walk the graphs once, in order, subgraphs at their node; a DequantizeLinear stands behind
 * the definition and serves every consumer, but those in bodies: onnxruntime fuses within one graph
 * only, so each body has one of its own. Memory is the module's; nothing fails but through the
 * arena. */
#ifndef QXC_PASSES_LOWER_LOWER_H
#define QXC_PASSES_LOWER_LOWER_H

#include "passes/target/legal.h"

typedef struct Lower Lower;
typedef struct Spelled Spelled;
struct Lower {
    QuantBuild b;
    PassContext *c;
    Uses *uses;
    bool qop;            /* integers keep the value's name and `~ !q`; else the float value does */
    size_t n;            /* size of the tables: values that existed at the start */
    const Quant **quant; /* by value id: what it was quantized with */
    Value **ints;        /* by value id: its integers */
    Value **floats;      /* by value id: its float companion */
    Type *types;         /* by value id: what it will be; set at the end, so that rules which look
                            at quantized types can be asked on the way */
    struct InBody *in_body; /* companions that bodies have of their own; the last first */
    bool *exact;            /* by value id: its float companion lies on the grid without a Q */
    bool within;            /* the node at hand makes no integers that its operands do not hold */
    bool freed;       /* a form took the float input: DynamicQuantizeLinear may be left over */
    bool kept_float;  /* a float constant stayed, with a QuantizeLinear on it */
    Spelled *spelled; /* names and places that Q and DQ had in ONNX */
    void (*node)(Lower *l, Node *n); /* lowers an operator that is no conversion */
};

/* Lowers the whole module, calling l->node for each operator on quantized values. */
void lower_module(Lower *l, Module *m);

/* The quantization that the value had, or NULL; its integers; its float companion for `user`. */
const Quant *lower_quant(const Lower *l, const Value *v);
Value *lower_ints(const Lower *l, Value *v);
Value *lower_float(Lower *l, Value *v, Node *user);

/* The usual ways: the node computes in float between DequantizeLinear and QuantizeLinear; or it
 * runs on the integers as they are. */
void lower_around(Lower *l, Node *n);
void lower_on_integers(Lower *l, Node *n);
/* Result i of the node becomes plain integers. */
void lower_result(Lower *l, Node *n, size_t i);
/* Result i of the node becomes float, quantized behind it. */
void lower_float_result(Lower *l, Node *n, size_t i);

/* What quantizes to a range narrower than the storage (lower_clip.c): whether a Clip of the
 * integers is to stand behind it, that Clip, or one of the numbers before it. */
bool lower_clips_behind(Lower *l, const Quant *q, const Value *y);
void lower_clip_behind(Lower *l, Node *quantize, const Quant *q, Str base);
Value *lower_clip_before(Lower *l, Value *x, const Quant *q, Node *quantize, Str base);

/* The node, which moves data or keeps order, runs on the integers as it is; or why it cannot. */
const char *lower_mover(Lower *l, Node *n);

/* Name of the QOperator that takes the node's place. */
Str lower_quant_name(const Lower *l, const Node *n);

/* Quantized biases on a grid of their own become int32 on the accumulator's, with a note. Wants
 * l->uses; the types are still those before lowering. */
void lower_biases(Lower *l, Module *m);

/* A Gemm with constant weights as ONNX's own QLinearConv with a window of one (ai.onnx has no
 * QGemm). False, and nothing changed, where it is not of that kind. */
bool lower_gemm_as_conv(Lower *l, Node *n);

/* Sums that stay int32 until they become float (lower_accumulator.c): the product or the addition;
 * the DequantizeLinear of one. False, and nothing changed, where they are none. */
bool lower_accumulator(Lower *l, Node *n);
bool lower_sums_integers(const Lower *l, const Node *n); /* whether it is one of these */
bool lower_accumulator_to_float(Lower *l, Node *n);

/* Quantization with parameters computed at run time (lower_dynamic.c): QuantizeLinear to such a
 * type; the product that reads it, false where it is none. */
void lower_dynamic_quantize(Lower *l, Node *n);
bool lower_dynamic(Lower *l, Node *n);
/* Adds of constant rows become part of com.microsoft's products before them. */
void lower_dynamic_bias(Module *m);
/* LSTM, Attention, EmbedLayerNormalization with integer weights (lower_form.c); false: not one. */
bool lower_dynamic_form(Lower *l, Node *n);
/* Drops DynamicQuantizeLinear that nobody reads any more; nodes from `first` on are this pass's. */
void lower_form_finish(const Lower *l, Module *m, uint32_t first);

#endif
