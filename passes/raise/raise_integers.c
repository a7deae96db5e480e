/* Plain integers, and numbers of float8, that only travel between Q, DQ and operators that move
 * data become values of a quantized type. Integers that are linked by movers or by the branches of
 * If form a class; a class is raised when all that makes them agrees and nobody looks at the
 * integers themselves. What reads them with other parameters reads a reinterpretation. */
#include "passes/edit.h"
#include "passes/raise/raise.h"

typedef struct Class { /* kept at the root */
    const Quant *q;
    bool by_dq;      /* no Q said so yet, which might know of a range */
    const char *why; /* not raised, and why */
    bool moved;      /* a mover links integers of it: parameters must be per tensor */
    bool cut;        /* a Relu cuts at the integer 0: the zero point must be that */
    int64_t lo, hi;  /* of constants that movers put among them; lo > hi: none */
} Class;

typedef struct Classes {
    Raise *r;
    size_t n;
    uint32_t *parent;
    Class *at;
    bool *wide; /* by value id: 32-bit integers that a Q made, and no index or length */
} Classes;

static uint32_t root(Classes *c, uint32_t i) {
    while (c->parent[i] != i)
        i = c->parent[i] = c->parent[c->parent[i]];
    return i;
}

/* Integers that may get a quantized type, of 32 bits those of biases and what stands for them; and
 * numbers of float8. */
static bool may_raise(const Value *v) {
    return v && v->type.kind == TYPE_TENSOR && !type_is_quantized(v->type) &&
           elem_has_grid(v->type.elem);
}

/* Those that a mover may hand on. */
static bool is_plain_int(const Classes *c, const Value *v) {
    return may_raise(v) && elem_is_int(v->type.elem) &&
           (elem_bits(v->type.elem) <= 16 || (v->id < c->n && c->wide[v->id]));
}

static void refuse(Classes *c, const Value *v, const char *why) {
    Class *k = &c->at[root(c, v->id)];
    if (!k->why)
        k->why = why;
}

/* Equal but for the range, of which the second knows nothing. */
static bool equal_in_range(Classes *c, const Quant *q, const Quant *dq) {
    bool bit = elem_bits(q->storage) == 1;
    if (!quant_is_integers(q) || !quant_is_integers(dq) || dq->has_range || !(q->has_range || bit))
        return false;
    Quant *all = quant_copy(c->r->b.a, q);
    all->has_range = false;
    if (bit)
        all->storage = onnx_storage(&c->r->b, q->storage);
    return quant_equal(all, dq);
}

/* The same integers can be read as numbers of both. */
static bool can_reinterpret(const Quant *x, const Quant *y) {
    return quant_is_integers(x) && quant_is_integers(y) && x->expressed == y->expressed &&
           elem_bits(x->storage) > 1 && elem_bits(y->storage) > 1;
}

/* What a Q or (`by_dq`) a DQ says. */
static void say(Classes *c, const Value *v, const Quant *q, bool by_dq) {
    Class *k = &c->at[root(c, v->id)];
    bool equal = !k->q || quant_equal(k->q, q) || (by_dq && equal_in_range(c, k->q, q)) ||
                 (k->by_dq && equal_in_range(c, q, k->q));
    if (!equal && !((by_dq || k->by_dq) && can_reinterpret(k->q, q))) {
        refuse(c, v, "its consumers and producers state different parameters");
    } else if (!k->q || (k->by_dq && !by_dq)) {
        k->q = q;
        k->by_dq = by_dq;
    }
}

static void put(Class *k, int64_t lo, int64_t hi) {
    k->lo = lo < k->lo ? lo : k->lo;
    k->hi = hi > k->hi ? hi : k->hi;
}

static void join(Classes *c, const Value *x, const Value *y) {
    uint32_t i = root(c, x->id), j = root(c, y->id);
    if (i == j)
        return;
    Class k = c->at[j];
    c->parent[j] = i;
    c->at[i].moved |= k.moved;
    c->at[i].cut |= k.cut;
    put(&c->at[i], k.lo, k.hi);
    if (k.q)
        say(c, x, k.q, k.by_dq);
    if (k.why)
        refuse(c, x, k.why);
}

/* ---- what nodes say ---- */

static bool is_const(const Value *v) {
    return value_data(v) != NULL;
}

/* What a Q or DQ converts to or from. */
static Value *converted(const Node *n) {
    return is_onnx_quantize(n) ? n->out[0] : is_onnx_dequantize(n) ? n->in[0] : NULL;
}

