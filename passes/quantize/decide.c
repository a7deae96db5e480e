/* Chooses a quantization for every value that an integer operator touches, from the statistics of
 * calibration and the scheme, and states it as `float ~ !name`. Nothing becomes integer here.
 *
 *   1. which nodes are integer (passes/quantize/placement.h, why_float.c);
 *   2. which values share parameters (passes/quantize/sharing.h);
 *   3. the parameters; weights per channel, widened where the int32 bias would overflow.
 *
 * Values that have a quantization already (a hand-edited file) keep it; of a model that is decided
 * in part, those that are open get one (passes/quantize/open.h). */
#include "passes/quantize/decide.h"
#include "ir/provenance.h"
#include "passes/edit.h"
#include "passes/quantize/explain.h"
#include "passes/quantize/masks.h"
#include "passes/quantize/open.h"
#include "passes/quantize/placement.h"
#include "passes/quantize/spread.h"
#include "passes/quantize/travel.h"
#include "passes/quantize/weight_quant.h"

#include <math.h>

static bool has_named_line(const OpenValue *o) {
    return o->line && o->line->alias.s;
}

/* Of values that take one quantization, the first that has a line with a name. */
static void find_lines(Decide *d) {
    const Openings *all = d->c->open;
    d->named = map_new(d->m->arena);
    for (size_t i = 0; all && i < all->n; i++) {
        const Value *root = sharing_root(&d->sharing, all->values[i]->value);
        if (has_named_line(all->values[i]) && !map_get_at(d->named, root))
            map_set_at(d->named, root, all->values[i]);
    }
}

/* The line that a quantization is to stand in again: of all values that take it, a named one. */
static OpenValue *line_of(const Decide *d, const Value *v) {
    OpenValue *o = opening_of(d->c, v);
    OpenValue *other = o && !has_named_line(o) ? map_get_at(d->named, v) : NULL;
    return other ? other : o;
}

/* Of two of one line: whether no rule wants another quantization of one. */
static bool in_line(const Decide *d, const OpenValue *x, const OpenValue *y) {
    if (!x->line || y->value->kind == VALUE_CONST)
        return false;
    Choice a = choice_of(d, x->value), b = choice_of(d, y->value);
    return choice_equal(&a, &b);
}

/* Whether rules take it out of its line, in which others stay. */
static bool stands_apart(const Decide *d, const OpenValue *x) {
    if (!x->line || x->value->kind == VALUE_CONST)
        return false;
    Choice of = choice_of(d, x->value);
    bool said = false, others = false;
    for (int i = 0; i < CHOICE_PROPERTIES; i++)
        said = said || (choice_said(&of, i) && of.by[i] != &x->rule);
    for (const OpenValue *y = x->of_line; said && !others && y; y = y->next)
        others = d->wanted[y->value->id] && !in_line(d, x, y);
    return said && others;
}

static const Quant *named(Decide *d, Quant *q, const Value *v) {
    OpenValue *o = v->id < d->n_values ? line_of(d, v) : NULL;
    if (o)
        return opening_named(d->c, d->m, o, q, stands_apart(d, o));
    q->alias = v->name;
    module_add_quant(d->m, q);
    return q;
}

/* What another value of its line has already, or NULL. */
static const Quant *made_in_line(const Decide *d, const Value *v) {
    const OpenValue *o = opening_of(d->c, v);
    for (const OpenValue *other = o ? o->of_line : NULL; other; other = other->next)
        if (other->made && in_line(d, o, other))
            return other->made;
    return NULL;
}

/* Of all values that had the line of `v`, where that is open. */
static void range_of(Decide *d, const Value *v, float *min, float *max) {
    const OpenValue *o = opening_of(d->c, v);
    bool cut;
    masked_range(d->uses, v, min, max, &cut); /* finite: why_float looked */
    for (const OpenValue *other = o ? o->of_line : NULL; other; other = other->next) {
        float lo, hi;
        bool same = in_line(d, o, other) && sharing_root(&d->sharing, other->value) == other->value;
        if (!same || !masked_range(d->uses, other->value, &lo, &hi, &cut))
            continue;
        *min = fminf(*min, lo);
        *max = fmaxf(*max, hi);
    }
}

/* More than the number of samples is open: data show what lengths they had, and a Softmax over
 * fewer numbers has larger ones. */
static bool length_is_open(Type t) {
    bool open = t.kind == TYPE_TENSOR && t.rank < 0;
    for (int i = 1; t.kind == TYPE_TENSOR && i < t.rank; i++)
        open = open || t.dims[i].value < 0;
    return open;
}

