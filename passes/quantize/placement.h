/* Which nodes compute on integers, and so where quantizers stand (-placement).
 *
 * An operator that is quantized for its own sake wants quantizers before it: a product, and where
 * all is quantized any that the runtime has on integers. What only moves or cuts follows. Between
 * products, where a page says what its runtime fuses, an operator is integer that needs no
 * quantizer of its own before it and whose result something integer reads. */
#ifndef QXC_PASSES_QUANTIZE_PLACEMENT_H
#define QXC_PASSES_QUANTIZE_PLACEMENT_H

#include "passes/quantize/decide.h"

/* What -placement and the target's page come to. */
Placing placing_of(const PassContext *c);

/* Why it may not be integer where quantizers stand so; NULL: it may. */
const char *why_not_placed(const Decide *d, const Node *n);

/* Marks what is integer and what is wanted, and tells why of what stays float. */
void placement_mark(Decide *d);

/* Makes integer what stands between integers (a GraphFn over a Decide). */
void join_between(Graph *g, void *ctx);
/* Leaves small products float whose results nobody reads in integers. */
void leave_lone_products(Decide *d);

/* Whether it is a product with a result. */
bool is_mac(const Node *n);
/* Whether its result has a quantizer only so that the runtime computes it on integers: no rule asks
 * for one. */
bool wants_result_alone(const Decide *d, const Node *n);

#endif
