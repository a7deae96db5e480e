/* MaxRoiPool: the largest elements of the bins of boxes, each with the number of its image in
 * front. 22 added bfloat16. */
#include "ir/ops/bind.h"

enum { X, BOXES };

typedef struct MaxRoiAttrs {
    Ints pooled_shape;
    float spatial_scale;
} MaxRoiAttrs;

static const AttrSpec attrs[] = {
    A_INTS_REQUIRED(MaxRoiAttrs, pooled_shape),
    A_FLOAT(MaxRoiAttrs, spatial_scale, 1.0f),
    A_END,
};

static bool verify(const OpCtx *c) {
    const MaxRoiAttrs *a = c->attrs;
    Type x = op_type(c, X), boxes = op_type(c, BOXES);
    if (a->pooled_shape.n != 2)
        return op_error_attr(c, "pooled_shape", "pooled_shape has %zu numbers, must have 2",
                             a->pooled_shape.n);
    for (size_t i = 0; i < 2; i++)
        if (!op_number(c, "pooled_shape", a->pooled_shape.v[i]))
            return false;
    if (x.rank >= 0 && x.rank != 4)
        return op_error_in(c, X, "input must have rank 4, not %d", x.rank);
    bool listed = boxes.rank == 2 && !dim_differ(boxes.dims[1].value, 5);
    return boxes.rank < 0 || listed ||
           op_error_in(c, BOXES, "%s is not a list of boxes, of 5 numbers each",
                       type_text(c->arena, boxes));
}

static bool infer(OpCtx *c) {
    const MaxRoiAttrs *a = c->attrs;
    Type x = op_type(c, X), boxes = op_type(c, BOXES);
    if (x.kind != TYPE_TENSOR)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, 4);
    dims[0] = boxes.rank == 2 ? boxes.dims[0] : dim_unknown();
    dims[1] = x.rank == 4 ? x.dims[1] : dim_unknown();
    dims[2] = dim_of(a->pooled_shape.v[0]);
    dims[3] = dim_of(a->pooled_shape.v[1]);
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const MaxRoiAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    if (bind_any_quant(n) || x.elem != bind_real(b))
        return bind_unsupported(b, n, "only float has a kernel");
    qk_maxroipool_f32_params p = {.rois = bind_extent(n->in[BOXES]->type, 0, 1),
                                  .batch = (int32_t)x.dims[0].value,
                                  .channels = (int32_t)x.dims[1].value,
                                  .h = (int32_t)x.dims[2].value,
                                  .w = (int32_t)x.dims[3].value,
                                  .oh = (int32_t)a->pooled_shape.v[0],
                                  .ow = (int32_t)a->pooled_shape.v[1],
                                  .scale = a->spatial_scale};
    return bind_call(
        b, n, "qk_maxroipool_f32", &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[BOXES]), bind_value(b, n->out[0])});
}

/* Boxes one by one. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    (void)result;
    return i == BOXES && axis == 0 ? 0 : i == X && axis == 1 ? 1 : -1;
}

const OpDef op_MaxRoiPool = {
    .domain = "",
    .name = "MaxRoiPool",
    .attrs_size = sizeof(MaxRoiAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
