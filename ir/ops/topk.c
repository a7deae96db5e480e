/* TopK. Before opset 10 k is an attribute; 11 added largest and sorted, 24 types. Results are
 * sorted whether asked for or not. */
#include "ir/ops/bind.h"

enum { X, K };

typedef struct TopKAttrs {
    int64_t axis, largest, sorted, k;
} TopKAttrs;

static const AttrSpec attrs[] = {
    A_INT(TopKAttrs, axis, -1),
    A_FLAG(TopKAttrs, largest, 1),
    A_FLAG(TopKAttrs, sorted, 1),
    A_INT(TopKAttrs, k, -1),
    A_END,
};

/* How many, -1 where that is computed. */
static bool count(const OpCtx *c, Dim of, int64_t *k) {
    const TopKAttrs *a = c->attrs;
    Ints list;
    *k = c->opset < 10 ? a->k : op_ints(c, K, &list) && list.n == 1 ? list.v[0] : -1;
    if (c->opset >= 10 && op_ints(c, K, &list) && (list.n != 1 || list.v[0] < 0))
        return op_error_in(c, K, "k must be one number, 0 or more");
    if (of.value >= 0 && *k > of.value)
        return op_error_param(c, "k", K, "k is %lld, of %lld elements", (long long)*k,
                              (long long)of.value);
    return true;
}

static bool infer(OpCtx *c) {
    const TopKAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int axis;
    int64_t k;
    if (x.kind != TYPE_TENSOR || x.rank < 0)
        return true;
    if (!op_axis(c, a->axis, x.rank, &axis) || !count(c, x.dims[axis], &k))
        return false;
    Dim *dims = arena_copy(c->arena, x.dims, (size_t)x.rank * sizeof *dims);
    dims[axis] = k < 0 ? dim_unknown() : dim_of(k);
    c->out[0] = type_tensor(type_real_elem(x), x.rank, dims);
    if (c->n_out > 1)
        c->out[1] = type_tensor(ELEM_INT64, x.rank, dims);
    return true;
}

static bool upgrade(Node *n, int64_t from, int64_t to, UniqueNames *names, Diags *d) {
    (void)d;
    if (from >= 10 || to < 10 || !n->typed)
        return true;
    int64_t k = ((const TopKAttrs *)n->typed)->k;
    node_add_input(n, upgrade_ints(n, "k", (Ints){&k, 1}, names));
    node_drop_attr(n, "k");
    return true;
}

/* Only along the axis do elements change their places. */
static int move_axis(const OpCtx *c, int axis) {
    const TopKAttrs *a = c->attrs;
    Type x = op_type(c, X);
    return axis == (a->axis < 0 ? a->axis + x.rank : a->axis) ? -1 : axis;
}

static int64_t longest(const OpCtx *c) {
    const TopKAttrs *a = c->attrs;
    Type x = op_type(c, X);
    int axis;
    return x.rank > 0 && op_axis(c, a->axis, x.rank, &axis) ? x.dims[axis].value : -1;
}

static bool bind_length(Binder *b, const Node *n, const OpCtx *c, int length) {
    qk_length_in_params p = {.most = longest(c)};
    return bind_call(b, n, "qk_length_in_s64", &p, sizeof p, 2,
                     (int[]){bind_value(b, n->in[K]), length});
}

/* A result that nobody asked for needs memory all the same. */
static int result(Binder *b, const Node *n, size_t i, ElemType e, size_t elements) {
    return i < n->n_out && n->out[i] ? bind_value(b, n->out[i]) : bind_temp(b, e, elements);
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const TopKAttrs *a = c->attrs;
    Type x = n->in[X]->type;
    const Value *any = n->out[0] ? n->out[0] : n->out[1];
    ElemType e = bind_elem(n->in[X]);
    int axis;
    if (!op_axis(c, a->axis, x.rank, &axis))
        return false;
    qk_topk_params p = {.outer = bind_extent(x, 0, axis),
                        .n = (int32_t)x.dims[axis].value,
                        .inner = bind_extent(x, axis + 1, x.rank),
                        .k = (int32_t)any->type.dims[axis].value,
                        .least = !a->largest};
    if (p.k > p.n)
        return bind_unsupported(b, n, "it takes %d of %d elements", p.k, p.n);
    size_t elements = (size_t)bind_count(any);
    return bind_call(b, n, bind_kernel(b, "topk", 1, &e), &p, sizeof p, 3,
                     (int[]){bind_value(b, n->in[X]), result(b, n, 0, e, elements),
                             result(b, n, 1, ELEM_INT64, elements)});
}

const OpDef op_TopK = {
    .domain = "",
    .name = "TopK",
    .fixed = 1u << K,
    .attrs_size = sizeof(TopKAttrs),
    .attrs = attrs,
    .infer = infer,
    .quant = {.kind = QUANT_ORDER,
              .data = 1u << X,
              .move.axis = move_axis,
              .scaled.homogeneous = true},
    .upgrade = upgrade,
    .longest = longest,
    .bind_length = bind_length,
    .bind = bind,
};