/* Behind operators of which nothing is known a Q or DQ says what the integers are. */
static void type_unknown(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        const char *why;
        Value *ints = converted(n);
        const Quant *q = ints && ints->type.kind == TYPE_NONE ? raise_params(c->r, n, &why) : NULL;
        Type x = n->n_in && n->in[0] ? n->in[0]->type : TYPE_UNKNOWN;
        bool shape = x.kind == TYPE_TENSOR && x.rank >= 0;
        if (q)
            ints->type = type_tensor(q->storage, shape ? x.rank : -1, shape ? x.dims : NULL);
    }
}

static void note_conversion(Classes *c, const Node *n, const Value *ints) {
    const char *why = NULL;
    const Quant *q = raise_params(c->r, n, &why);
    if (!q)
        diag_note(c->r->b.d, n->loc, "%s stays as it is: %s", node_text(n), why);
    c->wide[ints->id] |= is_onnx_quantize(n) && elem_bits(ints->type.elem) == 32;
    if (!may_raise(ints) || (is_const(ints) && is_onnx_dequantize(n)))
        return; /* a constant gets a quantized twin for each use */
    if (q)
        say(c, ints, q, is_onnx_dequantize(n));
    else
        refuse(c, ints, why);
}

/* Integers that a mover puts among those it hands on: constant operands, and what Pad fills with.
 */
static void put_constants(Class *k, const Node *n) {
    size_t fill = fill_operand(n);
    if (fill && !node_input(n, fill))
        put(k, 0, 0);
    for (size_t i = 0; i < n->n_in; i++) {
        const Tensor *t = n->in[i] ? value_data(n->in[i]) : NULL;
        bool data = quant_rule_is_data(&n->def->quant, i) || (fill && i == fill);
        for (size_t j = 0; data && t && t->data && elem_is_int(t->elem) && j < t->count; j++)
            put(k, tensor_int(t, j), tensor_int(t, j));
    }
}

/* All data that a mover is given are constants of integers: rows of a table. */
static bool moves_constants(const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || !quant_rule_is_data(&n->def->quant, i))
            continue;
        if (!is_const(v) || !may_raise(v) || !elem_is_int(v->type.elem) ||
            elem_bits(v->type.elem) > 16)
            return false;
        any = true;
    }
    return any;
}

/* The type of such constants whose result has the type q, NULL: there is none. Filling would take
 * a number for each channel. */
static const Quant *before_mover(const Classes *c, const Node *n, const Quant *q) {
    if (q->n_axes == 0)
        return q;
    if (!moves_constants(n) || !n->def->quant.move.axis || fill_operand(n))
        return NULL;
    OpCtx ctx = op_ctx(n, NULL);
    Quant *from = quant_copy(c->r->b.a, q);
    from->alias = STR_NONE;
    for (int i = 0; i < q->n_axes; i++) {
        int axis = n->in[0]->type.rank - 1;
        while (axis >= 0 && n->def->quant.move.axis(&ctx, axis) != q->axis[i])
            axis--;
        if (axis < 0)
            return NULL;
        from->axis[i] = axis;
    }
    return from;
}

/* A mover on integers: everything of its element type is in one class. */
static bool note_mover(Classes *c, const Node *n) {
    const Value *y = n->n_out ? n->out[0] : NULL;
    if (!keeps_integers(n) || !n->in[0] || !y)
        return false;
    bool table = moves_constants(n) && may_raise(y);
    const Value *x = table ? y : NULL;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || is_const(v))
            continue;
        bool data = quant_rule_is_data(&n->def->quant, i);
        if (data != is_plain_int(c, v)) /* a bound that is computed, say */
            return false;
        if (data && x)
            join(c, x, v);
        x = data ? v : x;
    }
    if (!x)
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_NONE) /* behind an unknown operator */
            return false;
    for (size_t i = 0; i < n->n_out; i++) {
        Value *made = n->out[i];
        if (!may_raise(made) || made->type.elem != x->type.elem)
            continue;
        c->wide[made->id] = c->wide[x->id];
        join(c, x, made);
    }
    Class *k = &c->at[root(c, x->id)];
    k->moved |= !table;
    k->cut |= n->def->quant.cuts_at_zero;
    put_constants(k, n);
    return true;
}

static bool yields_results(const Node *n) {
    return n->def && n->def->yields_results;
}

