/* QDQ and QOperator models to true-quant form: see raise.h for the steps. */
#include "passes/raise/raise.h"
#include "ir/ops/qop.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/spelling.h"

/* ---- shared ---- */

typedef struct Walk {
    Module *m;
    void (*fn)(Graph *g, void *ctx);
    void *ctx;
} Walk;

static void walk(Graph *g, void *ctx) {
    const Walk *w = ctx;
    if (!graph_function(g))
        w->fn(g, w->ctx);
}

void raise_each_graph(Module *m, void (*fn)(Graph *g, void *ctx), void *ctx) {
    Walk w = {m, fn, ctx};
    module_each_graph(m, walk, &w);
}

Value *raise_source(Value *v) {
    if (!v || v->type.kind != TYPE_TENSOR)
        return NULL;
    if (type_is_quantized(v->type))
        return quant_is_integers(v->type.quant) ? v : NULL;
    if (!v->def || !is_own_dequantize(v->def) || !type_is_quantized(v->def->in[0]->type))
        return NULL;
    return v->def->in[0];
}

static Str twin_key(Raise *r, const Value *v, const Quant *q) {
    Buf b = buf_new(r->b.a);
    buf_str(&b, value_key(v));
    buf_str(&b, quant_key(r->b.a, q));
    return buf_as_str(&b);
}

RaisedConst *raise_note_const(Raise *r, Value *plain, Value *quantized) {
    RaisedConst made = {.plain = plain, .quantized = quantized};
    ARENA_PUSH(r->b.a, r->consts, r->n_consts, r->cap_consts, made);
    map_set(r->plains, value_key(quantized), plain);
    return &r->consts[r->n_consts - 1];
}

Value *raise_plain(const Raise *r, Value *v) {
    Value *plain = map_get(r->plains, value_key(v));
    return plain ? plain : v;
}

Value *raise_twin(Raise *r, const Value *v, const Quant *q) {
    return map_get(r->twins, twin_key(r, v, q));
}

void raise_note_twin(Raise *r, const Value *v, Value *twin) {
    map_set(r->twins, twin_key(r, v, twin->type.quant), twin);
}

Value *raise_const(Raise *r, Value *v, const Quant *q) {
    Value *twin = raise_twin(r, v, q);
    if (twin)
        return twin;
    Tensor *t = tensor_as(r->b.a, (Tensor *)value_data(v), q->storage);
    Graph *g = v->kind == VALUE_CONST ? v->graph : r->m->graph;
    Value *c = graph_add_const(g, derived_name(&r->b, v->name, "_typed"),
                               type_quantized(tensor_type(r->b.a, t), q), t);
    c->loc = v->loc;
    c->doc = v->doc;
    c->meta = v->meta;
    c->from = v->from;
    raise_note_const(r, v, c);
    raise_note_twin(r, v, c);
    return c;
}

void raise_replace(Raise *r, Value *from, Value *to) {
    value_replace(r->m, r->uses, from, to);
    map_set(r->moved, value_key(from), to);
}

Value *raise_follow(const Raise *r, Value *v) {
    for (Value *to = v; to; to = map_get(r->moved, value_key(v)))
        v = to;
    return v;
}

/* ---- constants ---- */

/* Weights that are stored as float behind a Q/DQ pair: the integers are known now. */
static void fold_constants(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        const Tensor *t =
            is_typed_quantize(n) && !leaves_range(n) ? edit_float_const(n->in[0]) : NULL;
        if (!t)
            continue;
        const Quant *q = n->out[0]->type.quant;
        const Use *uses;
        bool output = false;
        size_t count = uses_of(r->uses, n->out[0], &uses);
        for (size_t i = 0; i < count; i++)
            output |= !uses[i].node;
        if (output)
            continue;
        Value *c = graph_add_const(n->in[0]->graph, derived_name(&r->b, n->in[0]->name, "_typed"),
                                   type_quantized(n->in[0]->type, q), const_quantize(r->b.a, t, q));
        raise_note_const(r, n->in[0], c);
        raise_replace(r, n->out[0], c);
        node_remove(n);
    }
}

