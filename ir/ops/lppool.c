/* LpPool and GlobalLpPool: the p-norm of windows. 18 added ceil_mode and dilations, whose defaults
 * mean the old operator; before 2 p was a float. */
#include "ir/ops/bind.h"
#include "ir/ops/pool.h"
#include "kernels/requant_host.h"

typedef struct LpPoolAttrs {
    WindowAttrs w; /* first: POOL_ATTRS */
    int64_t p;
} LpPoolAttrs;

static const AttrSpec attrs[] = {
    POOL_ATTRS(LpPoolAttrs),
    A_INT(LpPoolAttrs, p, 2),
    A_END,
};

static const AttrSpec global_attrs[] = {
    A_INT(LpPoolAttrs, p, 2),
    A_END,
};

static bool verify(const OpCtx *c) {
    const LpPoolAttrs *a = c->attrs;
    return op_number(c, "p", a->p) && pool_verify(c);
}

static bool global_verify(const OpCtx *c) {
    const LpPoolAttrs *a = c->attrs;
    return op_number(c, "p", a->p) && pool_global_verify(c);
}

/* Parameters of the integer kernel begin with those of the float one. */
_Static_assert(offsetof(qk_lppool_q_params, xz) == sizeof(qk_lppool_f32_params),
               "copied as they are");

static bool bind_integers(Binder *b, const Node *n, const qk_lppool_f32_params *of) {
    const Quant *x = op_quant(n->in[0]), *y = op_quant(n->out[0]);
    ElemType e = bind_elem(n->in[0]);
    if (!bind_one_storage(n) || elem_bits(e) > 16)
        return bind_in_double(b, n);
    qk_lppool_q_params p = {.xz = quant_zero(x), RESULT_PARAMS(y)};
    memcpy(&p, of, sizeof *of);
    double ratio = (double)quant_scale(x, 0) / (double)quant_scale(y, 0);
    requant_real(p.p == 2 ? ratio * ratio : ratio, &p.m, &p.shift);
    return bind_first(b, n, bind_kernel(b, "lppool_q", 1, &e), &p, sizeof p);
}

static bool bind_windows(Binder *b, const Node *n, const qk_lppool_f32_params *p) {
    if (bind_any_quant(n))
        return bind_integers(b, n, p);
    return bind_floats_only(b, n) && bind_first(b, n, "qk_lppool_f32", p, sizeof *p);
}

/* Fewer dimensions than three are the last ones. */
static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const LpPoolAttrs *a = c->attrs;
    Type x = n->in[0]->type, y = n->out[0]->type;
    Window w;
    Spatial s;
    if (!op_window(c, &a->w, x, NULL, &w) || !bind_spatial(b, n, &w, x, y, &s))
        return false;
    qk_lppool_f32_params p = {.planes = s.n * s.ic, .p = (int32_t)a->p};
    for (int i = 0; i < 3; i++) {
        WindowAxis axis = window_axis(&w, i - 3 + w.n, x, y);
        p.in[i] = axis.in;
        p.out[i] = axis.out;
        p.kernel[i] = axis.kernel;
        p.stride[i] = axis.stride;
        p.dilation[i] = axis.dilation;
        p.pad[i] = axis.begin;
    }
    return bind_windows(b, n, &p);
}

/* All of a plane, of any rank, is one row. */
static bool global_bind(Binder *b, const Node *n, const OpCtx *c) {
    const LpPoolAttrs *a = c->attrs;
    Type x = n->in[0]->type;
    int32_t plane = bind_extent(x, 2, x.rank);
    return bind_windows(b, n,
                        &(qk_lppool_f32_params){.planes = bind_extent(x, 0, 2),
                                                .p = (int32_t)a->p,
                                                .in = {1, 1, plane},
                                                .out = {1, 1, 1},
                                                .kernel = {1, 1, plane},
                                                .stride = {1, 1, 1},
                                                .dilation = {1, 1, 1}});
}

#define LP_POOL                                                                                    \
    .domain = "", .attrs_size = sizeof(LpPoolAttrs), .slices = op_slices_first,                    \
    .quant = {.kind = QUANT_COMPUTE,                                                               \
              .data = 1,                                                                           \
              .scaled.homogeneous = true,                                                          \
              .same_storage = true,                                                                \
              .prefers_float = SPANS_TOO_MUCH}

const OpDef op_LpPool = {LP_POOL,          .name = "LpPool",    .attrs = attrs,
                         .verify = verify, .infer = pool_infer, .bind = bind};
const OpDef op_GlobalLpPool = {LP_POOL,
                               .name = "GlobalLpPool",
                               .attrs = global_attrs,
                               .verify = global_verify,
                               .infer = pool_global_infer,
                               .bind = global_bind};
