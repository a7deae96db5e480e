/* GridSample. 20 took any number of spatial dimensions and renamed bilinear and bicubic. */
#include "ir/ops/bind.h"

enum { X, GRID };

typedef struct GridAttrs {
    int64_t align_corners;
    Str mode, padding_mode;
} GridAttrs;

static const AttrSpec attrs[] = {
    A_FLAG(GridAttrs, align_corners, 0),
    A_WORD(GridAttrs, mode, "linear", "linear nearest cubic|bilinear bicubic"),
    A_WORD(GridAttrs, padding_mode, "zeros", "zeros border reflection"),
    A_END,
};

/* Elements that count on an axis; 0: no such mode. */
static int32_t taps(Str mode) {
    return str_is(mode, "nearest")                              ? 1
           : str_is(mode, "linear") || str_is(mode, "bilinear") ? 2
           : str_is(mode, "cubic") || str_is(mode, "bicubic")   ? 4
                                                                : 0;
}

static int32_t padding(Str mode) {
    return str_is(mode, "zeros")        ? 0
           : str_is(mode, "border")     ? 1
           : str_is(mode, "reflection") ? 2
                                        : -1;
}

static bool verify(const OpCtx *c) {
    Type x = op_type(c, X), g = op_type(c, GRID);
    if (x.rank < 0 || g.rank < 0)
        return true;
    if (x.rank < 3 || g.rank != x.rank)
        return op_error_in(c, GRID, "the grid has rank %d, the input %d", g.rank, x.rank);
    if (g.dims[g.rank - 1].value >= 0 && g.dims[g.rank - 1].value != x.rank - 2)
        return op_error_in(c, GRID, "places have %lld numbers, must have %d",
                           (long long)g.dims[g.rank - 1].value, x.rank - 2);
    if (dim_differ(x.dims[0].value, g.dims[0].value))
        return op_error_in(c, GRID, "input and grid differ in batch size");
    return true;
}

static bool infer(OpCtx *c) {
    Type x = op_type(c, X), g = op_type(c, GRID);
    if (x.kind != TYPE_TENSOR || x.rank < 3 || g.rank != x.rank)
        return true;
    Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
    if (x.dims[0].value < 0)
        dims[0] = g.dims[0];
    for (int i = 2; i < x.rank; i++)
        dims[i] = g.dims[i - 1];
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const GridAttrs *a = c->attrs;
    Type x = n->in[X]->type, g = n->in[GRID]->type;
    if (n->in[X]->type.elem != ELEM_FLOAT || n->in[GRID]->type.elem != ELEM_FLOAT ||
        bind_any_quant(n))
        return bind_unsupported(b, n, "only float has a kernel");
    qk_gridsample_f32_params p = {.batch = (int32_t)x.dims[0].value,
                                  .channels = (int32_t)x.dims[1].value,
                                  .rank = x.rank - 2,
                                  .places = bind_extent(g, 1, g.rank - 1),
                                  .taps = taps(a->mode),
                                  .padding = padding(a->padding_mode),
                                  .corners = a->align_corners != 0};
    for (int i = 2; i < x.rank; i++) {
        p.dim[i - 2] = (int32_t)x.dims[i].value;
        if (x.dims[i].value == 0 && bind_count(n->out[0]) > 0)
            return bind_unsupported(b, n, "its input is empty");
    }
    return bind_call(
        b, n, "qk_gridsample_f32", &p, sizeof p, 3,
        (int[]){bind_value(b, n->in[X]), bind_value(b, n->in[GRID]), bind_value(b, n->out[0])});
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)c;
    (void)result;
    return i <= GRID && axis == 0 ? 0 : -1;
}

const OpDef op_GridSample = {
    .domain = "",
    .name = "GridSample",
    .attrs_size = sizeof(GridAttrs),
    .attrs = attrs,
    .verify = verify,
    .infer = infer,
    .slices = slices,
    .bind = bind,
};
