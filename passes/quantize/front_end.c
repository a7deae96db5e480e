/* Leaves float what stands between the inputs and the first layers where its values do not survive
 * 8 bits: a normalization of columns of very different sizes, a spectrum before its logarithm. One
 * scale for all of a tensor has its steps from the largest numbers there, and an operator behind it
 * that makes the small ones as large makes their errors as large.
 *
 *   1. Both models run on calibration data, the float one and the quantized one, as far as the
 *      first LAYERS_MOST layers. A result is lost where little more than its error is left of what
 *      it varies by, and that was not so of what its operator reads.
 *   2. Operators with such results, all before them, and scales and shifts right behind them lose
 *      their `~`; and again, as far as that uncovers others.
 *   3. It stays so where the outputs of the model gain by it: the whole model says that.
 *
 * With no floats allowed (-integer-only) nothing is left to be done here. */
#include "passes/edit.h"
#include "passes/quantize/choice.h"
#include "exec/fixed_shapes.h"
#include "passes/quantize/output_errors.h"

#include <math.h>

enum {
    LAYERS_MOST = 3, /* products with constant weights on the way: spectrum, filters, cosines */
    SAMPLES_MOST = 32,
    ROUNDS_MOST = 4,
    BYTES_MOST = 256 << 20, /* of values that are looked at */
};

/* Ratios of energy. */
static const double LOST = 100; /* 20 dB: a result that is worse may be lost */
static const double DROP = 10;  /* 10 dB: what the operator has to be worse than its operands */
static const double GAIN = 2;   /* 3 dB at an output */
static const double MOST = 99;  /* dB: what is exact */
static const double GOOD = 30;  /* dB of an output that needs nothing */

typedef struct Front {
    PassContext *c;
    Module *m;
    Uses *uses;
    int *layers;  /* by value id: products with constant weights before it, along the longest way */
    bool *near;   /* by node id: a node of the front */
    bool *spared; /* by node id */
    bool *measured;        /* by value id */
    double *error;         /* by value id: mean squared, of `measured` ones */
    bool *dropped;         /* by value id: it has no quantization any more */
    const Quant **decided; /* by value id: what it had */
    double was, is;        /* dB of the output that gains most */
    bool better;           /* it stays so */
    bool *weight; /* by value id: of a product; in float while errors are measured, as rounding
                     weights is no matter of where a layer stands */
} Front;

