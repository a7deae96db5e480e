/* How long Resize makes each axis, and by what it scales it. */
#include "ir/ops/resize.h"

static size_t scales_at(const OpCtx *c) {
    return c->opset < 11 ? 1 : RESIZE_SCALES;
}

/* The length of an axis of length `in` after scaling; onnxruntime multiplies in float. */
bool resize_scale(const OpCtx *c, float scale, Extent *e) {
    if (!(scale > 0 && scale < 1e9f))
        return op_error_param(c, "scales", scales_at(c), "a scale must be positive, not %g",
                              (double)scale);
    e->scale = scale;
    e->out = e->in < 0 ? -1 : (int64_t)(scale * (float)e->in);
    return true;
}

static bool resized(const OpCtx *c, int64_t size, Extent *e) {
    if (size < 1 || size > INT32_MAX)
        return op_error_param(c, "sizes", RESIZE_SIZES, "size %lld is out of range",
                              (long long)size);
    e->out = size;
    e->scale = e->in > 0 ? (float)size / (float)e->in : e->in < 0 ? 0 : 1; /* 0: not known */
    return true;
}

/* The part of each axis that tf_crop_and_resize takes. */
static bool crop(const OpCtx *c, const ResizeAttrs *a, Extent *e, int rank) {
    const Tensor *roi = op_const(c, RESIZE_ROI);
    size_t n = a->axes.v ? a->axes.n : (size_t)rank;
    if (!str_is(a->coordinates, "tf_crop_and_resize") || !roi || !roi->data)
        return true;
    if (roi->count != 2 * n)
        return op_error_in(c, RESIZE_ROI, "%zu numbers for the starts and ends of %zu axes",
                           roi->count, n);
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
bool resize_extents(const OpCtx *c, Extent *e, bool *known) {
    const ResizeAttrs *a = c->attrs;
    Type x = op_type(c, RESIZE_X);
    const Tensor *scales = op_const(c, scales_at(c));
    Ints sizes = {NULL, 0};
    bool set[MAX_RANK];
    *known = (scales && scales->data && scales->count) ||
             (c->opset >= 11 && op_ints(c, RESIZE_SIZES, &sizes) && sizes.n);
    if (!*known)
        return true;
    if (!op_axes(c, a->axes, RESIZE_SIZES, x.rank, set))
        return false;
    size_t n = a->axes.v ? a->axes.n : (size_t)x.rank, have = sizes.n ? sizes.n : scales->count;
    if (have != n)
        return op_error_in(c, sizes.n ? RESIZE_SIZES : scales_at(c), "%zu %s for %zu axes", have,
                           sizes.n ? "sizes" : "scales", n);
    for (int i = 0; i < x.rank; i++)
        e[i] = (Extent){x.dims[i].value, x.dims[i].value, 1, 0, 1};
    for (size_t i = 0; i < n; i++) {
        int64_t axis = a->axes.v ? a->axes.v[i] : (int64_t)i;
        axis += axis < 0 ? x.rank : 0;
        set[axis] = true;
        if (sizes.n ? !resized(c, sizes.v[i], &e[axis])
                    : !resize_scale(c, (float)tensor_float(scales, i), &e[axis]))
            return false;
    }
    if (sizes.n)
        keep_ratio(a, e, set, x.rank);
    return crop(c, a, e, x.rank);
}
