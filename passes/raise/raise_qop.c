/* QOperators apart: DequantizeLinear on each operand, the float operator, QuantizeLinear. */
#include "ir/ops/qop.h"
#include "passes/raise/raise.h"

static bool is_data_const(const Value *v) {
    return !v || (value_data(v) && value_data(v)->data);
}

static const char *computed(Raise *r, const char *what, const Value *v) {
    return arena_strf(r->b.a, "%s '%s' is computed", what, diag_name(r->b.d, v->name)).s;
}

/* All parameters must be constants; else the node stays. */
static const char *refusal(Raise *r, const QopView *v) {
    for (size_t i = 0; i < v->n_in; i++)
        if (!is_data_const(v->scale[i]))
            return computed(r, "an operand's scale", v->scale[i]);
        else if (!is_data_const(v->zp[i]))
            return computed(r, "an operand's zero point", v->zp[i]);
    if (!is_data_const(v->y_scale))
        return computed(r, "the result's scale", v->y_scale);
    return is_data_const(v->y_zp) ? NULL : computed(r, "the result's zero point", v->y_zp);
}

static Value *new_float(Raise *r, Node *n, Str base, const char *suffix, Type like) {
    like.quant = NULL;
    like.tilde = false;
    like.elem = ELEM_FLOAT;
    return node_add_output(n, 0, derived_name(&r->b, base, suffix), like);
}

static Node *conversion(Raise *r, Node *at, const char *op, Value *x, Value *scale, Value *zp) {
    return build_node(&r->b, at, op, STR_NONE, OPERANDS(x, scale, zp));
}

static int param_axis(const QopView *v, const OpCtx *c, size_t i) {
    const QuantRule *q = &v->op->quant;
    bool weight = q->kind == QUANT_MAC && q->mac.weight && i == (size_t)q->mac.weight;
    return weight ? quant_weight_axis(q, c) : -1;
}

/* The scale as DequantizeLinear and QuantizeLinear of floats have it: float, where QOperators take
 * float16, too, and one for each zero point, where they take one for all. */
static Value *float_scale(Raise *r, Value *scale, const Value *zp) {
    const Tensor *t = value_data(scale);
    size_t zps = zp ? value_data(zp)->count : 1, n = t->count == 1 && zps > 1 ? zps : t->count;
    if (t->elem == ELEM_FLOAT && n == t->count)
        return scale;
    float *all = NEW_ARRAY(r->b.a, float, n);
    for (size_t i = 0; i < n; i++)
        all[i] = (float)tensor_float(t, t->count == 1 ? 0 : i);
    int64_t dim = (int64_t)n;
    int rank = n == t->count ? t->rank : 1;
    return build_const(&r->b, scale->name, "_float", ELEM_FLOAT, rank,
                       n == t->count ? t->dims : &dim, all);
}

static Value *dequantize(Raise *r, Node *at, Value *x, Value *scale, Value *zp, int axis) {
    scale = float_scale(r, scale, zp);
    Node *n = conversion(r, at, "DequantizeLinear", x, scale, zp);
    if (value_data(scale)->count > 1)
        node_set_int(n, "axis", axis);
    new_float(r, n, base_name(x->name), "_DequantizeLinear_Output", x->type);
    op_resolve(n, r->b.d);
    node_insert_before(at, n);
    return n->out[0];
}

/* int32 bias: its scale is the product of the others'. */
static Value *dequantize_bias(Raise *r, Node *at, const QopView *v, Value *bias) {
    const QuantRule *rule = &v->op->quant;
    const Tensor *x = value_data(v->scale[0]), *w = value_data(v->scale[rule->mac.weight]);
    float *scale = NEW_ARRAY(r->b.a, float, w->count);
    for (size_t i = 0; i < w->count; i++)
        scale[i] = (float)tensor_float(x, 0) * (float)tensor_float(w, i);
    int64_t n = (int64_t)w->count;
    Value *s = build_const(&r->b, bias->name, "_scale", ELEM_FLOAT, n > 1, &n, scale);
    int axis = bias->type.rank > 0 ? bias->type.rank - 1 : 0;
    return dequantize(r, at, bias, s, NULL, axis);
}

