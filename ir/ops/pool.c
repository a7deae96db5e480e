#include "ir/ops/pool.h"

#include "ir/ops/overlay.h"

static bool check_rank(const OpCtx *c, Type x) {
    return x.rank >= 3 || x.rank < 0 ||
           op_error_in(c, 0, "input must have rank 3 or more, not %d", x.rank);
}

bool pool_verify(const OpCtx *c) {
    const WindowAttrs *a = c->attrs;
    if (!a->kernel_shape.v)
        return op_error(c, "needs attribute 'kernel_shape'");
    return check_rank(c, op_type(c, 0));
}

bool pool_infer(OpCtx *c) {
    const WindowAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    Window w;
    if (x.rank < 3)
        return true;
    if (!a->kernel_shape.v)
        return op_error(c, "needs attribute 'kernel_shape'");
    if (!op_window(c, a, x, NULL, &w))
        return false;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    dims[0] = x.dims[0];
    dims[1] = x.dims[1];
    for (int i = 0; i < w.n; i++)
        dims[2 + i] = w.out[i];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    if (c->n_out > 1) /* MaxPool's indices */
        c->out[1] = type_tensor(ELEM_INT64, x.rank, dims);
    return true;
}

bool pool_global_verify(const OpCtx *c) {
    return check_rank(c, op_type(c, 0));
}

bool pool_global_infer(OpCtx *c) {
    Type x = op_type(c, 0);
    if (x.rank < 3)
        return true;
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank);
    for (int i = 0; i < x.rank; i++)
        dims[i] = i < 2 ? x.dims[i] : dim_of(1);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

/* ---- binding ---- */

bool pool_spatial(Binder *b, const Node *n, const OpCtx *c, Spatial *s, WindowAxis *depth) {
    const WindowAttrs *a = c->attrs;
    Type x = n->in[0]->type, y = n->out[0]->type;
    Window w;
    if (!op_window(c, a, x, NULL, &w) || !bind_spatial(b, n, &w, x, y, s))
        return false;
    *depth = window_axis(&w, w.n - 3, x, y);
    return true;
}

Spatial pool_global_spatial(const Node *n) {
    Type x = n->in[0]->type;
    int32_t plane = bind_extent(x, 2, x.rank), c = (int32_t)x.dims[1].value;
    return (Spatial){.n = (int32_t)x.dims[0].value,
                     .ic = c,
                     .ih = 1,
                     .iw = plane,
                     .oc = c,
                     .oh = 1,
                     .ow = 1,
                     .kh = 1,
                     .kw = plane,
                     .sh = 1,
                     .sw = 1,
                     .dh = 1,
                     .dw = 1};
}

bool pool_call_planes(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                      const void *params, size_t size, ElemType e) {
    if (!bind_first(b, n, kernel, params, size))
        return false;
    bind_over(b, 0, lead_planes(s, e, e, 0));
    return true;
}

bool pool_call_last(Binder *b, const Node *n, const Spatial *s, const char *kernel,
                    const void *params, size_t size, ElemType e) {
    if (!bind_call(b, n, kernel, params, size, 2,
                   (int[]){bind_last(b, n, n->in[0]), bind_last(b, n, n->out[0])}))
        return false;
    bind_over(b, 0, lead_window(s, e, e, 1)); /* it begins with results that it then changes */
    return true;
}

bool pool_stages(Binder *b, const Node *n, const Spatial *s, const WindowAxis *d, PoolStages *to) {
    int32_t row = s->oh * s->ow;
    int64_t planes = (int64_t)s->n * s->ic * d->in;
    if (dim_mul(planes, row) > INT32_MAX)
        return bind_unsupported(b, n, "its planes have more than 2^31 elements");
    to->planes = *s;
    to->planes.ic = s->ic * d->in;
    to->depth = (Spatial){.n = s->n,
                          .ic = s->ic,
                          .ih = d->in,
                          .iw = row,
                          .oc = s->ic,
                          .oh = d->out,
                          .ow = row,
                          .kh = d->kernel,
                          .kw = 1,
                          .sh = d->stride,
                          .sw = 1,
                          .dh = d->dilation,
                          .dw = 1,
                          .pt = d->begin,
                          .pb = d->end};
    to->between = bind_temp(b, bind_elem(n->in[0]), (size_t)(planes * row));
    return true;
}
