/* Channels that can be scaled without changing what a float model computes.
 *
 * A layer with constant weights, a normalization or a Mul by constants may divide an output channel
 * by any s > 0 if every layer that reads the channel multiplies its weights by s, and all that lies
 * between is positively homogeneous: Relu, pools, Add of channels scaled alike or of a constant,
 * Concat, data movers. Channels that an Add joins have
 * one s: they are one class, by union and find. A class that anything else reads or makes, results
 * of the graph included, is blocked. Pure analysis in the module's arena; nothing fails. */
#ifndef QXC_PASSES_CHANNELS_H
#define QXC_PASSES_CHANNELS_H

#include "ir/ops/op.h"

/* The channels of one value: element i along `axis` is channel id[i]. */
typedef struct ChannelSet {
    int axis;
    size_t n;
    size_t *id;
} ChannelSet;

/* A Conv, Gemm or MatMul with a constant weight of its own and room for a change of its bias. */
typedef struct ChannelLayer {
    Node *node;
    const ChannelSet *in, *out; /* what it reads, NULL where that has no scalable channels */
} ChannelLayer;

/* A constant with a number for each channel of what its node makes, which it is a factor of (Scale
 * of a normalization, an operand of Mul) or is added to. Others may read it: change a copy. */
typedef struct ChannelConst {
    Node *node;
    size_t operand;
    const ChannelSet *out;
} ChannelConst;

typedef struct Channels {
    Module *m;
    Diags *d;
    Uses *uses;
    ChannelSet **of;    /* by value id, NULL: none */
    size_t n_values;    /* that there were */
    size_t *classes;    /* union and find: channels with one s */
    size_t *neighbours; /* union and find: channels that share a value */
    bool *blocked;      /* by channel; of a class: its root */
    size_t n, cap;
    ChannelLayer *layers;
    size_t n_layers, cap_layers;
    ChannelConst *consts;
    size_t n_consts, cap_consts;
} Channels;

Channels channels_find(Module *m, Diags *d);

/* The representative of a channel's class; false when it may not be scaled. */
bool channels_class(const Channels *c, size_t id, size_t *class);
/* The representative of all channels that meet in some value. */
size_t channels_group(const Channels *c, size_t id);

/* The axis of output channels of a layer's constant weight that nothing else reads; -1: none. */
int layer_axis(const Uses *uses, const Node *n, Diags *d);
/* Which output and input channel an element of such a weight belongs to. */
typedef struct LayerWeight {
    const Tensor *tensor;
    int axis; /* of output channels */
    size_t out, in, groups;
    size_t inner; /* elements behind `axis` */
} LayerWeight;
LayerWeight layer_weight(const Node *n, int axis);
size_t layer_out(const LayerWeight *w, size_t at);
size_t layer_in(const LayerWeight *w, size_t at);
/* The axis of operand 0 that its input channels stand along. */
int layer_reads_axis(const Node *n);
/* The axis of the result that its output channels stand along; below 0: a result of rank 0. */
int layer_makes_axis(const Node *n);

#endif
