/* What nodes state of the quantization that was decided for what they read and make, so that it
 * outlives a model of floats: metadata "quantization.in.0" of an operand, "quantization.out.0" of a
 * result, with the words of a `quant` line: `!conv = uint8q<0.1, 3>`, or the type alone. Beside an
 * annotation, which says the rest, `range=-7:7` does.
 *
 * A result is stated by the node that makes it; graph inputs and constants by every node that reads
 * them. The annotate pass writes these, compiler/stated.c reads them. */
#ifndef QXC_PASSES_STATED_H
#define QXC_PASSES_STATED_H

#include "ir/ir.h"

/* Whether the metadata `key` is of an operand or a result, and of which. */
bool stated_key(Str key, bool *result, size_t *index);
/* `q` in the words of its line; memory of the arena. STR_NONE where it has none of its own. */
Str stated_quant(Arena *a, const Quant *q);
Str stated_range(Arena *a, const Quant *q);
/* Lets nodes state the text. False after an error: a node states something else of this value.
 * `n_nodes` is how many state it now. */
bool stated_put(const Uses *u, Value *v, Str text, Diags *d, size_t *n_nodes);

#endif
