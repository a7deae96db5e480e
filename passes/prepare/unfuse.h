/* com.microsoft's products that have an activation, which `unfuse` takes apart. */
#ifndef QXC_PASSES_PREPARE_UNFUSE_H
#define QXC_PASSES_PREPARE_UNFUSE_H

#include "support/str.h"

/* ONNX's operator of the product: Conv of FusedConv, Gemm of FusedGemm. NULL of all others. */
const char *fused_product(Str domain, Str op);

#endif
