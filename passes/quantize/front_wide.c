/* See passes/quantize/front_wide.h. */
#include "passes/quantize/front_wide.h"
#include "passes/quantize/choice.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/open.h"

#include <math.h>

enum { NARROW = 8, WIDE = 16 }; /* bits */

typedef struct Reach {
    const Wide *w;
    const Quant *q;
    float min, max;
} Reach;

/* What was seen of a value that has `q`. */
static void reach_of(Value *v, void *ctx) {
    Reach *r = ctx;
    float min, max;
    bool cut;
    if (r->w->decided[v->id] != r->q || !masked_range(r->w->uses, v, &min, &max, &cut))
        return;
    r->min = fminf(r->min, min);
    r->max = fmaxf(r->max, max);
}

ElemType wide_storage(const TargetPage *t) {
    return target_stores(t, ELEM_INT16)    ? ELEM_INT16
           : target_stores(t, ELEM_UINT16) ? ELEM_UINT16
                                           : ELEM_UNDEFINED;
}

/* The same range in 16 bits. The narrow grid had rounded its zero point, by up to half of its
 * steps: beside a mask of -10000 all scores are less than that. */
static const Quant *wider(const Wide *w, const Value *v, const Quant *q) {
    Choice o = choice_of_value(w->c, w->uses, v);
    o.storage = wide_storage(w->c->target);
    float scale, s = quant_scale(q, 0);
    int64_t zp, old = quant_zp(q, 0);
    Reach reach = {w, q, (float)(quant_lo(q) - old) * s, (float)(quant_hi(q) - old) * s};
    module_each_value(w->m, reach_of, &reach);
    params_from_minmax(reach.min, reach.max, choice_range(&o), o.sym, o.pow2, &scale, &zp);
    Quant *to = quant_per_tensor(w->m->arena, o.storage, scale, zp);
    to->alias = q->alias;
    module_add_quant(w->m, to);
    return to;
}

static const Quant *instead_of(Wide *w, const Value *v) {
    const Quant *q = w->decided[v->id];
    const Quant *to = map_get_at(w->of, q);
    if (!to) {
        to = wider(w, v, q);
        map_set_at(w->of, q, (void *)to);
    }
    return to;
}

/* What has no 8 bits of the pass's own choice. */
static bool is_barred(const Wide *w, const Value *v) {
    const Quant *q = w->decided[v->id];
    if (w->never[v->id] || !q || q->kind != QUANT_PARAMS || !quant_is_per_tensor(q) ||
        elem_bits(q->storage) != NARROW)
        return true;
    Choice o = choice_of_value(w->c, w->uses, v);
    return o.fixed || o.has_range;
}

Wide wide_new(Module *m, PassContext *c, const Uses *uses, const Quant **decided, bool *set) {
    return (Wide){.m = m,
                  .c = c,
                  .uses = uses,
                  .decided = decided,
                  .instead = NEW_ARRAY(m->arena, const Quant *, m->n_values),
                  .set = set,
                  .never = NEW_ARRAY(m->arena, bool, m->n_values),
                  .of = map_new(m->arena)};
}

/* ---- what operators take ---- */

static bool is_set(const Wide *w, const Value *v) {
    return v && w->set[v->id];
}

/* What the text writes stands beside 16 bits: a conversion is all that costs. */
static bool is_narrow_for_good(const Wide *w, const Value *v) {
    const Quant *q = v ? w->decided[v->id] : NULL;
    bool written = w->c->open && map_get_at(w->c->open->before, v);
    return q && w->never[v->id] && elem_bits(q->storage) < WIDE && !written;
}

/* Whether it changed. */
static bool bar(Wide *w, const Value *v) {
    if (!is_set(w, v))
        return false;
    w->never[v->id] = true;
    w->set[v->id] = false;
    return true;
}

static bool add(Wide *w, const Value *v) {
    if (!v || w->set[v->id] || w->never[v->id])
        return false;
    return w->set[v->id] = true;
}

typedef bool Each(Wide *w, const Value *v);

/* Whether it was so of any. */
static bool each_data(Wide *w, const Node *n, Each *fn) {
    bool any = n->n_out && n->out[0] && fn(w, n->out[0]);
    for (size_t i = 0; i < n->n_in; i++)
        if (n->in[i] && quant_rule_is_data(&n->def->quant, i))
            any = fn(w, n->in[i]) || any;
    return any;
}

static bool set_each(Wide *w, const Value *v) {
    return is_set(w, v);
}

static bool narrow_each(Wide *w, const Value *v) {
    return is_narrow_for_good(w, v);
}

/* Kernels want the product of the scales to be a normal float. */
static bool makes_small_product(Wide *w, const Node *n) {
    const Value *weight = n->in[n->def->quant.mac.weight];
    const Quant *q = weight ? w->decided[weight->id] : NULL;
    if (n->def->quant.kind != QUANT_MAC || !q || !is_set(w, n->in[0]))
        return false;
    float s = quant_scale(instead_of(w, n->in[0]), 0);
    for (size_t i = 0; i < q->n_scale; i++)
        if (!isnormal(s * quant_scale(q, i)))
            return true;
    return false;
}

/* Not in 16 bits, though in 8. */
static bool refuses(Wide *w, const Node *n) {
    const QuantRule *r = &n->def->quant;
    if (!r->integer_refusal || !is_set(w, n->in[0]))
        return false;
    OpCtx c = op_ctx(n, NULL);
    return r->integer_refusal(&c, instead_of(w, n->in[0])) &&
           !r->integer_refusal(&c, w->decided[n->in[0]->id]);
}

/* Whether it changed anything. */
static bool settle_node(Wide *w, const Node *n) {
    const QuantRule *r = n->def ? &n->def->quant : NULL;
    if (!r || r->kind == QUANT_NEVER || !n->n_in || !n->in[0])
        return false;
    if (makes_small_product(w, n) || refuses(w, n))
        return bar(w, n->in[0]);
    if (r->stores.operands)
        return each_data(w, n, bar);
    if (!r->same_storage || !each_data(w, n, set_each))
        return false;
    return each_data(w, n, each_data(w, n, narrow_each) ? bar : add);
}

static void settle_graph(Graph *g, void *ctx) {
    struct {
        Wide *w;
        bool changed;
    } *all = ctx;
    FOR_NODES(n, g)
    all->changed = settle_node(all->w, n) || all->changed;
}

static void fill_in(Value *v, void *ctx) {
    Wide *w = ctx;
    w->instead[v->id] = w->set[v->id] ? instead_of(w, v) : NULL;
}

static void bar_each(Value *v, void *ctx) {
    Wide *w = ctx;
    w->never[v->id] = is_barred(w, v);
    w->set[v->id] = w->set[v->id] && !w->never[v->id];
}

void wide_settle(Wide *w) {
    struct {
        Wide *w;
        bool changed;
    } all = {w, true};
    module_each_value(w->m, bar_each, w);
    while (all.changed) { /* each value is added once and barred once */
        all.changed = false;
        module_each_graph(w->m, settle_graph, &all);
    }
    module_each_value(w->m, fill_in, w);
}
