/* ConvInteger: int32 sums of products of 8-bit integers, each less its zero point. Opset 10. Where
 * its result becomes float, passes raise it to Conv on quantized types; what they leave runs as it
 * stands. */
#include "ir/ops/conv.h"
#include "kernels/requant_host.h"

enum { X, W, X_ZP, W_ZP, MOST_TERMS = 1 << 15, UNFOLD_BYTES = 32 * 1024 };

/* Without the zero points, which are no bias. */
static OpCtx as_conv(const OpCtx *c) {
    OpCtx conv = *c;
    conv.n_in = c->n_in < 2 ? c->n_in : 2;
    return conv;
}

static bool is_one(Type z) {
    return z.rank < 1 || (z.rank == 1 && (z.dims[0].value == 1 || z.dims[0].value < 0));
}

static bool verify(const OpCtx *c) {
    OpCtx conv = as_conv(c);
    Type z = op_type(c, W_ZP), w = op_type(c, W);
    if (!conv_verify(&conv))
        return false;
    if (!is_one(op_type(c, X_ZP)))
        return op_error_in(c, X_ZP, "the zero point of the input must be one number");
    if (is_one(z) || w.rank < 1)
        return true;
    if (z.rank != 1 || (w.dims[0].value >= 0 && z.dims[0].value != w.dims[0].value))
        return op_error_in(c, W_ZP, "zero points of the weights must be one, or %lld",
                           (long long)w.dims[0].value);
    return true;
}

static bool infer(OpCtx *c) {
    OpCtx conv = as_conv(c);
    if (!conv_infer(&conv))
        return false;
    if (c->out[0].kind == TYPE_TENSOR)
        c->out[0].elem = ELEM_INT32;
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ConvAttrs *a = c->attrs;
    OpCtx conv = as_conv(c);
    Window win;
    Spatial s;
    if (!conv_window(&conv, &win) || !bind_spatial(b, n, &win, n->in[X]->type, n->out[0]->type, &s))
        return false;
    if (win.n > 2)
        return bind_unsupported(b, n, "three spatial dimensions; its kernel takes one or two");
    int32_t len = s.ic / (int32_t)a->group * s.kh * s.kw;
    ElemType e = len > MOST_TERMS ? ELEM_INT32 : ELEM_INT16;
    const Value *wz = op_in(c, W_ZP);
    qk_conv_integer_params p = {WINDOW_PARAMS(&s), .ic = s.ic, .oc = s.oc,
                                .group = (int32_t)a->group, .wz_step = wz && bind_count(wz) > 1};
    p.tile = conv2d_tile(s.oh * s.ow, len, elem_bits(e) / 8, UNFOLD_BYTES, 1);
    ElemType types[] = {bind_elem(n->in[X]), bind_elem(n->in[W]), e};
    bind_macs(b, (int64_t)bind_count(n->out[0]) * len);
    int args[] = {bind_value(b, n->in[X]),
                  bind_value(b, n->in[W]),
                  bind_value(b, op_in(c, X_ZP)),
                  bind_value(b, wz),
                  bind_value(b, n->out[0]),
                  bind_scratch(b, e, (size_t)p.tile * (size_t)len),
                  bind_scratch(b, e, 4 * (size_t)len),
                  bind_scratch(b, e == ELEM_INT16 ? ELEM_INT32 : ELEM_INT64, 4 * (size_t)p.tile)};
    return bind_call(b, n, bind_kernel(b, "conv_integer", 3, types), &p, sizeof p, 8, args);
}

const OpDef op_ConvInteger = {
    .domain = "",
    .name = "ConvInteger",
    .attrs_size = sizeof(ConvAttrs),
    .attrs = conv_attrs,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_first,
    .bind = bind,
};
