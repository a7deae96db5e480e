#include "passes/lower/lower_spelling.h"

#include "ir/later.h"
#include "passes/edit.h"
#include "passes/emulate.h"

const Quant *lower_quant(const Lower *l, const Value *v) {
    return v && v->id < l->n ? l->quant[v->id] : NULL;
}

Value *lower_ints(const Lower *l, Value *v) {
    return lower_quant(l, v) && l->ints[v->id] ? l->ints[v->id] : v;
}

Str lower_quant_name(const Lower *l, const Node *n) {
    return n->name.n ? arena_strf(l->b.a, STR_FMT "_quant", STR_ARG(n->name)) : STR_NONE;
}

/* ---- conversions ---- */

static Str conversion_name(Lower *l, Str base, const char *op) {
    return arena_strf(l->b.a, STR_FMT "_%s", STR_ARG(base), op);
}

/* `n`, a conversion of one operand, becomes ONNX's. */
static void dequantize_from(Lower *l, Node *n, const Quant *q, Type t, Str base) {
    if (emulates_dequantize(&l->b, q))
        emulate_dequantize(&l->b, n, q, t, base);
    else
        state_params(&l->b, n, q, t, base);
}

/* Integers to float, for a value that has no float companion yet, where it is defined or, `inside`,
 * in the user's graph. */
static Value *dequantize(Lower *l, Value *v, Node *user, bool inside) {
    Value *x = lower_ints(l, v);
    const Quant *q = lower_quant(l, v);
    Str base = base_name(v->name);
    Node *n = build_node_for(&l->b, v, "DequantizeLinear",
                             conversion_name(l, base, "DequantizeLinear"), OPERANDS(x));
    n->graph = inside ? user->graph : x->graph;
    Type t = x->type;
    t.quant = NULL;
    t.tilde = false;
    t.elem = q->expressed;
    node_add_output(n, 0, derived_name(&l->b, base, "_DequantizeLinear_Output"), t);
    if (inside)
        node_insert_before(user, n);
    else
        place_behind(x, n, user);
    dequantize_from(l, n, q, t, base);
    return n->out[0];
}

/* A companion that holds within one body, and the one outside. */
struct InBody {
    struct InBody *next;
    uint32_t id;
    Value *outside;
};

static Value *dequantize_inside(Lower *l, Value *v, Node *user) {
    struct InBody *c = NEW(l->b.a, struct InBody);
    *c = (struct InBody){l->in_body, v->id, l->floats[v->id]};
    l->in_body = c;
    return l->floats[v->id] = dequantize(l, v, user, true);
}

/* A node of a body reads it from outside, and what is not yet dequantized in the body. */
static bool is_captured(const Lower *l, const Value *v, const Node *user) {
    const Value *f = l->floats[v->id];
    bool stated = v->onnx || (f && !(f->def && is_onnx_dequantize(f->def)));
    return !l->qop && !stated && v->graph != user->graph && !(f && f->graph == user->graph);
}

Value *lower_float(Lower *l, Value *v, Node *user) {
    if (!lower_quant(l, v))
        return v;
    if (!l->floats[v->id] && !l->qop)
        l->floats[v->id] = spelled_float_bias(l, v);
    if (is_captured(l, v, user))
        return dequantize_inside(l, v, user);
    if (!l->floats[v->id])
        l->floats[v->id] = dequantize(l, v, user, false);
    return l->floats[v->id];
}

/* `n`, which stands in the graph, becomes QuantizeLinear from x to v's integers. */
static void quantize_into(Lower *l, Node *n, Value *x, const Quant *q, Value *y, Str base) {
    bool behind = !l->within && lower_clips_behind(l, q, y);
    n->in[0] = x;
    if (emulates_quantize(&l->b, q)) {
        emulate_quantize(&l->b, n, q, y->type, base);
        return;
    }
    if (is_requantize(n))
        node_becomes(n, l->b.pass);
    n->domain = STR_NONE;
    n->op = STR("QuantizeLinear");
    if (!behind && !l->within)
        n->in[0] = lower_clip_before(l, x, q, n, base);
    state_params(&l->b, n, q, y->type, base);
    if (behind)
        lower_clip_behind(l, n, q, base);
}

