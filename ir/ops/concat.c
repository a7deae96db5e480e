/* Concat and QLinearConcat. From opset 4 the axis must be stated; 11 allowed negative ones. */
#include "ir/ops/bind.h"

typedef struct ConcatAttrs {
    int64_t axis;
} ConcatAttrs;

static const AttrSpec attrs[] = {
    A_INT_REQUIRED(ConcatAttrs, axis),
    A_END,
};

static bool infer(OpCtx *c) {
    const ConcatAttrs *a = c->attrs;
    Type first = op_type(c, 0);
    int axis;
    if (first.rank < 0)
        return true;
    if (first.rank == 0)
        return op_error_in(c, 0, "scalars cannot be joined");
    if (!op_axis(c, a->axis, first.rank, &axis))
        return false;
    Dim *dims = arena_copy(c->arena, first.dims, (size_t)first.rank * sizeof *dims);
    for (size_t i = 1; i < c->n_in; i++) {
        Type x = op_type(c, i);
        if (x.rank < 0)
            return true;
        if (x.rank != first.rank)
            return op_error_in(c, i, "operand %zu has rank %d, the first %d", i, x.rank,
                               first.rank);
        for (int k = 0; k < x.rank; k++) {
            if (k == axis) {
                bool known = dims[k].value >= 0 && x.dims[k].value >= 0;
                dims[k] = known ? dim_of(dim_add(dims[k].value, x.dims[k].value)) : dim_unknown();
            } else if (dims[k].value < 0) {
                dims[k] = x.dims[k].value >= 0 ? x.dims[k] : dims[k];
            } else if (x.dims[k].value >= 0 && x.dims[k].value != dims[k].value) {
                return op_error_in(c, i,
                                   "operand %zu is %s, the first %s; they may differ in axis %d "
                                   "only",
                                   i, type_text(c->arena, x), type_text(c->arena, first), axis);
            }
        }
    }
    c->out[0] = type_tensor(type_real_elem(first), first.rank, dims);
    return true;
}

/* An operand with other parameters is requantized on the way. */
static int requantized(Binder *b, const Node *n, const Value *x, bool last, bool *ok) {
    const Value *y = n->out[0];
    int from = last ? bind_last(b, n, x) : bind_value(b, x);
    if (bind_equal_quant(x, y))
        return from;
    const Quant *q = op_quant(y);
    int32_t lo, hi;
    int temp = bind_temp(b, bind_elem(y), (size_t)bind_count(x));
    quant_range(q, &lo, &hi);
    *ok = bind_requantize(b, n, x, from, q, temp, lo, hi) && *ok;
    return temp;
}

/* Equal parameters, or such that can be changed on the way. */
static bool fits_kernel(const Node *n) {
    for (size_t i = 0; i < n->n_in; i++)
        if (!bind_equal_quant(n->in[i], n->out[0]) &&
            !(quant_plain(op_quant(n->in[i])) && quant_plain(op_quant(n->out[0]))))
            return false;
    return true;
}

static bool bind(Binder *b, const Node *n, const OpCtx *c) {
    const ConcatAttrs *a = c->attrs;
    Type y = n->out[0]->type;
    int axis;
    bool ok = true;
    if (!op_axis(c, a->axis, y.rank, &axis))
        return false;
    if (!fits_kernel(n))
        return bind_in_double(b, n);
    int32_t outer = bind_extent(y, 0, axis), step = bind_extent(y, axis, y.rank);
    int64_t offset = 0;
    bool last = false; /* channels come last in an operand: then each pixel's are joined */
    for (size_t i = 0; i < n->n_in; i++)
        last |= axis == 1 && bind_is_last(b, n->in[i]);
    if (last) {
        outer *= bind_extent(y, 2, y.rank);
        step = bind_extent(y, 1, 2);
    }
    int to = last ? bind_last(b, n, n->out[0]) : bind_value(b, n->out[0]);
    for (size_t i = 0; i < n->n_in && ok; i++) {
        int32_t row = bind_extent(n->in[i]->type, axis, last ? 2 : y.rank);
        int x = requantized(b, n, n->in[i], last, &ok);
        ok = ok && bind_copy_rows(b, n, x, to, bind_elem(n->out[0]), outer, row, step, offset);
        offset += row;
    }
    return ok;
}

static int slices(const OpCtx *c, size_t i, int axis, size_t result) {
    const ConcatAttrs *a = c->attrs;
    int along;
    (void)result;
    return op_axis(c, a->axis, op_type(c, i).rank, &along) && axis != along ? axis : -1;
}

static const Value *element(const OpCtx *c, int64_t *at) {
    size_t n;
    for (size_t i = 0; i < c->n_in && type_count(op_type(c, i), &n); i++) {
        if (*at < (int64_t)n)
            return op_in(c, i);
        *at -= (int64_t)n;
    }
    return NULL;
}

const OpDef op_Concat = {
    .domain = "",
    .name = "Concat",
    .attrs_size = sizeof(ConcatAttrs),
    .attrs = attrs,
    .infer = infer,
    .slices = slices,
    .quant = {.kind = QUANT_JOIN, .data = 1u << 31, .scaled.homogeneous = true},
    .passes_on = op_is_alone,
    .element = element,
    .qop = {.domain = "com.microsoft", .op = "QLinearConcat", .operands = "y ..*", .since = 10},
    .bind = bind,
};
