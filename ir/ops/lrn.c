/* LRN: divides by a power of the sum of squares in channels around. Only types changed (13). */
#include "ir/ops/overlay.h"

#include <math.h>

typedef struct LrnAttrs {
    float alpha, beta, bias;
    int64_t size;
} LrnAttrs;

static const AttrSpec attrs[] = {
    A_FLOAT(LrnAttrs, alpha, 1e-4f),
    A_FLOAT(LrnAttrs, beta, 0.75f),
    A_FLOAT(LrnAttrs, bias, 1.0f),
    A_INT_REQUIRED(LrnAttrs, size),
    A_END,
};

static bool verify(const OpCtx *c) {
    const LrnAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (!op_number(c, "size", a->size))
        return false;
    return x.rank < 0 || x.rank >= 2 ||
           op_error_in(c, 0, "input must have rank 2 or more, not %d", x.rank);
}

/* Works front to back over windows of channels: the result may lie over the operand. */
static void lay_over(Binder *b, const qk_lrn_f32_params *p, ElemType x, ElemType y) {
    Spatial s = {.n = p->n,
                 .ic = 1,
                 .ih = p->c,
                 .iw = p->inner,
                 .oc = 1,
                 .oh = p->c,
                 .ow = p->inner,
                 .kh = p->size,
                 .kw = 1,
                 .sh = 1,
                 .sw = 1,
                 .dh = 1,
                 .dw = 1,
                 .pt = (p->size - 1) / 2};
    bind_over(b, 0, lead_window(&s, x, y, 0));
}

/* ---- on integers: a table of powers (kernels/normalize/lrn_q.qk) ---- */

enum { TOP = 62, MOST_BITS = 12 };

/* With bias 0 or less there is nothing to divide by where all is 0. */
static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    const LrnAttrs *a = c->attrs;
    (void)x;
    if (!(a->bias > 0 && a->alpha >= 0) || !isfinite(a->bias) || !isfinite(a->alpha))
        return "what it divides by may be 0 or less";
    return fabsf(a->beta) <= 4 ? NULL : "its beta is beyond 4";
}

/* Entries an octave, as a power of two: what quadratic interpolation gets wrong is 2^-13 of a step
 * of the greatest result. */
static int32_t table_bits(double beta, int width) {
    double third = 0.065 * fabs(beta * (beta + 1) * (beta + 2));
    int32_t bits = 3;
    while (bits < MOST_BITS && ldexp(third, -3 * bits) > ldexp(1, -width - 13))
        bits++;
    return bits;
}

/* Pairs of a factor of 31 bits and a shift, for each octave below the top one. */
static void fit_octaves(int32_t *out, size_t n, double ratio, double beta, int top) {
    for (size_t i = 0; i < n; i++) {
        double power = log2(fabs(ratio)) - beta * (double)(top - (int)i);
        int e = (int)fmax(-200, fmin(floor(power) + 1, 200));
        double factor = fmin(round(exp2(power - e + 31)), INT32_MAX);
        int shift = 31 - e;
        factor = shift > TOP ? 0 : shift < 0 ? INT32_MAX : factor;
        out[2 * i] = (int32_t)(ratio < 0 ? -factor : factor);
        out[2 * i + 1] = shift > TOP || shift < 0 ? 0 : shift;
    }
}

/* x is float(d), d whole steps of sx; so the base is bias + alpha / size * sx^2 * sum(d^2), which
 * is kept with 62 bits. */
static bool bind_integers(Binder *b, const Node *n, const OpCtx *c, const qk_lrn_f32_params *f) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    if (!quant_plain(x) || !quant_plain(y) || integer_refusal(c, x))
        return bind_in_double(b, n);
    double sx = (double)quant_scale(x, 0), beta = (double)f->beta, bias = (double)f->bias;
    double span = (double)(elem_max(types[0]) - elem_min(types[0]));
    double most = span * span * (f->size < f->c ? f->size : f->c);
    double by = (double)f->alpha / f->size * sx * sx, norm = fmax(1, exp2(-beta));
    if (most > 0x1p38)
        return bind_in_double_as(b, n, "its windows are too long for sums of squares");
    int e;
    frexp((bias + by * most) * (1 + 0x1p-20), &e);
    qk_lrn_q_params p = {.n = f->n,
                         .c = f->c,
                         .inner = f->inner,
                         .size = f->size,
                         .xz = quant_zero(x),
                         RESULT_PARAMS(y),
                         .bits = table_bits(beta, elem_bits(types[1])),
                         .bias = llrint(ldexp(bias, TOP - e)),
                         .factor = llrint(ldexp(by, TOP - e))};
    if (p.bias == 0)
        return bind_in_double_as(b, n, "its bias is nothing beside its sums of squares");
    size_t entries = ((size_t)1 << p.bits) + 2, octaves = 1;
    for (int64_t v = p.bias; v < (int64_t)1 << (TOP - 1); v <<= 1)
        octaves++;
    int32_t *table = NEW_ARRAY(binder_arena(b), int32_t, entries + 2 * octaves);
    for (size_t i = 0; i < entries; i++) {
        double m = 1 + ldexp((double)i, -p.bits);
        table[i] = (int32_t)lrint(ldexp(pow(m, -beta) / norm, 30));
    }
    fit_octaves(table + entries, octaves, norm * sx / (double)quant_scale(y, 0), beta, e - 1);
    int args[] = {bind_value(b, n->in[0]),
                  bind_const(b, ELEM_INT32, entries + 2 * octaves, table, "powers"),
                  bind_value(b, n->out[0])};
    if (!bind_call(b, n, bind_kernel(b, "lrn_q", 2, types), &p, sizeof p, 3, args))
        return false;
    lay_over(b, f, types[0], types[1]);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LrnAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    qk_lrn_f32_params p = {.n = (int32_t)x.dims[0].value,
                           .c = (int32_t)x.dims[1].value,
                           .inner = bind_extent(x, 2, x.rank),
                           .size = (int32_t)a->size,
                           .alpha = a->alpha,
                           .beta = a->beta,
                           .bias = a->bias};
    if (bind_any_quant(n))
        return bind_integers(b, n, c, &p);
    if (!bind_floats_only(b, n) || !bind_first(b, n, "qk_lrn_f32", &p, sizeof p))
        return false;
    lay_over(b, &p, bind_real(b), bind_real(b));
    return true;
}

const OpDef op_LRN = {
    .domain = "",
    .name = "LRN",
    .attrs_size = sizeof(LrnAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_COMPUTE,
              .data = 1,
              .prefers_float = GAINS_NOTHING,
              .integer_refusal = integer_refusal},
    .bind = bind,
};
