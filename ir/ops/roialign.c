/* RoiAlign. 16 added coordinate_transformation_mode, and half a pixel is its default: before, boxes
 * were taken as they are. */
#include "ir/ops/bind.h"

enum { X, BOXES, INDEX };

/* Places along an axis of a bin; far more than anybody asks for. */
enum { MOST_SAMPLES = 1024 };

typedef struct RoiAttrs {
    Str mode, coordinate_transformation_mode;
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
} RoiAttrs;

static const AttrSpec attrs[] = {
    A_WORD(RoiAttrs, mode, "avg", "avg max"),
    A_WORD(RoiAttrs, coordinate_transformation_mode, "output_half_pixel",
           "half_pixel output_half_pixel"),
    A_INT(RoiAttrs, output_height, 1),
    A_INT(RoiAttrs, output_width, 1),
    A_INT(RoiAttrs, sampling_ratio, 0),
    A_FLOAT(RoiAttrs, spatial_scale, 1.0f),
    A_END,
};

/* The dimension is known, and another. */
static bool differs(Type t, int i, int64_t than) {
    return t.rank > i && dim_differ(t.dims[i].value, than);
}

static bool verify(const OpCtx *c) {
    const RoiAttrs *a = c->attrs;
    Type x = op_type(c, X), boxes = op_type(c, BOXES), index = op_type(c, INDEX);
    if (!op_number(c, "output_height", a->output_height) ||
        !op_number(c, "output_width", a->output_width))
        return false;
    if (a->sampling_ratio < 0 || a->sampling_ratio > MOST_SAMPLES)
        return op_error_attr(c, "sampling_ratio", "sampling_ratio must be from 0 to %d, not %lld",
                             MOST_SAMPLES, (long long)a->sampling_ratio);
    if (x.rank >= 0 && x.rank != 4)
        return op_error_in(c, X, "input must have rank 4, not %d", x.rank);
    if (boxes.rank >= 0 && (boxes.rank != 2 || differs(boxes, 1, 4)))
        return op_error_in(c, BOXES, "%s is not a list of boxes, of 4 numbers each",
                           type_text(c->arena, boxes));
    if (index.rank >= 0 && index.rank != 1)
        return op_error_in(c, INDEX, "operand 2 must have rank 1, not %d", index.rank);
    return boxes.rank < 0 || !differs(index, 0, boxes.dims[0].value) ||
           op_error_in(c, INDEX, "there are %lld images for %lld boxes",
                       (long long)index.dims[0].value, (long long)boxes.dims[0].value);
}

static bool infer(OpCtx *c) {
    const RoiAttrs *a = c->attrs;
    Type x = op_type(c, X), boxes = op_type(c, BOXES), index = op_type(c, INDEX);
    Dim *dims = NEW_ARRAY(c->arena, Dim, 4);
    if (x.kind != TYPE_TENSOR)
        return true;
    dims[0] = index.rank == 1 ? index.dims[0] : dim_unknown();
    if (boxes.rank == 2 && dims[0].value < 0)
        dims[0] = boxes.dims[0];
    dims[1] = x.rank == 4 ? x.dims[1] : dim_unknown();
    dims[2] = dim_of(a->output_height);
    dims[3] = dim_of(a->output_width);
    c->out[0] = type_tensor(type_real_elem(x), 4, dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const RoiAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    if (bind_any_quant(n) || x.elem != bind_real(b))
        return bind_unsupported(b, n, "only float has a kernel");
    qk_roialign_f32_params p = {.rois = bind_extent(n->in[BOXES]->type, 0, 1),
                                .batch = (int32_t)x.dims[0].value,
                                .channels = (int32_t)x.dims[1].value,
                                .h = (int32_t)x.dims[2].value,
                                .w = (int32_t)x.dims[3].value,
                                .oh = (int32_t)a->output_height,
                                .ow = (int32_t)a->output_width,
                                .samples = (int32_t)a->sampling_ratio,
                                .half_pixel =
                                    str_is(a->coordinate_transformation_mode, "half_pixel"),
                                .largest = str_is(a->mode, "max"),
                                .scale = a->spatial_scale};
    if (!bind_call(b, n, "qk_roialign_f32", &p, sizeof p, 4,
                   (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[BOXES]),
                           bind_value(b, n->in[INDEX]), bind_value(b, n->out[0])}))
        return false;
    bind_within(b, n->in[INDEX], false, &p.batch, 1);
    return true;
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)names;
    (void)d;
    if (from < 16 && to >= 16)
        node_set_string(n, "coordinate_transformation_mode", STR("output_half_pixel"));
    return true;
}

/* Boxes one by one. */
static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    (void)result;
    return i != X && axis == 0 ? 0 : i == X && axis == 1 ? 1 : -1;
}

const OpDef op_RoiAlign = {
    .domain = "",
    .name = "RoiAlign",
    .attrs_size = sizeof(RoiAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .upgrade = upgrade,
    .bind = bind,
};
