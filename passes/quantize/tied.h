/* Tied tables (-tie-tables): a table that Gather looks rows up in and the weights of a product that
 * are the same numbers, mostly the first and the last layer of a language model. */
#ifndef QXC_PASSES_QUANTIZE_TIED_H
#define QXC_PASSES_QUANTIZE_TIED_H

#include "passes/pass.h"

/* The axis of output channels of a product whose weights are float [rows, columns] in its operand
 * `at`: the axis that rows of a table are looked up along. -1 where the node has none such. */
int tied_axis(const Node *product, size_t at, Diags *d);
/* Whether the node looks whole rows up in `table`, a float constant of two dimensions, along
 * `axis`. */
bool tied_looks_up(const Node *n, const Value *table, int axis);
/* NULL where the table that `look` reads can take the type of the weights: both are to be integers,
 * and no rule singles the table out that says otherwise. Else why the two are not tied. */
const char *tied_refusal(const PassContext *c, const Node *look, const Value *table,
                         const Node *product, const Value *weights);

#endif
