/* Copies of nodes and graphs, with new names and with other values in place of some.
 *
 * Values that the copied graph does not define stay what they are, unless clone_map says otherwise:
 * so a subgraph goes on seeing the values around it. References to a function's attributes
 * ($alpha) become what a call states. Tensors are shared, as nothing writes into them. All memory
 * is the module's; mistakes are reported at the node. */
#ifndef QXC_PASSES_CLONE_H
#define QXC_PASSES_CLONE_H

#include "ir/ir.h"

typedef struct CloneSlot {
    Value *to;
    bool set, claimed;
} CloneSlot;

typedef struct Clone {
    UniqueNames *names;
    Str prefix;        /* "conv1": new names are conv1/NAME */
    const Function *f; /* the function whose body it is, and the node that calls it; */
    const Node *call;  /* both NULL in a copy of anything else */
    const char *by;    /* the pass, for the provenance of what is inlined */
    bool composite;    /* f is of the library: a value is named BASE_OP, a node after the call, */
    Str base;          /* a Constant becomes a constant, a number one of type `elem`, */
    ElemType elem;     /* and results that nobody asks for are left out */
    bool named;        /* one of its nodes has the call's own name */
    CloneSlot *map;    /* by Value.id */
    size_t cap;
    size_t nodes; /* copied so far */
    bool ok;
} Clone;

/* From here on `from` is replaced by `to` (NULL: an operand that is left out). */
void clone_map(Clone *c, Module *m, const Value *from, Value *to);
/* Where the original defines `from`, the copy defines `to`, a result of some node already. */
void clone_claim(Clone *c, Module *m, const Value *from, Value *to);
/* What stands for `v` in the copy. */
Value *clone_value(const Clone *c, Value *v);
/* Copies the constants and nodes of `from` to the end of `to`. Inputs and outputs of `to` are the
 * caller's. */
void clone_body(Clone *c, const Graph *from, Graph *to);

#endif
