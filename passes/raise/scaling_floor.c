/* Shifting right rounds down: Mul(sum, 2^-k), Floor; or with Add(0.5) between them to the nearest,
 * ties up (Aidge's single shift). Types round to the nearest, and ties to even. Of a product with
 * integer weights and biases
 *
 *   floor(sum / 2^k + c) = round((sum + (c - 0.5) * 2^k) / 2^k)      but for ties
 *
 * and the biases have room for that. Ties have to go up. A factor above 2^-k by one part in 2^22
 * moves them up where the result is above 0, and down where it is not: exact where a Relu follows,
 * one step too low of ties elsewhere, which with nothing added are the multiples of 2^k, 0 too. A
 * Clip has to bound what is so computed. */
#include <math.h>

#include "passes/edit.h"
#include "passes/target/legal.h"
#include "passes/raise/raise_scaling.h"

enum { MOST_BITS = 13 }; /* to shift by: the factor moves no other number then */

/* log2 of what is divided by, or 0. */
static int shift_of(const Tensor *t) {
    int e;
    if (!t || t->count != 1 || frexp(tensor_float(t, 0), &e) != 0.5 || e > 0 || e < -MOST_BITS)
        return 0;
    return 1 - e;
}

static bool adds_half(const Node *n) {
    const Tensor *t = node_is(n, "Add") && n->n_in == 2 ? edit_float_const(n->in[1]) : NULL;
    return t && t->count == 1 && tensor_float(t, 0) == 0.5 && n->in[0];
}

static void round_floor(Scaling *s, Node *floor, Node *mul, Node *n, int k, bool half) {
    const QuantRule *r = &n->def->quant;
    OpCtx c = op_ctx(n, s->b.d);
    const Tensor *w = edit_float_const(n->in[r->weight]);
    size_t channels = (size_t)w->dims[r->weight_axis(&c)];
    double *b = edit_bias(n, channels);
    if (!b)
        return;
    for (size_t i = 0; i < channels; i++)
        b[i] -= ldexp(1, k - 1);
    if (!half)
        edit_set_bias(n, s->b.names, b, channels, s->b.pass, mul);
    Value *factor = build_float(&s->b, mul->out[0]->name, "_factor", ldexpf(1 + 0x1p-22F, -k));
    node_becomes(mul, s->b.pass);
    mul->in[edit_float_const(mul->in[1]) ? 1 : 0] = factor;
    node_becomes(floor, s->b.pass);
    floor->op = STR("Round");
    floor->in[0] = mul->out[0];
    op_resolve(floor, s->b.d);
    diag_note(s->b.d, floor->loc,
              "%s: a shift by %d bits rounds %s, a type ties to even: about one result in 2^%d of "
              "those %s 0 becomes one less",
              node_text(floor), k, half ? "ties up" : "down", k, half ? "below" : "at or below");
}

/* An average of integers: ties are few, and may go the other way. */
static bool round_average(Scaling *s, Node *floor, const Node *half) {
    const Node *n = half->in[0]->def;
    if (!n || !(node_is(n, "AveragePool") || node_is(n, "GlobalAveragePool")))
        return false;
    node_becomes(floor, s->b.pass);
    floor->op = STR("Round");
    floor->in[0] = half->in[0];
    op_resolve(floor, s->b.d);
    diag_note(s->b.d, floor->loc,
              "%s: an average rounds ties up, a type to even: they may become one less",
              node_text(floor));
    return true;
}

static bool adds_zero(const Node *n) {
    const Tensor *t = node_is(n, "Add") && n->n_in == 2 ? edit_float_const(n->in[1]) : NULL;
    return t && t->count == 1 && tensor_float(t, 0) == 0;
}

/* Whether a Clip behind the Floor bounds results so that the factor moves ties alone. */
static bool is_bounded(const Scaling *s, const Node *floor, int k) {
    const Node *clip = uses_only_node(s->uses, floor->out[0]);
    float lo, hi;
    while (clip && adds_zero(clip))
        clip = uses_only_node(s->uses, clip->out[0]);
    return clip && node_is(clip, "Clip") && clamp_bounds(clip, &lo, &hi) &&
           fmaxf(-lo, hi) < ldexpf(1, 22 - k);
}

static void round_floors(Graph *g, void *ctx) {
    Scaling *s = ctx;
    FOR_NODES(n, g) {
        Value *x;
        Node *mul = node_is(n, "Floor") && n->n_in && n->in[0] ? n->in[0]->def : NULL;
        Node *half =
            mul && adds_half(mul) && uses_only_node(s->uses, mul->out[0]) == n ? mul : NULL;
        if (half && is_bounded(s, n, 0) && round_average(s, n, half)) {
            scaling_leave(s, half);
            continue;
        }
        mul = half ? half->in[0]->def : mul;
        const Tensor *t = mul ? scaling_factor(mul, "Mul", &x) : NULL;
        int k = shift_of(t);
        Node *product = k ? x->def : NULL;
        if (product && product->graph == g && scaling_is_product(product) &&
            product->def->quant.weight_axis && uses_only_node(s->uses, x) == mul &&
            uses_only_node(s->uses, mul->out[0]) == (half ? half : n) && is_bounded(s, n, k)) {
            round_floor(s, n, mul, product, k, half != NULL);
            scaling_leave(s, half);
        }
    }
}

void scaling_floors(Scaling *s) {
    s->uses = uses_new(s->m);
    module_each_graph(s->m, round_floors, s);
    edit_drop_unread(s->m, s->left, s->n_left);
}
