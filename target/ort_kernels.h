/* Which kernels onnxruntime's CPU provider really has for operators on integers, as it answered
 * itself (tools/probe_ort_kernels.py writes target/ort_kernels.def). Reasons are in words,
 * NULL where there is none; their memory is the module's. */
#ifndef QXC_TARGET_ORT_KERNELS_H
#define QXC_TARGET_ORT_KERNELS_H

#include "ir/ops/op.h"

/* Whether there is one at this opset for these types: of the operator's type variables, in the
 * order in which data operands and results first have them; of QuantizeLinear and
 * DequantizeLinear operand, scale, result. Opsets before and after those probed count as the
 * nearest. False for operators that were not probed. */
bool ort_has_kernel(const char *domain, const char *op, int64_t opset, const ElemType *types,
                    size_t n);

/* Why the node cannot be this operator, its own or a QOperator, on these types. */
const char *ort_refuses(const Node *n, const char *domain, const char *op, const ElemType *types,
                        size_t n_types);

/* The opset among those that were probed that is nearest. */
int64_t ort_probed_opset(int64_t opset);

#endif
