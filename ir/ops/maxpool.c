/* MaxPool and GlobalMaxPool. MaxPool: 8 added the indices, 10 ceil_mode and dilations, 12 int8.
 * Defaults of what was added mean the old operator. */
#include "ir/ops/pool.h"

typedef struct MaxAttrs {
    WindowAttrs w; /* first: POOL_ATTRS */
    int64_t storage_order;
} MaxAttrs;

static const AttrSpec max_attrs[] = {
    POOL_ATTRS(MaxAttrs),
    A_FLAG(MaxAttrs, storage_order, 0),
    A_END,
};

/* Both orders of elements have the same parameters. */
_Static_assert(sizeof(qk_maxpool2d_nhwc_params) == sizeof(qk_maxpool2d_params),
               "copied as they are");

static int move_channel(const OpCtx *c, int axis) {
    (void)c;
    return axis < 2 ? axis : -1;
}

static bool same_quant(Binder *b, const Node *n) {
    return bind_equal_quant(n->in[0], n->out[0]) ||
           bind_unsupported(b, n, "operand and result are quantized differently");
}

static bool max_call(Binder *b, const Node *n, const Spatial *s) {
    ElemType e = bind_elem(n->in[0]);
    qk_maxpool2d_params p = {WINDOW_PARAMS(s), .c = s->ic};
    const char *last = bind_kernel(b, "maxpool2d_nhwc", 1, &e);
    if (!bind_is_last(b, n->in[0]) || !kernel_find(last))
        return pool_call_planes(b, n, s, bind_kernel(b, "maxpool2d", 1, &e), &p, sizeof p, e);
    qk_maxpool2d_nhwc_params q;
    memcpy(&q, &p, sizeof q);
    return pool_call_last(b, n, s, last, &q, sizeof q, e);
}

static bool max_volume(Binder *b, const Node *n, const Spatial *s, const WindowAxis *depth) {
    ElemType e = bind_elem(n->in[0]);
    const char *kernel = bind_kernel(b, "maxpool2d", 1, &e);
    PoolStages t;
    if (!pool_stages(b, n, s, depth, &t))
        return false;
    qk_maxpool2d_params p = {WINDOW_PARAMS(&t.planes), .c = t.planes.ic};
    qk_maxpool2d_params d = {WINDOW_PARAMS(&t.depth), .c = t.depth.ic};
    return bind_call(b, n, kernel, &p, sizeof p, 2, (int[]){bind_value(b, n->in[0]), t.between}) &&
           bind_call(b, n, kernel, &d, sizeof d, 2, (int[]){t.between, bind_value(b, n->out[0])});
}

static bool indexed(const Node *n) {
    return n->n_out > 1 && n->out[1];
}

/* With the places of the maxima, counted over the whole tensor; nobody may read them. */
static bool max_indices(Binder *b, const Node *n, const OpCtx *c, const Spatial *s,
                        const WindowAxis *d) {
    const MaxAttrs *a = c->attrs;
    ElemType e = bind_elem(n->in[0]);
    qk_maxpool_indices_params p = {
        WINDOW_PARAMS(s),  .c = s->ic,      .id = d->in,
        .od = d->out,      .kd = d->kernel, .sd = d->stride,
        .dd = d->dilation, .pf = d->begin,  .column_major = a->storage_order != 0};
    int x = bind_value(b, n->in[0]), y = bind_value(b, n->out[0]);
    int places = indexed(n) ? bind_value(b, n->out[1])
                            : bind_temp(b, ELEM_INT64, (size_t)bind_count(n->out[0]));
    return bind_call(b, n, bind_kernel(b, "maxpool_indices", 1, &e), &p, sizeof p, 3,
                     (int[]){x, y, places});
}

/* A window whose elements lie apart may fall between those of its operand, into the padding, and a
 * wide padding has room for one. */
static bool max_of_none(const OpCtx *c) {
    const WindowAttrs *a = c->attrs;
    Type x = op_type(c, 0);
    Window w;
    if (x.rank < 3)
        return true;
    if (!op_window(c, a, x, NULL, &w))
        return false;
    for (int i = 0; i < w.n; i++) {
        int64_t covers = (w.kernel[i] - 1) * w.dilation[i] + 1;
        if (w.pad_begin[i] >= covers || w.pad_end[i] >= covers ||
            (w.dilation[i] > 1 && w.kernel[i] > 1 &&
             (w.pad_begin[i] || w.pad_end[i] || x.dims[2 + i].value < 0)))
            return true;
    }
    return false;
}

static bool global_max_of_none(const OpCtx *c) {
    Type x = op_type(c, 0);
    for (int i = 2; i < x.rank; i++)
        if (x.dims[i].value <= 0)
            return true;
    return x.rank < 3;
}

static bool max_bind(Binder *b, const Node *n, const OpCtx *c) {
    Spatial s;
    WindowAxis depth;
    if (!pool_spatial(b, n, c, &s, &depth) || !same_quant(b, n))
        return false;
    bool volume = n->in[0]->type.rank == 5;
    /* Floats may be NaN, of which only the first of the whole window counts. */
    if (indexed(n) || (volume && elem_is_float(bind_elem(n->in[0]))))
        return max_indices(b, n, c, &s, &depth) && (!max_of_none(c) || bind_into_range(b, n));
    return (volume ? max_volume(b, n, &s, &depth) : max_call(b, n, &s)) &&
           (!max_of_none(c) || bind_into_range(b, n));
}

static bool global_max_bind(Binder *b, const Node *n, const OpCtx *c) {
    Spatial s = pool_global_spatial(n);
    return same_quant(b, n) && max_call(b, n, &s) &&
           (!global_max_of_none(c) || bind_into_range(b, n));
}

/* Padding stands for less than any number, and zeros for that where there is nothing below them.
 * Each window has a number of its own: pads are smaller than it, and its elements lie side by side.
 */
static bool max_takes_pads(Node *n, const int64_t *before, const int64_t *after, float least) {
    const MaxAttrs *a = n->typed;
    for (size_t i = 0; i < a->w.dilations.n; i++)
        if (a->w.dilations.v[i] != 1)
            return false;
    return least >= 0 && !a->w.ceil_mode && n->n_out == 1 &&
           op_window_grow(n, &a->w, before, after, a->w.kernel_shape.v);
}

const OpDef op_MaxPool = {
    .domain = "",
    .name = "MaxPool",
    .attrs_size = sizeof(MaxAttrs),
    .attrs = max_attrs,
    .verify = pool_verify,
    .infer = pool_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_ORDER,
              .data = 1,
              .scaled.homogeneous = true,
              .move.axis = move_channel,
              .of_none = max_of_none},
    .take_pads = max_takes_pads,
    .bind = max_bind,
};

const OpDef op_GlobalMaxPool = {
    .domain = "",
    .name = "GlobalMaxPool",
    .verify = pool_global_verify,
    .infer = pool_global_infer,
    .slices = op_slices_first,
    .quant = {.kind = QUANT_ORDER,
              .data = 1,
              .scaled.homogeneous = true,
              .move.axis = move_channel,
              .of_none = global_max_of_none},
    .bind = global_max_bind,
};
