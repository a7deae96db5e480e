/* Products whose input is quantized at run time in the other model, with the parameters that its
 * numbers give then: so they are here, with its integers for weights. */
#include "compiler/donor_match.h"
#include "passes/edit.h"
#include "passes/quant_build.h"

typedef struct DynamicDonor {
    Donor *d;
    Map *inputs;  /* what quantizes a value, by that value */
    Map *weights; /* integers, by the weight here and the one there */
} DynamicDonor;

static Value *quantized_input(DynamicDonor *s, Value *x, const Quant *q, Node *user) {
    Value *y = map_get(s->inputs, value_key(x));
    if (y)
        return y;
    Module *m = s->d->m;
    Str base = arena_strf(m->arena, STR_FMT "_quantized", STR_ARG(x->name));
    Node *n = node_new(x->graph, STR_NONE, STR("QuantizeLinear"), 1, 1);
    node_from_value(n, x, "weights-from");
    n->loc = user->loc;
    n->in[0] = x;
    y = node_add_output(n, 0, unique_name(s->d->names, base),
                        type_quantized(x->type, quant_copy(m->arena, q)));
    place_behind(x, n, user);
    op_resolve(n, s->d->j->d);
    map_set(s->inputs, value_key(x), y);
    return y;
}

static Value *weight_there(DynamicDonor *s, Value *w, const Value *there) {
    Module *m = s->d->m;
    uint32_t ids[] = {w->id, there->id};
    Value *known = map_get(s->weights, (Str){(const char *)ids, sizeof ids});
    if (known)
        return known;
    Quant *q = quant_copy(m->arena, there->type.quant);
    q->alias =
        unique_name(s->d->names, arena_strf(m->arena, STR_FMT "_quantized", STR_ARG(w->name)));
    const Tensor *t = value_data(there);
    uint8_t *bytes;
    Tensor *ints = tensor_new(m->arena, t->elem, t->rank, t->dims, &bytes);
    memcpy(bytes, t->data, t->bytes);
    Value *v = graph_add_const(w->graph, q->alias, type_quantized(w->type, q), ints);
    module_add_quant(m, q);
    value_from(v, w, "weights-from");
    v->loc = w->loc;
    map_set(s->weights, (Str){arena_copy(m->arena, ids, sizeof ids), sizeof ids}, v);
    return v;
}

static void take_product(DynamicDonor *s, Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    size_t at = r ? (size_t)r->mac.weight : 0;
    if (!r || r->kind != QUANT_MAC || !r->mac.takes_dynamic || n->n_in <= at || !n->in[at])
        return;
    Use input = {n, n->graph, 0}, weight = {n, n->graph, at};
    const Value *x = donor_read_there(s->d, &input), *w = donor_read_there(s->d, &weight);
    const Tensor *t = edit_float_const(n->in[at]), *ints = w ? value_data(w) : NULL;
    if (!x || !x->type.quant || x->type.quant->kind != QUANT_DYNAMIC || !t || !ints ||
        !w->type.quant || !donor_same_shape(t, ints))
        return;
    n->in[0] = quantized_input(s, n->in[0], x->type.quant, n);
    n->in[at] = weight_there(s, n->in[at], w);
    op_resolve(n, s->d->j->d);
}

static void take_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    take_product(ctx, n);
}

void donor_take_dynamic(Donor *d) {
    DynamicDonor s = {d, map_new(d->m->scratch), map_new(d->m->scratch)};
    module_each_graph(d->m, take_graph, &s);
    edit_sweep(d->m);
}
