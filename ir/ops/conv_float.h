/* Convolution of floats with channels last and constant weights, which are packed: the fast form of
 * what conv.c and convtranspose.c bind. */
#ifndef QXC_IR_OPS_CONV_FLOAT_H
#define QXC_IR_OPS_CONV_FLOAT_H

#include "ir/ops/bind.h"

/* Whether this form serves for the node's operands (x, weights [oc, ic / group, kh, kw], perhaps a
 * bias); else the general kernels do. */
bool conv_float_fits(const Binder *b, const Node *n, const Spatial *s, int32_t group);
bool conv_float_bind(Binder *b, const Node *n, const Spatial *s, int32_t group);

/* The same for ConvTranspose, with weights [ic, oc / group, kh, kw]. */
bool convtranspose_float_fits(const Binder *b, const Node *n, const Spatial *s, int32_t group);
bool convtranspose_float_bind(Binder *b, const Node *n, const Spatial *s, int32_t group);

/* How the products of a sum of `lines` times `length` elements are added up: `chain` in a row, and
 * `part` of them before the weights of the next ones are read, neither 0. Chains end where lines
 * do, where that is possible without very short ones. */
void conv_float_chains(int32_t length, int32_t lines, int32_t *part, int32_t *chain);

#endif
