/* Casts of integers that stand as floats. */
#include "passes/edit.h"
#include "passes/raise/raise_scaling.h"

/* ---- to integers and back ---- */

/* Whether e holds all numbers of a type of scale 1. */
static bool holds(ElemType e, const Quant *q) {
    int64_t zp = quant_zp(q, 0);
    return elem_bits(e) == 64 ||
           (quant_lo(q) - zp >= elem_min(e) && quant_hi(q) - zp <= elem_max(e));
}

static void skip_in_graph(Graph *g, void *ctx) {
    Scaling *s = ctx;
    FOR_NODES(n, g) {
        ElemType e = node_cast(n);
        Node *from = n->n_in && n->in[0] ? n->in[0]->def : NULL;
        if (!from || !is_own_dequantize(from) || !elem_is_int(e))
            continue;
        const Quant *q = from->in[0]->type.quant;
        if (!quant_is_per_tensor(q) || quant_scale(q, 0) != 1 || !holds(e, q))
            continue;
        const Use *uses;
        size_t k = uses_of(s->uses, n->out[0], &uses);
        for (size_t i = 0; i < k; i++) {
            const Node *back = uses[i].node;
            if (!back || node_cast(back) != ELEM_FLOAT ||
                uses_is_output(s->uses, uses[i].node->out[0]))
                continue;
            value_replace(s->m, s->uses, uses[i].node->out[0], n->in[0]);
            scaling_leave(s, uses[i].node);
        }
        scaling_leave(s, n);
    }
}

/* ---- to integers that go out ---- */

/* The same numbers in another type that holds them. */
static const Quant *stored_as(Scaling *s, const Quant *q, ElemType e) {
    Quant *as = quant_copy(s->b.a, q);
    as->storage = e;
    as->lo = quant_lo(q);
    as->hi = quant_hi(q);
    as->has_range = as->lo > elem_min(e) || as->hi < elem_max(e);
    return as;
}

/* The integers themselves go out, under the name that went out before. */
static void take_place(Scaling *s, Node *cast, Value *ints, ElemType e) {
    Value *y = cast->out[0];
    ints->type = type_quantized(real_type(ints->type), stored_as(s, ints->type.quant, e));
    edit_take_name(y, ints);
    value_replace(s->m, s->uses, y, ints);
    scaling_leave(s, cast);
}

/* A Cast whose result only leaves the graph: its integers, in a type. Nothing quantizes to more
 * than 32 bits. */
static void type_in_graph(Graph *g, void *ctx) {
    Scaling *s = ctx;
    if (g != s->m->graph)
        return; /* what a body yields has the type of the node's result */
    FOR_NODES(n, g) {
        const Use *uses;
        Value *x = n->n_in ? n->in[0] : NULL, *y = n->n_out ? n->out[0] : NULL;
        ElemType e = node_cast(n);
        const Quant *q = x && e ? scaling_integers(s, x, scaling_keeps) : NULL;
        if (!q || elem_bits(q->storage) > 16 || !elem_is_int(e) || elem_bits(e) > 32 ||
            !holds(e, q))
            continue;
        bool out = uses_of(s->uses, y, &uses) > 0;
        for (size_t i = 0; i < uses_of(s->uses, y, &uses); i++)
            out = out && !uses[i].node;
        if (!out)
            continue;
        const Node *dq = is_own_dequantize(x->def) ? x->def : NULL;
        const Node *made = dq ? dq->in[0]->def : NULL; /* what the graph reads keeps its name */
        if (made && made->graph == g && !uses_is_output(s->uses, dq->in[0])) {
            take_place(s, n, dq->in[0], e);
            continue;
        }
        node_becomes(n, s->b.pass);
        n->op = STR("QuantizeLinear");
        drop_params(n, s->b.d);
        y->type = type_quantized(real_type(type_tensor(ELEM_FLOAT, x->type.rank, x->type.dims)),
                                 stored_as(s, q, e));
    }
}

void scaling_skip_casts(Scaling *s) {
    s->uses = uses_new(s->m);
    module_each_graph(s->m, skip_in_graph, s);
}

void scaling_type_outputs(Scaling *s) {
    s->uses = uses_new(s->m);
    module_each_graph(s->m, type_in_graph, s);
}
