#include "ir/ops/volume.h"

Volume volume_of(const Window *w, Type x, Type y, Spatial *s) {
    Volume v = {.n = (int32_t)x.dims[0].value,
                .c = (int32_t)x.dims[1].value,
                .in = (int32_t)x.dims[2].value,
                .out = (int32_t)y.dims[2].value,
                .kernel = (int32_t)w->kernel[0],
                .plane = bind_extent(x, 3, 5),
                .oc = (int32_t)y.dims[1].value,
                .out_plane = bind_extent(y, 3, 5),
                .stride = w->stride[0],
                .dilation = w->dilation[0],
                .pad = w->pad_begin[0]};
    s->n = v.n * v.out;
    s->ic = v.c * v.kernel;
    return v;
}

/* The first and the last of `count` steps from `at` on, by `step`, that lie within 0..limit-1. */
static void within(int64_t at, int64_t step, int64_t limit, int64_t count, int64_t *first,
                   int64_t *end) {
    *first = at < 0 ? (-at + step - 1) / step : 0;
    *end = at < limit ? (limit - at + step - 1) / step : 0;
    *end = *end < count ? *end : count;
    *end = *end < *first ? *first : *end;
}

/* The planes that stand at place k of the windows, of every image. */
static bool copy_planes(Binder *b, const Node *n, const Volume *v, int32_t k, int x, int images,
                        ElemType e) {
    int64_t at = k * v->dilation - v->pad, first, end, from, to;
    int64_t image = (int64_t)v->c * v->kernel * v->plane;
    /* i steps through what moves by one: outputs, or inputs where they are spread */
    within(at, v->stride, v->spread ? v->out : v->in, v->spread ? v->in : v->out, &first, &end);
    if (first == end)
        return true;
    from = v->spread ? first : at + first * v->stride;
    to = v->spread ? at + first * v->stride : first;
    int64_t src = v->spread ? 1 : v->stride, dst = v->spread ? v->stride : 1;
    if (end - first == 1) /* a step that is never taken */
        src = dst = 0;
    qk_copy_nd_params p = {
        .rank = 4,
        .dim = {v->n, (int32_t)(end - first), v->c, v->plane},
        .ss = {v->c * v->in * v->plane, (int32_t)(src * v->plane), v->in * v->plane, 1},
        .ds = {(int32_t)(v->out * image), (int32_t)(dst * image), v->kernel * v->plane, 1},
        .src_offset = from * v->plane,
        .dst_offset = to * image + (int64_t)k * v->plane};
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){x, images});
}

int volume_images(Binder *b, const Node *n, const Volume *v, int x, ElemType e, int64_t zero) {
    if (!v)
        return x;
    int64_t count = dim_mul(dim_mul((int64_t)v->n * v->out, v->c), dim_mul(v->kernel, v->plane));
    if (count > INT32_MAX)
        return bind_unsupported(b, n, "its windows take in more than 2^31 elements") - 1;
    int images = bind_temp(b, e, (size_t)count);
    qk_fill_params p = {.n = count, .value = zero};
    bool ok = bind_call(b, n, bind_kernel(b, "fill", 1, &e), &p, sizeof p, 1, &images);
    for (int32_t k = 0; ok && count > 0 && k < v->kernel; k++)
        ok = copy_planes(b, n, v, k, x, images, e);
    return ok ? images : -1;
}

int volume_result(Binder *b, const Volume *v, int y, ElemType e) {
    return !v ? y
              : bind_temp(b, e,
                          (size_t)v->n * (size_t)v->out * (size_t)v->oc * (size_t)v->out_plane);
}

bool volume_store(Binder *b, const Node *n, const Volume *v, int images, int y, ElemType e) {
    if (!v)
        return true;
    int32_t all = v->oc * v->out * v->out_plane;
    qk_copy_nd_params p = {.rank = 4,
                           .dim = {v->n, v->oc, v->out, v->out_plane},
                           .ss = {all, v->out_plane, v->oc * v->out_plane, 1},
                           .ds = {all, v->out * v->out_plane, v->out_plane, 1}};
    return bind_call(b, n, bind_kernel(b, "copy_nd", 1, &e), &p, sizeof p, 2, (int[]){images, y});
}
