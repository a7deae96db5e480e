/* Layers with constant weights, as passes/channels.h tells of them. */
#include "passes/channels.h"

#include "passes/edit.h"

int layer_axis(const Uses *uses, const Node *n, Diags *d) {
    const Use *use;
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->def->quant.mac.sums)
        return -1;
    const Value *w = n->in[n->def->quant.mac.weight];
    const Tensor *t = edit_float_const(w);
    OpCtx c = op_ctx(n, d);
    int axis = t ? quant_weight_axis(&n->def->quant, &c) : -1;
    return axis >= 0 && t->rank > 1 && uses_of(uses, w, &use) == 1 ? axis : -1;
}

LayerWeight layer_weight(const Node *n, int axis) {
    const Tensor *t = n->in[n->def->quant.mac.weight]->data;
    LayerWeight w = {.tensor = t, .axis = axis, .out = (size_t)t->dims[axis]};
    w.groups = (size_t)node_int(n, "group", 1);
    w.in = (size_t)t->dims[axis == 0 ? 1 : 0] * w.groups;
    w.inner = edit_axis(t->rank, t->dims, axis).inner;
    return w;
}

size_t layer_out(const LayerWeight *w, size_t at) {
    return at / w->inner % w->out;
}

size_t layer_in(const LayerWeight *w, size_t at) {
    if (w->axis != 0)
        return at / w->out; /* [in, out] */
    size_t per_group = (size_t)w->tensor->dims[1], inner = w->inner / per_group;
    size_t group = layer_out(w, at) / (w->out / w->groups);
    return group * per_group + at / inner % per_group;
}

/* Conv has its channels along axis 1, a matrix along the last. */
static bool is_conv(const Node *n) {
    return n->in[n->def->quant.mac.weight]->type.rank > 2;
}

int layer_reads_axis(const Node *n) {
    return is_conv(n) ? 1 : n->in[0]->type.rank - 1;
}

int layer_makes_axis(const Node *n) {
    return is_conv(n) ? 1 : n->out[0]->type.rank - 1;
}
