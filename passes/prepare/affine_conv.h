/* An affine operator that stands alone as a Conv, for fold-affine. */
#ifndef QXC_PASSES_PREPARE_AFFINE_CONV_H
#define QXC_PASSES_PREPARE_AFFINE_CONV_H

#include "passes/quant_build.h"

/* Where n scales and shifts channels and has no integer form (BatchNormalization), a Conv with
 * group = C and 1x1 kernels takes its place. Runtimes compute matrices and volumes as fast in
 * float; `no_floats` says that they cannot. */
void affine_to_conv(QuantBuild *b, Node *n, bool no_floats);

#endif
