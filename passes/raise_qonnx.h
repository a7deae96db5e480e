/* QONNX: quantizers as operators of a domain of their own (Brevitas, QKeras, FINN). They compute on
 * floats, and the integers never stand in the graph. */
#ifndef QXC_PASSES_RAISE_QONNX_H
#define QXC_PASSES_RAISE_QONNX_H

#include "ir/ir.h"

/* Quant, IntQuant, BipolarQuant or Trunc of one of QONNX's domains. */
bool is_qonnx(const Node *n);

#endif
