/* ReduceMean, ReduceSum, ReduceProd, ReduceMax, ReduceMin, ReduceL1, ReduceL2, ReduceSumSquare,
 * ReduceLogSum, ReduceLogSumExp. Axes are an attribute until opset 12 (ReduceSum) or 17, an operand
 * from then on; 11 allowed negative ones. */
#include "ir/ops/reduce.h"

typedef struct ReduceAttrs {
    Ints axes;
    int64_t keepdims, noop_with_empty_axes;
} ReduceAttrs;

static const AttrSpec attrs[] = {
    A_INTS(ReduceAttrs, axes),
    A_FLAG(ReduceAttrs, keepdims, 1),
    A_FLAG(ReduceAttrs, noop_with_empty_axes, 0),
    A_END,
};

enum { DATA = REDUCE_DATA, AXES };

/* Which axes go; false after an error. `known` is false where that is computed at run time. */
static bool reduced_axes(const OpCtx *c, bool *set, bool *known) {
    const ReduceAttrs *a = c->attrs;
    Type x = op_type(c, DATA);
    Ints axes = a->axes;
    *known = x.rank >= 0 && (!op_in(c, AXES) || op_ints(c, AXES, &axes));
    if (!*known)
        return true;
    if (!op_axes(c, axes, 1, x.rank, set))
        return false;
    for (int i = 0; axes.n == 0 && i < x.rank; i++)
        set[i] = !a->noop_with_empty_axes;
    return true;
}

static bool infer(OpCtx *c) {
    const ReduceAttrs *a = c->attrs;
    Type x = op_type(c, DATA);
    bool set[MAX_RANK], known;
    if (!reduced_axes(c, set, &known))
        return false;
    if (!known) {
        Dim *dims = NEW_ARRAY(c->arena, Dim, MAX_RANK);
        for (int i = 0; i < x.rank; i++)
            dims[i] = dim_unknown();
        if (x.kind == TYPE_TENSOR)
            c->out[0] = type_tensor(type_real_elem(x), a->keepdims ? x.rank : -1, dims);
        return true;
    }
    Dim *dims = NEW_ARRAY(c->arena, Dim, (size_t)x.rank + 1);
    int rank = 0;
    for (int i = 0; i < x.rank; i++)
        if (!set[i])
            dims[rank++] = x.dims[i];
        else if (a->keepdims)
            dims[rank++] = dim_of(1);
    c->out[0] = type_tensor(type_real_elem(x), rank, dims);
    return true;
}

static int move_axis(const OpCtx *c, int axis) {
    const ReduceAttrs *a = c->attrs;
    bool set[MAX_RANK], known;
    if (!reduced_axes(c, set, &known) || !known || axis >= op_type(c, DATA).rank || set[axis])
        return -1;
    int to = 0;
    for (int i = 0; i < axis; i++)
        to += !set[i] || a->keepdims;
    return to;
}

/* What it may take the largest of has no elements, or a length that is not known. */
static bool of_none(const OpCtx *c) {
    Type x = op_type(c, DATA);
    bool set[MAX_RANK], known;
    if (!reduced_axes(c, set, &known) || !known)
        return true;
    for (int i = 0; i < x.rank; i++)
        if (set[i] && x.dims[i].value <= 0)
            return true;
    return false;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    (void)result;
    return i == DATA ? move_axis(c, axis) : -1;
}

static void upgrade_axes(Node *n, int64_t from, int64_t to, int64_t since, UniqueNames *names) {
    if (from < since && to >= since)
        upgrade_ints_attr(n, "axes", AXES, names);
}

static bool upgrade_13(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    upgrade_axes(n, from, to, 13, names);
    return true;
}

static bool upgrade_18(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    upgrade_axes(n, from, to, 18, names);
    return true;
}

/* ---- binding ---- */

static void add_dim(int32_t *n, int32_t *dim, int32_t *stride, int32_t d, int32_t s) {
    if (*n && stride[*n - 1] == d * s) {
        dim[*n - 1] *= d;
        stride[*n - 1] = s;
        return;
    }
    dim[*n] = d;
    stride[(*n)++] = s;
}

static bool reduction(Binder *b, const Node *n, const OpCtx *c, Reduction *r) {
    Type x = n->in[DATA]->type;
    bool set[MAX_RANK], known;
    if (!reduced_axes(c, set, &known))
        return false;
    if (!known)
        return bind_unsupported(b, n, "its axes are not constant");
    *r = (Reduction){.count = 1};
    for (int i = 0; i < x.rank; i++) {
        int32_t d = (int32_t)x.dims[i].value, s = bind_extent(x, i + 1, x.rank);
        if (set[i]) {
            r->count *= d;
            add_dim(&r->reduced, r->rdim, r->rstride, d, s);
        } else {
            add_dim(&r->kept, r->kdim, r->kstride, d, s);
        }
    }
    return true;
}

