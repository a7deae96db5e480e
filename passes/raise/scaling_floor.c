/* Shifting right rounds down: Mul(sum, 2^-k), Floor; or with Add(0.5) between them to the nearest,
 * ties up (Aidge's single shift). Types round to the nearest, and ties to even. Of a product with
 * integer weights and biases
 *
 *   floor(sum / 2^k + c) = round((sum + (c - 0.5) * 2^k) / 2^k)      but for ties
 *
 * and the biases have room for that. Ties have to go up. A factor above 2^-k by one part in 2^22
 * moves them up where the result is above 0, and down where it is not: exact where a Relu follows,
 * one step too low of ties elsewhere, which with nothing added are the multiples of 2^k, 0 too. A
 * Clip has to bound what is so computed.
 *
 * Other whole numbers (of a residual branch, a sum of two) have no biases: with Add(0.5) they are
 * rounded the same way, by a factor that is above 2^-k also once types have divided it up into
 * scales, each of which is rounded. */
#include <math.h>

#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/raise/raise_scaling.h"

enum {
    MOST_BITS = 13, /* to shift by: the factor moves no other number then */
    MOST_STEPS = 8  /* to look back */
};

/* log2 of what is divided by, or 0. */
static int shift_of(const Tensor *t) {
    int e;
    if (!t || t->count != 1 || frexp(tensor_float(t, 0), &e) != 0.5 || e > 0 || e < -MOST_BITS)
        return 0;
    return 1 - e;
}

static void round_floor(Scaling *s, Node *floor, Value *x) {
    node_becomes(floor, s->b.pass);
    floor->op = STR("Round");
    floor->in[0] = x;
    op_resolve(floor, s->b.d);
}

/* A Round takes the place of the Floor: of what mul multiplies by a little more than 2^-k. */
static void round_scaled(Scaling *s, Node *floor, Node *mul, int k, float more) {
    Value *factor = build_float(&s->b, mul->out[0]->name, "_factor", ldexpf(more, -k));
    node_becomes(mul, s->b.pass);
    mul->in[edit_float_const(mul->in[1]) ? 1 : 0] = factor;
    round_floor(s, floor, mul->out[0]);
}

static void note_shift(const Scaling *s, const Node *floor, int k, bool half) {
    pass_inexact(s->c, floor,
                 "a shift by %d bits rounds %s, a type ties to even: about one result in 2^%d of "
                 "those %s 0 becomes one less",
                 k, half ? "ties up" : "down", k, half ? "below" : "at or below");
}

static void round_product(Scaling *s, Node *floor, Node *mul, Node *n, int k, bool half) {
    const QuantRule *r = &n->def->quant;
    OpCtx c = op_ctx(n, s->b.d);
    const Tensor *w = edit_float_const(n->in[r->mac.weight]);
    size_t channels = (size_t)w->dims[r->mac.weight_axis(&c)];
    double *b = edit_bias(n, channels);
    if (!b)
        return;
    for (size_t i = 0; i < channels; i++)
        b[i] -= ldexp(1, k - 1);
    if (!half)
        edit_set_bias(n, s->b.names, b, channels, s->b.pass, mul);
    round_scaled(s, floor, mul, k, 1 + 0x1p-22F);
    note_shift(s, floor, k, half);
}

/* Elements of the window; INFINITY where nothing bounds them. */
static double window_of(const Node *average) {
    const Attr *kernel = node_attr(average, "kernel_shape");
    Type x = average->in[0]->type;
    double n = 1;
    if (attr_holds(kernel, ATTR_INTS))
        for (size_t i = 0; i < kernel->n; i++)
            n *= (double)kernel->v.i[i];
    else
        for (int i = 2; x.kind == TYPE_TENSOR && i < x.rank; i++)
            n *= x.dims[i].value > 0 ? (double)x.dims[i].value : INFINITY;
    return n;
}

/* Averages of n integers lie 1/(2n) from a tie or more, those that are none: of the largest the
 * factor may move no more than that. */