/* Several equal QuantizeLinear of one value: the first serves all. */
static void merge_quantizes(Graph *g, void *ctx) {
    Raise *r = ctx;
    for (Node *n = g->first; n; n = n->next) { /* its successor may go */
        const Use *uses;
        size_t count = n->n_out && n->out[0] ? uses_of(r->uses, n->out[0], &uses) : 0;
        Node *first = NULL;
        for (size_t i = 0; i < count; i++) {
            Node *q = uses[i].node;
            if (!q || q->graph != g || !is_typed_quantize(q) || leaves_range(q) ||
                q->in[0] != n->out[0])
                continue;
            const Use *of;
            size_t k = uses_of(r->uses, q->out[0], &of);
            bool output = false;
            for (size_t j = 0; j < k; j++)
                output |= !of[j].node;
            if (!first) {
                first = q;
            } else if (!output && quant_equal(first->out[0]->type.quant, q->out[0]->type.quant)) {
                raise_replace(r, q->out[0], first->out[0]);
                node_remove(q);
            }
        }
    }
}

/* A Sum of one operand between Q or DQ and an operator, as lowering puts there to keep a target
 * from fusing: nothing to raise, and in the way. */
static void drop_guards(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        const Use *uses;
        if (!is_guard(n) || uses_of(r->uses, n->out[0], &uses) != 1 || !uses[0].node)
            continue;
        if (is_onnx_quantize(uses[0].node) ||
            (n->in[0]->def && is_onnx_dequantize(n->in[0]->def))) {
            raise_replace(r, n->out[0], n->in[0]);
            node_remove(n);
        }
    }
}

/* ---- what is left of conversions ---- */

/* DequantizeLinear, QuantizeLinear: a requantization, or nothing at all. Parameters that are
 * computed at run time are those of the floats between. */
static void join_pairs(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        if (!is_own_quantize(n) || type_is_quantized(n->in[0]->type))
            continue;
        Value *x = raise_source(n->in[0]), *y = n->out[0];
        if (!x || elem_bits(x->type.elem) > 16 || y->type.quant->kind == QUANT_DYNAMIC)
            continue;
        if (quant_equal(x->type.quant, y->type.quant) && !uses_is_output(r->uses, y)) {
            raise_replace(r, y, x);
            node_remove(n);
            continue;
        }
        node_absorb(n, n->in[0]->def, r->b.pass);
        n->domain = STR("qxc");
        n->op = STR("Requantize");
        n->in[0] = x;
        op_resolve(n, r->b.d);
    }
}

static void drop_dead(Graph *g, void *ctx) {
    const Raise *r = ctx;
    FOR_NODES(n, g) {
        const Use *uses;
        if (is_typed_dequantize(n) && uses_of(r->uses, n->out[0], &uses) == 0)
            node_remove(n);
    }
}

void raise_conversions(Raise *r) {
    raise_each_graph(r->m, join_pairs, r);
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, drop_dead, r);
}

/* ---- names ---- */

static void live_name(Value *v, void *live) {
    map_set(live, v->name, v);
}

static bool take_name(Map *live, Value *v, Str name) {
    if (map_get(live, name))
        return false;
    v->name = name;
    map_set(live, name, v);
    return true;
}

/* Results of operators that stood as QOperators: "T" rather than "T_quantized". */
static void name_results(Raise *r, Map *live) {
    for (size_t i = 0; i < map_size(r->made); i++) {
        const Node *n = map_value(r->made, i);
        Value *y = n->n_out ? n->out[0] : NULL;
        if (y && str_eq(y->name, map_key(r->made, i)) && map_get(live, y->name) == y)
            take_name(live, y, base_name(y->name));
    }
}

