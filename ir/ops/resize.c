/* Resize. Until opset 10 scales alone are given (operand 1), from 11 roi, scales and sizes; 18
 * added axes and a policy for the aspect ratio, 19 half_pixel_symmetric. To the nearest it moves
 * data; linear interpolation may keep the parameters too, as it stays between its operand's
 * numbers. */
#include "ir/ops/resize.h"

#include <math.h>

static const AttrSpec attrs[] = {
    A_WORD(ResizeAttrs, mode, "nearest", "nearest linear cubic"),
    ATTR(ResizeAttrs, coordinates, "coordinate_transformation_mode", ATTR_STRING,
         .def_str = "asymmetric",
         .words =
             "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric "
             "tf_crop_and_resize|tf_half_pixel_for_nn"), /* where the schema has none: opset 10 */
    ATTR(ResizeAttrs, nearest, "nearest_mode", ATTR_STRING, .def_str = "floor",
         .words = "round_prefer_floor round_prefer_ceil floor ceil|simple"),
    ATTR(ResizeAttrs, policy, "keep_aspect_ratio_policy", ATTR_STRING, .def_str = "stretch",
         .words = "stretch not_larger not_smaller"),
    A_FLOAT(ResizeAttrs, cubic_coeff_a, -0.75f),
    A_FLOAT(ResizeAttrs, extrapolation_value, 0.0f),
    A_FLAG(ResizeAttrs, antialias, 0),
    A_FLAG(ResizeAttrs, exclude_outside, 0),
    A_INTS(ResizeAttrs, axes),
    A_END,
};

static bool infer(OpCtx *c) {
    Type x = op_type(c, RESIZE_X);
    Extent e[MAX_RANK];
    bool known;
    if (x.rank < 0)
        return true;
    if (!resize_extents(c, e, &known))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++)
        dims[i] = !known || e[i].out < 0        ? dim_unknown()
                  : e[i].out == x.dims[i].value ? x.dims[i]
                                                : dim_of(e[i].out);
    for (int i = 0; known && i < x.rank; i++)
        if (e[i].scale == 1) /* an unknown length stays what it is */
            dims[i] = x.dims[i];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static int move_axis(const OpCtx *c, int axis) {
    Extent e[MAX_RANK];
    bool known;
    return axis < op_type(c, RESIZE_X).rank && resize_extents(c, e, &known) && known &&
                   e[axis].scale == 1
               ? axis
               : -1;
}

/* ---- where a result comes from ---- */

float resize_origin(Str how, Extent e, int64_t i) {
    float at = (float)i, in = (float)e.in, out = (float)e.out, exact = e.scale * in;
    if (str_is(how, "tf_crop_and_resize"))
        return e.out > 1 ? e.start * (in - 1) + at * (e.end - e.start) * (in - 1) / (out - 1)
                         : 0.5f * (e.start + e.end) * (in - 1);
    if (str_is(how, "asymmetric"))
        return at / e.scale;
    if (str_is(how, "align_corners"))
        return e.out == 1 ? 0 : at * (in - 1) / (out - 1); /* a whole length */
    if (str_is(how, "tf_half_pixel_for_nn"))
        return (at + 0.5f) / e.scale;
    if (str_is(how, "pytorch_half_pixel") && e.out <= 1)
        return 0;
    float half = (at + 0.5f) / e.scale - 0.5f;
    if (str_is(how, "half_pixel_symmetric"))
        return in / 2 * (1 - out / exact) + half;
    return half;
}

bool resize_keeps(Extent e) {
    return e.scale == 1 && e.in == e.out && e.start == 0 && e.end == 1;
}

static int64_t within(int64_t v, int64_t length) {
    return v < 0 ? 0 : v >= length ? length - 1 : v;
}

int64_t resize_nearest(Str how, float at) {
    if (str_is(how, "floor"))
        return (int64_t)floorf(at);
    if (str_is(how, "ceil"))
        return (int64_t)ceilf(at);
    if (str_is(how, "round_prefer_ceil"))
        return (int64_t)floorf(at + 0.5f);
    return (int64_t)ceilf(at - 0.5f);
}

