/* DeformConv: a convolution that reads its input where offsets say. Only types changed. */
#include "ir/ops/conv.h"

enum { X, W, OFFSET, BIAS, MASK };

typedef struct DeformAttrs {
    ConvAttrs conv;
    int64_t offset_group;
} DeformAttrs;

static const AttrSpec attrs[] = {
    ATTR(DeformAttrs, conv.w.kernel_shape, "kernel_shape", ATTR_INTS, .required = false),
    ATTR(DeformAttrs, conv.w.strides, "strides", ATTR_INTS, .required = false),
    ATTR(DeformAttrs, conv.w.pads, "pads", ATTR_INTS, .required = false),
    ATTR(DeformAttrs, conv.w.dilations, "dilations", ATTR_INTS, .required = false),
    ATTR(DeformAttrs, conv.group, "group", ATTR_INT, .def_int = 1),
    A_INT(DeformAttrs, offset_group, 1),
    A_END,
};

/* As the Conv that it is without offsets. */
static OpCtx as_conv(const OpCtx *c) {
    const DeformAttrs *a = c->attrs;
    OpCtx conv = *c;
    Value **in = NEW_ARRAY(c->arena, Value *, 3);
    in[0] = op_in(c, X);
    in[1] = op_in(c, W);
    in[2] = op_in(c, BIAS);
    conv.in = in;
    conv.n_in = 3;
    conv.attrs = &a->conv;
    return conv;
}

/* Operand i is [N, offset groups x kernel x each, output...]. */
static bool moves_fit(const OpCtx *c, size_t i, int64_t each, const Window *w) {
    const DeformAttrs *a = c->attrs;
    Type x = op_type(c, X), t = op_type(c, i);
    int64_t want[MAX_RANK] = {x.dims[0].value, dim_mul(each, a->offset_group)};
    if (t.rank >= 0 && t.rank != x.rank)
        return op_error_in(c, i, "operand %zu has rank %d, the input %d", i, t.rank, x.rank);
    for (int k = 0; k < w->n; k++) {
        want[1] = want[1] < 0 || w->kernel[k] < 0 ? -1 : dim_mul(want[1], w->kernel[k]);
        want[k + 2] = w->out[k].value;
    }
    for (int k = 0; k < t.rank; k++)
        if (dim_differ(want[k], t.dims[k].value))
            return op_error_in(c, i, "dimension %d of operand %zu is %lld, must be %lld", k, i,
                               (long long)t.dims[k].value, (long long)want[k]);
    return true;
}

static bool verify(const OpCtx *c) {
    const DeformAttrs *a = c->attrs;
    OpCtx conv = as_conv(c);
    Type x = op_type(c, X), w = op_type(c, W);
    Window win;
    if (!op_number(c, "offset_group", a->offset_group) || !conv_verify(&conv))
        return false;
    if (x.rank < 0 || w.rank < 0)
        return true;
    if (x.dims[1].value >= 0 && x.dims[1].value % a->offset_group)
        return op_error_attr(c, "offset_group", "%lld channels do not divide into %lld groups",
                             (long long)x.dims[1].value, (long long)a->offset_group);
    return conv_window(&conv, &win) && moves_fit(c, OFFSET, win.n, &win) &&
           moves_fit(c, MASK, 1, &win);
}

static bool infer(OpCtx *c) {
    OpCtx conv = as_conv(c);
    return conv_infer(&conv);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const DeformAttrs *a = c->attrs;
    OpCtx conv = as_conv(c);
    Window win;
    Spatial s;
    if (!bind_floats_only(b, n) || !conv_window(&conv, &win) ||
        !bind_spatial(b, n, &win, n->in[X]->type, n->out[0]->type, &s))
        return false;
    if (win.n != 2)
        return bind_unsupported(b, n, "%d spatial dimensions; its kernel takes two", win.n);
    qk_deformconv_f32_params p = {WINDOW_PARAMS(&s), .c = s.ic, .m = s.oc,
                                  .group = (int32_t)a->conv.group,
                                  .offset_group = (int32_t)a->offset_group};
    size_t window = (size_t)s.ic * (size_t)s.kh * (size_t)s.kw;
    int work = bind_scratch(b, bind_real(b), 16 * window);
    bind_macs(b, (int64_t)bind_count(n->out[0]) * (int64_t)window / a->conv.group);
    return bind_call(b, n, "qk_deformconv_f32", &p, sizeof p, 7,
                     (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[W]),
                             bind_value(b, n->in[OFFSET]), bind_value(b, op_in(c, BIAS)),
                             bind_value(b, op_in(c, MASK)), work, bind_value(b, n->out[0])});
}

/* Samples one by one. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    (void)result;
    return axis == 0 && (i == X || i == OFFSET || i == MASK) ? 0 : -1;
}

const OpDef op_DeformConv = {
    .domain = "",
    .name = "DeformConv",
    .attrs_size = sizeof(DeformAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
