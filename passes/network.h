/* Which kind of network a model is, as its graph tells: what suits one kind is a preset
 * (compiler/preset.def). Names of nodes and values say nothing here. */
#ifndef QXC_PASSES_NETWORK_H
#define QXC_PASSES_NETWORK_H

#include "passes/pass.h"

/* What was found of it, by number of places. */
typedef struct NetworkSigns {
    size_t matrices;     /* MatMul, Gemm and the like by constant weights */
    size_t convolutions; /* likewise */
    size_t attention;    /* Softmax over a product of two computed values, or an operator of that */
    size_t recurrence;
    size_t causal; /* a triangle among masks, is_causal, or earlier keys that come in and go out */
    size_t tokens; /* integers that choose rows of a table */
    size_t image;  /* convolutions over two axes of an input */
    size_t waveform;    /* ... over one axis of one channel, with long steps */
    size_t spectrum;    /* of a signal, computed in the model */
    size_t suppression; /* of boxes that overlap */
    size_t boxes;       /* outputs of four numbers each beside others of as many rows */
    size_t scales;      /* resolutions of the convolutions that lead to the outputs */
} NetworkSigns;

typedef enum NetworkKind {
#define NETWORK(id, name, words, sign) NETWORK_##id,
#include "passes/network.def"
    N_NETWORKS /* of no kind */
} NetworkKind;

/* Of a module whose shapes are inferred; it may be quantized. `*s` may be NULL. */
NetworkKind network_kind(Module *m, NetworkSigns *s);
const char *network_name(NetworkKind k);    /* "vit" */
const char *network_words(NetworkKind k);   /* "vision transformer" */
NetworkKind network_find(const char *name); /* N_NETWORKS where there is none */
/* `6 convolutions over an image, layers of 2 resolutions lead to the outputs`; the arena's. */
Str network_reasons(Arena *a, const NetworkSigns *s);

/* Marks what an input of the graph has a part in, by value id: node by node, as graphs stand outer
 * first. */
void network_mark_inputs(const Graph *g, bool *computed);
void network_mark_computed(const Node *n, bool *computed);

/* Nodes that have a place in a network, of the main graph. */
typedef enum NetworkPart {
    PART_NONE,
    PART_LAST, /* layers: no other layer reads what they lead to */
    PART_TAIL, /* what is computed behind these */
} NetworkPart;
/* By node id. */
const bool *network_part(Module *m, NetworkPart part);

#endif
