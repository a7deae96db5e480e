#include "passes/weight_quant.h"
#include "passes/edit.h"
#include "passes/params.h"

#include <math.h>

enum { FEW_BITS = 4 }; /* up to here the error of clipping is weighed against that of the steps */

/* The numbers of a weight, sorted by the scale that they will share. */
typedef struct Groups {
    size_t n;
    size_t *start; /* n + 1 */
    float *values;
} Groups;

/* The axis that the node sums over. Weights are [out, in, ...] or [in, out]. */
static int summed_axis(const Tensor *t, int channel) {
    return channel == 0 ? 1 : channel > 0 ? channel - 1 : t->rank - 2;
}

static void add_axis(Quant *q, int axis, int64_t block) {
    int at = q->n_axes++;
    for (; at > 0 && q->axis[at - 1] > axis; at--) {
        q->axis[at] = q->axis[at - 1];
        q->block[at] = q->block[at - 1];
    }
    q->axis[at] = axis;
    q->block[at] = block;
}

/* How the scheme divides the weight: whole, by channel, by block, by both. */
static Quant *divided(const Choice *o, const Tensor *t, int axis, Arena *a) {
    Quant *q = quant_per_tensor(a, o->storage, 1.0F, 0);
    int summed = t->rank > 1 ? summed_axis(t, axis) : -1;
    bool blocks = o->block && summed >= 0 && summed < t->rank && t->dims[summed] > o->block;
    int channel = axis < 0 && blocks ? t->rank - 1 : axis;
    if (!t->count)
        return q;
    if (o->channel && channel >= 0 && channel < t->rank)
        add_axis(q, channel, 1);
    if (blocks)
        add_axis(q, summed, o->block);
    return q;
}

static size_t count_scales(const Quant *q, const Tensor *t) {
    size_t n = 1;
    for (int i = 0; i < q->n_axes; i++)
        n *= (size_t)((t->dims[q->axis[i]] + q->block[i] - 1) / q->block[i]);
    return n;
}

/* Which scale belongs to element i; large models have tens of millions of them. */
static size_t entry(const Quant *q, const Tensor *t, size_t inner, size_t i) {
    if (q->n_axes == 0)
        return 0;
    if (!quant_is_blocked(q))
        return i / inner % (size_t)t->dims[q->axis[0]];
    return quant_index(q, t->rank, t->dims, i);
}

static Groups group(Arena *a, const Quant *q, const Tensor *t) {
    Groups g = {.n = count_scales(q, t)};
    g.start = NEW_ARRAY(a, size_t, g.n + 2);
    g.values = NEW_ARRAY(a, float, t->count + 1);
    size_t inner = q->n_axes ? edit_axis(t->rank, t->dims, q->axis[0]).inner : 1;
    for (size_t i = 0; i < t->count; i++)
        g.start[entry(q, t, inner, i) + 2]++;
    for (size_t k = 2; k < g.n + 2; k++)
        g.start[k] += g.start[k - 1];
    for (size_t i = 0; i < t->count; i++)
        g.values[g.start[entry(q, t, inner, i) + 1]++] = (float)tensor_float(t, i);
    return g;
}

/* The same with the smallest and the largest number of each group in place of all: what parameters
 * depend on that are not fitted. Weights may be larger than memory. */
static Groups ranges(Arena *a, const Quant *q, const Tensor *t) {
    Groups g = {.n = count_scales(q, t)};
    g.start = NEW_ARRAY(a, size_t, g.n + 2);
    g.values = NEW_ARRAY(a, float, 2 * g.n + 1);
    for (size_t k = 0; k <= g.n; k++)
        g.start[k] = 2 * k;
    size_t inner = q->n_axes ? edit_axis(t->rank, t->dims, q->axis[0]).inner : 1;
    for (size_t i = 0; i < t->count; i++) {
        float *range = g.values + 2 * entry(q, t, inner, i), x = (float)tensor_float(t, i);
        range[0] = fminf(range[0], x);
        range[1] = fmaxf(range[1], x);
    }
    return g;
}

/* The smallest scale of weight channel `c` with which the bias still fits int32. */
static double bias_floor(const Choice *o, const Node *n, size_t c, size_t channels) {
    const QuantRule *q = &n->def->quant;
    const Value *x = n->in[0];
    if (!q->bias || n->n_in <= (size_t)q->bias || !x->type.quant || x->type.quant->n_scale != 1 ||
        elem_bits(x->type.quant->storage) > 8 || elem_bits(o->storage) > 8)
        return 0; /* wider sums are int64 or double, and take a float bias as it is */
    const Tensor *b = edit_float_const(n->in[q->bias]);
    if (!b)
        return 0;
    double most = 0;
    for (size_t i = 0; i < b->count; i++)
        if (channels == 1 || b->count == 1 || i == c)
            most = fmax(most, fabs(tensor_float(b, i)));
    return params_bias_min_scale(most) / (double)quant_scale(x->type.quant, 0);
}

/* onnxruntime's QLinearConv takes one zero point for all channels of 8-bit weights. */
static bool symmetric(const PassContext *c, const Choice *o, const Quant *q) {
    if (o->sym || q->n_axes == 0)
        return o->sym;
    return c->target != TARGET_C && elem_bits(o->storage) == 8;
}

static void state_range(Quant *q, IntRange r) {
    if (r.lo == elem_min(q->storage) && r.hi == elem_max(q->storage))
        return;
    q->has_range = true;
    q->lo = r.lo;
    q->hi = r.hi;
}

Quant *weight_quant(PassContext *c, const Choice *choice, const Node *n, const Value *w, int axis) {
    Choice settled = *choice, *o = &settled;
    Arena *a = n->graph->module->arena;
    Quant *q = divided(o, w->data, axis, a);
    bool sym = o->sym = symmetric(c, o, q), blocks = quant_is_blocked(q);
    IntRange r = choice_range(o);
    bool few = r.hi - r.lo < 1 << FEW_BITS;
    if (blocks && few && !o->reduce_range && !o->has_range && !n->in[0]->type.quant)
        r.lo = elem_min(o->storage); /* dequantized before use: the lowest integer costs nothing */
    Groups g = few ? group(a, q, w->data) : ranges(a, q, w->data);
    float *scale = NEW_ARRAY(a, float, g.n);
    int64_t *zp = NEW_ARRAY(a, int64_t, g.n);
    size_t raised = 0;
    for (size_t k = 0; k < g.n; k++) {
        params_fit(g.values + g.start[k], g.start[k + 1] - g.start[k], r, sym, o->pow2, few,
                   &scale[k], &zp[k]);
        double least = blocks ? 0 : bias_floor(o, n, k, g.n);
        if ((double)scale[k] < least && sym && elem_is_signed(o->storage)) {
            scale[k] = nextafterf((float)least, INFINITY);
            raised++;
        }
    }
    if (raised)
        diag(c->d, DIAG_REMARK, n->loc,
             "%zu of %zu weight scales raised so that the int32 bias fits", raised, g.n);
    bool one_zp = sym && elem_bits(o->storage) > 1;
    q->n_scale = g.n;
    q->scale = scale;
    q->n_zp = one_zp ? 1 : g.n;
    q->zp = zp;
    state_range(q, r);
    return q;
}