/* A quantized constant takes the name of the one it replaces, when that is gone. */
static void name_constants(Raise *r, Map *live) {
    for (size_t i = 0; i < r->n_consts; i++) {
        Value *plain = r->consts[i].plain, *v = r->consts[i].quantized;
        if (map_get(live, v->name) != v)
            continue;
        if (!take_name(live, v, base_name(plain->name)) && !take_name(live, v, plain->name))
            take_name(live, v, arena_strf(r->b.a, STR_FMT "_quantized", STR_ARG(plain->name)));
    }
}

/* ---- !name lines ---- */

typedef struct Aliases {
    Raise *r;
    Map *names;
} Aliases;

/* A line stands above all values: it has none computed at run time, and names none. */
static bool can_have_line(const Quant *q) {
    return q->kind != QUANT_DYNAMIC && !q->acc_value[0] && !q->acc_value[1];
}

static void name_quant(Aliases *a, Value *v) {
    if (!v || v->type.kind != TYPE_TENSOR || !type_is_quantized(v->type) ||
        !can_have_line(v->type.quant))
        return;
    Quant *q = (Quant *)v->type.quant; /* made by this pass where it has no alias */
    Quant *known = map_get(a->names, v->name);
    if (!q->alias.n && known && quant_equal(known, q))
        v->type.quant = known; /* `int8 ~ !v` said so before */
    if (q->alias.n || known)
        return;
    q->alias = v->name;
    map_set(a->names, q->alias, q);
    module_add_quant(a->r->m, q);
}

static void name_quants(Graph *g, void *ctx) {
    for (size_t i = 0; i < g->n_in; i++)
        name_quant(ctx, g->in[i]);
    for (size_t i = 0; i < g->n_consts; i++)
        name_quant(ctx, g->consts[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        name_quant(ctx, n->out[i]);
}

static void name_all(Raise *r) {
    Map *live = map_new(r->m->scratch);
    module_each_value(r->m, live_name, live);
    name_results(r, live);
    name_constants(r, live);
    Aliases a = {r, map_new(r->m->scratch)};
    for (size_t i = 0; i < r->m->n_quants; i++)
        map_set(a.names, r->m->quants[i]->alias, r->m->quants[i]);
    raise_each_graph(r->m, name_quants, &a);
}

/* ---- the pass ---- */

bool pass_raise_quant(Module *m, PassContext *c) {
    Raise r = {.b = quant_build_new(m, c, "raise-quant"),
               .c = c,
               .m = m,
               .made = map_new(m->scratch),
               .twins = map_new(m->scratch),
               .plains = map_new(m->scratch),
               .moved = map_new(m->scratch),
               .emulated = map_new(m->scratch),
               .first_made = m->n_nodes};
    const Map *named = edit_annotated(m);
    raise_channels_last(&r);
    r.uses = uses_new(m);
    raise_each_graph(m, drop_guards, &r);
    raise_nbits(&r);
    raise_gather(&r);
    raise_dynamic(&r);
    raise_accumulators(&r);
    raise_qoperators(&r);
    r.uses = uses_new(m);
    spelling_capture(&r);
    raise_emulated(&r);
    raise_clips(&r);
    raise_integers(&r);
    raise_emulated_settle(&r);
    if (!module_infer(m, c->d)) /* what com.microsoft's DequantizeLinear yields is known now */
        return false;
    r.uses = uses_new(m);
    raise_each_graph(m, fold_constants, &r);
    r.uses = uses_new(m);
    raise_each_graph(m, merge_quantizes, &r);
    r.uses = uses_new(m);
    raise_affine(&r);
    r.uses = uses_new(m);
    raise_operators(&r);
    r.uses = uses_new(m);
    raise_conversions(&r);
    raise_reasons(&r);
    edit_sweep_but(m, named); /* what Q and DQ named comes back with them */
    name_all(&r);
    module_forget_infos(m);
    spelling_record(&r);
    return true;
}
