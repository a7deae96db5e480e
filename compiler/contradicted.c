/* Decisions that the text's own statistics contradict: an edit that clips what was seen, or that
 * wastes the steps that the type has. */
#include "compiler/doubtful.h"
#include "exec/compare.h"
#include "passes/const_quant.h"
#include "passes/edit.h"
#include "passes/params.h"
#include "passes/quantize/masks.h"
#include "passes/target/legal.h"

#include <math.h>

/* All values that share one quantization, as Concat and movers do. */
typedef struct Sharers {
    const Quant *q;
    const Value *widest; /* of those that have statistics */
    float width;         /* of its range */
    float min, max;      /* of all together */
    float least, most;   /* of these, what readers tell apart: a Relu does not, below 0 */
    float low, high;     /* of the widest: what most of its numbers lie between */
    bool silent;         /* one has a range that follows from its operator, or none that is known */
} Sharers;

typedef struct Contradictions {
    Map *by_quant; /* of Sharers */
    Arena *arena;
    const Uses *uses;
    Diags *d;
} Contradictions;

static bool is_judged(const Quant *q) {
    return q && q->kind == QUANT_PARAMS && quant_is_integers(q) && quant_is_per_tensor(q) &&
           elem_bits(q->storage) <= 16;
}

/* Types of few bits clip on purpose: least squares gives 4 bits 2.7 deviations. Their steps are
 * coarse whatever their scale is. */
static bool has_few_bits(const Quant *q) {
    return elem_bits(q->storage) < 8;
}

static bool has_own_range(const Value *v) {
    const QuantRule *r = v->def && v->def->def ? &v->def->def->quant : NULL;
    return r && (r->fixed_output || r->least < r->most);
}

/* Below which most of what a Relu gives lies, where errors are cut at 0: half of them are, so the
 * root of the mean square is 0.707 of their deviation, and 0.1 % are above 3.09 deviations, 1 %
 * above 2.33. What is 0 more often has a longer tail. 0 where the mean is higher than theirs. */
static float most_of_cut(const Stat *s, float min, bool few) {
    bool cut = min >= 0 && *s->avg < 0.85f * *s->std;
    return cut ? (few ? 3.29f : 4.37f) * hypotf(*s->avg, *s->std) : 0;
}

/* Of numbers around avg, 99.9 % lie within 3.3 times their deviation, if they lie as errors do, and
 * 98.8 % within 2.5 times. Where that is not known, few bits may leave out half of the range. */
static void middle(const Stat *s, Sharers *to) {
    bool few = has_few_bits(to->q);
    const float wide = few ? 2.5f : 3.3f, part = few ? 0.5f : 1;
    bool known = s->avg && s->std && isfinite(*s->avg) && isfinite(*s->std);
    to->low = known ? fmaxf(to->least, *s->avg - wide * *s->std) : part * to->least;
    float high = known ? fmaxf(*s->avg + wide * *s->std, most_of_cut(s, to->min, few)) : 0;
    to->high = known ? fminf(to->most, high) : part * to->most;
}

/* Below and above which no reader tells numbers apart; infinite where one does. */
static void told_apart(const Uses *uses, const Value *v, float *lo, float *hi) {
    const Use *use;
    size_t n = uses_of(uses, v, &use);
    *lo = n ? INFINITY : -INFINITY;
    *hi = n ? -INFINITY : INFINITY;
    for (size_t i = 0; i < n; i++) {
        float from, to;
        bool cuts = use[i].node && use[i].index == 0 && clamp_bounds(use[i].node, &from, &to);
        *lo = fminf(*lo, cuts ? from : -INFINITY);
        *hi = fmaxf(*hi, cuts ? to : INFINITY);
    }
}

static void join(const Contradictions *c, Sharers *s, const Value *v, float min, float max) {
    bool wider = !s->widest || max - min > s->width;
    float lo, hi;
    told_apart(c->uses, v, &lo, &hi);
    float least = fminf(fmaxf(min, lo), hi), most = fmaxf(fminf(max, hi), lo);
    s->min = s->widest ? fminf(s->min, min) : min;
    s->max = s->widest ? fmaxf(s->max, max) : max;
    s->least = s->widest ? fminf(s->least, least) : least;
    s->most = s->widest ? fmaxf(s->most, most) : most;
    if (wider) {
        s->widest = v;
        s->width = max - min;
        if (v->stat)
            middle(v->stat, s);
    }
}

static double grid_end(const Quant *q, int64_t n) {
    return (double)quant_scale(q, 0) * (double)(n - quant_zp(q, 0));
}

/* How much coarser the steps are than the range needs, for a quantization of this kind. */
static double coarseness(const Quant *q, float min, float max) {
    IntRange r = {quant_lo(q), quant_hi(q)};
    float scale;
    int64_t zp;
    params_from_minmax(min, max, r, quant_is_symmetric(q), quant_is_pow2(q), &scale, &zp);
    return (double)quant_scale(q, 0) / (double)scale;
}

/* By how much a zero point moves the ends. */
static double slack_of(const Quant *q) {
    return 1.5 * (double)quant_scale(q, 0);
}

/* Whether it is just what this range asks for: then calibration decided it, for all that share it.
 */
