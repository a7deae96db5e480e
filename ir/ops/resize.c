/* Resize, and Upsample, which became Resize with opset 10. Resize: until 10 scales alone are given
 * (operand 1), from 11 roi, scales and sizes; 18 added axes and a policy for the aspect ratio, 19
 * half_pixel_symmetric. To the nearest it moves data; linear interpolation may keep the parameters
 * too, as it stays between its operand's numbers. */
#include "ir/ops/resize.h"
#include "ir/provenance.h"

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

enum { X, ROI, SCALES, SIZES };

/* ---- sizes ---- */

static size_t scales_at(const OpCtx *c) {
    return c->opset < 11 ? 1 : SCALES;
}

/* The length of an axis of length `in` after scaling; onnxruntime multiplies in float. */
static bool scaled(const OpCtx *c, float scale, Extent *e) {
    if (!(scale > 0 && scale < 1e9f))
        return op_error_param(c, "scales", scales_at(c), "a scale must be positive, not %g",
                              (double)scale);
    e->scale = scale;
    e->out = e->in < 0 ? -1 : (int64_t)(scale * (float)e->in);
    return true;
}

static bool resized(const OpCtx *c, int64_t size, Extent *e) {
    if (size < 1 || size > INT32_MAX)
        return op_error_param(c, "sizes", SIZES, "size %lld is out of range", (long long)size);
    e->out = size;
    e->scale = e->in > 0 ? (float)size / (float)e->in : e->in < 0 ? 0 : 1; /* 0: not known */
    return true;
}

/* The part of each axis that tf_crop_and_resize takes. */
static bool crop(const OpCtx *c, const ResizeAttrs *a, Extent *e, int rank) {
    const Tensor *roi = op_const(c, ROI);
    size_t n = a->axes.v ? a->axes.n : (size_t)rank;
    if (!str_is(a->coordinates, "tf_crop_and_resize") || !roi || !roi->data)
        return true;
    if (roi->count != 2 * n)
        return op_error_in(c, ROI, "%zu numbers for the starts and ends of %zu axes", roi->count,
                           n);
    for (size_t i = 0; i < n; i++) {
        int64_t axis = a->axes.v ? a->axes.v[i] : (int64_t)i;
        e[axis < 0 ? axis + rank : axis].start = (float)tensor_float(roi, i);
        e[axis < 0 ? axis + rank : axis].end = (float)tensor_float(roi, n + i);
    }
    return true;
}

/* One scale for all axes, the largest that stays within the sizes, or the smallest that covers
 * them. It follows from all lengths. */
static void keep_ratio(const ResizeAttrs *a, Extent *e, const bool *set, int rank) {
    bool larger = str_is(a->policy, "not_smaller"), first = true, known = true;
    float scale = 1;
    if (!larger && !str_is(a->policy, "not_larger"))
        return;
    for (int i = 0; i < rank; i++)
        known = known && (!set[i] || e[i].in >= 0);
    for (int i = 0; i < rank; i++)
        if (set[i] && (first || (e[i].scale > scale) == larger)) {
            scale = e[i].scale;
            first = false;
        }
    for (int i = 0; i < rank; i++)
        if (set[i]) {
            float out = scale * (float)e[i].in + 0.5f;
            int64_t most = (int64_t)1 << 31; /* more than runs */
            e[i].scale = known ? scale : 0;
            e[i].out = !known ? -1 : out < 0x1p31f ? (int64_t)out : most;
        }
}

