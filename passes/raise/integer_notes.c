/* What the nodes of a model say of the plain integers that they make and read. */
#include "passes/raise/integer_classes.h"

/* Those that a mover may hand on. */
static bool is_plain_int(const Classes *c, const Value *v) {
    return class_may_raise(v) && elem_is_int(v->type.elem) &&
           (elem_bits(v->type.elem) <= 16 || (v->id < c->n && c->wide[v->id]));
}

Value *class_converted(const Node *n) {
    return is_onnx_quantize(n) ? n->out[0] : is_onnx_dequantize(n) ? n->in[0] : NULL;
}

/* Behind operators of which nothing is known a Q or DQ says what the integers are. */
static void type_unknown(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        const char *why;
        Value *ints = class_converted(n);
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
    if (!class_may_raise(ints) || (value_data(ints) && is_onnx_dequantize(n)))
        return; /* a constant gets a quantized twin for each use */
    if (q)
        class_say(c, ints, q, is_onnx_dequantize(n));
    else
        class_refuse(c, ints, why);
}

/* Integers that a mover puts among those it hands on: constant operands, and what Pad fills with.
 */
static void put_constants(Class *k, const Node *n) {
    size_t fill = fill_operand(n);
    if (fill && !node_input(n, fill))
        class_put(k, 0, 0);
    for (size_t i = 0; i < n->n_in; i++) {
        const Tensor *t = n->in[i] ? value_data(n->in[i]) : NULL;
        bool data = quant_rule_is_data(&n->def->quant, i) || (fill && i == fill);
        for (size_t j = 0; data && t && t->data && elem_is_int(t->elem) && j < t->count; j++)
            class_put(k, tensor_int(t, j), tensor_int(t, j));
    }
}

/* All data that a mover is given are constants of integers: rows of a table. */
static bool moves_constants(const Node *n) {
    bool any = false;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || !quant_rule_is_data(&n->def->quant, i))
            continue;
        if (!value_data(v) || !class_may_raise(v) || !elem_is_int(v->type.elem) ||
            elem_bits(v->type.elem) > 16)
            return false;
        any = true;
    }
    return any;
}

/* Filling would take a number for each channel. */
const Quant *class_before_mover(const Classes *c, const Node *n, const Quant *q) {
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
    bool table = moves_constants(n) && class_may_raise(y);
    const Value *x = table ? y : NULL;
    for (size_t i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || value_data(v))
            continue;
        bool data = quant_rule_is_data(&n->def->quant, i);
        if (data != is_plain_int(c, v)) /* a bound that is computed, say */
            return false;
        if (data && x)
            class_join(c, x, v);
        x = data ? v : x;
    }
    if (!x)
        return false;
    for (size_t i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->type.kind == TYPE_NONE) /* behind an unknown operator */
            return false;
    for (size_t i = 0; i < n->n_out; i++) {
        Value *made = n->out[i];
        if (!class_may_raise(made) || made->type.elem != x->type.elem)
            continue;
        c->wide[made->id] = c->wide[x->id];
        class_join(c, x, made);
    }
    Class *k = class_of(c, x);
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
            if (n->out[k] && k < g->n_out && class_may_raise(n->out[k]) &&
                class_may_raise(g->out[k])) {
                class_join(c, n->out[k], g->out[k]);
                if (value_data(g->out[k]))
                    class_refuse(c, n->out[k], "a branch yields a constant");
                if (!elem_is_int(n->out[k]->type.elem))
                    class_refuse(c, n->out[k], "a branch yields it");
            }
        }
    return true;
}

static void refuse_for(Classes *c, const Node *n, const Value *v, const char *does) {
    if (class_may_raise(v))
        class_refuse(c, v,
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
                if (class_may_raise(g->in[j]))
                    class_refuse(c, g->in[j], "it is carried by a loop");
            for (size_t j = 0; j < g->n_out; j++)
                if (class_may_raise(g->out[j]))
                    class_refuse(c, g->out[j], "it is carried by a loop");
        }
}

static void note_graph(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        if (class_converted(n))
            note_conversion(c, n, class_converted(n));
        else if (!note_mover(c, n) && !note_branches(c, n) && !(n->def && n->def->constant))
            refuse_all(c, n);
        note_bodies(c, n);
    }
}

/* Parameters along an axis of rows must be those of an axis of the table. */
static void check_tables(Graph *g, void *ctx) {
    Classes *c = ctx;
    FOR_NODES(n, g) {
        const Quant *q =
            keeps_integers(n) && n->n_out && n->out[0] ? class_quant(c, n->out[0]) : NULL;
        if (q && !class_of(c, n->out[0])->moved && moves_constants(n) &&
            !class_before_mover(c, n, q))
            class_refuse(c, n->out[0],
                         "its parameters lie on no axis of the table that it is taken of");
    }
}

void classes_note(Classes *c, Module *m) {
    raise_each_graph(m, type_unknown, c);
    raise_each_graph(m, note_graph, c);
    raise_each_graph(m, check_tables, c);
    module_each_value(m, class_decide, c);
}
