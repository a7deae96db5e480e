/* Decisions that the text's own statistics contradict: an edit that clips what was seen, or that
 * wastes the steps that the type has. */
#include "compiler/doubtful.h"
#include "exec/compare.h"
#include "passes/edit.h"
#include "passes/params.h"
#include "passes/quantize/masks.h"

#include <math.h>

/* All values that share one quantization, as Concat and movers do. */
typedef struct Sharers {
    const Quant *q;
    const Value *widest; /* of those that have statistics */
    float width;         /* of its range */
    float min, max;      /* of all together */
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

/* Of numbers around avg, 99.9 % lie within 3.3 times their deviation, if they lie as errors do, and
 * 98.8 % within 2.5 times. Where that is not known, few bits may leave out half of the range. */
static void middle(const Stat *s, Sharers *to) {
    bool few = has_few_bits(to->q);
    const float wide = few ? 2.5f : 3.3f, part = few ? 0.5f : 1;
    bool known = s->avg && s->std && isfinite(*s->avg) && isfinite(*s->std);
    to->low = known ? fmaxf(to->min, *s->avg - wide * *s->std) : part * to->min;
    to->high = known ? fminf(to->max, *s->avg + wide * *s->std) : part * to->max;
}

static void join(Sharers *s, const Value *v, float min, float max) {
    bool wider = !s->widest || max - min > s->width;
    s->min = s->widest ? fminf(s->min, min) : min;
    s->max = s->widest ? fmaxf(s->max, max) : max;
    if (wider) {
        s->widest = v;
        s->width = max - min;
        if (v->stat)
            middle(v->stat, s);
    }
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
    s->silent = s->silent || has_own_range(v) || !known || (v->stat && v->stat->n != 1);
    if (!s->silent)
        join(s, v, min, max);
}

static double grid_end(const Quant *q, int64_t n) {
    return (double)quant_scale(q, 0) * (double)(n - quant_zp(q, 0));
}

/* How much coarser the steps are than the range needs, for a quantization of this kind. */
static double coarseness(const Sharers *s) {
    const Quant *q = s->q;
    IntRange r = {quant_lo(q), quant_hi(q)};
    float scale;
    int64_t zp;
    params_from_minmax(s->min, s->max, r, quant_is_symmetric(q), quant_is_pow2(q), &scale, &zp);
    return (double)quant_scale(q, 0) / (double)scale;
}

static void judge(const Contradictions *c, const Sharers *s) {
    const Quant *q = s->q;
    double lo = grid_end(q, quant_lo(q)), hi = grid_end(q, quant_hi(q));
    double slack = 1.5 * (double)quant_scale(q, 0); /* by which a zero point moves the ends */
    Loc at = q->loc.source ? q->loc : s->widest->loc;
    const char *name = diag_name(c->d, s->widest->name);
    if ((double)s->low < lo - slack || (double)s->high > hi + slack)
        diag_warning(
            c->d, at,
            "'%s' was seen from %.4g to %.4g, and its grid is %.4g to %.4g: more than %s %% "
            "of its numbers are likely to be clipped",
            name, (double)s->min, (double)s->max, lo, hi, has_few_bits(q) ? "1" : "0.1");
    else if (!has_few_bits(q) && s->max > s->min && coarseness(s) > 2.02)
        diag_warning(c->d, at,
                     "'%s' was seen from %.4g to %.4g, and its grid is %.4g to %.4g: its steps are "
                     "%.3g times as coarse as that needs, which costs %.1f dB",
                     name, (double)s->min, (double)s->max, lo, hi, coarseness(s),
                     20 * log10(coarseness(s)));
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
