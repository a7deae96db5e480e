/* GridSample. 20 took any number of spatial dimensions and renamed bilinear and bicubic.
 * On integers places are known to 2^-24 of an element, and results to 2^-10 of a step of the
 * operand (8 bits: 2^-18) before they are rounded. */
#include "ir/ops/bind.h"
#include "kernels/requant_host.h"

#include <math.h>

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

/* Parameters of the integer kernel begin with those of the float one. */
_Static_assert(offsetof(qk_gridsample_q_params, point) == sizeof(qk_gridsample_f32_params),
               "copied as they are");

enum { MOST_POINT = 40, LEAST_POINT = 16, PLACE_BITS = 60, WEIGHT_BITS = 30 };

/* Places in elements: (g + 1) / 2 * (n - 1), or ((g + 1) * n - 1) / 2. False where grids reach so
 * far that too few bits are left behind the point. */
static bool places_of(const Quant *grid, qk_gridsample_q_params *p) {
    double step = (double)quant_scale(grid, 0) / 2, most = 0;
    double span = (double)(elem_max(grid->storage) - elem_min(grid->storage)) * step;
    int bits;
    for (int d = 0; d < p->rank; d++)
        most = fmax(most, (span + 1) * p->dim[d]);
    frexp(most, &bits);
    p->point = PLACE_BITS - bits < MOST_POINT ? PLACE_BITS - bits : MOST_POINT;
    for (int d = 0; d < p->rank && p->point >= LEAST_POINT; d++) {
        p->by[d] = llrint(ldexp(step * (p->dim[d] - p->corners), p->point));
        p->from[d] = llrint(ldexp((p->dim[d] - 1) / 2.0, p->point));
    }
    return p->point >= LEAST_POINT;
}

static int bind_grid_integers(Binder *b, const Node *n, bool *ok) {
    const Value *g = n->in[GRID];
    ElemType types[] = {bind_elem(g), ELEM_INT32};
    qk_cast_params p = {.n = bind_count(g)};
    int to = bind_temp(b, ELEM_INT32, (size_t)p.n);
    *ok = bind_call(b, n, bind_kernel(b, "cast", 2, types), &p, sizeof p, 2,
                    (int[]){bind_value(b, g), to});
    return to;
}

static bool bind_integers(Binder *b, const Node *n, const qk_gridsample_f32_params *of) {
    const Quant *x = op_quant(n->in[X]), *g = op_quant(n->in[GRID]), *y = op_quant(n->out[0]);
    ElemType types[] = {bind_elem(n->in[X]), bind_elem(n->out[0])};
    if (!quant_plain(x) || !quant_plain(g) || !quant_plain(y))
        return bind_in_double(b, n);
    qk_gridsample_q_params p = {.gz = quant_zero(g), .xz = quant_zero(x), RESULT_PARAMS(y)};
    int32_t shift = 0;
    bool ok;
    memcpy(&p, of, sizeof *of);
    if (!places_of(g, &p))
        return bind_in_double_as(b, n, "its grid reaches too far");
    requant_scaled(quant_scale(x, 0), quant_scale(y, 0), &p.n, &p.e, &shift);
    p.s = WEIGHT_BITS - shift > 63 ? 63 : WEIGHT_BITS - shift;
    int grid = bind_grid_integers(b, n, &ok);
    return ok && bind_call(b, n, bind_kernel(b, "gridsample_q", 2, types), &p, sizeof p, 3,
                           (int[]){bind_value(b, n->in[X]), grid, bind_value(b, n->out[0])});
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const GridAttrs *a = c->attrs;
    Type x = n->in[X]->type, g = n->in[GRID]->type;
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
    if (bind_any_quant(n))
        return bind_integers(b, n, &p);
    if (x.elem != bind_real(b) || g.elem != bind_real(b))
        return bind_unsupported(b, n, "only float has a kernel");
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
    .quant = {.kind = QUANT_COMPUTE, .data = 1u << X | 1u << GRID, .prefers_float = GAINS_NOTHING},
    .bind = bind,
};
