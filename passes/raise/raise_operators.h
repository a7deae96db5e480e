/* What the ways to raise an operator share: those that compute (raise_operators.c) and those that
 * hand numbers on (raise_movers.c). */
#ifndef QXC_PASSES_RAISE_RAISE_OPERATORS_H
#define QXC_PASSES_RAISE_RAISE_OPERATORS_H

#include "passes/raise/raise.h"

/* Whether the node has its first result and no other. */
bool operator_has_one_result(const Node *n);
/* `y` takes the place of the integers that `q` made of it; the interface keeps its names. */
void operator_absorb(Raise *r, Node *q, Value *y);
void operator_set_quantized(Value *v, const Quant *q);
/* Numbers of `from` are those of `to`, be it that `from` has fewer: what is handed on is not
 * clipped again (lower_qdq.c), and keeps its range. */
bool operator_is_within(const QuantBuild *b, const Quant *from, const Quant *to);
/* It is told why the node stays float. */
void operator_keep_float(Raise *r, const Node *n, const char *why);
/* All data operands become the integers behind them; false: the node stays float. */
bool operator_reads_integers(Raise *r, Node *n);

/* The result of a node that moves numbers takes its operand's quantization. */
void raise_mover(Raise *r, Node *n);
/* Relu of integers, and a Concat of those of one grid, yield integers of that grid, whoever reads
 * them: several QuantizeLinear, a product. */
void raise_kept(Raise *r, Node *n);

#endif
