/* Quantizers spelled with operators of floats become types.
 *
 *   Round, Clip                    int8q<1.0, 0>
 *   Round, Add(z), Clip            int8q<1.0, 0> of what the Add makes; Floor, Clip too
 *   Div(s), Round, Clip, Mul(s)    Q and DQ of the scale s
 *   Mul(1/s), Round, Clip, Mul(s)  the same
 *
 * The first are integers that stand as floats, and flow so through Conv and Gemm (Aidge): exact, as
 * x / 1 is x. The Mul before it that scales what an operator sums up becomes the scale of its
 * weights (scaling_mac.c). The second is exact. In the third x * (1/s) rounds otherwise than x / s
 * where 1/s is no power of two: where that falls on a tie the integer may be the next one.
 *
 * A Cast to integers that hold the range, and back, changes nothing and goes. raise-quant does the
 * rest. */
#include "passes/raise/raise_scaling.h"

#include <math.h>

#include "passes/edit.h"
#include "passes/target/legal.h"

/* ---- what a chain is ---- */

static bool integer_bounds(const Node *clip, int64_t *lo, int64_t *hi) {
    float a, b;
    if (!clamp_bounds(clip, &a, &b) || !(a >= -2147483648.0F) || !(b <= 2147483648.0F) || a > 0 ||
        b < 0 || a >= b || a != rintf(a) || b != rintf(b))
        return false;
    *lo = (int64_t)a;
    *hi = (int64_t)b > INT32_MAX ? INT32_MAX : (int64_t)b;
    return true;
}

typedef struct Chain {
    Node *first, *last; /* Round and Clip, in any order */
    bool whole;         /* first makes integers, of which nothing is undone: Clip cuts them off */
    int64_t lo, hi;
} Chain;

/* What computes in double is spelled so for a reason (emulate.h), and floats of 16 bits round what
 * a chain computes. */
static bool is_of_floats(const Value *v) {
    return v->type.kind != TYPE_TENSOR || v->type.elem == ELEM_FLOAT;
}

bool scaling_is_sum(const Node *n) {
    return node_is(n, "Add") || node_is(n, "Sub");
}

bool scaling_is_average(const Node *n) {
    return node_is(n, "AveragePool") || node_is(n, "GlobalAveragePool");
}

bool scaling_adds(const Node *n, const char *op, double number) {
    if (!node_is(n, op) || n->n_in != 2 || !n->in[0])
        return false;
    const Tensor *t = edit_float_const(n->in[1]);
    return t && t->count == 1 && tensor_float(t, 0) == number && edit_keeps_rank(t, n->in[0]->type);
}

/* The node that makes v, but for those that add 0 to it. */
static Node *maker(const Value *v) {
    Node *n = v ? v->def : NULL;
    while (n && (scaling_adds(n, "Add", 0) || scaling_adds(n, "Sub", 0)))
        n = n->in[0]->def;
    return n;
}

/* A zero point that is added to what was rounded. */
static bool adds_integers(const Node *n) {
    const Tensor *t = node_is(n, "Add") && n->n_in == 2 ? edit_float_const(n->in[1]) : NULL;
    const Node *before = t && n->in[0] ? n->in[0]->def : NULL;
    for (size_t i = 0; t && i < t->count; i++)
        if (tensor_float(t, i) != rint(tensor_float(t, i)))
            return false;
    return before && (node_is(before, "Round") || node_is(before, "Floor"));
}

static bool find_chain(Node *n, Chain *c) {
    Node *before = n->n_in ? maker(n->in[0]) : NULL;
    bool clip = node_is(n, "Clip"),
         whole = before && clip && (node_is(before, "Floor") || adds_integers(before));
    if (!before || before->graph != n->graph || !(clip || node_is(n, "Round")) ||
        !(whole || node_is(before, clip ? "Round" : "Clip")) || !before->in[0] ||
        !is_of_floats(n->in[0]))
        return false;
    *c = (Chain){.first = before, .last = n, .whole = whole};
    return integer_bounds(clip ? n : before, &c->lo, &c->hi);
}

bool is_scaling(const Node *n) {
    Chain c;
    return find_chain((Node *)n, &c);
}

/* ---- types ---- */

