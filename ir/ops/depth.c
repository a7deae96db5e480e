/* DepthToSpace and SpaceToDepth: channels as blocks of a plane, and back. Mode CRD came with 11 and
 * 26; all else are types. */
#include "ir/ops/bind.h"

typedef struct DepthAttrs {
    int64_t blocksize;
    Str mode;
} DepthAttrs;

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(DepthAttrs, blocksize),
    A_WORD(DepthAttrs, mode, "DCR", "DCR CRD"),
    A_END,
};

static bool verify(const OpCtx *c) {
    const DepthAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    if (a->blocksize < 1 || a->blocksize > 32768)
        return op_error_attr(c, "blocksize", "blocksize must be from 1 to 32768, not %lld",
                             (long long)a->blocksize);
    return x.rank < 0 || x.rank == 4 || op_error_in(c, 0, "input must have rank 4, not %d", x.rank);
}

static bool divide(const OpCtx *c, int axis, int64_t by, Dim *out) {
    int64_t v = op_type(c, 0).dims[axis].value;
    if (v >= 0 && v % by)
        return op_error(c, "axis %d of length %lld does not divide into %lld", axis, (long long)v,
                        (long long)by);
    *out = v < 0 ? dim_unknown() : dim_of(v / by);
    return true;
}

static Dim times(Dim d, int64_t by) {
    return d.value < 0 ? (by == 1 ? d : dim_unknown()) : dim_of(dim_mul(d.value, by));
}

static bool depth_infer(OpCtx *c) {
    const DepthAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int64_t s = a->blocksize;
    if (x.rank < 0)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 4);
    dims[0] = x.dims[0];
    dims[2] = times(x.dims[2], s);
    dims[3] = times(x.dims[3], s);
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return divide(c, 1, s * s, &dims[1]);
}

static bool space_infer(OpCtx *c) {
    const DepthAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    int64_t s = a->blocksize;
    if (x.rank < 0)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 4);
    dims[0] = x.dims[0];
    dims[1] = times(x.dims[1], s * s);
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return divide(c, 2, s, &dims[2]) && divide(c, 3, s, &dims[3]);
}

static int move_axis(const OpCtx *c, int axis) {
    (void)c;
    return axis == 0 ? 0 : -1;
}

/* The operand seen as six dimensions, written in another order. */
static bool bind_six(Binder *b, const Node *n, const int32_t dims[6], const int order[6]) {
    if (!bind_equal_quant(n->in[0], n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    int32_t stride[6], step = 1;
    for (int i = 5; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
    qk_copy_nd_params p = {.rank = 6};
    step = 1;
    for (int i = 5; i >= 0; i--) {
        p.dim[i] = dims[order[i]];
        p.ss[i] = stride[order[i]];
        p.ds[i] = step;
        step *= p.dim[i];
    }
    ElemType e = bind_elem(n->in[0]);
    return bind_first(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p);
}

static bool depth_bind(Binder *b, const Node *n, const OpCtx *c) {
    const DepthAttrs *a = c->attrs;
    const Dim *x = n->in[0]->type.dims;
    int32_t s = (int32_t)a->blocksize, batch = (int32_t)x[0].value, h = (int32_t)x[2].value;
    int32_t w = (int32_t)x[3].value, depth = (int32_t)x[1].value / (s * s);
    if (str_is(a->mode, "CRD"))
        return bind_six(b, n, (int32_t[]){batch, depth, s, s, h, w}, (int[]){0, 1, 4, 2, 5, 3});
    return bind_six(b, n, (int32_t[]){batch, s, s, depth, h, w}, (int[]){0, 3, 4, 1, 5, 2});
}

static bool space_bind(Binder *b, const Node *n, const OpCtx *c) {
    const DepthAttrs *a = c->attrs;
    const Dim *x = n->in[0]->type.dims;
    int32_t s = (int32_t)a->blocksize, batch = (int32_t)x[0].value, depth = (int32_t)x[1].value;
    int32_t h = (int32_t)x[2].value / s, w = (int32_t)x[3].value / s;
    const int32_t dims[] = {batch, depth, h, s, w, s};
    return bind_six(b, n, dims,
                    str_is(a->mode, "CRD") ? (int[]){0, 1, 3, 5, 2, 4} : (int[]){0, 3, 5, 1, 2, 4});
}

const OpDef op_DepthToSpace = {
    .domain = "",
    .name = "DepthToSpace",
    .attrs_size = sizeof(DepthAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = depth_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = move_axis},
    .bind = depth_bind,
};

const OpDef op_SpaceToDepth = {
    .domain = "",
    .name = "SpaceToDepth",
    .attrs_size = sizeof(DepthAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = space_infer,
    .quant = {.kind = QUANT_MOVE, .data = 1, .move.axis = move_axis},
    .bind = space_bind,
};
