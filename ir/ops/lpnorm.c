/* LpNormalization: divides by the norm along an axis. Only types changed between opsets. */
#include <math.h>

#include "ir/ops/bind.h"

typedef struct LpAttrs {
    int64_t axis, p;
} LpAttrs;

static const AttrSpec attrs[] = {
    A_INT(LpAttrs, axis, -1),
    A_INT(LpAttrs, p, 2),
    A_END,
};

static bool verify(const OpCtx *c) {
    const LpAttrs *a = c->attrs;
    return a->p == 1 || a->p == 2 ||
           op_error_attr(c, "p", "p must be 1 or 2, not %lld", (long long)a->p);
}

/* 2^shift / sy to 30 bits, so that neither side of the divisions leaves 62: a norm has up to 31
 * where it is a root, else the bits of a sum of `n` numbers of `bits` bits. */
static void inverse_scale(float sy, int bits, int32_t n, int64_t p, qk_lpnorm_q_params *out) {
    int e = 0, len = 0;
    frexp(1.0 / (double)sy, &e);
    frexp((double)n, &len);
    int room = p == 2 ? 31 : 62 - bits - len, shift = 30 - e;
    out->shift = shift < 0 ? 0 : shift > room ? room : shift;
    out->inv = llrint(fmin(ldexp(1.0 / (double)sy, out->shift), 0x1p30));
}

static bool bind_quant(Binder *b, const Node *n, const qk_lpnorm_f32_params *r) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    if (!quant_plain(x) || !quant_plain(y))
        return bind_in_double(b, n);
    ElemType types[] = {bind_elem(n->in[0]), bind_elem(n->out[0])};
    qk_lpnorm_q_params p = {.outer = r->outer,
                            .n = r->n,
                            .inner = r->inner,
                            .p = r->p,
                            .xz = quant_zero(x),
                            RESULT_PARAMS(y)};
    inverse_scale(quant_scale(y, 0), elem_bits(types[0]), r->n, r->p, &p);
    return bind_first(b, n, bind_kernel(b, "lpnorm_q", 2, types), &p, sizeof p);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LpAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_lpnorm_f32_params p = {.outer = bind_extent(x, 0, axis),
                              .n = (int32_t)x.dims[axis].value,
                              .inner = bind_extent(x, axis + 1, x.rank),
                              .p = (int32_t)a->p};
    if (bind_any_quant(n))
        return bind_quant(b, n, &p);
    return bind_floats_only(b, n) && bind_first(b, n, "qk_lpnorm_f32", &p, sizeof p);
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const LpAttrs *a = c->attrs;
    int along;
    (void)result;
    return op_axis(c, a->axis, op_type(c, i).rank, &along) && axis != along ? axis : -1;
}

const OpDef op_LpNormalization = {
    .domain = "",
    .name = "LpNormalization",
    .attrs_size = sizeof(LpAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = op_same_type,
    .slices = slices,
    .quant = {.kind = QUANT_COMPUTE, .data = 1, .prefers_float = SPANS_TOO_MUCH},
    .bind = bind,
};