float scaling_mean_up(const Node *average, double most) {
    double n = window_of(average);
    for (float more = SCALING_MEAN_UP - 1; more >= 0x1p-22F; more /= 2)
        if (2 * n * most * (double)more < 0.8)
            return 1 + more;
    return 1;
}

/* An average of integers, bounded by `most`: the Add becomes the factor. */
static bool round_average(Scaling *s, Node *floor, Node *half, float most) {
    const Node *n = half->in[0]->def;
    float more = n && scaling_is_average(n) ? scaling_mean_up(n, most) : 1;
    if (more == 1)
        return false;
    half->op = STR("Mul");
    op_resolve(half, s->b.d);
    round_scaled(s, floor, half, 0, more);
    pass_inexact(s->c, floor,
                 "an average rounds ties up, a type those below 0 down: they become one less");
    return true;
}

/* Whole numbers that stand as floats: what Clip bounds, moved, cut off at 0, or added up. */
static bool is_whole(const Value *v, int depth) {
    for (Value *x; depth && v && v->def; depth--) {
        const Node *n = v->def;
        const Tensor *t = scaling_factor(n, "Mul", &x);
        if (is_scaling(n))
            return true;
        if (scaling_is_sum(n))
            return is_whole(n->in[0], depth - 1) && is_whole(n->in[1], depth - 1);
        if (!scaling_keeps(n) && !(t && t->count == 1 && tensor_float(t, 0) == 1))
            return false;
        v = t ? x : n->in[0];
    }
    return false;
}

/* The Clip behind the Floor lets no more through than this, above or below 0. */
static float bound_behind(const Scaling *s, const Node *floor) {
    const Node *clip = uses_only_node(s->uses, floor->out[0]);
    float lo, hi;
    while (clip && scaling_adds(clip, "Add", 0))
        clip = uses_only_node(s->uses, clip->out[0]);
    return clip && node_is(clip, "Clip") && clamp_bounds(clip, &lo, &hi) ? fmaxf(-lo, hi)
                                                                         : INFINITY;
}

/* Whether it bounds results so that the factor of a shift by k bits moves ties alone. */
static bool is_bounded(const Scaling *s, const Node *floor, int k) {
    return bound_behind(s, floor) < ldexpf(1, 22 - k);
}

static void round_floors(Graph *g, void *ctx) {
    Scaling *s = ctx;
    FOR_NODES(n, g) {
        Value *x;
        Node *mul = node_is(n, "Floor") && n->n_in && n->in[0] ? n->in[0]->def : NULL;
        Node *half =
            mul && scaling_adds(mul, "Add", 0.5) && uses_only_node(s->uses, mul->out[0]) == n
                ? mul
                : NULL;
        if (half && is_bounded(s, n, 0) && round_average(s, n, half, bound_behind(s, n)))
            continue;
        if (half && is_bounded(s, n, 0) && is_whole(half->in[0], MOST_STEPS)) {
            round_floor(s, n, half->in[0]); /* a shift by no bits */
            scaling_leave(s, half);
            continue;
        }
        mul = half ? half->in[0]->def : mul;
        const Tensor *t = mul ? scaling_factor(mul, "Mul", &x) : NULL;
        int k = shift_of(t);
        Node *product = k ? x->def : NULL;
        if (!k || uses_only_node(s->uses, mul->out[0]) != (half ? half : n))
            continue;
        if (product && product->graph == g && scaling_is_product(product) &&
            product->def->quant.mac.weight_axis && uses_only_node(s->uses, x) == mul &&
            is_bounded(s, n, k)) {
            round_product(s, n, mul, product, k, half != NULL);
            scaling_leave(s, half);
        } else if (half && is_bounded(s, n, k + 1) && is_whole(x, MOST_STEPS)) {
            round_scaled(s, n, mul, k, SCALING_TIES_UP);
            note_shift(s, n, k, true);
            scaling_leave(s, half);
        }
    }
}

void scaling_floors(Scaling *s) {
    s->uses = uses_new(s->m);
    module_each_graph(s->m, round_floors, s);
    edit_drop_unread(s->m, s->left, s->n_left);
}