static Type plain_type(Lower *l, Value *v) {
    return integer_type(v->type, onnx_quant(&l->b, lower_quant(l, v)), l->qop);
}

void lower_result(Lower *l, Node *n, size_t i) {
    Value *y = n->out[i];
    if (!lower_quant(l, y))
        return;
    l->types[y->id] = plain_type(l, y);
    l->ints[y->id] = y;
}

/* The node's float result and the integers share the old value's name between them: who keeps it
 * depends on the form, but what a graph returns is the integers. */
void lower_float_result(Lower *l, Node *n, size_t i) {
    Value *y = n->out[i];
    const Quant *q = lower_quant(l, y);
    if (!q)
        return;
    bool keep = !l->qop && !uses_is_output(l->uses, y); /* the float value keeps the name */
    Str base = base_name(y->name);
    Type real = real_type(y->type);
    Node *to = build_node(&l->b, n, "QuantizeLinear", conversion_name(l, base, "QuantizeLinear"),
                          OPERANDS(y));
    node_insert_after(n, to);
    l->types[y->id] = keep ? real : plain_type(l, y);
    if (keep) {
        l->ints[y->id] = node_add_output(to, 0, derived_name(&l->b, base, "_QuantizeLinear_Output"),
                                         plain_type(l, y));
    } else {
        n->out[i] = NULL;
        node_add_output(n, i, derived_name(&l->b, base, "_QuantizeLinear_Input"), real);
        node_take_result(to, 0, y);
        l->ints[y->id] = y;
    }
    quantize_into(l, to, n->out[i], q, to->out[0], base);
}

/* ---- nodes ---- */

void lower_around(Lower *l, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = n->in[i] ? lower_float(l, n->in[i], n) : NULL;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            lower_float_result(l, n, i);
}

void lower_on_integers(Lower *l, Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        n->in[i] = n->in[i] ? lower_ints(l, n->in[i]) : NULL;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            lower_result(l, n, i);
}

static void lower_conversion(Lower *l, Node *n) {
    Value *x = n->in[0], *y = n->out[0];
    if (is_typed_dequantize(n) && l->floats[x->id] == x) { /* float without a Q of its own */
        value_replace(l->b.m, l->uses, y, x);
        if (uses_is_output(l->uses, y)) {
            x->name = y->name;
            x->declared = y->declared;
            x->doc = y->doc;
            x->meta = y->meta;
        }
        node_remove(n);
        return;
    }
    if (is_typed_dequantize(n) && lower_accumulator_to_float(l, n))
        return;
    if (is_typed_dequantize(n)) {
        n->in[0] = lower_ints(l, x);
        dequantize_from(l, n, lower_quant(l, x), y->type, base_name(x->name));
        if (!l->floats[x->id] && n->graph == n->in[0]->graph)
            l->floats[x->id] = y; /* all that follow it see it */
        return;
    }
    if (is_reinterpret(n)) { /* goes when the others have their names again */
        lower_on_integers(l, n);
        return;
    }
    const Quant *q = lower_quant(l, y);
    if (q->kind == QUANT_DYNAMIC) {
        lower_dynamic_quantize(l, n);
        return;
    }
    lower_result(l, n, 0);
    quantize_into(l, n, lower_float(l, x, n), q, y, base_name(y->name));
}

static bool touches_quantized(const Lower *l, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (lower_quant(l, n->in[i]))
            return true;
    for (size_t i = 0; i < n->n_out; i++)
        if (lower_quant(l, n->out[i]))
            return true;
    return false;
}

static bool converts_quantized(const Lower *l, const Node *n) {
    if (is_typed_dequantize(n))
        return lower_quant(l, n->in[0]);
    bool converts = is_typed_quantize(n) || is_requantize(n) || is_reinterpret(n);
    return converts && lower_quant(l, n->out[0]);
}

