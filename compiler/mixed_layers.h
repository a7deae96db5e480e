/* What automatic mixed precision can spare, layer by layer, as rules of a scheme. */
#ifndef QXC_COMPILER_MIXED_LAYERS_H
#define QXC_COMPILER_MIXED_LAYERS_H

#include "ir/ops/op.h"
#include "ir/scheme.h"

/* How a layer is spared: it stays float; what it makes gets 16 bits; its weights get 16 bits. */
typedef enum Spared { SPARED_FLOAT, SPARED_WIDE, SPARED_WEIGHTS } Spared;

typedef struct Layer {
    Spared how;
    SchemeRule *rules; /* that spare it */
    size_t n_rules, cap_rules;
    Str name;      /* for people */
    double sqnr;   /* dB of the model where it alone is spared */
    double metric; /* -metric of that; 0 without */
    size_t at;     /* place in the model */
} Layer;

/* Whether the node computes on integers as it stands, with a result of its own. */
bool layer_is(const Node *n);

/* The layers of a module that has its decisions (float ~ q), in its order, as they can be spared up
 * to `most`: float alone, or what they make in 16 bits, with what takes its parameters over and the
 * constants that they add or scale by (the graph's inputs are layers, too), or that and their
 * weights. All memory is of `a`, which outlives the module. */
Layer *mixed_layers(Module *m, Arena *a, Spared most, size_t *n);

#endif
