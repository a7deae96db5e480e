#include "passes/quantize/masks.h"

#include "passes/edit.h"

#include <math.h>

enum { BUDGET = 256 }; /* operators to look at for one value */

typedef struct Walk {
    const Uses *uses;
    int left;
} Walk;

typedef struct Range {
    float lo, hi;
} Range;

/* Its lower end may be -inf. */
static bool wide_range(const Value *v, Range *r) {
    const Tensor *t = edit_float_const(v);
    size_t n = t ? t->count : v->stat && v->stat->min && v->stat->max ? v->stat->n : 0;
    *r = (Range){INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        float lo = t ? (float)tensor_float(t, i) : v->stat->min[i];
        float hi = t ? lo : v->stat->max[i];
        if (!(lo <= hi))
            return false;
        r->lo = fminf(r->lo, lo);
        r->hi = fmaxf(r->hi, hi);
    }
    return n && r->hi < INFINITY;
}

static bool is_mover(const Node *n) {
    return n->def->quant.kind == QUANT_MOVE && n->def->quant.data == 1 &&
           !n->def->quant.move.fill && n->n_out == 1;
}

/* ---- what is a mask ---- */

static bool is_number(const Value *v) {
    const Tensor *t = edit_float_const(v);
    return t && t->count == 1;
}

/* Computed from integers or truth values with numbers alone, or an input that reaches where no
 * scores do. */
static bool is_mask(Walk *w, const Value *v) {
    enum { BEYOND_SCORES = -1000 };
    const Node *n = v->def;
    Range r;
    if (v->type.kind != TYPE_TENSOR || w->left-- <= 0)
        return false;
    if (!elem_is_float(v->type.elem))
        return true;
    if (!n)
        return v->kind == VALUE_INPUT && wide_range(v, &r) && r.lo <= (float)BEYOND_SCORES;
    if (!n->def || n->def->quant.kind == QUANT_MAC)
        return false;
    bool computed = false;
    for (size_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || is_number(n->in[i]))
            continue;
        if (!is_mask(w, n->in[i]))
            return false;
        computed = true;
    }
    return computed;
}

/* The least of the largest elements of its rows: of a constant as it stands, else what the mask
 * leaves alone. -inf: it is no mask. */
static float leaves_alone(Walk *w, const Value *mask, float hi) {
    const Tensor *t = edit_float_const(mask);
    if (!t)
        return is_mask(w, mask) ? hi : -INFINITY;
    size_t row = t->rank > 0 ? (size_t)t->dims[t->rank - 1] : 1;
    float least = INFINITY;
    for (size_t at = 0; row && at < t->count; at += row) {
        float most = -INFINITY;
        for (size_t i = 0; i < row; i++)
            most = fmaxf(most, (float)tensor_float(t, at + i));
        least = fminf(least, most);
    }
    return least;
}

/* ---- rows that a mask was put on ---- */

static float least_largest(Walk *w, const Value *v, float far);

/* What elements of `x` have at least where nothing hides them. */
static float least_of(Walk *w, const Value *x, float far) {
    Range r;
    return fmaxf(least_largest(w, x, far), wide_range(x, &r) ? r.lo : -INFINITY);
}

/* x + mask, where the least that the mask makes of a score lies below all that it leaves alone. */
static float least_of_sum(Walk *w, const Value *x, const Value *mask, float far) {
    Range s, m;
    if (!wide_range(x, &s) || !wide_range(mask, &m) || !isfinite(s.lo) ||
        !(m.lo + s.hi < s.lo + m.hi - far))
        return -INFINITY;
    return s.lo + leaves_alone(w, mask, m.hi);
}

/* The mask in place of x. */
static float least_of_choice(Walk *w, const Value *x, const Value *mask, float far) {
    Range m;
    float least = least_of(w, x, far);
    bool hides = wide_range(mask, &m) && m.hi < least - far;
    return hides && (is_number(mask) || is_mask(w, mask)) ? least : -INFINITY;
}

/* The largest element of each row of `v` is no less than that; -inf: nothing is known. */
static float least_largest(Walk *w, const Value *v, float far) {
    const Node *n = v->def;
    if (!n || !n->def || w->left-- <= 0)
        return -INFINITY;
    const QuantRule *q = &n->def->quant;
    if (is_mover(n))
        return least_largest(w, n->in[0], far);
    if (q->adds && n->n_in == 2)
        return fmaxf(least_of_sum(w, n->in[0], n->in[1], far),
                     least_of_sum(w, n->in[1], n->in[0], far));
    if (q->selects && n->n_in == 3)
        return fmaxf(least_of_choice(w, n->in[1], n->in[2], far),
                     least_of_choice(w, n->in[2], n->in[1], far));
    float most = -INFINITY;
    for (size_t i = 0; q->exceeds && i < n->n_in; i++)
        most = fmaxf(most, least_of(w, n->in[i], far));
    return most;
}

static float least_that_shows(Walk *w, const Value *v);

static float shows_to(Walk *w, const Value *v, const Node *n, size_t operand) {
    Range r;
    if (!n || !n->def || n->n_out < 1 || !n->out[0])
        return -INFINITY;
    const QuantRule *q = &n->def->quant;
    if (q->counts_within > 0)
        return least_largest(w, v, q->counts_within) - q->counts_within;
    if ((is_mover(n) && operand == 0) || q->exceeds || (q->selects && operand > 0))
        return least_that_shows(w, n->out[0]);
    if (q->adds && n->n_in == 2 && wide_range(n->in[1 - operand], &r))
        return least_that_shows(w, n->out[0]) - r.hi;
    return -INFINITY;
}

static float least_that_shows(Walk *w, const Value *v) {
    const Use *use;
    size_t n = uses_of(w->uses, v, &use);
    float least = n && w->left-- > 0 ? INFINITY : -INFINITY;
    for (size_t i = 0; i < n && least > -INFINITY; i++)
        least = fminf(least, shows_to(w, v, use[i].node, use[i].index));
    return least;
}

float masked_from(const void *uses, const Value *v) {
    Range r;
    float least = least_that_shows(&(Walk){uses, BUDGET}, v);
    return isfinite(least) && wide_range(v, &r) && r.lo < least ? least : -INFINITY;
}

bool masked_range(const Uses *uses, const Value *v, float *min, float *max, bool *cut) {
    Range r;
    float least = masked_from(uses, v);
    *cut = least > -INFINITY;
    if (!*cut)
        return edit_range(v, min, max);
    wide_range(v, &r);
    *min = fminf(least, 0);
    *max = fmaxf(fmaxf(r.hi, least), 0);
    return true;
}