static void lower_graph(Lower *l, Graph *g);

static void lower_body(Lower *l, Graph *g) {
    struct InBody *before = l->in_body;
    lower_graph(l, g);
    for (; l->in_body != before; l->in_body = l->in_body->next)
        l->floats[l->in_body->id] = l->in_body->outside;
}

static void lower_bodies(Lower *l, Node *n) {
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; k < attr_graphs(&n->attrs[i]); k++)
            lower_body(l, n->attrs[i].v.g[k]);
}

/* Constants of types that ONNX lacks are widened to one that it has. */
static void widen(Lower *l, Value *v) {
    ElemType e = onnx_storage(&l->b, v->data->elem);
    if (e == v->data->elem)
        return;
    later_make(l->b.m, v->data);
    v->data = tensor_as(l->b.a, v->data, e);
}

static void lower_leaf(Lower *l, Value *v) {
    if (!lower_quant(l, v))
        return;
    l->types[v->id] = plain_type(l, v);
    l->ints[v->id] = v;
    if (v->data)
        widen(l, v);
}

static void normalize(Lower *l, Node *n) {
    if (!n->def || !n->def->normalize)
        return;
    n->def->normalize(n, l->b.names);
    op_resolve(n, l->b.d);
}

static void lower_graph(Lower *l, Graph *g) {
    size_t n_consts = g->n_consts; /* those made on the way are plain */
    for (size_t i = 0; i < g->n_in; i++)
        lower_leaf(l, g->in[i]);
    for (size_t i = 0; i < n_consts; i++)
        lower_leaf(l, g->consts[i]);
    FOR_NODES(n, g) {
        if (converts_quantized(l, n))
            lower_conversion(l, n);
        else if (has_bodies(n)) {
            lower_on_integers(l, n);
            lower_bodies(l, n);
        } else if (touches_quantized(l, n)) {
            normalize(l, n);
            l->node(l, n);
        }
    }
    for (size_t i = 0; i < g->n_out; i++)
        g->out[i] = lower_ints(l, g->out[i]);
}

/* ---- the module ---- */

/* In ONNX the integers themselves are read in two ways, and no `~` can say how; what goes out keeps
 * its name. */
static void drop_reinterprets(Graph *g, void *ctx) {
    Lower *l = ctx;
    FOR_NODES(n, g) {
        if (!is_reinterpret(n))
            continue;
        if (uses_is_output(l->uses, n->out[0])) {
            edit_pass_on(n, l->b.pass, l->b.d);
        } else {
            n->in[0]->type.quant = NULL;
            n->in[0]->type.tilde = false;
            value_replace(l->b.m, l->uses, n->out[0], n->in[0]);
            node_remove(n);
        }
    }
}

static void note_value(Value *v, void *ctx) {
    Lower *l = ctx;
    if (v->type.kind == TYPE_TENSOR && type_is_quantized(v->type))
        l->quant[v->id] = v->type.quant;
}

static void set_value(Value *v, void *ctx) {
    const Lower *l = ctx;
    if (v->id < l->n && l->types[v->id].kind != TYPE_NONE)
        v->type = l->types[v->id];
}

void lower_module(Lower *l, Module *m) {
    l->uses = uses_new(m);
    lower_biases(l, m);
    l->n = m->n_values;
    l->uses = uses_new(m);
    l->quant = NEW_ARRAY(m->scratch, const Quant *, l->n);
    l->ints = NEW_ARRAY(m->scratch, Value *, l->n);
    l->floats = NEW_ARRAY(m->scratch, Value *, l->n);
    l->types = NEW_ARRAY(m->scratch, Type, l->n);
    module_each_value(m, note_value, l);
    l->exact = NEW_ARRAY(m->scratch, bool, l->n);
    spelling_begin(l);
    lower_graph(l, m->graph);
    module_each_value(m, set_value, l);
    spelling_restore(l);
    l->uses = uses_new(m);
    module_each_graph(m, drop_reinterprets, l);
    order_restore(l);
    drop_unused_quants(m);
}