static Quant *quant_of(Scaling *s, const Chain *c, size_t n, const float *scale) {
    static const ElemType types[] = {ELEM_INT8, ELEM_UINT8, ELEM_INT16, ELEM_UINT16, ELEM_INT32};
    size_t i = 0;
    while (c->lo < elem_min(types[i]) || c->hi > elem_max(types[i]))
        i++;
    Quant *q = quant_per_axis(s->b.a, types[i], 0, n, scale, NULL);
    q->n_axes = 0;
    q->has_range = c->lo > elem_min(types[i]) || c->hi < elem_max(types[i]);
    q->lo = c->lo;
    q->hi = c->hi;
    int64_t *zp = NEW_ARRAY(s->b.a, int64_t, 1);
    q->zp = zp;
    q->n_zp = 1;
    return q;
}

Value *scaling_quantize(Scaling *s, Node *n, Value *x, const Quant *q) {
    Str base = n->out[0]->name;
    Str name = arena_strf(s->b.a, STR_FMT "_QuantizeLinear", STR_ARG(n->name.n ? n->name : base));
    Node *to = build_node(&s->b, n, "QuantizeLinear", name, OPERANDS(x));
    Type real = x->type.kind == TYPE_TENSOR ? x->type : type_tensor(ELEM_FLOAT, -1, NULL);
    return build_before(&s->b, n, to, base, "_quantized", type_quantized(real, q));
}

void scaling_dequantize(Scaling *s, Node *n, Value *ints) {
    node_becomes(n, s->b.pass);
    n->op = STR("DequantizeLinear");
    n->in[0] = ints;
    drop_params(n, s->b.d);
}

void scaling_leave(Scaling *s, Node *n) {
    if (n)
        ARENA_PUSH(s->b.a, s->left, s->n_left, s->cap_left, n);
}

/* ---- Div or Mul before, Mul behind ---- */

const Tensor *scaling_factor(const Node *n, const char *op, Value **x) {
    if (!n || !node_is(n, op) || n->n_in != 2 || !n->in[0] || !n->in[1])
        return NULL;
    bool swap = node_is(n, "Mul") && !edit_float_const(n->in[1]);
    const Tensor *t = edit_float_const(n->in[swap ? 0 : 1]);
    Value *data = n->in[swap ? 1 : 0];
    if (!t || !t->count || !edit_keeps_rank(t, data->type))
        return NULL;
    for (size_t i = 0; i < t->count; i++)
        if (!isnormal((float)tensor_float(t, i)) || tensor_float(t, i) < 0)
            return NULL;
    *x = data;
    return t;
}

/* Where scales of this shape, of no higher rank than x, vary over it; false: on no axis, or on
 * several. */
static bool set_axis(Quant *q, const Tensor *s, Type x) {
    if (s->count == 1)
        return true;
    for (int i = 0; i < s->rank; i++) {
        int at = i + x.rank - s->rank;
        if (s->dims[i] == 1)
            continue;
        if (x.dims[at].value != s->dims[i])
            return false;
        q->axis[q->n_axes] = at;
        q->block[q->n_axes++] = 1;
    }
    return q->n_axes == 1;
}

/* Whether two constants that scale one value vary over the same axes of it. */
static bool same_axes(const Tensor *x, const Tensor *y) {
    for (int back = 1; back <= x->rank || back <= y->rank; back++) {
        int64_t a = back <= x->rank ? x->dims[x->rank - back] : 1;
        if (a != (back <= y->rank ? y->dims[y->rank - back] : 1))
            return false;
    }
    return true;
}

typedef enum Inverse { INVERSE_NOT, INVERSE_NEARLY, INVERSE_EXACT } Inverse;

/* Is multiplying by m what dividing by s is? */
static Inverse inverse(const Tensor *m, const Tensor *s) {
    Inverse all = INVERSE_EXACT;
    if (!same_axes(m, s))
        return INVERSE_NOT;
    for (size_t i = 0; i < m->count; i++) {
        float a = (float)tensor_float(m, i), b = (float)tensor_float(s, i);
        int e;
        if (fabs((double)a * (double)b - 1) > 0x1p-23)
            return INVERSE_NOT;
        if (frexpf(a, &e) != 0.5F || (double)a * (double)b != 1)
            all = INVERSE_NEARLY;
    }
    return all;
}

static bool same_scales(const Tensor *x, const Tensor *y) {
    bool same = same_axes(x, y);
    for (size_t i = 0; same && i < x->count; i++)
        same = (float)tensor_float(x, i) == (float)tensor_float(y, i);
    return same;
}

