/* What a target may hold: the opset that quantized types need, and whether a node on quantized
 * types can be a QOperator or run on the integers as it stands. Questions are answered with NULL
 * for yes, else the reason in words (arena of the module); legal_prepare and guard_fusions alone
 * change the module. */
#ifndef QXC_PASSES_TARGET_LEGAL_H
#define QXC_PASSES_TARGET_LEGAL_H

#include "passes/quant_build.h"

/* Lowest opset whose QuantizeLinear and DequantizeLinear can state every quantization in the
 * module: 10 per tensor, 13 per axis, 21 for 4 and 16 bits or blocks, 25 for 2 bits. */
int64_t quant_min_opset(const Module *m);
/* Parameters that lowering has to write down must be known; then raises the module's opset to what
 * they need. Fails with a diagnostic. */
bool legal_prepare(Module *m, PassContext *c);

/* May this node take its operator's QOperator form on `target`? */
const char *qop_refusal(const Node *n, const TargetPage *target, Diags *d);
/* May this node, which moves data or keeps order, run on the stored integers as it is? */
const char *integer_refusal(const Node *n, const TargetPage *target);
/* May ONNX's operator `op` of one type take its place on integers of type `e`? */
const char *other_refusal(const Node *n, const char *op, ElemType e, const TargetPage *target);

/* May the value `v`, whose parameters are computed at run time, be lowered? */
const char *dynamic_refusal(const Uses *u, const Value *v);

/* What a Clip (or Relu) bounds: -inf and inf where open. False when not constant. */
bool clamp_bounds(const Node *n, float *lo, float *hi);
/* Whether every integer of `q` is already within the bounds: the node changes nothing. */
bool clamp_is_noop(const Node *n, const Quant *q);

/* Whether only a part of the storage range is used. */
bool quant_narrowed(const Quant *q);

/* After lowering: where the target would fuse Q and DQ into something wrong, a Sum of one operand
 * keeps it from recognising the pattern. */
void guard_fusions(QuantBuild *b, Module *m, const TargetPage *target);
bool is_guard(const Node *n); /* such a Sum */

/* Of a target that has the kernels of ort_kernels.def: whether all quantized types of a module in
 * its final opset can be converted from and to; a diagnostic each where not. Warns of an opset that
 * no onnxruntime probed loads (kernels_check.c). */
bool kernels_check(Module *m, PassContext *c);

/* Warns where the target's sums saturate on the processor that was named (saturation.c). */
void warn_of_saturation(Module *m, PassContext *c);

/* All data operands and results that are quantized have one quantization in common. */
bool same_quant(const Node *n);

#endif