static bool note_branches(Classes *c, const Node *n) {
    if (!yields_results(n))
        return false;
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; n->attrs[i].kind == ATTR_GRAPH && k < n->n_out; k++) {
            const Graph *g = n->attrs[i].v.g[0];
            if (n->out[k] && k < g->n_out && may_raise(n->out[k]) && may_raise(g->out[k])) {
                join(c, n->out[k], g->out[k]);
                if (is_const(g->out[k]))
                    refuse(c, n->out[k], "a branch yields a constant");
                if (!elem_is_int(n->out[k]->type.elem))
                    refuse(c, n->out[k], "a branch yields it");
            }
        }
    return true;
}

static void refuse_for(Classes *c, const Node *n, const Value *v, const char *does) {
    if (may_raise(v))
        refuse(c, v,
               arena_strf(c->r->b.a, STR_FMT " %s %s", STR_ARG(n->op), does,
                          elem_is_int(v->type.elem) ? "the integers" : "it")
                   .s);
}

static void refuse_all(Classes *c, const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        refuse_for(c, n, n->in[i], "reads");
    for (size_t i = 0; i < n->n_out; i++)
        refuse_for(c, n, n->out[i], "makes");
}

static void note_bodies(Classes *c, const Node *n) {
    if (yields_results(n))
        return;
    for (size_t i = 0; i < n->n_attrs; i++)
        for (size_t k = 0; n->attrs[i].kind == ATTR_GRAPH && k < n->attrs[i].n; k++) {
            const Graph *g = n->attrs[i].v.g[k];
            for (size_t j = 0; j < g->n_in; j++)
                if (may_raise(g->in[j]))
                    refuse(c, g->in[j], "it is carried by a loop");
            for (size_t j = 0; j < g->n_out; j++)
                if (may_raise(g->out[j]))
                    refuse(c, g->out[j], "it is carried by a loop");
        }
}

static void note_graph(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        if (converted(n))
            note_conversion(c, n, converted(n));
        else if (!note_mover(c, n) && !note_branches(c, n) && !(n->def && n->def->constant))
            refuse_all(c, n);
        note_bodies(c, n);
    }
}

/* ---- raising ---- */

static const Quant *raised(Classes *c, const Value *v) {
    if (!may_raise(v) || v->id >= c->n || is_const(v))
        return NULL;
    const Class *k = &c->at[root(c, v->id)];
    return k->why ? NULL : k->q;
}

/* Parameters along an axis of rows must be those of an axis of the table. */
static void check_tables(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        const Quant *q = keeps_integers(n) && n->n_out && n->out[0] ? raised(c, n->out[0]) : NULL;
        if (q && !c->at[root(c, n->out[0]->id)].moved && moves_constants(n) &&
            !before_mover(c, n, q))
            refuse(c, n->out[0], "its parameters lie on no axis of the table that it is taken of");
    }
}

static void decide(Classes *c, const Value *v) {
    if (!may_raise(v) || is_const(v))
        return;
    uint32_t i = root(c, v->id);
    Class *k = &c->at[i];
    if (k->q && !k->why && k->moved && !quant_is_per_tensor(k->q))
        k->why = "moved integers have parameters per axis";
    if (k->q && !k->why && k->cut && !quant_zp_all_zero(k->q))
        k->why = "a Relu cuts the integers elsewhere than at their zero point";
    if (k->q && !k->why && k->lo <= k->hi && quant_is_integers(k->q) &&
        (k->lo < quant_lo(k->q) || k->hi > quant_hi(k->q)))
        k->why = "constants among them are outside of their range";
    if (k->q && k->why && i == v->id)
        diag_note(c->r->b.d, v->loc, "'%s' stays plain %s: %s", diag_name(c->r->b.d, v->name),
                  elem_is_int(v->type.elem) ? "integers" : elem_name(v->type.elem), k->why);
}

/* The types of a graph's values, once all nodes were rewritten. */
static void each_value(Classes *c, Graph *g, void (*fn)(Classes *c, Value *v)) {
    for (size_t i = 0; i < g->n_in; i++)
        fn(c, g->in[i]);
    FOR_NODES(n, g)
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i])
            fn(c, n->out[i]);
}

static void decide_value(Classes *c, Value *v) {
    decide(c, v);
}
static void decide_graph(Graph *g, void *ctx) {
    each_value(ctx, g, decide_value);
}

static void type_value(Classes *c, Value *v) {
    const Quant *q = raised(c, v);
    if (q)
        v->type = type_quantized(v->type, q);
}
static void type_graph(Graph *g, void *ctx) {
    each_value(ctx, g, type_value);
}

static Value *float_of_int(Classes *c, Value *v, const Quant *q) {
    const Tensor *t = value_data(v);
    float *x = NEW_ARRAY(c->r->b.a, float, t->count);
    for (size_t i = 0; i < t->count; i++)
        x[i] = (float)(tensor_int(t, i) - quant_zp(q, 0)) * quant_scale(q, 0);
    return build_const(&c->r->b, v->name, "_float", ELEM_FLOAT, t->rank, t->dims, x);
}