static bool is_of_range(const Quant *q, float min, float max) {
    double lo = grid_end(q, quant_lo(q)), hi = grid_end(q, quant_hi(q)), slack = slack_of(q);
    return max > min && fabs(coarseness(q, min, max) - 1) < 0x1p-10 && (double)min >= lo - slack &&
           (double)max <= hi + slack;
}

/* A mean outside of the range is that of numbers that do not count, as masks hide them. */
static bool hides_some(const Stat *s, float min, float max) {
    return s && s->avg && !(*s->avg >= min && *s->avg <= max);
}

/* The range of a constant that is integers, in the numbers that these stand for. */
static bool range_of_integers(Arena *a, const Value *v, double *lo, double *hi) {
    if (!v || v->kind != VALUE_CONST || !v->data || !type_is_quantized(v->type))
        return false;
    Tensor *t = const_dequantize(a, v->data, v->type.quant);
    *lo = INFINITY;
    *hi = -INFINITY;
    for (size_t i = 0; t && i < t->count; i++) {
        *lo = fmin(*lo, tensor_float(t, i));
        *hi = fmax(*hi, tensor_float(t, i));
    }
    return *lo <= *hi;
}

/* Whether it was seen where its operands do not reach: by the float model, whose mask ends at its
 * lowest integer by now. */
static bool is_beyond_operands(Arena *a, const Value *v) {
    const Node *n = v->def;
    const QuantRule *r = n && n->def ? &n->def->quant : NULL;
    if (!r || !(r->adds || r->selects) || n->n_in < 2 || !v->stat || v->stat->n != 1)
        return false;
    for (size_t i = n->n_in - 2; i < n->n_in; i++) {
        const Value *other = n->in[2 * n->n_in - 3 - i];
        const Stat *s = other ? other->stat : NULL;
        double lo, hi;
        if (!s || s->n != 1 || !s->min || !s->max || !range_of_integers(a, n->in[i], &lo, &hi))
            continue;
        lo = r->adds ? lo + (double)*s->min : fmin(lo, (double)*s->min);
        hi = r->adds ? hi + (double)*s->max : fmax(hi, (double)*s->max);
        double slack = slack_of(n->in[i]->type.quant);
        return (double)*v->stat->min < lo - slack || (double)*v->stat->max > hi + slack;
    }
    return false;
}

static void look(Value *v, void *ctx) {
    Contradictions *c = ctx;
    const Quant *q = v->type.quant;
    float min, max;
    bool cut;
    if (!is_judged(q) || is_cut_by_clamp(c->uses, v))
        return;
    Sharers *s = map_get_at(c->by_quant, q);
    if (!s) {
        s = NEW(c->arena, Sharers);
        s->q = q;
        map_set_at(c->by_quant, q, s);
    }
    bool known = masked_range(c->uses, v, &min, &max, &cut) && !cut;
    s->silent = s->silent || has_own_range(v) || !known || (v->stat && v->stat->n != 1) ||
                hides_some(v->stat, min, max) || is_of_range(q, min, max) ||
                is_beyond_operands(c->arena, v);
    if (!s->silent)
        join(c, s, v, min, max);
}

static void judge(const Contradictions *c, const Sharers *s) {
    const Quant *q = s->q;
    double lo = grid_end(q, quant_lo(q)), hi = grid_end(q, quant_hi(q));
    double slack = slack_of(q);
    Loc at = q->loc.source ? q->loc : s->widest->loc;
    const char *name = diag_name(c->d, s->widest->name);
    double coarse = coarseness(q, s->min, s->max);
    bool most = (double)s->low >= lo - slack && (double)s->high <= hi + slack;
    bool half = (double)s->least >= 2 * lo - slack && (double)s->most <= 2 * hi + slack;
    if (!most)
        diag_warning(
            c->d, at,
            "'%s' was seen from %.4g to %.4g, and its grid is %.4g to %.4g: more than %s %% "
            "of its numbers are likely to be clipped",
            name, (double)s->min, (double)s->max, lo, hi, has_few_bits(q) ? "1" : "0.1");
    else if (!half)
        diag_warning(c->d, at,
                     "'%s' was seen from %.4g to %.4g, and its grid is %.4g to %.4g: the farthest "
                     "of its numbers are clipped to less than half",
                     name, (double)s->min, (double)s->max, lo, hi);
    else if (!has_few_bits(q) && s->max > s->min && coarse > 2.02)
        diag_warning(c->d, at,
                     "'%s' was seen from %.4g to %.4g, and its grid is %.4g to %.4g: its steps are "
                     "%.3g times as coarse as that needs, which costs %.1f dB",
                     name, (double)s->min, (double)s->max, lo, hi, coarse, 20 * log10(coarse));
}

void warn_of_contradicted(Module *m, Diags *d) {
    Contradictions c = {map_new(m->arena), m->arena, uses_new(m), d};
    module_each_value(m, look, &c);
    for (size_t i = 0; i < map_size(c.by_quant); i++) {
        const Sharers *s = map_value(c.by_quant, i);
        if (!s->silent && s->widest && s->widest->stat)
            judge(&c, s);
    }
}
