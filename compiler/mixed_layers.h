/* What automatic mixed precision can spare, layer by layer, as rules of a scheme. */
#ifndef QXC_COMPILER_MIXED_LAYERS_H
#define QXC_COMPILER_MIXED_LAYERS_H

#include "ir/ops/op.h"
#include "ir/scheme.h"

enum { LAYER_RULES = 4 };

typedef struct Layer {
    SchemeRule rules[LAYER_RULES]; /* that spare it */
    size_t n_rules;
    Str name;    /* for people */
    double sqnr; /* dB of the model where it alone is spared */
    size_t at;   /* place in the model */
} Layer;

/* Whether the node computes on integers as it stands, with a result of its own. */
bool layer_is(const Node *n);
/* What rules about nodes call it: a node without a name goes by its result's. */
Str layer_name(const Node *n);

/* The layers of a module that has its decisions (float ~ q), in its order. Spared they are float;
 * or, `wide`, what they make has 16 bits, with the constants that
 * they add or scale by, and the graph's inputs are layers too. All memory is of
 * `a`, which outlives the module. */
Layer *mixed_layers(Module *m, Arena *a, bool wide, size_t *n);

#endif
