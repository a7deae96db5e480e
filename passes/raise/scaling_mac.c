/* Conv, Gemm and MatMul of integers that stand as floats, weights and biases among them: the sums
 * are integers too, exact in float up to 2^24. Here the operands become quantized,
 *
 *   %x : int8q<a, 0>   %w : int8q<m * c / a, 0>   %b : int32q<m * c, 0>   result int8q<c, 0>
 *
 * where a and c are the steps of operand and result (scaling_steps.c; 1 of what is not quantized),
 * and m is 1 or what a Mul behind the sum multiplies it by, one number or one a channel. The Mul
 * goes: scale of x times scale of w by scale of the result is m, and so integer kernels compute
 * rint(float(sum) * m), as Mul and Round do. Relu and MaxPool may stand between, as they commute
 * with a positive factor. What does not fit stays float, with a remark. */
#include <math.h>

#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/raise/raise_scaling.h"

typedef struct Product {
    Node *n, *mul; /* mul may be NULL */
    const Quant *x;
    Value *w, *b; /* b may be NULL */
    const Tensor *wt, *bt, *m;
    double a, c; /* what a step of x and of the result is worth */
    int axis;    /* of the weight's output channels, or -1 */
} Product;

/* ---- what feeds it ---- */

/* Moves integers or cuts them off. */
static bool moves_or_cuts(const Node *n) {
    return (scaling_moves(n) && !node_interpolates(n)) ||
           (n->def && n->def->quant.kind == QUANT_CLAMP && rule_single_data(n) == 0);
}

static const Quant *integers_of(const Scaling *s, const Value *v) {
    return scaling_integers(s, v, moves_or_cuts);
}

static bool all_integers(const Tensor *t, ElemType e) {
    for (size_t i = 0; i < t->count; i++) {
        double v = tensor_float(t, i);
        if (!(v >= (double)elem_min(e) && v <= (double)elem_max(e)) || v != rint(v))
            return false;
    }
    return true;
}

static bool has_factors(const Node *n) {
    return node_float(n, n->def->quant.mac.weight_factor, 1.0F) != 1.0F ||
           node_float(n, n->def->quant.mac.bias_factor, 1.0F) != 1.0F;
}

/* NULL where the operands fit, else why not. */
static const char *read_operands(Product *p) {
    const Node *n = p->n;
    const QuantRule *r = &n->def->quant;
    OpCtx c = op_ctx(n, NULL);
    p->w = n->n_in > (size_t)r->mac.weight ? n->in[r->mac.weight] : NULL;
    p->b = r->mac.bias && n->n_in > (size_t)r->mac.bias ? n->in[r->mac.bias] : NULL;
    p->wt = p->w ? edit_float_const(p->w) : NULL;
    p->bt = p->b ? edit_float_const(p->b) : NULL;
    p->axis = quant_weight_axis(r, &c);
    if (!p->wt || !all_integers(p->wt, ELEM_INT16) || !p->wt->count)
        return "its weights are no integers";
    if (p->b && (!p->bt || !all_integers(p->bt, ELEM_INT32)))
        return "its bias is no integers";
    if (p->bt && (p->axis < 0 || !edit_bias_fits(p->bt, (size_t)p->wt->dims[p->axis])))
        return "its bias is not one number a channel";
    return has_factors(n) ? "it multiplies by a factor of its own" : NULL;
}

bool scaling_is_product(const Node *n) {
    Product p = {.n = (Node *)n};
    return n->def && n->def->quant.kind == QUANT_MAC && n->n_out == 1 && n->out[0] &&
           !read_operands(&p);
}

/* ---- the Mul behind it ---- */

/* Is m one number, or one for each of the weight's channels along theirs of the result? */
static bool fits(const Product *p, const Tensor *m, Type y, bool moves) {
    if (m->count == 1)
        return true;
    if (moves || p->axis < 0 || (int64_t)m->count != p->wt->dims[p->axis])
        return false;
    int channel = p->wt->rank > 2 ? 1 : y.rank - 1, at = channel - (y.rank - m->rank);
    return at >= 0 && m->dims[at] == (int64_t)m->count;
}

static double step_of(const Scaling *s, const Node *q) {
    return map_get(s->steps, value_key(q->out[0])) ? (double)quant_scale(q->out[0]->type.quant, 0)
                                                   : 1;
}

/* Also returns the QuantizeLinear whose step the weights make up for; NULL where there is none. */
static const Node *find_mul(const Scaling *s, Product *p) {
    bool moves = false;
    p->c = 1;
    for (const Value *v = p->n->out[0];;) {
        Node *user = uses_only_node(s->uses, v);
        Value *x;
        const Tensor *m = user ? scaling_factor(user, "Mul", &x) : NULL;
        if (m && x == v) {
            Node *q = uses_only_node(s->uses, user->out[0]);
            if (q && is_own_quantize(q) && fits(p, m, v->type, moves)) {
                p->mul = user;
                p->m = m;
                p->c = step_of(s, q);
                return q;
            }
            return NULL;
        }
        if (user && is_own_quantize(user)) {
            p->c = step_of(s, user);
            return user;
        }
        if (!user || user->graph != p->n->graph || user->in[0] != v || !scaling_commutes(user))
            return NULL;
        moves |= scaling_moves(user);
        v = user->out[0];
    }
}

/* ---- rewriting ---- */