/* The errors of what are the outputs now. False after a diagnostic. */
static bool measure_outputs(Front *f) {
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

static bool is_layer(const Node *n) {
    return n->def &&
           ((n->def->quant.kind == QUANT_MAC && edit_float_const(n->in[n->def->quant.weight])) ||
            n->def->quant.stored);
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
        int layers = is_layer(n);
        bool near = n->n_out > 0 && n->out[0];
        for (size_t i = 0; i < n->n_in; i++)
            if (n->in[i] && f->layers[n->in[i]->id] + is_layer(n) > layers)
                layers = f->layers[n->in[i]->id] + is_layer(n);
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

/* The errors of all results near the inputs: nothing behind them runs. */
static bool measure_front(Front *f) {
    Graph *g = f->m->graph;
    Value **out = g->out;
    size_t n_out = g->n_out;
    Value **near = NEW_ARRAY(f->m->arena, Value *, f->m->n_nodes);
    size_t n_near = 0;
    find_front(f, near, &n_near);
    g->out = near;
    g->n_out = n_near;
    bool ok = n_near == 0 || measure_outputs(f);
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

/* Singled out by a rule: what it says holds. */
static bool is_stated(const Front *f, const Value *v) {
    if (!v || !edit_tilde(v) || v->kind == VALUE_CONST)
        return false;
    Choice o = choice_of_value(f->c, f->uses, v);
    const SchemeRule *r = o.by[CHOICE_TYPE];
    return o.fixed || (r && r->of != SCHEME_ALL);
}

static bool may_be_spared(const Front *f, const Node *n) {
    const SchemeRule *r = choice_to_keep(f->c, n);
    bool stated = r && !r->keep;
    for (size_t i = 0; i < n->n_in; i++)
        stated = stated || is_stated(f, n->in[i]);
    return f->near[n->id] && !stated && !is_stated(f, n->out[0]);
}

/* Operands and result of a node that computes on integers. */
static bool wants_integer(const Node *n) {
    return n && n->def && n->def->quant.kind != QUANT_NEVER && n->n_out && n->out[0] &&
           (n->out[0]->type.quant || n->def->quant.kind == QUANT_MAC);
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

/* Whether there is a node more to spare; marks all that follow from those. */
static bool find_lost(Front *f) {
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

/* ---- sparing ---- */

static bool read_by_integers(const Front *f, const Value *v) {
    const Use *use;
    size_t n = uses_of(f->uses, v, &use);
    for (size_t i = 0; i < n; i++)
        if (use[i].node && !f->spared[use[i].node->id] && wants_integer(use[i].node))
            return true;
    return false;
}

static void note_quant(Value *v, void *ctx) {
    ((Front *)ctx)->decided[v->id] = edit_tilde(v);
}

static void set_quant(Value *v, const Quant *q) {
    v->type.quant = q;
    v->type.tilde = q != NULL;
}

static void drop(Value *v, void *ctx) {
    const Front *f = ctx;
    if (f->dropped[v->id])
        set_quant(v, NULL);
}

static void give_back(Value *v, void *ctx) {
    const Front *f = ctx;
    if (f->dropped[v->id] && !f->weight[v->id])
        set_quant(v, f->decided[v->id]);
}

static void take_weights(Front *f) {
    FOR_NODES(n, f->m->graph) {
        Value *w =
            is_layer(n) && n->def->quant.kind == QUANT_MAC ? n->in[n->def->quant.weight] : NULL;
        if (!w || !f->decided[w->id])
            continue;
        f->weight[w->id] = true;
        set_quant(w, NULL);
    }
}

static void return_weight(Value *v, void *ctx) {
    const Front *f = ctx;
    if (f->weight[v->id])
        set_quant(v, f->decided[v->id]);
}

static void spare_value(Front *f, const Value *v) {
    if (v && f->decided[v->id] && !read_by_integers(f, v))
        f->dropped[v->id] = true;
}

static void spare(Front *f) {
    FOR_NODES(n, f->m->graph) {
        for (size_t i = 0; f->spared[n->id] && i < n->n_in; i++)
            spare_value(f, n->in[i]);
        for (size_t i = 0; f->spared[n->id] && i < n->n_out; i++)
            spare_value(f, n->out[i]);
    }
    module_each_value(f->m, drop, f);
}

/* Of an output. */
static double decibels(const Value *v, double error) {
    const Stat *s = v->stat;
    if (!s || s->n != 1 || !s->avg || !s->std)
        return 0;
    double energy = (double)s->avg[0] * (double)s->avg[0] + (double)s->std[0] * (double)s->std[0];
    return error > 0 ? fmin(10 * log10(energy / error), MOST) : MOST;
}

/* Whether an output gains. False after a diagnostic. */
static bool weigh_gain(Front *f) {
    Graph *g = f->m->graph;
    double *now = NEW_ARRAY(f->m->arena, double, g->n_out), most = GAIN;
    if (!measure_outputs(f))
        return false;
    for (size_t i = 0; i < g->n_out; i++)
        now[i] = f->error[g->out[i]->id];
    module_each_value(f->m, give_back, f);
    bool ok = measure_outputs(f);
    module_each_value(f->m, drop, f);
    for (size_t i = 0; ok && i < g->n_out; i++) {
        const Value *v = g->out[i];
        double old = f->error[v->id];
        if (!f->measured[v->id] || !(old > most * now[i]) || decibels(v, old) > GOOD)
            continue;
        f->better = true;
        most = old / now[i];
        f->was = decibels(v, old);
        f->is = decibels(v, now[i]);
    }
    return ok;
}

static bool spare_front(void *ctx) {
    Front *f = ctx;
    bool any = false;
    for (int i = 0; i < ROUNDS_MOST; i++) {
        if (!measure_front(f))
            return false;
        if (!find_lost(f))
            break;
        any = true;
        spare(f);
    }
    return !any || weigh_gain(f);
}

static void tell(const Front *f) {
    FOR_NODES(n, f->m->graph)
    if (f->spared[n->id] && n->n_out && is_float(n->out[0]) && f->decided[n->out[0]->id])
        pass_remark(f->c, n,
                    "what lies before the first layers would be lost in 8 bits: %.1f dB at the "
                    "output where there are %.1f",
                    f->was, f->is);
}

bool pass_front_end(Module *m, PassContext *c) {
    static const char what[] = "whether 8 bits are few before the first layers is not looked at";
    Graph *g = m->graph;
    Value **out = g->out;
    size_t n_out = g->n_out;
    bool few = elem_bits(choice_of_activations(c).storage) < 8; /* everywhere, as was asked for */
    if (few || !output_programs_fit(m, c, 2, what))
        return true;
    Front f = {.c = c,
               .m = m,
               .uses = uses_new(m),
               .layers = NEW_ARRAY(m->arena, int, m->n_values),
               .near = NEW_ARRAY(m->arena, bool, m->n_nodes),
               .spared = NEW_ARRAY(m->arena, bool, m->n_nodes),
               .measured = NEW_ARRAY(m->arena, bool, m->n_values),
               .error = NEW_ARRAY(m->arena, double, m->n_values),
               .dropped = NEW_ARRAY(m->arena, bool, m->n_values),
               .decided = NEW_ARRAY(m->arena, const Quant *, m->n_values),
               .weight = NEW_ARRAY(m->arena, bool, m->n_values)};
    DataPaths data = pass_data(c);
    FixedShapes *shapes = shapes_fix(m, &data, c->d);
    if (!shapes)
        return false;
    module_each_value(m, note_quant, &f);
    take_weights(&f);
    bool better = output_look(m, c, what, spare_front, &f) && f.better;
    g->out = out; /* those near the inputs may stand there yet */
    g->n_out = n_out;
    shapes_restore(m, shapes); /* types, too, but those of constants */
    module_each_value(m, give_back, &f);
    module_each_value(m, return_weight, &f);
    if (better) {
        module_each_value(m, drop, &f);
        tell(&f);
    }
    edit_sweep(m);
    return true;
}