static const Quant *activation_quant(Decide *d, Value *v) {
    Choice o = choice_of(d, v);
    float scale, min, max;
    int64_t zp;
    if (o.fixed)
        return o.fixed->alias.s ? o.fixed : named(d, quant_copy(d->m->arena, o.fixed), v);
    bool stated = o.has_range || o.reduce_range; /* of fewer integers than the storage has */
    if (!o.sym && !stated && v->def && v->def->def && v->def->def->quant.fixed_output &&
        (d->integer[v->def->id] || length_is_open(v->type))) {
        OpCtx c = op_ctx(v->def, d->c->d);
        if (v->def->def->quant.fixed_output(&c, o.storage, &scale, &zp))
            return named(d, quant_per_tensor(d->m->arena, o.storage, scale, zp), v);
    }
    range_of(d, v, &min, &max);
    IntRange r = choice_range(&o);
    params_from_minmax(min, max, r, o.sym, o.pow2, &scale, &zp);
    Quant *q = quant_per_tensor(d->m->arena, o.storage, scale, zp);
    /* Being symmetric says where the ends of the range are, not that beyond them is nothing. */
    bool whole = !stated || d->c->target->no_clip;
    if (!whole && (r.lo != elem_min(o.storage) || r.hi != elem_max(o.storage))) {
        q->has_range = true;
        q->lo = r.lo;
        q->hi = r.hi;
    }
    return named(d, q, v);
}

static void give(Decide *d, Value *v, const Quant *q) {
    v->type = type_tilde(v->type, q);
    if (v->id < d->n_values)
        d->decided[v->id] = true;
}

static void assign(Decide *d, Value *v) {
    if (!v || !d->wanted[v->id] || v->type.quant)
        return;
    Value *root = sharing_root(&d->sharing, v);
    const Quant *made = made_in_line(d, root);
    if (!root->type.quant)
        give(d, root, made ? made : activation_quant(d, root));
    if (v != root)
        give(d, v, root->type.quant);
}

/* ---- weights ---- */

/* Whether every reader takes the value as its weight: then one integer tensor can serve all. So it
 * does where the text says of the value that it is quantized, whoever reads it. */
static bool serves_all(const Decide *d, const Value *w) {
    const Use *use;
    const OpenValue *o = opening_of(d->c, w);
    if (o && o->line)
        return true;
    size_t n = uses_of(d->uses, w, &use);
    for (size_t i = 0; i < n; i++)
        if (!use[i].node || !use[i].node->def ||
            !(d->integer[use[i].node->id] || d->weights_only[use[i].node->id]) ||
            !is_weight(use[i].node, use[i].index))
            return false;
    return true;
}

/* The same data as a weight of this node alone. */
static Value *own_weight(Decide *d, Node *n, size_t at) {
    Value *w = n->in[at];
    Value *copy = graph_add_const(w->graph, unique_name(d->names, w->name),
                                  type_tensor(w->type.elem, w->type.rank, w->type.dims), w->data);
    value_from(copy, w, "decide");
    n->in[at] = copy;
    return copy;
}

static void assign_weight(Decide *d, Node *n, size_t at) {
    Value *w = n->in[at];
    if (!is_weight(n, at) || (w->type.quant && !d->decided[w->id]))
        return; /* stated by the user */
    OpCtx c = op_ctx(n, d->c->d);
    const QuantRule *rule = &n->def->quant;
    int axis = rule->stores.operands ? rule->stores.axis : quant_weight_axis(rule, &c);
    Choice o = choice_of_weight(d->c, n, w);
    Quant *q = o.fixed ? quant_copy(d->m->arena, o.fixed) : weight_quant(d->c, &o, n, w, axis);
    if (o.fixed && q->n_axes == 1)
        q->axis[0] = choice_axis(w, q->axis[0]);
    if (w->type.quant && quant_equal(w->type.quant, q))
        return; /* another node has decided the same */
    if (w->type.quant || !serves_all(d, w))
        w = own_weight(d, n, at);
    give(d, w, named(d, q, w));
}

static void assign_graph(Graph *g, void *ctx) {
    Decide *d = ctx;
    for (size_t i = 0; i < g->n_in; i++)
        assign(d, g->in[i]);
    FOR_NODES(n, g) {
        for (size_t i = 0; i < n->n_in; i++)
            assign(d, n->in[i]);
        for (size_t i = 0; i < n->n_in; i++)
            if (n->def && takes_weight(n, i) && (d->integer[n->id] || d->weights_only[n->id]))
                assign_weight(d, n, i);
        for (size_t i = 0; i < n->n_out; i++)
            assign(d, n->out[i]);
    }
    for (size_t i = 0; i < g->n_out; i++)
        assign(d, g->out[i]); /* a constant can be one */
}

