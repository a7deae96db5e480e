/* What 8 bits would lose between the inputs and the first layers: step 1 of front_end.c. */
#include "exec/fixed_shapes.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/front_end.h"
#include "passes/quantize/open.h"
#include "passes/quantize/output_errors.h"

#include <math.h>

enum {
    SAMPLES_MOST = 32,
    LAYERS_MOST = 3, /* products with constant weights on the way: spectrum, filters, cosines */
    BYTES_MOST = 256 << 20, /* of values that are looked at */
};

/* Ratios of energy. */
static const double LOST = 100; /* 20 dB: a result that is worse may be lost */
static const double DROP = 10;  /* 10 dB: what the operator has to be worse than its operands */

bool front_measure_outputs(Front *f) {
    Arena *a = arena_scratch(f->m->arena);
    const Program *reals = output_program(f->m, f->c, a, false);
    OutputErrors of = {.p = reals ? output_program(f->m, f->c, a, true) : NULL,
                       .error = f->error,
                       .measured = f->measured};
    bool ok = of.p && output_errors(f->m, f->c, a, SAMPLES_MOST, reals, &of, 1);
    arena_free(a);
    return ok;
}

/* ---- what is near the inputs ---- */

bool front_is_layer(const Node *n) {
    return n->def && ((n->def->quant.kind == QUANT_MAC &&
                       edit_float_const(n->in[n->def->quant.mac.weight])) ||
                      n->def->quant.stores.operands);
}

static bool is_float(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && type_real_elem(v->type) == ELEM_FLOAT;
}

/* Rounded to the grid of a Relu's result: what that cuts off is cut on purpose. */
static bool is_clamped(const Front *f, const Value *v) {
    const Node *n = uses_only_node(f->uses, v);
    return n && n->def && n->def->quant.kind == QUANT_CLAMP;
}

static void find_front(Front *f, Value **out, size_t *n_out) {
    size_t bytes = 0;
    FOR_NODES(n, f->m->graph) {
        int layers = front_is_layer(n);
        bool near = n->n_out > 0 && n->out[0];
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && f->layers[n->in[i]->id] + front_is_layer(n) > layers)
                layers = f->layers[n->in[i]->id] + front_is_layer(n);
        for (size_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                f->layers[n->out[i]->id] = layers;
        size_t count = 0;
        if (!near || layers > LAYERS_MOST || !is_float(n->out[0]) ||
            !type_count(n->out[0]->type, &count) || count > (BYTES_MOST - bytes) / sizeof(float))
            continue;
        f->near[n->id] = true;
        if (is_clamped(f, n->out[0]))
            continue;
        bytes += count * sizeof(float);
        out[(*n_out)++] = n->out[0];
    }
}

bool front_measure(Front *f) {
    Graph *g = f->m->graph;
    Value **out = g->out;
    size_t n_out = g->n_out;
    Value **near = NEW_ARRAY(f->m->arena, Value *, f->m->n_nodes);
    size_t n_near = 0;
    find_front(f, near, &n_near);
    g->out = near;
    g->n_out = n_near;
    bool ok = n_near == 0 || front_measure_outputs(f);
    g->out = out;
    g->n_out = n_out;
    return ok;
}

/* ---- what is lost ---- */

static double quality_of_operands(const Front *f, const Node *n);

/* Of an operand: its energy against its error. Infinite where it is exact. */
static double quality_in(const Front *f, const Value *v) {
    const Stat *s = v->stat;
    const Quant *q = edit_tilde(v);
    if (!f->measured[v->id] && v->def)
        return is_clamped(f, v) ? quality_of_operands(f, v->def) : INFINITY;
    if (!s || s->n != 1 || !s->avg || !s->std)
        return INFINITY;
    double step = q && q->kind == QUANT_PARAMS ? quant_scale(q, 0) : 0;
    double error = v->def ? f->error[v->id] : step * step / 12;
    double energy = (double)s->avg[0] * (double)s->avg[0] + (double)s->std[0] * (double)s->std[0];
    return error > 0 ? energy / error : INFINITY;
}

/* The worst of them. */
static double quality_of_operands(const Front *f, const Node *n) {
    double least = INFINITY;
    for (size_t i = 0; i < n->n_in; i++)
        if (is_float(n->in[i]) && n->in[i]->kind != VALUE_CONST)
            least = fmin(least, quality_in(f, n->in[i]));
    return least;
}

/* Of a result: what it varies by against its error. */
static double quality_out(const Front *f, const Value *v) {
    const Stat *s = v->stat;
    if (!f->measured[v->id] || !s || s->n != 1 || !s->std || !(s->std[0] > 0) ||
        !(f->error[v->id] > 0))
        return INFINITY;
    return (double)s->std[0] * (double)s->std[0] / f->error[v->id];
}

static bool is_lost(const Front *f, const Node *n) {
    double out = quality_out(f, n->out[0]);
    return out < LOST && quality_of_operands(f, n) > DROP * out;
}

bool front_is_stated(const Front *f, const Value *v) {
    if (!v || !edit_tilde(v) || v->kind == VALUE_CONST)
        return false;
    if (!was_decided(f->c, v))
        return true; /* as it is written */
    Choice o = choice_of_value(f->c, f->uses, v);
    const SchemeRule *r = o.by[CHOICE_TYPE];
    return o.fixed || (r && r->of != SCHEME_ALL);
}

static bool may_be_spared(const Front *f, const Node *n) {
    const SchemeRule *r = choice_to_keep(f->c, n);
    bool stated = r && !r->keep;
    if (f->wide && f->c->open)
        return f->near[n->id] && !stated; /* what is written stays, and what is not gets 16 bits */
    for (size_t i = 0; i < n->n_in; i++)
        stated = stated || front_is_stated(f, n->in[i]);
    return f->near[n->id] && !stated && !front_is_stated(f, n->out[0]);
}

/* Scales and shifts by constants. */
static bool is_affine(const Node *n) {
    size_t computed = 0;
    for (size_t i = 0; i < n->n_in; i++)
        computed += n->in[i] && n->in[i]->kind != VALUE_CONST;
    return n->def && n->def->affine && computed == 1;
}

static bool is_behind(const Front *f, const Node *n) {
    bool behind = false;
    for (size_t i = 0; i < n->n_in; i++)
        behind = behind || (n->in[i] && n->in[i]->def && f->spared[n->in[i]->def->id]);
    return behind && is_affine(n);
}

bool front_find_lost(Front *f) {
    bool any = false;
    FOR_NODES(n, f->m->graph) {
        bool lost = f->near[n->id] && !f->spared[n->id] && may_be_spared(f, n) && is_lost(f, n);
        f->spared[n->id] = f->spared[n->id] || lost;
        any = any || lost;
    }
    if (!any)
        return false;
    for (Node *n = f->m->graph->last; n; n = n->prev)
        for (size_t i = 0; f->spared[n->id] && i < n->n_in; i++)
            if (n->in[i] && n->in[i]->def && may_be_spared(f, n->in[i]->def))
                f->spared[n->in[i]->def->id] = true;
    FOR_NODES(n, f->m->graph)
    f->spared[n->id] = f->spared[n->id] || (may_be_spared(f, n) && is_behind(f, n));
    return true;
}