/* A Pad without a value pads with the integer 0, which may be another number. */
static void state_fill(Classes *c, Node *n, const Quant *q) {
    size_t i = fill_operand(n);
    if (i && n->n_in >= i && (n->n_in == i || !n->in[i]) && quant_zp(q, 0) != 0)
        set_operand(n, i, build_int(&c->r->b, n->out[0]->name, "_pad", q->storage, 0));
}

/* Constants among a raised mover's operands: data takes the quantized type, bounds become real. */
static void raise_mover(Classes *c, Node *n) {
    const Quant *q = NULL;
    for (size_t i = 0; i < n->n_in && !q; i++)
        q = n->in[i] ? raised(c, n->in[i]) : NULL;
    for (size_t i = 0; i < n->n_out && !q; i++) /* of constants alone */
        q = n->out[i] ? raised(c, n->out[i]) : NULL;
    if (!q || !keeps_integers(n))
        return;
    if (node_interpolates(n))
        diag(
            c->r->c->d, DIAG_REMARK, n->loc,
            "%s of integers: runtimes may cut off what lies between two of them, where types round "
            "it: results differ by a step",
            node_text(n));
    drop_idle_fill(n);
    state_fill(c, n, q);
    bool bounds = n->def->quant.kind == QUANT_CLAMP;
    size_t fill = fill_operand(n);
    for (size_t i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (v && is_const(v) && quant_rule_is_data(&n->def->quant, i))
            n->in[i] = raise_const(c->r, v, before_mover(c, n, q));
        else if (v && is_const(v) && (bounds || (fill && i == fill)))
            n->in[i] = float_of_int(c, v, q);
    }
}

/* The integers as numbers of the DQ's scale and zero point, behind what makes them. */
static Value *reinterpreted(Classes *c, Value *ints, const Quant *of, const Quant *dq, Node *user) {
    Raise *r = c->r;
    Quant *q = quant_copy(r->b.a, dq);
    q->storage = of->storage;
    q->has_range = of->has_range;
    q->lo = of->lo;
    q->hi = of->hi;
    Value *known = raise_twin(r, ints, q);
    if (known)
        return known;
    Node *n = build_node(&r->b, user, "Reinterpret", STR_NONE, OPERANDS(ints));
    n->domain = STR("qxc");
    Value *y = node_add_output(n, 0, derived_name(&r->b, ints->name, "_reinterpreted"),
                               type_quantized(ints->type, q));
    place_behind(ints, n, user);
    op_resolve(n, r->b.d);
    raise_note_twin(r, ints, y);
    return y;
}

static void raise_node(Classes *c, Node *n) {
    bool dequantize = is_onnx_dequantize(n);
    if (!dequantize && !is_onnx_quantize(n)) {
        raise_mover(c, n);
        return;
    }
    Value *ints = converted(n);
    const char *why;
    const Quant *q = NULL;
    if (dequantize && is_const(ints))
        q = raise_params(c->r, n, &why);
    const Quant *made = raised(c, ints);
    if (q)
        n->in[0] = raise_const(c->r, ints, q);
    else if (!made)
        return;
    else if (dequantize && (q = raise_params(c->r, n, &why)) && !quant_equal(made, q) &&
             !equal_in_range(c, made, q))
        n->in[0] = reinterpreted(c, ints, made, q, n);
    drop_params(n, c->r->b.d);
}

static void raise_graph(Graph *g, void *ctx) {
    FOR_NODES(n, g)
    raise_node(ctx, n);
}

void raise_integers(Raise *r) {
    Classes c = {.r = r, .n = r->m->n_values};
    c.parent = NEW_ARRAY(r->b.a, uint32_t, c.n);
    c.at = NEW_ARRAY(r->b.a, Class, c.n);
    c.wide = NEW_ARRAY(r->b.a, bool, c.n);
    for (uint32_t i = 0; i < c.n; i++)
        c.parent[i] = i, c.at[i].lo = INT64_MAX, c.at[i].hi = INT64_MIN;
    raise_each_graph(r->m, type_unknown, &c);
    raise_each_graph(r->m, note_graph, &c);
    raise_each_graph(r->m, check_tables, &c);
    raise_each_graph(r->m, decide_graph, &c);
    raise_each_graph(r->m, raise_graph, &c);
    raise_each_graph(r->m, type_graph, &c);
    edit_order(r->m);
}