/* All that read y multiply it by the same scales: these. */
static const Tensor *factor_behind(const Scaling *s, const Value *y) {
    const Use *uses;
    const Tensor *all = NULL;
    size_t n = uses_of(s->uses, y, &uses);
    for (size_t i = 0; i < n; i++) {
        Value *x;
        const Tensor *t = scaling_factor(uses[i].node, "Mul", &x);
        if (!t || x != y || (all && !same_scales(all, t)))
            return NULL;
        all = t;
    }
    return all;
}

static void leave_chain(Scaling *s, const Chain *c) {
    scaling_leave(s, c->first->in[0]->def);
    scaling_leave(s, c->first);
}

void scaling_by_reciprocal(const Scaling *s, const Node *n) {
    pass_inexact(s->c, n,
                 "its chain multiplies by the reciprocal of the scale, the type divides: ties may "
                 "become the neighbouring integer");
}

/* Q and DQ of a scale take the place of the whole chain. */
static bool raise_fake(Scaling *s, const Chain *c) {
    Value *x, *u = c->first->in[0];
    const Tensor *behind = factor_behind(s, c->last->out[0]);
    const Tensor *div = scaling_factor(u->def, "Div", &x);
    const Tensor *mul = div ? NULL : scaling_factor(u->def, "Mul", &x);
    Inverse how = !behind || !(div || mul)   ? INVERSE_NOT
                  : mul                      ? inverse(mul, behind)
                  : same_scales(div, behind) ? INVERSE_EXACT
                                             : INVERSE_NOT;
    if (how == INVERSE_NOT)
        return false;
    float *scale = NEW_ARRAY(s->b.a, float, behind->count);
    for (size_t i = 0; i < behind->count; i++)
        scale[i] = (float)tensor_float(behind, i);
    Quant *q = quant_of(s, c, behind->count, scale);
    if (!set_axis(q, behind, x->type))
        return false;
    if (how == INVERSE_NEARLY)
        scaling_by_reciprocal(s, c->last);
    Value *ints = scaling_quantize(s, c->last, x, q);
    const Use *uses;
    size_t n = uses_of(s->uses, c->last->out[0], &uses);
    for (size_t i = 0; i < n; i++)
        scaling_dequantize(s, uses[i].node, ints);
    leave_chain(s, c);
    scaling_leave(s, c->last);
    return true;
}

/* ---- Round and Clip alone ---- */

/* Round and Clip of a constant, times one number or not: a constant. */
static bool fold_chain(Scaling *s, const Chain *c) {
    Value *u = c->first->in[0], *x = u;
    const Tensor *m = scaling_factor(u->def, "Mul", &x), *t = edit_float_const(x);
    if (!t || uses_is_output(s->uses, c->last->out[0]) || (m && m->count != 1))
        return false;
    float *data, f = m ? (float)tensor_float(m, 0) : 1;
    Value *v =
        edit_new_floats(c->last->graph, s->b.names, c->last->out[0]->name, t->rank, t->dims, &data);
    for (size_t i = 0; i < t->count; i++) {
        float r = rintf((float)tensor_float(t, i) * f);
        data[i] = fminf(fmaxf(r, (float)c->lo), (float)c->hi);
    }
    value_from(v, x, s->b.pass);
    value_replace(s->m, s->uses, c->last->out[0], v);
    leave_chain(s, c);
    scaling_leave(s, c->last);
    return true;
}

static void raise_chains(Graph *g, void *ctx) {
    static const float one = 1;
    Scaling *s = ctx;
    FOR_NODES(n, g) {
        Chain c;
        if (!find_chain(n, &c))
            continue;
        if (!c.whole && (raise_fake(s, &c) || fold_chain(s, &c)))
            continue;
        Node *first = c.first;
        Value *x = c.whole ? first->out[0] : first->in[0];
        scaling_dequantize(s, n, scaling_quantize(s, n, x, quant_of(s, &c, 1, &one)));
        scaling_leave(s, first);
    }
}

/* ---- the pass ---- */

bool pass_raise_scaling(Module *m, PassContext *c) {
    Scaling s = {.b = quant_build_new(m, c, "raise-scaling"), .c = c, .m = m};
    scaling_floors(&s);
    s.uses = uses_new(m);
    module_each_graph(m, raise_chains, &s);
    scaling_skip_casts(&s);
    scaling_type_outputs(&s);
    edit_drop_unread(m, s.left, s.n_left);
    scaling_steps(&s);
    scaling_products(&s);
    edit_drop_unread(m, s.left, s.n_left);
    edit_sweep(m);
    return true;
}