static bool sum_floats(Binder *b, const Node *n, const Reduction *r, int what, bool mean, int y) {
    qk_reducesum_f32_params p = {.what = what, .divisor = mean ? (float)r->count : 1.0f};
    COPY_REDUCTION(p, *r);
    return bind_call(b, n, "qk_reducesum_f32", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[DATA]), y});
}

static bool bind_sum(Binder *b, const Node *n, const OpCtx *c, bool mean) {
    Reduction r;
    if (!reduction(b, n, c, &r))
        return false;
    if (bind_any_quant(n))
        return reduce_sum_integers(b, n, &r, mean);
    if (elem_is_int(n->in[DATA]->type.elem))
        return reduce_plain(b, n, &r, REDUCE_PLAIN, mean);
    if (n->in[DATA]->type.elem != bind_real(b))
        return bind_unsupported(b, n, "of %s; only float has a kernel",
                                elem_name(n->in[DATA]->type.elem));
    return sum_floats(b, n, &r, REDUCE_PLAIN, mean, bind_value(b, n->out[0]));
}

static bool mean_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_sum(b, n, c, true);
}

static bool sum_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_sum(b, n, c, false);
}

static bool of_floats(Binder *b, const Node *n, const OpCtx *c, Reduction *r) {
    if (!reduction(b, n, c, r))
        return false;
    if (n->in[DATA]->type.elem != bind_real(b) || bind_any_quant(n))
        return bind_unsupported(b, n, "of %s; only float has a kernel",
                                elem_name(n->in[DATA]->type.elem));
    return true;
}

/* Of floats a sum and then, unless it is NULL, a function of it. */
static bool bind_norm(Binder *b, const Node *n, const OpCtx *c, int what, const char *function) {
    Reduction r;
    if (bind_any_quant(n) && what == REDUCE_PLAIN)
        return reduction(b, n, c, &r) && reduce_log_integers(b, n, &r, false);
    if (bind_any_quant(n))
        return reduction(b, n, c, &r) &&
               reduce_norm_integers(b, n, &r, function ? REDUCE_ROOT : what);
    if (elem_is_int(n->in[DATA]->type.elem) && !bind_any_quant(n) && !function)
        return reduction(b, n, c, &r) && reduce_plain(b, n, &r, what, false);
    if (elem_is_int(n->in[DATA]->type.elem) && !bind_any_quant(n))
        return bind_integers_in_double(b, n, 1u << DATA);
    if (!of_floats(b, n, c, &r))
        return false;
    int y = bind_value(b, n->out[0]);
    if (!function)
        return sum_floats(b, n, &r, what, false, y);
    int32_t count = bind_count(n->out[0]);
    int sum = bind_temp(b, ELEM_FLOAT, (size_t)count);
    qk_unary_params p = {.n = count};
    if (!sum_floats(b, n, &r, what, false, sum) ||
        !bind_call(b, n, function, &p, sizeof p, 2, (int[]){sum, y}))
        return false;
    bind_in_place(b, 0);
    return true;
}

static bool l1_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_norm(b, n, c, REDUCE_ABSOLUTE, NULL);
}

static bool l2_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_norm(b, n, c, REDUCE_SQUARE, "qk_unary_sqrt_f32");
}

static bool sumsquare_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_norm(b, n, c, REDUCE_SQUARE, NULL);
}

static bool logsum_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_norm(b, n, c, REDUCE_PLAIN, "qk_unary_log_f32");
}

/* A product, or the logarithm of a sum of exponentials without overflow on the way. */
static bool bind_folded(Binder *b, const Node *n, const OpCtx *c, bool product) {
    Reduction r;
    if (bind_any_quant(n))
        return reduction(b, n, c, &r) &&
               (product ? reduce_product_integers(b, n, &r) : reduce_log_integers(b, n, &r, true));
    if (!of_floats(b, n, c, &r))
        return false;
    qk_reduceprod_f32_params p = {0}; /* reducelogsumexp takes the same */
    COPY_REDUCTION(p, r);
    return bind_first(b, n, product ? "qk_reduceprod_f32" : "qk_reducelogsumexp_f32", &p, sizeof p);
}

