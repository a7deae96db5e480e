/* Rounds weights up or down so that the errors of a sum cancel on calibration data.
 *
 * Rounding each weight to the nearest integer is best for numbers that have nothing to do with each
 * other. What meets the weights of a channel does: with G = E[x x^T] the error of its sum is
 * (w - q)^T G (w - q), and one weight's error can be made up for by the next. Exactly the best q is
 * a closest vector in a lattice; this takes Babai's (1986): with G = L L^T, from the last weight to
 * the first, each is rounded after what the errors so far ask of it has been added. w is not the
 * weight itself but what makes up for the layers before (passes/quantize/in_turn.h). It is what
 * GPTQ does (Frantar, Ashkboos, Hoefler, Alistarh 2022). The numbers that vary most come first, and
 * a hundredth of the mean variance is added to each, so that few samples decide nothing alone. A
 * channel that would come out worse than by plain rounding keeps that.
 *
 * Where the node has a bias, G is the covariance, and the bias takes what is left on average. The
 * weights become numbers of their grid, so that everything after rounds them to themselves. A
 * weight that several nodes share has no one kind of data: it stays, and so does one with too many
 * terms. The biases belong to the rounding, which leaves them the mean error to make up for: they
 * are not judged apart from it (bias_correction.c), as rounded weights without them would be worse
 * than plain ones. With `round_few` all stay that have more than 6 bits: their steps are fine
 * enough, and this takes long. */
#include "passes/quantize/choice.h"
#include "passes/edit.h"
#include "passes/quantize/held_out.h"
#include "passes/quantize/in_turn.h"
#include "passes/quantize/open.h"
#include "passes/quantize/refine.h"
#include "passes/quantize/rounder.h"
#include "passes/quantize/weight_quant.h"

#include <math.h>

typedef struct Rounding {
    Mend mend;
    Arena *arena;
    Rounder *rounder;
} Rounding;

static void set_weights(Rounding *by, Node *n, const float *numbers, const Quant *q) {
    int at = n->def->quant.mac.weight;
    Value *old = n->in[at];
    float *out;
    Value *v = edit_new_floats(n->graph, by->mend.names, old->name, old->data->rank,
                               old->data->dims, &out);
    memcpy(out, numbers, old->data->count * sizeof *out);
    v->type = type_tilde(v->type, q);
    value_from(v, old, by->mend.pass);
    n->in[at] = v;
    edit_take_over(by->mend.uses, old, v);
}

/* Whether the weights of this node are to be rounded so. */
static bool wanted(void *ctx, const Node *n) {
    const Rounding *by = ctx;
    const Value *v = n->in[n->def->quant.mac.weight];
    const Quant *q = edit_tilde(v);
    const Use *use;
    return q && uses_of(by->mend.uses, v, &use) == 1 &&
           (!by->mend.c->round_few || weight_is_few(q));
}

/* Scales of a weight may change where nobody stated them, unless they are powers of two. */
static void free_scales(const Rounding *by, const Node *n, const WeightMatrix *w, Rounded *out) {
    const Quant *q = w->quant;
    Choice o = choice_of_weight(by->mend.c, n, n->in[n->def->quant.mac.weight]);
    if (o.fixed || o.pow2 || !refine_takes_scales(w))
        return;
    out->scale = arena_copy(by->arena, q->scale, q->n_scale * sizeof *q->scale);
    if (quant_is_blocked(q))
        return;
    out->least = NEW_ARRAY(by->arena, double, w->channels);
    for (size_t c = 0; c < w->channels; c++)
        out->least[c] =
            weight_least_scale(&o, n, (IntRange){quant_lo(q), quant_hi(q)}, c, w->channels);
}

static float *copy_of(Arena *a, const float *numbers, const WeightMatrix *w) {
    return arena_copy(a, numbers, w->data->count * sizeof *numbers);
}

/* The best on the sums that were set aside; without them rounding is trusted, and nothing else. */
static Way best_way(const WeightMatrix *w, const MacData *data, const Rounded *out, bool centered,
                    Arena *a) {
    double least = INFINITY;
    Way best = WAY_ROUNDED;
    for (int i = WAYS; data->n_held && i-- > 0;) {
        double e = held_out_error(w, data, out->numbers[i], centered, a);
        if (e < least) {
            least = e;
            best = (Way)i;
        }
    }
    return best;
}

static const Quant *with_scales(Module *m, const Quant *old, const float *scale) {
    Quant *q = quant_copy(m->arena, old);
    q->alias = old->alias;
    q->scale = scale;
    for (size_t i = 0; i < m->n_quants; i++)
        if (m->quants[i] == old)
            m->quants[i] = q;
    return q;
}

static void round_terms(Rounding *by, Node *n, const WeightMatrix *w, const MacData *data,
                        double *bias) {
    Arena *a = arena_scratch(by->arena);
    const Quant *q = w->quant;
    Rounded out = {.numbers = {[WAY_PLAIN] = mend_rounded(&by->mend, w)}};
    out.numbers[WAY_ROUNDED] = copy_of(a, out.numbers[WAY_PLAIN], w);
    if (data->n_held) {
        out.numbers[WAY_REFINED] = copy_of(a, out.numbers[WAY_PLAIN], w);
        free_scales(by, n, w, &out);
    }
    rounder_round(by->rounder, w, data, bias != NULL, &out);
    Way best = best_way(w, data, &out, bias != NULL, a);
    held_out_join(data);
    if (bias)
        mend_set_bias(&by->mend, n, w, data, out.numbers[best], bias);
    if (best == WAY_REFINED && out.scale)
        q = with_scales(n->graph->module, q, out.scale);
    set_weights(by, n, out.numbers[best], q);
    arena_free(a);
}

static void round_node(void *ctx, Node *n, const MacData *data) {
    Rounding *by = ctx;
    WeightMatrix w;
    if (!was_decided(by->mend.c, n->in[n->def->quant.mac.weight]) ||
        !weight_matrix(n, data, by->mend.c->d, &w))
        return;
    double *bias = mend_bias(&by->mend, n, &w);
    if (data->gram)
        round_terms(by, n, &w, data, bias);
    else if (bias)
        mend_set_bias(&by->mend, n, &w, data, mend_rounded(&by->mend, &w), bias);
}

bool pass_adaround(Module *m, PassContext *c) {
    Rounding by = {
        .mend = mend_new(m, c, "adaround"), .arena = m->arena, .rounder = rounder_new(m->arena)};
    bool ok = mac_in_turn(m, c, by.mend.pass, false, wanted, round_node, &by);
    mend_keep_biases(&by.mend);
    edit_sweep(m);
    return ok;
}
