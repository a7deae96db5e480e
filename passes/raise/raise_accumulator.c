/* Products that stay accumulators until they become float, as lower_accumulator.c writes them:
 *
 *   MatMulInteger [-> Add of constant int32] -> Cast to float -> Mul by constants
 *
 * become MatMul and Add whose results are int32q, and DequantizeLinear. The scales of the weights
 * stand nowhere in ONNX: they are what gives the products that Mul states, times the scale of the
 * data. That is what made the integers (QuantizeLinear, a QOperator, through nodes that move data);
 * of integers that come from elsewhere any scale is true, and 1 is taken. What does not fit stays
 * as it is; nothing fails. */
#include "ir/ops/qop.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/raise/raise.h"

typedef struct Found {
    Node *product, *add, *cast, *mul; /* add may be NULL */
    Node *params;                     /* DequantizeLinear of the data, in no graph yet */
    const Tensor *scales;             /* one, or one a column */
    Value *bias;                      /* of add */
    Type type;                        /* of the result */
} Found;

static Node *only_user(const Raise *r, const Node *n) {
    return n->n_out == 1 && n->out[0] ? uses_only_here(r->uses, n->out[0]) : NULL;
}

static Value *other_operand(const Node *n, const Value *v) {
    return n->n_in == 2 ? n->in[n->in[0] == v] : NULL;
}

static const Tensor *const_of(const Value *v, ElemType e) {
    const Tensor *t = v ? value_data(v) : NULL;
    return t && t->data && t->elem == e ? t : NULL;
}

/* The shape of MatMul's result, element type float. False where a rank is not known. */
static bool product_type(const Node *n, Type *y) {
    Type a = n->in[0]->type, b = n->in[1] ? n->in[1]->type : TYPE_UNKNOWN;
    const OpDef *def = op_find(STR_NONE, STR("MatMul"));
    Value x = *n->in[0], w = n->in[1] ? *n->in[1] : x, *in[] = {&x, &w};
    if (a.kind != TYPE_TENSOR || b.kind != TYPE_TENSOR || a.rank < 1 || b.rank < 1)
        return false;
    x.type = type_tensor(ELEM_FLOAT, a.rank, a.dims);
    w.type = type_tensor(ELEM_FLOAT, b.rank, b.dims);
    OpCtx c = op_ctx(n, NULL);
    c.in = in;
    c.n_in = 2;
    c.out = y;
    *y = TYPE_UNKNOWN;
    return def->infer(&c) && y->kind == TYPE_TENSOR && y->rank >= 0;
}

static bool find(const Raise *r, Node *n, Found *f) {
    *f = (Found){.product = n};
    if (!node_is(n, "MatMulInteger") || n->n_in < 2 || !n->in[0])
        return false;
    Node *at = only_user(r, n);
    if (at && at->def && at->def->quant.adds) {
        f->add = at;
        f->bias = other_operand(at, n->out[0]);
        if (!const_of(f->bias, ELEM_INT32))
            return false;
        at = only_user(r, at);
    }
    f->cast = at;
    bool is_float = at && node_cast(at) == ELEM_FLOAT;
    f->mul = is_float ? only_user(r, at) : NULL;
    if (!f->mul || !node_is(f->mul, "Mul"))
        return false;
    f->scales = const_of(other_operand(f->mul, at->out[0]), ELEM_FLOAT);
    return f->scales && product_type(n, &f->type) && edit_keeps_rank(f->scales, f->type);
}

/* ---- parameters ---- */

/* The value that the numbers of v were handed on from: v itself, or what movers read. */
static Value *origin(Value *v) {
    for (;;) {
        const Node *n = v->def;
        QuantClass k = n && n->def ? n->def->quant.kind : QUANT_NEVER;
        bool hands_on = k == QUANT_MOVE || k == QUANT_ORDER || k == QUANT_CLAMP || k == QUANT_JOIN;
        int at = hands_on ? rule_single_data(n) : -1;
        for (size_t i = 0; k == QUANT_JOIN && at < 0 && i < n->n_in; i++)
            if (n->in[i] && quant_rule_is_data(&n->def->quant, i) && !value_data(n->in[i]))
                at = (int)i; /* all have the same parameters, or raise_integers leaves them */
        if (at < 0 || n->in[at]->type.kind != TYPE_TENSOR || !elem_is_int(n->in[at]->type.elem))
            return v;
        v = n->in[at];
    }
}

/* A DequantizeLinear of the product's data, for its parameters. */
static Node *params_of(Raise *r, const Found *f) {
    const Node *product = f->product, *from = origin(product->in[0])->def;
    Node *n = build_node(&r->b, product, "DequantizeLinear", STR_NONE, NULL, 3);
    const OpDef *op;
    QopView v;
    n->in[0] = product->in[0];
    if (from && is_onnx_quantize(from)) {
        n->in[1] = from->in[1];
        n->in[2] = node_input(from, 2);
    } else if (from && qop_of(from) && qop_view(from, &op, &v, r->b.d) && v.y_scale) {
        n->in[1] = v.y_scale;
        n->in[2] = v.y_zp;
    } else {
        static const float one = 1;
        n->in[1] =
            build_const(&r->b, base_name(n->in[0]->name), "_scale", ELEM_FLOAT, 0, NULL, &one);
        n->in[2] = node_input(product, 2);
    }
    n->n_in = n->in[2] ? 3 : 2;
    return n;
}

static bool is_row(const Tensor *t, int64_t n) {
    return t->rank > 0 && t->dims[t->rank - 1] == n && t->count == (size_t)n;
}

