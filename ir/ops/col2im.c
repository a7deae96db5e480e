/* Col2Im: windows laid back onto the image that they were taken from, and added up. */
#include "ir/ops/bind.h"

enum { X, IMAGE, BLOCK };

typedef struct ColAttrs {
    Ints strides, dilations, pads;
} ColAttrs;

static const AttrSpec attrs[] = {
    A_INTS(ColAttrs, strides),
    A_INTS(ColAttrs, dilations),
    A_INTS(ColAttrs, pads),
    A_END,
};

/* Spatial dimensions, as far as operands tell; -1: not known. */
static int spatial_rank(const OpCtx *c) {
    for (size_t i = IMAGE; i <= BLOCK; i++) {
        Type t = op_type(c, i);
        if (t.rank == 1 && t.dims[0].value >= 0 && t.dims[0].value <= MAX_RANK - 2)
            return (int)t.dims[0].value;
    }
    return -1;
}

static bool list_fits(const OpCtx *c, size_t i, int n) {
    Type t = op_type(c, i);
    Ints list;
    if (t.rank >= 0 && (t.rank != 1 || (t.dims[0].value >= 0 && t.dims[0].value != n)))
        return op_error_in(c, i, "%s is not a list of %d lengths", type_text(c->arena, t), n);
    for (size_t k = 0; op_ints(c, i, &list) && k < list.n; k++)
        if (list.v[k] < 1 || list.v[k] > INT32_MAX)
            return op_error_in(c, i, "length %zu is %lld", k, (long long)list.v[k]);
    return true;
}

/* At how many places windows lie along axis i of the image; below 1: it is shorter than one. */
static int64_t places(const ColAttrs *a, Ints image, Ints block, size_t i) {
    int64_t pads = a->pads.v ? dim_add(a->pads.v[i], a->pads.v[i + image.n]) : 0;
    int64_t span = dim_mul(block.v[i] - 1, a->dilations.v ? a->dilations.v[i] : 1) + 1;
    int64_t room = dim_add(image.v[i], pads) - span;
    return room < 0 ? 0 : room / (a->strides.v ? a->strides.v[i] : 1) + 1;
}

static bool verify(const OpCtx *c) {
    const ColAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int rank = spatial_rank(c);
    Ints image, block;
    int64_t elements = 1, windows = 1;
    if (x.rank >= 0 && x.rank != 3)
        return op_error_in(c, X, "input must have rank 3, not %d", x.rank);
    for (size_t i = IMAGE; i <= BLOCK; i++) {
        Type t = op_type(c, i);
        if (t.rank == 1 && t.dims[0].value > MAX_RANK - 2)
            return op_error_in(c, i, "%lld lengths are more than tensors have dimensions here",
                               (long long)t.dims[0].value);
    }
    if (rank < 0)
        return true;
    size_t n = (size_t)rank;
    if (!list_fits(c, IMAGE, rank) || !list_fits(c, BLOCK, rank) ||
        !op_list_fits(c, "strides", a->strides, n, 1) ||
        !op_list_fits(c, "dilations", a->dilations, n, 1) ||
        !op_list_fits(c, "pads", a->pads, 2 * n, 0))
        return false;
    if (x.rank < 0 || !op_ints(c, BLOCK, &block))
        return true;
    for (size_t i = 0; i < n; i++)
        elements = dim_mul(elements, block.v[i]);
    if (x.dims[1].value >= 0 && x.dims[1].value % elements)
        return op_error_in(c, X, "%lld channels are no multiple of %lld, the elements of a block",
                           (long long)x.dims[1].value, (long long)elements);
    if (!op_ints(c, IMAGE, &image))
        return true;
    for (size_t i = 0; i < n; i++)
        windows = dim_mul(windows, places(a, image, block, i));
    if (windows == 0)
        return op_error_in(c, IMAGE, "the image is smaller than a block");
    return x.dims[2].value < 0 || x.dims[2].value == windows ||
           op_error_in(c, X, "there are %lld blocks, and %lld places in the image",
                       (long long)x.dims[2].value, (long long)windows);
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, X);
    int rank = spatial_rank(c);
    Ints image, block;
    bool sized = op_ints(c, IMAGE, &image), parts = op_ints(c, BLOCK, &block);
    if (x.kind != TYPE_TENSOR)
        return true;
    if (rank < 0 || rank + 2 > MAX_RANK) {
        c->out[0] = type_tensor(type_real_elem(x), -1, NULL);
        return true;
    }
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)rank + 2);
    dims[0] = x.rank == 3 ? x.dims[0] : dim_unknown();
    dims[1] = dim_unknown();
    if (x.rank == 3 && parts && x.dims[1].value >= 0) {
        int64_t elements = 1;
        for (size_t i = 0; i < block.n; i++)
            elements = dim_mul(elements, block.v[i]);
        dims[1] = dim_of(x.dims[1].value / elements);
    }
    for (int i = 0; i < rank; i++)
        dims[i + 2] = sized ? dim_of(image.v[i]) : dim_unknown();
    c->out[0] = type_tensor(type_real_elem(x), rank + 2, dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ColAttrs *a = c->attrs;
    Ints image, block;
    ElemType e = bind_elem(n->in[X]);
    if (bind_any_quant(n))
        return bind_unsupported(b, n, "it is quantized; only plain numbers have a kernel");
    if (!op_ints(c, IMAGE, &image) || !op_ints(c, BLOCK, &block))
        return bind_unsupported(b, n, "the shapes of its image and blocks are not constant");
    qk_col2im_params p = {.planes = bind_extent(n->out[0]->type, 0, 2), .rank = (int32_t)image.n};
    for (size_t i = 0; i < image.n; i++) {
        p.image[i] = (int32_t)image.v[i];
        p.block[i] = (int32_t)block.v[i];
        p.blocks[i] = (int32_t)places(a, image, block, i);
        p.stride[i] = a->strides.v ? (int32_t)a->strides.v[i] : 1;
        p.dilation[i] = a->dilations.v ? (int32_t)a->dilations.v[i] : 1;
        p.pad[i] = a->pads.v ? (int32_t)a->pads.v[i] : 0;
    }
    return bind_first(b, n, bind_kernel(b, "col2im", 1, &e), &p, sizeof p);
}

const OpDef op_Col2Im = {
    .domain = "",
    .name = "Col2Im",
    .attrs_size = sizeof(ColAttrs),
    .attrs = attrs,
    .fixed = 1u << IMAGE | 1u << BLOCK,
    .verify = verify,
    .infer = infer,
    .slices = op_slices_first,
    .bind = bind,
};
