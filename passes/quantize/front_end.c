/* Leaves float, or gives 16 bits, what stands between the inputs and the first layers where its
 * values do not survive 8 bits: a normalization of columns of very different sizes, a spectrum
 * before its logarithm. One scale for all of a tensor has its steps from the largest numbers there,
 * and an operator behind it that makes the small ones as large makes their errors as large.
 *
 *   1. Both models run on calibration data, the float one and the quantized one, as far as the
 *      first LAYERS_MOST layers. A result is lost where little more than its error is left of what
 *      it varies by, and that was not so of what its operator reads.
 *   2. Operators with such results, all before them, and scales and shifts right behind them lose
 *      their `~`; and again, as far as that uncovers others.
 *   3. It stays so where the outputs of the model gain by it: the whole model says that.
 *
 * With no floats allowed (-integer-only) they get 16 bits instead (front_wide.c), also where a
 * model that is decided in part is completed: there what is written stays as it is. */
#include "exec/fixed_shapes.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/front_end.h"
#include "passes/quantize/output_errors.h"

#include <math.h>

enum { ROUNDS_MOST = 4 };

static const double GAIN = 2;  /* as a ratio of energy, 3 dB: at an output */
static const double MOST = 99; /* dB: what is exact */
static const double GOOD = 30; /* dB of an output that needs nothing */

/* ---- sparing ---- */

/* Operands and result of a node that computes on integers. */
static bool wants_integer(const Node *n) {
    return n && n->def && n->def->quant.kind != QUANT_NEVER && n->n_out && n->out[0] &&
           (n->out[0]->type.quant || n->def->quant.kind == QUANT_MAC);
}

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
        set_quant(v, f->wide ? f->wide->instead[v->id] : NULL);
}

static void give_back(Value *v, void *ctx) {
    const Front *f = ctx;
    if (f->dropped[v->id] && !f->weight[v->id])
        set_quant(v, f->decided[v->id]);
}

static void take_weights(Front *f) {
    FOR_NODES(n, f->m->graph) {
        Value *w = front_is_layer(n) && n->def->quant.kind == QUANT_MAC
                       ? n->in[n->def->quant.mac.weight]
                       : NULL;
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
    if (f->wide)
        wide_settle(f->wide);
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
    if (!front_measure_outputs(f))
        return false;
    for (size_t i = 0; i < g->n_out; i++)
        now[i] = f->error[g->out[i]->id];
    module_each_value(f->m, give_back, f);
    bool ok = front_measure_outputs(f);
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
        if (!front_measure(f))
            return false;
        if (!front_find_lost(f))
            break;
        any = true;
        spare(f);
    }
    return !any || weigh_gain(f);
}

static void tell_float(const Front *f) {
    PassContext *c = f->c;
    FOR_NODES(n, f->m->graph) {
        if (!f->spared[n->id] || !n->n_out || !n->out[0] || !f->decided[n->out[0]->id])
            continue;
        ARENA_PUSH(f->m->arena, c->spared, c->n_spared, c->cap_spared, n);
        pass_remark(c, n,
                    "what lies before the first layers would be lost in 8 bits: %.1f dB at the "
                    "output where there are %.1f",
                    f->was, f->is);
    }
}

typedef struct Count {
    const Front *f;
    const Value *first;
    size_t n;
} Count;

static void count_wide(Value *v, void *ctx) {
    Count *count = ctx;
    if (!count->f->dropped[v->id])
        return;
    count->first = count->first ? count->first : v;
    count->n++;
}

static void tell_wide(const Front *f) {
    Count count = {.f = f};
    module_each_value(f->m, count_wide, &count);
    if (count.n)
        diag(f->c->d, DIAG_REMARK, LOC_NONE,
             "what lies before the first layers would be lost in 8 bits, %.1f dB at the output "
             "where there are %.1f: 16 bits for %zu value%s (first: %s)",
             f->was, f->is, count.n, count.n > 1 ? "s" : "", diag_name(f->c->d, count.first->name));
}

static void note_barred(Value *v, void *ctx) {
    const Front *f = ctx;
    f->wide->never[v->id] = f->weight[v->id] || front_is_stated(f, v);
}

/* ---- names of quantizations that nothing has any more ---- */

typedef struct Named {
    const Front *f;
    Map *ours, *used;
} Named;

static void note_named(Value *v, void *ctx) {
    Named *n = ctx;
    Arena *a = n->f->m->arena;
    const Quant *of[] = {n->f->decided[v->id], n->f->wide ? n->f->wide->instead[v->id] : NULL,
                         v->type.quant};
    for (size_t i = 0; i < 3; i++)
        map_set(i < 2 ? n->ours : n->used, (Str){arena_copy(a, &of[i], sizeof *of), sizeof *of}, v);
}

static void forget_unused(const Front *f) {
    Module *m = f->m;
    Named named = {f, map_new(m->arena), map_new(m->arena)};
    size_t kept = 0;
    module_each_value(m, note_named, &named);
    for (size_t i = 0; i < m->n_quants; i++) {
        Str key = {(const char *)&m->quants[i], sizeof m->quants[i]};
        if (map_get(named.used, key) || !map_get(named.ours, key))
            m->quants[kept++] = m->quants[i];
    }
    m->n_quants = kept;
}

bool pass_front_end(Module *m, PassContext *c) {
    static const char what[] = "whether 8 bits are few before the first layers is not looked at";
    Graph *g = m->graph;
    Value **out = g->out;
    size_t n_out = g->n_out;
    int bits = elem_bits(choice_of_activations(c).storage);
    bool few = bits < 8; /* everywhere, as was asked for */
    bool wide_too = !c->no_floats || (bits == 8 && wide_storage(c->target));
    if (few || !wide_too || !output_programs_fit(m, c, 2, what))
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
    Wide wide = wide_new(m, c, f.uses, f.decided, f.dropped);
    f.wide = &wide;
    module_each_value(m, note_barred, &f);
    f.wide = c->no_floats ? &wide : NULL;
    bool better = output_look(m, c, what, spare_front, &f) && f.better;
    g->out = out; /* those near the inputs may stand there yet */
    g->n_out = n_out;
    shapes_restore(m, shapes); /* types, too, but those of constants */
    module_each_value(m, give_back, &f);
    module_each_value(m, return_weight, &f);
    if (better) {
        module_each_value(m, drop, &f);
        (f.wide ? tell_wide : tell_float)(&f);
    }
    forget_unused(&f);
    edit_sweep(m);
    return true;
}
