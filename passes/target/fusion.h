/* What a runtime makes of a node of a QDQ model when it loads it with all optimizations, by the
 * rules of its page (`fuses`), which are shaped as onnxruntime's QDQ selectors are (1.31): told per
 * node, and why one does not hold. int8 activations count as fused: on x86 that wants the session
 * option session.qdqisint8allowed. test/oracle/test_ort_fusion.py compares with the models that
 * onnxruntime writes out. Nothing is changed; reasons have the memory of the module. */
#ifndef QXC_PASSES_TARGET_FUSION_H
#define QXC_PASSES_TARGET_FUSION_H

#include "passes/quant_build.h"

typedef enum FusionKind {
    FUSION_NONE,       /* no integers reach it: nothing to fuse */
    FUSION_CONVERSION, /* QuantizeLinear, DequantizeLinear */
    FUSION_QOPERATOR,  /* becomes `op`: QLinearConv, QGemm */
    FUSION_INTEGERS,   /* stays what it is, on integers */
    FUSION_REMOVED,    /* the QuantizeLinear behind it does the same */
    FUSION_ROUNDED,    /* float by weights alone: `op` rounds the float operand to 8 bits too */
    FUSION_REFUSED,    /* stays float between conversions: `why` */
    FUSION_ALREADY,    /* an operator on integers in the model as it is */
} FusionKind;

typedef struct Fusion {
    FusionKind kind;
    const char *op;  /* the operator that runs, e.g. "QLinearConv" */
    const char *why; /* FUSION_REFUSED */
} Fusion;

Fusion fusion_of(const TargetPage *t, const Node *n, const Uses *u);

#endif