/* Each axis before and after; `known` is false where that is computed at run time. */
static bool extents(const OpCtx *c, Extent *e, bool *known) {
    const ResizeAttrs *a = c->attrs;
    Type x = op_type(c, X);
    const Tensor *scales = op_const(c, scales_at(c));
    Ints sizes = {NULL, 0};
    bool set[MAX_RANK];
    *known = (scales && scales->data && scales->count) ||
             (c->opset >= 11 && op_ints(c, SIZES, &sizes) && sizes.n);
    if (!*known)
        return true;
    if (!op_axes(c, a->axes, SIZES, x.rank, set))
        return false;
    size_t n = a->axes.v ? a->axes.n : (size_t)x.rank, have = sizes.n ? sizes.n : scales->count;
    if (have != n)
        return op_error_in(c, sizes.n ? SIZES : scales_at(c), "%zu %s for %zu axes", have,
                           sizes.n ? "sizes" : "scales", n);
    for (int i = 0; i < x.rank; i++)
        e[i] = (Extent){x.dims[i].value, x.dims[i].value, 1, 0, 1};
    for (size_t i = 0; i < n; i++) {
        int64_t axis = a->axes.v ? a->axes.v[i] : (int64_t)i;
        axis += axis < 0 ? x.rank : 0;
        set[axis] = true;
        if (sizes.n ? !resized(c, sizes.v[i], &e[axis])
                    : !scaled(c, (float)tensor_float(scales, i), &e[axis]))
            return false;
    }
    if (sizes.n)
        keep_ratio(a, e, set, x.rank);
    return crop(c, a, e, x.rank);
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, X);
    Extent e[MAX_RANK];
    bool known;
    if (x.rank < 0)
        return true;
    if (!extents(c, e, &known))
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
    return axis < op_type(c, X).rank && extents(c, e, &known) && known && e[axis].scale == 1 ? axis
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
    for (int i = 0; i < n->in[X]->type.rank; i++) {
        Str how = nearest_of(c, a, &e[i]);
        from[i] = NEW_ARRAY(binder_arena(b), int64_t, (size_t)e[i].out + 1);
        for (int64_t k = 0; k < e[i].out; k++)
            from[i][k] =
                e[i].scale == 1
                    ? k
                    : within(resize_nearest(how, resize_origin(a->coordinates, e[i], k)), e[i].in);
    }
    return bind_take(b, n, n->in[X], n->out[0], from);
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
    if (!extents(c, e, &known))
        return false;
    if (!known)
        return bind_unsupported(b, n, "its sizes are not constant");
    if (!bind_equal_quant(n->in[X], n->out[0]) && !interpolates(c) && !needs_taps(a))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    if (bind_count(n->in[X]) == 0)
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
    return i == X ? move_axis(c, axis) : -1;
}

/* Cubic convolution leaves the range of its operand, and beside that may be a value of its own. */
static const OpDef *form(const Node *n);

/* ---- older opsets ---- */

static void to_eleven(Node *n, bool shrinks, UniqueNames *names) {
    Value *s = n->in[1];
    while (n->n_in <= SCALES)
        node_add_input(n, NULL);
    n->in[ROI] = upgrade_floats(n, "roi", (Floats){NULL, 0}, names);
    n->in[SCALES] = s;
    node_set_string(n, "coordinate_transformation_mode", STR("asymmetric"));
    node_set_string(n, "nearest_mode", shrinks ? STR("ceil") : STR("floor"));
}

/* The scales below 1, or the others; 1 in the place of those that are not meant. */
static Value *part_of(Node *n, const Tensor *scales, bool below, UniqueNames *names) {
    float *part = NEW_ARRAY(n->graph->module->arena, float, scales->count);
    for (size_t i = 0; i < scales->count; i++) {
        float v = (float)tensor_float(scales, i);
        part[i] = (v < 1) == below ? v : 1;
    }
    return upgrade_floats(n, "scales", (Floats){part, scales->count}, names);
}

/* A node before n that makes axes shorter; n makes others longer. From opset 11 on one node takes
 * one neighbour along all axes. */
static void split_in_two(Node *n, const Tensor *scales, UniqueNames *names) {
    Arena *a = n->graph->module->arena;
    Node *first = node_new(n->graph, STR_NONE, n->op, 2, 1);
    first->loc = n->loc;
    first->in[0] = n->in[X];
    first->in[1] = part_of(n, scales, true, names);
    node_set_string(first, "mode", STR("nearest"));
    Str name = arena_strf(a, STR_FMT "_shrunk", STR_ARG(n->out[0]->name));
    n->in[X] = node_add_output(first, 0, unique_name(names, name), TYPE_UNKNOWN);
    n->in[1] = part_of(n, scales, false, names);
    node_from(first, n, "upgrade");
    node_insert_before(n, first);
    to_eleven(first, true, names);
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    const ResizeAttrs *a = n->typed;
    const Tensor *scales = n->n_in > 1 ? value_data(n->in[1]) : NULL;
    bool shrinks = false, grows = false;
    (void)d;
    if (from >= 11 || to < 11)
        return true;
    for (size_t i = 0; scales && scales->data && i < scales->count; i++) {
        shrinks |= tensor_float(scales, i) < 1;
        grows |= tensor_float(scales, i) > 1;
    }
    if (shrinks && grows && a && str_is(a->mode, "nearest")) {
        split_in_two(n, scales, names);
        shrinks = false;
    }
    to_eleven(n, shrinks, names);
    return true;
}