/* Opset 10 took the lower neighbour along an axis, or the upper one where it made it shorter. */
static Str nearest_of(const OpCtx *c, const ResizeAttrs *a, const Extent *e) {
    return c->opset < 11 && e->scale < 1 ? STR("ceil") : a->nearest;
}

static bool bind_nearest(Binder *b, const Node *n, const OpCtx *c, const Extent *e) {
    const ResizeAttrs *a = c->attrs;
    int64_t *from[MAX_RANK];
    for (int i = 0; i < n->in[RESIZE_X]->type.rank; i++) {
        Str how = nearest_of(c, a, &e[i]);
        from[i] = NEW_ARRAY(binder_arena(b), int64_t, (size_t)e[i].out + 1);
        for (int64_t k = 0; k < e[i].out; k++)
            from[i][k] =
                e[i].scale == 1
                    ? k
                    : within(resize_nearest(how, resize_origin(a->coordinates, e[i], k)), e[i].in);
    }
    return bind_take(b, n, n->in[RESIZE_X], n->out[0], from);
}

static bool interpolates(const OpCtx *c) {
    return !str_is(((const ResizeAttrs *)c->attrs)->mode, "nearest");
}

static bool needs_taps(const ResizeAttrs *a) {
    return str_is(a->mode, "cubic") || str_is(a->coordinates, "tf_crop_and_resize") ||
           (a->antialias && str_is(a->mode, "linear"));
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ResizeAttrs *a = c->attrs;
    Extent e[MAX_RANK];
    bool known;
    if (!resize_extents(c, e, &known))
        return false;
    if (!known)
        return bind_unsupported(b, n, "its sizes are not constant");
    if (!bind_equal_quant(n->in[RESIZE_X], n->out[0]) && !interpolates(c) && !needs_taps(a))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (bind_count(n->in[RESIZE_X]) == 0)
        return bind_unsupported(b, n, "its operand is empty");
    if (needs_taps(a))
        return resize_taps_bind(b, n, a, e);
    return interpolates(c) ? resize_linear_bind(b, n, a, e) : bind_nearest(b, n, c, e);
}

/* ---- quantization ---- */

static const char *integer_refusal(const OpCtx *c, const Quant *x) {
    return interpolates(c) && x && elem_bits(x->storage) > 16
               ? "linear interpolation has integer kernels of up to 16 bits"
               : NULL;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return i == RESIZE_X ? move_axis(c, axis) : -1;
}

/* Cubic convolution leaves the range of its operand, and beside that may be a value of its own. */
static const OpDef *form(const Node *n);

#define RESIZE                                                                                     \
    .domain = "", .name = "Resize", .shapes = 1u << RESIZE_SIZES, .fixed = 0xe,                    \
    .attrs_size = sizeof(ResizeAttrs), .attrs = attrs, .infer = infer, .upgrade = resize_upgrade,  \
    .bind = bind

const OpDef op_Resize = {RESIZE, .form = form,
                         .quant = {.kind = QUANT_MOVE,
                                   .data = 1u << RESIZE_X,
                                   .move.axis = move_axis,
                                   .move.interpolates = interpolates,
                                   .integer_refusal = integer_refusal}};

static const OpDef beyond_range = {RESIZE, .slices = slices,
                                   .quant = {.kind = QUANT_COMPUTE,
                                             .data = 1u << RESIZE_X,
                                             .move.axis = move_axis,
                                             .move.interpolates = interpolates,
                                             .prefers_float = GAINS_NOTHING}};

static const OpDef *form(const Node *n) {
    const ResizeAttrs *a = n->typed;
    return str_is(a->mode, "cubic") || str_is(a->coordinates, "tf_crop_and_resize") ? &beyond_range
                                                                                    : &op_Resize;
}