/* The type of the weights; NULL where there is none. */
static const Quant *weight_type(Raise *r, const Found *f, float x) {
    const Value *v = f->product->in[1];
    const Tensor *w = value_data(v), *s = f->scales;
    const Value *zv = node_input(f->product, 3);
    const Tensor *z = zv ? value_data(zv) : NULL;
    if (!w || !w->data || w->rank < 1 || (w->elem != ELEM_INT8 && w->elem != ELEM_UINT8) ||
        (zv && (!z || !z->data || z->elem != w->elem)))
        return NULL;
    int64_t columns = w->rank == 2 ? w->dims[1] : 1;
    if ((s->count != 1 && !is_row(s, columns)) ||
        (z && z->count != 1 && (z->rank != 1 || z->count != (size_t)columns)))
        return NULL;
    size_t n = s->count > 1 || (z && z->count > 1) ? (size_t)columns : 1;
    return raise_weights(r, w->elem, 1, n, s, z, x);
}

/* The product's zero point for the data is that of the data. */
static bool same_zero_point(const Found *f, const Quant *x) {
    const Value *v = node_input(f->product, 2);
    const Tensor *z = v ? value_data(v) : NULL;
    if (!v)
        return quant_zp(x, 0) == 0;
    return z && z->data && z->count == 1 && tensor_int(z, 0) == quant_zp(x, 0);
}

/* A bias broadcasts to the product, and has a number a column where the scales differ. */
static bool bias_fits(const Found *f, const Quant *acc) {
    const Tensor *t = f->bias ? value_data(f->bias) : NULL;
    Type y = f->type;
    if (!t)
        return true;
    for (int i = 0; i < t->rank; i++) {
        int at = y.rank - t->rank + i;
        if (at < 0 || (t->dims[i] != 1 && t->dims[i] != y.dims[at].value))
            return false;
    }
    return !acc->n_axes || (t->rank && t->dims[t->rank - 1] == (int64_t)acc->n_scale);
}

/* ---- the rewrite ---- */

/* DequantizeLinear of `ints` before `at`; with our form, or (q) the parameters as operands. */
static Value *dequantized(Raise *r, Node *at, Value *ints, const Quant *q, const Node *like) {
    Node *n = build_node(&r->b, at, "DequantizeLinear", STR_NONE, OPERANDS(ints));
    Type t = real_type(ints->type);
    t.elem = ELEM_FLOAT;
    node_add_output(n, 0, derived_name(&r->b, base_name(ints->name), "_DequantizeLinear_Output"),
                    t);
    for (size_t i = 1; like && i < like->n_in; i++)
        node_add_input(n, like->in[i]);
    if (q)
        state_params(&r->b, n, q, ints->type, base_name(ints->name));
    op_resolve(n, r->b.d);
    node_insert_before(at, n);
    return n->out[0];
}

/* MatMul in float between conversions, which raise_operators takes for one on integers. */
static void expand_product(Raise *r, const Found *f, const Quant *w, const Quant *acc) {
    Node *n = f->product;
    Value *sum = n->out[0];
    Node *to = build_node(&r->b, n, "MatMul", STR_NONE, NULL, 2);
    to->name = raise_float_name(n->name);
    to->doc = n->doc;
    to->meta = n->meta;
    node_insert_before(n, to);
    to->in[0] = dequantized(r, to, n->in[0], NULL, f->params);
    to->in[1] = dequantized(r, to, n->in[1], w, NULL);
    Type t = f->type;
    node_add_output(to, 0, derived_name(&r->b, sum->name, "_QuantizeLinear_Input"), t);
    op_resolve(to, r->b.d);
    sum->type = type_quantized(t, acc);
    sum->declared = false;
    build_in_place(&r->b, n,
                   build_node(&r->b, n, "QuantizeLinear", STR_NONE, OPERANDS(to->out[0])));
}

static void expand(Raise *r, const Found *f, const Quant *w, const Quant *acc) {
    Value *y = f->mul->out[0], *sum = f->product->out[0];
    expand_product(r, f, w, acc);
    if (f->add) {
        Quant *q = quant_copy(r->b.a, acc);
        const Tensor *t = value_data(f->bias);
        if (q->n_axes)
            q->axis[0] = t->rank - 1;
        f->add->in[f->add->in[0] == sum] = raise_const(r, f->bias, q);
        sum = f->add->out[0];
        sum->type = type_quantized(f->type, acc);
        sum->declared = false;
    }
    Node *d = build_node(&r->b, f->mul, "DequantizeLinear", STR_NONE, OPERANDS(sum));
    d->name = f->mul->name;
    if (y->type.kind != TYPE_TENSOR)
        y->type = f->type;
    build_in_place(&r->b, f->mul, d);
    node_remove(f->cast);
}

static void raise_graph(Graph *g, void *ctx) {
    Raise *r = ctx;
    for (Node *n = g->first, *next; n; n = next) {
        Found f;
        const char *why;
        if (n->def && n->n_out && n->out[0] && n->out[0]->type.kind != TYPE_TENSOR)
            node_infer(n, r->b.d); /* behind a product that is understood now */
        bool found = find(r, n, &f);
        if (found)
            f.params = params_of(r, &f);
        const Quant *x = found ? raise_params(r, f.params, &why) : NULL;
        next = n->next;
        if (!x || !quant_is_per_tensor(x) || elem_bits(x->storage) != 8 || !same_zero_point(&f, x))
            continue;
        const Quant *w = weight_type(r, &f, quant_scale(x, 0));
        const Quant *acc = w ? const_sums_quant(r->b.a, x, w, f.type.rank) : NULL;
        if (!acc || !bias_fits(&f, acc))
            continue;
        while (next && (next == f.cast || next == f.mul))
            next = next->next;
        expand(r, &f, w, acc);
    }
}

void raise_accumulators(Raise *r) {
    r->uses = uses_new(r->m);
    raise_each_graph(r->m, raise_graph, r);
}
