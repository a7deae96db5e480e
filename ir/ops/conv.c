/* Conv and its QOperator form QLinearConv. */
#include "ir/ops/op.h"
#include "kernels_gen.h"

typedef struct ConvAttrs {
    WindowAttrs w;
    int64_t group;
} ConvAttrs;

static const AttrSpec attrs[] = {
    WINDOW_ATTRS(ConvAttrs),
    A_INT(ConvAttrs, group, 1),
    A_END,
};

enum { X, W, B };

static bool verify(const OpCtx *c) {
    const ConvAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    if (a->group < 1)
        return op_error(c, "group must be at least 1, not %lld", (long long)a->group);
    if (x.rank < 0 || w.rank < 0)
        return true;
    if (x.rank < 3)
        return op_error(c, "input must have rank 3 or more, not %d", x.rank);
    if (w.rank != x.rank)
        return op_error(c, "weights have rank %d, the input %d", w.rank, x.rank);
    int64_t channels = x.dims[1].value, per_group = w.dims[1].value, out = w.dims[0].value;
    if (channels >= 0 && per_group >= 0 && channels != per_group * a->group)
        return op_error(c, "input has %lld channels, weights want %lld (%lld x group %lld)",
                        (long long)channels, (long long)(per_group * a->group),
                        (long long)per_group, (long long)a->group);
    if (out >= 0 && out % a->group)
        return op_error(c, "%lld output channels do not divide into %lld groups", (long long)out,
                        (long long)a->group);
    Type b = op_type(c, B);
    if (b.rank >= 0 && out >= 0 && (b.rank != 1 || (b.dims[0].value >= 0 && b.dims[0].value != out)))
        return op_error(c, "bias must have shape [%lld]", (long long)out);
    return true;
}

static bool infer(OpCtx *c) {
    const ConvAttrs *a = c->attrs;
    Type x = op_type(c, X), w = op_type(c, W);
    if (x.rank < 3 || w.rank != x.rank)
        return true;
    int64_t kernel[MAX_RANK];
    for (int i = 2; i < w.rank; i++)
        kernel[i - 2] = w.dims[i].value;
    Window win;
    if (!op_window(c, &a->w, x, kernel, &win))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    dims[0] = x.dims[0];
    dims[1] = w.dims[0];
    for (int i = 0; i < win.n; i++)
        dims[2 + i] = win.out[i];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int weight_axis(const OpCtx *c) {
    (void)c;
    return 0; /* [M, C/group, k...] */
}

const OpDef op_Conv = {
    .domain = "",
    .name = "Conv",
    .attrs_size = sizeof(ConvAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .quant = {.kind = QUANT_MAC,
              .data = 1u << X,
              .weight = W,
              .bias = B,
              .weight_axis = weight_axis},
    .qop = {.domain = "", .op = "QLinearConv", .operands = "0* 1* y 2", .since = 10},
};