static bool prod_bind(Binder *b, const Node *n, const OpCtx *c) {
    Reduction r;
    if (elem_is_int(n->in[DATA]->type.elem) && !bind_any_quant(n))
        return reduction(b, n, c, &r) && reduce_plain(b, n, &r, REDUCE_PRODUCT, false);
    return bind_folded(b, n, c, true);
}

static bool logsumexp_bind(Binder *b, const Node *n, const OpCtx *c) {
    if (elem_is_int(n->in[DATA]->type.elem) && !bind_any_quant(n))
        return bind_integers_in_double(b, n, 1u << DATA);
    return bind_folded(b, n, c, false);
}

static bool bind_extreme(Binder *b, const Node *n, const OpCtx *c, const char *kernel) {
    Reduction r;
    if (!reduction(b, n, c, &r))
        return false;
    if (!bind_equal_quant(n->in[DATA], n->out[0]) && !op_quant(n->in[DATA]) != !op_quant(n->out[0]))
        return bind_unsupported(b, n, "operand and result are quantized differently");
    ElemType e = bind_elem(n->in[DATA]);
    qk_reducemax_params p = {0}; /* reducemin takes the same */
    COPY_REDUCTION(p, r);
    return bind_first(b, n, bind_kernel(b, kernel, 1, &e), &p, sizeof p) &&
           (!of_none(c) || bind_into_range(b, n));
}

static bool max_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_extreme(b, n, c, "reducemax");
}

static bool min_bind(Binder *b, const Node *n, const OpCtx *c) {
    return bind_extreme(b, n, c, "reducemin");
}

#define REDUCE                                                                                     \
    .domain = "", .attrs_size = sizeof(ReduceAttrs), .attrs = attrs, .infer = infer,               \
    .slices = slices, .fixed = 1u << AXES
#define SUMS                                                                                       \
    {.kind = QUANT_COMPUTE,                                                                        \
     .data = 1u << DATA,                                                                           \
     .scaled.homogeneous = true,                                                                   \
     .move.axis = move_axis,                                                                       \
     .same_storage = true}
#define NORM(linear)                                                                               \
    {.kind = QUANT_COMPUTE,                                                                        \
     .data = 1u << DATA,                                                                           \
     .scaled.homogeneous = (linear),                                                               \
     .move.axis = move_axis,                                                                       \
     .same_storage = true,                                                                         \
     .prefers_float = SPANS_TOO_MUCH}
#define ORDER                                                                                      \
    {.kind = QUANT_ORDER,                                                                          \
     .data = 1u << DATA,                                                                           \
     .scaled.homogeneous = true,                                                                   \
     .move.axis = move_axis,                                                                       \
     .of_none = of_none}

const OpDef op_ReduceMean = {REDUCE, .name = "ReduceMean", .quant = SUMS, .upgrade = upgrade_18,
                             .bind = mean_bind};
const OpDef op_ReduceSum = {REDUCE, .name = "ReduceSum", .quant = SUMS, .upgrade = upgrade_13,
                            .bind = sum_bind};
const OpDef op_ReduceMax = {REDUCE, .name = "ReduceMax", .quant = ORDER, .upgrade = upgrade_18,
                            .bind = max_bind};
const OpDef op_ReduceMin = {REDUCE, .name = "ReduceMin", .quant = ORDER, .upgrade = upgrade_18,
                            .bind = min_bind};
const OpDef op_ReduceL1 = {REDUCE, .name = "ReduceL1", .quant = NORM(true), .upgrade = upgrade_18,
                           .bind = l1_bind};
const OpDef op_ReduceL2 = {REDUCE, .name = "ReduceL2", .quant = NORM(true), .upgrade = upgrade_18,
                           .bind = l2_bind};
const OpDef op_ReduceSumSquare = {REDUCE, .name = "ReduceSumSquare", .quant = NORM(false),
                                  .upgrade = upgrade_18, .bind = sumsquare_bind};
const OpDef op_ReduceProd = {REDUCE, .name = "ReduceProd", .quant = NORM(false),
                             .upgrade = upgrade_18, .bind = prod_bind};
const OpDef op_ReduceLogSum = {REDUCE, .name = "ReduceLogSum", .quant = NORM(false),
                               .upgrade = upgrade_18, .bind = logsum_bind};
const OpDef op_ReduceLogSumExp = {REDUCE, .name = "ReduceLogSumExp", .quant = NORM(false),
                                  .upgrade = upgrade_18, .bind = logsumexp_bind};
