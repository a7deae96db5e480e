/* Putting a spelling back (spelling.h tells what one is).
 *
 * - spelling.c: what it says (for raising too)
 * - lower_spelling.c: the nodes of each value, under their names
 * - lower_cells.c: the constants that they stand on: scales, zero points, float data
 * - lower_names.c: names, once it is known which nodes there are
 * - lower_order.c: the order of nodes and initializers
 *
 * Memory is the module's; nothing fails. */
#ifndef QXC_PASSES_LOWER_LOWER_SPELLING_H
#define QXC_PASSES_LOWER_LOWER_SPELLING_H

#include "passes/lower/lower.h"
#include "passes/spelling.h"

/* The float constant that a quantized bias was rounded from, where it still gives those integers;
 * else NULL. */
Value *spelled_float_bias(Lower *l, Value *v);
/* Before and after nodes are rewritten. */
void spelling_begin(Lower *l);
void spelling_restore(Lower *l);
/* The constants that are to state v's parameters for `user`: under the names of the DQ (or Q) of
 * v that the spelling has, where they still fit. */
QuantParams spelled_params(Lower *l, const Value *v, const Node *user, QuantParams p);

/* ---- between its files ---- */

typedef struct Want { /* a value and the name it had */
    Value *v;
    Str name;
} Want;

struct Spelled {
    Uses *uses;
    Map *cells;          /* constants by name, those of inner graphs by graph and name */
    Str *keys;           /* by node id: its first result's name, as the text has it */
    uint32_t first_node; /* nodes from here on were made by lowering */
    size_t *at, n_at;    /* by node id: its place + 1 */
    Want *wants;
    size_t n_wants, cap_wants;
};

/* ---- constants ---- */

/* Constants by name; those of inner graphs by graph and name. */
Str cell_key(const Lower *l, const Graph *g, Str name);
bool cell_same_data(const Tensor *x, const Tensor *y);
/* Scale and zero point of `n` as its note has them, where that says the same. */
void cells_restore(Lower *l, Node *n, const Node *note, const Quant *q);
/* The float constant `data`, as it was called, in the graph of `v`. */
Value *cell_float(Lower *l, Value *v, const Tensor *data);

/* ---- names and order ---- */

/* The value is to have the name again, unless it is part of the interface. */
void name_wanted(Lower *l, Value *v, Str name);
void names_restore(Lower *l);
/* Nodes and initializers take their places, where the graph still allows it. */
void order_restore(Lower *l);

#endif
