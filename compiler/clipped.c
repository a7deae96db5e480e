/* Constants whose decision gives away what their type can hold: an edit that left the scales of 8
 * bits to 4, or stated one that most weights are lost in. */
#include "compiler/doubtful.h"
#include "passes/edit.h"
#include "passes/params.h"
#include "passes/quantize/masks.h"

#include <math.h>

typedef struct Clipped {
    Diags *d;
    Arena *arena;
    const Uses *uses;
} Clipped;

/* What shares one scale. Errors are sums of squares. */
typedef struct Part {
    float min, max; /* of its numbers, and 0 */
    float scale;    /* that these ask for */
    size_t n;
    double error; /* on the grid that was written */
    double least; /* on that of the range, as rounding to any grid leaves step^2 / 12 */
} Part;

/* How many times the end of its grid `x` is; 1 and below is inside. */
static double overshoot(const Quant *q, size_t entry, double x) {
    double s = quant_scale(q, entry), zp = (double)quant_zp(q, entry);
    double end = s * ((double)(x < 0 ? quant_lo(q) : quant_hi(q)) - zp);
    return fabs(x) / fmax(fabs(end), s);
}

static size_t entry_of(const Value *v, size_t i) {
    const Quant *q = v->type.quant;
    return q->n_scale == 1 ? 0 : quant_index(q, v->data->rank, v->data->dims, i);
}

/* ---- far beyond the grid's end ---- */

/* What a mask hides ends at the least number that shows, as its integers may. Whether any is told.
 */
static bool look_at_ends(const Clipped *c, const Value *v, double shows_from) {
    const Tensor *t = v->data;
    const Quant *q = v->type.quant;
    double most = 2; /* times */
    size_t n = 0, at = 0, nans = 0;
    for (size_t i = 0; i < t->count; i++) {
        double x = tensor_float(t, i);
        if (isnan(x)) {
            nans++;
            continue;
        }
        double over = overshoot(q, entry_of(v, i), fmax(x, shows_from));
        n += over > 2;
        if (over > most) {
            most = over;
            at = i;
        }
    }
    if (nans)
        diag_warning(
            c->d, v->loc,
            "%zu of %zu elements of '%s' %s NaN, for which integers have the lowest number "
            "of their type",
            nans, t->count, diag_name(c->d, v->name), nans == 1 ? "is" : "are");
    if (n && elem_bits(q->storage) >= 8)
        diag_warning(c->d, v->loc,
                     "%zu of %zu elements of '%s' are clipped to less than half: the farthest, %g, "
                     "is %.3g times what its grid holds",
                     n, t->count, diag_name(c->d, v->name), tensor_float(t, at), most);
    return n && elem_bits(q->storage) >= 8;
}

/* ---- what the grid costs ---- */

static Part *parts_of(const Clipped *c, const Value *v) {
    const Tensor *t = v->data;
    const Quant *q = v->type.quant;
    Part *of = NEW_ARRAY(c->arena, Part, q->n_scale);
    for (size_t i = 0; i < t->count; i++) {
        Part *p = &of[entry_of(v, i)];
        float x = (float)tensor_float(t, i);
        p->min = fminf(p->min, x);
        p->max = fmaxf(p->max, x);
        p->n++;
    }
    IntRange r = {quant_lo(q), quant_hi(q)};
    for (size_t e = 0; e < q->n_scale; e++) {
        int64_t zp;
        Part *p = &of[e];
        params_from_minmax(p->min, p->max, r, quant_is_symmetric(q), quant_is_pow2(q), &p->scale,
                           &zp);
        p->least = (double)p->n * (double)p->scale * (double)p->scale / 12;
    }
    return of;
}

/* A grid that holds the range with steps up to twice as wide as that needs costs at most 6 dB. */
static bool may_cost(const Quant *q, const Part *of) {
    for (size_t e = 0; e < q->n_scale; e++) {
        const Part *p = &of[e];
        if (p->min < p->max &&
            (quant_scale(q, e) > 2 * p->scale || overshoot(q, e, (double)p->min) > 1 ||
             overshoot(q, e, (double)p->max) > 1))
            return true;
    }
    return false;
}

static void measure_parts(const Value *v, Part *of) {
    const Quant *q = v->type.quant;
    for (size_t i = 0; i < v->data->count; i++) {
        size_t e = entry_of(v, i);
        float x = (float)tensor_float(v->data, i);
        int64_t whole = quant_of_real(q, e, x) - quant_zp(q, e);
        double error = (double)x - (double)((float)whole * quant_scale(q, e));
        of[e].error += error * error;
    }
}

static bool costs_more(const Part *p) {
    return p->error > 4 * p->least; /* 6 dB */
}

/* Of the whole constant, else of a part that clips. (One with wide steps may have them on purpose:
 * where its weights are next to nothing, their bias has to fit its integers.) The worst part is
 * named. */
static void look_at_cost(const Clipped *c, const Value *v) {
    const Quant *q = v->type.quant;
    Part *of = parts_of(c, v), all = {0};
    size_t worst = q->n_scale, n = 0;
    if (!may_cost(q, of))
        return;
    measure_parts(v, of);
    for (size_t e = 0; e < q->n_scale; e++) {
        all.error += of[e].error;
        all.least += of[e].least;
    }
    for (size_t e = 0; e < q->n_scale; e++) {
        const Part *p = &of[e];
        if (!costs_more(p) || !(costs_more(&all) || quant_scale(q, e) < p->scale))
            continue;
        n++;
        if (worst == q->n_scale || p->error > of[worst].error)
            worst = e;
    }
    if (!n)
        return;
    const Part *p = &of[worst];
    diag_warning(c->d, q->loc.source ? q->loc : v->loc,
                 "'%s' loses %.1f dB by its scale%s: numbers from %.4g to %.4g ask for %.4g, "
                 "and %.4g is written%s",
                 diag_name(c->d, v->name), 10 * log10(p->error / p->least),
                 q->n_scale > 1 ? "s" : "", (double)p->min, (double)p->max, (double)p->scale,
                 (double)quant_scale(q, worst), arena_others(c->arena, " (and ", n - 1, ")"));
}

/* ---- every constant ---- */

static bool is_judged(const Value *v) {
    const Quant *q = v->type.quant;
    return v->kind == VALUE_CONST && v->data && type_real_elem(v->type) == ELEM_FLOAT && q &&
           q->kind == QUANT_PARAMS && !type_is_quantized(v->type);
}

static void look(Value *v, void *ctx) {
    const Clipped *c = ctx;
    float min, max;
    bool cut = false;
    if (!is_judged(v))
        return;
    bool known = masked_range(c->uses, v, &min, &max, &cut);
    bool told = look_at_ends(c, v, cut ? (double)min : -INFINITY);
    if (!told && known && !cut && quant_is_integers(v->type.quant) &&
        elem_bits(v->type.quant->storage) <= 16)
        look_at_cost(c, v);
}

void warn_of_clipped(Module *m, Diags *d) {
    Clipped c = {d, m->arena, uses_new(m)};
    module_each_value(m, look, &c);
}