static Value *zero_of(Raise *r, const QopView *v, Str base) {
    ElemType e = qop_result_elem(v);
    return v->y_zp || e == ELEM_UINT8 ? v->y_zp : build_int(&r->b, base, "_zero_point", e, 0);
}

static void expand(Raise *r, Node *n, const QopView *v) {
    OpCtx c = qop_ctx(n, v, r->b.d);
    Node *f = build_node(&r->b, n, v->op->name, STR_NONE, NULL, v->n_in);
    f->domain = *v->op->domain ? str_from(v->op->domain) : STR_NONE;
    f->name = raise_float_name(n->name);
    f->doc = n->doc;
    f->meta = n->meta;
    node_insert_before(n, f);
    for (size_t i = 0; i < v->n_in; i++) {
        Value *x = v->in[i];
        if (!x)
            continue;
        if (v->scale[i])
            x = dequantize(r, f, x, v->scale[i], v->zp[i], param_axis(v, &c, i));
        else if (v->op->quant.mac.bias && i == (size_t)v->op->quant.mac.bias)
            x = dequantize_bias(r, f, v, x);
        f->in[i] = x;
    }
    f->n_attrs = n->n_attrs;
    f->attrs = arena_copy(r->b.a, n->attrs, n->n_attrs * sizeof *n->attrs);
    if (v->op->qop.raise_attrs)
        v->op->qop.raise_attrs(n, f);
    op_resolve(f, r->b.d);
    Value *y = n->out[0];
    if (v->y_scale) {
        Value *real = new_float(r, f, base_name(y->name), "_QuantizeLinear_Input", y->type);
        map_set(r->made, real->name, f);
        Value *scale = float_scale(r, v->y_scale, NULL);
        Node *q =
            conversion(r, n, "QuantizeLinear", f->out[0], scale, zero_of(r, v, base_name(y->name)));
        op_resolve(q, r->b.d);
        node_insert_before(n, q);
        f = q;
    }
    node_take_result(f, 0, y);
    node_remove(n);
}

/* com.microsoft::MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zp?, b_zp?, bias?). */
static bool expand_matmul(Raise *r, Node *n) {
    if (!node_is_in(n, "com.microsoft", "MatMulIntegerToFloat") || n->n_in < 4 ||
        !is_data_const(n->in[2]) || !is_data_const(n->in[3]) || n->in[1]->type.rank < 1)
        return false;
    Value *za = node_input(n, 4), *zb = node_input(n, 5);
    Value *bias = node_input(n, 6), *y = n->out[0];
    if (!is_data_const(za) || !is_data_const(zb))
        return false;
    Node *f = build_node(&r->b, n, "MatMul", STR_NONE, NULL, 2);
    f->name = raise_float_name(n->name);
    node_insert_before(n, f);
    f->in[0] = dequantize(r, f, n->in[0], n->in[2], za, -1);
    f->in[1] = dequantize(r, f, n->in[1], n->in[3], zb, n->in[1]->type.rank - 1);
    op_resolve(f, r->b.d);
    if (bias) {
        Value *product = new_float(r, f, y->name, "_MatMul", y->type);
        f = build_node(&r->b, n, "Add", STR_NONE, OPERANDS(product, bias));
        node_insert_before(n, f);
        op_resolve(f, r->b.d);
    }
    node_take_result(f, 0, y);
    node_remove(n);
    return true;
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    FOR_NODES(n, g) {
        const OpDef *op;
        QopView v;
        if (n->def || !node_rank_fits(n) || expand_matmul(r, n) || !qop_find(n->domain, n->op) ||
            !qop_view(n, &op, &v, r->b.d))
            continue;
        const char *why = refusal(r, &v);
        if (!why && op->qop.restate)
            why = op->qop.restate(n, r->b.names, r->b.d);
        if (why)
            diag_note(r->b.d, n->loc, "%s stays as it is: %s", diag_name(r->b.d, n->op), why);
        else if (qop_view(n, &op, &v, r->b.d))
            expand(r, n, &v);
    }
}

void raise_qoperators(Raise *r) {
    raise_each_graph(r->m, raise_graph, r);
}
