/* LayerNormalization and its like on integers: mean and variance are exact, the root and its
 * inverse have 30 bits (kernels/normalize/norm_q.qk). Before it is rounded a result is within 2^-8
 * of a step of the exact one, with rows of up to 2^16 elements and results of up to 2^16 steps. */
#include "ir/ops/layernorm.h"

#include <math.h>

/* ---- scale and bias ---- */

typedef struct Reals {
    double *v;
    size_t n;
} Reals;

/* The numbers of operand i, which is a constant or dequantizes one; false where it is not known or
 * not finite. An operand that is left out has none. */
static bool constant_reals(const OpCtx *c, size_t i, Reals *out) {
    const Value *v = op_in(c, i);
    const OpDef *def = v && v->kind == VALUE_NODE ? v->def->def : NULL;
    if (def && def->conversion == CONVERT_DEQUANTIZE)
        v = v->def->in[0];
    const Tensor *t = value_data(v);
    const Quant *q = t ? op_quant(v) : NULL;
    *out = (Reals){NULL, 0};
    if (!v)
        return true;
    if (!t || !t->data || (q ? q->kind != QUANT_PARAMS : !elem_is_float(t->elem)))
        return false;
    *out = (Reals){NEW_ARRAY(c->arena, double, t->count ? t->count : 1), t->count};
    bool finite = true;
    for (size_t k = 0; k < t->count; k++) {
        out->v[k] = op_real(v, k);
        finite = finite && isfinite(out->v[k]);
    }
    return finite;
}

const char *norm_refusal(const OpCtx *c, const Quant *x) {
    Reals r;
    (void)x;
    for (size_t i = 1; i < c->node->n_out; i++)
        if (c->node->out[i])
            return "it yields mean or deviation, too";
    for (size_t i = NORM_SCALE; i <= NORM_BIAS; i++)
        if (!constant_reals(c, i, &r))
            return "its scale or bias is not a constant of finite numbers";
    return NULL;
}

int32_t norm_entries(const NormRows *r) {
    return (r->period - 1) * r->step + (r->n + r->block - 1) / r->block;
}

/* ---- parameters ---- */

enum { EPS_BITS = 61, GAIN_BITS = 26, OFFSET_STEPS = 1 << 21 };

/* n^2 * eps in steps of x, scaled up with the variances by an even power of two. */
static void fit_eps(qk_norm_q_params *p, double range, float eps, double step) {
    double n = p->n, e = n * n * (double)eps / (step * step);
    double most = n * n * range * range / (p->centre ? 4 : 1);
    int exponent;
    frexp(most > e ? most : e, &exponent);
    int up = (EPS_BITS - exponent) & ~1;
    p->up = up > 62 ? 62 : up < -48 ? -48 : up;
    e = ldexp(e, p->up);
    p->eps = e < ldexp(1, EPS_BITS) ? (int64_t)e : (int64_t)1 << EPS_BITS;
}

static double at(const Reals *r, size_t k, double absent) {
    return r->n == 0 ? absent : r->v[r->n == 1 ? 0 : k];
}

static double clamped(double v, double most) {
    return v > most ? most : v < -most ? -most : v;
}

/* scale / step and bias / step in fixed point: gains have 26 bits, fewer where offsets would not
 * fit 62 then. */
static void fit_gains(qk_norm_q_params *p, const Reals *scale, const Reals *bias, double step,
                      double sign, size_t count, int32_t *gain, int64_t *offset) {
    double most = 0;
    int exponent;
    for (size_t k = 0; k < count; k++)
        most = fmax(most, fabs(at(scale, k, 1) / step));
    frexp(most, &exponent);
    int bits = GAIN_BITS - exponent;
    bits = bits < -23 ? -23 : bits > 16 || most == 0 ? 16 : bits;
    p->shift = 24 + bits;
    for (size_t k = 0; k < count; k++) {
        double g = ldexp(sign * at(scale, k, 1) / step, bits);
        double o = clamped(at(bias, k, 0) / step, OFFSET_STEPS);
        gain[k] = (int32_t)lround(clamped(g, (1 << GAIN_BITS) - 1));
        offset[k] = llround(ldexp(o, p->shift));
    }
}

bool bind_norm_integers(Binder *b, const Node *n, const OpCtx *c, const NormRows *r, float eps,
                        bool centre) {
    const Quant *x = op_quant(n->in[NORM_X]), *y = op_quant(n->out[0]);
    ElemType types[] = {bind_elem(n->in[NORM_X]), bind_elem(n->out[0])};
    double range = (double)(elem_max(types[0]) - elem_min(types[0]));
    Reals scale, bias;
    if (!quant_plain(x) || !quant_plain(y) || norm_refusal(c, x) ||
        !constant_reals(c, NORM_SCALE, &scale) || !constant_reals(c, NORM_BIAS, &bias))
        return bind_in_double(b, n);
    if (r->rows == 0 || r->n == 0)
        return bind_unsupported(b, n, "its operand is empty");
    if (r->n * range >= (centre ? 0x1p32 : 0x1p31))
        return bind_in_double_as(b, n, "its rows are too long for sums in 64 bits");
    size_t count = (size_t)norm_entries(r);
    int32_t *gain = NEW_ARRAY(binder_arena(b), int32_t, count);
    int64_t *offset = NEW_ARRAY(binder_arena(b), int64_t, count);
    qk_norm_q_params p = {.rows = r->rows,
                          .n = r->n,
                          .period = r->period,
                          .step = r->step,
                          .block = r->block,
                          .centre = centre,
                          .xz = quant_zero(x),
                          RESULT_PARAMS(y)};
    double step = (double)quant_scale(x, 0);
    fit_eps(&p, range, eps, step);
    fit_gains(&p, &scale, &bias, (double)quant_scale(y, 0), step < 0 ? -1 : 1, count, gain, offset);
    int args[] = {bind_value(b, n->in[NORM_X]), bind_const(b, ELEM_INT32, count, gain, "gains"),
                  bind_const(b, ELEM_INT64, count, offset, "offsets"), bind_value(b, n->out[0])};
    if (!bind_call(b, n, bind_kernel(b, "norm_q", 2, types), &p, sizeof p, 4, args))
        return false;
    if (elem_bits(types[0]) == elem_bits(types[1]))
        bind_in_place(b, 0);
    return true;
}