static Value *typed(Scaling *s, Value *from, const Tensor *t, Quant *q, Node *before) {
    uint8_t *bytes;
    Tensor *ints = tensor_new(s->b.a, q->storage, t->rank, t->dims, &bytes);
    for (size_t i = 0; i < t->count; i++)
        elem_store_int(q->storage, bytes, i, (int64_t)tensor_float(t, i));
    Value *v = build_shared(&s->b, from->graph, from->name, "_quantized",
                            type_quantized(tensor_type(s->b.a, ints), q), ints);
    v->loc = from->loc;
    const Use *uses;
    if (uses_of(s->uses, from, &uses) == 1) { /* it takes the place of the floats */
        Str name = v->name;
        v->name = from->name;
        from->name = name;
    } else if (!v->from.n) {
        value_from(v, from, s->b.pass);
    }
    Str name = arena_strf(s->b.a, STR_FMT "_DequantizeLinear", STR_ARG(v->name));
    Node *to = build_node_for(&s->b, v, "DequantizeLinear", name, OPERANDS(v));
    to->loc = before->loc;
    return build_before(&s->b, before, to, from->name, "_DequantizeLinear_Output", from->type);
}

/* Weights, and the biases, whose scale is that of weights and operand together. */
static Quant *quant_with(Scaling *s, const Product *p, ElemType e, int axis, bool bias) {
    size_t n = p->m ? p->m->count : 1;
    float *scale = NEW_ARRAY(s->b.a, float, n);
    int64_t *zp = NEW_ARRAY(s->b.a, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        float sum = (float)((p->m ? (float)tensor_float(p->m, i) : 1) * p->c);
        float exact = exact_factor((float)p->a, sum);
        scale[i] = exact != 0 ? exact : sum / (float)p->a;
        if (bias)
            scale[i] *= (float)p->a;
    }
    Quant *q = quant_per_axis(s->b.a, e, axis, n, scale, zp);
    q->n_zp = 1;
    q->n_axes = n > 1;
    return q;
}

/* The largest sum of any channel, in any order of adding. */
static double largest_sum(const Scaling *s, const Product *p) {
    int axis = p->axis < 0 ? 0 : p->axis;
    size_t channels = p->wt->rank ? (size_t)p->wt->dims[axis] : 1;
    AxisWalk a = edit_axis(p->wt->rank, p->wt->dims, axis);
    double x = fmax(fabs((double)quant_lo(p->x)), (double)quant_hi(p->x)), most = 0;
    double *sums = NEW_ARRAY(s->b.a, double, channels);
    for (size_t i = 0; i < p->wt->count; i++)
        sums[p->wt->rank ? i / a.inner % a.axis : 0] += x * fabs(tensor_float(p->wt, i));
    for (size_t c = 0; c < channels; c++) {
        double b = p->bt ? fabs(tensor_float(p->bt, p->bt->count == 1 ? 0 : c)) : 0;
        most = fmax(most, sums[c] + b);
    }
    return most;
}

/* A bias of one number for channels of several scales: one for each. */
static void spread_bias(Scaling *s, Product *p) {
    size_t channels = p->m ? p->m->count : 1;
    if (!p->bt || p->bt->count == channels || p->bt->count > 1)
        return;
    edit_set_bias(p->n, s->b.names, edit_bias(p->n, channels), channels, s->b.pass, p->mul);
    p->b = p->n->in[p->n->def->quant.mac.bias];
    p->bt = edit_float_const(p->b);
}

static void raise_product(Scaling *s, Product *p) {
    const QuantRule *r = &p->n->def->quant;
    spread_bias(s, p);
    if (largest_sum(s, p) > 0x1p24)
        diag_note(s->b.d, p->n->loc,
                  "%s: its sums may exceed 2^24, from where floats round them; integers do not",
                  node_text(p->n));
    ElemType e = all_integers(p->wt, ELEM_INT8) ? ELEM_INT8 : ELEM_INT16;
    p->n->in[r->mac.weight] = typed(s, p->w, p->wt, quant_with(s, p, e, p->axis, false), p->n);
    if (p->b)
        p->n->in[r->mac.bias] =
            typed(s, p->b, p->bt, quant_with(s, p, ELEM_INT32, p->bt->rank - 1, true), p->n);
    if (!p->mul)
        return;
    Value *x;
    scaling_factor(p->mul, "Mul", &x);
    node_absorb(p->n, p->mul, s->b.pass);
    value_replace(s->m, s->uses, p->mul->out[0], x);
    scaling_leave(s, p->mul);
}

bool scaling_takes_steps(const Scaling *s, const Node *n) {
    return scaling_is_product(n) && integers_of(s, n->in[0]);
}

bool scaling_makes_up_for(const Scaling *s, const Node *n, const Node *q) {
    Product p = {.n = (Node *)n};
    return scaling_takes_steps(s, n) && !read_operands(&p) && find_mul(s, &p) == q;
}

/* Averages of integers that nothing rounds, as in fake-quantized files. */
static bool reads_average(const Scaling *s, const Value *v) {
    while (v && v->def && scaling_commutes(v->def))
        v = v->def->in[0];
    const Node *n = v ? v->def : NULL;
    return n && scaling_is_average(n) && integers_of(s, n->in[0]);
}

static void raise_products(Graph *g, void *ctx) {
    Scaling *s = ctx;
    FOR_NODES(n, g) {
        if (!n->def || n->def->quant.kind != QUANT_MAC || n->n_out != 1 || !n->out[0])
            continue;
        Product p = {.n = n, .x = integers_of(s, n->in[0])};
        if (!p.x && reads_average(s, n->in[0]))
            pass_remark(s->c, n, "it multiplies averages of integers, which nothing rounds");
        if (!p.x)
            continue;
        p.a = quant_scale(p.x, 0);
        const char *why = read_operands(&p);
        if (why) {
            pass_remark(s->c, n, "%s", why);
            continue;
        }
        find_mul(s, &p);
        raise_product(s, &p);
    }
}

void scaling_products(Scaling *s) {
    s->uses = uses_new(s->m);
    module_each_graph(s->m, raise_products, s);
}
