#include "passes/quantize/weight_quant.h"
#include "passes/edit.h"
#include "passes/params.h"
#include "passes/quantize/weight_groups.h"
#include "passes/split_products.h"
#include "support/store.h"

#include <float.h>
#include <math.h>

enum {
    FEW_BITS = 4, /* up to here the error of clipping is weighed against that of the steps */
    /* Blocks of so many integers are kept from becoming smaller by it. With more integers that
     * makes no difference, with fewer it costs more than it gives: docs/bits.md has figures. */
    KEPT_LEAST = 4,
    KEPT_MOST = 8,
    ALONG = 4, /* FitAim */
};

/* The axis that the node sums over. Weights are [out, in, ...] or [in, out]. */
static int summed_axis(const Node *n, const Tensor *t, int channel) {
    if (n->def->quant.stores.operands)
        return n->def->quant.stores.summed;
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
static Quant *divided(const Choice *o, const Node *n, const Tensor *t, int axis, Arena *a) {
    Quant *q = quant_per_tensor(a, o->storage, 1.0F, 0);
    int summed = t->rank > 1 ? summed_axis(n, t, axis) : -1;
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

/* The largest sum of products of one channel, in steps of the accumulator. */
static double largest_sum(const Value *w, const Quant *x, IntRange r, size_t channels) {
    double terms = (double)w->data->count / (double)channels;
    return terms * (double)(quant_hi(x) - quant_lo(x)) * (double)(r.hi - r.lo);
}

/* The smallest scale of weight channel `c` with which bias and sum still fit the accumulator. */
static double bias_floor(const Choice *o, const Node *n, IntRange r, size_t c, size_t channels) {
    const QuantRule *q = &n->def->quant;
    const Value *x = n->in[0];
    if (q->kind != QUANT_MAC || !q->mac.bias || n->n_in <= (size_t)q->mac.bias || !x->type.quant ||
        x->type.quant->n_scale != 1 || elem_bits(x->type.quant->storage) > 16 ||
        elem_bits(o->storage) > 16)
        return 0; /* wider sums are double, and take a float bias as it is */
    const Tensor *b = edit_float_const(n->in[q->mac.bias]);
    if (!b)
        return 0;
    double most = 0;
    bool each = channels > 1 && b->count > 1;
    for (size_t i = each ? c : 0; i < (each ? c + 1 : b->count) && i < b->count; i++)
        most = fmax(most, fabs(tensor_float(b, i)));
    double sum = largest_sum(n->in[q->mac.weight], x->type.quant, r, channels);
    bool wide = elem_bits(x->type.quant->storage) > 8 || elem_bits(o->storage) > 8;
    double least = wide ? params_bias_min_scale_wide(most) : params_bias_min_scale(most, sum);
    return least / (double)quant_scale(x->type.quant, 0);
}

/* The smallest scale whose product with that of the data is a normal float, as kernels want it;
 * dead channels, whose weights training left at 1e-38, have smaller ones. */
static double product_floor(const Node *n) {
    const Quant *x = n->in[0]->type.quant;
    return x && x->n_scale == 1 ? (double)FLT_MIN / (double)quant_scale(x, 0) : 0;
}

double weight_least_scale(const Choice *choice, const Node *n, IntRange r, size_t c,
                          size_t channels) {
    return fmax(bias_floor(choice, n, r, c, channels), product_floor(n));
}

static bool symmetric(const PassContext *c, const Choice *o, const Quant *q) {
    return q->n_axes ? choice_is_symmetric(c, o) : o->sym;
}

static void state_range(Quant *q, IntRange r) {
    if (r.lo == elem_min(q->storage) && r.hi == elem_max(q->storage))
        return;
    q->has_range = true;
    q->lo = r.lo;
    q->hi = r.hi;
}

static double along(const PassContext *c, IntRange r, bool blocks) {
    int64_t integers = r.hi - r.lo + 1;
    return blocks && c->weights_alone && integers >= KEPT_LEAST && integers <= KEPT_MOST ? ALONG
                                                                                         : 0;
}

Quant *weight_quant(PassContext *c, const Choice *choice, const Node *n, const Value *w, int axis) {
    Choice settled = *choice, *o = &settled;
    Arena *a = n->graph->module->arena;
    Quant *q = divided(o, n, w->data, axis, a);
    bool sym = o->sym = symmetric(c, o, q), blocks = quant_is_blocked(q);
    IntRange r = choice_range(o);
    bool few = r.hi - r.lo < 1 << FEW_BITS;
    if (few && (blocks || c->weights_alone) && !o->reduce_range && !o->exact_range &&
        !n->in[0]->type.quant)
        /* dequantized before use: the lowest integer costs nothing */
        r.lo = o->has_range ? o->lo : elem_min(o->storage);
    size_t groups = groups_count(q, w->data), raised = 0;
    bool one_zp = sym && elem_bits(o->storage) > 1;
    Arena *scratch = arena_scratch(a);
    float *scale = NEW_ARRAY(scratch, float, groups);
    int64_t *zp = NEW_ARRAY(scratch, int64_t, groups);
    GroupParams p = {{r, sym, o->pow2, along(c, r, blocks)}, scale, zp};
    (few ? groups_fit : groups_from_ranges)(&p, q, w->data, scratch);
    for (size_t k = 0; k < groups; k++) {
        double bias = blocks ? 0 : bias_floor(o, n, r, k, groups);
        double least = blocks ? 0 : fmax(bias, product_floor(n));
        raised += (double)scale[k] < bias && bias < (double)FLT_MAX / 2;
        if ((double)scale[k] < least && least < (double)FLT_MAX / 2)
            /* the zero point stays: what it reaches has only grown */
            scale[k] = o->pow2 ? params_pow2_at_least(least) : nextafterf((float)least, INFINITY);
    }
    if (raised)
        diag(c->d, DIAG_REMARK, n->loc,
             "%zu of %zu weight scales raised so that the bias fits the accumulator", raised,
             groups);
    q->n_scale = groups;
    q->scale = store_copy(a, scale, groups * sizeof *scale);
    q->n_zp = one_zp ? 1 : groups;
    q->zp = store_copy(a, zp, q->n_zp * sizeof *zp);
    arena_free(scratch);
    state_range(q, r);
    return q;
}

const char *why_unlike_product(const Node *n) {
    if (n->def && n->def->quant.kind != QUANT_NEVER)
        return NULL;
    for (size_t i = 0; i < n->n_in; i++) {
        const Tensor *t = n->in[i] ? edit_float_const(n->in[i]) : NULL;
        if (t && t->rank >= 2)
            return !n->def            ? "qxc does not know this operator"
                   : whole_refusal(n) ? whole_refusal(n)
                                      : "this operator has no integer form";
    }
    return NULL;
}