#define RESIZE                                                                                     \
    .domain = "", .name = "Resize", .shapes = 1u << SIZES, .fixed = 0xe,                           \
    .attrs_size = sizeof(ResizeAttrs), .attrs = attrs, .infer = infer, .upgrade = upgrade,         \
    .bind = bind

const OpDef op_Resize = {RESIZE, .form = form,
                         .quant = {.kind = QUANT_MOVE,
                                   .data = 1u << X,
                                   .move.axis = move_axis,
                                   .move.interpolates = interpolates,
                                   .integer_refusal = integer_refusal}};

static const OpDef beyond_range = {RESIZE, .slices = slices,
                                   .quant = {.kind = QUANT_COMPUTE,
                                             .data = 1u << X,
                                             .move.axis = move_axis,
                                             .move.interpolates = interpolates,
                                             .prefers_float = GAINS_NOTHING}};

static const OpDef *form(const Node *n) {
    const ResizeAttrs *a = n->typed;
    return str_is(a->mode, "cubic") || str_is(a->coordinates, "tf_crop_and_resize") ? &beyond_range
                                                                                    : &op_Resize;
}

/* ---- Upsample ---- */

typedef struct UpsampleAttrs {
    Str mode;
    Floats scales; /* before 9 */
} UpsampleAttrs;

static const AttrSpec upsample_attrs[] = {
    A_WORD(UpsampleAttrs, mode, "nearest", "nearest linear|bilinear cubic"),
    A_FLOATS(UpsampleAttrs, scales),
    A_END,
};

static bool upsample_infer(OpCtx *c) {
    const UpsampleAttrs *a = c->attrs;
    Type x = op_type(c, X);
    const Tensor *t = op_const(c, 1);
    size_t n = a->scales.v ? a->scales.n : t && t->data ? t->count : 0;
    if (x.rank < 0)
        return true;
    if (n && n != (size_t)x.rank)
        return op_error_param(c, "scales", 1, "%zu scales for rank %d", n, x.rank);
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    for (int i = 0; i < x.rank; i++) {
        Extent e = {.in = x.dims[i].value};
        if (n && !scaled(c, a->scales.v ? a->scales.v[i] : (float)tensor_float(t, (size_t)i), &e))
            return false;
        dims[i] = n && e.scale == 1 ? x.dims[i] : n && e.in >= 0 ? dim_of(e.out) : dim_unknown();
    }
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static bool upsample_upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)from;
    (void)d;
    const UpsampleAttrs *a = n->typed;
    if (to < 9)
        return true;
    if (a && a->scales.v) {
        while (n->n_in < 2)
            node_add_input(n, NULL);
        n->in[1] = upgrade_floats(n, "scales", a->scales, names);
        node_drop_attr(n, "scales");
    }
    if (to < 10)
        return true;
    n->op = STR("Resize");
    node_becomes(n, "upgrade");
    if (to >= 11)
        to_eleven(n, false, names);
    return true;
}

static bool upsample_bind(Binder *b, const Node *n, const OpCtx *c) {
    (void)c;
    return bind_unsupported(b, n, "it has to become Resize first (-target-opset=13)");
}

const OpDef op_Upsample = {
    .domain = "",
    .name = "Upsample",
    .fixed = 2,
    .attrs_size = sizeof(UpsampleAttrs),
    .attrs = upsample_attrs,
    .infer = upsample_infer,
    .upgrade = upsample_upgrade,
    .bind = upsample_bind,
};