/* ---- what was decided, in words ---- */

static bool is_integer_bias(const Decide *d, const Node *n, size_t at) {
    return n->def && n->def->quant.kind == QUANT_MAC && n->def->quant.mac.bias > 0 &&
           at == (size_t)n->def->quant.mac.bias && d->integer[n->id];
}

/* Whether v is the constant of that name, rewritten. */
static bool is_made_of(const Value *v, const char *name) {
    for (size_t i = 0; v->kind == VALUE_CONST && i < v->from.n; i++)
        if (!v->from.from[i].op.s && str_is(v->from.from[i].name, name))
            return true;
    return false;
}

static void explain(Value *v, void *ctx) {
    Decide *d = ctx;
    PassContext *c = d->c;
    bool of_node = d->by_origin && value_became_of(v, c->explain_node);
    if (c->explanation.s ||
        !(d->by_origin ? of_node || is_made_of(v, c->explain) : str_is(v->name, c->explain)))
        return;
    const Use *use;
    bool weight = v->kind == VALUE_CONST && uses_of(d->uses, v, &use) > 0 && use[0].node &&
                  use[0].node->def && is_weight(use[0].node, use[0].index);
    bool bias = v->kind == VALUE_CONST && uses_of(d->uses, v, &use) > 0 && use[0].node &&
                is_integer_bias(d, use[0].node, use[0].index);
    Buf b = buf_new(d->m->arena);
    if (bias) {
        explain_bias(&b, c, v, use[0].node);
        c->explanation = buf_as_str(&b);
        return;
    }
    Value *root = weight || v->id >= d->n_values ? v : sharing_root(&d->sharing, v);
    Choice o = weight ? choice_of_weight(c, use[0].node, v) : choice_of(d, root);
    if (of_node)
        buf_fmt(&b, "%s: it is part of what gives %s now\n", c->explain, diag_name(c->d, v->name));
    explain_value(&b, c, d->uses, v, root, &o);
    c->explanation = buf_as_str(&b);
}

/* Whether a node takes it as its weight, which is then quantized though the node be float. */
static bool want_as_weight(Decide *d, const Value *v) {
    const Use *use;
    size_t n = uses_of(d->uses, v, &use);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        if (use[i].node && use[i].node->def && is_weight(use[i].node, use[i].index))
            any = d->weights_only[use[i].node->id] = true;
    return any;
}

/* What the text marks gets a quantization whatever computes it, floats too. */
static void want_marked(Decide *d) {
    const Openings *o = d->c->open;
    float min, max;
    bool cut;
    for (size_t i = 0; o && i < o->n; i++) {
        Value *v = o->values[i]->value;
        if (o->values[i]->marked && masked_range(d->uses, v, &min, &max, &cut) &&
            !want_as_weight(d, v))
            d->wanted[v->id] = true;
    }
}

bool pass_decide(Module *m, PassContext *c) {
    Decide d = {.c = c,
                .m = m,
                .recipe = recipe_of(c),
                .placing = placing_of(c),
                .uses = uses_new(m),
                .names = unique_names_new(m),
                .n_values = m->n_values,
                .integer = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .between = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .weights_only = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .float_result = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .sum = NEW_ARRAY(m->arena, bool, m->n_nodes),
                .wanted = NEW_ARRAY(m->arena, bool, m->n_values),
                .decided = NEW_ARRAY(m->arena, bool, m->n_values)};
    if (!choice_check(c, m) || !module_data_required(m, c->d))
        return false;
    spread_assume(m, c);
    types_travel(m, c, d.uses);
    d.sharing = sharing_new(m, c, d.uses, d.integer, d.wanted, d.sum);
    placement_mark(&d);
    want_marked(&d);
    sharing_find(&d.sharing, m);
    find_lines(&d);
    module_each_graph(m, assign_graph, &d);
    types_tell(m, c);
    if (!c->open)
        types_tell_idle(m, c, d.uses);
    if (c->explain)
        module_each_value(m, explain, &d);
    d.by_origin = true;
    if (c->explain)
        module_each_value(m, explain, &d);
    edit_sweep(m);
    bool closed = !c->open || openings_close(m, c);
    spread_forget(m, c);
    return closed;
}
